package apply

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Ledger is what runs of a plan have spent on a step that is not at its end.
type Ledger struct {
	Attempt int           // the whole attempt that went on, from 1
	Spent   time.Duration // of the step's budget, in all of its attempts
	Busy    time.Duration // of the budget for a busy system, in this attempt
}

// carry goes on with what earlier runs spent.
func (j *job) carry(l Ledger) {
	if l.Attempt > 1 {
		j.attempt, j.visit.memo = l.Attempt, attemptMemo(l.Attempt)
	}
	j.spentBefore, j.report.BusySpent, j.busyCarried = l.Spent, l.Busy, l.Busy
}

// attemptMemo remembers nothing but the number of a whole attempt.
func attemptMemo(n int) plan.Memo { return plan.Memo{plan.MemoAttempt: strconv.Itoa(n)} }

// rest decides when a job is visited again, or that it has used up its ledger.
func (r *run) rest(j *job, out outcome) {
	now := r.deps.Clock.Now()
	j.visit.stage, j.visit.memo = out.stage, out.memo
	o := r.options
	if out.memo == nil && j.attempt > 1 {
		j.visit.memo = attemptMemo(j.attempt)
	}
	if out.evidence != nil {
		j.evidence = out.evidence
	}
	if n := out.memo.Attempt(); out.memo != nil && n != j.attempt {
		// The lock's ledger is an attempt's: neither is billed to the other.
		j.attempt, j.busyBefore, j.busyTries = n, j.report.BusySpent, 0
		if f := r.deps.Journal.attempt(j.step, n); f != nil {
			r.broken(f)
		}
	}
	pause, kind := out.after, plan.EventWait
	switch {
	case out.fault == nil && out.look:
		pause = doubled(o.LookMin, o.LookMax, j.looks)
		j.looks++
	case out.fault == nil:
		j.retries, j.busyTries = 0, 0
	case out.fault.Code == plan.CodeNotApplied:
		j.readBacks++
		if j.readBacks >= o.ReadBacks {
			r.end(j, failed(out.fault))
			return
		}
		pause, kind = o.ReadBackPause, plan.EventRetry
	case out.fault.Class() == plan.ClassBusy:
		least, most, all := r.patience(j)
		if busy := j.report.BusySpent - j.busyBefore; busy >= all {
			r.end(j, failed(r.account(j, out.fault.With("busy for", busy.Round(time.Second).String()), now)))
			return
		}
		pause, kind = max(doubled(least, most, j.busyTries), min(out.fault.After, most)), plan.EventRetry
		j.busyTries++
		j.busySince = now
	default:
		if j.retries >= o.Retries {
			r.end(j, failed(out.fault.With("tried", fmt.Sprintf("%d times", j.retries+1))))
			return
		}
		pause, kind = doubled(o.RetryMin, time.Minute, j.retries), plan.EventRetry
		j.retries++
		j.report.RetrySpent++
	}
	if left := r.left(j, now); left <= 0 {
		r.end(j, failed(r.timeout(j, out)))
		return
	} else if kind == plan.EventWait && pause > left {
		pause = left // one last look at the end of the budget
	}
	if text := out.text; text != "" && text != j.observed || !j.busySince.IsZero() {
		if j.observed = text; text == "" {
			text = out.fault.Summary
		}
		if f := r.deps.Journal.wait(j.step, text, j.report.BusySpent-j.busyCarried); f != nil {
			r.broken(f)
		}
	}
	j.due, j.at = now.Add(pause), resting
	r.rests.put(j)
	r.tell(plan.Event{Kind: kind, Step: j.step, After: pause, Text: out.text, Fault: out.fault})
}

// patience is how a busy system is waited for: a node's lock as the ironic block
// of its device says, all else as the run's options do. Cleaning has one deadline,
// which the wait for the lock before it does not outlast (reference, phase 7).
func (r *run) patience(j *job) (least, most, all time.Duration) {
	least, most, all = r.options.BusyMin, r.options.BusyMax, r.options.BusyBudget
	if t := r.scope.Target(j.step.Address.Device); t != nil && t.Ironic != nil && t.Ironic.LockMaxWait > 0 && j.step.Address.System == "ironic" {
		least, most, all = t.Ironic.LockBackoffMin, t.Ironic.LockBackoffMax, t.Ironic.LockMaxWait
	}
	if slices.Contains(j.step.Effects, plan.EffectErase) {
		all = min(all, r.budget(j))
	}
	return least, most, all
}

// left is what is left of a step's budget. Time spent on a busy system is in a
// ledger of its own and does not count; what earlier runs of the plan spent does.
func (r *run) left(j *job, now time.Time) time.Duration { return r.budget(j) - r.spent(j, now) }

func (r *run) spent(j *job, now time.Time) time.Duration {
	return j.spentBefore + now.Sub(j.began) - (j.report.BusySpent - j.busyCarried)
}

func (r *run) budget(j *job) time.Duration {
	if b := time.Duration(j.step.Budget); b != 0 {
		return b
	}
	return r.options.Budget
}

func (r *run) timeout(j *job, out outcome) *plan.Fault {
	f := plan.NewFault(plan.CodeTimeout, "%s did not come to its end within %s", j.step.Address, r.budget(j)).With("last observed", out.text)
	if out.fault != nil {
		f = f.With("last fault", out.fault.Error())
	}
	return r.account(j, f, r.deps.Clock.Now())
}

// account adds to a fault that ends a wait what the system last said, and what
// each ledger has spent and has left.
func (r *run) account(j *job, f *plan.Fault, now time.Time) *plan.Fault {
	for k, v := range j.evidence {
		if f.Evidence[k] == "" {
			f = f.With(k, v)
		}
	}
	text := func(d time.Duration) string { return max(d, 0).Round(time.Second).String() }
	busy := j.report.BusySpent - j.busyBefore
	_, _, all := r.patience(j)
	return f.With("spent", text(r.spent(j, now))).With("left", text(r.left(j, now))).
		With("spent on busy", text(busy)).With("left for busy", text(all-busy))
}
