package dhcp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// verdicts writes findings as lines: what, then the fault's code or "ok".
func verdicts(findings []providers.Finding) string {
	var lines []string
	for _, f := range findings {
		what, _, _ := strings.Cut(strings.TrimPrefix(f.What, "DHCP: "), " ")
		verdict := "ok"
		if f.Fault != nil {
			verdict = string(f.Fault.Code)
		} else if strings.Contains(f.Note, "cannot be read") {
			verdict = "note"
		}
		lines = append(lines, what+" "+verdict)
	}
	return strings.Join(lines, ", ")
}

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		set  dhcptest.Behaviour
		want string
	}{
		"all is well":  {dhcptest.Behaviour{}, "login ok, write ok, service ok, configuration ok, reload ok, log ok, lock ok"},
		"no sudo rule": {dhcptest.Behaviour{NoSudo: true}, "login ok, write ok, service ok, configuration ok, reload DHCP_COMMAND_FAILED, log ok, lock ok"},
		"no journal":   {dhcptest.Behaviour{NoJournal: true}, "login ok, write ok, service ok, configuration ok, reload ok, log note, lock ok"},
		"no systemd":   {dhcptest.Behaviour{NoSystemd: true}, "login ok, write ok, service DHCP_COMMAND_FAILED, configuration ok, reload ok, log ok, lock ok"},
		"no login":     {dhcptest.Behaviour{NoLogin: true}, "login DHCP_LOGIN_REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{})
			b.srv.Set(func(now *dhcptest.Behaviour) { *now = c.set })
			if got := verdicts(b.p.Probe(context.Background(), nil)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if n := b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Mutating }); n > 0 {
				t.Errorf("%d mutating requests", n)
			}
		})
	}
}

// TestBreakLock: who looked at a lock breaks the one that it saw, and no other.
func TestBreakLock(t *testing.T) {
	b := newBench(t, dhcptest.Options{})
	lock := func(token string) {
		b.srv.PutOld(at(".enroll-lock"), `{"owner":"anna","host":"ops1","pid":7,"since":"2026-01-05T08:00:00Z","lease":"5m0s","token":"`+token+`"}`+"\n", b.clock.now().Add(-90*time.Second))
	}
	holder := func() (dhcp.Holder, bool) {
		t.Helper()
		h, held, f := b.p.LockHolder(context.Background())
		if f != nil {
			t.Fatal(f)
		}
		return h, held
	}
	if h, held := holder(); held {
		t.Errorf("held by %s", h)
	}
	lock("aa")
	seen, held := holder()
	if age := seen.Age.Round(time.Second); !held || seen.Owner != "anna" || seen.PID != 7 || age != 90*time.Second {
		t.Errorf("%+v, %v", seen, held)
	}
	for _, f := range b.p.Probe(context.Background(), nil) {
		if strings.Contains(f.What, "lock") && !strings.Contains(f.Note, "anna@ops1") {
			t.Errorf("the probe says %q", f.Note)
		}
	}
	lock("bb")
	b.wantFault(b.p.BreakLock(context.Background(), seen), plan.CodeDHCPLockHeld, "another holder")
	if seen, held = holder(); !held {
		t.Fatal("another one's lock was broken")
	}
	for range 2 { // the second finds none
		if f := b.p.BreakLock(context.Background(), seen); f != nil {
			t.Error(f)
		}
	}
	if _, held = holder(); held {
		t.Error("the lock is still there")
	}
	b.srv.PutOld(at(".enroll-lock"), "not ours\n", b.clock.now())
	if h, held := holder(); !held || h.Owner != "not ours" {
		t.Errorf("%+v, %v", h, held)
	}
}
