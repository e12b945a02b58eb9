package ironic

import (
	"context"
	"net/http"

	"github.com/enroll-dev/enroll/plan"
)

// portgroup is a portgroup as Ironic shows it.
type portgroup struct {
	UUID       string         `json:"uuid"`
	Name       string         `json:"name"`
	Address    string         `json:"address"`
	NodeUUID   string         `json:"node_uuid"`
	Mode       string         `json:"mode"`
	Properties map[string]any `json:"properties"`
	Standalone maybe[bool]    `json:"standalone_ports_supported"`
}

const portgroupFields = "uuid,name,address,node_uuid,mode,properties,standalone_ports_supported"

func (s *service) portgroups(ctx context.Context, filter string) ([]*portgroup, *plan.Fault) {
	query := "fields=" + portgroupFields
	if filter != "" {
		query += "&" + filter
	}
	return list(ctx, s, "portgroups", query, func(p *portgroup) string { return p.UUID })
}

// portgroupKind is the bond of a device whose ironic_settings declares one. It
// is created with the MAC address of the first frontend NIC; an existing one of
// the node is used as it is, whatever its name (reference, phase 5).
func portgroupKind() plan.Kind {
	return plan.Kind{
		Name:   "ironic.portgroup",
		Phase:  plan.PhasePorts,
		First:  true,
		Want:   wantPortgroup,
		Decide: decidePortgroup,
		Doc:    "the Ironic portgroup of a bonded device; create-only",
	}
}

func wantPortgroup(t *plan.Target) []plan.Resource {
	bond := t.Intent.Ironic.Bond
	nic, ok := t.Intent.ProvisioningNIC()
	if !enrols(t) || bond == nil || !ok {
		return nil
	}
	properties := map[string]plan.Value{}
	if bond.Miimon != 0 {
		properties["miimon"] = plan.Int(bond.Miimon)
	}
	if bond.XmitHashPolicy != "" {
		properties["xmit_hash_policy"] = plan.Str(bond.XmitHashPolicy)
	}
	return []plan.Resource{{
		Address: t.Address(systemIronic, kindPortgroup, keyBond),
		Want: plan.Obj(map[string]plan.Value{
			"name":       plan.Str(t.Name() + "-" + keyBond),
			"address":    plan.Str(nic.MAC.String()),
			"mode":       plan.Str(bond.Mode),
			"properties": plan.Obj(properties),
		}),
		From: []string{t.Intent.URL}, CreateOnly: true,
	}}
}

func livePortgroup(p *portgroup) plan.Value {
	return plan.Obj(map[string]plan.Value{
		"name":       plan.Str(p.Name),
		"address":    plan.Str(p.Address),
		"mode":       plan.Str(p.Mode),
		"properties": value(p.Properties),
		"standalone": plan.Bool(!p.Standalone.known || p.Standalone.value),
	})
}

func decidePortgroup(d plan.Decision) plan.Verdict {
	switch d.Live.Presence {
	case plan.Absent:
		if settled(d) {
			return kept(d, plan.Null, "the node has no portgroup; the node is "+string(d.Owner.State)+" and stays as it is")
		}
	case plan.Unreachable, plan.Unreadable, plan.Unsupported:
		return unreadable(d)
	case plan.Present:
	}
	return plan.Compare(d)
}

func (c *Client) runPortgroup(ctx context.Context, r run) plan.Result {
	n, f := r.unowned(ctx)
	if f != nil {
		return plan.Failed(f)
	}
	body := map[string]any{
		"node_uuid":  n.UUID,
		"name":       plan.Text(r.step.After, "name"),
		"address":    plan.Text(r.step.After, "address"),
		"mode":       plan.Text(r.step.After, "mode"),
		"properties": plan.ToJSON(plan.Attr(r.step.After, "properties")),
	}
	if _, f := r.service.call(ctx, http.MethodPost, "portgroups", body, nil); f != nil {
		return plan.Failed(r.service.refused(ctx, n, f))
	}
	return plan.Done()
}
