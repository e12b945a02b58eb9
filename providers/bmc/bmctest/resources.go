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

func (b *BMC) nicID(i int) string {
	switch b.machine.Vendor {
	case IDRAC:
		return fqdd(i)
	case XCC:
		return "NIC" + number(i+1)
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
		if p.NoHostNICs {
			return nil
		}
		var members []string
		for i := range b.machine.NICs {
			members = append(members, path+"/"+b.nicID(i))
		}
		if b.machine.Vendor == XCC {
			members = append(members, path+"/ToManager") // the host's way to the BMC
		}
		return collection(path, "EthernetInterface", members...)
	case rootPath + "/Managers":
		return collection(path, "Manager", manager)
	case manager:
		return b.manager()
	case manager + "/EthernetInterfaces":
		members := []string{b.interfacePath()}
		if b.hostUSB() != "" {
			members = append(members, path+"/"+b.hostUSB()) // the host's way to the BMC
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
		return b.bootResource(path)
	}
	if d := b.biosResource(path); d != nil {
		return d
	}
	if d := b.common(path); d != nil {
		return d
	}
	return b.maker.resource(b, path)
}

// hostUSB is the id of the interface that leads to the host, "" where none is shown.
func (b *BMC) hostUSB() string {
	return map[string]string{Generic: "hostusb0", XCC: "ToHost", AMI: "hostusb0"}[b.machine.Vendor]
}

// common are resources that several makers have.
func (b *BMC) common(path string) object {
	manager := b.managerPath()
	switch path {
	case manager + "/EthernetInterfaces/" + b.hostUSB():
		return object{"@odata.id": path, "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": last(path), "Name": "Manager Ethernet Interface", "HostName": "", "IPv4Addresses": []any{object{"Address": "169.254.0.17"}}}
	case manager + "/HostInterfaces":
		if b.hostUSB() == "" {
			return nil
		}
		return collection(path, "HostInterface", path+"/0")
	case manager + "/HostInterfaces/0":
		if b.hostUSB() == "" {
			return nil
		}
		return object{"@odata.id": path, "@odata.type": "#HostInterface.v1_3_0.HostInterface", "Id": "0", "Name": "Host Interface", "ManagerEthernetInterface": link(manager + "/EthernetInterfaces/" + b.hostUSB())}
	case manager + "/ResetActionInfo":
		if !b.maker.resetInfo {
			return nil
		}
		return actionInfo(path, b.maker.managerResets)
	case b.systemPath() + "/ResetActionInfo":
		if !b.maker.resetInfo {
			return nil
		}
		return actionInfo(path, b.hostResets())
	case rootPath + "/AccountService":
		least, most := b.passwordLimits()
		d := object{"@odata.id": path, "@odata.type": "#AccountService.v1_10_0.AccountService", "Id": "AccountService", "Name": "Account Service", "ServiceEnabled": true,
			"AccountLockoutThreshold": b.values["lockout"], "AccountLockoutDuration": b.values["lockoutfor"], "MinPasswordLength": least, "MaxPasswordLength": most, "Accounts": link(accountsPath)}
		if b.machine.Vendor == XCC {
			d["Oem"] = object{"Lenovo": object{"@odata.type": "#LenovoAccountService.v1_0_0.LenovoAccountServiceProperties", "PasswordChangeOnFirstAccess": b.values["firstaccess"],
				"ComplexPassword": true, "PasswordLength": least, "PasswordExpirationPeriodDays": 0, "PasswordExpirationWarningPeriod": 0, "MinimumPasswordReuseCycle": 0, "MinimumPasswordChangeIntervalHours": 0, "WebInactivitySessionTimeout": 20}}
		}
		return d
	}
	return b.accountResource(path)
}

func actionInfo(path string, types []any) object {
	return object{"@odata.id": path, "@odata.type": "#ActionInfo.v1_1_2.ActionInfo", "Id": "ResetActionInfo", "Name": "ResetActionInfo",
		"Parameters": []any{object{"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": types}}}
}

func (b *BMC) hostResets() []any {
	var out []any
	for _, t := range resetTypes() {
		if t != "GracefulRestart" || !b.machine.Profile.NoGracefulRestart {
			out = append(out, t)
		}
	}
	return out
}

// reset is the Actions entry of a Reset.
func (b *BMC) reset(kind, path string, types []any) object {
	d := object{"target": path + "/Actions/" + kind + ".Reset"}
	if b.maker.resetInfo {
		d["@Redfish.ActionInfo"] = path + "/ResetActionInfo"
	} else {
		d["ResetType@Redfish.AllowableValues"] = types
	}
	return object{"#" + kind + ".Reset": d}
}

func (b *BMC) root() object {
	prefix := rootPath + "/"
	if b.machine.Profile.RelativeLinks {
		prefix = ""
	}
	d := object{
		"@odata.id": rootPath, "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.17.0",
		"Systems": link(prefix + "Systems"), "Managers": link(prefix + "Managers"), "Chassis": link(prefix + "Chassis"), "Tasks": link(prefix + "TaskService"),
		"UUID": "00000000-0000-0000-0000-000000000001", "AccountService": link(prefix + "AccountService"), "Registries": link(prefix + "Registries"),
		"Links": object{},
	}
	if !b.machine.Profile.NoSessions {
		d["SessionService"] = link(prefix + "SessionService")
		d["Links"].(object)["Sessions"] = link(prefix + strings.TrimPrefix(sessionsPath, rootPath+"/"))
	}
	d["ProtocolFeaturesSupported"] = object{"ExpandQuery": object{"ExpandAll": b.maker.expands, "Levels": b.maker.expands, "Links": b.maker.expands, "MaxLevels": 1, "NoLinks": b.maker.expands}}
	b.maker.root(b, d)
	return d
}

func (b *BMC) system() object {
	p := b.systemPath()
	d := object{
		"@odata.id": p, "@odata.type": "#ComputerSystem.v1_20_1.ComputerSystem", "Id": last(p), "Name": "System", "SystemType": "Physical",
		"Manufacturer": "Example", "Model": b.machine.Model, "SerialNumber": b.machine.Serial, "SKU": "EX-1000", "AssetTag": b.asset,
		"PowerState": power(b.host.powered), "Status": object{"State": "Enabled", "Health": "OK"}, "HostName": nil, "LastResetTime": b.host.last.UTC().Format("2006-01-02T15:04:05+00:00"),
		"EthernetInterfaces": link(p + "/EthernetInterfaces"),
		"Links":              object{"ManagedBy": links(b.managerPath()), "ManagedBy@odata.count": 1},
		"Actions":            b.reset("ComputerSystem", p, b.hostResets()),
		"Boot":               object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideMode": "UEFI", "BootSourceOverrideTarget": "None"},
	}
	if !b.machine.Profile.NoBIOS {
		d["Bios"] = link(b.biosPath())
	}
	if b.machine.Vendor == IDRAC {
		d["Manufacturer"], d["SKU"] = "Dell Inc.", b.machine.ServiceTag
	}
	switch b.machine.Vendor {
	case XCC:
		delete(d, "LastResetTime")
		delete(d["Links"].(object), "ManagedBy@odata.count")
	case Generic:
		delete(d["Links"].(object), "ManagedBy@odata.count")
	case Supermicro:
		delete(d, "LastResetTime")
		state := "SystemHardwareInitializationComplete" // and so it stays
		if b.inPOST() {
			state = "MemoryInitializationStarted"
		}
		if !b.machine.Profile.NoBootProgress {
			d["BootProgress"] = object{"OemLastState": nil, "LastState": state}
		}
	}
	if b.machine.Vendor == IDRAC && !b.machine.Profile.NoSystemSettings || b.machine.Vendor == Generic {
		state := "OSRunning"
		switch {
		case b.inPOST():
			state = "OSBootStarted"
		case b.machine.Profile.NoOS || !b.host.powered:
			state = "None"
		}
		if b.inPOST() {
			state = "SystemHardwareInitializationComplete"
		}
		d["BootProgress"] = object{"LastState": state}
	}
	if b.machine.Vendor == XCC {
		d["Oem"] = object{"Lenovo": object{"@odata.type": "#LenovoComputerSystem.v1_0_0.LenovoSystemProperties", "SystemStatus": b.systemStatus()}}
	}
	if b.maker.settings != "" && (b.machine.Vendor != IDRAC || !b.machine.Profile.NoSystemSettings) {
		d["@Redfish.Settings"] = object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(p + "/" + b.maker.settings), "SupportedApplyTimes": []any{"OnReset"}}
		if b.machine.Vendor == AMI {
			delete(d["@Redfish.Settings"].(object), "SupportedApplyTimes")
		}
	}
	if !b.machine.Profile.NoBootOptions {
		boot := d["Boot"].(object)
		boot["BootOrder"], boot["BootOptions"] = b.bootProperties(false)["BootOrder"], link(p+"/BootOptions")
	}
	return d
}

