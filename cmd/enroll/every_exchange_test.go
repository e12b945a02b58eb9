package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// mishaps are what can go wrong at an exchange, by name. The last one is what
// makes a client send twice: the write lands and the answer is lost.
func mishaps() []exchange.Fault {
	status := func(code int) exchange.Fault { return exchange.Fault{Kind: exchange.Status, Status: code, Body: "{}"} }
	return []exchange.Fault{
		{Kind: exchange.Reset}, status(http.StatusInternalServerError), status(http.StatusServiceUnavailable), status(http.StatusUnauthorized),
		status(http.StatusNotFound), status(http.StatusConflict), {Kind: exchange.Garbage}, {Kind: exchange.HalfBody}, {Kind: exchange.LostReply}, {Kind: exchange.Stall},
	}
}

func nameOf(f exchange.Fault) string {
	if f.Kind == exchange.Status {
		return strconv.Itoa(f.Status)
	}
	return string(f.Kind)
}

// One thing goes wrong at one exchange of a journey, any thing at any exchange of
// any system. The run ends well or says what happened and whose it is; it leaves
// no session, no lock, no marker, and maintenance exactly where Ironic had set it;
// the next run comes to the same
// world as one that nothing happened to, and no host was rebooted, inspected or
// cleaned once more than it had to be.
func TestAFaultAtEveryExchange(t *testing.T) {
	for _, j := range journeys() {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			want := j.undisturbed(t)
			all := mishaps()
			for point := range sweep.Points(t, want.exchanges*len(all), 1511) {
				at, mishap := point/len(all)+1, all[point%len(all)]
				mishap.At = at
				t.Run(fmt.Sprintf("%s at %d", nameOf(mishap), at), func(t *testing.T) {
					t.Parallel()
					disturbed(t, j, want, &mishap)
				})
			}
		})
	}
}

func disturbed(t *testing.T, j journey, want undisturbed, mishap *exchange.Fault) {
	t.Helper()
	e := j.start(t)
	if mishap.Kind == exchange.Stall {
		e.patience("2s") // in real time: who is stalled waits for it
	}
	e.lab.Recorder.Inject(mishap)
	first := e.apply("gpu-001")
	hit, logout := "nothing", false
	for _, r := range e.lab.Recorder.Records() {
		if r.Fault != "" {
			hit = fmt.Sprintf("%s %s %s", r.System, r.Method, r.Path)
			logout = r.System == "bmc" && r.Method == http.MethodDelete
		}
	}
	defer func() {
		if t.Failed() {
			_, from, _ := strings.Cut(first.text, "Approved by") // the plan says nothing here
			t.Logf("the fault hit %s; exit %d\n%s", hit, first.code, from)
		}
	}()
	switch first.code {
	case exitDone:
	case exitError, exitConfig, exitStale, exitPartial, exitVerify:
		told(t, first)
	default:
		t.Errorf("exit %d", first.code)
	}
	for _, left := range e.leaks() {
		switch {
		case logout && strings.Contains(left, "session"):
		case strings.HasSuffix(left, ".enroll-pending") && !first.ended("dhcp.service"): // the next run tells the service
		default:
			t.Errorf("left: %s", left)
		}
	}
	if s := e.secrets(first.text); s != "" {
		t.Error(s)
	}
	e.clock.pass(61 * time.Minute) // a password that a BMC refused is not tried again in the first hour
	second := e.apply("gpu-001")
	if second.code != exitDone {
		t.Fatalf("the next run: exit %d\n%s", second.code, second.text)
	}
	if left := e.leaks(); len(left) > 0 && !logout {
		t.Errorf("left by the next run: %v", left)
	}
	if d := differences(want.world, e.world()); d != "" {
		t.Errorf("the world is another one:\n%s", d)
	}
	for what, n := range e.effects() {
		most := want.effects[what]
		if strings.HasSuffix(what, "host resets") {
			// Settings of two steps may need a boot each, where the undisturbed run has
			// one for both; the runs say so.
			most = max(most, first.resetsTold("gpu-001")+second.resetsTold("gpu-001"))
		}
		if n > most || n < want.effects[what] {
			t.Errorf("%s: %d and not %d", what, n, want.effects[what])
		}
	}
}

// ended reports whether a step came to its good end.
func (r ran) ended(kind string) bool {
	for _, s := range r.report.Steps {
		if s.Address.KindName() == kind {
			return s.State.OK()
		}
	}
	return false
}

// resetsTold is how many resets of a host by its BMC a run says it asked for.
func (r ran) resetsTold(host string) int {
	n := 0
	for _, e := range r.events {
		if e.Kind == plan.EventWait && e.Device == host && strings.Contains(e.Text, "the host was told to restart") {
			n++
		}
	}
	return n
}

// told wants faults that somebody can act on.
func told(t *testing.T, r ran) {
	t.Helper()
	for _, f := range r.faults() {
		if f.Class() == plan.ClassInternal {
			t.Errorf("not classified: %s", f)
		}
	}
	if !strings.Contains(r.text, "For ") {
		t.Error("nobody is told what to do")
	}
}
