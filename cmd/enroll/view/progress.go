package view

import (
	"fmt"
	"io"
	"sort"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// Progress writes what happens during apply, one line per thing that a person
// may want to know. A wait is told once per new thing that the system does.
type Progress struct {
	t     textWriter
	w     io.Writer
	began time.Time
	width int               // of an address
	told  map[string]string // step id → the last wait
	idle  map[string]bool   // device and why its further steps do not begin → told
	waits bool              // tell what steps wait for

	mu     sync.Mutex
	active map[string]activeStep // step id → begun and not over
	over   int
	total  int
}

// activeStep is a step under way.
type activeStep struct {
	step  *plan.Step
	since time.Time
	text  string // what it waits for
}

// NewProgress writes to w; the plan gives the width of the columns.
func NewProgress(w io.Writer, p *plan.Plan, color bool) *Progress {
	pr := &Progress{t: textWriter{o: TextOptions{Color: color}}, w: w, told: map[string]string{}, idle: map[string]bool{}, waits: true, active: map[string]activeStep{}, total: len(p.Steps)}
	for _, s := range p.Steps {
		if s.Blocked == nil {
			pr.width = max(pr.width, utf8.RuneCountInString(place(s)))
		}
	}
	return pr
}

// place is where a step acts, as people say it.
func place(s *plan.Step) string {
	if s.Address.Device == "" {
		return Clean(s.Address.Local())
	}
	return Clean(s.Address.Device + "/" + s.Address.Local())
}

// Event takes one event. A line that cannot be written changes nothing: the
// journal and the report are what counts.
func (p *Progress) Event(e plan.Event) {
	// Written without the lock: a live block asks for its rows while it takes a line.
	if line := p.text(e); line != "" {
		_, _ = io.WriteString(p.w, line)
	}
}

// text is the line that an event is worth, "" when it is none.
func (p *Progress) text(e plan.Event) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		p.began = e.Time
	}
	p.follow(e)
	switch e.Kind {
	case plan.EventBegin:
	case plan.EventHold:
		if !p.waits {
			break
		}
		return p.line(e, p.t.color(blue, "…"), Clean(e.Text))
	case plan.EventRestore:
		return p.line(e, p.t.color(yellow, "!"), "putting back: "+Clean(e.Text))
	case plan.EventStop:
		return p.line(e, "", "nothing new is started: "+Clean(e.Text))
	case plan.EventAlive:
		if p.waits {
			return p.line(e, "", Clean(e.Text))
		}
	case plan.EventWait:
		if text := Clean(e.Text); p.waits && p.told[e.Step.ID] != text {
			p.told[e.Step.ID] = text
			return p.line(e, p.t.color(blue, "…"), text)
		}
	case plan.EventRetry:
		return p.line(e, p.t.color(yellow, "!"), string(e.Fault.Code)+": "+Clean(e.Fault.Summary)+"; again in "+e.After.String())
	case plan.EventEnd:
		if e.Step.Address.Device != "" && (e.State == plan.StepSkipped || e.State == plan.StepNotRun) {
			return p.unbegun(e)
		}
		if e.State != plan.StepBlocked || e.Step.Blocked == nil { // what the plan had blocked was shown with the plan
			return p.line(e, p.mark(e.State), p.end(e))
		}
	}
	return ""
}

// unbegun is one line for all steps of a device that do not begin for one reason.
func (p *Progress) unbegun(e plan.Event) string {
	text := "further steps " + p.end(e)
	key := e.Step.Address.Device + "\n" + text
	if p.idle[key] {
		return ""
	}
	p.idle[key] = true
	return p.row(e, p.mark(e.State), Clean(e.Step.Address.Device), text)
}

// follow keeps what is under way.
func (p *Progress) follow(e plan.Event) {
	if e.Step == nil {
		return
	}
	a, under := p.active[e.Step.ID]
	switch e.Kind {
	case plan.EventBegin, plan.EventHold, plan.EventWait, plan.EventRetry, plan.EventRestore:
		if !under {
			a = activeStep{step: e.Step, since: e.Time}
		}
		a.text = e.Text
		if e.Fault != nil {
			a.text = string(e.Fault.Code) + ": " + e.Fault.Summary
		}
		p.active[e.Step.ID] = a
	case plan.EventEnd:
		delete(p.active, e.Step.ID)
		p.over++
	case plan.EventAlive, plan.EventStop:
	}
}

// Now writes how far the run is: a line for each step under way. now is the time.
func (p *Progress) Now(now time.Time) {
	p.mu.Lock()
	text := fmt.Sprintf("%d of %d steps over, %s under way\n", p.over, p.total, plural(len(p.active), "step"))
	for _, a := range p.rows() {
		text += fmt.Sprintf("  %-*s  for %s%s\n", p.width, place(a.step), ago(now, a.since), spentOf(a.step, now.Sub(a.since), a.text))
	}
	p.mu.Unlock()
	_, _ = io.WriteString(p.w, text)
}

// rows are the steps under way, by device and age.
func (p *Progress) rows() []activeStep {
	out := make([]activeStep, 0, len(p.active))
	for _, a := range p.active {
		out = append(out, a)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].step.Address.Device != out[j].step.Address.Device {
			return plan.NaturalLess(out[i].step.Address.Device, out[j].step.Address.Device)
		}
		if !out[i].since.Equal(out[j].since) {
			return out[i].since.Before(out[j].since)
		}
		return out[i].step.ID < out[j].step.ID
	})
	return out
}

// spentOf is a step's budget, and what it waits for.
func spentOf(s *plan.Step, spent time.Duration, text string) string {
	out := ""
	if s.Budget > 0 && spent > time.Minute {
		out = " of " + time.Duration(s.Budget).String()
	}
	if text != "" {
		out += ": " + Clean(text)
	}
	return out
}

func (p *Progress) line(e plan.Event, mark, text string) string {
	where := ""
	if e.Step != nil {
		where = place(e.Step)
	}
	return p.row(e, mark, where, text)
}

func (p *Progress) row(e plan.Event, mark, where, text string) string {
	if mark == "" {
		mark = " "
	}
	return fmt.Sprintf("%7.1fs  %s %-*s  %s\n", e.Time.Sub(p.began).Seconds(), mark, p.width, where, text)
}

func (p *Progress) mark(s plan.StepState) string {
	switch s {
	case plan.StepDone:
		return p.t.color(green, "✓")
	case plan.StepAlready:
		return "="
	case plan.StepFailed, plan.StepInDoubt:
		return p.t.color(red, "✗")
	case plan.StepBlocked:
		return p.t.color(yellow, "!")
	case plan.StepSkipped, plan.StepNotRun, plan.StepLeft:
		return "-"
	}
	return " "
}

func (p *Progress) end(e plan.Event) string {
	text := string(e.State)
	switch {
	case e.Fault != nil:
		text += ": " + string(e.Fault.Code) + ": " + Clean(e.Fault.Summary)
	case e.Text != "":
		text += ": " + Clean(e.Text)
	case e.State == plan.StepAlready:
		text = "already as wanted"
	case e.Spent >= time.Second:
		text += " in " + e.Spent.Round(100*time.Millisecond).String()
	}
	return text
}
