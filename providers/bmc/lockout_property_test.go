package bmc_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
)

// lockable is a BMC, what a site's vault has for it, and what people do. Nothing of
// it is sure to fit.
type lockable struct {
	vendor                        string
	has, stored, staged, factory  string // "": none
	versioned, readOnly, demanded bool
	noSessions                    bool
	attempts                      int // what the site allows; 0: says nothing
	monitor                       string
	ignored                       bool // the BMC takes passwords and goes on as before
	acts                          []act
}

type act struct {
	what  string
	pause time.Duration // before it
	to    string        // the password that is stored
}

func drawLockable(t *rapid.T) lockable {
	passwords := []string{"First-2-Password", "Second-2-Password", "Third-2-Password", "Fourth-2-Password"}
	one := rapid.SampledFrom(passwords)
	maybe := rapid.SampledFrom(append([]string{""}, passwords...))
	l := lockable{
		vendor: rapid.SampledFrom(makers).Draw(t, "vendor"), has: one.Draw(t, "has"), stored: one.Draw(t, "stored"), staged: maybe.Draw(t, "staged"), factory: maybe.Draw(t, "factory"),
		versioned: rapid.Bool().Draw(t, "versioned"), readOnly: rapid.Bool().Draw(t, "read only"), demanded: rapid.IntRange(0, 4).Draw(t, "demanded") == 0,
		noSessions: rapid.IntRange(0, 4).Draw(t, "no sessions") == 0, attempts: rapid.SampledFrom([]int{0, 0, 2, 3, 4}).Draw(t, "attempts"),
		monitor: rapid.SampledFrom([]string{"", "missing", "right", "wrong"}).Draw(t, "monitor"), ignored: rapid.IntRange(0, 3).Draw(t, "ignored") == 0,
	}
	l.acts = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		return act{
			what: rapid.SampledFrom([]string{"plan", "plan", "apply", "apply", "store"}).Draw(t, "what"), to: one.Draw(t, "to"),
			pause: rapid.SampledFrom([]time.Duration{0, time.Second, 20 * time.Second, 61 * time.Second, 5 * time.Minute, 11 * time.Minute, 61 * time.Minute}).Draw(t, "pause"),
		}
	}), 1, 10).Draw(t, "acts")
	return l
}

// lockedBy does all of it, each run with nothing but what the ones before left, and
// gives the act that shut an account or the address out; "" when none did.
func (l lockable) lockedBy(t *testing.T) string {
	m := machine(l.vendor)
	m.Password, m.Profile.PasswordChange, m.Profile.NoSessions, m.Profile.PasswordIgnored, m.Profile.LockAfter = l.has, l.demanded, l.noSessions, l.ignored, l.attempts
	w := newBubble(t, m)
	w.vault = &testVault{stored: l.stored, staged: l.staged, factory: l.factory, readOnly: l.readOnly, unversioned: !l.versioned}
	w.refusals, w.restarts = memory{}, restarting{}
	if l.attempts > 0 {
		w.scope.Site.BMC.Security = &plan.SecuritySettings{LockoutAttempts: &l.attempts}
	}
	if l.monitor != "" {
		w.monitor(monitorName, monitorPassword)
		if l.monitor != "missing" {
			w.bmcs[0].AddUser(monitorName, map[string]string{"right": monitorPassword, "wrong": "Another-2-Password"}[l.monitor])
		}
	}
	for i, a := range l.acts {
		time.Sleep(a.pause)
		_ = w.client.Close(context.Background())
		w.connect()
		switch a.what {
		case "plan":
			w.build(w.read())
		case "apply":
			_ = w.converged("credential", "reset", "ipmi_user", "ipmi_lan")
		case "store":
			w.vault.stored, w.vault.writes = a.to, w.vault.writes+1
		}
		if n := w.bmcs[0].Lockouts(); n > 0 {
			return fmt.Sprintf("act %d, %s: %d lockouts; remembered %+v", i, a.what, n, w.refusals)
		}
	}
	_ = w.client.Close(context.Background())
	return ""
}

// Whatever the vault has and the BMC wants, and however often people plan and apply
// in whatever intervals: no account is locked, and no address is blocked.
func TestNoRunsLockAnAccount(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := drawLockable(r)
		locked := ""
		synctest.Test(t, func(t *testing.T) { locked = l.lockedBy(t) })
		if locked != "" {
			r.Fatal(locked)
		}
	})
}
