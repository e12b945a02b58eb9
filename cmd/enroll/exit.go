package main

import (
	"errors"
	"fmt"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// The exit codes (design section 10). They are an interface.
const (
	exitDone        = 0
	exitError       = 1
	exitChanges     = 2
	exitUsage       = 3
	exitConfig      = 10
	exitLock        = 11
	exitStale       = 12
	exitDenied      = 13
	exitPartial     = 14
	exitVerify      = 15
	exitInterrupted = 130
)

// exitStatus is an error that only carries an exit code: everything that
// people need was printed already.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError is a mistake on the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// exitCode maps an error to the exit code of its kind.
func exitCode(err error) int {
	var status exitStatus
	var usage usageError
	var fault *plan.Fault
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &fault):
		return faultExit(fault)
	}
	return exitError
}

// faultExit is the exit code of a fault that ends a whole command.
func faultExit(f *plan.Fault) int {
	switch f.Code { //nolint:exhaustive // all others are plain errors
	case plan.CodeConfigInvalid, plan.CodeSecretMissing, plan.CodeSecretInvalid:
		return exitConfig
	case plan.CodePlanStale, plan.CodePlanExpired, plan.CodePlanApplied, plan.CodePlanInvalid:
		return exitStale
	case plan.CodeLockHeld, plan.CodeDHCPLockHeld:
		return exitLock
	case plan.CodeNodeOwned, plan.CodePolicyApproval, plan.CodeNotApproved:
		return exitDenied
	case plan.CodeInspectionMismatch:
		return exitVerify
	case plan.CodeInterrupted:
		return exitInterrupted
	}
	return exitError
}

// planExit is the exit code of a plan that was shown.
func planExit(p *plan.Plan, detailed bool) int {
	switch {
	case p.Denied():
		return exitDenied
	case len(p.Errors()) > 0:
		return planErrorExit(p)
	case len(p.FailedChecks()) > 0 && !p.HasWork():
		return exitVerify
	case detailed && (p.HasWork() || p.Summary.Blocked > 0):
		return exitChanges
	}
	return exitDone
}

// halted are the devices that will not reach available because a person has to
// act first: a transition of theirs is blocked, and not because of an owner.
func halted(p *plan.Plan) map[string]bool {
	out := map[string]bool{}
	for _, s := range p.Steps {
		if s.Blocked != nil && s.Blocked.Rule != plan.RuleOwned && (s.Action == plan.ActionTransition || s.Action == plan.ActionWait) {
			out[s.Address.Device] = true
		}
	}
	return out
}

// applyExit is the exit code of an apply: what running came to (nil: there was
// nothing to run) joined with what the plan could not even try.
func applyExit(r *apply.Report, p *plan.Plan) int {
	applied, planned := exitDone, planExit(p, false)
	if r != nil {
		applied = reportExit(r, len(p.Devices))
	}
	switch stuck := halted(p); {
	case applied == exitInterrupted || planned == exitDone && len(stuck) == 0:
		return applied
	case planned == exitDenied || planned != exitDone && applied == exitDone:
		return planned
	case applied != exitDone:
		return applied
	case len(stuck) < len(p.Devices):
		return exitPartial
	}
	return exitError
}

// planErrorExit: some devices of several cannot be planned, or none can.
func planErrorExit(p *plan.Plan) int {
	failed := 0
	for _, d := range p.Devices {
		if d.Verdict == plan.VerdictFailed || d.Verdict == plan.VerdictUnreadable {
			failed++
		}
	}
	if failed > 0 && failed < len(p.Devices) {
		return exitPartial
	}
	return exitError
}

// reportExit is the exit code of a run: done, interrupted, or by its failed
// devices. When some of the plan's devices failed it is 14; when all did, the code
// that their faults share, else 1.
func reportExit(r *apply.Report, devices int) int {
	failed := r.Failed()
	switch {
	case r.Interrupted:
		return exitInterrupted
	case len(failed) == 0 && r.Alone()+r.Open() > 0:
		return exitPartial
	case len(failed) == 0:
		return exitDone
	case len(failed) < max(devices, len(r.Devices)):
		return exitPartial
	}
	shared := exitDone
	for _, d := range failed {
		code := exitError
		if d.Fault != nil {
			code = faultExit(d.Fault)
		}
		if shared != exitDone && shared != code {
			return exitError
		}
		shared = code
	}
	return shared
}
