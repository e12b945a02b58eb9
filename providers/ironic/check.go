package ironic

import (
	"context"
	"sort"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// carrierKind checks that no frontend link is down: has_carrier explicitly
// false fails, carrier that was not reported passes and is named (reference,
// phase 5). Its live value is {NIC: true, false or null}.
func carrierKind() plan.Kind {
	return plan.Kind{
		Name:  "check.carrier",
		Phase: plan.PhaseVerify,
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) || len(frontend(t)) == 0 {
				return nil
			}
			want := map[string]plan.Value{}
			var from []string
			for _, nic := range frontend(t) {
				want[nic.Name] = plan.Bool(true)
				from = append(from, nic.URL)
			}
			return []plan.Resource{{Address: t.Address(systemCheck, kindCarrier, ""), Want: plan.Obj(want), From: from}}
		},
		Decide: decideCheck,
		Doc:    "every frontend NIC has a link, as the inspection saw it",
	}
}

// lldpKind checks each frontend cable: the switch's LLDP system name must be the
// NetBox name of the far end's device, and the far end's port name must be the
// LLDP port id or the port description, because switches differ in which of the
// two carries it (reference, phase 5). Its live value has the frame's fields,
// null where nothing was reported.
func lldpKind() plan.Kind {
	return plan.Kind{
		Name:  "check.lldp",
		Phase: plan.PhaseVerify,
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) {
				return nil
			}
			var out []plan.Resource
			for _, nic := range frontend(t) {
				r := plan.Resource{Address: t.Address(systemCheck, kindLLDP, nic.Name), From: []string{nic.URL}, Want: plan.Obj(map[string]plan.Value{})}
				if nic.Peer != nil {
					r.Want = plan.Obj(map[string]plan.Value{"system_name": plan.Str(nic.Peer.Device), "port": plan.Str(nic.Peer.Port)})
					r.From = append(r.From, nic.Peer.URL)
				}
				out = append(out, r)
			}
			return out
		},
		Decide: decideCheck,
		Doc:    "the cable of a frontend NIC leads to the switch port that NetBox records, as LLDP saw it",
	}
}

// frontend lists the NICs that can be looked for in an inventory.
func frontend(t *plan.Target) []plan.FrontendNIC {
	var out []plan.FrontendNIC
	for _, nic := range t.Intent.Frontend {
		if !nic.MAC.IsZero() {
			out = append(out, nic)
		}
	}
	return out
}

func textOrNull(s string) plan.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return plan.Str(s)
}

// liveCarrier and liveLLDP are what an inventory says about a check's resource.
func liveCarrier(t *plan.Target, inv *inventory) plan.Value {
	attrs := map[string]plan.Value{}
	for _, nic := range frontend(t) {
		attrs[nic.Name] = cty.NullVal(cty.Bool)
		if l, ok := inv.link(nic.MAC); ok && l.carrier != nil {
			attrs[nic.Name] = plan.Bool(*l.carrier)
		}
	}
	return plan.Obj(attrs)
}

func liveLLDP(nic plan.FrontendNIC, inv *inventory) plan.Value {
	l, _ := inv.link(nic.MAC)
	return plan.Obj(map[string]plan.Value{
		"interface":        textOrNull(l.name),
		"chassis_id":       textOrNull(l.far.ChassisID),
		"system_name":      textOrNull(l.far.SystemName),
		"port_id":          textOrNull(l.far.PortID),
		"port_description": textOrNull(l.far.PortDescription),
	})
}

// decideCheck gives the verdict on the evidence at hand, or a verify step when
// this plan brings the evidence about.
func decideCheck(d plan.Decision) plan.Verdict {
	nic, _ := nicOf(d.Target, d.Resource.Address)
	c := pending(d.Target, d.Resource, nic)
	if c.Verdict == plan.CheckSkipped {
		return plan.Verdict{Checks: []plan.Check{c}}
	}
	if d.Planned(inspectStep) != nil {
		c.Text = "known after the inspection"
		return plan.Verdict{
			Step:   &plan.Step{Action: plan.ActionVerify, Reason: plan.ReasonUnproven, Because: []string{inspectStep}, Before: plan.Null, After: d.Resource.Want},
			Checks: []plan.Check{c},
		}
	}
	switch d.Live.Presence {
	case plan.Present:
		return plan.Verdict{Checks: []plan.Check{judge(d.Target, d.Resource, nic, d.Live.Value)}}
	case plan.Absent:
		c.Text = "Ironic has no inventory of the node"
	case plan.Unreachable, plan.Unreadable, plan.Unsupported:
		if !settled(d) {
			return unreadable(d)
		}
		c.Text = "the inventory could not be read"
		if d.Live.Fault != nil {
			return plan.Verdict{Checks: []plan.Check{c}, Warnings: []*plan.Fault{d.Live.Fault}}
		}
	}
	return plan.Verdict{Checks: []plan.Check{c}}
}

func nicOf(t *plan.Target, a plan.Address) (plan.FrontendNIC, bool) {
	for _, nic := range frontend(t) {
		if nic.Name == a.Key {
			return nic, true
		}
	}
	return plan.FrontendNIC{}, false
}

