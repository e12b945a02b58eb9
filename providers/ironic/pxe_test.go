package ironic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// Ports are read again after the inspection, which may have changed them: PXE on
// exactly one, the first frontend NIC's, or nothing is cleaned.
func TestPXEAfterInspection(t *testing.T) {
	l := newLab(t, 1)
	s := l.reach("ironic.provision[inspect]")
	l.sim.LosePXE("gpu-001")
	if f := l.step(s); f != nil {
		t.Fatal(f)
	}
	p := l.plan()
	f := plan.Check{}
	for _, c := range p.Checks {
		if c.Address.Key == "pxe_port" {
			f = c
		}
	}
	if f.Verdict != plan.CheckFail || f.Observed != "PXE on no port" || !strings.Contains(f.Text, "update_pxe_enabled") {
		t.Errorf("%+v", f)
	}
	if got := shown(p); p.HasWork() || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "[transition ironic.provision[provide]") }) {
		t.Errorf("plan %v", got)
	}

	// Found in apply, right after the inspection, by a read of its own.
	l = newLab(t, 1)
	p = l.plan()
	l.sim.Recorder().Reset()
	for _, s := range p.Steps {
		if s.Address.Local() == "ironic.provision[inspect]" {
			l.sim.LosePXE("gpu-001")
		}
		if f := l.step(s); f != nil {
			if f.Code != plan.CodeInspectionMismatch || !strings.Contains(f.Summary, "PXE on no port") {
				t.Error(f)
			}
			return
		}
	}
	t.Error("nothing was found")
}
