package ironic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

const lockedBody = `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node 1 is locked by host conductor-2, please retry after the current operation is completed.\", \"debuginfo\": null}"}`

// A fault at any exchange of the whole enrolment is classified, leaves nothing
// half done, and the next run converges: one node, two ports, and no verb sent
// to a node that already moves.
func TestFaultAtEachExchange(t *testing.T) {
	kinds := []struct {
		name  string
		fault exchange.Fault
		codes []plan.Code
	}{
		{"lost reply", exchange.Fault{Kind: exchange.LostReply}, []plan.Code{plan.CodeIronicUnreachable}},
		{"half a body", exchange.Fault{Kind: exchange.HalfBody}, []plan.Code{plan.CodeIronicUnreachable}},
		{"reset", exchange.Fault{Kind: exchange.Reset}, []plan.Code{plan.CodeIronicUnreachable}},
		{"garbage", exchange.Fault{Kind: exchange.Garbage}, []plan.Code{plan.CodeIronicProtocol}},
		{"401", exchange.Fault{Kind: exchange.Status, Status: 401, Body: `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`}, []plan.Code{plan.CodeIronicDenied}},
		{"409 locked", exchange.Fault{Kind: exchange.Status, Status: 409, Body: lockedBody}, []plan.Code{plan.CodeIronicLocked}},
		{"503", exchange.Fault{Kind: exchange.Status, Status: 503}, []plan.Code{plan.CodeIronicUnreachable}},
		{"408", exchange.Fault{Kind: exchange.Status, Status: 408}, []plan.Code{plan.CodeIronicUnreachable}},
	}
	// How many exchanges an undisturbed run has.
	l := newLab(t, 1)
	if faults := l.apply(l.plan()); len(faults) != 0 {
		t.Fatal(faults)
	}
	total := len(l.sim.Recorder().Records())
	for k, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			// The nastiest meets every exchange, the others every fifth, shifted.
			first, stride := 1, 1
			if kind.name != "lost reply" {
				first, stride = 1+k%5, 5
			}
			for at := first; at <= total; at += stride {
				l := newLab(t, 1)
				f := kind.fault
				f.At = at
				l.sim.Recorder().Inject(&f)
				var seen []*plan.Fault
				p := l.plan()
				for _, d := range p.Errors() {
					seen = append(seen, d.Fault)
				}
				if len(seen) > 0 && p.HasWork() {
					t.Errorf("exchange %d: a plan in the dark: %v", at, shown(p))
				}
				for _, f := range l.apply(p) {
					seen = append(seen, f)
				}
				for _, s := range seen {
					if !contains(kind.codes, s.Code) {
						t.Errorf("exchange %d: %v", at, s)
					}
					if strings.Contains(fmt.Sprintf("%+v %v", s, s.EvidenceLines()), "s3cret") {
						t.Errorf("exchange %d: the fault holds the password", at)
					}
				}
				l.clock.Advance(time.Second) // what was under way has let go of the lock
				if faults := l.apply(l.plan()); len(faults) != 0 {
					t.Errorf("exchange %d: the next run: %v", at, faults)
				}
				if p := l.plan(); len(p.Steps) != 0 {
					t.Errorf("exchange %d: still to do: %v", at, shown(p))
				}
				n, _ := l.sim.Node("gpu-001")
				if len(l.sim.Nodes()) != 1 || len(n.MACs) != 2 || n.ProvisionState != plan.StateAvailable {
					t.Errorf("exchange %d: the node is %+v", at, n)
				}
				verbs := l.sim.Recorder().Count(func(r exchange.Record) bool { return strings.HasSuffix(r.Path, "/states/provision") && r.Status == 202 })
				lost := l.sim.Recorder().Count(func(r exchange.Record) bool {
					return strings.HasSuffix(r.Path, "/states/provision") && (r.Fault == "lost_reply" || r.Fault == "half_body")
				})
				if verbs+lost != 3 {
					t.Errorf("exchange %d: %d verbs were taken, want 3", at, verbs+lost)
				}
			}
		})
	}
}

func contains(codes []plan.Code, c plan.Code) bool {
	for _, k := range codes {
		if k == c {
			return true
		}
	}
	return false
}

func TestStall(t *testing.T) {
	l := newLab(t, 1)
	l.scope.Site.Ironics[0].Timeout = 100 * time.Millisecond
	l.client = l.connect()
	l.sim.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Times: 1})
	o := l.client.Ownership(t.Context(), l.scope)["gpu-001"]
	if o.Unknown == nil || o.Unknown.Code != plan.CodeIronicUnreachable {
		t.Errorf("%+v", o)
	}
	// Cancelled by the operator is no fault of Ironic.
	l.sim.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Times: 1})
	l.scope.Site.Ironics[0].Timeout = 10 * time.Second
	l.client = l.connect()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	time.AfterFunc(50*time.Millisecond, cancel)
	o = l.client.Ownership(ctx, l.scope)["gpu-001"]
	if o.Unknown == nil || o.Unknown.Code != plan.CodeInterrupted {
		t.Errorf("%+v", o)
	}
}

func TestIronicIsDown(t *testing.T) {
	l := newLab(t, 1)
	l.sim.Close()
	p := l.plan()
	if len(p.Errors()) != 1 || p.Errors()[0].Fault.Code != plan.CodeIronicUnreachable || p.HasWork() {
		t.Errorf("diagnostics %v", p.Diagnostics)
	}
}

// The lock of somebody else is reported with its holder, and nothing is queued.
func TestLockedNode(t *testing.T) {
	l := newLab(t, 1)
	for _, s := range l.plan().Steps {
		if s.Address.Local() != "ironic.provision[manage]" {
			if f := l.step(s); f != nil {
				t.Fatal(f)
			}
			continue
		}
		l.sim.Lock("gpu-001", "conductor-2", time.Minute)
		f := l.step(s)
		if f == nil || f.Code != plan.CodeIronicLocked || f.Evidence["holder"] != "conductor-2" || f.Class() != plan.ClassBusy {
			t.Fatalf("%v %v", f, f.EvidenceLines())
		}
		l.clock.Advance(time.Hour)
		if f := l.step(s); f != nil {
			t.Error(f)
		}
		return
	}
}
