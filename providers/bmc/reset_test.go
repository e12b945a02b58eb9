package bmc_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// forced is a world whose operator wants BMCs restarted.
func forced(t *testing.T, vendor string, change ...func(*bmctest.Machine)) (*world, *clock, *plan.Plan) {
	t.Helper()
	w, c := biosWorld(t, vendor, nil, append(change, func(m *bmctest.Machine) {
		m.Profile.RestartTime, m.Profile.WarmupTime = 2*time.Minute, time.Minute
	})...)
	w.scope.Site.BMC.BIOS = nil
	w.scope.Parameters.ForceBMCRestart = true
	return w, c, w.build(w.read())
}

// A restart is asked for once, waited for until the BMC is ready twice, and no
// login fails on the way.
func TestReset(t *testing.T) {
	for _, vendor := range makers {
		w, c, p := forced(t, vendor)
		step := stepOf(p, "reset")
		if step == nil || step.Reason != plan.ReasonForced || !slices.Contains(step.Effects, plan.EffectBMCReset) {
			t.Fatalf("%s: %s %+v", vendor, steps(p), p.Diagnostics)
		}
		for _, s := range p.Steps { // everything that is set comes after it
			if s.Address.System == "bmc" && s != step && s.Action.Mutates() && s.Address.Kind != "security" && !slices.Contains(s.Needs, step.ID) {
				t.Errorf("%s: %s does not wait for the restart", vendor, s.Address)
			}
		}
		started := c.t
		if r := w.until(c, step); r.Outcome != plan.OutcomeDone || w.bmcs[0].Restarts() != 1 || w.bmcs[0].Resets() != 0 {
			t.Errorf("%s: %s %s, %d restarts, %d resets of the host", vendor, r.Outcome, faultText(r.Fault), w.bmcs[0].Restarts(), w.bmcs[0].Resets())
		}
		if took := c.t.Sub(started); took < 3*time.Minute {
			t.Errorf("%s: ready after %s, and it starts for 3 minutes", vendor, took)
		}
		if live := w.client.Read(context.Background(), w.scope, []plan.Resource{{Address: step.Address, Want: step.After}}).Get(step.Address); !plan.Satisfies(step.After, live.Value) {
			t.Errorf("%s: read back %s %s", vendor, live.Presence, faultText(live.Fault))
		}
		if n := w.bmcs[0].FailedLogins(); n != 0 {
			t.Errorf("%s: %d logins failed", vendor, n)
		}
		w.close()
	}
}

// A BMC whose root answers and that takes no settings yet is not ready; one that
// refuses a login while it starts is not asked quickly again.
func TestResetReadiness(t *testing.T) {
	t.Run("Lifecycle Controller", func(t *testing.T) {
		w, c, p := forced(t, bmctest.IDRAC, func(m *bmctest.Machine) { m.Profile.LCPolls = 5 })
		started := c.t
		if r := w.until(c, stepOf(p, "reset")); r.Outcome != plan.OutcomeDone || c.t.Sub(started) < 4*time.Minute {
			t.Errorf("%s %s after %s", r.Outcome, faultText(r.Fault), c.t.Sub(started))
		}
		w.close()
	})
	t.Run("a 401 while it starts", func(t *testing.T) {
		w, c, p := forced(t, bmctest.Generic)
		r := w.client.Run(t.Context(), w.scope, stepOf(p, "reset"), nil)
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodPost, Path: "/redfish/v1/SessionService", Times: 1, Status: http.StatusUnauthorized, Body: "{}"})
		c.t = c.t.Add(3 * time.Minute)
		for range 40 {
			if r.Outcome != plan.OutcomeWait {
				break
			}
			c.t = c.t.Add(r.After)
			r = w.client.Run(t.Context(), w.scope, stepOf(p, "reset"), r.Memo)
		}
		if r.Outcome != plan.OutcomeDone {
			t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
		}
		w.close()
	})
	t.Run("a password that is wrong from now on", func(t *testing.T) {
		w, c, p := forced(t, bmctest.IDRAC)
		r := w.client.Run(t.Context(), w.scope, stepOf(p, "reset"), nil)
		w.bmcs[0].Change(func(m *bmctest.Machine) { m.Password = "another" })
		for range 60 {
			if r.Outcome != plan.OutcomeWait {
				break
			}
			c.t = c.t.Add(r.After)
			r = w.client.Run(t.Context(), w.scope, stepOf(p, "reset"), r.Memo)
		}
		if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCCredential {
			t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
		}
		if !w.bmcs[0].Accepts("root", "another") {
			t.Error("the BMC is blocked")
		}
	})
	t.Run("another machine comes back", func(t *testing.T) {
		w, c, p := forced(t, bmctest.Generic)
		r := w.client.Run(t.Context(), w.scope, stepOf(p, "reset"), nil)
		w.bmcs[0].Change(func(m *bmctest.Machine) { m.Serial = "OTHER" })
		for range 40 {
			if r.Outcome != plan.OutcomeWait {
				break
			}
			c.t = c.t.Add(r.After)
			r = w.client.Run(t.Context(), w.scope, stepOf(p, "reset"), r.Memo)
		}
		if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCIdentity {
			t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
		}
		w.close()
	})
	t.Run("not asked for", func(t *testing.T) {
		w := newWorld(t, machine(bmctest.Generic))
		if p := w.build(w.read()); strings.Contains(steps(p), "bmc.reset") {
			t.Error(steps(p))
		}
		w.close()
	})
}
