package ironic_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// reach applies the steps of a plan before the one with the address, and gives
// that one.
func (l *lab) reach(local string) *plan.Step {
	l.t.Helper()
	for _, s := range l.plan().Steps {
		if s.Address.Local() == local {
			return s
		}
		if f := l.step(s); f != nil {
			l.t.Fatal(f)
		}
	}
	l.t.Fatalf("the plan has no %s", local)
	return nil
}

const brokenDisk = "Node failed step erase_devices: I/O error"

// Cleaning is tried as often as the site says, each time from manageable again;
// then the fault has Ironic's words and the number of attempts.
func TestCleanFailsEveryTime(t *testing.T) {
	for _, attempts := range []int{0, 1, 2} { // 0: the site's three
		l := newLab(t, 1)
		l.scope.Parameters.MaxAttempts = attempts
		s := l.reach("ironic.provision[provide]")
		l.sim.FailCleaning("gpu-001", brokenDisk)
		provides := func() int {
			return l.sim.Recorder().Count(func(r exchange.Record) bool { return strings.HasSuffix(r.Path, "/states/provision") })
		}
		before := provides()
		f := l.step(s)
		want := map[int]int{0: 3, 1: 1, 2: 2}[attempts]
		if f == nil || f.Code != plan.CodeIronicUnexpected || !strings.Contains(f.Summary, `went to "clean failed" after provide instead of "available": `+brokenDisk) || f.Evidence["attempts"] != string(rune('0'+want)) {
			t.Fatalf("%v %v", f, f.EvidenceLines())
		}
		if n := provides() - before; n != 2*want-1 { // a manage between two of them
			t.Errorf("%d verbs, want %d", n, 2*want-1)
		}
		// The next run recovers it: the flag that cleaning set is cleared with the recovery.
		p := l.plan()
		if diff := cmp.Diff([]string{"transition ironic.provision[manage]", "transition ironic.provision[provide]", "update ironic.power"}, shown(p)); diff != "" {
			t.Fatalf("plan (-want +got):\n%s", diff)
		}
		l.sim.FailCleaning("gpu-001", "")
		if faults := l.apply(p); len(faults) != 0 {
			t.Fatal(faults)
		}
		if n, _ := l.sim.Node("gpu-001"); n.ProvisionState != plan.StateAvailable || n.Maintenance {
			t.Errorf("the node is %+v", n)
		}
	}
}

// A clean that fails once is tried again within the step.
func TestCleanFailsOnce(t *testing.T) {
	l := newLab(t, 1)
	s := l.reach("ironic.provision[provide]")
	l.sim.FailCleaning("gpu-001", brokenDisk)
	failed := false
	l.wait = func(d time.Duration) {
		l.clock.Advance(d)
		if n, _ := l.sim.Node("gpu-001"); n.ProvisionState == plan.StateCleanFailed && !failed {
			failed = true
			l.sim.FailCleaning("gpu-001", "")
		}
	}
	if f := l.step(s); f != nil {
		t.Fatal(f)
	}
	if n, _ := l.sim.Node("gpu-001"); !failed || n.ProvisionState != plan.StateAvailable || n.Maintenance {
		t.Errorf("failed %v, the node is %+v", failed, n)
	}
}

// Maintenance that was cleared for a recovery is put back when manage does not
// succeed, and is still known as not a person's.
func TestMaintenanceIsPutBack(t *testing.T) {
	l := newLab(t, 1)
	l.scope.Parameters.MaxAttempts = 1
	s := l.reach("ironic.provision[provide]")
	l.sim.FailCleaning("gpu-001", brokenDisk)
	if f := l.step(s); f == nil {
		t.Fatal("cleaning did not fail")
	}
	p := l.plan()
	refused := &exchange.Fault{Kind: exchange.Status, Method: http.MethodPut, Path: "/v1/nodes/", Status: http.StatusBadRequest, Body: `{"error_message": "{\"faultstring\": \"no\"}"}`, Times: 1}
	l.sim.Recorder().Inject(refused)
	if f := l.step(p.Steps[0]); f == nil || f.Code != plan.CodeIronicRefused {
		t.Fatalf("manage: %v", f)
	}
	if n, _ := l.sim.Node("gpu-001"); !n.Maintenance || n.ProvisionState != plan.StateCleanFailed {
		t.Fatalf("the node is %+v", n)
	}
	// The reason says whose it is, so the next run clears it again, unasked.
	l.sim.FailCleaning("gpu-001", "")
	p = l.plan()
	if diff := cmp.Diff([]string{"transition ironic.provision[manage]", "transition ironic.provision[provide]", "update ironic.power"}, shown(p)); diff != "" {
		t.Fatalf("plan (-want +got):\n%s", diff)
	}
	if faults := l.apply(p); len(faults) != 0 {
		t.Fatal(faults)
	}
}

