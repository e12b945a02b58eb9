package ironic_test

import (
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/cabling"
)

// Verifying a site reads the nodes once and one inventory for each node that was
// inspected; it writes nothing, and a device that cannot be judged says why.
func TestVerify(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.scope.Targets[0], l.scope.Targets[1]
	swapped := []string{a.Intent.Frontend[0].MAC.String(), b.Intent.Frontend[0].MAC.String()}
	l.cabling[swapped[0]], l.cabling[swapped[1]] = l.cabling[swapped[1]], l.cabling[swapped[0]]
	l.sim.AddNode(available(a, l))
	l.sim.AddNode(available(b, l))
	l.sim.AddNode(available(l.scope.Targets[2], l))
	l.scope.Targets[2].Intent.Faults = []*plan.Fault{plan.NewFault(plan.CodeIntentIncomplete, "a gap")}
	before := l.client.Requests()
	got := l.client.Verify(t.Context(), l.scope)
	if n := l.client.Requests() - before; n != 4 || l.mutating() != 0 {
		t.Errorf("%d requests, %d of them write; want 4 that read", n, l.mutating())
	}
	var cables []cabling.Cable
	verdicts := map[string]plan.CheckVerdict{}
	for _, v := range got {
		cables = append(cables, v.Cables...)
		for _, c := range v.Checks {
			verdicts[v.Device+" "+c.Address.Local()] = c.Verdict
		}
	}
	for check, want := range map[string]plan.CheckVerdict{
		"gpu-001 check.inspection[carrier]": plan.CheckPass, "gpu-001 check.lldp[eth0]": plan.CheckFail, "gpu-001 check.lldp[eth1]": plan.CheckPass,
		"gpu-001 check.inspection[pxe_port]": plan.CheckPass, "gpu-004 check.inspection[pxe_port]": plan.CheckUnknown,
		"gpu-002 check.lldp[eth0]": plan.CheckFail, "gpu-004 check.lldp[eth0]": plan.CheckUnknown,
	} {
		if verdicts[check] != want {
			t.Errorf("%s is %q, want %q", check, verdicts[check], want)
		}
	}
	if got[2].Fault == nil || got[2].Fault.Code != plan.CodeIntentIncomplete || len(got[2].Checks) != 0 {
		t.Errorf("a device with a gap: %+v", got[2])
	}
	found := cabling.Detect(cables)
	if len(found) != 1 || found[0].Kind != cabling.SwappedBetween {
		t.Errorf("the detective says %+v", found)
	}
}
