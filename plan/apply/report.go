package apply

import (
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
	Name                  string
	Fault                 *plan.Fault // the first one, nil when nothing failed
	At                    *plan.Step  // the step that failed
	Done, Already, NotRun int
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
}

// Checks are the verdicts that were reached on the way.
func (r *Report) Checks() []plan.Check {
	var out []plan.Check
	for _, s := range r.Steps {
		out = append(out, s.Checks...)
	}
	return out
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
