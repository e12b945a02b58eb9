package view

import (
	"encoding/json"
	"io"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// The lines of a stream beside the interpreter's events.
const (
	StreamPlan   plan.EventKind = "plan"   // the first line: the plan document
	StreamReport plan.EventKind = "report" // the last line: what the run came to
)

// Stream writes an apply as JSON lines, for programs: the plan, each event as it
// happens, the report. StreamSchema describes a line. A line that cannot be
// written is kept as an error and changes nothing: the journal is what counts.
type Stream struct {
	w     io.Writer
	now   func() time.Time
	began time.Time
	seq   int
	err   error
}

// NewStream begins a stream; now is the clock.
func NewStream(w io.Writer, now func() time.Time) *Stream {
	return &Stream{w: w, now: now, began: now()}
}

// streamLine is one line. Durations are seconds.
type streamLine struct {
	Seq     int            `json:"seq"`
	Time    time.Time      `json:"time"`
	Elapsed float64        `json:"elapsed"` // since the stream began
	Kind    plan.EventKind `json:"kind"`

	Device  string         `json:"device,omitempty"` // empty for what devices share
	Step    string         `json:"step,omitempty"`
	Address string         `json:"address,omitempty"`
	Action  plan.Action    `json:"action,omitempty"`
	Text    string         `json:"text,omitempty"`
	State   plan.StepState `json:"state,omitempty"`
	Fault   *plan.Fault    `json:"fault,omitempty"`
	After   float64        `json:"after,omitempty"` // until the next look
	Spent   float64        `json:"spent,omitempty"` // since the step began

	Plan   json.RawMessage `json:"plan,omitempty"`
	Report *apply.Report   `json:"report,omitempty"`
}

func (s *Stream) write(l streamLine) {
	s.seq++
	l.Seq = s.seq
	if l.Time.IsZero() {
		l.Time = s.now()
	}
	l.Elapsed = seconds(l.Time.Sub(s.began))
	l.Time = l.Time.UTC()
	raw, err := json.Marshal(l)
	if err == nil {
		_, err = s.w.Write(append(plan.VisibleJSON(raw), '\n'))
	}
	if err != nil && s.err == nil {
		s.err = err
	}
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// Plan writes the plan.
func (s *Stream) Plan(p *plan.Plan) error {
	raw, err := plan.Encode(p)
	if err != nil {
		return err
	}
	s.write(streamLine{Kind: StreamPlan, Plan: raw})
	return s.err
}

// Event writes an event.
func (s *Stream) Event(e plan.Event) {
	l := streamLine{Time: e.Time, Kind: e.Kind, Text: e.Text, State: e.State, Fault: e.Fault, After: seconds(e.After), Spent: seconds(e.Spent)}
	if e.Step != nil {
		l.Device, l.Step, l.Address, l.Action = e.Step.Address.Device, e.Step.ID, e.Step.Address.String(), e.Step.Action
	}
	s.write(l)
}

// Report writes the end, nil when nothing had to be run, and gives the first
// error of the stream.
func (s *Stream) Report(r *apply.Report) error {
	s.write(streamLine{Kind: StreamReport, Report: r})
	return s.err
}
