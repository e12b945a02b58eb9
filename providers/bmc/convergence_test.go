package bmc_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// freshMachine is one whose every setting differs from what its site wants.
func freshMachine(t *testing.T, vendor string) (*world, *clock) {
	t.Helper()
	w, c := biosWorld(t, vendor, biosCases[vendor].want, func(m *bmctest.Machine) { m.FirstNIC, m.StaticIP = 0, true })
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
			c.t = c.t.Add(r.After)
			memo = r.Memo
			continue
		case plan.OutcomeFailed:
			class := r.Fault.Class()
			if class != plan.ClassBusy && class != plan.ClassUnreachable || retries == 3 {
				return r.Fault
			}
			retries++
			c.t = c.t.Add(max(30*time.Second, r.Fault.After))
			continue
		}
		for range 3 {
			live := w.read().Get(s.Address)
			if live.Presence == plan.Present && plan.Satisfies(s.After, live.Value) {
				return nil
			}
		}
		return plan.NewFault(plan.CodeNotApplied, "%s", s.Address)
	}
	w.t.Fatalf("%s: never done", s.Address)
	return nil
}

// hits are what can go wrong at an exchange.
func hits() []exchange.Fault {
	body := injected(exchange.Status, 0).Body
	return []exchange.Fault{
		{Kind: exchange.Reset}, {Kind: exchange.Status, Status: 500, Body: body},
		{Kind: exchange.Status, Status: 503, Body: "<html>Service Unavailable</html>", Header: map[string]string{"Retry-After": "7"}},
		{Kind: exchange.Status, Status: http.StatusUnauthorized, Body: "{}"}, {Kind: exchange.LostReply},
		{Kind: exchange.Status, Status: http.StatusPreconditionFailed, Body: "{}"}, {Kind: exchange.Garbage}, {Kind: exchange.HalfBody},
	}
}

// The whole convergence of each family with one fault at an exchange: the run
// ends well or with a classified fault, its sessions are deleted, the next run
// brings the machine to its end, no account is locked, and the host was reset
// once in all.
func TestFaultsWhileConverging(t *testing.T) {
	t.Parallel()
	for _, vendor := range makers {
		w, c := freshMachine(t, vendor)
		if f := w.converge(c); f != nil {
			t.Fatalf("%s: %s", vendor, faultText(f))
		}
		w.close()
		total, resets := len(w.fleet.Recorder().Records()), w.bmcs[0].Resets()
		all := hits()
		// Every 11th exchange: 11 and 8 have no common divisor, so that each fault hits
		// everywhere.
		for at := 1; at <= total; at += 11 {
			hit := all[at%len(all)]
			hit.At = at
			t.Run(vendor+" "+strconv.Itoa(at)+" "+string(hit.Kind)+" "+strconv.Itoa(hit.Status), func(t *testing.T) {
				t.Parallel()
				convergeUnder(t, vendor, &hit, resets)
			})
		}
	}
}

func convergeUnder(t *testing.T, vendor string, hit *exchange.Fault, resets int) {
	t.Helper()
	w, c := freshMachine(t, vendor)
	w.fleet.Recorder().Inject(hit)
	if f := w.converge(c); f != nil {
		noSecret(t, "fault", faultText(f))
		if f.Class() == plan.ClassInternal || f.Code == plan.CodeNotApplied {
			t.Errorf("not classified: %s", faultText(f))
		}
	}
	_ = w.client.Close(t.Context()) // it says when a session may be left
	w.fleet.Recorder().Reset()
	c.t = c.t.Add(20 * time.Minute)
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
	b := w.bmcs[0]
	if b.Resets() > resets || b.FailedLogins() > 1 || !b.Accepts("root", password) {
		t.Errorf("%d resets and not %d, %d failed logins", b.Resets(), resets, b.FailedLogins())
	}
}
