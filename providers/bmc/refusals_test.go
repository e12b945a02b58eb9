package bmc_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// memory is what outlives the runs of a world.
type memory map[string][]bmc.Refusal

func (m memory) Refused(address string) []bmc.Refusal { return slices.Clone(m[address]) }

func (m memory) Update(address string, change func([]bmc.Refusal) []bmc.Refusal) {
	m[address] = change(m.Refused(address))
}

func (m memory) Place(address string) string { return "/state/" + address }

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

// A refusal names the secret that the BMC was shown last, not always the stored one.
func TestARefusalNamesTheSecretThatWasTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wrong(t, bmctest.XCC)
		defer w.close()
		f := w.refusedRun()
		if f.Evidence["secret"] != (plan.SecretRef{Item: "bmc", Field: "factory"}).String() || f.Evidence["refused before"] == "" || !strings.Contains(f.Summary, f.Evidence["secret"]) {
			t.Errorf("%s %v", f.Summary, f.Evidence)
		}
	})
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

// What the site says of lockouts counts. A clock that was set back since, or was wrong,
// is no reason for another login; what it wrote counts from when that was seen.
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
		_ = w.refusedRun()
		if n := w.bmcs[0].FailedLogins(); n != 1 {
			t.Errorf("%d logins", n)
		}
		w.bmcs[0].Change(func(m *bmctest.Machine) { m.Password = storedPassword })
		time.Sleep(2*time.Hour + time.Second)
		if r := w.run(); r.Outcome != plan.OutcomeAlready {
			t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
		}
		w.close()
	})
}

// monitoredRuns is a world with a monitoring account whose password somebody else
// set, and what outlives its runs.
func monitoredRuns(t *testing.T, vendor string, change ...func(*bmctest.Machine)) *world {
	w := monitoredWorld(t, vendor, change...)
	w.bmcs[0].AddUser(monitorName, "Another-2-Password")
	w.refusals = memory{}
	w.connect()
	return w
}

// again is one more run of the program: a plan and, where it is wanted, its steps for
// the monitoring account.
func (w *world) again(apply bool) *plan.Fault {
	w.close()
	w.connect()
	if apply {
		return w.converged("ipmi_user")
	}
	if p := w.build(w.read()); stepOf(p, "ipmi_user") == nil {
		w.t.Errorf("no step: %+v", p.Diagnostics)
	}
	return nil
}

// refused counts what is remembered of the monitoring account.
func (w *world) refused() (n int) {
	for _, list := range w.refusals {
		for _, r := range list {
			if r.Account == monitorName {
				n += r.Count
			}
		}
	}
	return n
}

// Plans in a row try the monitoring account once. The password that a run then sets
// is tried at once, and what was remembered is gone.
func TestMonitorRefused(t *testing.T) {
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := monitoredRuns(t, vendor)
				for range 4 {
					_ = w.again(false)
					if n := w.refused(); n != 1 {
						t.Errorf("%d logins", n)
					}
				}
				if f := w.again(true); f != nil {
					t.Fatal(faultText(f))
				}
				w.hasMonitorPassword()
				if n := w.refused(); w.bmcs[0].Lockouts() > 0 || n > 0 && vendor != bmctest.IDRAC {
					t.Errorf("%d lockouts, %d are remembered", w.bmcs[0].Lockouts(), n)
				}
				w.close()
			})
		})
	}
}

func (w *world) hasMonitorPassword() {
	w.t.Helper()
	if _, _, _, secret := w.bmcs[0].User(monitorName); secret != monitorPassword {
		w.t.Error("the account has another password")
	}
}

// A BMC that takes the password and does not apply it: runs in a row end before the
// account is locked, and the fault names what to remove.
func TestMonitorPasswordIgnored(t *testing.T) {
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := monitoredRuns(t, vendor, func(m *bmctest.Machine) { m.Profile.PasswordIgnored = true })
				var last *plan.Fault
				for range 6 {
					if last = w.again(true); last == nil {
						t.Fatal("it was applied")
					}
				}
				if n := w.bmcs[0].Lockouts(); n > 0 {
					t.Errorf("%d lockouts", n)
				}
				if vendor != bmctest.IDRAC && (last.Code != plan.CodeBMCCredential || last.Evidence["remembered in"] != w.refusals.Place(w.bmcs[0].URL)) {
					t.Error(faultText(last)) // an iDRAC's window is over after a pause
				}
				w.close()
			})
		})
	}
}

// IPMI is not tried with what Redfish refuses; where it alone refuses, one suite is
// tried, and the login over Redfish before the next one begins the count anew.
func TestMonitorRefusedOverIPMI(t *testing.T) {
	for _, redfish := range []bool{false, true} {
		w := ipmiWorld(t, ipmiServer(t, types.CipherSuiteID17), "Wrong-2-Password")
		w.refusals = memory{}
		w.bmcs[0].AddUser(monitorName, map[bool]string{false: "Another-2-Password", true: "Wrong-2-Password"}[redfish])
		for range 4 {
			w.close()
			w.connect()
			check := w.read().Get(w.scope.Targets[0].Address("check", "ipmi", ""))
			if said := plan.Text(check.Value, "Login"); strings.Contains(said, "IPMI was not tried") == redfish {
				t.Errorf("%s %s", said, faultText(check.Fault))
			}
			if n := w.refused(); n != 1 {
				t.Errorf("%d logins", n)
			}
		}
		w.close()
	}
}
