package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Run applies the steps and reports. Everything that happens to a step is in the
// report. The error is a defect of the input (needs that lead nowhere), without a
// report, or a journal that cannot be written, with the report of what was done
// until then.
func Run(ctx context.Context, in Input, deps Deps, o Options) (*Report, error) {
	r, err := newRun(in, deps, o)
	if err != nil {
		return nil, err
	}
	if f := deps.Journal.past.Of(in.PlanID, in.ContentHash); f != nil {
		return nil, f.With("journal", deps.Journal.Path())
	}
	if f := deps.Journal.beginPlan(in); f != nil {
		return nil, f
	}
	r.loop(ctx)
	report := r.report()
	if f := deps.Journal.finish(report.Interrupted); f != nil {
		return report, f // also when it had failed before: the first failure stays
	}
	return report, nil
}

// progress is where a step is.
type progress int

const (
	pending  progress = iota // something it needs is not at its end
	ready                    // may be visited, or waits for its device or a place
	visiting                 // a visit is under way
	resting                  // waits for its due time
	owing                    // at its end, but for what it left open
	over
)

// job is a step with its state; only the loop touches it.
type job struct {
	step     *plan.Step
	index    int
	rack     string
	at       progress
	needs    int // not yet over
	neededBy []*job
	visit    visit
	due      time.Time
	began    time.Time
	window   time.Time // the end of its place among the hosts that reboot
	held     bool      // it waited for a place, and that was told
	observed string    // what it last waited for, as it was written

	looks, retries, busyTries, readBacks int
	attempt                              int               // the runner's, from 1
	evidence                             map[string]string // what a system last said of itself
	// The ledgers of earlier runs of the plan, and how much of the report's time on a
	// busy system belongs to those, and to attempts before this one.
	spentBefore, busyCarried, busyBefore time.Duration
	// The pause that is going on, and what it counts as.
	busySince time.Time

	// What has to be put back unless the step comes to its good end, and the end
	// that waits for that.
	owes      *plan.Obligation
	end       outcome
	owedSince time.Time

	report StepReport
}

// run is the state of a run. One goroutine owns it.
type run struct {
	visitor
	in       Input
	jobs     []*job
	settling []*job // obligations of earlier runs that no step took over
	byID     map[string]*job
	open     int               // jobs that are not over
	lanes    []*lane           // jobs that may be visited
	rests    queue             // jobs that rest, by due time
	parked   map[string][]*job // ready jobs of a device with a visit under way
	inFlight map[string]bool   // devices with a visit under way; "" is the site itself
	slots    slots
	places   places
	stopped  map[string]*plan.Fault
	halted   bool // nothing new is started
	broke    bool // …because the journal cannot be written
	began    time.Time
	told     time.Time // of the last event
	results  chan result
	ended    chan struct{} // nobody takes results any more
	grace    time.Time     // cancelled: when what is in flight is given up

	obligations []ObligationReport
}

type result struct {
	job *job
	out outcome
}

