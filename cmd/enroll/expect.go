package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/enroll-dev/enroll/plan"
)

var contentHash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkExpect wants a whole hash: the beginning of one is easily made to fit.
func (f *applyFlags) checkExpect() error {
	if f.expect != "" && !contentHash.MatchString(f.expect) {
		return usageError{fmt.Errorf("--expect wants a whole content hash, sha256: and 64 hexadecimal digits, as enroll show --hash prints it; not %q", f.expect)}
	}
	return nil
}

// expectPlan refuses a plan made now that is not the approved one.
func (a *app) expectPlan(f applyFlags, p *plan.Plan) error {
	if f.expect == "" || p.ContentHash == f.expect {
		return nil
	}
	if err := a.print(p, shape{format: "text"}); err != nil && f.format != "json" {
		return err
	}
	return plan.NewFault(plan.CodePlanStale, "what would be done now is not what was approved; nothing was done").
		With("approved", f.expect).With("now", p.ContentHash).
		WithHint("Review the plan above and approve its content; enroll diff says what changed, when the approved plan is at hand as a file.")
}

// expectFile refuses a plan file that is not the approved one, or that does not
// cover everything that a plan made now would do. It gives the faults of devices
// that could not be planned again.
func (a *app) expectFile(ctx context.Context, f applyFlags, p *plan.Plan, s *session) (map[string]*plan.Fault, error) {
	if f.expect == "" {
		return nil, nil
	}
	if p.ContentHash != f.expect {
		return nil, plan.NewFault(plan.CodeNotApproved, "the file is not the plan that was approved").
			With("approved", f.expect).With("file", p.ContentHash).WithHint("Apply the file that was approved, or have this one approved.")
	}
	now, err := s.build(ctx, plan.Selection{Targets: p.Scope.Targets, Excludes: p.Scope.Excludes}, plan.Desired(s.scope, s.kinds), a.sys.now())
	if err != nil {
		return nil, err
	}
	strays := now.Outside(p)
	if len(strays) == 0 {
		return planFaults(now), nil
	}
	fault := plan.NewFault(plan.CodePlanStale, "%s would be done now that the approved plan does not cover; nothing was done", counted(len(strays), "step", "steps"))
	for _, stray := range strays {
		fault = fault.With(stray.Step.Address.String(), stray.Why)
	}
	return nil, fault.WithHint("Make a new plan, see with enroll diff what changed, and have it approved.")
}