// systemStatus is Lenovo's word for how far the host has come.
func (b *BMC) systemStatus() string {
	switch {
	case !b.host.powered:
		return "SystemPowerOff_StateUnknown"
	case b.inPOST():
		return "SystemOn_StartingUEFI"
	case b.machine.Profile.NoOS:
		return "SystemInUEFI"
	}
	return "OSBooted"
}

func (b *BMC) hostNIC(path string) object {
	for i, nic := range b.machine.NICs {
		if last(path) == b.nicID(i) {
			mac := strings.ToUpper(nic.MAC.String())
			d := object{
				"@odata.id": path, "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": b.nicID(i), "Name": "Host Ethernet Interface",
				"MACAddress": mac, "PermanentMACAddress": mac, "LinkStatus": "LinkUp", "SpeedMbps": 100000, "Status": object{"State": "Enabled", "Health": "OK"},
				"Description": fmt.Sprintf("Integrated NIC 1 Port %d Partition 1", i+1),
			}
			if b.machine.Vendor == AMI {
				delete(d, "SpeedMbps")
				delete(d, "Description")
			}
			for key, value := range nic.Link {
				if value == absent {
					delete(d, key)
					continue
				}
				d[key] = value
			}
			return d
		}
	}
	if last(path) == "ToManager" && b.machine.Vendor == XCC {
		return object{"@odata.id": path, "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": "ToManager", "Name": "ToManager", "MACAddress": "02:00:5E:FE:00:01", "LinkStatus": "LinkUp", "SpeedMbps": 100, "Status": object{"State": "Enabled", "Health": "OK"}}
	}
	return nil
}

