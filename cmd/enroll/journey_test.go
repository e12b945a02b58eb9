package main

import (
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// journey is a run of enroll that faults and kills are tried on, at every exchange.
type journey struct {
	name string
	of   family
	from func(*estate) // what comes before it; nil when the machine is new
}

// journeys are the complete enrolment of a machine of each family, and the way back
// of a node whose cleaning failed.
func journeys() []journey {
	var out []journey
	for _, f := range families() {
		out = append(out, journey{name: f.vendor, of: f})
	}
	return append(out, journey{"recovery", families()[2], (*estate).failCleaning})
}

// start is the world that the journey begins in; its exchanges are counted from here.
func (j journey) start(t testing.TB) *estate {
	t.Helper()
	e := newEstate(t, 1, j.of)
	if j.from != nil {
		j.from(e)
	}
	e.lab.Recorder.Reset()
	return e
}

// failCleaning enrols the device, and leaves its node as Ironic leaves one whose
// cleaning failed later: in maintenance, with Ironic's own fault and the step's words.
func (e *estate) failCleaning() {
	e.t.Helper()
	if r := e.apply("gpu-001"); r.code != exitDone {
		e.t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	const words = "Node failed to erase device /dev/sdb"
	for field, value := range map[string]any{"provision_state": string(plan.StateCleanFailed), "maintenance": true, "maintenance_reason": words, "fault": "clean failure", "last_error": words} {
		e.lab.Ironic.Set("gpu-001", field, value)
	}
}

// undisturbed is what a journey comes to when nothing goes wrong.
type undisturbed struct {
	exchanges int
	world     string
	effects   map[string]int
}

func (j journey) undisturbed(t *testing.T) undisturbed {
	t.Helper()
	e := j.start(t)
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	return undisturbed{e.exchanges(), e.world(), e.effects()}
}
