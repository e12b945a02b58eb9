package bmctest

import (
	"fmt"
	"strconv"
	"strings"
)

type object = map[string]any

func link(path string) object { return object{"@odata.id": path} }

func links(paths ...string) []any {
	out := make([]any, len(paths))
	for i, p := range paths {
		out[i] = link(p)
	}
	return out
}

func collection(path, kind string, members ...string) object {
	return object{
		"@odata.id": path, "@odata.type": "#" + kind + "Collection." + kind + "Collection", "Name": kind + " Collection",
		"Members": links(members...), "Members@odata.count": len(members),
	}
}

const rootPath = "/redfish/v1"

// ids are the maker's own names of the parts of the tree.
func (b *BMC) systemPath() string {
	if b.machine.Vendor == IDRAC {
		return rootPath + "/Systems/System.Embedded.1"
	}
	return rootPath + "/Systems/system"
}

func (b *BMC) managerPath() string {
	if b.machine.Vendor == IDRAC {
		return rootPath + "/Managers/iDRAC.Embedded.1"
	}
	return rootPath + "/Managers/bmc"
}

func (b *BMC) interfacePath() string {
	if b.machine.Vendor == IDRAC {
		return b.managerPath() + "/EthernetInterfaces/NIC.1"
	}
	return b.managerPath() + "/EthernetInterfaces/eth0"
}

func (b *BMC) protocolPath() string { return b.managerPath() + "/NetworkProtocol" }

func (b *BMC) attributesPath() string {
	return b.managerPath() + "/Oem/Dell/DellAttributes/iDRAC.Embedded.1"
}

// fqdd is the iDRAC's name of a host NIC.
func fqdd(i int) string { return fmt.Sprintf("NIC.Integrated.1-%d-1", i+1) }

func (b *BMC) functionPath(i int) string {
	return rootPath + "/Chassis/System.Embedded.1/NetworkAdapters/NIC.Integrated.1/NetworkDeviceFunctions/" + fqdd(i)
}

func (b *BMC) nicID(i int) string {
	if b.machine.Vendor == IDRAC {
		return fqdd(i)
	}
	return "eth" + strconv.Itoa(i)
}

// resource gives a resource of the tree, nil when there is none.
func (b *BMC) resource(path string) object {
	p := b.machine.Profile
	system, manager := b.systemPath(), b.managerPath()
	switch path {
	case rootPath:
		return b.root()
	case rootPath + "/SessionService":
		if p.NoSessions {
			return nil
		}
		return object{
			"@odata.id": path, "@odata.type": "#SessionService.v1_1_8.SessionService", "Id": "SessionService", "Name": "Session Service", "ServiceEnabled": true,
			"SessionTimeout": int(p.SessionTimeout.Seconds()), "Sessions": link(sessionsPath),
		}
	case sessionsPath:
		if p.NoSessions {
			return nil
		}
		var members []string
		for _, id := range sorted(b.sessions) {
			members = append(members, sessionsPath+"/"+id)
		}
		return collection(path, "Session", members...)
	case rootPath + "/Systems":
		return collection(path, "ComputerSystem", system)
	case system:
		return b.system()
	case system + "/EthernetInterfaces":
		var members []string
		for i := range b.machine.NICs {
			members = append(members, path+"/"+b.nicID(i))
		}
		return collection(path, "EthernetInterface", members...)
	case rootPath + "/Managers":
		return collection(path, "Manager", manager)
	case manager:
		return b.manager()
	case manager + "/EthernetInterfaces":
		members := []string{b.interfacePath()}
		if b.machine.Vendor == Generic {
			members = append(members, path+"/hostusb0") // the host's way to the BMC
		}
		return collection(path, "EthernetInterface", members...)
	case b.interfacePath():
		return b.ethernet()
	case b.protocolPath():
		if p.NoNetworkProtocol {
			return nil
		}
		return b.protocol()
	case rootPath + "/TaskService":
		return object{"@odata.id": path, "@odata.type": "#TaskService.v1_1_4.TaskService", "Id": "TaskService", "Name": "Task Service", "Tasks": link(path + "/Tasks")}
	}
	if strings.HasPrefix(path, sessionsPath+"/") && !p.NoSessions {
		if s := b.sessions[last(path)]; s != nil {
			return b.sessionDoc(s)
		}
		return nil
	}
	if strings.HasPrefix(path, rootPath+"/TaskService/Tasks/") {
		return b.taskDoc(last(path))
	}
	if strings.HasPrefix(path, system+"/EthernetInterfaces/") {
		return b.hostNIC(path)
	}
	if strings.HasPrefix(path, system+"/BootOptions") && !p.NoBootOptions {
		return b.boot(path)
	}
	if b.machine.Vendor == IDRAC {
		return b.dell(path)
	}
	return b.openBMC(path)
}

