package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// asked is a command line at a terminal where this is typed.
func (e *estate) asked(typed string, args ...string) (int, string) {
	e.t.Helper()
	var out bytes.Buffer
	s := e.process(e.state(), &out, &out)
	s.terminal, s.stdin = true, strings.NewReader(typed)
	env := s.lookupEnv
	s.lookupEnv = func(name string) (string, bool) {
		if name == "TERM" {
			return "dumb", true // lines, not a live block
		}
		return env(name)
	}
	return run(context.Background(), args, s), out.String()
}

// writes are the requests that changed something outside of the vault.
func (e *estate) writes() int {
	return e.lab.Recorder.Count(func(r exchange.Record) bool { return r.Mutating && r.System != "vault" })
}

// A person types yes, or the number of hosts that reboot where hosts do. Anything
// else is no approval, and nothing is done.
func TestWhatIsTypedToApprove(t *testing.T) {
	e := newEstate(t, 2, families()[0], families()[3])
	for _, typed := range []string{"", "\n", "yes\n", "y\n", "1\n", "3\n", "02\n", "2 hosts\n", "no\n"} {
		code, out := e.asked(typed, "apply", "--all")
		if code != exitDenied || e.writes() > 0 || !strings.Contains(out, "Type the number of hosts that will reboot") || !strings.Contains(out, `"2" was wanted`) {
			t.Errorf("%q: exit %d, %d writes\n%s", typed, code, e.writes(), out)
		}
	}
	if code, out := e.asked(" 2 \n", "apply", "--all"); code != exitDone {
		t.Fatalf("exit %d\n%s", code, out)
	}
	e.lab.BMCOf("gpu-002").SetHostname("by-hand")
	e.lab.Recorder.Reset()
	for _, typed := range []string{"", "y\n", "YES\n", "0\n", "yes please\n"} {
		code, out := e.asked(typed, "apply", "--all")
		if code != exitDenied || e.writes() > 0 || !strings.Contains(out, "Type yes to apply") {
			t.Errorf("%q: exit %d, %d writes\n%s", typed, code, e.writes(), out)
		}
	}
	if code, out := e.asked("yes\n", "apply", "--all"); code != exitDone || e.lab.BMCOf("gpu-002").Hostname() != "gpu-002" {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// Where nobody can be asked, the flags that approve are named; --auto-approve says
// loudly what it approved; --approve wants every class that the plan has.
func TestApprovalWithoutATerminal(t *testing.T) {
	e := newEstate(t, 1, families()[0])
	r := e.run("apply", "gpu-001")
	for _, flag := range []string{"--approve", "--expect", "--auto-approve"} {
		if r.code != exitUsage || !strings.Contains(r.text, flag) {
			t.Errorf("exit %d, %s\n%s", r.code, flag, r.text)
		}
	}
	r = e.run("apply", "gpu-001", "--approve", "config,reboot")
	if r.code != exitDenied || e.writes() > 0 || !strings.Contains(r.text, "the plan does more than --approve allows: erase, power, credential, service_restart; nothing was done") ||
		!strings.Contains(r.text, "--approve config,reboot,erase,power,credential,service_restart") {
		t.Errorf("exit %d, %d writes\n%s", r.code, e.writes(), r.text)
	}
	r = e.run("apply", "gpu-001", "--auto-approve")
	if r.code != exitDone || !strings.Contains(r.text, "Approved by --auto-approve, whatever it does: 1 host reboots, 1 host loses the content of its disks") {
		t.Errorf("exit %d\n%s", r.code, r.text)
	}
}

// A plan that is not of now and here is exit 12, says what differs, and nothing is
// written.
func TestAPlanThatDoesNotFitAnyMore(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(t *testing.T, e *estate, file string)
		code plan.Code
		told string
	}{
		{"expired", func(_ *testing.T, e *estate, _ string) { e.clock.pass(61 * time.Minute) }, plan.CodePlanExpired, "the plan was valid until "},
		{"another version", func(t *testing.T, _ *estate, file string) {
			rewrite(t, file, func(p *plan.Plan) { p.Tool.Version = "9.9.9" })
		}, plan.CodePlanStale, "the plan was made by enroll 9.9.9, this is " + version},
		{"another site", func(t *testing.T, e *estate, _ string) { replaceIn(t, e.site(), `site "demo"`, `site "other"`) },
			plan.CodePlanStale, "the plan is for site demo, the files are of site other"},
		{"another site file", func(t *testing.T, e *estate, _ string) {
			replaceIn(t, e.site(), "lockout_attempts = 5", "lockout_attempts = 6")
		},
			plan.CodePlanStale, "site files changed since the plan: site.hcl"},
		{"one more site file", func(t *testing.T, e *estate, _ string) {
			if err := os.WriteFile(filepath.Join(filepath.Dir(e.site()), "more.hcl"), []byte("# nothing\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, plan.CodePlanStale, "site files changed since the plan: more.hcl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEstate(t, 1, families()[3])
			file := filepath.Join(e.dir, "gpu-001.plan")
			if r := e.run("plan", "gpu-001", "--out", file); r.code != exitDone {
				t.Fatalf("exit %d\n%s", r.code, r.text)
			}
			c.does(t, e, file)
			r := e.run("apply", file, "--auto-approve")
			if r.code != exitStale || !strings.Contains(r.text, string(c.code)) || !strings.Contains(r.text, c.told) || e.writes() > 0 {
				t.Errorf("exit %d, %d writes\n%s", r.code, e.writes(), r.text)
			}
		})
	}
}

// rewrite changes a plan file and seals it again, as another program would have.
func rewrite(t *testing.T, file string, change func(*plan.Plan)) {
	t.Helper()
	p, err := readPlan(file)
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	p.ContentHash = plan.ContentHash(p)
	raw, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A device that another run holds is exit 11 and says who holds it. A lock whose
// holder has died is nobody's: it keeps nobody out.
func TestADeviceThatAnotherRunHolds(t *testing.T) {
	e := newEstate(t, 2, families()[3])
	locks := filepath.Join(e.state(), "enroll", "locks")
	other := apply.Holder{User: "ada", Host: "runner-2", PID: 4711, Started: e.clock.Now(), PlanID: "0123456789ab"}
	held, err := apply.LockDevices(locks, "demo", []string{"gpu-002"}, other)
	if err != nil {
		t.Fatal(err)
	}
	r := e.run("apply", "--all", "--auto-approve")
	if r.code != exitLock || e.writes() > 0 {
		t.Errorf("exit %d, %d writes", r.code, e.writes())
	}
	for _, text := range []string{"LOCK_HELD", "gpu-002", "ada on runner-2, process 4711, plan 0123456789ab"} {
		if !strings.Contains(r.text, text) {
			t.Errorf("%q is missing\n%s", text, r.text)
		}
	}
	if r := e.run("apply", "gpu-001", "--auto-approve"); r.code != exitDone {
		t.Errorf("the other device: exit %d\n%s", r.code, r.text)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if r := e.run("apply", "gpu-002", "--auto-approve"); r.code != exitDone {
		t.Errorf("exit %d\n%s", r.code, r.text)
	}
}

// watcher is an output that tells when a text comes by.
type watcher struct {
	bytes.Buffer
	text string
	seen chan struct{}
	once sync.Once
}

func (w *watcher) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if strings.Contains(w.String(), w.text) {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}

// SIGUSR1 tells how far a run is, and interrupts nothing.
func TestSIGUSR1TellsHowFarARunIs(t *testing.T) {
	e := newEstate(t, 1, families()[3])
	signals := make(chan os.Signal, 1)
	out := &watcher{text: "steps over, 1 step under way", seen: make(chan struct{})}
	var once sync.Once
	e.lab.Recorder.Before(func(r exchange.Record) {
		if r.System == "ironic" && r.Method == http.MethodPut {
			once.Do(func() { signals <- syscall.SIGUSR1; <-out.seen }) // the run stands until it is told
		}
	})
	s := e.process(e.state(), out, io.Discard)
	s.signals = func() (<-chan os.Signal, func()) { return signals, func() {} }
	if code := run(context.Background(), []string{"apply", "gpu-001", "--auto-approve"}, s); code != exitDone {
		t.Fatalf("exit %d\n%s", code, out.String())
	}
	if !strings.Contains(out.String(), "gpu-001/ironic.provision[manage]") {
		t.Errorf("the step under way is not named\n%s", out.String())
	}
}
