package bmc_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// noSecret looks at everything a snapshot could print.
func noSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{password, `s3cret\"\u0026'\u003cpw`, `s3cret\"&'<pw`, "s3cret"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds the password: %s", where, text)
			return
		}
	}
}

var kinds = []exchange.Kind{exchange.Delay, exchange.Stall, exchange.Status, exchange.Reset, exchange.HalfBody, exchange.LostReply, exchange.Garbage}

func injected(kind exchange.Kind, at int) *exchange.Fault {
	return &exchange.Fault{
		Kind: kind, At: at, Delay: 20 * time.Millisecond, Status: http.StatusInternalServerError,
		// A BMC that echoes what it was sent must not bring it into a report.
		Body: `{"error":{"code":"Base.1.0.InternalError","message":"internal error at {\"Password\":\"s3cret\\\"&'<pw\"}"}}`,
	}
}

// exchanges is how many requests a piece of work needs, with login and logout.
func exchanges(t *testing.T, w *world, work func()) int {
	t.Helper()
	work()
	w.close()
	n := len(w.fleet.Recorder().Records())
	if n < 6 {
		t.Fatalf("only %d exchanges", n)
	}
	return n
}

// Every kind of fault at every exchange of a read: the value is right or the
// fault is classified, no session is left, no secret is told, and nothing but
// the login is sent that is not a GET.
func TestFaultsWhileReading(t *testing.T) {
	t.Parallel()
	for _, vendor := range makers {
		m := machine(vendor)
		m.FirstNIC = 1
		w := newWorld(t, m)
		total := exchanges(t, w, func() { w.read() })
		for _, kind := range kinds {
			t.Run(vendor+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				for at := 1; at <= total; at++ { // the last one is the logout
					t.Run(strconv.Itoa(at), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { readUnderFault(t, vendor, m, kind, at) })
					})
				}
			})
		}
	}
}

// closeUnder ends the client after a fault and wants no session left. A login that
// was not answered in time may still be served, which Close has to say.
func (w *world) closeUnder(kind exchange.Kind) {
	w.t.Helper()
	synctest.Wait() // the stalled request is recorded once the client gave up
	login := w.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Fault == string(exchange.Stall) && r.Method == http.MethodPost })
	if kind != exchange.Stall || login == 0 {
		w.close()
		return
	}
	if err := w.client.Close(context.Background()); err == nil || !strings.Contains(err.Error(), "may be left") {
		w.t.Errorf("Close after a login without an answer: %v", err)
	}
	if n := w.bmcs[0].Sessions(); n != 0 {
		w.t.Errorf("%d sessions left", n)
	}
}

func readUnderFault(t *testing.T, vendor string, m bmctest.Machine, kind exchange.Kind, at int) {
	t.Helper()
	w := newBubble(t, m)
	w.fleet.Recorder().Inject(injected(kind, at))
	snap := w.read()
	for a, live := range snap {
		checkLive(t, vendor, kind, at, a, live)
	}
	if len(snap) != 6 {
		t.Errorf("%d answers", len(snap))
	}
	w.closeUnder(kind)
	if n := mutating(w); n != 0 {
		t.Errorf("%d writes", n)
	}
	if t.Failed() {
		for _, r := range w.fleet.Recorder().Records() {
			t.Logf("%s %s %d %s", r.Method, r.Path, r.Status, r.Fault)
		}
	}
}

func checkLive(t *testing.T, vendor string, kind exchange.Kind, at int, a plan.Address, live plan.Live) {
	t.Helper()
	noSecret(t, a.String(), faultText(live.Fault))
	where := vendor + " " + string(kind) + " " + a.Local()
	switch live.Presence {
	case plan.Present:
		if live.Value.IsNull() {
			t.Errorf("%s at %d: present without a value", where, at)
		}
	case plan.Unsupported:
		if vendor != bmctest.Supermicro || a.Kind != "boot_order" { // which enroll does not keep
			t.Errorf("%s at %d: %s", where, at, faultText(live.Fault))
		}
	case plan.Unreadable, plan.Unreachable:
		if live.Fault == nil {
			t.Fatalf("%s at %d: no fault", where, at)
		}
		switch live.Fault.Code {
		case plan.CodeBMCUnreachable, plan.CodeBMCProtocol:
		default:
			t.Errorf("%s at %d: %s", where, at, faultText(live.Fault))
		}
		if kind == exchange.Delay {
			t.Errorf("%s at %d: a slow answer is an answer: %s", where, at, faultText(live.Fault))
		}
		if live.Presence == plan.Unreachable && at > 1 {
			t.Errorf("%s at %d: unreachable, though it had answered", where, at)
		}
	default:
		t.Errorf("%s at %d: %s %s", where, at, live.Presence, faultText(live.Fault))
	}
}

