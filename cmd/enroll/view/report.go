package view

import (
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// Report writes what a run came to: a line per device, and for each fault what
// it is, whose, and the way out.
func Report(w io.Writer, r *apply.Report, color bool) error {
	t := &textWriter{o: TextOptions{Color: color}}
	t.f("\nApply %s after %s\n", outcome(r), r.Spent.Round(100*time.Millisecond))
	width := 0
	for _, d := range r.Devices {
		width = max(width, utf8.RuneCountInString(Clean(d.Name)))
	}
	for _, d := range r.Devices {
		t.f("  %-*s  %-8s  %d done, %d already as wanted, %d not done, %d blocked\n", width, Clean(d.Name), t.deviceState(d, r), d.Done, d.Already, d.NotRun, d.Blocked)
	}
	t.reportFaults(r)
	t.inDoubt(r)
	t.putBack(r)
	_, err := io.WriteString(w, t.b.String())
	return err
}

func outcome(r *apply.Report) string {
	switch failed := len(r.Failed()); {
	case r.Interrupted:
		return "interrupted"
	case failed == 0 && r.Alone() > 0:
		return "ended with " + plural(r.Alone(), "step") + " of the site not done"
	case failed == 0:
		return "finished"
	default:
		return fmt.Sprintf("ended with %d of %s not done", failed, plural(len(r.Devices), "device"))
	}
}

func (t *textWriter) deviceState(d apply.DeviceReport, r *apply.Report) string {
	switch {
	case d.OK() && d.Done+d.Already == 0 && d.Blocked > 0:
		return t.color(yellow, "blocked ")
	case d.OK():
		return t.color(green, "done    ")
	case d.Fault == nil && r.Interrupted:
		return t.color(yellow, "stopped ")
	default:
		return t.color(red, "failed  ")
	}
}

// reportFaults tells each fault once, below the step that met it.
func (t *textWriter) reportFaults(r *apply.Report) {
	for _, d := range r.Devices {
		if d.Fault != nil && d.At == nil {
			t.f("\n%s\n", t.bold(Clean(d.Name)))
			Fault(&t.b, d.Fault, "  ", t.o.Color)
		}
	}
	for _, s := range r.Steps {
		if s.State == plan.StepFailed && s.Fault != nil {
			t.f("\n%s\n", t.bold(place(s.Step)))
			Fault(&t.b, s.Fault, "  ", t.o.Color)
		}
		if s.State == plan.StepBlocked && s.Step.Blocked == nil {
			t.f("\n%s\n  %s not there to be set: %s\n", t.bold(place(s.Step)), t.color(yellow, "!"), Clean(s.Text))
		}
	}
}

func (t *textWriter) inDoubt(r *apply.Report) {
	for _, s := range r.Steps {
		switch s.State { //nolint:exhaustive // the others are settled
		case plan.StepInDoubt:
			t.f("  %s %s is in doubt: %s. Apply again: it reads live first.\n", t.color(red, "✗"), place(s.Step), Clean(s.Text))
		case plan.StepLeft:
			t.f("  - %s is still going on in %s. Apply again to follow it.\n", place(s.Step), s.Step.Address.System)
		}
	}
}

// putBack tells what a step had changed for a moment only.
func (t *textWriter) putBack(r *apply.Report) {
	for _, o := range r.Obligations {
		if o.Fault == nil {
			t.f("  = put back: %s\n", Clean(o.Obligation.Text))
			continue
		}
		t.f("\n%s\n", t.bold(Clean(o.Obligation.Address.String())))
		Fault(&t.b, o.Fault, "  ", t.o.Color)
	}
}
