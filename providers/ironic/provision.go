package ironic

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// manageBudget bounds the verification of a BMC: one that refuses connections
// keeps a node in verifying for 160 s (five attempts, 32 s apart).
const manageBudget = 5 * time.Minute

// provisionKind is one leg of the walk to available. The value of manage and
// provide is {provision_state}; that of inspect is {provision_state, inventory}
// with inventory "absent" or "present", because inspection ends in the state in
// which it began.
func provisionKind(key string, phase plan.Phase, doc string) plan.Kind {
	w := walks()[key]
	return plan.Kind{
		Name:  "ironic.provision",
		Key:   key,
		Phase: phase,
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) {
				return nil
			}
			r := plan.Resource{Address: t.Address(systemIronic, kindProvision, key), Want: w.wanted(), From: []string{t.Intent.URL}, Budget: plan.Duration(manageBudget)}
			switch key {
			case keyInspect:
				r.Effects = []plan.Effect{plan.EffectReboot}
				r.Budget = plan.Duration(t.Ironic.InspectDeadline)
			case keyProvide:
				r.Effects = []plan.Effect{plan.EffectErase, plan.EffectReboot}
				r.Budget = plan.Duration(t.Ironic.CleaningDeadline)
			}
			return []plan.Resource{r}
		},
		Decide: w.decide,
		Looks:  []plan.Action{plan.ActionWait},
		Doc:    doc,
	}
}

// Local addresses of legs that others look for.
const (
	inspectStep = systemIronic + "." + kindProvision + "[" + keyInspect + "]"
	provideStep = systemIronic + "." + kindProvision + "[" + keyProvide + "]"
)

// manageStep is the leg that also recovers.
const manageStep = systemIronic + "." + kindProvision + "[" + keyManage + "]"

const (
	inventoryAbsent  = "absent"
	inventoryPresent = "present"
	inventoryNewer   = "newer than " // and the time at which the inspection of the old one finished
)

func stateValue(s plan.ProvisionState) plan.Value {
	return plan.Obj(map[string]plan.Value{"provision_state": plan.Str(string(s))})
}

// manageValue also has the maintenance flag, which a recovery clears.
func manageValue(s plan.ProvisionState, maintenance bool) plan.Value {
	return plan.Obj(map[string]plan.Value{"provision_state": plan.Str(string(s)), "maintenance": plan.Bool(maintenance)})
}

func inspectValue(s plan.ProvisionState, inventory string) plan.Value {
	return plan.Obj(map[string]plan.Value{"provision_state": plan.Str(string(s)), "inventory": plan.Str(inventory)})
}

func (w walk) wanted() plan.Value {
	if w.verb == keyInspect {
		return inspectValue(w.target, inventoryPresent)
	}
	return stateValue(w.target)
}

// before is the value that the leg starts from when earlier steps brought the
// node to its beginning.
func (w walk) before(s plan.ProvisionState) plan.Value {
	if w.verb == keyInspect {
		return inspectValue(s, inventoryAbsent)
	}
	return stateValue(s)
}

// decide judges one leg. What earlier steps of the plan will have brought about
// is predicted: Before is then the state in which the verb will be sent, and the
// guard holds the node to it.
func (w walk) decide(d plan.Decision) plan.Verdict {
	state := absent
	switch d.Live.Presence {
	case plan.Present:
		state = plan.ProvisionState(plan.Text(d.Live.Value, "provision_state"))
	case plan.Absent:
	case plan.Unreachable, plan.Unreadable, plan.Unsupported:
		if !settled(d) {
			return unreadable(d)
		}
		return plan.Nothing() // an inventory that cannot be read is reported by the checks
	}
	if settled(d) {
		return plan.Nothing()
	}
	step := &plan.Step{Action: plan.ActionTransition, Reason: plan.ReasonState, Before: w.before(w.from), After: w.wanted()}
	name := d.Target.Name()
	m := w.in(state)
	switch {
	case w.verb != keyInspect || m == await:
	case d.Scope.Parameters.SkipInspection:
		return plan.Nothing() // the checks say so
	case plan.Text(d.Live.Value, "inventory") != inventoryPresent || m == stay:
	case !d.Scope.Parameters.ForceInspection:
		return plan.Nothing()
	default:
		return w.afresh(d, state, m)
	}
	switch m {
	case stay:
		return plan.Nothing()
	case human:
		return plan.Verdict{Fault: plan.NewFault(plan.CodeIronicNeedsHuman, "node %s is in state %q", name, state)}
	case refuse:
		step.Before = w.before(state)
		step.Blocked = &plan.Block{Rule: plan.RuleNotYet, Text: stuck(name, state)}
		return plan.Verdict{Step: step}
	case await:
		step.Action, step.Reason, step.Before = plan.ActionWait, plan.ReasonPending, w.before(state)
		step.Because = []string{"provision_state is " + string(state)}
	case send:
		step.Before = w.before(state)
		if w.verb == keyManage && state == plan.StateCleanFailed && upkeepOf(d).on {
			step.Before, step.After = manageValue(state, true), manageValue(w.target, false)
			step.Because = []string{"provision_state is " + string(state), "maintenance"}
		}
	case missing:
		if state != absent {
			step.Because = []string{"provision_state is " + string(state)}
		}
	}
	if w.verb == keyInspect {
		step.Budget = inspectBudget(d)
	}
	step.Blocked = w.barrier(d, m)
	return plan.Verdict{Step: step}
}

