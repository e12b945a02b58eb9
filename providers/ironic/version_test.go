package ironic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// An Ironic that is older than what is asked for first is asked again at the newest
// version that it has, once, and everything goes as with a new one; only what rests
// on an inventory needs a later version than the rest.
func TestVersionIsNegotiatedDown(t *testing.T) {
	for _, c := range []struct {
		offers int
		skip   bool   // --run-inspection=false
		fault  string // how the refusal begins; "" for none
	}{
		{offers: 82},
		{offers: 81},
		{offers: 80, fault: "ironic baremetal offers API up to 1.80; the inventory needs 1.81"},
		{offers: 80, skip: true},
		{offers: 65, skip: true},
		{offers: 64, skip: true, fault: "ironic baremetal offers API 1.1 to 1.64; enroll needs 1.65"},
	} {
		t.Run(strconv.Itoa(c.offers)+" "+strconv.FormatBool(c.skip), func(t *testing.T) {
			l := newLab(t, 1, func(target *plan.Target) { target.Intent.Ironic.Bond = &plan.Bond{Mode: "802.3ad"} })
			l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
			l.scope.Parameters.SkipInspection = c.skip
			l.sim.Offer(c.offers)
			refused := func() int {
				return l.sim.Recorder().Count(func(r exchange.Record) bool { return r.Status == http.StatusNotAcceptable })
			}
			p := l.plan()
			if c.fault != "" {
				errs := p.Errors()
				if len(errs) == 0 || errs[0].Fault.Code != plan.CodeIronicUnsupported || !strings.HasPrefix(errs[0].Fault.Summary, c.fault) || p.HasWork() {
					t.Errorf("%v, work %v", p.Diagnostics, shown(p))
				}
				return
			}
			if faults := l.apply(p); len(faults) > 0 || len(p.Errors()) > 0 {
				t.Fatal(faults, p.Diagnostics)
			}
			if n, _ := l.sim.Node("gpu-001"); n.ProvisionState != plan.StateAvailable || n.PowerState != "power on" {
				t.Errorf("the node is %s, %s", n.ProvisionState, n.PowerState)
			}
			if again := l.plan(); len(again.Steps) > 0 || len(again.Errors()) > 0 {
				t.Errorf("then: %v, %v", shown(again), again.Diagnostics)
			}
			if n := refused(); n != min(1, 82-c.offers) {
				t.Errorf("%d requests were refused for their version", n)
			}
		})
	}
}

// What Ironic tells of a transition that failed is asked for only where it can be.
func TestHistoryNeedsItsVersion(t *testing.T) {
	l := newLab(t, 1)
	l.sim.Offer(77)
	l.scope.Parameters.SkipInspection = true
	l.scope.Parameters.MaxAttempts = 1
	s := l.reach("ironic.provision[provide]")
	l.sim.FailCleaning("gpu-001", "disk")
	l.before = func(*http.Request) { l.sim.Set("gpu-001", "last_error", nil) } // as the power sync does
	f := l.step(s)
	if f == nil || f.Code != plan.CodeIronicUnexpected || strings.Contains(f.Summary, "disk") {
		t.Errorf("%v", f)
	}
	if n := l.sim.Recorder().Count(func(r exchange.Record) bool { return strings.HasSuffix(r.Path, "/history") }); n != 0 {
		t.Errorf("the history was asked for %d times", n)
	}
}

// A node whose answer lacks a field that was asked for is not taken for one in which
// that field is empty: nobody knows who owns it, and nothing is done.
func TestAnAbsentFieldIsUnknown(t *testing.T) {
	l := newLab(t, 1)
	l.node(plan.StateManageable, nil)
	behind, err := url.Parse(l.sim.URL)
	if err != nil {
		t.Fatal(err)
	}
	missing := ""
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		ModifyResponse: func(r *http.Response) error {
			var n map[string]json.RawMessage
			if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
				return err
			}
			delete(n, missing)
			body, err := json.Marshal(n)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	})
	t.Cleanup(front.Close)
	l.scope.Site.Ironics[0].Endpoint = front.URL
	l.client = l.connect()
	asked := ""
	l.before = func(r *http.Request) { asked = r.URL.Query().Get("fields") }
	if o := l.client.Ownership(t.Context(), l.scope)["gpu-001"]; o.Unknown != nil || o.Owned {
		t.Fatalf("%+v", o)
	}
	fields := strings.Split(asked, ",")
	for _, missing = range fields {
		o := l.client.Ownership(t.Context(), l.scope)["gpu-001"]
		if o.Unknown == nil || o.Unknown.Code != plan.CodeIronicProtocol || !strings.Contains(o.Unknown.Error(), "no "+missing+",") {
			t.Errorf("without %s: %+v", missing, o)
		}
	}
	if len(fields) < 30 {
		t.Errorf("only %d fields were asked for", len(fields))
	}
}
