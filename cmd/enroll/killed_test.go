package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// dying is how a process dies at an exchange, as its systems see it.
type dying string

const (
	beforeIt dying = "before it" // the request never arrives
	afterIt  dying = "after it"  // it is carried out, and nobody hears the answer
)

// A process is killed at an exchange of a journey, any exchange of any system:
// from there on nothing of it arrives anywhere, neither at a system nor in the
// folder of journals and locks. The next run comes to the same world as one that
// was not killed, at once and without anybody's help, and nothing that a machine
// feels was done twice. Between two exchanges the journal changes as well; a kill
// before an exchange finds what was written until then, one after it finds that
// the answer was not written.
func TestAKillAtEveryExchange(t *testing.T) {
	for _, j := range journeys() {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			want := j.undisturbed(t)
			for point := range sweep.Points(t, want.exchanges*4, 701) {
				at, how, file := point/4+1, []dying{beforeIt, afterIt}[point%2], point%4 > 1
				name := fmt.Sprintf("%s %d", how, at)
				if file {
					name += ", a plan file"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					killed(t, j, want, at, how, file)
				})
			}
		})
	}
}

// death is where a run was killed in process, and what it left on the disk.
type death struct {
	estate *estate
	state  string
	hit    atomic.Pointer[exchange.Record]
}

// dies lets the next run die at the exchange that is the one: from there on nothing
// of it arrives anywhere.
func (e *estate) dies(the func(exchange.Record) bool, how dying) *death {
	d := &death{estate: e, state: filepath.Join(e.t.TempDir(), "state")}
	e.lab.Recorder.Before(func(r exchange.Record) {
		if !the(r) {
			return
		}
		d.hit.Store(&r)
		if err := os.CopyFS(d.state, os.DirFS(e.state())); err != nil && !os.IsNotExist(err) {
			e.t.Error(err)
		}
		if how == afterIt {
			e.lab.Recorder.Inject(&exchange.Fault{Kind: exchange.LostReply, At: r.Seq})
		}
		e.lab.Recorder.Inject(&exchange.Fault{Kind: exchange.Reset, From: r.Seq})
	})
	return d
}

// left puts what the dead run left in the place of what it wrote after its death,
// and lets exchanges arrive again.
func (d *death) left() {
	e := d.estate
	e.t.Helper()
	if err := os.RemoveAll(e.state()); err != nil {
		e.t.Fatal(err)
	}
	if err := os.CopyFS(e.state(), os.DirFS(d.state)); err != nil && !os.IsNotExist(err) {
		e.t.Fatal(err)
	}
	e.lab.Recorder.Before(nil)
	e.lab.Recorder.Reset()
}

func killed(t *testing.T, j journey, want undisturbed, at int, how dying, file bool) {
	t.Helper()
	e := j.start(t)
	what := "gpu-001"
	if file {
		what = filepath.Join(e.dir, "gpu-001.plan")
		if r := e.run("plan", "gpu-001", "--out", what); r.code != exitDone {
			t.Fatalf("exit %d\n%s", r.code, r.text)
		}
	}
	e.lab.Recorder.Reset()
	dead := e.dies(func(r exchange.Record) bool { return r.Seq == at }, how)
	first := e.apply(what)
	before := e.lab.Recorder.Records()
	effects := e.effects()
	if len(before) < at {
		if first.code != exitDone { // file: the plan took some of the exchanges
			t.Errorf("exit %d\n%s", first.code, first.text)
		}
		return
	}
	dead.left()
	again := e.resume(what, file)
	defer func() {
		if t.Failed() {
			r := before[at-1]
			t.Logf("killed %s %s %s %s; then exit %d\n%s", how, r.System, r.Method, r.Path, again.code, again.text)
		}
	}()
	if again.code != exitDone {
		t.Fatalf("the next run: exit %d", again.code)
	}
	e.clock.pass(time.Hour) // sessions of the dead end by themselves, and what it uploaded in part is swept
	if d := differences(litterless(want.world), litterless(e.world())); d != "" {
		t.Errorf("the world is another one:\n%s", d)
	}
	for what, n := range e.effects() {
		if !strings.HasSuffix(what, "resets") { // those the machines count
			n += effects[what]
		}
		bootEach := strings.HasSuffix(what, "host resets") && n == 2 && first.resetsTold("gpu-001")+again.resetsTold("gpu-001") >= 2 // one of each step
		if n != want.effects[what] && !bootEach {
			t.Errorf("%s: %d and not %d", what, n, want.effects[what])
		}
	}
	for _, left := range e.leaks() {
		// A run that finds nothing to do there does not look who holds the lock: it is
		// nobody's when its lease is over.
		if strings.HasSuffix(left, ".enroll-lock") && !again.wrote("dhcp") {
			continue
		}
		if !strings.Contains(left, ".enroll-") || strings.HasSuffix(left, ".enroll-pending") || strings.HasSuffix(left, ".enroll-lock") {
			t.Errorf("left: %s", left)
		}
	}
}

