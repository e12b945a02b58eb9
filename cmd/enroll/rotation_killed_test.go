package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// delivered is an estate with one machine as the factory delivers it.
func delivered(t *testing.T, f family) *estate {
	t.Helper()
	e := newEstate(t, 1, f)
	s, ok := lab.FindScenario("delivered")
	if !ok {
		t.Fatal("no such scenario")
	}
	if err := s.Change(e.lab); err != nil {
		t.Fatal(err)
	}
	e.lab.Recorder.Reset()
	return e
}

// A process is killed at any exchange between its first word to the vault about a new
// password and the end of the restart that the BMC needs then. The next run finishes
// both: the BMC has the vault's password, was restarted once, and nothing is left to
// do.
func TestAKillInARotation(t *testing.T) {
	for _, f := range families() {
		if f.vendor == bmctest.Supermicro {
			continue // enroll sets no password there
		}
		t.Run(f.vendor, func(t *testing.T) {
			t.Parallel()
			e := delivered(t, f)
			if r := e.apply("gpu-001"); r.code != exitDone {
				t.Fatalf("exit %d\n%s", r.code, r.text)
			}
			restarts := e.rotated()
			if (restarts == 1) != (f.vendor != bmctest.Generic) {
				t.Fatalf("%d restarts", restarts)
			}
			first, last := 0, 0
			for _, r := range e.lab.Recorder.Records() {
				switch {
				case first == 0 && r.System == "vault" && r.Mutating:
					first = r.Seq
				case first > 0 && last == 0 && r.System == "bmc" && r.Mutating && !strings.Contains(r.Path, "Manager.Reset") && !strings.Contains(r.Path, "/Accounts") && !strings.Contains(r.Path, "GetRemoteServicesAPIStatus"):
					last = r.Seq // the first setting that is written
				}
			}
			if first == 0 || last <= first {
				t.Fatalf("from %d to %d", first, last)
			}
			for point := range sweep.Points(t, 2*(last-first+1), 67) {
				at, how := first+point/2, []dying{beforeIt, afterIt}[point%2]
				t.Run(fmt.Sprintf("%s %d", how, at), func(t *testing.T) {
					t.Parallel()
					killedInRotation(t, f, at, how, restarts)
				})
			}
		})
	}
}

// rotated wants the BMC and the vault to agree on a new password, and gives how often
// the BMC was restarted.
func (e *estate) rotated() int {
	e.t.Helper()
	b, kept := e.lab.BMCOf("gpu-001"), e.lab.Vault.Field("bmc-gpu-001", "password")
	if kept == e.lab.Hosts[0].Password || !b.Accepts("root", kept) || e.lab.Vault.Field("bmc-gpu-001", "password.staged") != "" {
		e.t.Errorf("the vault has the old one: %v, the BMC takes it: %v", kept == e.lab.Hosts[0].Password, b.Accepts("root", kept))
	}
	if n := b.Lockouts(); n > 0 {
		e.t.Errorf("%d lockouts", n)
	}
	return b.Restarts()
}

func killedInRotation(t *testing.T, f family, at int, how dying, restarts int) {
	t.Helper()
	e := delivered(t, f)
	dead := e.dies(func(r exchange.Record) bool { return r.Seq == at }, how)
	_ = e.apply("gpu-001")
	dead.left()
	hit := dead.hit.Load()
	if hit == nil {
		t.Skipf("done before exchange %d", at)
	}
	e.clock.pass(10 * time.Minute) // somebody notices, and the BMC is up again
	told := fmt.Sprintf("killed %s %s %s %s", how, hit.System, hit.Method, hit.Path)
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Fatalf("%s; the next run: exit %d\n%s", told, r.code, r.text)
	}
	unheard := how == afterIt && strings.HasSuffix(hit.Path, "Manager.Reset") // nobody heard that the BMC agreed
	if n := e.rotated(); n != restarts && (!unheard || n != restarts+1) {
		t.Errorf("%s; %d restarts", told, n)
	}
	if n := e.lab.BMCOf("gpu-001").PasswordChanges(); n != 1 {
		t.Errorf("%s; %d changes of the password", told, n)
	}
	if r := e.run("plan", "gpu-001", "--detailed-exitcode"); r.code != exitDone {
		t.Errorf("%s; then there is something to do:\n%s", told, r.text)
	}
}
