package bmctest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// option is a boot option of the firmware.
type option struct {
	reference string // Boot0001
	id        string // of its resource
	nic       int    // from 1; 0: not one of the machine's NICs
	usb       bool   // the virtual NIC between host and BMC
	name      string
	path      string
}

func number(i int) string { return strconv.Itoa(i) }

func reference(i int) string { return fmt.Sprintf("Boot%04X", i) }

func bare(nic NIC) string { return strings.ToUpper(strings.ReplaceAll(nic.MAC.String(), ":", "")) }

// makeOptions fills the firmware's list: the disk, the NICs, and what makers add.
func (b *BMC) makeOptions() {
	add := func(o option) {
		o.reference = reference(len(b.options))
		o.id = o.reference
		if b.machine.Vendor == AMI {
			o.id = strings.TrimPrefix(o.reference, "Boot")
		}
		b.options = append(b.options, o)
	}
	disk := `HD(1,GPT,00000000-0000-0000-0000-000000000001,0x800,0x100000)/\EFI\example\shim.efi`
	switch b.machine.Vendor {
	case XCC: // classes of devices
		add(option{name: "HardDisk", path: "HD_1_GPT_00000000"})
		add(option{name: "Network", path: "VenHw_B2AD3248_4F72_4950_A966_CFE5062DB83A_05000000", nic: 1})
		add(option{name: "CD_DVDRom", path: "VenHw_B2AD3248_4F72_4950_A966_CFE5062DB83A_03000000"})
		return
	case Supermicro:
		add(option{name: "UEFI Hard Disk:Example OS"})
	default:
		add(option{name: "Example OS", path: disk})
	}
	for i, nic := range b.machine.NICs {
		mac := bare(nic)
		where := fmt.Sprintf("PciRoot(0x5)/Pci(0x0,0x0)/Pci(0x6,0x%X)/MAC(%s,0x1)", i, mac)
		switch b.machine.Vendor {
		case IDRAC: // no address: the path names a PXE device of the BIOS
			add(option{nic: i + 1, name: fmt.Sprintf("PXE Device %d: Integrated NIC 1 Port %d Partition 1", i+1, i+1), path: "VenHw(3A191845-5F86-4E78-8FCE-C4CFF59F9DAA)"})
		case AMI: // several of one NIC
			add(option{nic: i + 1, name: "UEFI: PXE IPv4 Example Adapter", path: where + "/IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0)"})
			add(option{nic: i + 1, name: "UEFI: PXE IPv4 Other Name", path: where + "/IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0)/Uri()"})
		case Supermicro: // the address is in the name alone
			add(option{nic: i + 1, name: fmt.Sprintf("(B%d/D0/F0) UEFI PXE IPv4 Example Adapter - %s", 26+i, mac)})
		default:
			add(option{nic: i + 1, name: "UEFI PXEv4 (MAC:" + mac + ")", path: where + "/IPv4(0.0.0.0)"})
		}
	}
	if b.machine.Vendor == AMI {
		add(option{usb: true, name: "UEFI: PXE IPv4 American Megatrends Inc.", path: "PciRoot(0x0)/Pci(0x14,0x0)/USB(0x9,0x0)/MAC(0A0B0C0D0E0F,0x0)/IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0)"})
		add(option{name: "UEFI: Built-in EFI Shell", path: "MemoryMapped(0xB,0x0,0x0)/FvFile(00000000-0000-0000-0000-000000000002)"})
	}
}

// orderFrom puts the chosen NIC (from 1), or the disk (0), before the rest.
func (b *BMC) orderFrom(nic int) []string {
	var front, rest []string
	for i, o := range b.options {
		if nic > 0 && (o.nic == nic || b.machine.Vendor == XCC && o.nic > 0) || nic == 0 && i == 0 {
			front = append(front, o.reference)
			continue
		}
		rest = append(rest, o.reference)
	}
	return append(front, rest...)
}

// SetFirstNIC puts a NIC (from 1) first in the boot order, or the disk (0).
func (b *BMC) SetFirstNIC(nic int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order = b.orderFrom(nic)
}

// RestrictTo puts a NIC (from 1) first and switches the options of all others off.
func (b *BMC) RestrictTo(nic int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order = b.orderFrom(nic)
	for _, o := range b.options {
		b.disabled[o.reference] = (o.nic > 0 && o.nic != nic || o.usb) && b.machine.Vendor != XCC
	}
}

// BootOrder is the order in force, the disabled options left out.
func (b *BMC) BootOrder() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	var out []string
	for _, ref := range b.order {
		if !b.disabled[ref] {
			out = append(out, ref)
		}
	}
	return out
}

