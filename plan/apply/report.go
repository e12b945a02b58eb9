package apply

import (
	"encoding/json"
	"sort"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// StepReport is how a step ended.
type StepReport struct {
	Step  *plan.Step
	State plan.StepState
	Fault *plan.Fault
	Text  string // why it was not run
	Began time.Time
	Spent time.Duration // from its first exchange to its end
	// The ledgers, as far as they were used.
	Exchanges  int
	BusySpent  time.Duration
	RetrySpent int
	Checks     []plan.Check
}

// DeviceReport sums up a device.
type DeviceReport struct {
	Name  string
	Fault *plan.Fault // the first one, nil when nothing failed
	At    *plan.Step  // the step that failed; nil when the device was held from the beginning
	// Counts of its own steps. Blocked ones are blocked by the plan.
	Done, Already, NotRun, Blocked int
}

// OK reports whether everything that the plan wanted of the device came about.
func (d DeviceReport) OK() bool { return d.Fault == nil && d.NotRun == 0 }

// Report is the outcome of a run.
type Report struct {
	PlanID      string
	Began       time.Time
	Spent       time.Duration
	Steps       []StepReport // in the plan's order
	Devices     []DeviceReport
	Interrupted bool
	Obligations []ObligationReport // what had to be put back
}

// ObligationReport is something that a step left open, put back when there is
// no fault.
type ObligationReport struct {
	Obligation plan.Obligation `json:"obligation"`
	Fault      *plan.Fault     `json:"fault,omitempty"`
}

// MarshalJSON writes the report for programs. Durations are texts ("1.5s").
func (r *Report) MarshalJSON() ([]byte, error) {
	type step struct {
		ID        string         `json:"id"`
		Address   plan.Address   `json:"address"`
		Action    plan.Action    `json:"action"`
		State     plan.StepState `json:"state"`
		Text      string         `json:"text,omitempty"`
		Fault     *plan.Fault    `json:"fault,omitempty"`
		Spent     string         `json:"spent"`
		Exchanges int            `json:"exchanges"`
		Retries   int            `json:"retries"`
		BusySpent string         `json:"busy_spent"`
		Checks    []plan.Check   `json:"checks"`
	}
	type device struct {
		Name    string      `json:"name"`
		OK      bool        `json:"ok"`
		Done    int         `json:"done"`
		Already int         `json:"already"`
		NotRun  int         `json:"not_run"`
		Blocked int         `json:"blocked"`
		Fault   *plan.Fault `json:"fault,omitempty"`
	}
	out := struct {
		PlanID      string    `json:"plan_id"`
		Began       time.Time `json:"began"`
		Spent       string    `json:"spent"`
		Interrupted bool      `json:"interrupted"`
		Devices     []device  `json:"devices"`
		Steps       []step    `json:"steps"`

		Obligations []ObligationReport `json:"obligations"`
	}{PlanID: r.PlanID, Began: r.Began, Spent: r.Spent.String(), Interrupted: r.Interrupted, Devices: []device{}, Steps: []step{}, Obligations: append([]ObligationReport{}, r.Obligations...)}
	for _, d := range r.Devices {
		out.Devices = append(out.Devices, device{d.Name, d.OK(), d.Done, d.Already, d.NotRun, d.Blocked, d.Fault})
	}
	for _, s := range r.Steps {
		checks := s.Checks
		if checks == nil {
			checks = []plan.Check{}
		}
		out.Steps = append(out.Steps, step{
			s.Step.ID, s.Step.Address, s.Step.Action, s.State, s.Text, s.Fault,
			s.Spent.String(), s.Exchanges, s.RetrySpent, s.BusySpent.String(), checks,
		})
	}
	return json.Marshal(out)
}

// Checks are the verdicts that were reached on the way.
func (r *Report) Checks() []plan.Check {
	var out []plan.Check
	for _, s := range r.Steps {
		out = append(out, s.Checks...)
	}
	return out
}

// Alone counts the steps about what no device has that did not come about. The
// plan showed the blocked ones as such.
func (r *Report) Alone() int {
	n := 0
	for _, s := range r.Steps {
		if s.Step.Address.Shared() && len(s.Step.Serves) == 0 && !s.State.OK() && s.State != plan.StepBlocked {
			n++
		}
	}
	return n
}

// Open counts what could not be put back.
func (r *Report) Open() int {
	n := 0
	for _, o := range r.Obligations {
		if o.Fault != nil {
			n++
		}
	}
	return n
}

// Failed are the devices that did not come to their end.
func (r *Report) Failed() []DeviceReport {
	var out []DeviceReport
	for _, d := range r.Devices {
		if !d.OK() {
			out = append(out, d)
		}
	}
	return out
}

// report sums up. A device counts as failed by its first fault; one whose
// shared step failed has that fault.
func (r *run) report() *Report {
	rep := &Report{PlanID: r.in.PlanID, Began: r.began, Spent: r.deps.Clock.Now().Sub(r.began), Interrupted: r.halted && !r.broke, Obligations: r.obligations}
	devices := map[string]*DeviceReport{}
	of := func(name string) *DeviceReport {
		if devices[name] == nil {
			devices[name] = &DeviceReport{Name: name}
		}
		return devices[name]
	}
	for name, f := range r.in.Held {
		of(name).Fault = f
	}
	for _, j := range r.jobs {
		rep.Steps = append(rep.Steps, j.report)
		if d := j.step.Address.Device; d != "" {
			of(d).count(j.report)
			continue
		}
		for _, name := range j.step.Serves {
			of(name).served(j.report)
		}
	}
	for _, d := range devices {
		rep.Devices = append(rep.Devices, *d)
	}
	sort.Slice(rep.Devices, func(a, b int) bool { return plan.NaturalLess(rep.Devices[a].Name, rep.Devices[b].Name) })
	return rep
}

// served takes in a step that serves the device among others: its failure is the
// device's too, its success is nobody's own.
func (d *DeviceReport) served(s StepReport) {
	if s.Fault != nil && d.Fault == nil {
		d.Fault, d.At = s.Fault, s.Step
	}
}

func (d *DeviceReport) count(s StepReport) {
	switch s.State {
	case plan.StepDone:
		d.Done++
	case plan.StepAlready:
		d.Already++
	case plan.StepBlocked:
		d.Blocked++ // the plan showed it as such; it is no failure of the run
	case plan.StepFailed, plan.StepInDoubt:
		d.NotRun++
		if d.Fault == nil {
			d.Fault, d.At = s.Fault, s.Step
		}
	case plan.StepSkipped, plan.StepNotRun, plan.StepLeft:
		d.NotRun++
	}
}
