package plan

import (
	"encoding/json"
	"strconv"
	"time"
)

// Outcome is what one exchange of a step runner came to.
type Outcome string

// The outcomes.
const (
	OutcomeDone    Outcome = "done"    // the exchange took place and the step is finished
	OutcomeAlready Outcome = "already" // nothing had to be sent
	OutcomeWait    Outcome = "wait"    // ask again after Result.After
	OutcomeFailed  Outcome = "failed"  // Result.Fault says why
)

// Result is the answer of a step runner to one bounded exchange. Waiting,
// retrying and budgets live outside the runner.
type Result struct {
	Outcome  Outcome
	After    time.Duration // with OutcomeWait: not before this much later
	Observed string        // with OutcomeWait: what was seen, for people
	Memo     Memo          // with OutcomeWait: handed to the next exchange of this step
	// Evidence, with OutcomeWait, is what the fault shall carry if the waiting ends
	// here because the budget does.
	Evidence map[string]string
	Fault    *Fault  // with OutcomeFailed
	Checks   []Check // verdicts that a verify step reached
	// Opens, with OutcomeWait, is what the next exchange will make it necessary to
	// put back should the step not come to its good end. It is on disk before that
	// exchange.
	Opens *Obligation
	// Closes says that what an earlier exchange opened need not be put back any more.
	Closes bool
}

// Memo is what a runner needs to remember between two exchanges of one step:
// a job id, that the request was sent. It must be plain JSON, so that a durable
// engine can keep it.
type Memo map[string]string

// MemoAttempt is the entry of a memo that counts whole attempts within one step,
// from 1; absent is 1. Each attempt has the full budget for waiting on a lock, and
// the number outlives a run that was killed.
const MemoAttempt = "attempt"

// Attempt is the number of the attempt that goes on.
func (m Memo) Attempt() int {
	if n, err := strconv.Atoi(m[MemoAttempt]); err == nil && n > 0 {
		return n
	}
	return 1
}

// Done says that the step's exchange took place.
func Done() Result { return Result{Outcome: OutcomeDone} }

// Already says that the live value was the wanted one.
func Already() Result { return Result{Outcome: OutcomeAlready} }

// Wait asks for another exchange after a pause; observed tells people what the
// system is doing meanwhile.
func Wait(after time.Duration, observed string, memo Memo) Result {
	return Result{Outcome: OutcomeWait, After: after, Observed: observed, Memo: memo}
}

// Opening is the result with an obligation that the next exchange begins.
func (r Result) Opening(o Obligation) Result { r.Opens = &o; return r }

// Closing is the result with the end of the step's obligation.
func (r Result) Closing() Result { r.Closes = true; return r }

// Failed ends the step with a classified fault.
func Failed(f *Fault) Result { return Result{Outcome: OutcomeFailed, Fault: f} }

// Verified ends a verify step with its verdicts; the interpreter fails the
// step when one of them is VerdictFail.
func Verified(checks ...Check) Result { return Result{Outcome: OutcomeDone, Checks: checks} }

// MarshalJSON keeps durations readable.
func (r Result) MarshalJSON() ([]byte, error) {
	out := map[string]any{"outcome": r.Outcome}
	if r.After > 0 {
		out["after"] = r.After.String()
	}
	if r.Observed != "" {
		out["observed"] = r.Observed
	}
	if len(r.Memo) > 0 {
		out["memo"] = r.Memo
	}
	if len(r.Evidence) > 0 {
		out["evidence"] = r.Evidence
	}
	if r.Fault != nil {
		out["fault"] = r.Fault
	}
	if len(r.Checks) > 0 {
		out["checks"] = r.Checks
	}
	if r.Opens != nil {
		out["opens"] = r.Opens
	}
	if r.Closes {
		out["closes"] = true
	}
	return json.Marshal(out)
}