// afresh is the leg for a node that has an inventory, when the operator wants a
// new one: it is newer than the one at hand.
func (w walk) afresh(d plan.Decision, state plan.ProvisionState, m move) plan.Verdict {
	if m == missing {
		state = w.from
	}
	at := plan.Text(d.Live.Value, "inspection_finished_at")
	step := &plan.Step{Action: plan.ActionTransition, Reason: plan.ReasonForced, Because: []string{"force_inspection"}, Budget: inspectBudget(d)}
	step.Before, step.After = inspectValue(state, inventoryPresent), inspectValue(w.target, inventoryNewer+at)
	step.Blocked = w.barrier(d, m)
	return plan.Verdict{Step: step}
}

// inspectBudget gives every attempt its own deadline.
func inspectBudget(d plan.Decision) plan.Duration {
	return plan.Duration(d.Target.Ironic.InspectDeadline) * plan.Duration(attempts(d.Scope, d.Target))
}

// barrier says what keeps the leg from running although the state allows it.
func (w walk) barrier(d plan.Decision, m move) *plan.Block {
	if b := maintenanceHolds(d); b != nil {
		return b
	}
	if s := earlierBlocked(d); s != nil {
		return &plan.Block{Rule: s.Blocked.Rule, Text: s.Address.Local() + " comes first and is blocked: " + s.Blocked.Text}
	}
	if w.verb == keyProvide && m != await && d.Live.Presence == plan.Present && d.Planned(inspectStep) == nil {
		// The inventory is at hand: the gate is decided now, not in apply.
		for _, c := range evidence(d) {
			if !proven(c) {
				return &plan.Block{Rule: plan.RuleFailed, Text: string(plan.CodeInspectionMismatch) + ": " + c.Address.Local() + " expected " + c.Expected + ", observed " + c.Observed +
					". Correct NetBox, or the hardware and then inspect the node again (baremetal node inspect " + d.Target.Name() + ")"}
			}
		}
	}
	return nil
}

// pause is how long to wait before the next look: from 250 ms on, half as long
// again each time, at most 10 s. The memo carries it.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 10 * time.Second
)

const (
	memoSent  = "sent"
	memoPause = "pause"
	memoNone  = "none" // the last look found no inventory
)

// again asks for another look.
func again(memo plan.Memo, observed string, sent bool) plan.Result {
	pause := firstPause
	if text, ok := memo[memoPause]; ok {
		if d, err := time.ParseDuration(text); err == nil {
			pause = min(d+d/2, lastPause)
		}
	}
	next := plan.Memo{memoPause: pause.String()}
	if sent {
		next[memoSent] = "1"
	}
	return plan.Wait(pause, observed, next)
}

// runProvision sends the verb, or looks how far it is. Every exchange begins
// with a look, so that a verb whose answer was lost is not sent again while the
// node already moves.
func (c *Client) runProvision(ctx context.Context, r run) plan.Result {
	w, ok := walks()[r.step.Address.Key]
	if !ok {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s: there is no such leg", r.step.Address))
	}
	n, f := r.unowned(ctx)
	if f != nil {
		return plan.Failed(f)
	}
	res := r.leg(ctx, n, w)
	if res.Outcome == plan.OutcomeWait {
		res.Evidence = n.account()
	}
	return res
}

// leg is the exchange itself, for the node as it was just read.
func (r run) leg(ctx context.Context, n *node, w walk) plan.Result {
	if r.memo[memoRecover] != "" || w.verb == keyManage && n.ProvisionState == plan.StateCleanFailed {
		return r.recovered(ctx, n, w)
	}
	sent := r.memo[memoSent] != "" || r.step.Action == plan.ActionWait
	switch {
	case w.under(n.ProvisionState):
		return r.watched(ctx, n, w)
	case n.ProvisionState == w.target && w.verb != keyInspect:
		return r.arrived(n, sent)
	case n.ProvisionState == w.target && (sent || !r.forced()):
		return r.inspected(ctx, n, w, sent)
	case sent && n.ProvisionState == w.failed:
		return r.failedAttempt(ctx, n, w)
	case sent:
		return plan.Failed(r.service.strayed(ctx, n, w))
	}
	return r.sendVerb(ctx, n, w)
}

