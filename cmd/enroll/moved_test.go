package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// What happens between plan and apply.

// drifted is a lab with an enrolled device whose settings were changed by hand,
// and the plan file that would put them right.
func drifted(t *testing.T) (*lab.Lab, string, string) {
	t.Helper()
	l, dir := startLab(t, 2)
	if code, out, errOut := invoke(t, l, dir, "apply", "--all", "--auto-approve"); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	s, _ := lab.FindScenario("drifted")
	if err := s.Change(l); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gpu-001.plan")
	if code, out, errOut := invoke(t, l, dir, "plan", "gpu-001", "--out", file); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	l.Recorder.Reset()
	return l, dir, file
}

func mutating(l *lab.Lab) int {
	return l.Recorder.Count(func(r exchange.Record) bool { return r.Mutating })
}

// refused wants that a plan file is applied without a single write.
func refused(t *testing.T, l *lab.Lab, dir, file string, want int, parts ...string) {
	t.Helper()
	code, out, errOut := invoke(t, l, dir, "apply", file, "--auto-approve")
	if code != want {
		t.Errorf("exit %d, want %d", code, want)
	}
	for _, p := range parts {
		if !strings.Contains(out+errOut, p) {
			t.Errorf("%q is missing", p)
		}
	}
	if n := mutating(l); n != 0 {
		t.Errorf("%d writes", n)
	}
	if t.Failed() {
		t.Logf("%s%s", out[max(0, strings.Index(out, "Approved")):], errOut)
	}
}

func TestANodeThatWasRenamedAndClaimedIsNotTouched(t *testing.T) {
	l, dir, file := drifted(t)
	l.Ironic.Set("gpu-001", "instance_uuid", "5f1ff2a1-7f0e-4f0c-9e53-6a6f6a3f6f01")
	l.Ironic.Set("gpu-001", "name", "renamed")
	refused(t, l, dir, file, exitError, "IRONIC_CONFLICT", "already a port of node renamed")
}

func TestANodeThatWasDeletedIsNotTouched(t *testing.T) {
	l, dir, file := drifted(t)
	l.Ironic.Remove("gpu-001")
	refused(t, l, dir, file, exitStale, "PLAN_STALE", "Ironic has no node gpu-001 any more")
}

func TestAnotherNodeOfThatNameIsNotTouched(t *testing.T) {
	l, dir, file := drifted(t)
	l.Ironic.Set("gpu-001", "name", "renamed")
	l.Ironic.AddNode(ironictest.Node{Name: "gpu-001", State: plan.StateAvailable})
	refused(t, l, dir, file, exitStale, "PLAN_STALE", "has moved to another node of Ironic")
}

func TestAClaimedNodeIsNotTouched(t *testing.T) {
	l, dir, file := drifted(t)
	l.Ironic.Set("gpu-001", "instance_uuid", "5f1ff2a1-7f0e-4f0c-9e53-6a6f6a3f6f01")
	refused(t, l, dir, file, exitDenied, "NODE_OWNED", "instance_uuid")
}

func TestARecordThatMovedHoldsTheDevice(t *testing.T) {
	for name, move := range map[string]func(l *lab.Lab){
		"status":  func(l *lab.Lab) { l.NetBox.SetStatus("gpu-001", "planned") },
		"serial":  func(l *lab.Lab) { l.NetBox.Update("gpu-001", func(d *netboxtest.Device) { d.Serial = "OTHER" }) },
		"removed": func(l *lab.Lab) { l.NetBox.Remove("gpu-001") },
	} {
		t.Run(name, func(t *testing.T) {
			l, dir, file := drifted(t)
			move(l)
			want, code := exitStale, "PLAN_STALE"
			if name == "status" {
				want, code = exitError, "DEVICE_STATUS_NOT_ELIGIBLE"
			}
			refused(t, l, dir, file, want, code, "gpu-001  failed    0 done")
		})
	}
}

func TestACopiedPlanFileIsTheSamePlan(t *testing.T) {
	l, dir, file := drifted(t)
	if code, out, errOut := invoke(t, l, dir, "apply", file, "--auto-approve"); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	l.Recorder.Reset()
	other := filepath.Join(t.TempDir(), "copy.plan")
	p, err := readPlan(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := writePlan(other, p, nil); err != nil {
		t.Fatal(err)
	}
	refused(t, l, dir, other, exitStale, "PLAN_ALREADY_APPLIED")
}
