package bmc

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/stmcginnis/gofish/redfish"

	"github.com/enroll-dev/enroll/plan"
)

func bootOrderFacet() facet {
	return facet{kind: bootOrderKind(), read: readBootOrder}
}

// bootOrderKind shows whether the host boots from its provisioning NIC first.
// This version does not write it.
func bootOrderKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.boot_order", Phase: plan.PhaseBMC,
		Doc: "The provisioning NIC is the first in the boot order.",
		Want: func(t *plan.Target) []plan.Resource {
			nic, ok := t.Intent.ProvisioningNIC()
			if !configured(t) || !t.Site.BMC.RestrictBoot || !ok || nic.MAC.IsZero() {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "boot_order", ""),
				Want:    plan.Obj(map[string]plan.Value{"First": plan.Obj(map[string]plan.Value{"MACAddress": plan.Str(nic.MAC.String())})}),
				From:    from(nic.URL, t.Site.Set["bmc.restrict_boot"]),
				Effects: []plan.Effect{plan.EffectReboot},
			}}
		},
		Decide: decideBootOrder,
	}
}

func decideBootOrder(d plan.Decision) plan.Verdict {
	switch {
	case d.Live.Presence == plan.Unsupported:
		return unsupported(d)
	case d.Live.Presence == plan.Unreachable && d.Deferred:
		nic, _ := d.Target.Intent.ProvisioningNIC()
		return plan.Verdict{Checks: []plan.Check{{
			Address: d.Resource.Address, Verdict: plan.CheckUnknown, Expected: "boots from " + nic.Name + " (" + nic.MAC.String() + ") first", Observed: "BMC not reachable yet",
			Text: "The boot order cannot be seen before the BMC has its address.", From: d.Resource.From,
		}}}
	case d.Live.Presence != plan.Present:
		return plan.Verdict{Fault: d.Live.Fault, Unreadable: true}
	case plan.Satisfies(d.Resource.Want, d.Live.Value):
		return plan.Nothing()
	}
	nic, _ := d.Target.Intent.ProvisioningNIC()
	first := plan.Attr(d.Live.Value, "First")
	what := plan.Text(first, "BootOptionReference")
	if display := plan.Text(first, "DisplayName"); display != "" {
		what += " (" + display + ")"
	}
	v := plan.Compare(d)
	v.Step.Blocked = &plan.Block{Rule: plan.RuleNotYet, Text: "the host boots from " + what + " first; this version of enroll does not change the boot order: put " +
		nic.Name + " (" + nic.MAC.String() + ") first in the BMC's boot settings or in the BIOS setup, and restart the host"}
	return v
}

// readBootOrder reads the first entry of the boot order and tells which NIC it
// is, if it is one.
func readBootOrder(ctx context.Context, k *conn, _ *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	system, fault := k.freshSystem(ctx)
	if fault != nil {
		return plan.Null, nil, fault
	}
	order := system.list("Boot", "BootOrder")
	options := system.link("Boot", "BootOptions")
	if len(order) == 0 || options == "" {
		return plan.Null, nil, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: system.path}, "the BMC of %s shows no boot order", k.device)
	}
	option, fault := k.bootOption(ctx, options, order[0])
	if fault != nil {
		return plan.Null, nil, fault
	}
	mac, fault := k.macOf(ctx, system, option)
	if fault != nil {
		return plan.Null, nil, fault
	}
	first := map[string]plan.Value{"BootOptionReference": plan.Str(order[0]), "DisplayName": textOrNull(option.document, "DisplayName"), "MACAddress": plan.Null}
	if !mac.IsZero() {
		first["MACAddress"] = plan.Str(mac.String())
	}
	return plan.Obj(map[string]plan.Value{"First": plan.Obj(first)}), evidence{"url": k.base + option.path}, nil
}

// bootOption is a resource read in two ways: gofish's model for what it has,
// the document for what it lacks (RelatedItem).
type bootOption struct {
	document
	model redfish.BootOption
}