// openBMC are the resources that only the generic BMC has.
func (b *BMC) openBMC(path string) object {
	manager := b.managerPath()
	switch path {
	case manager + "/EthernetInterfaces/hostusb0":
		return object{"@odata.id": path, "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": "hostusb0", "Name": "Manager Ethernet Interface", "HostName": "", "IPv4Addresses": []any{object{"Address": "169.254.0.17"}}}
	case manager + "/HostInterfaces":
		return collection(path, "HostInterface", path+"/0")
	case manager + "/HostInterfaces/0":
		return object{"@odata.id": path, "@odata.type": "#HostInterface.v1_3_0.HostInterface", "Id": "0", "Name": "Host Interface", "ManagerEthernetInterface": link(manager + "/EthernetInterfaces/hostusb0")}
	case b.interfacePath() + "/Settings":
		if b.machine.Profile.SettingsObject {
			d := b.ethernet()
			d["@odata.id"] = path
			delete(d, "@Redfish.Settings")
			return d
		}
	case b.protocolPath() + "/Settings":
		if b.machine.Profile.SettingsObject && !b.machine.Profile.NoNetworkProtocol {
			d := b.protocol()
			d["@odata.id"] = path
			delete(d, "@Redfish.Settings")
			return d
		}
	}
	return nil
}

func (b *BMC) root() object {
	prefix := rootPath + "/"
	if b.machine.Profile.RelativeLinks {
		prefix = ""
	}
	d := object{
		"@odata.id": rootPath, "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.17.0",
		"Systems": link(prefix + "Systems"), "Managers": link(prefix + "Managers"), "Chassis": link(prefix + "Chassis"), "Tasks": link(prefix + "TaskService"),
		"UUID": "00000000-0000-0000-0000-000000000001", "Vendor": "OpenBMC", "Product": "Example BMC",
		"Links": object{"ManagerProvidingService": link(b.managerPath())},
	}
	if !b.machine.Profile.NoSessions {
		d["SessionService"] = link(prefix + "SessionService")
		d["Links"].(object)["Sessions"] = link(prefix + strings.TrimPrefix(sessionsPath, rootPath+"/"))
	}
	if b.machine.Vendor == IDRAC {
		d["Vendor"], d["Product"], d["RedfishVersion"] = "Dell", "Integrated Dell Remote Access Controller", "1.18.0"
		d["Oem"] = object{"Dell": object{"@odata.type": "#DellServiceRoot.v1_0_0.DellServiceRoot", "ServiceTag": b.machine.ServiceTag, "IsBranded": 0}}
		delete(d, "UUID")
		delete(d["Links"].(object), "ManagerProvidingService")
	}
	return d
}

func (b *BMC) system() object {
	p := b.systemPath()
	d := object{
		"@odata.id": p, "@odata.type": "#ComputerSystem.v1_20_1.ComputerSystem", "Id": last(p), "Name": "System", "SystemType": "Physical",
		"Manufacturer": "Example", "Model": b.machine.Model, "SerialNumber": b.machine.Serial, "SKU": "EX-1000", "AssetTag": b.asset,
		"PowerState": power(b.powered), "Status": object{"State": "Enabled", "Health": "OK"}, "HostName": nil,
		"EthernetInterfaces": link(p + "/EthernetInterfaces"),
		"Links":              object{"ManagedBy": links(b.managerPath()), "ManagedBy@odata.count": 1},
		"Actions": object{"#ComputerSystem.Reset": object{
			"target": p + "/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": resetTypes,
		}},
		"Boot": object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideMode": "UEFI", "BootSourceOverrideTarget": "None"},
	}
	if b.machine.Vendor == IDRAC {
		d["Manufacturer"], d["SKU"] = "Dell Inc.", b.machine.ServiceTag
		d["Bios"] = link(p + "/Bios")
		d["@Redfish.Settings"] = object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(p + "/Settings"), "SupportedApplyTimes": []any{"OnReset"}}
	}
	if !b.machine.Profile.NoBootOptions {
		order := b.bootOrder()
		boot := d["Boot"].(object)
		boot["BootOrder"], boot["BootOptions"] = order, link(p+"/BootOptions")
	}
	return d
}

func power(on bool) string {
	if on {
		return "On"
	}
	return "Off"
}

