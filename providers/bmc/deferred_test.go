package bmc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

func resources(w *world) []plan.Resource { return plan.Desired(w.scope, bmc.Kinds()) }

// dhcp is a stand-in for the step that makes a BMC reachable.
func dhcp() plan.Kind {
	return plan.Kind{Name: "dhcp.reservation", Phase: plan.PhaseDHCP, Want: func(t *plan.Target) []plan.Resource {
		return []plan.Resource{{Address: t.Address("dhcp", "reservation", ""), Want: plan.Obj(map[string]plan.Value{"sha256": plan.Str("x")})}}
	}}
}

func TestNotReachableYet(t *testing.T) {
	m := machine(bmctest.Generic)
	m.Unreachable = true
	w := newWorld(t, m)
	snap := w.read()
	for a, live := range snap {
		if live.Presence != plan.Unreachable || live.Fault.Code != plan.CodeBMCUnreachable {
			t.Errorf("%s: %s %s", a, live.Presence, faultText(live.Fault))
		}
	}
	// Without a DHCP step that is a fault.
	alone := w.build(snap)
	if alone.Devices[0].Verdict != plan.VerdictUnreadable || len(alone.Steps) != 0 || len(alone.Diagnostics) != 1 {
		t.Errorf("alone: %s %s %+v", alone.Devices[0].Verdict, steps(alone), alone.Diagnostics)
	}
	snap[w.scope.Targets[0].Address("dhcp", "reservation", "")] = plan.LiveAbsent()
	p := plan.Build(plan.Input{Scope: w.scope, Kinds: append(bmc.Kinds(), dhcp()), World: snap})
	want := "create dhcp.reservation absent\nverify bmc.credential not_reachable\nupdate bmc.hostname not_reachable\nupdate bmc.ntp not_reachable\nupdate bmc.boot_order not_reachable"
	if got := steps(p); got != want {
		t.Fatalf("steps:\n%s\nwant:\n%s", got, want)
	}
	if len(p.Checks) != 1 || p.Checks[0].Verdict != plan.CheckUnknown || p.Checks[0].Address.Kind != "link" {
		t.Errorf("checks: %+v", p.Checks)
	}
	verify := p.Steps[1]
	if verify.Budget != plan.Duration(time.Minute) || verify.Guard != "" || !verify.BeforeUnknown {
		t.Errorf("%+v", verify)
	}

	// Nothing answers yet: the pauses grow, and nothing but a look is made.
	var memo plan.Memo
	var pauses []time.Duration
	for range 8 {
		r := w.client.Run(context.Background(), w.scope, verify, memo)
		if r.Outcome != plan.OutcomeWait || r.Observed != "BMC does not answer yet" {
			t.Fatalf("%s %q %s", r.Outcome, r.Observed, faultText(r.Fault))
		}
		pauses, memo = append(pauses, r.After), r.Memo
	}
	if pauses[0] != 250*time.Millisecond || pauses[1] != 500*time.Millisecond || pauses[7] != 5*time.Second {
		t.Errorf("pauses %v", pauses)
	}

	w.bmcs[0].Change(func(m *bmctest.Machine) { m.Profile.Busy = 1 })
	w.bmcs[0].SetReachable(true)
	r := w.client.Run(context.Background(), w.scope, verify, memo)
	if r.Outcome != plan.OutcomeWait || !strings.HasPrefix(r.Observed, "BMC is not ready yet") {
		t.Fatalf("%s %q %s", r.Outcome, r.Observed, faultText(r.Fault))
	}
	r = w.client.Run(context.Background(), w.scope, verify, r.Memo)
	if r.Outcome != plan.OutcomeDone || len(r.Checks) != 1 || r.Checks[0].Verdict != plan.CheckPass || !strings.Contains(r.Checks[0].Observed, "SVC0001") {
		t.Fatalf("%s %+v %s", r.Outcome, r.Checks, faultText(r.Fault))
	}
	for _, s := range p.Steps[2:4] {
		if live := w.read().Get(s.Address); plan.Satisfies(s.After, live.Value) {
			t.Errorf("%s: wanted already", s.Address)
		}
		if r := w.apply(s); r.Outcome != plan.OutcomeDone {
			t.Errorf("%s: %s", s.Address, faultText(r.Fault))
		}
	}
	w.close()
}

// What appears with a refused login or as another machine ends the wait at once.
func TestAppearsWrong(t *testing.T) {
	for _, code := range []plan.Code{plan.CodeBMCCredential, plan.CodeBMCIdentity} {
		w := newWorld(t, machine(bmctest.Generic))
		if code == plan.CodeBMCCredential {
			w.passwords["gpu-001"] = "wrong"
		} else {
			w.scope.Targets[0].Intent.Serial = "SVC0002"
		}
		step := &plan.Step{Address: w.scope.Targets[0].Address("bmc", "credential", ""), Action: plan.ActionVerify}
		for range 2 {
			r := w.client.Run(context.Background(), w.scope, step, nil)
			if r.Outcome != plan.OutcomeFailed || r.Fault.Code != code {
				t.Errorf("%s: %s %s", code, r.Outcome, faultText(r.Fault))
			}
		}
		if n := w.bmcs[0].FailedLogins(); n > 1 {
			t.Errorf("%s: %d logins failed", code, n)
		}
		w.close()
	}
}

func TestGoesAway(t *testing.T) {
	w := newWorld(t, machine(bmctest.Generic))
	w.read()
	for range 3 {
		w.bmcs[0].SetReachable(false)
		if live := w.live(w.read(), "ntp"); live.Presence != plan.Unreachable {
			t.Errorf("%s %s", live.Presence, faultText(live.Fault))
		}
		w.bmcs[0].SetReachable(true)
		if live := w.live(w.read(), "ntp"); live.Presence != plan.Present {
			t.Errorf("%s %s", live.Presence, faultText(live.Fault))
		}
	}
	w.close()
}

// Many BMCs, some of them broken in their own way: each is reported for itself.
func TestFleet(t *testing.T) {
	const n = 60
	machines := make([]bmctest.Machine, n)
	for i := range machines {
		machines[i] = machine([]string{bmctest.Generic, bmctest.IDRAC}[i%2])
		machines[i].Unreachable = i == 7
	}
	w := newWorld(t, machines...)
	w.passwords["gpu-012"] = "wrong"
	snap := w.read()
	count := map[plan.Presence]int{}
	for _, live := range snap {
		count[live.Presence]++
	}
	if len(snap) != 6*n || count[plan.Unreachable] != 6 || count[plan.Unreadable] != 6 || count[plan.Present]+count[plan.Unsupported] != 6*(n-2) {
		t.Errorf("%d answers: %v", len(snap), count)
	}
	if got, seen := w.client.Requests(), len(w.fleet.Recorder().Records()); got != seen+1 { // one found nobody
		t.Errorf("%d requests counted, %d seen", got, seen)
	}
	w.close()
}
