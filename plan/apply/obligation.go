package apply

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// obligationsFile is one file for all plans of a journal folder: what one run
// left open has to be found by the next one, whatever plan that applies.
const obligationsFile = "obligations.jsonl"

// obligationEntry is one of its lines.
type obligationEntry struct {
	Time       time.Time       `json:"time"`
	What       string          `json:"what"` // open, closed
	PlanID     string          `json:"plan_id"`
	Obligation plan.Obligation `json:"obligation"`
}

const (
	wroteOpen   = "open"
	wroteClosed = "closed"
)

// OpenObligations are those of a site's devices that no run has closed, oldest
// first. Ask while the devices are locked: a run that is at work has open ones
// of its own.
func OpenObligations(dir, site string, devices []string) ([]plan.Obligation, error) {
	all, err := AllObligations(dir)
	return slices.DeleteFunc(all, func(o plan.Obligation) bool {
		return o.Address.Site != site || !slices.Contains(devices, o.Address.Device)
	}), err
}

// AllObligations are those of all sites and devices that no run has closed, oldest
// first: also of devices that no run is about any more.
func AllObligations(dir string) ([]plan.Obligation, error) {
	raw, err := os.ReadFile(filepath.Join(dir, obligationsFile)) //nolint:gosec // the operator names the folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, plan.NewFault(plan.CodeJournal, "what earlier runs left open cannot be read; nothing was started").Because(err)
	}
	var open []plan.Obligation
	for line := range strings.Lines(string(raw)) {
		var e obligationEntry
		if json.Unmarshal([]byte(line), &e) != nil {
			continue // cut short by a crash before the exchange that it was written for
		}
		at := -1
		for i := range open {
			if open[i].ID == e.Obligation.ID {
				at = i
			}
		}
		switch {
		case e.What == wroteClosed && at >= 0:
			open = append(open[:at], open[at+1:]...)
		case e.What == wroteOpen && at < 0 && e.Obligation.Address.Device != "":
			open = append(open, e.Obligation)
		}
	}
	return open, nil
}

// DropObligation writes that nobody puts an obligation back any more, because a
// person said so. Ask while its device is locked.
func DropObligation(dir string, o plan.Obligation, now time.Time) error {
	line, err := json.Marshal(obligationEntry{Time: now.UTC(), What: wroteClosed, Obligation: o})
	if err == nil {
		err = appendSynced(filepath.Join(dir, obligationsFile), line)
	}
	if err != nil {
		return plan.NewFault(plan.CodeJournal, "that nobody puts it back cannot be written to %s", filepath.Join(dir, obligationsFile)).Because(err)
	}
	return nil
}

// oblige writes that an obligation is open, or closed. It is on disk when
// oblige returns.
func (j *Journal) oblige(what string, o plan.Obligation) *plan.Fault {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	line, err := json.Marshal(obligationEntry{Time: j.now().UTC(), What: what, PlanID: j.planID, Obligation: o})
	if err == nil {
		err = appendSynced(filepath.Join(filepath.Dir(j.file.Name()), obligationsFile), line)
	}
	if err != nil {
		return j.fail(err)
	}
	return nil
}

// appendSynced adds a line to a file that other runs may add to as well. It
// begins with the end of a line that a crash may have cut short.
func appendSynced(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the operator names the folder
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte{'\n'}, line...), '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// restore puts back what a step left open: one exchange that a cancelled run
// still gets RestoreGrace for.
func (v *visitor) restore(ctx context.Context, o plan.Obligation) outcome {
	free, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.options.RestoreBudget)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(v.options.RestoreGrace, cancel) })()
	if v.deps.Restorer == nil {
		return failed(plan.NewFault(plan.CodeInternal, "%s left something open and nobody can put it back", o.Address))
	}
	if f := v.mayWrite(free, &plan.Step{Address: o.Address}); f != nil {
		return theirs(f)
	}
	res := v.deps.Restorer.Restore(free, v.scope, o)
	switch res.Outcome {
	case plan.OutcomeDone:
		return ended(plan.StepDone)
	case plan.OutcomeAlready:
		return ended(plan.StepAlready)
	case plan.OutcomeWait:
		return outcome{after: res.After, text: res.Observed}
	case plan.OutcomeFailed:
		if res.Fault != nil {
			return theirs(res.Fault)
		}
	}
	return failed(plan.NewFault(plan.CodeInternal, "%s: putting back answered %q", o.Address, res.Outcome))
}

// theirs classifies a fault of putting back. What has gone on to somebody is theirs,
// and nothing of it has to be put back.
func theirs(f *plan.Fault) outcome {
	if f.Code == plan.CodeNodeOwned {
		return ended(plan.StepAlready)
	}
	return classify(outcome{fault: f}, nil)
}

// oblige takes in what a visit opened or closed. A step whose obligation cannot
// be written down goes no further: nothing has happened yet.
func (r *run) oblige(j *job, out outcome) *plan.Fault {
	if out.closes && j.owes != nil {
		r.closed(j)
	}
	if out.opens == nil {
		return nil
	}
	o := *out.opens
	o.ID, o.Address = r.in.PlanID+"/"+j.step.ID, j.step.Address
	if j.owes == nil || j.owes.ID != o.ID {
		if f := r.deps.Journal.oblige(wroteOpen, o); f != nil {
			return f
		}
		if j.owes != nil {
			r.closed(j) // it took over that of an earlier run, and has one of its own now
		}
	}
	j.owes = &o
	return nil
}

// closed writes that a job owes nothing any more.
func (r *run) closed(j *job) {
	if f := r.deps.Journal.oblige(wroteClosed, *j.owes); f != nil {
		r.broken(f)
	}
	j.owes = nil
}

// restored takes in an exchange that put something back, or could not. What
// stays open stands in the report, and is found by the next run.
func (r *run) restored(ctx context.Context, j *job, out outcome) {
	now := r.deps.Clock.Now()
	spent := now.Sub(j.owedSince)
	switch {
	case out.state == plan.StepDone:
		r.obligations = append(r.obligations, ObligationReport{Obligation: *j.owes})
		r.closed(j)
	case out.state == plan.StepAlready: // nothing has to be put back any more
		r.closed(j)
	case out.state == "" && ctx.Err() == nil && spent < r.options.RestoreBudget:
		j.due = now.Add(max(out.after, r.options.RetryMin))
		r.rests.put(j)
		return
	default:
		r.notPutBack(j, out.fault)
	}
	r.close(j, j.end)
}

// notPutBack reports what stays open.
func (r *run) notPutBack(j *job, why *plan.Fault) {
	f := plan.NewFault(plan.CodeObligation, "%s: not put back: %s", j.owes.Address, j.owes.Text)
	if why != nil {
		f = f.With("fault", why.Error())
	}
	r.obligations = append(r.obligations, ObligationReport{Obligation: *j.owes, Fault: f})
}