// What is to be put back is told before the flag is touched, and a manage that
// arrived although its answer was lost needs nothing put back.
func TestObligationComesFirst(t *testing.T) {
	l := newLab(t, 1)
	spec := available(l.scope.Targets[0], l)
	spec.State, spec.Fields["maintenance"], spec.Fields["fault"], spec.Fields["maintenance_reason"] = plan.StateCleanFailed, true, "clean failure", brokenDisk
	spec.Fields["target_provision_state"] = "available"
	l.sim.AddNode(spec)
	s := l.plan().Steps[0]
	r := l.client.Run(context.Background(), l.scope, s, nil)
	if r.Outcome != plan.OutcomeWait || r.Opens == nil || !strings.Contains(r.Opens.Text, brokenDisk) || l.mutating() != 0 {
		t.Fatalf("%+v, %d writes", r, l.mutating())
	}
	owes := *r.Opens
	owes.Address = s.Address
	for range 50 {
		if r = l.client.Run(context.Background(), l.scope, s, r.Memo); r.Outcome != plan.OutcomeWait {
			break
		}
		l.clock.Advance(r.After)
	}
	if r.Outcome != plan.OutcomeDone || !r.Closes {
		t.Fatalf("%+v", r)
	}
	if back := l.client.Restore(context.Background(), l.scope, owes); back.Outcome != plan.OutcomeAlready {
		t.Errorf("%+v", back)
	}
	if n, _ := l.sim.Node("gpu-001"); n.Maintenance {
		t.Error("maintenance was put back after a good manage")
	}
}

// What a killed run left open is put back while the node is where the recovery
// began. Anywhere else manage has arrived, and the flag would hold up a ramdisk.
func TestPutBackOnlyWhereItWasTaken(t *testing.T) {
	for state, want := range map[plan.ProvisionState]bool{
		plan.StateCleanFailed: true, plan.StateInspectFailed: true, plan.StateManageable: false, plan.StateVerifying: false,
		plan.StateCleaning: false, plan.StateCleanWait: false, plan.StateInspecting: false, plan.StateInspectWait: false, plan.StateAvailable: false,
	} {
		l := newLab(t, 1)
		spec := available(l.scope.Targets[0], l)
		spec.State = state
		l.sim.AddNode(spec)
		owes := plan.Obligation{Address: l.scope.Targets[0].Address("ironic", "provision", "manage"), Memo: plan.Memo{"reason": brokenDisk}}
		r := l.client.Restore(context.Background(), l.scope, owes)
		n, _ := l.sim.Node("gpu-001")
		if good := r.Outcome == plan.OutcomeDone || r.Outcome == plan.OutcomeAlready; !good || n.Maintenance != want {
			t.Errorf("%s: %+v; in maintenance: %v", state, r, n.Maintenance)
		}
	}
}

// Somebody else's maintenance is shown with its reason, holds everything that
// boots a ramdisk, and is cleared when the operator says so. Ironic's own, for a
// lost BMC, is no less somebody else's.
func TestForeignMaintenance(t *testing.T) {
	for _, c := range []struct {
		state         plan.ProvisionState
		reason, fault string
		want          []string
	}{
		{plan.StateManageable, "DIMM swap, Jo", "", []string{"update ironic.maintenance", "transition ironic.provision[provide]", "update ironic.power"}},
		{plan.StateManageable, "lost", "power failure", []string{"update ironic.maintenance", "transition ironic.provision[provide]", "update ironic.power"}},
		{plan.StateCleanFailed, "DIMM swap, Jo", "", []string{"transition ironic.provision[manage]", "transition ironic.provision[provide]", "update ironic.power"}},
	} {
		t.Run(string(c.state)+" "+c.fault, func(t *testing.T) {
			l := newLab(t, 1)
			spec := available(l.scope.Targets[0], l)
			spec.State, spec.Fields["maintenance"], spec.Fields["maintenance_reason"] = c.state, true, c.reason
			if c.fault != "" {
				spec.Fields["fault"] = c.fault
			}
			l.sim.AddNode(spec)
			p := l.plan()
			if p.HasWork() || len(p.Steps) == 0 || p.Steps[0].Blocked.Rule != plan.RuleForeign || !strings.Contains(p.Steps[0].Blocked.Text, c.reason) || !strings.Contains(p.Steps[0].Blocked.Text, "--clear-maintenance") {
				t.Errorf("unasked: %v", shown(p))
			}
			l.scope.Parameters.ClearMaintenance = true
			p = l.plan()
			if diff := cmp.Diff(c.want, shown(p)); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if p.Scope.Parameters["clear_maintenance"] != "true" {
				t.Errorf("recorded: %v", p.Scope.Parameters)
			}
			if faults := l.apply(p); len(faults) != 0 {
				t.Errorf("apply: %v", faults)
			}
		})
	}
}

// A fresh inspection is made when the operator wants one, and then the inventory
// at hand is newer; without verification the checks are skipped, and said to be.
func TestInspectionParameters(t *testing.T) {
	l := newLab(t, 1)
	spec := available(l.scope.Targets[0], l)
	spec.State = plan.StateManageable
	l.sim.AddNode(spec)
	l.clock.Advance(3600e9)
	l.scope.Parameters.ForceInspection = true
	p := l.plan()
	if p.Steps[0].Address.Local() != "ironic.provision[inspect]" || p.Steps[0].Reason != plan.ReasonForced {
		t.Fatalf("plan %v", shown(p))
	}
	if faults := l.apply(p); len(faults) != 0 {
		t.Fatal(faults)
	}

	l = newLab(t, 1)
	l.scope.Parameters.SkipInspection = true
	mac := l.scope.Targets[0].Intent.Frontend[1].MAC.String()
	l.cabling[mac] = "leaf-9 Ethernet1/9"
	p = l.plan()
	for _, c := range p.Checks {
		if c.Verdict != plan.CheckSkipped || !strings.Contains(c.Text, "run_inspection") {
			t.Errorf("%+v", c)
		}
	}
	if faults := l.apply(p); len(faults) != 0 {
		t.Fatal(faults)
	}
	if n, _ := l.sim.Node("gpu-001"); n.ProvisionState != plan.StateAvailable || n.HasInventory {
		t.Errorf("the node is %+v", n)
	}
}
