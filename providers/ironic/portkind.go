package ironic

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

// placeholderSwitchID stands in local_link_connection where Ironic demands a
// MAC address or datapath id of the switch. NetBox's records do not name one;
// switch_info and port_id carry what is known (reference, phase 5).
const placeholderSwitchID = "00:00:00:00:00:00"

// port is a port as Ironic shows it.
type port struct {
	UUID        string         `json:"uuid"`
	Address     string         `json:"address"`
	NodeUUID    string         `json:"node_uuid"`
	PXEEnabled  bool           `json:"pxe_enabled"`
	Link        map[string]any `json:"local_link_connection"`
	PortgroupID string         `json:"portgroup_uuid"`
}

const portFields = "uuid,address,node_uuid,pxe_enabled,local_link_connection,portgroup_uuid"

func (s *service) ports(ctx context.Context, filter string) ([]*port, *plan.Fault) {
	query := "fields=" + portFields
	if filter != "" {
		query += "&" + filter
	}
	return list(ctx, s, "ports", query, func(p *port) string { return p.UUID })
}

// portKind is one port for each frontend NIC with a MAC address. It is
// create-only, with one repair: a missing local_link_connection is recorded
// while the node is enroll or manageable (reference, phase 5).
func portKind() plan.Kind {
	return plan.Kind{
		Name:   "ironic.port",
		Phase:  plan.PhasePorts,
		Want:   wantPorts,
		Decide: decidePort,
		Doc:    "one Ironic port for each frontend NIC: MAC address, PXE on the first only, the switch port it is cabled to; its switch_id is a placeholder that Ironic demands, NetBox records none",
	}
}

func wantPorts(t *plan.Target) []plan.Resource {
	if !enrols(t) {
		return nil
	}
	var out []plan.Resource
	for n, nic := range t.Intent.Frontend {
		if nic.MAC.IsZero() {
			continue // NetBox's reader has warned about it
		}
		want := map[string]plan.Value{
			"address":     plan.Str(nic.MAC.String()),
			"pxe_enabled": plan.Bool(n == 0),
		}
		from := []string{nic.URL}
		if nic.Peer != nil {
			want["local_link_connection"] = plan.Obj(map[string]plan.Value{
				"switch_id":   plan.Str(placeholderSwitchID),
				"switch_info": plan.Str(nic.Peer.Device),
				"port_id":     plan.Str(switchPort(t.Intent.Ironic.Bond, nic.Peer)),
			})
			from = append(from, nic.Peer.URL)
		}
		if bonded(t.Intent.Ironic.Bond, nic.Name) {
			want["portgroup_uuid"] = plan.Unknown
		}
		out = append(out, plan.Resource{Address: t.Address(systemIronic, kindPort, nic.Name), Want: plan.Obj(want), From: from, CreateOnly: true})
	}
	return out
}

// switchPort is the far end that Ironic configures: the LAG parent when the
// bond is a LAG, else the physical port (reference, phase 5).
func switchPort(bond *plan.Bond, peer *plan.Peer) string {
	if bond != nil && bond.Mode == "802.3ad" && peer.LAG != "" {
		return peer.LAG
	}
	return peer.Port
}

// bonded reports whether a NIC belongs to the bond; a bond without a list of
// interfaces has all of them.
func bonded(bond *plan.Bond, nic string) bool {
	return bond != nil && (len(bond.Interfaces) == 0 || slices.Contains(bond.Interfaces, nic))
}

// livePort shows an empty local_link_connection as null: Ironic shows it as {}.
func livePort(p *port) plan.Value {
	attrs := map[string]plan.Value{
		"address":               plan.Str(p.Address),
		"pxe_enabled":           plan.Bool(p.PXEEnabled),
		"local_link_connection": plan.Null,
		"portgroup_uuid":        plan.Null,
	}
	if len(p.Link) > 0 {
		attrs["local_link_connection"] = value(p.Link)
	}
	if p.PortgroupID != "" {
		attrs["portgroup_uuid"] = plan.Str(p.PortgroupID)
	}
	return plan.Obj(attrs)
}

