package ironic

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

const powerOn = "power on"

// powerBudget: the server's own limit for a power change is 60 s, and the lock
// may be held before.
const powerBudget = 5 * time.Minute

// powerKind leaves an available node that nobody holds powered on (reference,
// phase 7, finalize). Deployed nodes see no power change.
func powerKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.power",
		Phase: plan.PhaseFinish,
		First: true, // the tag says that all is done
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address(systemIronic, kindPower, ""), Want: powerValue(powerOn), From: []string{t.Intent.URL},
				Effects: []plan.Effect{plan.EffectPower}, Budget: plan.Duration(powerBudget),
			}}
		},
		Decide: decidePower,
		Doc:    "an available node is powered on",
	}
}

// powerValue is null where Ironic has not read the power state yet.
func powerValue(state string) plan.Value {
	if state == "" {
		return plan.Obj(map[string]plan.Value{"power_state": plan.Null})
	}
	return plan.Obj(map[string]plan.Value{"power_state": plan.Str(state)})
}

func decidePower(d plan.Decision) plan.Verdict {
	if d.Live.Presence == plan.Unreachable || d.Live.Presence == plan.Unreadable || d.Live.Presence == plan.Unsupported {
		return unreadable(d)
	}
	if d.Owner.Owned {
		return plan.Nothing()
	}
	step := &plan.Step{Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Because: []string{"power_state"}, After: d.Resource.Want}
	switch {
	case d.Owner.State == plan.StateAvailable:
		if plan.Satisfies(d.Resource.Want, d.Live.Value) {
			return plan.Nothing()
		}
		step.Before = plan.Restrict(d.Live.Value, d.Resource.Want)
	case d.Planned(provideStep) != nil:
		// How cleaning leaves the power is up to Ironic's settings.
		step.Reason, step.Because, step.Before, step.BeforeUnknown = plan.ReasonDeferred, []string{"cleaning may power the node off"}, plan.Unknown, true
	default:
		return plan.Nothing()
	}
	if b := maintenanceHolds(d); b != nil {
		step.Blocked = b
	}
	return plan.Verdict{Step: step}
}

func (c *Client) runPower(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	if f != nil {
		return plan.Failed(f)
	}
	sent := r.memo[memoSent] != ""
	switch {
	case n.TargetPowerState != "" || (sent && n.Reservation != ""):
		return again(r.memo, progress(n)+", target "+n.TargetPowerState, true)
	case n.PowerState == powerOn && sent:
		return plan.Done()
	case n.PowerState == powerOn:
		return plan.Already()
	case n.ProvisionState != plan.StateAvailable:
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "node %s is in state %q, not %q: its power is left alone", n.Name, n.ProvisionState, plan.StateAvailable))
	case sent && n.LastError != "":
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "node %s did not power on: %s", n.Name, cut(n.LastError)).With("power_state", n.PowerState))
	case sent:
		return again(r.memo, progress(n), true)
	}
	if _, f := r.service.call(ctx, http.MethodPut, "nodes/"+url.PathEscape(n.UUID)+"/states/power", map[string]any{"target": powerOn}, nil); f != nil {
		return plan.Failed(r.service.refused(ctx, n, f))
	}
	return again(nil, "power on was accepted", true)
}
