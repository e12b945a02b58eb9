package bmc_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// freshMachine is one whose every setting differs from what its site wants.
func freshMachine(t *testing.T, c *clock, vendor string) (*world, *clock) {
	t.Helper()
	w, c := biosWorldAt(t, c, vendor, biosCases[vendor].want, func(m *bmctest.Machine) { m.FirstNIC, m.StaticIP = 0, true })
	demand(w)
	w.scope.Site.BMC.RestrictBoot = true
	w.connect()
	return w, c
}

// converge runs all steps of a fresh plan, one after the other, trying again what
// may pass as the interpreter does. It gives the fault that ended it.
func (w *world) converge(c *clock) *plan.Fault {
	w.t.Helper()
	p := w.build(w.read())
	for _, d := range p.Diagnostics {
		if d.Severity == plan.SeverityError {
			return d.Fault
		}
	}
	for _, s := range p.Steps {
		if s.Blocked != nil {
			continue
		}
		if f := w.visit(c, s); f != nil {
			return f
		}
	}
	return nil
}

func (w *world) visit(c *clock, s *plan.Step) *plan.Fault {
	w.t.Helper()
	var memo plan.Memo
	retries := 0
	for range 400 {
		if w.dead.Load() {
			return plan.NewFault(plan.CodeInterrupted, "the process is dead")
		}
		if memo == nil { // the guard
			live := w.read().Get(s.Address)
			if live.Presence == plan.Present && plan.Satisfies(s.After, live.Value) {
				return nil
			}
			if live.Presence == plan.Unsupported {
				return nil
			}
		}
		r := w.client.Run(w.t.Context(), w.scope, s, memo)
		switch r.Outcome { //nolint:exhaustive // done is looked at below
		case plan.OutcomeWait:
			c.pass(r.After)
			memo = r.Memo
			continue
		case plan.OutcomeFailed:
			class := r.Fault.Class()
			if class != plan.ClassBusy && class != plan.ClassUnreachable || retries == 3 {
				return r.Fault
			}
			retries++
			c.pass(max(30*time.Second, r.Fault.After))
			continue
		}
		var live plan.Live
		for range 3 {
			live = w.read().Get(s.Address)
			if live.Presence == plan.Present && plan.Satisfies(s.After, live.Value) {
				return nil
			}
		}
		if live.Fault != nil {
			return live.Fault
		}
		return plan.NewFault(plan.CodeNotApplied, "%s", s.Address)
	}
	w.t.Fatalf("%s: never done", s.Address)
	return nil
}

// newCertificate is a hit that is no fault of an exchange: somebody restarts the
// BMC, which makes itself a certificate.
const newCertificate exchange.Kind = "new certificate"

// hits are what can go wrong at an exchange.
func hits() []exchange.Fault {
	body := injected(exchange.Status, 0).Body
	return []exchange.Fault{
		{Kind: exchange.Reset}, {Kind: exchange.Stall}, {Kind: exchange.Status, Status: 500, Body: body},
		{Kind: exchange.Status, Status: 503, Body: "<html>Service Unavailable</html>", Header: map[string]string{"Retry-After": "7"}},
		{Kind: exchange.Status, Status: http.StatusUnauthorized, Body: "{}"}, {Kind: exchange.LostReply},
		{Kind: exchange.Status, Status: http.StatusPreconditionFailed, Body: "{}"}, {Kind: exchange.Garbage}, {Kind: exchange.HalfBody}, {Kind: newCertificate},
	}
}

// The whole convergence of each family with one fault at one exchange, any fault at
// any exchange: the run ends well or with a classified fault, its sessions are
// deleted, the next run brings the machine to its end, no account is locked, and
// the host was reset no more than it had to be.
func TestFaultsWhileConverging(t *testing.T) {
	t.Parallel()
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			total, resets := 0, 0
			synctest.Test(t, func(t *testing.T) {
				w, c := freshMachine(t, &clock{bubble: true}, vendor)
				if f := w.converge(c); f != nil {
					t.Fatal(faultText(f))
				}
				w.close()
				total, resets = len(w.fleet.Recorder().Records()), w.bmcs[0].Resets()
			})
			all := hits()
			for point := range sweep.Points(t, total*len(all), 199) { // 199 is prime: in time each hits everywhere
				hit := all[point%len(all)]
				hit.At = point/len(all) + 1
				t.Run(fmt.Sprintf("%d %s %d", hit.At, hit.Kind, hit.Status), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { convergeUnder(t, vendor, &hit, resets) })
				})
			}
		})
	}
}

// strike lets the hit happen.
func (w *world) strike(hit *exchange.Fault) {
	if hit.Kind != newCertificate {
		w.fleet.Recorder().Inject(hit)
		return
	}
	w.fleet.Recorder().Before(func(r exchange.Record) {
		if r.Seq != hit.At {
			return
		}
		w.bmcs[0].RenewCertificate()
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Reset, At: hit.At})
	})
}

func convergeUnder(t *testing.T, vendor string, hit *exchange.Fault, resets int) {
	t.Helper()
	w, c := freshMachine(t, &clock{bubble: true}, vendor)
	b := w.bmcs[0]
	w.strike(hit)
	f := w.converge(c)
	if f != nil {
		noSecret(t, "fault", faultText(f))
		// A Supermicro tells nothing of a boot, so also not that a reset never arrived: the
		// host is not reset once more on a guess, and what is not live is told.
		unknown := vendor == bmctest.Supermicro && w.didHit(hit, "ComputerSystem.Reset")
		if f.Class() == plan.ClassInternal || f.Code == plan.CodeNotApplied && !unknown {
			t.Errorf("not classified: %s", faultText(f))
		}
		if hit.Kind == newCertificate && f.Code != plan.CodeBMCTLS && f.Code != plan.CodeBMCUnreachable {
			t.Errorf("a certificate that nobody announced: %s", faultText(f))
		}
	}
	left := w.client.Close(t.Context())
	synctest.Wait()
	if n := b.Sessions(); n != 0 && left == nil {
		t.Errorf("%d sessions left, and Close does not say so", n)
	}
	if left != nil && hit.Kind != newCertificate && !w.hitLogin(hit) {
		t.Errorf("a session may be left after a hit that is none of a login or logout: %v", left)
	}
	w.fleet.Recorder().Before(nil)
	w.fleet.Recorder().Reset()
	c.pass(20 * time.Minute)
	b.EndSessions()                                   // those of which Close spoke
	w.scope.Site.BMC.Pins = []string{b.Fingerprint()} // somebody has looked at it
	w.connect()
	if f := w.converge(c); f != nil {
		t.Errorf("the next run: %s", faultText(f))
	}
	w.close()
	w.connect()
	if p := w.build(w.read()); len(p.Steps) != 0 || p.Devices[0].Verdict != plan.VerdictClean {
		t.Errorf("afterwards: %s %+v", steps(p), p.Diagnostics)
	}
	w.close()
	if b.Resets() > resets || b.FailedLogins() > 1 || !b.Accepts("root", password) {
		t.Errorf("%d resets and not %d, %d failed logins", b.Resets(), resets, b.FailedLogins())
	}
	if t.Failed() {
		t.Logf("the run under the hit: %s", faultText(f))
	}
}

// hitLogin tells that the hit was at a login or logout.
func (w *world) hitLogin(hit *exchange.Fault) bool {
	return w.didHit(hit, "/redfish/v1/SessionService")
}

func (w *world) didHit(hit *exchange.Fault, part string) bool {
	return w.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Seq == hit.At && strings.Contains(r.Path, part) }) > 0
}