// bootOrder puts the chosen option first and keeps the rest. Option 0 is the
// disk, option n the n-th NIC.
func (b *BMC) bootOrder() []any {
	order := []any{reference(b.firstNIC)}
	for i := range len(b.machine.NICs) + 1 {
		if i != b.firstNIC {
			order = append(order, reference(i))
		}
	}
	return order
}

func reference(i int) string { return fmt.Sprintf("Boot%04X", i) }

func (b *BMC) boot(path string) object {
	all := b.systemPath() + "/BootOptions"
	if path == all {
		var members []string
		for i := range len(b.machine.NICs) + 1 {
			members = append(members, all+"/"+reference(i))
		}
		return collection(path, "BootOption", members...)
	}
	for i := range len(b.machine.NICs) + 1 {
		if path != all+"/"+reference(i) {
			continue
		}
		d := object{"@odata.id": path, "@odata.type": "#BootOption.v1_0_4.BootOption", "Id": reference(i), "Name": "Uefi Boot Option", "BootOptionReference": reference(i), "BootOptionEnabled": true}
		switch {
		case i == 0:
			d["DisplayName"], d["UefiDevicePath"] = "Example OS", `HD(1,GPT,00000000-0000-0000-0000-000000000001,0x800,0x100000)/\EFI\example\shim.efi`
		case b.machine.Vendor == IDRAC:
			// No address: the path names a PXE device of the BIOS.
			d["DisplayName"], d["UefiDevicePath"] = fmt.Sprintf("PXE Device %d: Integrated NIC 1 Port %d Partition 1", i, i), "VenHw(3A191845-5F86-4E78-8FCE-C4CFF59F9DAA)"
			if !b.machine.Profile.NoRelatedItem {
				d["RelatedItem"] = links(b.functionPath(i - 1))
			}
		default:
			bare := strings.ToUpper(strings.ReplaceAll(b.machine.NICs[i-1].MAC.String(), ":", ""))
			d["DisplayName"] = "UEFI PXEv4 (MAC:" + bare + ")"
			d["UefiDevicePath"] = fmt.Sprintf("PciRoot(0x5)/Pci(0x0,0x0)/Pci(0x6,0x%X)/MAC(%s,0x1)/IPv4(0.0.0.0)", i-1, bare)
		}
		return d
	}
	return nil
}

func (b *BMC) hostNIC(path string) object {
	for i, nic := range b.machine.NICs {
		if last(path) == b.nicID(i) {
			mac := strings.ToUpper(nic.MAC.String())
			return object{
				"@odata.id": path, "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": b.nicID(i), "Name": "Host Ethernet Interface",
				"MACAddress": mac, "PermanentMACAddress": mac, "LinkStatus": "LinkUp", "Status": object{"State": "Enabled", "Health": "OK"},
			}
		}
	}
	return nil
}

func (b *BMC) manager() object {
	p := b.managerPath()
	d := object{
		"@odata.id": p, "@odata.type": "#Manager.v1_18_0.Manager", "Id": last(p), "Name": "Manager", "ManagerType": "BMC", "FirmwareVersion": "1.0.0", "Model": "Example BMC",
		"EthernetInterfaces": link(p + "/EthernetInterfaces"),
		"Links":              object{"ManagerForServers": links(b.systemPath())},
	}
	if !b.machine.Profile.NoNetworkProtocol {
		d["NetworkProtocol"] = link(b.protocolPath())
	}
	if b.machine.Vendor == IDRAC {
		d["Model"], d["FirmwareVersion"] = "16G Monolithic", "7.10.30.00"
		d["Links"].(object)["Oem"] = object{"Dell": object{"@odata.type": "#DellOem.v1_3_0.DellOemLinks", "DellAttributes": links(
			b.attributesPath(), p+"/Oem/Dell/DellAttributes/System.Embedded.1", p+"/Oem/Dell/DellAttributes/LifecycleController.Embedded.1")}}
		return d
	}
	d["HostInterfaces"] = link(p + "/HostInterfaces")
	return d
}

func (b *BMC) ethernet() object {
	p := b.interfacePath()
	d := object{
		"@odata.id": p, "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": last(p), "Name": "Manager Ethernet Interface", "InterfaceEnabled": true,
		"DHCPv4":        object{"DHCPEnabled": true, "UseNTPServers": nil},
		"IPv4Addresses": []any{object{"Address": "127.0.0.1", "AddressOrigin": "DHCP", "SubnetMask": "255.0.0.0", "Gateway": nil}},
		"LinkStatus":    "LinkUp", "SpeedMbps": nil,
	}
	if !b.machine.Profile.NoHostname && !b.machine.Profile.HostnameOnProtocol {
		d["HostName"], d["FQDN"] = b.hostname, b.hostname
	}
	return b.withSettings(d)
}

