package bmc_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// memory is what outlives the runs of a world.
type memory map[string][]bmc.Refusal

func (m memory) Refused(address, account string) []bmc.Refusal {
	return slices.Clone(m[address+" "+account])
}

func (m memory) Update(address, account string, change func([]bmc.Refusal) []bmc.Refusal) {
	m[address+" "+account] = change(m.Refused(address, account))
}

func (m memory) Place(address, account string) string { return "memory of " + address + " " + account }

// remembering are all families, and for how long each counts a refused login.
var remembering = map[string]time.Duration{
	bmctest.XCC: time.Hour, bmctest.IDRAC: time.Minute, bmctest.AMI: 10 * time.Minute, bmctest.Supermicro: 10 * time.Minute, bmctest.Generic: 10 * time.Minute,
}

// wrong is a world whose vault has nothing that the BMC takes.
func wrong(t *testing.T, vendor string) *world {
	w := fresh(t, vendor)
	w.bmcs[0].Change(func(m *bmctest.Machine) { m.Password = "Nobody-Knows-1" })
	return w
}

// run is one more run of the program: it plans, and applies where the plan has the
// credential's step.
func (w *world) run() plan.Result {
	w.t.Helper()
	w.close()
	w.connect()
	_, r := w.rotate()
	return r
}

// refusedRun is one more run, whose logins are refused.
func (w *world) refusedRun() *plan.Fault {
	w.t.Helper()
	r := w.run()
	if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCCredential {
		w.t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
	}
	return r.Fault
}

// However often it is run, with all passwords wrong, no account is locked; and once
// all are refused nothing is tried until the family's window is over.
func TestRefusedRunsDoNotLock(t *testing.T) {
	for vendor, window := range remembering {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wrong(t, vendor)
				_ = w.refusedRun()
				tried := w.bmcs[0].FailedLogins()
				for range 3 {
					f := w.refusedRun()
					if vendor != bmctest.IDRAC && !strings.Contains(f.Summary, "not tried again before ") {
						t.Errorf("%s", faultText(f))
					}
				}
				if n := w.bmcs[0].FailedLogins(); vendor != bmctest.IDRAC && n != tried {
					t.Errorf("%d logins more", n-tried)
				}
				if w.locked() {
					t.Error("the account is locked")
				}
				time.Sleep(window)
				w.bmcs[0].Change(func(m *bmctest.Machine) { m.Password = storedPassword })
				if r := w.run(); r.Outcome != plan.OutcomeAlready {
					t.Errorf("after the window: %s %s", r.Outcome, faultText(r.Fault))
				}
				for key, left := range w.refusals {
					if len(left) > 0 {
						t.Errorf("a good login leaves %s %v", key, left)
					}
				}
				w.close()
			})
		})
	}
}

// locked asks with the right password, which a locked account refuses too.
func (w *world) locked() bool { return !w.bmcs[0].Accepts("root", "Nobody-Knows-1") }

// Three plans in quick succession cost the logins of the first.
func TestRefusedPlans(t *testing.T) {
	for vendor := range remembering {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wrong(t, vendor)
				w.build(w.read())
				tried := w.bmcs[0].FailedLogins()
				for range 3 {
					w.close()
					w.connect()
					w.build(w.read())
				}
				if n := w.bmcs[0].FailedLogins(); tried == 0 || n != tried || w.locked() {
					t.Errorf("%d refused logins, then %d; locked: %v", tried, n, w.locked())
				}
				w.close()
			})
		})
	}
}

// A secret that was changed is tried at once; one that has no version too, as long
// as one refusal more does not lock the account.
func TestRefusedSecretChanged(t *testing.T) {
	for vendor := range remembering {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wrong(t, vendor)
				w.vault.factory = ""
				_ = w.refusedRun()
				w.vault.stored, w.vault.writes = "Nobody-Knows-1", w.vault.writes+1
				if r := w.run(); r.Outcome != plan.OutcomeAlready {
					t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
				}
				w.vault.stored, w.vault.unversioned = storedPassword, true
				for range 6 {
					_ = w.refusedRun()
				}
				if f := w.refusedRun(); w.locked() || !strings.Contains(f.Summary, "could lock the account") {
					t.Errorf("locked: %v; %s", w.locked(), faultText(f))
				}
				w.close()
			})
		})
	}
}

// What the site says of lockouts counts, and another clock's future does not.
func TestRefusedSiteLockout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wrong(t, bmctest.XCC)
		w.vault.factory, w.vault.unversioned = "", true
		two := 2
		w.scope.Site.BMC.Security = &plan.SecuritySettings{LockoutAttempts: &two, LockoutDuration: 2 * time.Hour}
		_ = w.refusedRun()
		_ = w.refusedRun()
		if n := w.bmcs[0].FailedLogins(); n != 1 {
			t.Errorf("%d logins", n)
		}
		time.Sleep(90 * time.Minute)
		_ = w.refusedRun()
		if n := w.bmcs[0].FailedLogins(); n != 1 {
			t.Errorf("%d logins", n)
		}
		for key := range w.refusals {
			w.refusals[key][0].At = time.Now().Add(24 * time.Hour)
		}
		w.bmcs[0].Change(func(m *bmctest.Machine) { m.Password = storedPassword })
		if r := w.run(); r.Outcome != plan.OutcomeAlready {
			t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
		}
		w.close()
	})
}
