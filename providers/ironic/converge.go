package ironic

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

// converged decides what is mended on an existing node, in the states in which
// Ironic permits it. fresh is what a node has right after its creation; Null when
// that writes the wanted value.
func converged(f field, fresh plan.Value) func(d plan.Decision) plan.Verdict {
	return func(d plan.Decision) plan.Verdict {
		switch d.Live.Presence {
		case plan.Unreachable, plan.Unreadable, plan.Unsupported:
			if settled(d) {
				return plan.Nothing()
			}
			return unreadable(d)
		case plan.Absent:
			if fresh.IsNull() {
				return plan.Nothing()
			}
			return plan.Verdict{Step: &plan.Step{Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Before: fresh, After: d.Resource.Want, Because: plan.DiffPaths(fresh, d.Resource.Want)}}
		case plan.Present:
		}
		switch v := plan.Compare(d); {
		case v.Step == nil:
			return v
		case settled(d):
			return kept(d, plan.Restrict(d.Live.Value, d.Resource.Want), "the node is "+string(d.Owner.State)+" and stays as it is")
		case !legal(f, then(d)):
			return later(d, string(f))
		default:
			return v
		}
	}
}

// resourceOf makes the one resource of a kind that a device has.
func resourceOf(kind, key string, want func(t *plan.Target) plan.Value) func(t *plan.Target) []plan.Resource {
	return func(t *plan.Target) []plan.Resource {
		if !enrols(t) {
			return nil
		}
		v := want(t)
		if v.IsNull() {
			return nil
		}
		return []plan.Resource{{Address: t.Address(systemIronic, kind, key), Want: v, From: []string{t.Intent.URL + "config-context/"}}}
	}
}

// traitKind ensures the scheduler's HW_ARCH trait; others are left (reference,
// phase 4).
func traitKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.trait",
		Phase: plan.PhaseInspect,
		First: true,
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) || t.Ironic.SchedulerTrait == "" {
				return nil
			}
			return []plan.Resource{{Address: t.Address(systemIronic, kindTrait, t.Ironic.SchedulerTrait), Want: traitValue(true), From: []string{"scheduler_trait of ironic " + t.Ironic.Name}}}
		},
		Decide: converged(fieldTraits, traitValue(false)),
		Doc:    "the node has the scheduler's trait; others are left",
	}
}

func traitValue(present bool) plan.Value {
	return plan.Obj(map[string]plan.Value{"present": plan.Bool(present)})
}

func (c *Client) runTrait(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	switch {
	case f != nil:
		return plan.Failed(f)
	case slices.Contains(n.Traits, r.step.Address.Key):
		return plan.Already()
	}
	// One trait, never the list: a list would take the others away.
	if _, f := r.service.call(ctx, http.MethodPut, "nodes/"+url.PathEscape(n.UUID)+"/traits/"+url.PathEscape(r.step.Address.Key), nil, nil); f != nil {
		return plan.Failed(r.service.refused(ctx, n, f))
	}
	return plan.Done()
}

// raidInterfaceKind keeps the RAID interface of nodes that have a RAID target
// (reference, phase 4); of others it is create-only.
func raidInterfaceKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.raid_interface",
		Phase: plan.PhaseInspect,
		First: true,
		Want: resourceOf(kindRAIDInterface, "", func(t *plan.Target) plan.Value {
			name := t.Intent.Ironic.Interfaces["raid_interface"]
			if len(t.Intent.Ironic.TargetRAIDConfig) == 0 || name == "" {
				return plan.Null
			}
			return plan.Obj(map[string]plan.Value{"raid_interface": plan.Str(name)})
		}),
		Decide: converged(fieldInterface, plan.Null),
		Doc:    "the RAID interface of a node with a RAID target",
	}
}

func (c *Client) runRAIDInterface(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	if f != nil {
		return plan.Failed(f)
	}
	return r.patched(ctx, n, "", []map[string]any{add("/raid_interface", plan.Text(r.step.After, "raid_interface"))})
}

// raidConfigKind sets the RAID target, in manageable only (reference, phase 5).
// What it asks for is built by a clean step, when the server gives that one a
// priority.
func raidConfigKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.raid_config",
		Phase: plan.PhaseInspect,
		Want: resourceOf(kindRAIDConfig, "", func(t *plan.Target) plan.Value {
			if len(t.Intent.Ironic.TargetRAIDConfig) == 0 {
				return plan.Null
			}
			return raidValue(t.Intent.Ironic.TargetRAIDConfig)
		}),
		Decide: converged(fieldRAID, raidValue(nil)),
		Doc:    "the RAID configuration that cleaning shall build",
	}
}

func raidValue(config map[string]any) plan.Value {
	return plan.Obj(map[string]plan.Value{"target_raid_config": value(config)})
}

func (c *Client) runRAIDConfig(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	if f != nil {
		return plan.Failed(f)
	}
	if n.ProvisionState != plan.StateManageable {
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "node %s is in state %q: its RAID target is set in manageable only", n.Name, n.ProvisionState))
	}
	body := plan.ToJSON(plan.Attr(r.step.After, "target_raid_config"))
	if _, f := r.service.call(ctx, http.MethodPut, "nodes/"+url.PathEscape(n.UUID)+"/states/raid", body, nil); f != nil {
		return plan.Failed(r.service.refused(ctx, n, f))
	}
	return plan.Done()
}