func (b *BMC) protocol() object {
	p := b.protocolPath()
	servers := []any{}
	for _, s := range b.ntp.servers {
		servers = append(servers, s)
	}
	d := object{
		"@odata.id": p, "@odata.type": "#ManagerNetworkProtocol.v1_9_0.ManagerNetworkProtocol", "Id": "NetworkProtocol", "Name": "Manager Network Protocol",
		"HTTPS": object{"Port": 443, "ProtocolEnabled": true}, "SSH": object{"Port": 22, "ProtocolEnabled": true}, "IPMI": object{"Port": 623, "ProtocolEnabled": false},
		"NTP": object{"ProtocolEnabled": b.ntp.enabled, "NTPServers": servers},
	}
	if b.machine.Vendor == IDRAC {
		d["NTP"] = object{"ProtocolEnabled": false, "NTPServers": []any{"", "", ""}} // it is there, and has no effect
	}
	if !b.machine.Profile.NoHostname {
		d["HostName"], d["FQDN"] = b.hostname, b.hostname
	}
	return b.withSettings(d)
}

func (b *BMC) withSettings(d object) object {
	if b.machine.Profile.SettingsObject && b.machine.Vendor == Generic {
		d["@Redfish.Settings"] = object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(d["@odata.id"].(string) + "/Settings")}
	}
	return d
}

// dell are the resources that only an iDRAC has.
func (b *BMC) dell(path string) object {
	system := b.systemPath()
	switch path {
	case b.attributesPath():
		return object{
			"@odata.id": path, "@odata.type": "#DellAttributes.v1_0_0.DellAttributes", "Id": "iDRAC.Embedded.1", "Name": "OEMAttributeRegistry", "AttributeRegistry": "ManagerAttributeRegistry.v1_0_0",
			"@Redfish.Settings": object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(path + "/Settings"), "SupportedApplyTimes": []any{"Immediate", "AtMaintenanceWindowStart"}},
			"Attributes":        b.attributes(),
		}
	case b.managerPath() + "/Oem/Dell/DellAttributes/System.Embedded.1", b.managerPath() + "/Oem/Dell/DellAttributes/LifecycleController.Embedded.1":
		return object{"@odata.id": path, "@odata.type": "#DellAttributes.v1_0_0.DellAttributes", "Id": last(path), "Name": "OEMAttributeRegistry", "Attributes": object{"ServerInfo.1.ServiceTag": b.machine.ServiceTag}}
	case system + "/Bios":
		attrs := object{"BootMode": "Uefi"}
		for i := range b.machine.NICs {
			attrs[fmt.Sprintf("PxeDev%dEnDis", i+1)] = "Enabled"
			attrs[fmt.Sprintf("PxeDev%dInterface", i+1)] = fqdd(i)
		}
		return object{"@odata.id": path, "@odata.type": "#Bios.v1_2_1.Bios", "Id": "Bios", "Name": "BIOS Configuration Current Settings", "Attributes": attrs}
	}
	for i, nic := range b.machine.NICs {
		if path == b.functionPath(i) {
			mac := strings.ToUpper(nic.MAC.String())
			return object{
				"@odata.id": path, "@odata.type": "#NetworkDeviceFunction.v1_9_0.NetworkDeviceFunction", "Id": fqdd(i), "Name": "NetworkDeviceFunction",
				"Ethernet": object{"MACAddress": mac, "PermanentMACAddress": mac, "MTUSize": nil}, "Status": object{"State": nil, "Health": nil},
			}
		}
	}
	return nil
}

func (b *BMC) attributes() object {
	enabled := "Disabled"
	if b.ntp.enabled {
		enabled = "Enabled"
	}
	attrs := object{
		"NIC.1.DNSRacName": b.hostname, "NIC.1.DNSDomainName": "", "IPv4.1.DHCPEnable": "Enabled",
		"NTPConfigGroup.1.NTPEnable": enabled, "NTPConfigGroup.1.NTPMaxDist": 16,
		"WebServer.1.MaxNumberOfSessions": b.machine.Profile.MaxSessions, "Info.1.Version": "7.10.30.00", "Lockdown.1.SystemLockdown": "Disabled",
	}
	for i := range 3 {
		server := ""
		if i < len(b.ntp.servers) {
			server = b.ntp.servers[i]
		}
		attrs[fmt.Sprintf("NTPConfigGroup.1.NTP%d", i+1)] = server
	}
	if b.machine.Profile.NoHostname {
		delete(attrs, "NIC.1.DNSRacName")
	}
	return attrs
}

func last(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