// pending is the check before any evidence: what is expected, and whether the
// record excuses the device from it.
func pending(t *plan.Target, r plan.Resource, nic plan.FrontendNIC) plan.Check {
	c := plan.Check{Address: r.Address, Verdict: plan.CheckUnknown, Observed: "nothing yet", From: r.From}
	if r.Address.Kind == kindCarrier {
		var names []string
		for _, n := range frontend(t) {
			names = append(names, n.Name)
		}
		c.Expected = "link on " + strings.Join(names, ", ")
		return c
	}
	switch {
	case nic.Peer != nil:
		c.Expected = nic.Peer.Device + " " + nic.Peer.Port
	default:
		c.Expected, c.Text = "no cable recorded", "NetBox records no cable for "+nic.Name
	}
	if t.Intent.Ironic.SkipCableVerification {
		c.Verdict, c.Observed, c.Text = plan.CheckSkipped, "not looked at", "ironic_settings.skip_cable_verification is set"
	}
	return c
}

// judge compares one resource with what the inventory says.
func judge(t *plan.Target, r plan.Resource, nic plan.FrontendNIC, live plan.Value) plan.Check {
	c := pending(t, r, nic)
	switch {
	case c.Verdict == plan.CheckSkipped:
	case r.Address.Kind == kindCarrier:
		judgeCarrier(&c, t, live)
	default:
		judgeLLDP(&c, nic, live)
	}
	return c
}

func judgeCarrier(c *plan.Check, t *plan.Target, live plan.Value) {
	var up, down, silent []string
	for _, nic := range frontend(t) {
		switch v := plan.Attr(live, nic.Name); {
		case v.IsNull():
			silent = append(silent, nic.Name)
		case v.True():
			up = append(up, nic.Name)
		default:
			down = append(down, nic.Name)
		}
	}
	c.Observed = observedLinks(up, down, silent)
	switch {
	case len(down) > 0:
		c.Verdict, c.Text = plan.CheckFail, "no link on "+strings.Join(down, ", ")+": check cable, optics and switch port"
	case len(silent) > 0:
		c.Verdict, c.Text = plan.CheckPass, "the inspection did not report the carrier of "+strings.Join(silent, ", ")+"; only a link that is reported down fails"
	default:
		c.Verdict = plan.CheckPass
	}
}

func observedLinks(up, down, silent []string) string {
	var parts []string
	for _, p := range []struct {
		what string
		nics []string
	}{{"link on ", up}, {"no link on ", down}, {"not reported for ", silent}} {
		if len(p.nics) > 0 {
			sort.Strings(p.nics)
			parts = append(parts, p.what+strings.Join(p.nics, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func judgeLLDP(c *plan.Check, nic plan.FrontendNIC, live plan.Value) {
	system, chassis := plan.Text(live, "system_name"), plan.Text(live, "chassis_id")
	port, description := plan.Text(live, "port_id"), plan.Text(live, "port_description")
	switch {
	case plan.Text(live, "interface") == "":
		c.Observed, c.Text = "no such interface", "the inventory has no interface with MAC address "+nic.MAC.String()
		return
	case system == "" && port == "" && description == "":
		c.Observed, c.Text = "no LLDP", "no LLDP frame was reported for "+nic.Name+": the switch sends none, or the ramdisk does not collect it"
		return
	case nic.Peer == nil:
		c.Observed = far(system, chassis, port, description, "")
		return
	}
	c.Observed = far(system, chassis, port, description, nic.Peer.Port)
	switch {
	case system != nic.Peer.Device:
		c.Verdict, c.Text = plan.CheckFail, nic.Name+" is cabled to another switch than NetBox records"
	case port != nic.Peer.Port && description != nic.Peer.Port:
		c.Verdict, c.Text = plan.CheckFail, nic.Name+" is cabled to another port than NetBox records"
	default:
		c.Verdict = plan.CheckPass
	}
}

// far writes the far end as "switch port". Where the port's name stands in the
// description, as on switches that send a MAC address as port id, that is shown.
func far(system, chassis, port, description, want string) string {
	if system == "" {
		system = "chassis " + chassis
	}
	switch {
	case port == want || description == "":
		return system + " " + port
	case description == want || port == "":
		return system + " " + description
	}
	return system + " " + port + " (" + description + ")"
}

// proven says whether a check lets cleaning begin. A cable that nobody saw does
// not.
func proven(c plan.Check) bool {
	return c.Verdict == plan.CheckPass || c.Verdict == plan.CheckSkipped
}

// evidence judges all checks of a device on the inventory at hand.
func evidence(d plan.Decision) []plan.Check {
	var out []plan.Check
	for _, k := range []plan.Kind{carrierKind(), lldpKind()} {
		for _, r := range k.Want(d.Target) {
			nic, _ := nicOf(d.Target, r.Address)
			live := d.World.Get(r.Address)
			if live.Presence != plan.Present {
				out = append(out, pending(d.Target, r, nic))
				continue
			}
			out = append(out, judge(d.Target, r, nic, live.Value))
		}
	}
	return out
}

// runCheck reads the inventory fresh and gives the verdict. The interpreter
// lets nothing pass that failed or is unproven: this is the gate before cleaning.
func (c *Client) runCheck(ctx context.Context, r run) plan.Result {
	n, f := r.service.node(ctx, r.target.Name())
	if f != nil {
		return plan.Failed(f)
	}
	var inv *inventory
	found := false
	if n != nil {
		if inv, found, f = r.service.inventory(ctx, n); f != nil {
			return plan.Failed(f)
		}
	}
	nic, _ := nicOf(r.target, r.step.Address)
	resource := plan.Resource{Address: r.step.Address, Want: r.step.After, From: r.step.From}
	check := pending(r.target, resource, nic)
	switch {
	case !found:
		check.Text = "Ironic has no inventory of the node"
	case r.step.Address.Kind == kindCarrier:
		check = judge(r.target, resource, nic, liveCarrier(r.target, inv))
	default:
		check = judge(r.target, resource, nic, liveLLDP(nic, inv))
	}
	return plan.Verified(check)
}