func decidePort(d plan.Decision) plan.Verdict {
	switch d.Live.Presence {
	case plan.Absent:
		if settled(d) {
			return kept(d, plan.Null, "the node has no port for this NIC; the node is "+string(d.Owner.State)+" and stays as it is")
		}
		if !legal(fieldPort, then(d)) && then(d) != absent {
			return later(d, "ports")
		}
		return withoutStandalone(d, plan.Compare(d))
	case plan.Unreachable, plan.Unreadable, plan.Unsupported:
		return unreadable(d)
	case plan.Present:
	}
	link := plan.Attr(d.Resource.Want, "local_link_connection")
	if !link.IsNull() && plan.Attr(d.Live.Value, "local_link_connection").IsNull() && legal(fieldLink, d.Owner.State) && !settled(d) {
		return plan.Verdict{Step: &plan.Step{
			Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Because: []string{"local_link_connection"},
			Before: plan.Obj(map[string]plan.Value{"local_link_connection": plan.Null}),
			After:  plan.Obj(map[string]plan.Value{"local_link_connection": link}),
		}}
	}
	return plan.Compare(d)
}

// withoutStandalone blocks a port with PXE in a portgroup that supports no
// standalone ports: Ironic refuses it where Neutron makes the networks.
func withoutStandalone(d plan.Decision, v plan.Verdict) plan.Verdict {
	group := d.World.Get(d.Target.Address(systemIronic, kindPortgroup, keyBond))
	pxe := plan.Attr(d.Resource.Want, "pxe_enabled").True()
	if v.Step != nil && pxe && plan.HasAttr(d.Resource.Want, "portgroup_uuid") && group.Presence == plan.Present && plan.Attr(group.Value, "standalone").False() {
		v.Step.Blocked = &plan.Block{Rule: plan.RuleUnsupported, Text: "the node's portgroup has standalone_ports_supported = false, and a port with PXE has to stand alone: baremetal port group set --support-standalone-ports " + plan.Text(group.Value, "name")}
	}
	return v
}

// runPort creates a port, or adds the missing link to one.
func (c *Client) runPort(ctx context.Context, r run) plan.Result {
	if r.step.Action == plan.ActionUpdate {
		return r.addLink(ctx)
	}
	body := map[string]any{
		"address":     plan.Text(r.step.After, "address"),
		"pxe_enabled": plan.Attr(r.step.After, "pxe_enabled").True(),
	}
	if link := plan.Attr(r.step.After, "local_link_connection"); !link.IsNull() {
		body["local_link_connection"] = plan.ToJSON(link)
	}
	if plan.HasAttr(r.step.After, "portgroup_uuid") {
		groups, f := r.service.portgroups(ctx, "node="+url.QueryEscape(r.target.Name()))
		if f != nil {
			return plan.Failed(f)
		}
		if len(groups) == 0 {
			return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "node %s has no portgroup for %s", r.target.Name(), r.step.Address.Local()))
		}
		body["portgroup_uuid"] = groups[0].UUID
	}
	n, f := r.unowned(ctx) // last, right before the write
	if f != nil {
		return plan.Failed(f)
	}
	body["node_uuid"] = n.UUID
	if _, f := r.service.call(ctx, http.MethodPost, "ports", body, nil); f != nil {
		return plan.Failed(r.service.refused(ctx, n, f))
	}
	return plan.Done()
}

func (r run) addLink(ctx context.Context) plan.Result {
	mac := ""
	for _, nic := range r.target.Intent.Frontend {
		if nic.Name == r.step.Address.Key {
			mac = nic.MAC.String()
		}
	}
	ports, f := r.service.ports(ctx, "address="+url.QueryEscape(mac))
	if f != nil {
		return plan.Failed(f)
	}
	n, f := r.unowned(ctx) // last, right before the write
	if f != nil {
		return plan.Failed(f)
	}
	for _, p := range ports {
		if p.NodeUUID != n.UUID {
			continue
		}
		patch := []map[string]any{{"op": "add", "path": "/local_link_connection", "value": plan.ToJSON(plan.Attr(r.step.After, "local_link_connection"))}}
		if _, f := r.service.call(ctx, http.MethodPatch, "ports/"+url.PathEscape(p.UUID), patch, nil); f != nil {
			return plan.Failed(r.service.refused(ctx, n, f))
		}
		return plan.Done()
	}
	return plan.Failed(plan.NewFault(plan.CodePlanStale, "node %s no longer has a port with MAC address %s", n.Name, mac))
}
