package bmc_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// restarting is what outlives the runs of a world.
type restarting map[string]bmc.Restart

func (r restarting) Restart(device string) bmc.Restart { return r[device] }

func (r restarting) Keep(device string, now bmc.Restart) {
	r[device] = now
	if !now.Due() {
		delete(r, device)
	}
}

// renewed is a BMC with its factory password and a site that wants nothing of it but
// the host's one, with what outlives runs.
func renewed(t *testing.T, vendor string, change ...func(*bmctest.Machine)) *world {
	t.Helper()
	w := fresh(t, vendor, append(change, func(m *bmctest.Machine) {
		m.Profile.RestartTime, m.Profile.WarmupTime = 2*time.Minute, time.Minute
	})...)
	w.restarts = restarting{}
	w.connect()
	return w
}

// renew is one run: a plan, and its steps for password and restart. It gives those
// steps and the first fault.
func (w *world) renew() (found []*plan.Step, fault *plan.Fault) {
	w.t.Helper()
	p := w.build(w.read())
	for _, kind := range []string{"credential", "reset"} {
		s := stepOf(p, kind)
		if s == nil {
			continue
		}
		found = append(found, s)
		if live := w.live(w.read(), kind); live.Presence == plan.Present && plan.Satisfies(s.After, live.Value) {
			continue // as the interpreter does
		}
		var memo plan.Memo
		for range 100 {
			r := w.client.Run(context.Background(), w.scope, s, memo)
			if memo = r.Memo; r.Outcome == plan.OutcomeFailed {
				return found, r.Fault
			}
			if r.Outcome != plan.OutcomeWait {
				break
			}
			time.Sleep(r.After)
		}
		if live := w.live(w.read(), kind); !plan.Satisfies(s.After, live.Value) {
			return found, plan.NewFault(plan.CodeNotApplied, "%s: %s %s", s.Address, live.Presence, faultText(live.Fault))
		}
	}
	for _, d := range p.Diagnostics {
		if d.Fault != nil && d.Severity == plan.SeverityError {
			return found, d.Fault
		}
	}
	return found, nil
}

// A process is killed at any exchange from the first look at a new BMC until it has
// restarted with its new password: nothing of it arrives any more, neither at the
// BMC nor in what outlives it. The next run restarts the BMC if that has not been
// done, and the run after that finds nothing to do.
func TestKilledBeforeTheRestart(t *testing.T) {
	for _, vendor := range rotating {
		for name, prepare := range map[string]func(*world){
			"staged":    func(*world) {},
			"only read": func(w *world) { w.vault.readOnly = true },
		} {
			total, wanted := 0, 0
			synctest.Test(t, func(t *testing.T) {
				w := renewed(t, vendor)
				prepare(w)
				if _, fault := w.renew(); fault != nil {
					t.Fatal(faultText(fault))
				}
				w.close()
				total, wanted = len(w.fleet.Recorder().Records()), w.bmcs[0].Restarts()
			})
			if (wanted == 1) != (vendor != bmctest.Generic) {
				t.Fatalf("%s: %d restarts", vendor, wanted)
			}
			t.Run(vendor+" "+name, func(t *testing.T) {
				for point := range sweep.Points(t, 2*total, 31) {
					at, after := point/2+1, point%2 == 1
					t.Run(fmt.Sprintf("%d %v", at, after), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							w := renewed(t, vendor)
							prepare(w)
							killedAt(w, at, after, wanted)
						})
					})
				}
			})
		}
	}
}

func killedAt(w *world, at int, after bool, wanted int) {
	t, recorder := w.t, w.fleet.Recorder()
	t.Helper()
	var hit exchange.Record
	left := struct {
		restarts restarting
		refusals memory
		vault    testVault
	}{}
	recorder.Before(func(r exchange.Record) {
		if r.Seq != at {
			return
		}
		hit = r
		left.restarts, left.refusals, left.vault = maps.Clone(w.restarts), maps.Clone(w.refusals), *w.vault
		if after {
			recorder.Inject(&exchange.Fault{Kind: exchange.LostReply, At: at})
		}
		recorder.Inject(&exchange.Fault{Kind: exchange.Reset, From: at})
	})
	_, _ = w.renew()
	_ = w.client.Close(context.Background())
	recorder.Before(nil)
	recorder.Reset()
	w.restarts, w.refusals, *w.vault = left.restarts, left.refusals, left.vault
	time.Sleep(40 * time.Minute) // the dead one's session ends by itself
	w.connect()
	if found, fault := w.renew(); fault != nil {
		t.Fatalf("killed at %s %s; the next run: %v %s", hit.Method, hit.Path, found, faultText(fault))
	}
	again := after && strings.HasSuffix(hit.Path, "Manager.Reset") // nobody heard that the BMC agreed
	if n := w.bmcs[0].Restarts(); n != wanted && (!again || n != wanted+1) {
		t.Errorf("killed at %s %s: %d restarts", hit.Method, hit.Path, n)
	}
	w.close()
	w.connect()
	if found, fault := w.renew(); len(found) > 0 || fault != nil || len(w.restarts) > 0 {
		t.Errorf("killed at %s %s; the last run: %v %s, left %v", hit.Method, hit.Path, found, faultText(fault), w.restarts)
	}
	w.close()
}

// The plan says why a BMC is restarted that an earlier run left so; one that was
// told to is waited for only, unless the operator wants another restart.
func TestARestartThatIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, forced bool
		reason        plan.Reason
		restarts      int
	}{
		"not asked for":         {false, false, plan.ReasonPending, 1},
		"asked for":             {true, false, plan.ReasonPending, 0},
		"asked for, and forced": {true, true, plan.ReasonForced, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := renewed(t, bmctest.XCC)
				w.bmcs[0].Change(func(m *bmctest.Machine) { m.Password = storedPassword })
				w.scope.Parameters.ForceBMCRestart = tc.forced
				due := bmc.Restart{Since: time.Now()}
				if tc.asked {
					due.Asked = time.Now()
				}
				w.restarts.Keep(w.scope.Targets[0].Name(), due)
				p := w.build(w.read())
				s := stepOf(p, "reset")
				if s == nil || s.Reason != tc.reason || s.Effects[0] != plan.EffectBMCReset {
					t.Fatalf("%s", steps(p))
				}
				if !tc.forced && !strings.Contains(s.Because[0], due.Since.UTC().Format("2006-01-02T15:04")) {
					t.Error(s.Because)
				}
				if _, fault := w.renew(); fault != nil || w.bmcs[0].Restarts() != tc.restarts || len(w.restarts) > 0 {
					t.Errorf("%s, %d restarts, left %v", faultText(fault), w.bmcs[0].Restarts(), w.restarts)
				}
				w.close()
			})
		})
	}
}

// A password that the BMC refused was not changed: nothing is due.
func TestNoRestartAfterARefusedPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := renewed(t, bmctest.AMI)
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: "PATCH", Status: 400, Body: "{}"})
		if _, fault := w.renew(); fault == nil || fault.Code != plan.CodeBMCRefused || len(w.restarts) > 0 {
			t.Errorf("%s %v", faultText(fault), w.restarts)
		}
		w.close()
	})
}
