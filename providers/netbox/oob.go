package netbox

import (
	"net/netip"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// interfaceType is NetBox's name of the model of device interfaces.
const interfaceType = "dcim.interface"

func onInterface(a ipAddress) bool {
	return a.AssignedType != nil && *a.AssignedType == interfaceType && a.AssignedID != nil
}

// oob finds the BMC's address, interface and MAC: oob_ip, the interface that
// has the address (through nat_inside once), and that interface's primary MAC.
func (d *draft) oob() {
	c := d.world.client
	if d.device.OOB == nil {
		d.gap(plan.CodeIntentIncomplete, d.URL, "%s has no out-of-band address (oob_ip)", d.Name).
			hint("Assign an address to the BMC's interface of %s and set it as out-of-band IP of the device.", d.Name)
		return
	}
	id := d.device.OOB.ID
	address, ok := d.world.addresses[id]
	if !ok {
		d.gap(plan.CodeNetBoxDenied, c.page("ipam/ip-addresses", id), "NetBox names %s as oob_ip of %s and does not show the address", clean(d.device.OOB.Address, 60), d.Name).
			hint("Give the token's user the permission ipam.view_ipaddress for this address.")
		return
	}
	at := c.page("ipam/ip-addresses", id)
	d.OOB = d.hostAddress(address, at)
	holder := address
	if !onInterface(address) && address.NATInside != nil {
		inside, ok := d.world.addresses[address.NATInside.ID]
		if !ok {
			d.gap(plan.CodeNetBoxDenied, c.page("ipam/ip-addresses", address.NATInside.ID), "the address %s behind the oob_ip of %s is not shown by NetBox", clean(address.NATInside.Address, 60), d.Name).
				hint("Give the token's user the permission ipam.view_ipaddress for this address.")
			return
		}
		d.warn(plan.CodeIntentIncomplete, at, "the oob_ip of %s is translated: %s outside, %s at the BMC", d.Name, address.Address, clean(inside.Address, 60)).
			hint("The BMC is addressed from outside as %s; check that this is what the DHCP server shall hand out.", d.OOB)
		holder = inside
	}
	if !onInterface(holder) {
		d.gap(plan.CodeIntentIncomplete, c.page("ipam/ip-addresses", holder.ID), "the oob_ip %s of %s is assigned to no interface", clean(holder.Address, 60), d.Name).
			hint("Assign %s to the BMC's interface of %s.", clean(holder.Address, 60), d.Name)
		return
	}
	for _, i := range d.world.interfaces[d.ID] {
		if i.ID == *holder.AssignedID {
			d.bmcInterface(i)
			return
		}
	}
	owner := "another device"
	if holder.Assigned != nil && holder.Assigned.Device != nil {
		owner = holder.Assigned.Device.Name + " " + holder.Assigned.Name
	}
	d.gap(plan.CodeIntentAmbiguous, c.page("ipam/ip-addresses", holder.ID), "the oob_ip %s of %s is assigned to %s, not to an interface of %s", clean(holder.Address, 60), d.Name, clean(owner, 80), d.Name).
		hint("Assign the address to the BMC's interface of %s, or set another oob_ip.", d.Name)
}

func (d *draft) hostAddress(a ipAddress, at string) netip.Addr {
	text, _, _ := strings.Cut(a.Address, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.IsUnspecified() || addr.IsMulticast() {
		d.gap(plan.CodeIntentInvalid, at, "the oob_ip %q of %s is no host address", clean(a.Address, 60), d.Name)
		return netip.Addr{}
	}
	if a.Status != "active" {
		d.warn(plan.CodeIntentInvalid, at, "the oob_ip %s of %s has the status %s in NetBox", addr, d.Name, a.Status).
			hint("Set the address to active when it is the BMC's.")
	}
	return addr
}

func (d *draft) bmcInterface(i netInterface) {
	at := d.world.client.page("dcim/interfaces", i.ID)
	d.BMCInterface = i.Name
	if d.world.contexts[d.ID].ironic.frontend(i) {
		d.gap(plan.CodeIntentInvalid, at, "the oob_ip of %s is on %s, which is an interface of the frontend network and no BMC's", d.Name, i.Name).
			hint("Assign the address to the BMC's interface of %s.", d.Name)
		return
	}
	if !*i.MgmtOnly {
		d.warn(plan.CodeIntentInvalid, at, "interface %s of %s has the out-of-band address and is not marked management only", i.Name, d.Name).
			hint("Mark the interface as management only.")
	}
	if !*i.Enabled {
		d.warn(plan.CodeIntentInvalid, at, "interface %s of %s has the out-of-band address and is disabled in NetBox", i.Name, d.Name).
			hint("Enable the interface in NetBox.")
	}
	d.BMCMAC = d.macOf(i, true)
}

// macOf gives the primary MAC of an interface, the zero MAC with a fault where
// NetBox does not say it clearly. Without must, an interface with no MAC at all
// is not a fault.
func (d *draft) macOf(i netInterface, must bool) plan.MAC {
	at := d.world.client.page("dcim/interfaces", i.ID)
	text := i.primaryText()
	if text == "" {
		switch {
		case len(i.MACs) > 0:
			// Not even a single one is taken: which MAC is the interface's own is
			// exactly what NetBox was not told.
			var list []string
			for _, m := range i.MACs {
				list = append(list, clean(m.Address, 30))
			}
			d.gap(plan.CodeIntentIncomplete, at, "interface %s of %s has the MAC %s, and none is marked primary", i.Name, d.Name, strings.Join(list, " and ")).
				hint("Mark the primary MAC address of interface %s of %s.", i.Name, d.Name)
		case must:
			d.gap(plan.CodeIntentIncomplete, at, "interface %s of %s has no MAC address", i.Name, d.Name).
				hint("Record the MAC address of interface %s of %s and mark it primary.", i.Name, d.Name)
		}
		return plan.MAC{}
	}
	mac, err := plan.ParseMAC(text)
	if err != nil || mac.Multicast() {
		d.gap(plan.CodeIntentInvalid, at, "interface %s of %s has %q, which is no MAC address of a NIC", i.Name, d.Name, clean(text, 40)).
			hint("Record the 48-bit MAC address of interface %s of %s.", i.Name, d.Name)
		return plan.MAC{}
	}
	if len(i.MACs) > 0 {
		listed := false
		for _, m := range i.MACs {
			other, err := plan.ParseMAC(m.Address)
			listed = listed || err == nil && other == mac
		}
		if !listed {
			d.gap(plan.CodeIntentAmbiguous, at, "interface %s of %s has the primary MAC %s, which is not one of its MAC addresses", i.Name, d.Name, mac).
				hint("Set the primary MAC of interface %s of %s to one of its own.", i.Name, d.Name)
			return plan.MAC{}
		}
	}
	return mac
}
