package bmc_test

import (
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// A run switched a boot option and ended before the host was booted: the iDRAC
// shows the option as it was, and a job. The next run boots the host for that job,
// and then sees what is still missing.
func TestAJobOfOptionsThatARunLeft(t *testing.T) {
	w, c := biosWorld(t, bmctest.IDRAC, biosCases[bmctest.IDRAC].want)
	w.scope.Site.BMC.RestrictBoot = true
	w.connect()
	if f := w.visit(c, stepOf(w.build(w.read()), "bios")); f != nil {
		t.Fatal(faultText(f))
	}
	step := stepOf(w.build(w.read()), "boot_order")
	if step == nil {
		t.Fatal("the boot order is right already")
	}
	var memo plan.Memo
	for range 40 {
		r := w.client.Run(t.Context(), w.scope, step, memo)
		if r.Outcome != plan.OutcomeWait {
			t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
		}
		memo = r.Memo
		if len(w.bmcs[0].Jobs()) > 1 { // the second one waits for the boot, and the run ends here
			break
		}
		c.t = c.t.Add(r.After)
	}
	w.close()
	w.connect()
	before := w.bmcs[0].Resets()
	if f := w.visit(c, step); f != nil {
		t.Fatal(faultText(f))
	}
	if n := w.bmcs[0].Resets() - before; n != 1 {
		t.Errorf("%d resets", n)
	}
	if p := w.build(w.read()); stepOf(p, "boot_order") != nil {
		t.Errorf("again: %s", steps(p))
	}
	w.close()
}