// sendVerb begins an attempt. Nothing is read between the node and the verb.
func (r run) sendVerb(ctx context.Context, n *node, w walk) plan.Result {
	if w.in(n.ProvisionState) != send {
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "node %s is in state %q: %s cannot be sent there", n.Name, n.ProvisionState, w.verb))
	}
	if f := r.service.provision(ctx, n, w.verb); f != nil {
		return plan.Failed(f)
	}
	return carrying(again(nil, w.verb+" was accepted", true), r.memo)
}

// inspected ends an inspection that was sent, or finds one that took place. The
// look at the inventory takes an exchange of its own: the node may be claimed
// meanwhile.
func (r run) inspected(ctx context.Context, n *node, w walk, sent bool) plan.Result {
	if r.memo[memoNone] != "" && !sent {
		return r.sendVerb(ctx, n, w)
	}
	inv, f := r.service.inventory(ctx, n)
	switch {
	case f != nil:
		return plan.Failed(f)
	case inv != nil || sent:
		return r.arrived(n, sent) // without an inventory the read-back says so
	case n.InspectionFinishedAt == "":
		return r.sendVerb(ctx, n, w) // nothing was asked
	}
	return plan.Wait(0, "there is no inventory yet", with(r.memo, memoNone, "1"))
}

// failedAttempt recovers the node for another attempt, if there is one left.
func (r run) failedAttempt(ctx context.Context, n *node, w walk) plan.Result {
	of := attempts(r.scope, r.target)
	switch stop := r.memo[memoStop]; {
	case stop == stopLink:
		return plan.Failed(r.linksDown(n))
	case r.memo.Attempt() < of:
		return r.recovered(ctx, n, w)
	case stop != "":
		return plan.Failed(r.overdue(n, w))
	}
	return plan.Failed(r.service.strayed(ctx, n, w).With("attempts", strconv.Itoa(r.memo.Attempt())))
}

// recovered goes on with a recovery; a leg other than manage itself then begins
// its next attempt.
func (r run) recovered(ctx context.Context, n *node, w walk) plan.Result {
	res := r.recover(ctx, n)
	if res.Outcome != plan.OutcomeDone || w.verb == keyManage {
		return res
	}
	return r.nextAttempt("recovered", nil).Closing()
}

// nextAttempt begins another attempt of the leg, with what is kept of the memo.
func (r run) nextAttempt(why string, kept plan.Memo) plan.Result {
	next := with(kept, plan.MemoAttempt, strconv.Itoa(r.memo.Attempt()+1))
	return plan.Wait(0, why+"; attempt "+next[plan.MemoAttempt]+" of "+strconv.Itoa(attempts(r.scope, r.target))+" follows", next)
}

// forced reports whether the operator asked for a fresh inspection.
func (r run) forced() bool {
	return strings.HasPrefix(plan.Text(r.step.After, "inventory"), inventoryNewer)
}

// arrived ends the leg once the lock is free too: the next call would meet it.
func (r run) arrived(n *node, sent bool) plan.Result {
	if n.Reservation != "" {
		return again(r.memo, progress(n), sent)
	}
	if !sent {
		return plan.Already()
	}
	return plan.Done()
}

func progress(n *node) string {
	text := "provision state " + string(n.ProvisionState)
	if at, err := time.Parse(time.RFC3339, n.ProvisionUpdatedAt); err == nil {
		text += " since " + at.UTC().Format(time.RFC3339)
	}
	if n.PowerState != "" {
		text += ", " + n.PowerState
	}
	if n.Reservation != "" {
		text += ", locked by " + n.Reservation
	}
	return text
}

// strayed is the fault of a node that ended elsewhere than the verb leads to.
func (s *service) strayed(ctx context.Context, n *node, w walk) *plan.Fault {
	reason := n.LastError
	if reason == "" {
		reason = s.history(ctx, n) // the periodic power sync may have emptied last_error
	}
	f := plan.NewFault(plan.CodeIronicUnexpected, "node %s went to %q after %s instead of %q", n.Name, n.ProvisionState, w.verb, w.target)
	if reason != "" {
		f.Summary += ": " + cut(reason)
	}
	return f.With("last_error", cut(reason)).With("node", n.UUID).With("maintenance", strconv.FormatBool(n.Maintenance)).With("maintenance_reason", cut(n.MaintenanceReason))
}

// history is the last error that Ironic recorded for the node, "" when there
// is none or it cannot be read: it only adds to another fault.
func (s *service) history(ctx context.Context, n *node) string {
	if s.minor() < historyMinor {
		return ""
	}
	var answer struct {
		History []struct {
			CreatedAt string `json:"created_at"`
			Severity  string `json:"severity"`
			Event     string `json:"event"`
		} `json:"history"`
	}
	if _, f := s.call(ctx, http.MethodGet, "nodes/"+url.PathEscape(n.UUID)+"/history", nil, &answer); f != nil {
		return ""
	}
	at, event := "", ""
	for _, h := range answer.History {
		if h.Severity == "ERROR" && h.CreatedAt >= at {
			at, event = h.CreatedAt, h.Event
		}
	}
	return event
}
