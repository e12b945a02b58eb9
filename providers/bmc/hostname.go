package bmc

import (
	"context"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

func hostnameFacet() facet {
	return facet{kind: hostnameKind(), read: readHostname, set: setHostname}
}

// hostnameKind keeps the host name of the BMC itself, without a domain.
func hostnameKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.hostname", Phase: plan.PhaseBMC,
		Doc: "The host name of the BMC.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || t.Settings.Hostname == "" {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "hostname", ""),
				Want:    plan.Obj(map[string]plan.Value{"HostName": plan.Str(t.Settings.Hostname)}),
				From:    from(t.Settings.Set["bmc.hostname"], t.Intent.URL),
			}}
		},
		Decide: func(d plan.Decision) plan.Verdict {
			// Nobody asked for the default name: a BMC that has no host name is left
			// alone. A name that the site file sets is another matter.
			if d.Live.Presence == plan.Unsupported && d.Target.Settings.Set["bmc.hostname"] == "" {
				return unsupported(d)
			}
			return plan.Compare(d)
		},
	}
}

// unsupported shows a setting that the BMC does not have, without a step.
func unsupported(d plan.Decision) plan.Verdict {
	return plan.Verdict{Observed: []plan.Observation{{
		Address: d.Resource.Address, Rule: "unsupported", Text: d.Live.Fault.Summary, Want: d.Resource.Want, Live: plan.Null,
	}}}
}

// attrHostname is the iDRAC's name for it.
const attrHostname = "NIC.1.DNSRacName"

func readHostname(ctx context.Context, k *conn, t *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	d, keys, fault := k.hostnamePlace(ctx, t)
	if fault != nil {
		return plan.Null, nil, fault
	}
	return plan.Obj(map[string]plan.Value{"HostName": textOrNull(d, keys...)}), evidence{"url": k.base + d.path, "property": strings.Join(keys, "/")}, nil
}

func setHostname(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, _ plan.Memo) plan.Result {
	d, keys, fault := k.hostnamePlace(ctx, t)
	if fault != nil {
		return plan.Failed(fault)
	}
	wanted := plan.Text(step.After, "HostName")
	k.shown.renew() // some make a certificate for the new name
	if k.family.attributes {
		return k.writeAttributes(ctx, d, map[string]any{attrHostname: wanted})
	}
	have := d.text(keys...)
	if have == wanted {
		return plan.Already()
	}
	return k.write(ctx, change{on: d, body: map[string]any{"HostName": wanted}, same: func(now document) bool { return now.text(keys...) == have }})
}

// hostnamePlace finds the resource that holds the host name: the manager's own
// network interface, else its network protocol. Makers fill the one or the
// other; a null there only counts when the other has none either.
func (k *conn) hostnamePlace(ctx context.Context, t *plan.Target) (document, []string, *plan.Fault) {
	if k.family.attributes {
		d, fault := k.attributes(ctx)
		if fault == nil && !d.key("Attributes", attrHostname) {
			fault = k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: d.path}, "the iDRAC of %s has no attribute %s", k.device, attrHostname)
		}
		return d, []string{"Attributes", attrHostname}, fault
	}
	keys := []string{"HostName"}
	var candidates []document
	var unsure *plan.Fault // which interface is meant; the protocol's name may still do
	for _, find := range []func(context.Context, *plan.Target) (document, *plan.Fault){k.managerInterface, k.networkProtocol} {
		d, fault := find(ctx, t)
		switch {
		case isCode(fault, plan.CodeBMCUnsupported):
			continue
		case isCode(fault, plan.CodeBMCAmbiguous):
			unsure = fault
			continue
		case fault != nil:
			return d, nil, fault
		case !d.key(keys...) || d.readOnly():
			continue
		case d.text(keys...) != "":
			return d, keys, nil
		}
		candidates = append(candidates, d)
	}
	if len(candidates) > 0 {
		return candidates[0], keys, nil
	}
	if unsure != nil {
		return document{}, nil, unsure
	}
	path := rootPath
	if k.tree != nil && k.tree.manager != nil {
		path = k.tree.manager.path
	}
	return document{}, nil, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: path}, "the BMC of %s has no HostName that can be changed, neither at its interface nor at its network protocol", k.device)
}

