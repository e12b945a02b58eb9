package apply

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// stage is what the next visit of a step begins with.
type stage int

const (
	stageGuard    stage = iota // may it run, and must it
	stageExchange              // the runner
	stageReadBack              // did it stick
)

// visitor performs visits: everything about one step that talks to systems. It
// changes nothing but the visit's own outcome, so visits run side by side.
type visitor struct {
	deps    Deps
	options Options
	scope   *plan.Scope
	hadNode map[string]bool
	nodes   map[string]string // UUIDs
}

// visit is what one visit starts from.
type visit struct {
	step  *plan.Step
	stage stage
	memo  plan.Memo
	// sent is true when an earlier exchange may have reached the system without
	// its answer reaching us.
	sent  bool
	begun bool // its begin stands in the journal
	done  bool // an earlier run wrote that it did it
}

// outcome is what a visit came to: an end, or a further visit after a pause.
type outcome struct {
	state  plan.StepState // set: the step is at its end
	text   string
	fault  *plan.Fault // failed, or a fault that may pass when state is empty
	checks []plan.Check

	stage stage // of the next visit
	memo  plan.Memo
	after time.Duration // zero with look: the interpreter's own growing pause
	look  bool          // waits for something to become readable
	// evidence is what a fault carries should the budget end here.
	evidence map[string]string
	began    bool // an exchange was started
	sent     bool // …and its answer was lost

	opens  *plan.Obligation // to be put back should the step not come to its good end
	closes bool             // nothing is to be put back any more
}

func ended(state plan.StepState) outcome    { return outcome{state: state} }
func failed(f *plan.Fault) outcome          { return outcome{state: plan.StepFailed, fault: f} }
func again(at stage, f *plan.Fault) outcome { return outcome{stage: at, fault: f} }
func looking(at stage, text string) outcome { return outcome{stage: at, look: true, text: text} }

// perform runs one visit. A panic in a provider fails the step and leaves the
// other devices alone.
func (v *visitor) perform(ctx context.Context, in visit) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			f := plan.NewFault(plan.CodeInternal, "%s: the step's runner broke down", in.step.Address).
				With("panic", fmt.Sprint(p)).With("stack", firstLines(debug.Stack(), 24))
			out = failed(f)
			out.began = true
		}
	}()
	if !in.step.Action.Mutates() {
		return v.exchange(ctx, in)
	}
	if in.stage == stageReadBack {
		return v.readBack(ctx, in)
	}
	// Who holds the node is asked last, after the guard's reads: they may take long.
	if in.stage == stageGuard {
		if out, stop := v.guard(ctx, in); stop {
			if out.state == plan.StepFailed {
				if f := v.mayWrite(ctx, in.step); f != nil {
					return failed(f) // a value that moved because somebody took the machine
				}
			}
			return out
		}
	}
	if f := v.mayWrite(ctx, in.step); f != nil {
		return classify(again(in.stage, f), in.memo)
	}
	return v.exchange(plan.WithPermit(ctx, func(ctx context.Context) *plan.Fault { return v.mayWrite(ctx, in.step) }), in)
}

// mayWrite asks who holds the node right before a mutation. A shared step may
// run while one device that it serves is free.
func (v *visitor) mayWrite(ctx context.Context, s *plan.Step) *plan.Fault {
	names := s.Serves
	if d := s.Address.Device; d != "" && v.deps.Locked != nil {
		if f := v.deps.Locked(d); f != nil {
			return f
		}
	}
	if s.Address.Device != "" {
		names = []string{s.Address.Device}
	}
	sc := &plan.Scope{Site: v.scope.Site}
	for _, n := range names {
		if t := v.scope.Target(n); t != nil {
			sc.Targets = append(sc.Targets, t)
		}
	}
	owners := v.deps.Owner.Ownership(ctx, sc)
	var first *plan.Fault
	for _, n := range names {
		o := owners[n]
		var f *plan.Fault
		switch {
		case o.Unknown != nil:
			f = o.Unknown
		case o.Node == "" && v.hadNode[n]:
			f = plan.NewFault(plan.CodePlanStale, "Ironic has no node %s any more; %s was not written", n, s.Address.Local()).
				WithHint("See whether the node was renamed or deleted, and make a new plan.")
		case o.NodeUUID != "" && v.nodes[n] != "" && o.NodeUUID != v.nodes[n]:
			f = plan.NewFault(plan.CodePlanStale, "the name %s has moved to another node of Ironic since the plan was made; %s was not written", n, s.Address.Local()).With("node", o.NodeUUID).With("planned", v.nodes[n]).
				WithHint("See which node is the machine's and who renamed them, and make a new plan.")
		case o.Owned && !s.OnOwned:
			f = plan.NewFault(plan.CodeNodeOwned, "%s is held: %s; %s was not written", n, o.Reason, s.Address.Local()).With("node", o.Node)
		default:
			return nil
		}
		if first == nil {
			first = f
		}
	}
	return first
}