func newRun(in Input, deps Deps, o Options) (*run, error) {
	r := &run{
		visitor: visitor{deps: deps, options: o, scope: in.Scope, hadNode: in.HadNode, nodes: in.Nodes}, in: in,
		byID: map[string]*job{}, inFlight: map[string]bool{}, stopped: map[string]*plan.Fault{},
		lanes: newLanes(o), rests: queue{less: byDue}, parked: map[string][]*job{},
		slots: slots{most: o.Devices, now: o.Devices}, places: newPlaces(o),
		began: deps.Clock.Now(), results: make(chan result), ended: make(chan struct{}),
	}
	r.told = r.began
	for name, f := range in.Held {
		r.stopped[name] = f
	}
	racks := map[string]string{}
	for _, t := range in.Scope.Targets {
		racks[t.Name()] = t.Intent.Rack
	}
	owed := map[plan.Address]*plan.Obligation{}
	for i := range in.Owed {
		owed[in.Owed[i].Address] = &in.Owed[i]
	}
	for i, s := range in.Steps {
		j := &job{step: s, index: i, rack: racks[s.Address.Device], visit: visit{step: s, sent: in.Begun[s.ID], done: in.Done[s.ID]}, report: StepReport{Step: s}, attempt: 1}
		j.carry(in.Ledgers[s.ID])
		if s.Blocked == nil && !in.Done[s.ID] {
			j.owes = owed[s.Address]
			delete(owed, s.Address)
		}
		r.jobs = append(r.jobs, j)
		r.byID[s.ID] = j
	}
	for _, j := range r.jobs {
		for _, id := range j.step.Needs {
			need := r.byID[id]
			if need == nil {
				return nil, plan.NewFault(plan.CodePlanInvalid, "step %s needs %s, which the plan does not have", j.step.ID, id)
			}
			need.neededBy = append(need.neededBy, j)
			j.needs++
		}
	}
	for _, o := range in.Owed {
		if owed[o.Address] == nil {
			continue
		}
		s := &plan.Step{ID: o.ID, Address: o.Address, Action: plan.ActionUpdate}
		settles := &job{step: s, index: len(r.jobs) + len(r.settling), at: owing, owes: &o, end: ended(plan.StepDone), owedSince: r.began, report: StepReport{Step: s}}
		// No step of the device begins before: what it moves on could no longer be put
		// back, or would be put back under its work.
		for _, j := range r.jobs {
			if j.step.Address.Device == o.Address.Device {
				settles.neededBy = append(settles.neededBy, j)
				j.needs++
			}
		}
		r.settling = append(r.settling, settles)
	}
	r.open = len(r.jobs) + len(r.settling)
	return r, nil
}

// doneBefore is said of a step that an earlier run did.
const doneBefore = "done by an earlier run of this plan"

// readAgain reports whether a step that the journal calls done is looked at again:
// the journal is never truth. What ran, or moved a machine on, shows no value that
// stays; there the guards of what comes after see it.
func readAgain(s *plan.Step) bool {
	switch s.Action { //nolint:exhaustive // the others leave nothing that stays
	case plan.ActionCreate, plan.ActionUpdate, plan.ActionRemove, plan.ActionVerify:
		return true
	}
	return false
}

// loop runs until every job is over and no visit is under way.
func (r *run) loop(ctx context.Context) {
	defer close(r.ended)
	for _, j := range r.settling {
		r.queue(j)
	}
	for _, j := range r.jobs {
		switch {
		case j.at == over:
		case j.step.Blocked != nil:
			r.end(j, outcome{state: plan.StepBlocked, text: j.step.Blocked.Text})
		case r.in.Done[j.step.ID] && !readAgain(j.step):
			r.end(j, outcome{state: plan.StepAlready, text: doneBefore})
		}
	}
	for _, j := range r.jobs {
		if j.at == pending && j.needs == 0 {
			r.arrive(j)
		}
	}
	stop := r.deps.Stop
	for r.open > 0 {
		if ctx.Err() != nil && r.grace.IsZero() {
			r.halt("cancelled")
			r.grace = r.deps.Clock.Now().Add(r.options.CancelGrace)
		}
		r.tick()
		r.start(ctx)
		if r.open == 0 {
			return
		}
		timer, release := r.timer()
		select {
		case res := <-r.results:
			r.land(ctx, res)
			r.landMore(ctx)
		case <-timer:
		case <-stop:
			stop = nil
			r.halt("interrupted")
		case <-r.cancelled(ctx):
		}
		release()
	}
}

// cancelled is ctx.Done until that was seen.
func (r *run) cancelled(ctx context.Context) <-chan struct{} {
	if !r.grace.IsZero() {
		return nil
	}
	return ctx.Done()
}