// The same while writing: a step is done or failed, what the BMC has afterwards
// is the old or the new value, and "done" is never said of the old one.
func TestFaultsWhileWriting(t *testing.T) {
	t.Parallel()
	for _, vendor := range makers {
		for index := range 2 {
			w := newWorld(t, machine(vendor))
			step := w.build(w.read()).Steps[index]
			w.close()
			w = newWorld(t, machine(vendor))
			total := exchanges(t, w, func() { w.apply(step) })
			writes := mutating(w)
			for _, kind := range kinds {
				t.Run(vendor+" "+step.Address.Kind+" "+string(kind), func(t *testing.T) {
					t.Parallel()
					for at := 1; at <= total; at++ {
						t.Run(strconv.Itoa(at), func(t *testing.T) {
							t.Parallel()
							synctest.Test(t, func(t *testing.T) { writeUnderFault(t, vendor, step, kind, at, writes) })
						})
					}
				})
			}
		}
	}
}

func writeUnderFault(t *testing.T, vendor string, step *plan.Step, kind exchange.Kind, at, writes int) {
	t.Helper()
	w := newBubble(t, machine(vendor))
	w.fleet.Recorder().Inject(injected(kind, at))
	r := w.apply(step)
	noSecret(t, "result", faultText(r.Fault))
	if r.Outcome != plan.OutcomeDone && (r.Outcome != plan.OutcomeFailed || (r.Fault.Code != plan.CodeBMCUnreachable && r.Fault.Code != plan.CodeBMCProtocol && r.Fault.Code != plan.CodeBMCBusy)) {
		t.Errorf("at %d: %s %s", at, r.Outcome, faultText(r.Fault))
	}
	w.closeUnder(kind)
	if n := mutating(w); n > writes {
		t.Errorf("at %d: %d writes, and %d are needed", at, n, writes)
	}
	w.fleet.Recorder().Reset()
	w.connect()
	live := w.read().Get(step.Address)
	if live.Presence != plan.Present {
		t.Errorf("at %d: afterwards %s %s", at, live.Presence, faultText(live.Fault))
	}
	changed := plan.Satisfies(step.After, live.Value)
	// A step of several writes may end between them.
	if r.Outcome == plan.OutcomeDone && !changed || !changed && writes == 1 && !plan.Satisfies(step.Before, live.Value) {
		t.Errorf("at %d: %s, and the BMC has %s", at, r.Outcome, plan.ToJSON(live.Value))
	}
	w.close()
}

func TestRefusedCredential(t *testing.T) {
	for _, vendor := range makers {
		for _, sessions := range []bool{true, false} {
			m := machine(vendor)
			m.Profile.NoSessions = !sessions
			w := newWorld(t, m)
			w.passwords["gpu-001"] = "wrong-" + password
			for range 3 {
				for a, live := range w.read() {
					if live.Presence != plan.Unreadable || live.Fault.Code != plan.CodeBMCCredential {
						t.Fatalf("%s: %s: %s %s", vendor, a, live.Presence, faultText(live.Fault))
					}
					if !strings.Contains(faultText(live.Fault), `secret("bmc-gpu-001", "password")`) {
						t.Errorf("the fault does not name the secret: %s", faultText(live.Fault))
					}
					noSecret(t, a.String(), faultText(live.Fault))
				}
			}
			if got := w.bmcs[0].FailedLogins(); got != 1 {
				t.Errorf("%s: %d logins tried", vendor, got)
			}
			w.close()
		}
	}
}