// networkProtocol reads the manager's ManagerNetworkProtocol.
func (k *conn) networkProtocol(ctx context.Context, _ *plan.Target) (document, *plan.Fault) {
	return k.ofManager(ctx, "NetworkProtocol")
}

func (k *conn) ofManager(ctx context.Context, property string) (document, *plan.Fault) {
	m, fault := k.manager(ctx)
	if fault != nil {
		return m, fault
	}
	path := m.link(property)
	if path == "" {
		return m, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: m.path}, "the manager of %s has no %s", k.device, property)
	}
	return k.get(ctx, path)
}

// managerInterface finds the interface by which the BMC is reached: not one
// that leads to the host, and among several the one with the known address.
func (k *conn) managerInterface(ctx context.Context, t *plan.Target) (document, *plan.Fault) {
	all, members, fault := k.ownInterfaces(ctx)
	if fault != nil {
		return all, fault
	}
	if len(members) == 1 {
		return k.whole(ctx, members[0])
	}
	toHost, fault := k.hostInterfaces(ctx)
	if fault != nil {
		return all, fault
	}
	var left []document
	for _, member := range members {
		if toHost[strings.TrimSuffix(member.path, "/")] {
			continue
		}
		d, fault := k.whole(ctx, member)
		switch {
		case isCode(fault, plan.CodeBMCUnsupported):
			continue
		case fault != nil:
			return d, fault
		}
		left = append(left, d)
	}
	if len(left) == 1 {
		return left[0], nil
	}
	for _, d := range left {
		if t.Intent.OOB.IsValid() && hasAddress(d, t.Intent.OOB.String()) {
			return d, nil
		}
	}
	if len(left) == 0 {
		return all, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: all.path}, "the manager of %s lists no interface of its own", k.device)
	}
	return all, k.fault(plan.CodeBMCAmbiguous, request{method: "GET", path: all.path}, "the manager of %s lists %d interfaces and none has the address %s", k.device, len(left), t.Intent.OOB)
}

// hostInterfaces are the interfaces between BMC and host.
func (k *conn) hostInterfaces(ctx context.Context) (map[string]bool, *plan.Fault) {
	out := map[string]bool{}
	m, fault := k.manager(ctx)
	path := m.link("HostInterfaces")
	if fault != nil || path == "" {
		return out, fault
	}
	_, members, fault := k.members(ctx, path)
	if fault != nil {
		return out, unlessUnsupported(fault)
	}
	for _, d := range members {
		if d.unread != nil {
			return out, d.unread
		}
		if l := d.link("ManagerEthernetInterface"); l != "" {
			out[strings.TrimSuffix(resolve(l), "/")] = true
		}
	}
	return out, nil
}

// ownInterfaces lists the manager's interfaces, with their contents only where
// the family is sure to send them so.
func (k *conn) ownInterfaces(ctx context.Context) (document, []document, *plan.Fault) {
	m, fault := k.manager(ctx)
	if fault != nil {
		return m, nil, fault
	}
	path := m.link("EthernetInterfaces")
	if path == "" {
		return m, nil, k.lacks(m, "list of its own interfaces")
	}
	if k.family.expands {
		return k.members(ctx, path)
	}
	all, fault := k.get(ctx, path)
	if fault != nil {
		return all, nil, fault
	}
	var out []document
	for _, l := range all.links("Members") {
		out = append(out, document{path: resolve(l)})
	}
	return all, out, nil
}

// whole reads a member that came as a link.
func (k *conn) whole(ctx context.Context, d document) (document, *plan.Fault) {
	if d.unread != nil {
		return d, d.unread
	}
	if d.top != nil {
		return d, nil
	}
	return k.get(ctx, d.path)
}

func hasAddress(d document, address string) bool {
	for _, key := range []string{"IPv4Addresses", "IPv6Addresses"} {
		v, _ := d.at(key)
		items, _ := v.([]any)
		for _, item := range items {
			entry, _ := item.(map[string]any)
			if s, _ := entry["Address"].(string); s == address {
				return true
			}
		}
	}
	return false
}

// textOrNull is a string property, null when the BMC says null or nothing.
func textOrNull(d document, keys ...string) plan.Value {
	v, _ := d.at(keys...)
	if s, ok := v.(string); ok {
		return plan.Str(s)
	}
	return plan.Null
}