// read looks at the step's own resource.
func (v *visitor) read(ctx context.Context, s *plan.Step) plan.Live {
	r := plan.Resource{Address: s.Address, Want: s.After, From: s.From, Sensitive: s.Sensitive}
	return v.deps.Reader.Read(ctx, v.scope, []plan.Resource{r}).Get(s.Address)
}

// guard decides whether the exchange may start. stop is true when it may not,
// or need not.
func (v *visitor) guard(ctx context.Context, in visit) (out outcome, stop bool) {
	s := in.step
	live := v.read(ctx, s)
	switch live.Presence {
	case plan.Unreachable:
		if s.BeforeUnknown {
			return looking(stageGuard, "not reachable yet: "+summary(live.Fault)), true
		}
		return classify(again(stageGuard, live.Fault), nil), true
	case plan.Unreadable:
		return classify(again(stageGuard, live.Fault), nil), true
	case plan.Unsupported:
		return outcome{state: plan.StepBlocked, text: summary(live.Fault)}, true
	case plan.Present, plan.Absent:
		if reached(s, live) {
			out := ended(plan.StepAlready)
			if in.done {
				out.text = doneBefore
			}
			return out, true
		}
	}
	if s.BeforeUnknown || holds(s, live) {
		return outcome{}, false
	}
	if in.sent && (s.Action == plan.ActionTransition || s.Action == plan.ActionRun || live.Presence == plan.Present && plan.Between(s.Before, s.After, live.Value)) {
		// Our own request may have set it going; the runner knows the states between,
		// and a write of several requests may have got to the middle.
		return outcome{}, false
	}
	if in.done {
		// Neither as before the step nor as it left it: what came after moved it on.
		return outcome{state: plan.StepAlready, text: doneBefore + ", and changed since"}, true
	}
	return failed(stale(s, live)), true
}

// reached reports whether a value that was read is what the step wants.
func reached(s *plan.Step, live plan.Live) bool {
	if live.Presence == plan.Absent {
		return s.After.IsKnown() && s.After.IsNull()
	}
	return plan.Satisfies(s.After, live.Value)
}

// holds reports whether the live value is still what the step was decided on.
func holds(s *plan.Step, live plan.Live) bool {
	if live.Presence == plan.Absent {
		return s.Before.IsKnown() && s.Before.IsNull()
	}
	if s.Before.IsNull() {
		return false
	}
	return plan.Fingerprint(plan.Restrict(live.Value, s.Before)) == s.Guard
}

func stale(s *plan.Step, live plan.Live) *plan.Fault {
	now := "absent"
	if live.Presence == plan.Present {
		shown := live.Value
		if !s.Before.IsNull() {
			shown = plan.Restrict(live.Value, s.Before)
		}
		now = string(plan.ToJSON(shown))
	}
	then := "absent"
	if !s.Before.IsNull() {
		then = string(plan.ToJSON(s.Before))
	}
	return plan.NewFault(plan.CodePlanStale, "%s is not as it was when the plan was made; nothing was written", s.Address).With("planned on", then).With("now", now)
}

