package view

import (
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// Status writes what a journal tells of its plan's runs: whether one is at work,
// what is under way, what failed, what was left open.
func Status(w io.Writer, p apply.Past, open []plan.Obligation, now time.Time, color bool) error {
	t := &textWriter{o: TextOptions{Color: color}}
	done, failed, notRun, blocked := 0, 0, 0, 0
	for _, s := range p.Steps {
		switch s.State {
		case plan.StepDone, plan.StepAlready:
			done++
		case plan.StepFailed, plan.StepInDoubt:
			failed++
		case plan.StepNotRun, plan.StepSkipped:
			notRun++
		case plan.StepBlocked:
			blocked++
		case plan.StepLeft: // has a line of its own, like what is under way
		}
	}
	t.f("Plan %s of site %s: %s\n", Clean(p.PlanID), Clean(p.Site), t.life(p, now))
	t.f("%d of %d steps done, %d failed, %d not run, %d blocked; begun %s ago, last heard of %s ago\n", done, max(p.Total, len(p.Steps)), failed, notRun, blocked, ago(now, p.Began), ago(now, p.Last))
	width := 0
	for _, s := range p.Steps {
		if shown(s) {
			width = max(width, utf8.RuneCountInString(Clean(s.Address)))
		}
	}
	for _, s := range p.Steps {
		if !shown(s) {
			continue
		}
		mark, text := "…", "under way for "+ago(now, s.Began)
		switch {
		case s.Fault != nil:
			mark, text = t.color(red, "✗"), string(s.State)+": "+string(s.Fault.Code)+": "+s.Fault.Summary
		case s.State != "":
			mark, text = t.color(red, "✗"), string(s.State)
			if s.Text != "" {
				text += ": " + s.Text
			}
		case s.Text != "":
			text += ": " + s.Text
		}
		t.f("  %s %-*s  %s\n", mark, width, Clean(s.Address), Clean(text))
	}
	for _, o := range open {
		t.f("  %s %s: to be put back: %s\n", t.color(yellow, "!"), Clean(o.Address.String()), Clean(o.Text))
	}
	t.f("Journal %s\n", Clean(p.Path))
	_, err := io.WriteString(w, t.b.String())
	return err
}

// life says whether somebody is at work on the plan.
func (t *textWriter) life(p apply.Past, now time.Time) string {
	switch {
	case p.Running && now.Sub(p.Last) > 10*time.Minute:
		return t.color(yellow, fmt.Sprintf("process %d is at work and has written nothing for %s", p.PID, ago(now, p.Last)))
	case p.Running:
		return t.color(green, fmt.Sprintf("process %d is at work", p.PID))
	case p.Ended:
		return "came to its end"
	case p.Stopped:
		return t.color(yellow, "was stopped; go on with enroll apply --resume PLANFILE, or enroll apply DEVICE…")
	default:
		return t.color(red, "died in the middle; go on with enroll apply --resume PLANFILE, or enroll apply DEVICE…: both read live first")
	}
}

// ago is the time since then, in words that do not change every second.
func ago(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case then.IsZero():
		return "an unknown time"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Journals lists the plans of a folder, a line each.
func Journals(w io.Writer, all []apply.Past, now time.Time, color bool) error {
	t := &textWriter{o: TextOptions{Color: color}}
	for _, p := range all {
		t.f("%-12s  %-12s  %4d steps  %10s ago  %s\n", Clean(p.PlanID), Clean(p.Site), p.Total, ago(now, p.Last), t.life(p, now))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// shown are the steps that a person may have to do something about, or waits for.
func shown(s apply.PastStep) bool {
	switch s.State {
	case plan.StepDone, plan.StepAlready, plan.StepSkipped, plan.StepBlocked, plan.StepNotRun:
		return false
	case plan.StepFailed, plan.StepInDoubt, plan.StepLeft:
		return true
	}
	return true // under way
}