func TestLoginRefusals(t *testing.T) {
	for _, tc := range []struct {
		name    string
		vendor  string
		prepare func(w *world)
		want    plan.Code
	}{
		{"password change", bmctest.Generic, func(w *world) { w.profile(func(p *bmctest.Profile) { p.PasswordChange = true }) }, plan.CodeBMCPasswordChange},
		{"password change", bmctest.IDRAC, func(w *world) { w.profile(func(p *bmctest.Profile) { p.PasswordChange = true }) }, plan.CodeBMCPasswordChange},
		{"password change, Basic", bmctest.Generic, func(w *world) {
			w.profile(func(p *bmctest.Profile) { p.PasswordChange, p.NoSessions = true, true })
		}, plan.CodeBMCPasswordChange},
		{"session limit", bmctest.Generic, func(w *world) { w.profile(func(p *bmctest.Profile) { p.MaxSessions = -1 }) }, plan.CodeBMCSessionLimit},
		{"session limit", bmctest.IDRAC, func(w *world) { w.profile(func(p *bmctest.Profile) { p.MaxSessions = -1 }) }, plan.CodeBMCSessionLimit},
		{"busy", bmctest.Generic, func(w *world) { w.profile(func(p *bmctest.Profile) { p.Busy = 1 }) }, plan.CodeBMCBusy},
		{"busy", bmctest.IDRAC, func(w *world) { w.profile(func(p *bmctest.Profile) { p.Busy = 1 }) }, plan.CodeBMCBusy},
		{"locked", bmctest.Generic, func(w *world) {
			w.profile(func(p *bmctest.Profile) { p.TellLockout, p.LockAfter = true, 1 })
			w.passwords["gpu-001"] = "wrong"
		}, plan.CodeBMCLocked},
		{"another machine", bmctest.Generic, func(w *world) { w.scope.Targets[0].Intent.Serial = "SVC0002" }, plan.CodeBMCIdentity},
		{"another machine", bmctest.IDRAC, func(w *world) { w.scope.Targets[0].Intent.Serial = "SVC0002" }, plan.CodeBMCIdentity},
		{"no such system", bmctest.Generic, func(w *world) { w.scope.Targets[0].Intent.Ironic.RedfishAddress += "/redfish/v1/Systems/9" }, plan.CodeIntentInvalid},
	} {
		t.Run(tc.vendor+" "+tc.name, func(t *testing.T) {
			w := newWorld(t, machine(tc.vendor))
			tc.prepare(w)
			for a, live := range w.read() {
				if live.Presence != plan.Unreadable || live.Fault.Code != tc.want {
					t.Errorf("%s: %s %s", a, live.Presence, faultText(live.Fault))
				}
				noSecret(t, a.String(), faultText(live.Fault))
			}
			if n := mutating(w); n != 0 {
				t.Errorf("%d writes", n)
			}
			w.close()
		})
	}
}

// profile changes the behaviour of the first BMC.
func (w *world) profile(change func(*bmctest.Profile)) {
	w.bmcs[0].Change(func(m *bmctest.Machine) { change(&m.Profile) })
}

func TestServiceTag(t *testing.T) {
	m := machine(bmctest.IDRAC)
	m.Serial, m.ServiceTag = "CNFCP0000000001", "SVCTAG1"
	w := newWorld(t, m)
	for serial, want := range map[string]plan.Presence{"SVCTAG1": plan.Present, "svctag1": plan.Present, "CNFCP0000000001": plan.Present, "SVCTAG2": plan.Unreadable, "": plan.Present} {
		w.scope.Targets[0].Intent.Serial = serial
		w.connect()
		if live := w.live(w.read(), "credential"); live.Presence != want {
			t.Errorf("%q: %s %s", serial, live.Presence, faultText(live.Fault))
		}
		w.close()
	}
}

func TestCertificate(t *testing.T) {
	w := newWorld(t, machine(bmctest.Generic))
	other := bmctest.New(bmctest.Options{})
	defer other.Close()
	file := filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(file, other.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	right := w.scope.Site.BMC.CAFile
	w.scope.Site.BMC.CAFile = file
	w.connect()
	live := w.live(w.read(), "credential")
	if live.Presence != plan.Unreadable || live.Fault.Code != plan.CodeBMCTLS {
		t.Errorf("%s %s", live.Presence, faultText(live.Fault))
	}
	if n := len(w.fleet.Recorder().Records()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
	w.close()
	w.scope.Site.BMC.Insecure = true
	w.connect()
	if live := w.live(w.read(), "credential"); live.Presence != plan.Present {
		t.Errorf("insecure: %s %s", live.Presence, faultText(live.Fault))
	}
	w.close()
	w.scope.Site.BMC.Insecure, w.scope.Site.BMC.CAFile = false, right
}

func TestExpiredSession(t *testing.T) {
	w := newWorld(t, machine(bmctest.Generic))
	p := w.build(w.read())
	w.bmcs[0].EndSessions()
	if live := w.live(w.read(), "ntp"); live.Presence != plan.Present {
		t.Errorf("reading: %s %s", live.Presence, faultText(live.Fault))
	}
	w.bmcs[0].EndSessions()
	if r := w.apply(p.Steps[0]); r.Outcome != plan.OutcomeDone {
		t.Errorf("writing: %s", faultText(r.Fault))
	}
	logins := w.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Method == http.MethodPost })
	if logins != 3 {
		t.Errorf("%d logins", logins)
	}
	w.bmcs[0].EndSessions()
	w.close()
}