// rootDeviceKind keeps the hint by which Ironic finds the disk of the operating
// system. It is never taken away but from nodes with software RAID: it is their
// only pin (reference, never-do list).
func rootDeviceKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.root_device",
		Phase: plan.PhaseInspect,
		First: true,
		Want: resourceOf(kindRootDevice, "", func(t *plan.Target) plan.Value {
			return rootDeviceValue(t.Intent.Ironic.RootDevice)
		}),
		Decide: decideRootDevice,
		Doc:    "the hint of the disk of the operating system; never taken away but with software RAID",
	}
}

func rootDeviceValue(hint map[string]any) plan.Value {
	v := plan.Null
	if len(hint) > 0 {
		v = value(hint)
	}
	return plan.Obj(map[string]plan.Value{"root_device": v})
}

// softwareRAID reports whether the RAID target has a disk that the ramdisk builds.
func softwareRAID(config map[string]any) bool {
	disks, _ := config["logical_disks"].([]any)
	return slices.ContainsFunc(disks, func(d any) bool {
		disk, _ := d.(map[string]any)
		return disk["controller"] == "software"
	})
}

func decideRootDevice(d plan.Decision) plan.Verdict {
	wantsNone := plan.Attr(d.Resource.Want, "root_device").IsNull()
	if wantsNone && d.Live.Presence == plan.Present && !plan.Attr(d.Live.Value, "root_device").IsNull() && !softwareRAID(d.Target.Intent.Ironic.TargetRAIDConfig) {
		return kept(d, d.Live.Value, "NetBox no longer sets a root_device hint; it is kept, because it is the node's only pin of the disk of its operating system")
	}
	return converged(fieldDriverInfo, plan.Null)(d)
}

func (c *Client) runRootDevice(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	if f != nil {
		return plan.Failed(f)
	}
	hint := plan.Attr(r.step.After, "root_device")
	if hint.IsNull() {
		return r.patched(ctx, n, "", []map[string]any{{"op": "remove", "path": "/properties/root_device"}})
	}
	return r.patched(ctx, n, "", []map[string]any{add("/properties/root_device", plan.ToJSON(hint))})
}

// driverKind switches a node to ipmi after its inspection, where the site asks
// for it, as a whole or for the device's platform: unowned, manageable, redfish or
// idrac (reference, phase 6).
func driverKind() plan.Kind {
	return plan.Kind{
		Name:  "ironic.driver",
		Phase: plan.PhaseClean,
		First: true,
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) || !t.SwitchesToIPMI() {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address(systemIronic, kindDriver, ""), Want: plan.Obj(map[string]plan.Value{"driver": plan.Str("ipmi")}),
				From: []string{switchedBy(t) + " of ironic " + t.Ironic.Name}, Effects: []plan.Effect{plan.EffectCredential}, Sensitive: true,
			}}
		},
		Decide: decideDriver,
		Doc:    "the driver is ipmi after inspection, where the site asks for it",
	}
}

// switchedBy names the attribute that asks for the switch.
func switchedBy(t *plan.Target) string {
	if t.Ironic.SwitchToIPMI {
		return "switch_to_ipmi_after_inspection"
	}
	return "switch_to_ipmi_platforms"
}

func decideDriver(d plan.Decision) plan.Verdict {
	driver := plan.Text(d.Live.Value, "driver")
	if d.Live.Presence == plan.Absent {
		driver = d.Target.Intent.Ironic.Driver
	}
	switch {
	case d.Live.Presence != plan.Present && d.Live.Presence != plan.Absent:
		if settled(d) {
			return plan.Nothing()
		}
		return unreadable(d)
	case settled(d) || driver != "redfish" && driver != "idrac":
		return plan.Nothing() // already switched, or left alone
	case d.Planned(inspectStep) == nil && !legal(fieldDriver, then(d)):
		return plan.Nothing() // cleaning is under way
	}
	before := plan.Obj(map[string]plan.Value{"driver": plan.Str(driver)})
	s := &plan.Step{Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Because: []string{"driver"}, Before: before, After: d.Resource.Want}
	s.Blocked = walks()[keyProvide].barrier(d, send)
	return plan.Verdict{Step: s}
}

// portable are the interfaces that an ipmi node can have as well: reset_interfaces
// would discard them.
func portable(n *node) []map[string]any {
	var out []map[string]any
	for _, k := range []string{"deploy_interface", "inspect_interface", "network_interface", "raid_interface", "rescue_interface", "storage_interface"} {
		switch name := n.Interfaces[k]; name {
		case "", "redfish", "idrac-redfish", "idrac":
		default:
			out = append(out, add("/"+k, name))
		}
	}
	return out
}

func (c *Client) runDriver(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	switch {
	case f != nil:
		return plan.Failed(f)
	case n.ProvisionState != plan.StateManageable:
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "node %s is in state %q: its driver is switched in manageable only", n.Name, n.ProvisionState))
	}
	patch, f := c.credentialPatch(ctx, r.target.Name(), "ipmi")
	if f != nil {
		return plan.Failed(f)
	}
	patch = append([]map[string]any{add("/driver", "ipmi"), add("/driver_info/ipmi_address", r.target.Intent.OOB.String())}, append(portable(n), patch...)...)
	return r.patched(ctx, n, "?reset_interfaces=True", patch)
}
