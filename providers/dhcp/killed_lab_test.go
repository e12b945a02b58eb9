//go:build lab

package dhcp_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

var temporary = regexp.MustCompile(`^\..+\.enroll-[0-9a-f]{16}$`)

// killPoints are moments of a run, as they are seen in the folder. told comes
// when the run waits for the service to settle.
var killPoints = []struct {
	name string
	only string
	seen func(m *labMachine, names []string) bool
}{
	{"the lock is taken", "", func(_ *labMachine, names []string) bool { return has(names, `^\.enroll-lock$`) }},
	{"a temporary file is there", "", func(_ *labMachine, names []string) bool {
		for _, n := range names {
			if temporary.MatchString(n) && !strings.HasPrefix(n, ".enroll-lock") {
				return true
			}
		}
		return false
	}},
	{"the marker is there", "", func(_ *labMachine, names []string) bool { return has(names, `^\.enroll-pending$`) }},
	{"the file has its name", "", func(m *labMachine, names []string) bool {
		return has(names, "^"+regexp.QuoteMeta(dhcp.FileName(m.settings, entry(device(2))))+"$")
	}},
	{"the index lists it", "kea isc", func(m *labMachine, _ []string) bool {
		at, _ := dhcp.RenderIndex(m.settings, nil)
		raw, err := os.ReadFile(m.root + at)
		return err == nil && strings.Contains(string(raw), dhcp.FileName(m.settings, entry(device(2))))
	}},
	{"told", "", nil},
}

// prunePoints are moments of a run that removes device 2's entry.
var prunePoints = []struct {
	name string
	seen func(m *labMachine, names []string) bool
}{
	{"the marker is there", func(_ *labMachine, names []string) bool { return has(names, `^\.enroll-pending$`) }},
	{"the file is gone", func(m *labMachine, names []string) bool {
		return !has(names, "^"+regexp.QuoteMeta(dhcp.FileName(m.settings, entry(device(2))))+"$")
	}},
	{"told", nil},
}

func has(names []string, form string) bool {
	re := regexp.MustCompile(form)
	for _, n := range names {
		if re.MatchString(n) {
			return true
		}
	}
	return false
}

func (m *labMachine) names() []string {
	entries, _ := os.ReadDir(path.Join(m.root, m.settings.Directory))
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestKilledLab kills a run with SIGKILL at several moments. What stood before is
// served, also after somebody's restart; nobody else writes within the lease; and
// after it the next run finishes the work and leaves nothing behind.
func TestKilledLab(t *testing.T) {
	if name := os.Getenv("ENROLL_LAB_KILLED"); name != "" { // the run that is killed
		for _, m := range labMachines(t) {
			if m.name == name {
				b := m.bench(t, device(1), device(2))
				if os.Getenv("ENROLL_LAB_PRUNES") != "" {
					b = m.whole(t, device(1))
				}
				b.wait = func(d time.Duration) {
					fmt.Println("told")
					time.Sleep(d)
				}
				if f := b.converge(b.p); f != nil {
					t.Fatal(f)
				}
			}
		}
		return
	}
	for _, m := range labMachines(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // each machine has its own wire, clients and files
			m.t = t
			t.Cleanup(func() { m.t = t; m.clean() })
			for _, point := range killPoints {
				if point.only != "" && !strings.Contains(point.only, m.name) {
					continue
				}
				t.Run(point.name, func(t *testing.T) {
					m.t = t
					m.clean()
					m.good(t, device(1))
					if !m.kill(t, point.seen, "") {
						t.Fatal("the run ended before it could be killed")
					}
					m.serves(t, device(1))
					m.inside("systemctl restart " + m.settings.Unit + "; sleep 1")
					m.serves(t, device(1))
					if has(m.names(), `^\.enroll-lock$`) {
						if f := m.run(t, device(1), device(2)); f == nil || f.Code != plan.CodeDHCPLockHeld {
							t.Errorf("within the lease: %v, want %s", f, plan.CodeDHCPLockHeld)
						}
					}
					// The lease ends, and what was left behind gets old.
					m.inside("cd " + m.settings.Directory + " && find . -mindepth 1 -name '.*' -exec touch -d '2 hours ago' {} +")
					m.good(t, device(1), device(2))
					m.serves(t, device(1), device(2))
					m.tidy(t)
				})
			}
			for _, point := range prunePoints {
				t.Run("a removal: "+point.name, func(t *testing.T) {
					m.t = t
					m.clean()
					m.good(t, device(1), device(2))
					if !m.kill(t, point.seen, "1") {
						t.Fatal("the run ended before it could be killed")
					}
					m.serves(t, device(1))
					m.inside("systemctl restart " + m.settings.Unit + "; sleep 1")
					m.serves(t, device(1))
					if has(m.names(), `^\.enroll-lock$`) {
						if f := m.end(t, m.whole(t, device(1))); f == nil || f.Code != plan.CodeDHCPLockHeld {
							t.Errorf("within the lease: %v, want %s", f, plan.CodeDHCPLockHeld)
						}
					}
					m.inside("cd " + m.settings.Directory + " && find . -mindepth 1 -name '.*' -exec touch -d '2 hours ago' {} +")
					if f := m.end(t, m.whole(t, device(1))); f != nil {
						t.Fatal(f)
					}
					m.serves(t, device(1))
					m.silent(t, mac(2))
					m.tidy(t)
				})
			}
		})
	}
}

// kill starts a run and kills it at the moment that seen sees; nil is the first
// wait.
func (m *labMachine) kill(t *testing.T, seen func(*labMachine, []string) bool, prunes string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledLab$")
	cmd.Env = append(os.Environ(), "ENROLL_LAB_KILLED="+m.name, "ENROLL_LAB_PRUNES="+prunes)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		first := true
		for lines.Scan() {
			if lines.Text() == "told" && first {
				first = false
				close(told)
			}
		}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			_ = cmd.Wait()
			return false
		case <-told:
			if seen == nil {
				_ = cmd.Process.Kill()
			} else {
				told = nil
				continue
			}
		case <-tick.C:
			if seen == nil || !seen(m, m.names()) {
				continue
			}
			_ = cmd.Process.Kill()
		}
		<-ended
		_ = cmd.Wait()
		return cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}
}