// A machine that was swapped while the session was open is noticed before
// anything is written to it.
func TestSwappedMachine(t *testing.T) {
	w := newWorld(t, machine(bmctest.Generic))
	p := w.build(w.read())
	w.bmcs[0].EndSessions()
	w.bmcs[0].Change(func(m *bmctest.Machine) { m.Serial = "SVC9999" })
	r := w.apply(p.Steps[0])
	if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCIdentity || mutating(w) != 0 {
		t.Errorf("%s %s, %d writes", r.Outcome, faultText(r.Fault), mutating(w))
	}
	w.close()
}

// So is one where there are no sessions, and every request is as good to it.
func TestSwappedMachineWithoutSessions(t *testing.T) {
	w, s := newWorld(t), plainBMC()
	s.change = func(rw http.ResponseWriter, _ *http.Request, _ map[string]any) { rw.WriteHeader(http.StatusNoContent) }
	s.serve(t, w)
	if live := w.live(w.read(), "credential"); live.Presence != plan.Present {
		t.Fatal(faultText(live.Fault))
	}
	s.resources["/redfish/v1/Systems/1"] = strings.Replace(s.resources["/redfish/v1/Systems/1"], "S1", "S2", 1)
	if r := w.apply(hostnameStep(w)); r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCIdentity || len(s.changes) != 0 {
		t.Errorf("%s %s %v", r.Outcome, faultText(r.Fault), s.changes)
	}
}

// Somebody else's change between reading and writing is noticed by the ETag.
func TestChangedUnderneath(t *testing.T) {
	for _, vendor := range makers {
		w := newWorld(t, machine(vendor))
		p := w.build(w.read())
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodPatch, Times: 1, Status: http.StatusPreconditionFailed, Body: "{}"})
		if r := w.apply(p.Steps[0]); r.Outcome != plan.OutcomeDone || mutating(w) != 2 {
			t.Errorf("%s: a 412 with the same value: %s %s", vendor, r.Outcome, faultText(r.Fault))
		}
		w.close()
	}
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBubble(t, machine(bmctest.Generic))
		w.read()
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: http.MethodGet, Path: "/redfish/v1/Managers"})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		p := w.client.Read(ctx, w.scope, resources(w))
		for a, live := range p {
			if a.Kind == "ntp" && (live.Presence != plan.Unreadable || live.Fault.Code != plan.CodeInterrupted) {
				t.Errorf("%s: %s %s", a, live.Presence, faultText(live.Fault))
			}
		}
		if err := w.client.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := w.bmcs[0].Sessions(); n != 0 {
			t.Errorf("%d sessions left", n)
		}
	})
}

// A run that is cancelled while it logs in leaves no session either.
func TestCancelledLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBubble(t, machine(bmctest.Generic))
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Delay, Method: http.MethodPost, Delay: 200 * time.Millisecond})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		for a, live := range w.client.Read(ctx, w.scope, resources(w)) {
			if live.Presence != plan.Unreadable || live.Fault.Code != plan.CodeInterrupted {
				t.Errorf("%s: %s %s", a, live.Presence, faultText(live.Fault))
			}
		}
		w.close()
	})
}

// Logins without an answer are not repeated without end: they may all have been
// refused.
func TestUnansweredLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBubble(t, machine(bmctest.Generic))
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Reset, Method: http.MethodPost})
		for range 6 {
			if live := w.live(w.read(), "credential"); live.Fault == nil || live.Fault.Code != plan.CodeBMCUnreachable {
				t.Fatalf("%s %s", live.Presence, faultText(live.Fault))
			}
		}
		if err := w.client.Close(context.Background()); err == nil {
			t.Error("Close does not say that a session may be left")
		}
		synctest.Wait() // a cut connection is recorded after the client saw it
		if n := w.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Method == http.MethodPost }); n != 2 {
			t.Errorf("%d logins", n)
		}
	})
}