func (b *BMC) manager() object {
	p := b.managerPath()
	d := object{
		"@odata.id": p, "@odata.type": "#Manager.v1_18_0.Manager", "Id": last(p), "Name": "Manager", "ManagerType": "BMC", "FirmwareVersion": "1.0.0", "Model": "Example BMC",
		"EthernetInterfaces": link(p + "/EthernetInterfaces"), "LastResetTime": b.restarted.UTC().Format("2006-01-02T15:04:05+00:00"),
		"Links":   object{"ManagerForServers": links(b.systemPath())},
		"Actions": b.reset("Manager", p, b.maker.managerResets),
	}
	switch {
	case b.machine.Profile.NoTimeZone:
	case b.machine.Vendor == IDRAC:
		d["DateTimeLocalOffset"], d["TimeZoneName"] = "-05:00", b.attrs["Time.1.Timezone"]
	case b.machine.Vendor == Supermicro && !b.machine.Profile.NoZoneName, b.machine.Vendor == Generic && b.machine.Profile.ZoneName:
		d["TimeZoneName"] = b.values["zone"]
	default:
		d["DateTimeLocalOffset"] = b.values["offset"]
	}
	if !b.machine.Profile.NoNetworkProtocol {
		d["NetworkProtocol"] = link(b.protocolPath())
	}
	if b.hostUSB() != "" {
		d["HostInterfaces"] = link(p + "/HostInterfaces")
	}
	switch b.machine.Vendor {
	case IDRAC:
		d["Model"], d["FirmwareVersion"] = "16G Monolithic", "7.10.30.00"
		oem := p + "/Oem/Dell"
		d["Links"].(object)["Oem"] = object{"Dell": object{"@odata.type": "#DellOem.v1_3_0.DellOemLinks", "DellAttributes": links(
			b.attributesPath(), oem+"/DellAttributes/System.Embedded.1", oem+"/DellAttributes/LifecycleController.Embedded.1"),
			"DellJobService": link(oem + "/DellJobService"), "DellLCService": link(oem + "/DellLCService"), "Jobs": link(b.jobsPath())}}
	case XCC:
		delete(d, "LastResetTime")
		d["Model"], d["FirmwareVersion"] = "Lenovo XClarity Controller", "TGBT42S 2.83 2023-07-05"
		d["AutoDSTEnabled"] = b.values["saving"]
		d["Oem"] = object{"Lenovo": object{"@odata.type": "#LenovoManager.v1_0_0.LenovoManagerProperties", "KCSEnabled": b.values["kcs"], "Security": link(b.securityPath()), "Recipients": link(b.recipientsPath())}}
	case AMI:
		delete(d, "LastResetTime")
		delete(d["Links"].(object), "ManagerForServers")
		d["VirtualMedia"] = link(p + "/VirtualMedia")
		status := "Disabled"
		if b.values["rmedia"] == true {
			status = "Enabled"
		}
		d["Oem"] = object{"Ami": object{"@odata.type": "#AMIManager.v1_0_0.AMIManager", "VirtualMedia": object{"CDInstances": 4, "RMediaStatus": status}}}
		d["Actions"].(object)["Oem"] = object{"#AMIVirtualMedia.EnableRMedia": object{"target": p + "/Actions/Oem/AMIVirtualMedia.EnableRMedia"}}
	case Supermicro:
		d["Oem"] = object{"Supermicro": object{"@odata.type": "#SmcManagerExtensions.v1_0_0.Manager", "Syslog": link(b.smcSyslogPath()), "SysLockdown": link(b.smcLockdownPath())}}
	}
	return d
}

