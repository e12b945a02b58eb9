package ironic

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// inspectionKind are the checks of an inventory against config context
// inspection_validation: one resource for each that the record asks for, and the
// carrier of the frontend NICs in any case.
func inspectionKind() plan.Kind {
	return plan.Kind{
		Name:  "check.inspection",
		Phase: plan.PhaseVerify,
		Want: func(t *plan.Target) []plan.Resource {
			if !enrols(t) {
				return nil
			}
			var out []plan.Resource
			e := expected(t)
			for _, c := range inspectionChecks() {
				text := c.expects(e)
				if text == "" {
					continue
				}
				r := plan.Resource{Address: t.Address(systemCheck, kindInspection, c.key), Want: plan.Obj(map[string]plan.Value{"expected": plan.Str(text)}), From: []string{t.Intent.URL}}
				if c.path != "" {
					r.From = []string{t.Intent.URL + "config-context/", "inspection_validation." + c.path}
				}
				out = append(out, r)
			}
			return out
		},
		Decide: decideCheck,
		Looks:  []plan.Action{plan.ActionVerify},
		Doc:    "the inspection found the hardware that config context inspection_validation records",
	}
}

// lldpKind checks each frontend cable; see cable.
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
		Looks:  []plan.Action{plan.ActionVerify},
		Doc:    "the cable of a frontend NIC leads to the switch port that NetBox records, as LLDP saw it",
	}
}

// checkKinds are the kinds whose live value is what a check found.
func checkKinds() []plan.Kind { return []plan.Kind{inspectionKind(), lldpKind()} }

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

func nicOf(t *plan.Target, a plan.Address) (plan.FrontendNIC, bool) {
	for _, nic := range frontend(t) {
		if nic.Name == a.Key {
			return nic, true
		}
	}
	return plan.FrontendNIC{}, false
}

// judge looks at one inventory for one device.
type judge struct {
	target *plan.Target
	e      expectations
	checks map[string]inspectionCheck
	inv    *inventory // nil: there is none
}

func newJudge(t *plan.Target, inv *inventory) judge {
	j := judge{target: t, e: expected(t), checks: map[string]inspectionCheck{}, inv: inv}
	for _, c := range inspectionChecks() {
		j.checks[c.key] = c
	}
	return j
}

// find gives the finding of one check.
func (j judge) find(a plan.Address) finding {
	if a.Kind == kindLLDP {
		nic, _ := nicOf(j.target, a)
		return cable(nic, j.e, j.inv)
	}
	if c, ok := j.checks[a.Key]; ok && c.expects(j.e) != "" {
		return c.judge(j.e, j.inv)
	}
	return finding{verdict: plan.CheckSkipped, observed: "not looked at", text: "the record no longer asks for it"}
}

// check gives the verdict on one resource.
func (j judge) check(r plan.Resource) plan.Check {
	c := pending(j.target, r)
	switch {
	case c.Verdict == plan.CheckSkipped:
	case j.inv == nil:
		c.Text = noInventory
	default:
		c = judged(c, j.find(r.Address))
	}
	return c
}

// judgeAll gives every check of a device on an inventory, nil when there is none.
func judgeAll(t *plan.Target, inv *inventory) []plan.Check {
	var out []plan.Check
	j := newJudge(t, inv)
	for _, k := range checkKinds() {
		for _, r := range k.Want(t) {
			out = append(out, j.check(r))
		}
	}
	return out
}

// liveCheck is a finding as a live value.
func liveCheck(f finding) plan.Value {
	return plan.Obj(map[string]plan.Value{"verdict": plan.Str(string(f.verdict)), "observed": plan.Str(f.observed), "text": plan.Str(f.text), "from": plan.Strs(f.from...)})
}

func findingOf(v plan.Value) finding {
	f := finding{verdict: plan.CheckVerdict(plan.Text(v, "verdict")), observed: plan.Text(v, "observed"), text: plan.Text(v, "text")}
	for _, el := range plan.Attr(v, "from").AsValueSlice() {
		if el.Type() == cty.String {
			f.from = append(f.from, el.AsString())
		}
	}
	return f
}

// decideCheck gives the verdict on the evidence at hand, or a verify step when
// this plan brings the evidence about.
func decideCheck(d plan.Decision) plan.Verdict {
	c := pendingIn(d, d.Resource)
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
		return plan.Verdict{Checks: []plan.Check{judged(c, findingOf(d.Live.Value))}}
	case plan.Absent:
		c.Text = noInventory
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

const noInventory = "Ironic has no inventory of the node"

// pending is the check before any evidence: what is expected, and whether the
// record excuses the device from it.
func pending(t *plan.Target, r plan.Resource) plan.Check {
	c := plan.Check{Address: r.Address, Verdict: plan.CheckUnknown, Expected: plan.Text(r.Want, "expected"), Observed: "nothing yet", From: r.From}
	if r.Address.Kind != kindLLDP {
		return c
	}
	nic, _ := nicOf(t, r.Address)
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

// pendingIn also knows what the operator asked for.
func pendingIn(d plan.Decision, r plan.Resource) plan.Check {
	c := pending(d.Target, r)
	if d.Scope.Parameters.SkipInspection {
		c.Verdict, c.Observed, c.Text = plan.CheckSkipped, "not looked at", "the operator asked for no inspection and no verification (run_inspection = false)"
	}
	return c
}

// judged adds a finding to a check. What the record excuses stays excused.
func judged(c plan.Check, f finding) plan.Check {
	if c.Verdict == plan.CheckSkipped {
		return c
	}
	c.Verdict, c.Observed, c.Text = f.verdict, f.observed, f.text
	c.From = append(append([]string(nil), c.From...), f.from...)
	return c
}

// proven says whether a check lets cleaning begin. A cable that nobody saw does
// not.
func proven(c plan.Check) bool {
	return c.Verdict == plan.CheckPass || c.Verdict == plan.CheckSkipped
}

// evidence judges all checks of a device on the inventory at hand.
func evidence(d plan.Decision) []plan.Check {
	var out []plan.Check
	for _, k := range checkKinds() {
		for _, r := range k.Want(d.Target) {
			c := pendingIn(d, r)
			if live := d.World.Get(r.Address); live.Presence == plan.Present {
				c = judged(c, findingOf(live.Value))
			}
			out = append(out, c)
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
	if n != nil {
		if inv, f = r.service.recent(ctx, n); f != nil {
			return plan.Failed(f)
		}
		if inv != nil && r.step.Address.Key == keyPXE {
			// The inspection may have changed the ports.
			own := *inv
			if f := r.service.readPXE(ctx, n, &own); f != nil {
				return plan.Failed(f)
			}
			inv = &own
		}
	}
	return plan.Verified(newJudge(r.target, inv).check(plan.Resource{Address: r.step.Address, Want: r.step.After, From: r.step.From}))
}
