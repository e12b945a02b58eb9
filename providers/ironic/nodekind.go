package ironic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"sort"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// nodeKind is the node itself: created when absent, never reconciled afterwards
// (reference, phase 4: "like the other interfaces it is create-only"). Its value
// has the fields of Ironic's node that enroll decides on. User name and
// password are written at creation and are no part of the value: Ironic shows
// the password as ******.
func nodeKind() plan.Kind {
	return plan.Kind{
		Name:   "ironic.node",
		Phase:  plan.PhaseNode,
		Want:   wantNode,
		Decide: decideNode,
		Doc:    "the Ironic node, with the BMC's address and the device's own credential; create-only",
	}
}

func wantNode(t *plan.Target) []plan.Resource {
	if !enrols(t) {
		return nil
	}
	i := t.Intent.Ironic
	want := map[string]plan.Value{
		"name":           plan.Str(t.Name()),
		"driver":         plan.Str(i.Driver),
		"driver_info":    value(driverInfo(t)),
		"resource_class": plan.Str(i.ResourceClass),
		"properties":     value(properties(i)),
	}
	if i.ResourceClass == "" {
		delete(want, "resource_class")
	}
	for field, name := range i.Interfaces {
		want[field] = plan.Str(name)
	}
	if p := t.Ironic.EnrolProject; p != "" {
		want["owner"], want["lessee"] = plan.Str(p), plan.Str(p)
	}
	from := []string{t.Intent.URL}
	if ref := t.Settings.BMCPassword; !ref.IsZero() {
		from = append(from, "driver_info."+passwordKey(i.Driver)+": "+ref.String())
	}
	return []plan.Resource{{
		Address: t.Address(systemIronic, kindNode, ""), Want: plan.Obj(want), From: from,
		Effects: []plan.Effect{plan.EffectCredential}, CreateOnly: true, Sensitive: true,
	}}
}

// nodeName is what Ironic accepts as a name (API 1.10).
var nodeName = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

func decideNode(d plan.Decision) plan.Verdict {
	switch d.Live.Presence {
	case plan.Present:
		if !settled(d) && d.Owner.NeedsHuman {
			return plan.Verdict{Fault: plan.NewFault(plan.CodeIronicNeedsHuman, "node %s is in state %q", d.Owner.Node, d.Owner.State)}
		}
	case plan.Absent:
		if name := d.Target.Name(); !nodeName.MatchString(name) {
			return plan.Verdict{Fault: plan.NewFault(plan.CodeIntentInvalid, "the device name %q cannot be a node name: Ironic takes letters, digits and . _ ~ - only", name).With("object", d.Target.Intent.URL)}
		}
	case plan.Unreachable, plan.Unreadable, plan.Unsupported:
		return unreadable(d)
	}
	if d.Target.SwitchesToIPMI() && ipmi(plan.Text(d.Live.Value, "driver")) {
		// What the switch changed is no difference.
		d.Resource.Want = switched(d.Resource.Want)
	}
	return plan.Compare(d)
}

// switched is what is wanted of a node whose driver was switched: everything but
// what depends on the driver.
func switched(want plan.Value) plan.Value {
	out := map[string]plan.Value{}
	for name, v := range want.AsValueMap() {
		if name != "driver" && name != "driver_info" && !strings.HasSuffix(name, "_interface") {
			out[name] = v
		}
	}
	return plan.Obj(out)
}

// ipmi reports whether a driver talks IPMI; every other one that enroll knows
// talks Redfish.
func ipmi(driver string) bool { return driver == "ipmi" }

func passwordKey(driver string) string {
	if ipmi(driver) {
		return "ipmi_password"
	}
	return "redfish_password"
}

func userKey(driver string) string {
	if ipmi(driver) {
		return "ipmi_username"
	}
	return "redfish_username"
}

// driverInfo is the driver_info without the credential. The operator's extras
// never override what enroll manages.
func driverInfo(t *plan.Target) map[string]any {
	i := t.Intent.Ironic
	managed := map[string]any{}
	if ipmi(i.Driver) {
		managed["ipmi_address"] = t.Intent.OOB.String()
	} else {
		address, system := redfishAddress(t.Intent.OOB, i.RedfishAddress)
		managed["redfish_address"] = address
		if system != "" {
			managed["redfish_system_id"] = system
		}
		if t.Site.BMC != nil && t.Site.BMC.Insecure {
			managed["redfish_verify_ca"] = false
		}
	}
	out := map[string]any{}
	for k, v := range i.DriverInfo {
		out[k] = v
	}
	// Not even an extra may carry the credential: it would stand in the plan.
	for _, k := range []string{"redfish_username", "redfish_password", "ipmi_username", "ipmi_password"} {
		delete(out, k)
	}
	for k, v := range managed {
		out[k] = v
	}
	return out
}

