package apply

import (
	"fmt"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// rest decides when a job is visited again, or that it has used up its ledger.
func (r *run) rest(j *job, out outcome) {
	now := r.deps.Clock.Now()
	j.visit.stage, j.visit.memo = out.stage, out.memo
	o := r.options
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
		if j.report.BusySpent >= o.BusyBudget {
			r.end(j, failed(out.fault.With("busy for", j.report.BusySpent.Round(time.Second).String())))
			return
		}
		pause, kind = max(doubled(o.BusyMin, o.BusyMax, j.busyTries), min(out.fault.After, o.BusyMax)), plan.EventRetry
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
	if out.text != "" && out.text != j.observed {
		j.observed = out.text
		if f := r.deps.Journal.wait(j.step, out.text); f != nil {
			r.broken(f)
		}
	}
	j.due, j.at = now.Add(pause), resting
	r.rests.put(j)
	r.tell(plan.Event{Kind: kind, Step: j.step, After: pause, Text: out.text, Fault: out.fault})
}

// left is what is left of a step's budget. Time spent on a busy system is in a
// ledger of its own and does not count.
func (r *run) left(j *job, now time.Time) time.Duration {
	return r.budget(j) - (now.Sub(j.began) - j.report.BusySpent)
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
	return f
}
