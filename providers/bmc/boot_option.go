package bmc

import (
	"context"
	"regexp"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

func decodeBootOption(d document) bootOption {
	o := bootOption{document: d, reference: d.text("BootOptionReference")}
	on, told := d.yes("BootOptionEnabled")
	o.enabled, o.switched = on || !told, told
	return o
}

var (
	macInPath = regexp.MustCompile(`MAC\(([0-9A-Fa-f]{12}),`)                                                   //nolint:gochecknoglobals // a constant
	macInName = regexp.MustCompile(`\b(?:(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|[0-9A-Fa-f]{12})\b`)           //nolint:gochecknoglobals // a constant
	netInName = regexp.MustCompile(`(?i)\b(?:PXE|HTTP|IPv?[46]|LAN|NIC|MAC|Network|Ethernet)`)                  //nolint:gochecknoglobals // a constant
	idracSlot = regexp.MustCompile(`^(PXE|HTTP) Device ([0-9]+):`)                                              //nolint:gochecknoglobals // a constant
	idracNICs = regexp.MustCompile(`986D1755-B9D0-4F8D-A0DA-D1DB18672045|3A191845-5F86-4E78-8FCE-C4CFF59F9DAA`) //nolint:gochecknoglobals // a constant: HTTP and PXE devices
)

// isNetwork tells whether an option boots over a NIC. Names lie: an HTTP entry is
// called PXE, a NIC on USB has the alias Usb. What an iDRAC calls unavailable is
// not there.
func (k *conn) isNetwork(o bootOption) bool {
	display, path := o.text("DisplayName"), o.text("UefiDevicePath")
	switch {
	case strings.HasPrefix(display, "Unavailable:"):
		return false
	case k.family.boot == bootClasses:
		return display == "Network"
	case strings.Contains(path, "MAC("):
		return true
	case k.family.attributes:
		return idracSlot.MatchString(display) || idracNICs.MatchString(path)
	}
	if path != "" {
		return false
	}
	// Twelve digits alone may be a disk's serial number.
	mac := macInName.FindString(display)
	return strings.ContainsAny(mac, ":-") || mac != "" && netInName.MatchString(display)
}

// identifyOption finds the NIC of an option, once.
func (k *conn) identifyOption(ctx context.Context, b *boot, o *bootOption) *plan.Fault {
	if !o.network || !o.mac.IsZero() {
		return nil
	}
	mac, fault := k.macOf(ctx, b.system, *o)
	o.mac = mac
	return fault
}

// macOf tells the NIC of a boot option. The UEFI path has its address where it
// names a NIC at all; Supermicro has none and puts it into the name; an iDRAC
// names a PXE or HTTP device, which a link or a BIOS attribute leads on.
func (k *conn) macOf(ctx context.Context, system document, o bootOption) (plan.MAC, *plan.Fault) {
	path := o.text("UefiDevicePath")
	if m := macInPath.FindStringSubmatch(path); m != nil {
		return parseMAC(m[1]), nil
	}
	if k.family.attributes {
		return k.idracMAC(ctx, system, o)
	}
	if path == "" {
		return parseMAC(macInName.FindString(o.text("DisplayName"))), nil
	}
	return plan.MAC{}, nil
}

// idracMAC follows the strongest trace that there is: the function that the option
// names, else the BIOS attribute of its device.
func (k *conn) idracMAC(ctx context.Context, system document, o bootOption) (plan.MAC, *plan.Fault) {
	if items := o.links("RelatedItem"); len(items) == 1 {
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
	slot := idracSlot.FindStringSubmatch(o.text("DisplayName"))
	link := system.link("Bios")
	if slot == nil || link == "" {
		return plan.MAC{}, nil
	}
	kind := map[string]string{"PXE": "Pxe", "HTTP": "Http"}[slot[1]]
	d, fault := k.get(ctx, link)
	if fault != nil {
		return plan.MAC{}, unlessUnsupported(fault)
	}
	fqdd := d.text("Attributes", kind+"Dev"+slot[2]+"Interface")
	nics := system.link("EthernetInterfaces")
	if fqdd == "" || nics == "" {
		return plan.MAC{}, nil
	}
	_, members, fault := k.members(ctx, nics)
	if fault != nil {
		return plan.MAC{}, unlessUnsupported(fault)
	}
	for _, nic := range members {
		if name(nic.path) != fqdd {
			continue
		}
		for _, key := range []string{"PermanentMACAddress", "MACAddress"} {
			if mac := parseMAC(nic.text(key)); !mac.IsZero() {
				return mac, nil
			}
		}
	}
	return plan.MAC{}, nil
}

func unlessUnsupported(f *plan.Fault) *plan.Fault {
	if isCode(f, plan.CodeBMCUnsupported) {
		return nil
	}
	return f
}

var eui64 = regexp.MustCompile(`^([0-9a-f]{6})ff(?:ff|fe)([0-9a-f]{6})$`) //nolint:gochecknoglobals // a constant

// parseMAC gives the zero address for what is none. HPE writes some as EUI-64, in
// groups of four digits.
func parseMAC(s string) plan.MAC {
	bare := strings.ToLower(strings.NewReplacer(":", "", "-", "").Replace(strings.TrimSpace(s)))
	if m := eui64.FindStringSubmatch(bare); m != nil && strings.Count(s, ":") == 3 {
		s = m[1] + m[2]
	}
	mac, err := plan.ParseMAC(s)
	if err != nil {
		return plan.MAC{}
	}
	return mac
}
