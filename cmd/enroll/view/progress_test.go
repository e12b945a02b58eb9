package view

import (
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// What does not begin for one reason is one line for each device.
func TestProgressOfStepsThatDoNotBegin(t *testing.T) {
	var p plan.Plan
	for _, device := range []string{"gpu-001", "gpu-002"} {
		for _, kind := range []string{"credential", "hostname", "ntp"} {
			p.Steps = append(p.Steps, &plan.Step{ID: device + kind, Address: plan.Address{Site: "s", Device: device, System: "bmc", Kind: kind}})
		}
	}
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	var out strings.Builder
	pr := NewProgress(&out, &p, false)
	end := func(i int, state plan.StepState, text string) {
		e := plan.Event{Time: now, Kind: plan.EventEnd, Step: p.Steps[i], State: state, Text: text}
		if state == plan.StepFailed {
			e.Fault = plan.NewFault(plan.CodeBMCUnreachable, "no answer")
		}
		pr.Event(e)
	}
	end(0, plan.StepFailed, "")
	end(1, plan.StepSkipped, "bmc.credential failed")
	end(2, plan.StepSkipped, "bmc.credential failed")
	end(3, plan.StepDone, "")
	end(4, plan.StepNotRun, "the run was stopped first")
	end(5, plan.StepNotRun, "the run was stopped first")
	want := `    0.0s  ✗ gpu-001/bmc.credential  failed: BMC_UNREACHABLE: no answer
    0.0s  - gpu-001                 further steps skipped: bmc.credential failed
    0.0s  ✓ gpu-002/bmc.credential  done
    0.0s  - gpu-002                 further steps not run: the run was stopped first
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
