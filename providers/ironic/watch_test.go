package ironic_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// bmc tells the links of a host, nth counting from 1.
type bmc struct {
	reads int
	tell  func(nth int) (plan.LinkState, *plan.Fault)
}

func (b *bmc) Link(context.Context, *plan.Target) (plan.LinkState, string, *plan.Fault) {
	b.reads++
	state, f := b.tell(b.reads)
	return state, "eth0 " + string(state) + ", eth1 " + string(state), f
}

func always(s plan.LinkState) *bmc {
	return &bmc{tell: func(int) (plan.LinkState, *plan.Fault) { return s, nil }}
}

// slow is an Ironic in which inspection and cleaning take longer than the watch.
func slow(t *testing.T, b *bmc) *lab {
	t.Helper()
	l := newLabWith(t, 1, ironictest.Durations{Inspect: 40 * time.Minute, Clean: 60 * time.Minute, Power: time.Second})
	l.links = b
	l.client = l.connect()
	return l
}

// The three values: any link that is up passes at once, unknown fails open, and
// down is looked at until it has lasted.
func TestLinksThatPass(t *testing.T) {
	broken := plan.NewFault(plan.CodeBMCBusy, "503")
	for name, c := range map[string]struct {
		tell  func(nth int) (plan.LinkState, *plan.Fault)
		reads int // of one leg; 0: as many as it takes
	}{
		"up":      {func(int) (plan.LinkState, *plan.Fault) { return plan.LinkUp, nil }, 1},
		"unknown": {func(int) (plan.LinkState, *plan.Fault) { return plan.LinkUnknown, nil }, 1},
		"late": {func(nth int) (plan.LinkState, *plan.Fault) {
			if nth%20 != 0 {
				return plan.LinkDown, nil
			}
			return plan.LinkUp, nil
		}, 20},
		"two reads that fail": {func(nth int) (plan.LinkState, *plan.Fault) {
			if nth%3 != 0 {
				return plan.LinkUnknown, broken
			}
			return plan.LinkUp, nil
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bmc{tell: c.tell}
			l := slow(t, b)
			if faults := l.apply(l.plan()); len(faults) != 0 {
				t.Fatal(faults)
			}
			if b.reads != 2*c.reads { // in inspection and in cleaning
				t.Errorf("the links were read %d times, want %d", b.reads, 2*c.reads)
			}
			if diff := cmp.Diff([]string{"manage", "inspect", "provide"}, l.sim.Verbs("gpu-001")); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}

// All links down for five minutes from power-on abort the transition, once, with a
// fault that somebody at the rack can act on; it is not tried again.
func TestAllLinksDownAbort(t *testing.T) {
	for leg, failed := range map[string]plan.ProvisionState{"inspect": plan.StateInspectFailed, "provide": plan.StateCleanFailed} {
		t.Run(leg, func(t *testing.T) {
			b := always(plan.LinkUp)
			l := slow(t, b)
			s := l.reach("ironic.provision[" + leg + "]")
			b.tell = func(int) (plan.LinkState, *plan.Fault) { return plan.LinkDown, nil }
			before, began := len(l.sim.Verbs("gpu-001")), l.clock.Now()
			f := l.step(s)
			if f == nil || f.Code != plan.CodeLinkDown || f.Evidence["links"] != "eth0 down, eth1 down" || f.Owner() != plan.OwnerOnsite {
				t.Fatalf("%v %v", f, f.EvidenceLines())
			}
			if diff := cmp.Diff([]string{leg, "abort"}, l.sim.Verbs("gpu-001")[before:]); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
			// The node waits for its ramdisk after a quarter of the time.
			boots := map[string]time.Duration{"inspect": 10 * time.Minute, "provide": 15 * time.Minute}[leg]
			if took := l.clock.Now().Sub(began) - boots; took < 5*time.Minute || took > 5*time.Minute+40*time.Second {
				t.Errorf("aborted %s after power-on", took)
			}
			if n, _ := l.sim.Node("gpu-001"); n.ProvisionState != failed || n.Maintenance {
				t.Errorf("the node is %+v", n)
			}
			// The cable is mended: the next run recovers the node and goes on.
			b.tell = func(int) (plan.LinkState, *plan.Fault) { return plan.LinkUp, nil }
			if faults := l.apply(l.plan()); len(faults) != 0 {
				t.Fatal(faults)
			}
			if n, _ := l.sim.Node("gpu-001"); n.ProvisionState != plan.StateAvailable {
				t.Errorf("then the node is %+v", n)
			}
		})
	}
}

// A BMC that cannot be asked fails the attempt, not the inspection: that goes on,
// and is taken up by the next attempt. When none is left the fault is the BMC's.
func TestLinksThatCannotBeRead(t *testing.T) {
	b := &bmc{tell: func(int) (plan.LinkState, *plan.Fault) {
		return plan.LinkUnknown, plan.NewFault(plan.CodeBMCUnsupported, "the system has no list of the host's interfaces").With("url", "https://bmc/x")
	}}
	l := slow(t, b)
	f := l.step(l.reach("ironic.provision[inspect]"))
	if f == nil || f.Code != plan.CodeLinkUnreadable || f.Evidence["code"] != string(plan.CodeBMCUnsupported) || f.Evidence["url"] == "" || b.reads != 3 {
		t.Fatalf("after %d reads: %v %v", b.reads, f, f.EvidenceLines())
	}
	if diff := cmp.Diff([]string{"manage", "inspect"}, l.sim.Verbs("gpu-001")); diff != "" {
		t.Errorf("verbs (-want +got):\n%s", diff)
	}
	if n, _ := l.sim.Node("gpu-001"); n.ProvisionState != plan.StateInspectWait {
		t.Errorf("the node is %+v", n)
	}
}

// What boots no ramdisk is not watched: the out-of-band inspection.
func TestOutOfBandInspectionIsNotWatched(t *testing.T) {
	b := always(plan.LinkDown)
	l := slow(t, b)
	l.scope.Targets[0].Intent.Ironic.Interfaces["inspect_interface"] = "redfish"
	if f := l.step(l.reach("ironic.provision[inspect]")); f != nil || b.reads != 0 {
		t.Errorf("%v after %d reads", f, b.reads)
	}
}

// A node whose power does not come on, and an inspection that does not end, are
// given up and tried again within attempts; the fault then has the node's account.
func TestAttemptsThatTakeTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		power string
		words string
		each  time.Duration
	}{
		"power":    {"power off", "was not powered on within 5m0s, in attempt 3 of 3", 5 * time.Minute},
		"deadline": {"power on", "did not end within inspection_deadline, in attempt 3 of 3", 25 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l := slow(t, always(plan.LinkUp))
			l.scope.Site.Ironics[0].InspectDeadline = 25 * time.Minute
			s := l.reach("ironic.provision[inspect]")
			l.wait = func(d time.Duration) {
				l.clock.Advance(d)
				if n, _ := l.sim.Node("gpu-001"); n.ProvisionState == plan.StateInspectWait {
					l.sim.Set("gpu-001", "power_state", c.power)
				}
			}
			f := l.step(s)
			if f == nil || f.Code != plan.CodeTimeout || !strings.Contains(f.Summary, c.words) {
				t.Fatalf("%v", f)
			}
			for k, v := range map[string]string{"provision_state": "inspect failed", "target_provision_state": "manageable", "last_error": "Inspection was aborted by request."} {
				if f.Evidence[k] != v {
					t.Errorf("%s: %q, want %q", k, f.Evidence[k], v)
				}
			}
			want := []string{"manage", "inspect", "abort", "manage", "inspect", "abort", "manage", "inspect", "abort"}
			if diff := cmp.Diff(want, l.sim.Verbs("gpu-001")); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}

// An inspection that somebody else began is watched, and never aborted.
func TestAnInspectionOfSomebodyElse(t *testing.T) {
	l := slow(t, always(plan.LinkDown))
	spec := available(l.scope.Targets[0], l)
	spec.State, spec.Inventory = plan.StateInspectWait, nil
	spec.Fields["power_state"] = "power on"
	l.sim.AddNode(spec)
	p := l.plan()
	if f := l.step(p.Steps[0]); f == nil || f.Code != plan.CodeLinkDown || l.mutating() != 0 {
		t.Errorf("%s: %v, %d writes", p.Steps[0].Address, f, l.mutating())
	}
}

// The ramdisk reports in the very moment in which the attempt was given up: it has
// arrived.
func TestArrivalBeatsTheAbort(t *testing.T) {
	b := always(plan.LinkUp)
	l := slow(t, b)
	s := l.reach("ironic.provision[inspect]")
	b.tell = func(int) (plan.LinkState, *plan.Fault) { return plan.LinkDown, nil }
	l.wait = func(d time.Duration) { l.clock.Advance(d) }
	var memo plan.Memo
	for range 500 {
		r := l.client.Run(t.Context(), l.scope, s, memo)
		if r.Outcome != plan.OutcomeWait {
			if r.Outcome != plan.OutcomeDone {
				t.Errorf("%+v", r)
			}
			break
		}
		if memo = r.Memo; memo["stop"] != "" {
			l.clock.Advance(time.Hour)
		}
		l.clock.Advance(r.After)
	}
	if memo["stop"] == "" {
		t.Error("the attempt was never given up")
	}
	if diff := cmp.Diff([]string{"manage", "inspect"}, l.sim.Verbs("gpu-001")); diff != "" {
		t.Errorf("verbs (-want +got):\n%s", diff)
	}
}

// What a wait remembers is plain JSON, and has no secret.
func TestMemoIsPlain(t *testing.T) {
	l := slow(t, always(plan.LinkDown))
	s := l.reach("ironic.provision[inspect]")
	r := l.client.Run(t.Context(), l.scope, s, nil)
	for range 20 {
		raw, err := json.Marshal(r)
		if err != nil || strings.Contains(string(raw), "s3cret") {
			t.Fatalf("%s, %v", raw, err)
		}
		l.clock.Advance(r.After)
		r = l.client.Run(t.Context(), l.scope, s, r.Memo)
	}
}