// abandon gives up what is still in flight when a cancelled run has waited long
// enough: whoever does not come back is in doubt. What puts something back has a
// grace of its own.
func (r *run) abandon(now time.Time) {
	for _, j := range append(slices.Clone(r.jobs), r.settling...) {
		f := plan.NewFault(plan.CodeInterrupted, "%s did not come back within %s after the run was cancelled", j.step.Address, r.options.CancelGrace)
		switch {
		case j.at == visiting:
			j.end = outcome{state: plan.StepInDoubt, text: "cancelled while a request was in flight, and nothing came back", fault: f}
		case j.at == owing && now.Sub(r.grace) >= r.options.RestoreGrace:
		default:
			continue
		}
		if j.owes != nil {
			r.notPutBack(j, f)
		}
		r.close(j, j.end)
	}
}

// queue lets a job be visited as soon as the limits allow.
func (r *run) queue(j *job) {
	switch j.at { //nolint:exhaustive // the others become ready
	case over:
		return
	case owing:
	default:
		j.at = ready
	}
	r.lane(j).ready.put(j)
}

// tick does what is due by the clock alone.
func (r *run) tick() {
	now := r.deps.Clock.Now()
	if !r.grace.IsZero() && !now.Before(r.grace) {
		r.abandon(now)
	}
	if r.options.Limit > 0 && now.Sub(r.began) >= r.options.Limit {
		r.halt("the time limit of " + r.options.Limit.String() + " is over")
	}
	if r.options.Heartbeat > 0 && now.Sub(r.told) >= r.options.Heartbeat {
		all := len(r.jobs) + len(r.settling)
		r.tell(plan.Event{Kind: plan.EventAlive, Text: fmt.Sprintf("steps under way: %d, waiting for a place: %d, over: %d of %d", len(r.inFlight)+r.rests.Len(), r.places.waits, all-r.open, all)})
	}
}

// timer fires when something is due: a pause, a place among the rebooting hosts,
// the limit of the run, a sign of life.
func (r *run) timer() (<-chan time.Time, func() bool) {
	next := r.places.next()
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if j := r.rests.first(); j != nil {
		sooner(j.due)
	}
	if now := r.deps.Clock.Now(); !r.grace.IsZero() && now.Before(r.grace) {
		sooner(r.grace)
	} else if !r.grace.IsZero() && now.Before(r.grace.Add(r.options.RestoreGrace)) {
		sooner(r.grace.Add(r.options.RestoreGrace))
	}
	if r.options.Limit > 0 && !r.halted {
		sooner(r.began.Add(r.options.Limit))
	}
	if r.options.Heartbeat > 0 {
		sooner(r.told.Add(r.options.Heartbeat))
	}
	if next.IsZero() {
		return nil, func() bool { return true }
	}
	return r.deps.Clock.Timer(max(next.Sub(r.deps.Clock.Now()), 0), len(r.inFlight))
}

// start begins as many visits as the limits allow, in the plan's order.
func (r *run) start(ctx context.Context) {
	if f := r.deps.Journal.flush(); f != nil {
		r.broken(f)
	}
	now := r.deps.Clock.Now()
	for _, j := range r.rests.expired(now) {
		r.queue(j)
	}
	for r.startNext(ctx, now) {
	}
}

// startNext looks at one job that may be visited; false when there is none, or no
// room for it.
func (r *run) startNext(ctx context.Context, now time.Time) bool {
	for _, j := range r.places.candidates(now) {
		r.queue(j)
	}
	for _, l := range r.lanes {
		if l.busy >= l.room(r.slots) {
			continue
		}
		j := l.ready.take()
		if j == nil {
			continue
		}
		device := j.step.Address.Device
		switch {
		case j.at == over: // left, when the run was halted
		case r.halted && j.at != owing:
			r.leave(j)
		case r.inFlight[device]:
			r.parked[device] = append(r.parked[device], j)
		case j.at == owing:
			r.tell(plan.Event{Kind: plan.EventRestore, Step: j.step, Text: j.owes.Text})
			r.visitWith(j, func() outcome { return r.restore(ctx, *j.owes) })
		case r.stopped[device] != nil && device != "":
			r.places.freed = true // it may have been called for a place that it does not take
			r.end(j, outcome{state: plan.StepSkipped, text: "the device stopped: " + string(r.stopped[device].Code)})
		case r.placed(j, now):
			r.begin(j, now)
			j.report.Exchanges++
			in := j.visit
			r.visitWith(j, func() outcome { return r.perform(ctx, in) })
		}
		return true
	}
	return false
}