// redfishAddress splits an override scheme://host:port[/redfish/v1/Systems/ID]
// into Ironic's two fields; without one the BMC is https at the OOB address.
func redfishAddress(oob netip.Addr, override string) (address, system string) {
	if override == "" {
		if oob.Is6() {
			return "https://[" + oob.String() + "]", ""
		}
		return "https://" + oob.String(), ""
	}
	u, err := url.Parse(override)
	if err != nil || u.Host == "" {
		return override, ""
	}
	if p := strings.TrimSuffix(u.Path, "/"); p != "" && p != "/redfish/v1" {
		system = p
	}
	return u.Scheme + "://" + u.Host, system
}

// properties are the node's properties; capabilities are Ironic's one string.
func properties(i plan.IronicContext) map[string]any {
	out := map[string]any{}
	if i.CPUArch != "" {
		out["cpu_arch"] = i.CPUArch
	}
	if len(i.Capabilities) > 0 {
		var pairs []string
		for k, v := range i.Capabilities {
			pairs = append(pairs, k+":"+v)
		}
		sort.Strings(pairs)
		out["capabilities"] = strings.Join(pairs, ",")
	}
	if len(i.RootDevice) > 0 {
		out["root_device"] = i.RootDevice
	}
	return out
}

// value turns decoded JSON into a plan value.
func value(v any) plan.Value {
	switch v := v.(type) {
	case nil:
		return plan.Null
	case string:
		return plan.Str(v)
	case bool:
		return plan.Bool(v)
	case float64:
		return cty.NumberFloatVal(v)
	case int:
		return plan.Int(v)
	case json.Number:
		n, err := cty.ParseNumberVal(v.String())
		if err != nil {
			return plan.Str(v.String())
		}
		return n
	case map[string]any:
		attrs := map[string]plan.Value{}
		for k, el := range v {
			attrs[k] = value(el)
		}
		return plan.Obj(attrs)
	case []any:
		list := make([]plan.Value, len(v))
		for i, el := range v {
			list[i] = value(el)
		}
		return cty.TupleVal(list)
	}
	return plan.Null
}

// secretMask is what Ironic shows instead of a secret.
const secretMask = "******"

func liveNode(n *node) plan.Value {
	info := map[string]any{}
	for k, v := range n.DriverInfo {
		if v != secretMask {
			info[k] = v
		}
	}
	attrs := map[string]plan.Value{
		"name":           plan.Str(n.Name),
		"driver":         plan.Str(n.Driver),
		"driver_info":    value(info),
		"resource_class": plan.Str(n.ResourceClass),
		"properties":     value(n.Properties),
		"owner":          plan.Str(n.Owner),
		"lessee":         plan.Str(n.Lessee),
	}
	for field, name := range n.Interfaces {
		attrs[field] = plan.Str(name)
	}
	return plan.Obj(attrs)
}

// runNode creates the node from the plan's own After, so that exactly what was
// shown is written, and adds the credential.
func (c *Client) runNode(ctx context.Context, r run) plan.Result {
	user, password, err := c.credentials.Credential(ctx, r.target.Name())
	if err != nil {
		return plan.Failed(plan.AsFault(err))
	}
	var body map[string]any
	if err := json.Unmarshal(plan.ToJSON(r.step.After), &body); err != nil {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s: the step's value is no object", r.step.Address).Because(err))
	}
	driver := plan.Text(r.step.After, "driver")
	info, ok := body["driver_info"].(map[string]any)
	if !ok {
		info = map[string]any{}
		body["driver_info"] = info
	}
	info[userKey(driver)], info[passwordKey(driver)] = user, password.Reveal()
	body["extra"] = map[string]any{extraKey: c.newRecord(r.target.Name(), password.Version).extra()}
	var header map[string]string
	if owner := plan.Text(r.step.After, "owner"); owner != "" && r.service.settings.Endpoint != "" {
		// Without Keystone the caller has no project, and an owner other than the
		// caller's project is refused.
		header = map[string]string{"X-Project-Id": owner}
	}
	var created node
	if _, f := r.service.callWith(ctx, http.MethodPost, "nodes", header, body, &created); f != nil {
		return plan.Failed(f)
	}
	c.first.Store(r.target.Name(), created.UUID) // before the next look another may have its name
	if created.ProvisionState != plan.StateEnroll {
		return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "the new node %s is in state %q, not %q", r.target.Name(), created.ProvisionState, plan.StateEnroll).With("uuid", created.UUID))
	}
	return plan.Done()
}
