package ironic

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// What a transition remembers between two exchanges, beside memoSent and
// memoPause.
const (
	memoReason  = "reason"  // of the maintenance that the recovery clears
	memoWindow  = "window"  // open: it is on disk that the flag is to be cleared; cleared: it is
	memoRecover = "recover" // the last attempt failed and manage is under way
)

const (
	windowOpen    = "open"
	windowCleared = "cleared"
)

// attempts is how often inspection, or cleaning, is tried in all.
func attempts(sc *plan.Scope, t *plan.Target) int {
	if n := sc.Parameters.MaxAttempts; n > 0 {
		return n
	}
	return max(t.Ironic.Attempts, 1)
}

// with gives a memo with one more entry.
func with(m plan.Memo, key, value string) plan.Memo {
	out := plan.Memo{}
	for k, v := range m {
		out[k] = v
	}
	if value == "" {
		delete(out, key)
	} else {
		out[key] = value
	}
	return out
}

// recoverable reports whether a node in a state is brought back to manageable.
func recoverable(s plan.ProvisionState) bool {
	return s == plan.StateInspectFailed || s == plan.StateCleanFailed
}

// recover brings a node back to manageable from inspect failed or clean failed,
// one exchange at a time. Maintenance is cleared first and put back if manage does
// not succeed: that is on disk before the flag is touched. The window ends with
// manageable, whatever comes after (reference, never-do list).
func (r run) recover(ctx context.Context, n *node) plan.Result {
	memo := with(r.memo, memoRecover, "1")
	u := n.upkeep()
	switch {
	case n.ProvisionState == plan.StateManageable && n.Reservation != "":
		return carrying(again(r.memo, progress(n), true), memo)
	case n.ProvisionState == plan.StateManageable:
		return plan.Done().Closing()
	case n.Reservation != "" && patient(r.memo):
		// The state shows before the lock is free; the next request would meet it.
		return carrying(again(r.memo, progress(n), r.memo[memoSent] != ""), memo)
	case u.on && r.memo[memoWindow] == "" && !u.ours() && !r.scope.Parameters.ClearMaintenance:
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "%s", u.foreign(n.Name)).With("node", n.UUID))
	case u.on && r.memo[memoWindow] == "":
		reason := u.reason
		if u.fault == cleanFailure {
			reason = ownMark + reason
		}
		memo = with(with(memo, memoWindow, windowOpen), memoReason, reason)
		return plan.Wait(0, "maintenance is cleared for the recovery", memo).Opening(plan.Obligation{
			Text: "maintenance of node " + n.Name + ": on, with the reason " + cut(reason), Memo: plan.Memo{memoReason: reason},
		})
	case u.on && r.memo[memoWindow] == windowOpen:
		if f := r.service.endMaintenance(ctx, n); f != nil {
			return plan.Failed(f)
		}
		return plan.Wait(0, "maintenance is cleared, manage follows", with(memo, memoWindow, windowCleared))
	case u.on:
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "node %s went into maintenance again while it was recovered", n.Name).With("maintenance_reason", cut(u.reason)).With("node", n.UUID))
	case !recoverable(n.ProvisionState):
		return plan.Failed(r.service.strayed(ctx, n, walks()[keyManage]))
	}
	if f := r.service.provision(ctx, n, keyManage); f != nil {
		return plan.Failed(f)
	}
	return carrying(again(nil, "manage was accepted", true), memo)
}

// patient reports whether a lock may still be the one that a transition leaves
// behind for a moment. One that stays is somebody's: the next request is refused
// with the holder's name, and the lock's own ledger begins.
func patient(m plan.Memo) bool {
	d, err := time.ParseDuration(m[memoPause])
	return err != nil || d < 2*time.Second
}

// carrying keeps what a transition remembers beside its pause.
func carrying(r plan.Result, memo plan.Memo) plan.Result {
	for k, v := range memo {
		if _, set := r.Memo[k]; !set && k != memoPause && k != memoSent {
			r.Memo[k] = v
		}
	}
	return r
}

// provision sends a verb.
func (s *service) provision(ctx context.Context, n *node, verb string) *plan.Fault {
	_, f := s.call(ctx, http.MethodPut, "nodes/"+url.PathEscape(n.UUID)+"/states/provision", map[string]any{"target": verb}, nil)
	if f != nil {
		return s.refused(ctx, n, f)
	}
	return nil
}
