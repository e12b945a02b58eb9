package ironic

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

const (
	// cleanFailure is the fault that Ironic sets together with maintenance when a
	// clean step fails (reference, section 6).
	cleanFailure = "clean failure"
	// ownMark begins the reason of maintenance that enroll put back: Ironic's fault
	// cannot be put back with it, so without a mark it would look like a person's.
	ownMark = "enroll put back: "
)

const maintenanceStep = systemIronic + "." + kindMaintenance

// upkeep is a node's maintenance.
type upkeep struct {
	on            bool
	reason, fault string
}

func (n *node) upkeep() upkeep { return upkeep{n.Maintenance, n.MaintenanceReason, n.Fault} }

// ours reports whether the flag is there because cleaning failed, and not because
// a person works on the machine, or Ironic has lost its BMC.
func (u upkeep) ours() bool {
	return u.fault == cleanFailure || u.fault == "" && strings.HasPrefix(u.reason, ownMark)
}

// foreign says whose the flag is, when it is not ours to clear.
func (u upkeep) foreign(name string) string {
	why := "no reason is given"
	if u.reason != "" {
		why = "reason: " + cut(u.reason)
	}
	if u.fault != "" {
		return "node " + name + " is in maintenance by Ironic itself (" + u.fault + "; " + why + "): mend that first, then Ironic clears it, or --clear-maintenance does"
	}
	return "node " + name + " is in maintenance (" + why + "): Ironic ignores a ramdisk then. --clear-maintenance clears it, when whoever set it agrees"
}

// value has the reason and the fault only while the flag is set, so that a clear
// one is {maintenance: false}.
func (u upkeep) value() plan.Value {
	if !u.on {
		return plan.Obj(map[string]plan.Value{"maintenance": plan.Bool(false)})
	}
	return plan.Obj(map[string]plan.Value{"maintenance": plan.Bool(true), "maintenance_reason": plan.Str(u.reason), "fault": textOrNull(u.fault)})
}

func textOrNull(s string) plan.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return plan.Str(s)
}

// upkeepOf is the maintenance of a decision's node; off when there is no node.
func upkeepOf(d plan.Decision) upkeep {
	live := d.World.Get(d.Target.Address(systemIronic, kindMaintenance, ""))
	if live.Presence != plan.Present {
		return upkeep{on: d.Owner.Maintenance}
	}
	v := live.Value
	return upkeep{on: plan.Attr(v, "maintenance").True(), reason: plan.Text(v, "maintenance_reason"), fault: plan.Text(v, "fault")}
}

// maintenanceKind clears the flag before a ramdisk is booted: Ironic ignores the
// heartbeats of a node in maintenance, and the transition would hang (reference,
// phase 7). Only a flag that cleaning set is cleared unasked.
func maintenanceKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.maintenance",
		Phase: plan.PhaseInspect,
		First: true,
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) {
				return nil
			}
			return []plan.Resource{{Address: t.Address(systemIronic, kindMaintenance, ""), Want: upkeep{}.value(), From: []string{t.Intent.URL}}}
		},
		Decide: decideMaintenance,
		Doc:    "Ironic's maintenance flag is off before a ramdisk is booted",
	}
}

func decideMaintenance(d plan.Decision) plan.Verdict {
	switch d.Live.Presence {
	case plan.Unreachable, plan.Unreadable, plan.Unsupported:
		if !settled(d) {
			return unreadable(d)
		}
		return plan.Nothing()
	case plan.Present, plan.Absent:
	}
	u := upkeepOf(d)
	switch {
	case !u.on || d.Live.Presence == plan.Absent || clearedByManage(d):
		return plan.Nothing()
	case settled(d) && !d.Scope.Parameters.ClearMaintenance || d.Owner.Owned:
		text := "the node is " + string(d.Owner.State) + " and in maintenance"
		if !d.Owner.Owned {
			text += "; --clear-maintenance clears it, when whoever set it agrees"
		}
		return kept(d, d.Live.Value, text)
	}
	s := &plan.Step{Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Because: []string{"maintenance"}, Before: d.Live.Value, After: d.Resource.Want}
	switch {
	case u.ours():
	case d.Scope.Parameters.ClearMaintenance:
		s.Reason = plan.ReasonForced
	default:
		s.Blocked = &plan.Block{Rule: plan.RuleForeign, Text: u.foreign(d.Target.Name())}
	}
	return plan.Verdict{Step: s}
}

// clearedByManage reports whether the recovery that this plan begins with clears
// the flag itself.
func clearedByManage(d plan.Decision) bool {
	s := d.Planned(manageStep)
	return s != nil && plan.HasAttr(s.After, "maintenance")
}

// maintenanceHolds says that the flag keeps a step from running; nil when it is
// off, or will be by then.
func maintenanceHolds(d plan.Decision) *plan.Block {
	u := upkeepOf(d)
	if !u.on || clearedByManage(d) || d.Planned(maintenanceStep) != nil || u.ours() || d.Scope.Parameters.ClearMaintenance {
		return nil
	}
	return &plan.Block{Rule: plan.RuleForeign, Text: u.foreign(d.Target.Name())}
}

func (c *Client) runMaintenance(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	switch {
	case f != nil:
		return plan.Failed(f)
	case !n.Maintenance:
		return plan.Already()
	}
	if f := r.service.endMaintenance(ctx, n); f != nil {
		return plan.Failed(f)
	}
	return plan.Done()
}

func (s *service) endMaintenance(ctx context.Context, n *node) *plan.Fault {
	_, f := s.call(ctx, http.MethodDelete, "nodes/"+url.PathEscape(n.UUID)+"/maintenance", nil, nil)
	if f != nil {
		return s.refused(ctx, n, f)
	}
	return nil
}

// Restore puts the maintenance back that a recovery had cleared, when the manage
// that followed did not bring the node to manageable (reference, never-do list). A
// node in any other state than those that are recovered from has passed that: there
// the flag would hold up whatever is under way.
func (c *Client) Restore(ctx context.Context, sc *plan.Scope, o plan.Obligation) plan.Result {
	t := sc.Target(o.Address.Device)
	if t == nil || t.Ironic == nil {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s: no Ironic manages the device", o.Address))
	}
	s, f := c.service(t.Ironic.Name)
	if f != nil {
		return plan.Failed(f)
	}
	r := run{service: s, target: t, client: c}
	n, f := r.unowned(ctx)
	switch {
	case f != nil:
		return plan.Failed(f)
	case !recoverable(n.ProvisionState), n.Maintenance:
		return plan.Already() // the manage arrived after all, or somebody was faster
	}
	body := map[string]any{"reason": o.Memo[memoReason]}
	if _, f := s.call(ctx, http.MethodPut, "nodes/"+url.PathEscape(n.UUID)+"/maintenance", body, nil); f != nil {
		return plan.Failed(s.refused(ctx, n, f))
	}
	return plan.Done()
}
