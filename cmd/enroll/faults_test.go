package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// A fault at an exchange of apply, any exchange of any system, ends in a report
// without a secret and without an open session, and the next apply brings the
// device to its end.
func TestFaultsOnTheWayConverge(t *testing.T) {
	kinds := []exchange.Kind{exchange.Reset, exchange.LostReply, exchange.HalfBody, exchange.Garbage, exchange.Status}
	for at := 1; at < 140; at += 9 {
		kind := kinds[at/9%len(kinds)]
		t.Run(fmt.Sprintf("%s at %d", kind, at), func(t *testing.T) {
			t.Parallel()
			l, dir := startLab(t, 1)
			l.Recorder.Inject(&exchange.Fault{Kind: kind, At: at, Status: http.StatusServiceUnavailable})
			code, out, errOut := invoke(t, l, dir, "apply", "gpu-001", "--auto-approve")
			text := out + errOut
			if n := l.BMC.BMC("gpu-001").Sessions(); n != 0 {
				t.Errorf("%d sessions are left at the BMC", n)
			}
			if code != exitDone && !strings.Contains(text, "For ") {
				t.Errorf("exit %d, and nobody is told what to do:\n%s", code, text)
			}
			if code, out, errOut := invoke(t, l, dir, "apply", "gpu-001", "--auto-approve"); code != exitDone {
				t.Errorf("the next apply: exit %d\n%s%s", code, out, errOut)
			}
			code, again, errOut := invoke(t, l, dir, "plan", "gpu-001", "--detailed-exitcode")
			if code != exitDone {
				t.Errorf("the plan after it: exit %d\n%s%s", code, again, errOut)
			}
			for i, s := range l.Secrets() {
				if strings.Contains(text, s) {
					t.Errorf("secret number %d was printed", i)
				}
			}
		})
	}
}

// No client follows a redirect: it would carry passwords elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var stolen atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, system := range []string{"netbox", "ironic", "vault", "bmc"} {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
			t.Run(fmt.Sprintf("%s %d", system, status), func(t *testing.T) {
				l, dir := startLab(t, 1)
				l.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, System: system, Status: status, Header: map[string]string{"Location": elsewhere.URL + "/elsewhere"}})
				if code, out, errOut := invoke(t, l, dir, "apply", "gpu-001", "--auto-approve"); code == exitDone {
					t.Errorf("exit 0\n%s%s", out, errOut)
				}
				if n := stolen.Load(); n != 0 {
					t.Errorf("%d requests went elsewhere", n)
				}
			})
		}
	}
}

// Equal files may mean another site with other variables.
func TestAPlanIsBoundToItsVariables(t *testing.T) {
	l, dir := startLab(t, 1)
	file := filepath.Join(dir, "site", "site.hcl")
	replaceIn(t, file, `settle      = "100ms"`, `settle      = var.settle`)
	replaceIn(t, file, "site \"demo\" {", "variable \"settle\" {\n  default = \"100ms\"\n}\n\nsite \"demo\" {")
	planFile := filepath.Join(dir, "p.plan")
	if code, out, errOut := invoke(t, l, dir, "plan", "gpu-001", "--out", planFile, "--var", "settle=1s"); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	l.Recorder.Reset()
	refused(t, l, dir, planFile, exitStale, "PLAN_STALE", "a variable has another value")
}

func replaceIn(t testing.TB, path, old, now string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), old, now, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An interrupt while planning closes what was opened, and says so by its exit
// code; during apply it finishes what is in flight, and the next run goes on.
func TestInterrupts(t *testing.T) {
	l, dir := startLab(t, 1)
	session := func() int { return l.BMC.BMC("gpu-001").Sessions() }
	// when sends one signal as soon as something is so.
	when := func(so func() bool) <-chan os.Signal {
		signals := make(chan os.Signal, 1)
		go func() {
			for range 10_000 {
				if so() {
					signals <- os.Interrupt
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		return signals
	}
	inspecting := func() bool {
		n, ok := l.Ironic.Node("gpu-001")
		return ok && n.ProvisionState == plan.StateInspecting
	}
	code, out, errOut := invokeWith(t, l, dir, when(inspecting), "apply", "gpu-001", "--auto-approve")
	if code != exitInterrupted || session() != 0 || !strings.Contains(out, "is still going on in ironic") {
		t.Errorf("apply: exit %d, %d sessions\n%s%s", code, session(), out, errOut)
	}
	if code, out, errOut := invoke(t, l, dir, "apply", "gpu-001", "--auto-approve"); code != exitDone {
		t.Fatalf("the next apply: exit %d\n%s%s", code, out, errOut)
	}
	l.Recorder.Inject(&exchange.Fault{Kind: exchange.Delay, System: "bmc", Method: http.MethodGet, Delay: 300 * time.Millisecond})
	code, out, errOut = invokeWith(t, l, dir, when(func() bool { return session() == 1 }), "plan", "gpu-001")
	if code != exitInterrupted || session() != 0 || !strings.Contains(errOut, "INTERRUPTED") {
		t.Errorf("plan: exit %d, %d sessions\n%s%s", code, session(), out, errOut)
	}
}
