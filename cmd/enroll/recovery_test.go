package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// A recovery clears maintenance for as long as manage takes. That it has to be put
// back is on the disk before it is cleared; so a process may be killed anywhere in
// between, and the next run, to which Ironic refuses manage, puts it back. One that
// died when manage had arrived owes nothing: the flag would hold up the cleaning.
func TestMaintenanceThatADeadProcessClearedIsPutBack(t *testing.T) {
	recovery := journeys()[len(families())]
	e := recovery.start(t)
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	want := undisturbed{e.exchanges(), e.world(), e.effects()}
	clears, manages := 0, 0
	for _, r := range e.lab.Recorder.Records() {
		switch {
		case r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/maintenance"):
			clears = r.Seq
		case r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/states/provision") && manages == 0:
			manages = r.Seq
		}
	}
	if clears == 0 || manages <= clears {
		t.Fatalf("maintenance is cleared by exchange %d, and manage sent by %d", clears, manages)
	}
	for at := clears; at < manages+4; at++ {
		for _, how := range []dying{beforeIt, afterIt} {
			t.Run(fmt.Sprintf("%s %d", how, at-clears), func(t *testing.T) {
				t.Parallel()
				if at < manages {
					putBack(t, recovery.start(t), at-clears, how)
				} else { // it may have arrived: the next run looks before it puts anything back
					killed(t, recovery, want, at, how, false)
				}
			})
		}
	}
}

// putBack kills a process so many exchanges after the one that clears maintenance.
func putBack(t *testing.T, e *estate, later int, how dying) {
	t.Helper()
	var clears atomic.Int64
	dead := e.dies(func(r exchange.Record) bool {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/maintenance") {
			clears.Store(int64(r.Seq))
			if open := e.owed(e.state()); len(open) != 1 {
				t.Errorf("maintenance is cleared, and written down is %v", open)
			}
		}
		return clears.Load() != 0 && r.Seq == int(clears.Load())+later
	}, how)
	e.apply("gpu-001")
	dead.left()
	n, _ := e.lab.Ironic.Node("gpu-001")
	if n.ProvisionState != plan.StateCleanFailed {
		t.Skipf("manage came before exchange %d after the clearing", later)
	}
	refusal := &exchange.Fault{Kind: exchange.Status, System: "ironic", Method: http.MethodPut, Status: http.StatusBadRequest, Body: "{}"}
	refusal.Path = "/v1/nodes/" + n.UUID + "/states/provision"
	e.lab.Recorder.Inject(refusal)
	r := e.apply("gpu-001")
	n, _ = e.lab.Ironic.Node("gpu-001")
	if r.code == exitDone || n.ProvisionState != plan.StateCleanFailed || !n.Maintenance {
		t.Errorf("exit %d; the node is %s, in maintenance: %v\n%s", r.code, n.ProvisionState, n.Maintenance, r.text)
	}
	if open := e.owed(e.state()); len(open) > 0 {
		t.Errorf("still open: %v", open)
	}
	e.lab.Recorder.Reset()
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Errorf("when Ironic takes it: exit %d\n%s", r.code, r.text)
	}
	if left := e.leaks(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// owed is what a folder of journals says has to be put back.
func (e *estate) owed(state string) []plan.Obligation {
	e.t.Helper()
	open, err := apply.OpenObligations(filepath.Join(state, "enroll", "journal"), "demo", []string{"gpu-001"})
	if err != nil {
		e.t.Fatal(err)
	}
	return open
}