// Boots names what is booted from, in order, without what is off: disk, nic1,
// nic2, usb, other. An XCC's class of NICs is named by the order that they have.
func (b *BMC) Boots() []string {
	var out []string
	for _, reference := range b.BootOrder() {
		for i, o := range b.options {
			if o.reference != reference {
				continue
			}
			switch {
			case b.machine.Vendor == XCC && o.nic > 0:
				b.mu.Lock()
				for _, slot := range b.slots {
					for n := range b.machine.NICs {
						if slot == b.slot(n) {
							out = append(out, "nic"+number(n+1))
						}
					}
				}
				b.mu.Unlock()
			case o.nic > 0:
				out = append(out, "nic"+number(o.nic))
			case o.usb:
				out = append(out, "usb")
			case i == 0:
				out = append(out, "disk")
			default:
				out = append(out, "other")
			}
		}
	}
	return out
}

// bootProperties are the parts of Boot that are about the order.
func (b *BMC) bootProperties(pending bool) object {
	order := b.order
	if pending && b.pendingOrder != nil {
		order = b.pendingOrder
	}
	var list []any
	for _, ref := range order {
		list = append(list, ref)
	}
	return object{"BootOrder": list}
}

func (b *BMC) bootResource(path string) object {
	all := b.systemPath() + "/BootOptions"
	if path == all {
		var members []string
		for _, o := range b.options {
			members = append(members, all+"/"+o.id)
		}
		return collection(path, "BootOption", members...)
	}
	for _, o := range b.options {
		switch path {
		case all + "/" + o.id:
			d := b.optionDoc(o, path, false)
			if b.machine.Vendor == AMI {
				d["@Redfish.Settings"] = settingsLink(path + "/SD")
			}
			return d
		case all + "/" + o.id + "/SD":
			if b.machine.Vendor == AMI {
				return b.optionDoc(o, path, true)
			}
		}
	}
	return nil
}

func settingsLink(path string) object {
	return object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(path)}
}

func (b *BMC) optionDoc(o option, path string, pending bool) object {
	d := object{"@odata.id": path, "@odata.type": "#BootOption.v1_0_4.BootOption", "Id": o.id, "Name": "Uefi Boot Option", "BootOptionReference": o.reference, "DisplayName": o.name}
	if o.path != "" {
		d["UefiDevicePath"] = o.path
	}
	if b.machine.Vendor != XCC {
		off, staged := b.pendingOff[o.reference]
		if !pending || !staged {
			off = b.disabled[o.reference]
		}
		d["BootOptionEnabled"] = !off
	}
	if b.machine.Vendor == IDRAC && o.nic > 0 && !b.machine.Profile.NoRelatedItem {
		d["RelatedItem"] = links(b.functionPath(o.nic - 1))
	}
	return d
}

// setOrder wants a whole permutation.
func (b *BMC) setOrder(v any) (func(), string) {
	list, ok := v.([]any)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	var order []string
	for _, item := range list {
		order = append(order, text(item))
	}
	sortedOrder, known := slices.Clone(order), slices.Clone(b.order)
	slices.Sort(sortedOrder)
	slices.Sort(known)
	if !slices.Equal(sortedOrder, known) {
		return nil, "PropertyValueNotInList"
	}
	return func() {
		b.pendingOrder = order
		b.orderStored()
	}, ""
}

func (b *BMC) setEnabled(reference string) setter {
	return func(v any) (func(), string) {
		on, ok := v.(bool)
		if !ok {
			return nil, "PropertyValueTypeError"
		}
		return func() {
			b.pendingOff[reference] = !on
			b.orderStored()
		}, ""
	}
}

// orderStored makes changes of the order live where no boot is needed for it.
func (b *BMC) orderStored() {
	if b.machine.Vendor == Generic || b.machine.Vendor == Supermicro {
		b.applyBoot()
	}
}

func (b *BMC) applyBoot() {
	if b.machine.Profile.BootIgnored {
		return
	}
	if b.pendingOrder != nil {
		b.order, b.pendingOrder = b.pendingOrder, nil
	}
	if b.nextSlots != nil {
		b.slots, b.nextSlots = b.nextSlots, nil
	}
	maps.Copy(b.disabled, b.pendingOff)
	b.pendingOff = map[string]bool{}
}

// optionOf finds an option by the path of its resource or settings object.
func (b *BMC) optionOf(path, suffix string) (option, bool) {
	for _, o := range b.options {
		if path == b.systemPath()+"/BootOptions/"+o.id+suffix {
			return o, true
		}
	}
	return option{}, false
}