// placed reports whether a job has its place among the rebooting hosts, if it
// needs one. One that has to wait is called again when a place is free.
func (r *run) placed(j *job, now time.Time) bool {
	if !j.began.IsZero() || j.step.Address.Device == "" || !reboots(j.step) {
		return true
	}
	if why := r.places.full(j.rack); why != "" {
		if !j.held {
			r.tell(plan.Event{Kind: plan.EventHold, Step: j.step, Text: why})
		}
		j.held = true
		r.places.wait(j)
		return false
	}
	r.places.hold(j, now.Add(r.options.RebootWindow))
	return true
}

func (r *run) begin(j *job, now time.Time) {
	if j.began.IsZero() {
		j.began = now
		r.tell(plan.Event{Kind: plan.EventBegin, Step: j.step})
	}
	j.at = visiting
}

func (r *run) visitWith(j *job, look func() outcome) {
	r.inFlight[j.step.Address.Device] = true
	r.lane(j).busy++
	go func() {
		select {
		case r.results <- result{j, look()}:
		case <-r.ended: // it was given up
		}
	}()
}

// landMore takes in what else has arrived, so that it is written in one piece.
func (r *run) landMore(ctx context.Context) {
	for {
		select {
		case res := <-r.results:
			r.land(ctx, res)
		default:
			return
		}
	}
}

// land takes in a visit's result, and calls those that waited for its device.
func (r *run) land(ctx context.Context, res result) {
	device := res.job.step.Address.Device
	delete(r.inFlight, device)
	r.lane(res.job).busy--
	for _, j := range r.parked[device] {
		r.lane(j).ready.put(j)
	}
	delete(r.parked, device)
	if res.job.at == over {
		return // it was given up
	}
	if troubles(res.out.fault) {
		r.slots.troubled()
	} else {
		r.slots.eased()
	}
	if res.job.at == owing {
		r.restored(ctx, res.job, res.out)
		return
	}
	r.settle(ctx, res.job, res.out)
}

// settle takes in what a visit came to.
func (r *run) settle(ctx context.Context, j *job, out outcome) {
	if !j.busySince.IsZero() {
		j.report.BusySpent += r.deps.Clock.Now().Sub(j.busySince)
		j.busySince = time.Time{}
	}
	j.visit.begun = j.visit.begun || out.began
	j.visit.sent = j.visit.sent || out.sent
	j.report.Checks = append(j.report.Checks, out.checks...)
	if f := r.oblige(j, out); f != nil {
		r.end(j, failed(f))
		return
	}
	switch {
	case ctx.Err() != nil && out.fault != nil && j.visit.begun && j.step.Action.Mutates():
		// Cancelled in the middle of an exchange: nobody knows whether it arrived.
		r.end(j, outcome{state: plan.StepInDoubt, text: "cancelled while a request was in flight", fault: out.fault})
	case ctx.Err() != nil && out.fault != nil:
		r.leave(j)
	case out.state != "":
		r.end(j, out)
	case r.halted:
		r.leave(j)
	default:
		r.rest(j, out)
	}
}

// halt starts nothing new: what waits is left, what was not begun is not run,
// what is in flight is waited for.
func (r *run) halt(why string) {
	if r.halted {
		return
	}
	r.halted = true
	r.tell(plan.Event{Kind: plan.EventStop, Text: why})
	for _, j := range r.jobs {
		if j.at == pending || j.at == ready || j.at == resting {
			r.leave(j)
		}
	}
	r.rests.keep(func(j *job) bool { return j.at == owing })
}

