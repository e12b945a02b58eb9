package dhcp_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

var services = []string{"dnsmasq", "kea", "isc"}

// The starting points of the matrix: what stood in the folder before.
var starts = []struct {
	name string
	old  func() (dhcp.Entry, bool)
}{
	{"create", func() (dhcp.Entry, bool) { return dhcp.Entry{}, false }},
	{"update", func() (dhcp.Entry, bool) { e := entry(device(1)); e.MAC = mac(9); return e, true }},
	{"rename", func() (dhcp.Entry, bool) {
		e := entry(device(1))
		e.Device, e.Name = "spare-1", "spare-1-bmc"
		return e, true
	}},
}

// scene is one starting point on one machine.
type scene struct {
	*bench
	old     dhcp.Entry
	existed bool
}

func arrange(t *testing.T, service string, n int) *scene {
	t.Helper()
	s := &scene{bench: newStalling(t, dhcptest.Options{Service: service, HostKeys: hostKeys()[1:]}, device(1))}
	s.old, s.existed = starts[n].old()
	if s.existed {
		s.stand(s.old, entry(device(5))) // and a neighbour that nothing may happen to
	} else {
		s.stand(entry(device(5)))
	}
	return s
}

// TestEveryExchange breaks every exchange of a run in every way, for every
// server. Whatever happens, an old or the new file stands there whole, the server
// serves one or the other and would come up if somebody restarted it, and the next
// run ends where an undisturbed one does: the same run, or another one after the
// first was killed there.
func TestEveryExchange(t *testing.T) {
	for _, service := range services {
		for start := range starts {
			whole := arrange(t, service, start)
			before := len(whole.srv.Recorder().Records())
			if f := whole.converge(whole.p); f != nil {
				t.Fatalf("%s, %s: %v", service, starts[start].name, f)
			}
			n := len(whole.srv.Recorder().Records()) - before
			if n < 20 {
				t.Fatalf("a run takes %d exchanges only", n)
			}
			kinds := []exchange.Kind{exchange.Reset, exchange.LostReply} // killed before and after the request
			if starts[start].name == "update" {
				kinds = append(kinds, exchange.Status, exchange.HalfBody, exchange.Garbage, exchange.Stall)
			}
			for _, kind := range kinds {
				t.Run(service+"/"+starts[start].name+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					unseen := 0
					ks := disturbable(t, n)
					for _, k := range ks {
						if t.Failed() {
							break
						}
						s := arrange(t, service, start)
						s.srv.Recorder().Inject(&exchange.Fault{Kind: kind, At: k, Times: 1, Status: 4, Body: "Failure"})
						f := s.converge(s.p)
						what := fmt.Sprintf("%s at %d", kind, k)
						s.disturbed(what, f)
						if f == nil {
							unseen++
						}
						if k%2 == 0 {
							s.later()
						}
						if f := s.converge(s.p); f != nil {
							t.Errorf("%s: the next run: %v\n%s", what, f, strings.Join(f.EvidenceLines(), "\n"))
						}
						s.arrived(what)
						_ = s.p.Close(context.Background())
						if t.Failed() {
							for _, r := range s.srv.Recorder().Records() {
								t.Logf("%3d %-18s %s %d %s", r.Seq, r.Method, short(r.Path), r.Status, r.Fault)
							}
						}
					}
					t.Logf("%d of %d exchanges could be disturbed without a fault", unseen, len(ks))
					if unseen > 2*len(ks)/3 {
						t.Errorf("%d of %d faults had no consequence", unseen, len(ks))
					}
				})
			}
		}
	}
}

// disturbable gives the exchanges, from 1, at which a run of n of them is broken: one
// in six, and one in 24 under the race detector, which makes each ten times as long.
func disturbable(t *testing.T, n int) []int {
	t.Helper()
	step := 6
	if raceDetector {
		step = 24
	}
	var out []int
	for point := range sweep.Points(t, n, step) {
		out = append(out, point+1)
	}
	return out
}

func short(s string) string {
	if len(s) > 90 {
		return s[:90] + "…"
	}
	return s
}

// disturbed checks what must hold right after a fault.
func (s *scene) disturbed(what string, f *plan.Fault) {
	s.t.Helper()
	at, want := s.file(entry(device(1)))
	content, there := s.srv.ReadFile(at)
	oldAt, old := s.file(s.old)
	switch isNew := there && content == want; {
	case isNew:
	case s.existed && at == oldAt && content == old:
	case there:
		s.t.Errorf("%s: the file holds %q", what, content)
	case s.existed:
		if got, _ := s.srv.ReadFile(oldAt); got != old {
			s.t.Errorf("%s: neither the former nor the new file stands there whole", what)
		}
	}
	s.sound(what)
	got, _ := s.srv.Lease(mac(1))
	gotOld, _ := s.srv.Lease(s.old.MAC)
	if there && content == want && got != device(1).OOB && !s.srv.Pending() {
		s.t.Errorf("%s: a new file that is not live, without the marker", what)
	}
	if s.existed && got != device(1).OOB && gotOld != s.old.Address {
		s.t.Errorf("%s: neither the old nor the new reservation is served: %v, %v", what, gotOld, got)
	}
	if f == nil {
		return
	}
	if f.Code == plan.CodeInternal || f.Code == plan.CodeInterrupted || f.Summary == "" {
		s.t.Errorf("%s: badly classified: %v", what, f)
	}
	if len(s.temps()) > 4 { // lock, marker, file and the two of a trial are on their way at once
		s.t.Errorf("%s: left behind %v", what, s.temps())
	}
}

// sound is what holds at every moment: the server runs, a neighbour is served,
// and a restart by somebody else would succeed.
func (s *scene) sound(what string) {
	s.t.Helper()
	if !s.srv.Serving() {
		s.t.Errorf("%s: nobody is served", what)
	}
	if got, _ := s.srv.Lease(mac(5)); got != device(5).OOB {
		s.t.Errorf("%s: the neighbour's lease is %v", what, got)
	}
	if err := s.srv.WouldStart(); err != nil {
		s.t.Errorf("%s: a restart would fail: %v", what, err)
	}
}

// arrived checks the end of an undisturbed run.
func (s *scene) arrived(what string) {
	s.t.Helper()
	s.sound(what)
	s.settled()
	at, want := s.file(entry(device(1)))
	if content, _ := s.srv.ReadFile(at); content != want {
		s.t.Errorf("%s: the file holds %q", what, content)
	}
	if got, _ := s.srv.Lease(mac(1)); got != device(1).OOB {
		s.t.Errorf("%s: lease %v", what, got)
	}
	neighbour, _ := s.file(entry(device(5)))
	names := []string{path.Base(at), path.Base(neighbour)}
	if index, content := dhcp.RenderIndex(*s.scope.Site.DHCP, names); index != "" {
		names = append(names, path.Base(index))
		if got, _ := s.srv.ReadFile(index); got != content {
			s.t.Errorf("%s: the index holds %q", what, got)
		}
	}
	slices.Sort(names)
	// A killed run's lock, whose lease is over, and the one that was moved away for
	// its heir, which is swept an hour later.
	got := slices.DeleteFunc(s.srv.Files(), func(name string) bool {
		return name == ".enroll-lock" || strings.HasPrefix(name, ".enroll-lock.enroll-")
	})
	if !slices.Equal(got, names) {
		s.t.Errorf("%s: the folder holds %q, want %q", what, got, names)
	}
}