// wrote reports whether a run wrote anything to a system.
func (r ran) wrote(system string) bool {
	return slices.ContainsFunc(r.report.Steps, func(s streamStep) bool { return s.Address.System == system && s.State == plan.StepDone })
}

// resume continues what a dead process was at: a plan file within its approval.
func (e *estate) resume(what string, file bool) ran {
	e.t.Helper()
	if !file {
		return e.apply(what)
	}
	if _, err := os.Stat(e.state()); err != nil { // it died before it wrote anything
		return e.apply(what)
	}
	past, err := apply.ListJournals(filepath.Join(e.state(), "enroll", "journal"))
	if err != nil {
		e.t.Fatal(err)
	}
	switch {
	case len(past) == 0:
		return e.apply(what)
	case past[0].Ended: // all that was left is to take leave: the plan is used up
		return e.apply("gpu-001")
	}
	return e.stream("apply", "--resume", what)
}

// litterless is a world without files that uploads of a dead process left: the
// next upload after an hour sweeps them.
func litterless(world string) string {
	var out strings.Builder
	for line := range strings.Lines(world) {
		if !strings.HasPrefix(line, "dhcp .") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// Processes that are really killed, at an exchange that is chosen by its number:
// the journal is the one that they left on the disk. The next run is a process too.
func TestRealKills(t *testing.T) {
	program := filepath.Join(t.TempDir(), "enroll")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil { // TestMain is the program under this name
		t.Fatal(err)
	}
	for point := range sweep.Points(t, 312, 156) {
		at, how := 35+point/2, []dying{beforeIt, afterIt}[point%2]
		t.Run(fmt.Sprintf("%s %d", how, at), func(t *testing.T) {
			t.Parallel()
			reallyKilled(t, program, at, how)
		})
	}
}

func reallyKilled(t *testing.T, program string, at int, how dying) {
	t.Helper()
	l, dir := startLab(t, 1)
	env := append(os.Environ(), "ENROLL_SITE="+filepath.Join(dir, "site"), "VAULT_TOKEN="+l.Vault.Token, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "NO_COLOR=1")
	command := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), program, "apply", "gpu-001", "--auto-approve") //nolint:gosec // this very test's program
		c.Env = env
		return c
	}
	victim := command()
	started, dead := make(chan struct{}), make(chan struct{})
	hits := make(chan exchange.Record, 1)
	l.Recorder.Before(func(r exchange.Record) {
		if r.Seq < at {
			return
		}
		if r.Seq == at {
			if how == afterIt {
				l.Recorder.Inject(&exchange.Fault{Kind: exchange.LostReply, At: at})
			} else {
				l.Recorder.Inject(&exchange.Fault{Kind: exchange.Reset, At: at})
			}
			l.Recorder.Inject(&exchange.Fault{Kind: exchange.Reset, From: at + 1})
			hits <- r
			<-started
			if err := victim.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		<-dead // what it sent at the same time arrives nowhere
	})
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	err := victim.Wait()
	close(dead)
	var hit exchange.Record
	select {
	case hit = <-hits:
	default:
		if err != nil {
			t.Fatalf("it ended before exchange %d: %v", at, err)
		}
		t.Skipf("done before exchange %d: how often a run asks again is a matter of its machine's speed", at)
	}
	if victim.ProcessState.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v", err)
	}
	for l.Recorder.Count(func(r exchange.Record) bool { return r.Seq == at }) == 0 { // it may be served still
		time.Sleep(time.Millisecond)
	}
	l.Recorder.Before(nil)
	l.Recorder.Reset()
	// The lock on the DHCP server is the dead process's until its lease is over.
	l.DHCP.RemoveFile("/etc/dnsmasq.d/enroll-hosts/.enroll-lock")
	raw, err := command().CombinedOutput()
	if err != nil {
		t.Fatalf("killed %s %s %s %s; the next run: %v\n%s", how, hit.System, hit.Method, hit.Path, err, raw)
	}
	if code, out, errOut := invoke(t, l, dir, "plan", "gpu-001", "--detailed-exitcode"); code != exitDone {
		t.Errorf("killed %s %s %s %s; the plan after it: exit %d\n%s%s", how, hit.System, hit.Method, hit.Path, code, out, errOut)
	}
	past, err := apply.ListJournals(filepath.Join(dir, "state", "enroll", "journal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range past {
		if p.Running {
			t.Errorf("the journal %s is held by somebody", p.Path)
		}
	}
	if n, ok := l.Ironic.Node("gpu-001"); !ok || n.Maintenance || n.Reservation != "" {
		t.Errorf("node %+v", n)
	}
	for _, s := range l.Secrets() {
		if strings.Contains(string(raw), s) {
			t.Error("a secret was printed")
		}
	}
}
