package netbox_test

import (
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// Whatever site and status a device has, its oob_ip is told; of one without it, and of
// an id that NetBox cannot be asked about, nothing; and one that is not there is
// missing in the answer.
func TestRecorded(t *testing.T) {
	s := netboxtest.New(netboxtest.Options{})
	t.Cleanup(s.Close)
	elsewhere, bare := host(2), host(3)
	elsewhere.Site, elsewhere.Status = "par2", "decommissioning"
	bare.OOB = netboxtest.OOB{}
	first, other, none := s.AddDevice(host(1)), s.AddDevice(elsewhere), s.AddDevice(bare)
	beyond := int64(math.MaxInt32) + 1
	c := client(t, s.URL, netboxtest.DefaultToken)
	got, err := c.Recorded(t.Context(), []int64{first, other, none, 999_999, 0, beyond})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int64]netip.Addr{
		first: netip.MustParseAddr("198.18.0.2"), other: netip.MustParseAddr("198.18.0.3"), none: {}, 0: {}, beyond: {},
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if got, err := c.Recorded(t.Context(), []int64{0}); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// What NetBox does not answer is never taken for a device that it does not have.
func TestRecordedFaults(t *testing.T) {
	for _, fault := range []exchange.Fault{
		{Kind: exchange.Status, Status: 403, Body: `{"detail":"no"}`}, {Kind: exchange.Garbage}, {Kind: exchange.HalfBody}, {Kind: exchange.Reset},
		{Kind: exchange.Status, Status: 200, Body: `{"count":1,"next":null,"results":[{"id":0}]}`},
	} {
		s := netboxtest.New(netboxtest.Options{})
		id := s.AddDevice(host(1))
		c := client(t, s.URL, netboxtest.DefaultToken)
		s.Recorder.Inject(&fault)
		got, err := c.Recorded(t.Context(), []int64{id})
		if f := plan.AsFault(err); err == nil || f.Code == plan.CodeInternal {
			t.Errorf("%s: %v, %v", fault.Kind, got, err)
		}
		s.Close()
	}
}