// exchange lets the runner do its one exchange.
func (v *visitor) exchange(ctx context.Context, in visit) outcome {
	if !in.begun {
		// On disk before the first byte is sent: after a crash it is known that the
		// request may have arrived.
		if f := v.deps.Journal.begin(in.step); f != nil {
			return failed(f)
		}
	}
	res := v.deps.Runner.Run(ctx, v.scope, in.step, in.memo)
	out := outcome{began: true, checks: res.Checks, closes: res.Closes}
	switch res.Outcome {
	case plan.OutcomeDone, plan.OutcomeAlready:
		if f := judgeChecks(res.Checks); f != nil {
			out.state, out.fault = plan.StepFailed, f
			return out
		}
		if !in.step.Action.Mutates() {
			out.state = plan.StepDone
			return out
		}
		out.stage = stageReadBack
		return keep(out, v.readBack(ctx, in))
	case plan.OutcomeWait:
		out.stage, out.memo, out.after, out.text, out.opens = stageExchange, res.Memo, res.After, res.Observed, res.Opens
		out.evidence = res.Evidence
		return out
	case plan.OutcomeFailed:
		f := res.Fault
		if f == nil {
			f = plan.NewFault(plan.CodeInternal, "%s failed without saying why", in.step.Address)
		}
		next := again(stageGuard, f)
		if in.memo != nil {
			next = again(stageExchange, f)
		}
		next.sent = f.Class() == plan.ClassUnreachable
		return keep(out, classify(next, in.memo))
	}
	return keep(out, failed(plan.NewFault(plan.CodeInternal, "%s: the runner answered %q", in.step.Address, res.Outcome)))
}

// keep carries over that an exchange was started.
func keep(first, then outcome) outcome {
	then.began = then.began || first.began
	then.closes = then.closes || first.closes
	if then.checks == nil {
		then.checks = first.checks
	}
	return then
}

// readBack proves that a write stuck.
func (v *visitor) readBack(ctx context.Context, in visit) outcome {
	s := in.step
	live := v.read(ctx, s)
	switch live.Presence {
	case plan.Present, plan.Absent:
		if reached(s, live) {
			return ended(plan.StepDone)
		}
	case plan.Unreachable, plan.Unreadable:
		return classify(again(stageReadBack, live.Fault), in.memo)
	case plan.Unsupported:
	}
	return outcome{stage: stageReadBack, memo: in.memo, fault: notApplied(s, live)}
}

func notApplied(s *plan.Step, live plan.Live) *plan.Fault {
	now := "absent"
	if live.Presence == plan.Present {
		now = string(plan.ToJSON(plan.Restrict(live.Value, s.After)))
	}
	return plan.NewFault(plan.CodeNotApplied, "%s was accepted and is not what was written", s.Address).
		With("written", string(plan.ToJSON(s.After))).With("now", now)
}

// classify decides what a fault means for the step: faults that may pass lead
// to another visit, all others end it.
func classify(next outcome, memo plan.Memo) outcome {
	if next.fault == nil {
		return failed(plan.NewFault(plan.CodeInternal, "a value could not be read and nobody said why"))
	}
	switch next.fault.Class() { //nolint:exhaustive // all others end the step
	case plan.ClassBusy, plan.ClassUnreachable:
		next.memo = memo
		return next
	}
	return failed(next.fault)
}

// judgeChecks: an unproven check is no better than a failed one.
func judgeChecks(checks []plan.Check) *plan.Fault {
	var bad []plan.Check
	for _, c := range checks {
		if c.Verdict == plan.CheckFail || c.Verdict == plan.CheckUnknown {
			bad = append(bad, c)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	f := plan.NewFault(plan.CodeInspectionMismatch, "%s: %s", bad[0].Address, checkText(bad[0]))
	for _, c := range bad[1:] {
		f = f.With(c.Address.Local(), checkText(c))
	}
	return f
}

func checkText(c plan.Check) string {
	if c.Verdict == plan.CheckUnknown {
		return "not proven: " + c.Text
	}
	return "expected " + c.Expected + ", observed " + c.Observed
}

func summary(f *plan.Fault) string {
	if f == nil {
		return "no reason given"
	}
	return f.Summary
}

func firstLines(b []byte, n int) string {
	lines := strings.Split(string(b), "\n")
	if len(lines) > n {
		lines = lines[:n]
	}
	return strings.Join(lines, "\n")
}
