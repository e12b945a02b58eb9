package view

import (
	"fmt"
	"io"
	"strings"
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
	doubt := inDoubt(r)
	for _, d := range r.Devices {
		t.f("  %-*s  %s  %d done, %d already as wanted, %d not done, %d blocked%s\n", width, Clean(d.Name), t.deviceState(d, r, doubt[d.Name]), d.Done, d.Already, d.NotRun, d.Blocked, firstFault(d))
	}
	faults, absent := t.found(r)
	t.tell(faults)
	t.unsettled(r)
	t.putBack(r)
	t.tell(absent)
	_, err := io.WriteString(w, t.b.String())
	return err
}

func outcome(r *apply.Report) string {
	switch failed := len(r.Failed()); {
	case r.Interrupted:
		return "interrupted"
	case failed == 0 && r.Alone() > 0:
		return "ended with " + plural(r.Alone(), "step") + " of the site not done"
	case failed == 0 && r.Open() > 0:
		return "ended with " + plural(r.Open(), "thing") + " not put back"
	case failed == 0:
		return "finished"
	default:
		return fmt.Sprintf("ended with %d of %s not done", failed, plural(len(r.Devices), "device"))
	}
}

// inDoubt are the devices with a step of which nobody knows whether it arrived.
func inDoubt(r *apply.Report) map[string]bool {
	out := map[string]bool{}
	for _, s := range r.Steps {
		if s.State == plan.StepInDoubt {
			out[s.Step.Address.Device] = true
		}
	}
	return out
}

// deviceState is what became of a device, in one word of eight characters.
func (t *textWriter) deviceState(d apply.DeviceReport, r *apply.Report, doubt bool) string {
	switch {
	case d.OK() && d.Done+d.Already == 0 && d.Blocked > 0:
		return t.color(yellow, "blocked ")
	case d.OK() && d.Done == 0:
		return t.color(green, "already ")
	case d.OK():
		return t.color(green, "done    ")
	case doubt:
		return t.color(red, "in doubt")
	case d.Fault == nil && r.Interrupted:
		return t.color(yellow, "stopped ")
	default:
		return t.color(red, "failed  ")
	}
}

// firstFault is that of a device, and whose it is.
func firstFault(d apply.DeviceReport) string {
	if d.Fault == nil {
		return ""
	}
	return "; " + string(d.Fault.Code) + ", for " + Clean(string(d.Fault.Owner()))
}

// found gives each fault once, and what turned out not to be there.
func (t *textWriter) found(r *apply.Report) (faults, absent findings) {
	for _, d := range r.Devices {
		if d.Fault != nil && d.At == nil {
			faults.add(d.Name, Clean(d.Name), t.faultText(d.Fault))
		}
	}
	for _, s := range r.Steps {
		switch {
		case s.State == plan.StepFailed && s.Fault != nil:
			faults.add(s.Step.Address.Device, place(s.Step), t.faultText(s.Fault))
		case s.State == plan.StepBlocked && s.Step.Blocked == nil:
			absent.add(s.Step.Address.Device, place(s.Step), fmt.Sprintf("  %s not there to be set: %s\n", t.color(yellow, "!"), Clean(s.Text)))
		}
	}
	for _, o := range r.Obligations {
		if o.Fault != nil {
			at := o.Obligation.Address
			faults.add(at.Device, Clean(at.Device+"/"+at.Local()), t.faultText(o.Fault))
		}
	}
	return faults, absent
}

func (t *textWriter) tell(all findings) {
	for _, f := range all {
		t.f("\n%s\n%s", t.bold(f.title()), f.text)
	}
}

func (t *textWriter) faultText(f *plan.Fault) string {
	inner := &textWriter{o: t.o}
	inner.fault(f, "  ")
	return inner.b.String()
}

// finding is something to be told of a place, and the other places of which the very
// same is to be told but for the device's name.
type finding struct {
	at, text, same string
	others         []string
}

type findings []*finding

func (f *findings) add(device, at, text string) {
	nameless := func(s string) string {
		if device == "" {
			return s
		}
		return strings.ReplaceAll(s, Clean(device), "\x00") // cleaned texts have none
	}
	same := nameless(at) + "\n" + nameless(text)
	for _, other := range *f {
		if other.same == same {
			other.others = append(other.others, Clean(device))
			return
		}
	}
	*f = append(*f, &finding{at: at, text: text, same: same})
}

// title names all places.
func (f *finding) title() string {
	const few = 12
	switch n := len(f.others); {
	case n == 0:
		return f.at
	case n <= few:
		return f.at + ", and the same of " + strings.Join(f.others, ", ")
	default:
		return f.at + ", and the same of " + strings.Join(f.others[:few], ", ") + fmt.Sprintf(" and %d more", n-few)
	}
}

// unsettled tells of steps whose end nobody saw.
func (t *textWriter) unsettled(r *apply.Report) {
	before := "\n"
	for _, s := range r.Steps {
		switch s.State { //nolint:exhaustive // the others are settled
		case plan.StepInDoubt:
			t.f("%s  %s %s is in doubt: %s. Apply again: it reads live first.\n", before, t.color(red, "✗"), place(s.Step), Clean(s.Text))
		case plan.StepLeft:
			t.f("%s  - %s is still going on in %s. Apply again to follow it.\n", before, place(s.Step), s.Step.Address.System)
		default:
			continue
		}
		before = ""
	}
}

// putBack tells what a step had changed for a moment only.
func (t *textWriter) putBack(r *apply.Report) {
	before := "\n"
	for _, o := range r.Obligations {
		if o.Fault == nil {
			t.f("%s  = put back: %s\n", before, Clean(o.Obligation.Text))
			before = ""
		}
	}
}