// A login that was not answered in time and that the BMC serves later is found, or
// Close says that it may be left: when it comes while the next login waits, between
// that and the end, and after the end.
func TestLateLogin(t *testing.T) {
	for name, tc := range map[string]struct {
		late  time.Duration // beyond the time-out
		pause time.Duration // until the next login
		works time.Duration // how long the run goes on after that
		told  bool
	}{
		"before the next login": {time.Second, 2 * time.Second, 0, false},
		"during the run":        {10 * time.Second, time.Second, time.Minute, false},
		"after the run":         {10 * time.Second, time.Second, 0, true},
		"never, the run ends":   {time.Hour, time.Second, 0, true},
		"never, a long run":     {time.Hour, time.Second, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newBubble(t, machine(bmctest.Generic))
				w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Late, Method: http.MethodPost, Times: 1, Delay: w.scope.Site.BMC.Timeout + tc.late})
				if live := w.live(w.read(), "credential"); live.Fault == nil || live.Fault.Code != plan.CodeBMCUnreachable {
					t.Errorf("%s %s", live.Presence, faultText(live.Fault))
				}
				time.Sleep(tc.pause)
				if live := w.live(w.read(), "credential"); live.Presence != plan.Present {
					t.Errorf("%s %s", live.Presence, faultText(live.Fault))
				}
				time.Sleep(tc.works)
				if err := w.client.Close(context.Background()); (err != nil) != tc.told {
					t.Errorf("Close: %v", err)
				}
				if n := w.bmcs[0].Sessions(); n != 0 {
					t.Errorf("%d sessions left", n)
				}
				time.Sleep(time.Hour) // the late ones are served
			})
		})
	}
}

// Sessions of other people with the same account are left alone.
func TestForeignSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(bmctest.Generic)
		w := newBubble(t, m)
		w.read() // stands for Ironic: a session of the same account
		ironic := w.client
		time.Sleep(3100 * time.Millisecond) // older than the window of times in whole seconds
		w.connect()
		w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.LostReply, Method: http.MethodPost, Times: 1})
		w.read()
		if n := w.bmcs[0].Sessions(); n != 2 {
			t.Fatalf("%d sessions, want the foreign one and the lost one", n)
		}
		if err := w.client.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := w.bmcs[0].Sessions(); n != 1 {
			t.Errorf("%d sessions, want the foreign one", n)
		}
		if err := ironic.Close(context.Background()); err != nil {
			t.Error(err)
		}
		w.close()
	})
}

// Every refusal at every exchange of a read leaves no session and tells no
// secret, and is never taken for a value.
func TestRefusalsWhileReading(t *testing.T) {
	t.Parallel()
	m := machine(bmctest.Generic)
	w := newWorld(t, m)
	total := exchanges(t, w, func() { w.read() })
	for _, status := range []int{302, 401, 403, 404, 429, 503} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			for at := 1; at < total; at++ {
				w := newWorld(t, m)
				w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, At: at, Status: status, Body: injected(exchange.Status, at).Body})
				for a, live := range w.read() {
					noSecret(t, a.String(), faultText(live.Fault))
					if (live.Presence == plan.Present) == (live.Fault != nil) {
						t.Errorf("at %d: %s: %s %s", at, a, live.Presence, faultText(live.Fault))
					}
				}
				w.close()
				if n := w.bmcs[0].FailedLogins(); n != 0 || mutating(w) != 0 {
					t.Errorf("at %d: %d failed logins, %d writes", at, n, mutating(w))
				}
			}
		})
	}
}

// A BMC that denies a live session loses it before the next one is opened.
func TestDeniedSession(t *testing.T) {
	w := newWorld(t, machine(bmctest.Generic))
	w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodGet, Path: "/redfish/v1/Managers", Times: 1, Status: http.StatusUnauthorized})
	if live := w.live(w.read(), "ntp"); live.Presence != plan.Present {
		t.Errorf("%s %s", live.Presence, faultText(live.Fault))
	}
	if n := w.bmcs[0].Sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
	w.close()
}