func (r *run) leave(j *job) {
	if j.visit.begun {
		r.end(j, outcome{state: plan.StepLeft, text: "begun; the run was stopped while the system was at work"})
		return
	}
	r.end(j, outcome{state: plan.StepNotRun, text: "the run was stopped first"})
}

// end closes a job and lets those that need it go on, or not. What the job left
// open is put back first.
func (r *run) end(j *job, out outcome) {
	if j.owes != nil && !out.state.OK() {
		j.at, j.end, j.owedSince = owing, out, r.deps.Clock.Now()
		r.lane(j).ready.put(j)
		return
	}
	if j.owes != nil {
		r.closed(j)
	}
	r.close(j, out)
}

func (r *run) close(j *job, out outcome) {
	now := r.deps.Clock.Now()
	j.at = over
	r.open--
	r.places.release(j)
	rep := &j.report
	rep.State, rep.Text, rep.Fault, rep.Began = out.state, out.text, out.fault, j.began
	if !j.began.IsZero() {
		rep.Spent = now.Sub(j.began)
	}
	if f := r.deps.Journal.end(j.step, rep.State, rep.Text, rep.Fault); f != nil {
		r.broken(f)
	}
	r.tell(plan.Event{Kind: plan.EventEnd, Step: j.step, Text: rep.Text, State: rep.State, Fault: rep.Fault, Spent: rep.Spent})
	if rep.State == plan.StepFailed {
		r.stopDevices(j)
	}
	for _, next := range j.neededBy {
		next.needs--
		if next.needs == 0 && next.at == pending && !r.halted {
			r.arrive(next)
		}
	}
}

// stopDevices: after a fault nothing new of the device is begun. A failed
// verification alone does not stop the other verifications; what needs it is
// skipped anyway.
func (r *run) stopDevices(j *job) {
	if j.report.Fault.Code == plan.CodeJournal {
		r.broken(j.report.Fault)
		return
	}
	if j.report.Fault.Class() == plan.ClassVerification {
		return
	}
	if d := j.step.Address.Device; d != "" && r.stopped[d] == nil {
		r.stopped[d] = j.report.Fault
	}
}

// broken: without a journal nothing more may be started.
func (r *run) broken(f *plan.Fault) {
	r.broke = true
	r.halt(f.Summary)
}

// arrive: all that a job needs is over. It runs when all of that came about; a
// shared step runs when at least one device that it serves is ready for it.
func (r *run) arrive(j *job) {
	ok, bad := 0, (*job)(nil)
	for _, id := range j.step.Needs {
		// What turned out not to exist there is reported and holds nothing up, as
		// when the plan had seen it.
		if need := r.byID[id]; need.report.State.OK() || need.report.State == plan.StepBlocked {
			ok++
		} else if bad == nil {
			bad = need
		}
	}
	if bad == nil || (j.step.Address.Device == "" && ok > 0) {
		r.queue(j)
		return
	}
	r.end(j, outcome{state: plan.StepSkipped, text: r.wanting(bad)})
}

// wanting says why what needs a job is skipped: the step that failed, not the ones
// between that were skipped for it themselves.
func (r *run) wanting(bad *job) string {
	switch bad.report.State { //nolint:exhaustive // the others are told as they are
	case plan.StepSkipped:
		return bad.report.Text
	case plan.StepFailed:
		return bad.step.Address.Local() + " failed"
	}
	return bad.step.Address.Local() + " is " + string(bad.report.State)
}

func (r *run) tell(e plan.Event) {
	e.Time = r.deps.Clock.Now()
	r.told = e.Time
	if r.deps.Events == nil {
		return
	}
	r.deps.Events(e)
}