// bootOption finds the option of a boot order entry. Entries are references;
// on some BMCs the id of the resource is another, so that all must be read. An
// entry without an option is one of which only the reference is known: some
// BMCs list entries of the operating system that way.
func (k *conn) bootOption(ctx context.Context, collection, reference string) (bootOption, *plan.Fault) {
	all, fault := k.get(ctx, collection)
	if fault != nil {
		return bootOption{}, fault
	}
	members := all.links("Members")
	for i, m := range members {
		if name(m) == reference || "Boot"+name(m) == reference {
			members[0], members[i] = members[i], members[0]
		}
	}
	for _, m := range members {
		d, fault := k.get(ctx, m)
		if isCode(fault, plan.CodeBMCUnsupported) {
			continue
		}
		if fault != nil {
			return bootOption{}, fault
		}
		if option := decodeBootOption(d); option.model.BootOptionReference == reference {
			return option, nil
		}
	}
	return bootOption{document: document{path: all.path}}, nil
}

// decodeBootOption falls back to the document where a property of another type
// than the schema's stops gofish.
func decodeBootOption(d document) bootOption {
	option := bootOption{document: d}
	raw, err := json.Marshal(d.top)
	if err == nil {
		err = json.Unmarshal(raw, &option.model)
	}
	if err != nil {
		option.model = redfish.BootOption{
			BootOptionReference: d.text("BootOptionReference"), DisplayName: d.text("DisplayName"), UefiDevicePath: d.text("UefiDevicePath"),
		}
	}
	return option
}

var (
	macInPath = regexp.MustCompile(`MAC\(([0-9A-Fa-f]{12}),`)                                         //nolint:gochecknoglobals // a constant
	macInName = regexp.MustCompile(`\b(?:(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|[0-9A-Fa-f]{12})\b`) //nolint:gochecknoglobals // a constant
	idracSlot = regexp.MustCompile(`^(PXE|HTTP) Device ([0-9]+):`)                                    //nolint:gochecknoglobals // a constant
)

// macOf tells the NIC of a boot option. The UEFI path has its address where it
// names a NIC at all; Supermicro has none and puts it into the name; an iDRAC
// names a PXE or HTTP device, which a link or a BIOS attribute leads on.
func (k *conn) macOf(ctx context.Context, system document, option bootOption) (plan.MAC, *plan.Fault) {
	if m := macInPath.FindStringSubmatch(option.model.UefiDevicePath); m != nil {
		return parseMAC(m[1]), nil
	}
	if k.tree.family.attributes {
		return k.idracMAC(ctx, system, option)
	}
	if option.model.UefiDevicePath == "" {
		return parseMAC(macInName.FindString(option.model.DisplayName)), nil
	}
	return plan.MAC{}, nil
}

func (k *conn) idracMAC(ctx context.Context, system document, option bootOption) (plan.MAC, *plan.Fault) {
	if items := option.links("RelatedItem"); len(items) == 1 {
		d, fault := k.get(ctx, items[0])
		if fault == nil {
			for _, key := range []string{"PermanentMACAddress", "MACAddress"} {
				if mac := parseMAC(d.text("Ethernet", key)); !mac.IsZero() {
					return mac, nil
				}
			}
		} else if !isCode(fault, plan.CodeBMCUnsupported) {
			return plan.MAC{}, fault
		}
	}
	slot := idracSlot.FindStringSubmatch(option.model.DisplayName)
	bios := system.link("Bios")
	if slot == nil || bios == "" {
		return plan.MAC{}, nil
	}
	kind := map[string]string{"PXE": "Pxe", "HTTP": "Http"}[slot[1]]
	d, fault := k.get(ctx, bios)
	if isCode(fault, plan.CodeBMCUnsupported) {
		return plan.MAC{}, nil
	}
	if fault != nil {
		return plan.MAC{}, fault
	}
	fqdd := d.text("Attributes", kind+"Dev"+slot[2]+"Interface")
	nics := system.link("EthernetInterfaces")
	if fqdd == "" || nics == "" {
		return plan.MAC{}, nil
	}
	nic, fault := k.get(ctx, strings.TrimSuffix(resolve(nics), "/")+"/"+fqdd)
	if isCode(fault, plan.CodeBMCUnsupported) {
		return plan.MAC{}, nil
	}
	if fault != nil {
		return plan.MAC{}, fault
	}
	for _, key := range []string{"PermanentMACAddress", "MACAddress"} {
		if mac := parseMAC(nic.text(key)); !mac.IsZero() {
			return mac, nil
		}
	}
	return plan.MAC{}, nil
}

// parseMAC gives the zero address for what is none.
func parseMAC(s string) plan.MAC {
	mac, err := plan.ParseMAC(s)
	if err != nil {
		return plan.MAC{}
	}
	return mac
}
