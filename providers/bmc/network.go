package bmc

import (
	"context"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

func networkFacet() facet {
	return facet{kind: networkKind(), read: readNetwork, set: setNetwork}
}

// networkKind lets the BMC ask DHCP for its address, where the site keeps the
// reservations: an address that was set by hand elsewhere is nobody's business.
func networkKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.network", Phase: plan.PhaseBMC,
		Doc: "The BMC gets its address by DHCP.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || t.Site.DHCP == nil || !t.Site.ConfigureDHCP {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "network", ""),
				Want:    plan.Obj(map[string]plan.Value{"DHCPEnabled": plan.Bool(true)}),
				From:    from(t.Intent.URL),
			}}
		},
		Decide: observeUnsupported,
	}
}

// observeUnsupported shows a setting that nobody asked for by name, and that the
// BMC does not have, without a step.
func observeUnsupported(d plan.Decision) plan.Verdict {
	if d.Live.Presence == plan.Unsupported {
		return unsupported(d)
	}
	return plan.Compare(d)
}

const attrDHCP = "IPv4.1.DHCPEnable"

func readNetwork(ctx context.Context, k *conn, t *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	d, keys, fault := k.networkPlace(ctx, t)
	if fault != nil {
		return plan.Null, nil, fault
	}
	on := plan.Null
	if v, known := dhcpOf(d, keys); known {
		on = plan.Bool(v)
	}
	return plan.Obj(map[string]plan.Value{"DHCPEnabled": on}), evidence{"url": k.base + d.path, "property": strings.Join(keys, "/")}, nil
}

// setNetwork may move the BMC to another address and lose the answer: the next
// reading, at the address that NetBox records, shows what came of it.
func setNetwork(ctx context.Context, k *conn, t *plan.Target, _ *plan.Step, _ plan.Memo) plan.Result {
	d, keys, fault := k.networkPlace(ctx, t)
	if fault != nil {
		return plan.Failed(fault)
	}
	if k.family.attributes {
		return k.writeAttributes(ctx, d, map[string]any{attrDHCP: enabledWord})
	}
	have, known := dhcpOf(d, keys)
	if have && known {
		return plan.Already()
	}
	body := map[string]any{"DHCPv4": map[string]any{"DHCPEnabled": true}}
	if keys[0] == "IPv4Addresses" { // firmware older than DHCPv4
		body = map[string]any{"IPv4Addresses": []any{map[string]any{"AddressOrigin": "DHCP"}}}
	}
	return k.write(ctx, change{on: d, body: body, same: func(now document) bool {
		v, ok := dhcpOf(now, keys)
		return v == have && ok == known
	}})
}

// networkPlace finds where the BMC says how it gets its address.
func (k *conn) networkPlace(ctx context.Context, t *plan.Target) (document, []string, *plan.Fault) {
	if k.family.attributes {
		d, fault := k.attributes(ctx)
		if fault == nil && !d.key("Attributes", attrDHCP) {
			fault = k.lacks(d, attrDHCP)
		}
		return d, []string{"Attributes", attrDHCP}, fault
	}
	d, fault := k.managerInterface(ctx, t)
	switch {
	case fault != nil:
		return d, nil, fault
	case d.readOnly():
		return d, nil, k.lacks(d, "DHCPv4 that can be changed")
	case d.key("DHCPv4", "DHCPEnabled"):
		return d, []string{"DHCPv4", "DHCPEnabled"}, nil
	case d.key("IPv4Addresses"):
		return d, []string{"IPv4Addresses", "AddressOrigin"}, nil
	}
	return d, nil, k.lacks(d, "DHCPv4")
}

func dhcpOf(d document, keys []string) (on, known bool) {
	if keys[0] == "Attributes" {
		word := d.text(keys...)
		return word == enabledWord, word != ""
	}
	if keys[0] == "DHCPv4" {
		return d.yes(keys...)
	}
	v, _ := d.at("IPv4Addresses")
	items, _ := v.([]any)
	for _, item := range items {
		entry, _ := item.(map[string]any)
		if origin, _ := entry["AddressOrigin"].(string); origin != "" {
			return origin == "DHCP", true
		}
	}
	return false, false
}

// lacks is the fault of a resource without a property.
func (k *conn) lacks(d document, what string) *plan.Fault {
	return k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: d.path}, "the BMC of %s has no %s", k.device, what)
}

// familyLacks is the fault of a family that has no such thing at all.
func (k *conn) familyLacks(what string) *plan.Fault {
	return plan.NewFault(plan.CodeBMCUnsupported, "the BMC of %s is of the family %s, which has no %s that enroll can set", k.device, k.family.name, what).With("url", k.base)
}
