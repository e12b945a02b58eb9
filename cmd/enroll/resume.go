package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// resumes looks whether there is a run of the plan that can be continued, when
// that was asked for. Only a plan that was approved has a journal.
func (a *app) resumes(f *applyFlags, p *plan.Plan) error {
	if !f.resume {
		return nil
	}
	dir := a.journalDir(*f)
	past, err := apply.ReadJournal(dir, p.PlanID)
	if err != nil {
		return err
	}
	if past.First.IsZero() {
		return usageError{fmt.Errorf("there is nothing to resume: %s has no journal of plan %s; enroll apply %s begins it", dir, p.PlanID, f.file)}
	}
	if f := past.Of(p.PlanID, p.ContentHash); f != nil {
		return f
	}
	f.resumed = &past
	return nil
}

// continued tells what goes on, and by whose approval.
func continued(past apply.Past, now time.Time) string {
	return fmt.Sprintf("Continues the run that began %s ago, within the approval that it had: %d of %d steps are done, %d were begun.",
		now.Sub(past.First).Round(time.Second), len(past.Done), past.Total, len(past.Begun))
}

// nextCommand is what a person types after a run that did not do everything; ""
// when nothing is left. A plan that came to its end is used up.
func nextCommand(r *apply.Report, file string) string {
	var names []string
	for _, d := range r.Failed() {
		names = append(names, d.Name)
	}
	switch {
	case r.Interrupted && file != "":
		return "enroll apply --resume " + file
	case len(names) == 0 && r.Open() > 0:
		for _, o := range r.Obligations {
			if d := o.Obligation.Address.Device; o.Fault != nil && !slices.Contains(names, d) {
				names = append(names, d)
			}
		}
		return "enroll apply " + someNames(names)
	case len(names) == 0:
		return ""
	case r.Interrupted:
		return "enroll apply " + someNames(names)
	}
	return "enroll plan " + someNames(names)
}

// someNames are as many names as a line takes.
func someNames(names []string) string {
	const few = 12
	if len(names) > few {
		return strings.Join(names[:few], " ") + fmt.Sprintf(" …and %d more", len(names)-few)
	}
	return strings.Join(names, " ")
}
