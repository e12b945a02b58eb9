package bmc

import (
	"context"

	"github.com/enroll-dev/enroll/plan"
)

func ipmiLANFacet() facet {
	return facet{kind: ipmiLANKind(), read: readIPMILAN, set: setIPMILAN}
}

// ipmiLANKind switches IPMI over LAN on, for monitoring and where Ironic speaks IPMI
// from the start or after inspection.
func ipmiLANKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.ipmi_lan", Phase: plan.PhaseBMC,
		Doc: "IPMI over LAN is on, where a monitoring account is kept, NetBox has the driver ipmi, or the node gets it after inspection.",
		Want: func(t *plan.Target) []plan.Resource {
			ironic, by := t.SpeaksIPMI()
			if !configured(t) || t.Site.BMC.Monitoring.IsZero() && !ironic {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "ipmi_lan", ""),
				Want:    plan.Obj(map[string]plan.Value{"ProtocolEnabled": plan.Bool(true)}),
				From:    from(t.Site.Set["bmc.monitoring"], by),
			}}
		},
		Decide: observeUnsupported,
	}
}

const attrIPMILAN = "IPMILan.1.Enable"

func readIPMILAN(ctx context.Context, k *conn, t *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	d, on, fault := k.ipmiLAN(ctx, t)
	if fault != nil {
		return plan.Null, nil, fault
	}
	return plan.Obj(map[string]plan.Value{"ProtocolEnabled": plan.Bool(on)}), evidence{"url": k.base + d.path}, nil
}

func setIPMILAN(ctx context.Context, k *conn, t *plan.Target, _ *plan.Step, _ plan.Memo) plan.Result {
	d, on, fault := k.ipmiLAN(ctx, t)
	switch {
	case fault != nil:
		return plan.Failed(fault)
	case on:
		return plan.Already() // some refuse what they have already
	case k.family.attributes:
		return k.writeAttributes(ctx, d, map[string]any{attrIPMILAN: enabledWord})
	}
	return k.write(ctx, change{on: d, body: map[string]any{"IPMI": map[string]any{"ProtocolEnabled": true}}, same: func(now document) bool {
		on, _ := now.yes("IPMI", "ProtocolEnabled")
		return !on
	}})
}

// ipmiLAN finds the switch.
func (k *conn) ipmiLAN(ctx context.Context, t *plan.Target) (document, bool, *plan.Fault) {
	if k.family.attributes {
		d, fault := k.attributes(ctx)
		if fault == nil && !d.key("Attributes", attrIPMILAN) {
			fault = k.lacks(d, attrIPMILAN)
		}
		return d, d.text("Attributes", attrIPMILAN) == enabledWord, fault
	}
	d, fault := k.networkProtocol(ctx, t)
	if fault != nil {
		return d, false, fault
	}
	on, known := d.yes("IPMI", "ProtocolEnabled")
	if !known || !on && d.readOnly() {
		return d, false, k.lacks(d, "IPMI over LAN that can be switched")
	}
	return d, on, nil
}
