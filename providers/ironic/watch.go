package ironic

import (
	"context"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Links tells what the BMC of a device knows of the links of its frontend NICs,
// all taken together: any that is up is up, all that are down are down, all else
// is unknown. seen names each in words. A BMC that cannot be asked is a fault.
type Links interface {
	Link(ctx context.Context, t *plan.Target) (state plan.LinkState, seen string, f *plan.Fault)
}

const (
	// linkBudget is how long all frontend links may be down, from the moment at
	// which Ironic reports the node powered on (reference, phases 5 and 7).
	linkBudget = 5 * time.Minute
	// powerOnBudget is how long a node may wait for its ramdisk without power;
	// Ironic itself gives a power change one minute.
	powerOnBudget = 5 * time.Minute
)

// What the watch remembers. Times are RFC 3339.
const (
	memoSince = "since" // when the attempt was first seen under way
	memoWaits = "waits" // when the node was first seen to wait for its ramdisk
	memoOn    = "on"    // …with its power on
	memoLink  = "link"  // up or unknown: the links need no more watching
	memoSeen  = "seen"  // the links, as they were last seen
	memoStop  = "stop"  // why the attempt is given up: it is aborted as soon as Ironic allows
)

const (
	stopLink     = "link"
	stopPower    = "power"
	stopDeadline = "deadline"
)

// inBand are the inspect interfaces that boot a ramdisk.
func inBand(n *node) bool {
	i := n.Interfaces["inspect_interface"]
	return i == "agent" || i == "inspector"
}

// waits reports whether the node waits for its ramdisk: it has been rebooted, no
// lock is held, and abort is legal.
func waits(s plan.ProvisionState) bool {
	return s == plan.StateInspectWait || s == plan.StateCleanWait
}

// watched looks after a leg that is under way. An inspection has its deadline, a
// node that waits for its ramdisk has to be powered on, and its frontend links are
// watched for linkBudget: any that is up passes, what is unknown fails open, all
// down aborts (reference, phase 5). A transition that this step did not begin is
// never aborted, and has no deadline but Ironic's.
func (r run) watched(ctx context.Context, n *node, w walk) plan.Result {
	now := r.now()
	memo := first(r.memo, memoSince, now)
	look := func(seen string) plan.Result { return carrying(again(r.memo, progress(n)+seen, true), memo) }
	stop := func(why, seen string) plan.Result { memo = with(memo, memoStop, why); return look(seen) }
	ours := r.step.Action.Mutates()
	switch {
	case w.verb == keyManage:
		return look("")
	case memo[memoStop] != "":
		return r.abandon(ctx, n, look)
	case ours && w.verb == keyInspect && since(memo, memoSince, now) >= r.target.Ironic.InspectDeadline && r.target.Ironic.InspectDeadline > 0:
		return stop(stopDeadline, ", the inspection's deadline is over")
	case !waits(n.ProvisionState), w.verb == keyInspect && !inBand(n):
		return look("")
	}
	memo = first(memo, memoWaits, now)
	switch {
	case n.PowerState != powerOn && ours && since(memo, memoWaits, now) >= powerOnBudget:
		return stop(stopPower, ", which did not change for "+powerOnBudget.String())
	case n.PowerState != powerOn || memo[memoLink] != "" || r.links == nil:
		return look("")
	}
	memo = first(memo, memoOn, now)
	state, seen, f := r.links.Link(ctx, r.target)
	if f != nil {
		return r.unwatchable(n, f)
	}
	memo = with(memo, memoSeen, seen)
	if state != plan.LinkDown {
		memo = with(memo, memoLink, string(state))
		return look(", frontend link " + string(state))
	}
	left := linkBudget - since(memo, memoOn, now)
	switch {
	case left > 0:
		return look(", all frontend links down, watched for " + left.Round(time.Second).String() + " more")
	case !ours:
		return plan.Failed(r.with(memo).linksDown(n))
	}
	return stop(stopLink, ", all frontend links down")
}

// unwatchable is the end of an attempt whose links could not be asked for. The
// transition goes on: the next attempt takes it up where it is then.
func (r run) unwatchable(n *node, f *plan.Fault) plan.Result {
	if f.Code == plan.CodeInterrupted {
		return plan.Failed(f)
	}
	if r.memo.Attempt() < attempts(r.scope, r.target) {
		res := r.nextAttempt("the links could not be read: "+f.Summary, plan.Memo{memoSent: "1"})
		res.After = lastPause
		return res
	}
	out := plan.NewFault(plan.CodeLinkUnreadable, "the BMC of %s could not be asked for its frontend links: %s", n.Name, f.Summary).With("code", string(f.Code)).With("node", n.UUID)
	for k, v := range f.Evidence {
		out = out.With(k, v)
	}
	return plan.Failed(out)
}

// abandon aborts the attempt that was given up, once the node is in a state in
// which Ironic takes it; the next look finds inspect failed, or clean failed. A
// node that arrives before that has arrived.
func (r run) abandon(ctx context.Context, n *node, look func(seen string) plan.Result) plan.Result {
	if !waits(n.ProvisionState) || n.Reservation != "" {
		return look(", to be aborted")
	}
	if f := r.service.provision(ctx, n, "abort"); f != nil && f.Evidence["status"] != "400" { // 400: it has moved on
		return plan.Failed(f)
	}
	return look(", aborted")
}

func (r run) linksDown(n *node) *plan.Fault {
	return plan.NewFault(plan.CodeLinkDown, "no frontend link of %s came up within %s of power-on", n.Name, linkBudget).
		With("links", r.memo[memoSeen]).With("power_on_since", r.memo[memoOn]).With("node", n.UUID).With("provision_state", string(n.ProvisionState))
}

// overdue is the fault of the last attempt that was given up for its time.
func (r run) overdue(n *node, w walk) *plan.Fault {
	what := "did not end within inspection_deadline"
	if r.memo[memoStop] == stopPower {
		what = "was not powered on within " + powerOnBudget.String()
	}
	f := plan.NewFault(plan.CodeTimeout, "%s of node %s %s, in attempt %d of %d", w.verb, n.Name, what, r.memo.Attempt(), attempts(r.scope, r.target))
	for k, v := range n.account() {
		f = f.With(k, v)
	}
	return f.With("attempt_since", r.memo[memoSince])
}

// with is the run with another memo.
func (r run) with(memo plan.Memo) run {
	r.memo = memo
	return r
}

// first keeps a moment in a memo, unless one is there already.
func first(m plan.Memo, key string, now time.Time) plan.Memo {
	if m[key] != "" {
		return m
	}
	return with(m, key, now.UTC().Format(time.RFC3339Nano))
}

// since is the time that has passed since a moment in a memo.
func since(m plan.Memo, key string, now time.Time) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, m[key])
	if err != nil {
		return 0
	}
	return now.Sub(at)
}

// account is what a fault says of the node when waiting for it ends.
func (n *node) account() map[string]string {
	return map[string]string{
		"node": n.UUID, "provision_state": string(n.ProvisionState), "target_provision_state": n.TargetProvisionState,
		"power_state": n.PowerState, "last_error": cut(n.LastError), "holder": n.Reservation,
	}
}

// refused adds to a fault of a write who holds the node's lock, as it is now.
func (s *service) refused(ctx context.Context, n *node, f *plan.Fault) *plan.Fault {
	if f.Code == plan.CodeIronicLocked {
		if now, fault := s.node(ctx, n.UUID); fault == nil && now != nil {
			n = now
		}
	}
	_, after, found := strings.Cut(f.Evidence["words"], "is locked by host ")
	if holder, _, ok := strings.Cut(after, ","); found && ok {
		f = f.With("holder", holder) // who held it then, should it be free by now
	}
	for k, v := range n.account() {
		f = f.With(k, v)
	}
	return f
}