func (b *BMC) ethernet() object {
	p := b.interfacePath()
	d := object{
		"@odata.id": p, "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": last(p), "Name": "Manager Ethernet Interface", "InterfaceEnabled": true,
		"DHCPv4":        object{"DHCPEnabled": b.dhcp, "UseNTPServers": nil},
		"IPv4Addresses": []any{object{"Address": "127.0.0.1", "AddressOrigin": map[bool]string{true: "DHCP", false: "Static"}[b.dhcp], "SubnetMask": "255.0.0.0", "Gateway": nil}},
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
		"HTTPS": object{"Port": 443, "ProtocolEnabled": true}, "HTTP": object{"Port": 80, "ProtocolEnabled": b.values["http"]}, "SSH": object{"Port": 22, "ProtocolEnabled": b.values["ssh"]},
		"IPMI": object{"Port": 623, "ProtocolEnabled": b.values["ipmi"]}, "SSDP": object{"Port": 1900, "ProtocolEnabled": b.values["ssdp"]},
		"SNMP": object{"Port": 161, "ProtocolEnabled": b.values["snmp"]},
		"NTP":  object{"ProtocolEnabled": b.ntp.enabled, "NTPServers": servers},
	}
	switch b.machine.Vendor {
	case XCC:
		d["SNMP"] = object{"Port": 161, "EnableSNMPv3": b.values["snmp"]}
	case AMI:
		for i := range servers { // as they are stored
			servers[i] = strings.Repeat(" ", i) + servers[i].(string)
		}
		d["SNMP"] = object{"Port": 161, "ProtocolEnabled": b.values["snmp"], "EnableSNMPv1": false, "EnableSNMPv2c": false, "EnableSNMPv3": true}
	}
	if b.machine.Vendor == IDRAC {
		d["NTP"] = object{"ProtocolEnabled": false, "NTPServers": []any{"", "", ""}} // it is there, and has no effect
	}
	if !b.machine.Profile.NoHostname {
		d["HostName"], d["FQDN"] = b.hostname, b.hostname
	}
	if b.machine.Vendor == AMI {
		delete(d, "FQDN")
		delete(d, "HTTP")
	}
	return b.withSettings(d)
}

func (b *BMC) withSettings(d object) object {
	if b.machine.Profile.SettingsObject && b.machine.Vendor == Generic {
		d["@Redfish.Settings"] = object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(d["@odata.id"].(string) + "/Settings")}
	}
	return d
}
