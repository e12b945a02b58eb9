package bmctest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// dell is an iDRAC 9.
func dell() maker {
	return maker{
		system: "System.Embedded.1", manager: "iDRAC.Embedded.1", nic: "NIC.1", model: "PowerEdge XE9680", registry: "Base.1.12", lockAfter: 3, idle: 30 * time.Minute,
		expands: true, managerResets: []any{"GracefulRestart"}, settings: "Settings", biosSettings: "Settings",
		root: func(b *BMC, d object) {
			d["Vendor"], d["Product"], d["RedfishVersion"] = "Dell", "Integrated Dell Remote Access Controller", "1.18.0"
			d["Oem"] = object{"Dell": object{"@odata.type": "#DellServiceRoot.v1_0_0.DellServiceRoot", "ServiceTag": b.machine.ServiceTag, "IsBranded": 0, "ManagerMACAddress": "02:00:5e:ff:00:01"}}
			delete(d, "UUID")
		},
		resource: (*BMC).dellResource, change: (*BMC).dellChange, action: (*BMC).dellAction,
	}
}

// fqdd is the iDRAC's name of a host NIC.
func fqdd(i int) string { return fmt.Sprintf("NIC.Integrated.1-%d-1", i+1) }

func (b *BMC) functionPath(i int) string {
	return rootPath + "/Chassis/System.Embedded.1/NetworkAdapters/NIC.Integrated.1/NetworkDeviceFunctions/" + fqdd(i)
}

func (b *BMC) attributesPath() string {
	return b.managerPath() + "/Oem/Dell/DellAttributes/iDRAC.Embedded.1"
}

// dellWords are the attributes of an iDRAC and what each takes: a list of words,
// a number with its bounds, or text up to a length.
func dellWords() map[string]string {
	onOff := "Enabled|Disabled"
	return map[string]string{
		"NIC.1.DNSRacName": "63", "NIC.1.DNSDomainName": "254", "IPv4.1.DHCPEnable": onOff,
		"NTPConfigGroup.1.NTPEnable": onOff, "NTPConfigGroup.1.NTP1": "255", "NTPConfigGroup.1.NTP2": "255", "NTPConfigGroup.1.NTP3": "255", "Time.1.Timezone": "32",
		"SysLog.1.SysLogEnable": onOff, "SysLog.1.Server1": "63", "SysLog.1.Server2": "63", "SysLog.1.Server3": "63", "SysLog.1.Port": "1-65535",
		"WebServer.1.TLSProtocol": "TLS 1.1 and Higher|TLS 1.2 and Higher|TLS 1.3 Only", "WebServer.1.BlockHTTPPort": onOff, "WebServer.1.HttpsRedirection": onOff,
		"SSH.1.Enable": onOff, "VNCServer.1.Enable": onOff, "SNMP.1.AgentEnable": onOff, "SNMP.1.SNMPProtocol": "All|SNMPv3", "OS-BMC.1.AdminState": onOff,
		"IPBlocking.1.BlockEnable": onOff, "IPBlocking.1.FailCount": "2-16", "IPBlocking.1.PenaltyTime": "2-65535", "Lockdown.1.SystemLockdown": onOff,
		"IPMILan.1.Enable": onOff, "VirtualMedia.1.Enable": onOff, "VirtualMedia.1.Attached": "Detached|Attached|AutoAttach",
	}
}

func (b *BMC) startDell() {
	b.attrs = map[string]any{
		"NIC.1.DNSDomainName": "", "Time.1.Timezone": "CST6CDT", "NTPConfigGroup.1.NTPMaxDist": 16, "Info.1.Version": "7.10.30.00", "Info.1.ServerGen": "16G", "WebServer.1.MaxNumberOfSessions": b.machine.Profile.MaxSessions,
		"SysLog.1.SysLogEnable": "Disabled", "SysLog.1.Server1": "", "SysLog.1.Server2": "", "SysLog.1.Server3": "", "SysLog.1.Port": 514,
		"WebServer.1.TLSProtocol": "TLS 1.1 and Higher", "WebServer.1.BlockHTTPPort": "Disabled", "WebServer.1.HttpsRedirection": "Enabled",
		"SSH.1.Enable": "Enabled", "VNCServer.1.Enable": "Enabled", "SNMP.1.AgentEnable": "Enabled", "SNMP.1.SNMPProtocol": "All", "OS-BMC.1.AdminState": "Enabled",
		"IPBlocking.1.BlockEnable": "Enabled", "IPBlocking.1.FailCount": 3, "IPBlocking.1.PenaltyTime": 60, "Lockdown.1.SystemLockdown": "Disabled",
		"IPMILan.1.Enable": "Disabled", "VirtualMedia.1.Enable": "Enabled", "VirtualMedia.1.Attached": "AutoAttach",
	}
	if b.machine.Profile.NoSyslog { // no licence
		maps.DeleteFunc(b.attrs, func(name string, _ any) bool { return strings.HasPrefix(name, "SysLog.") })
	}
}

// attributes is the table as it is shown; some of it stands elsewhere too.
func (b *BMC) attributes() object {
	attrs := object{}
	maps.Copy(attrs, b.attrs)
	attrs["NIC.1.DNSRacName"], attrs["IPv4.1.DHCPEnable"], attrs["NTPConfigGroup.1.NTPEnable"] = b.hostname, word(b.dhcp), word(b.ntp.enabled)
	for i := range 3 {
		server := ""
		if i < len(b.ntp.servers) {
			server = b.ntp.servers[i]
		}
		attrs["NTPConfigGroup.1.NTP"+number(i+1)] = server
	}
	if b.machine.Profile.NoHostname {
		delete(attrs, "NIC.1.DNSRacName")
	}
	b.dellUsers(attrs)
	return attrs
}

func word(on bool) string {
	if on {
		return "Enabled"
	}
	return "Disabled"
}

func (b *BMC) dellResource(path string) object {
	switch path {
	case b.attributesPath():
		return object{
			"@odata.id": path, "@odata.type": "#DellAttributes.v1_0_0.DellAttributes", "Id": "iDRAC.Embedded.1", "Name": "OEMAttributeRegistry", "AttributeRegistry": "ManagerAttributeRegistry.v1_0_0",
			"@Redfish.Settings": object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(path + "/Settings"), "SupportedApplyTimes": []any{"Immediate", "AtMaintenanceWindowStart"}},
			"Attributes":        b.attributes(),
		}
	case b.managerPath() + "/Oem/Dell/DellAttributes/System.Embedded.1", b.managerPath() + "/Oem/Dell/DellAttributes/LifecycleController.Embedded.1":
		return object{"@odata.id": path, "@odata.type": "#DellAttributes.v1_0_0.DellAttributes", "Id": last(path), "Name": "OEMAttributeRegistry", "Attributes": object{"ServerInfo.1.ServiceTag": b.machine.ServiceTag}}
	case b.systemPath() + "/Settings":
		return object{"@odata.id": path, "@odata.type": "#ComputerSystem.v1_20_1.ComputerSystem", "Id": "Settings", "Name": "Settings", "Boot": b.bootProperties(true)}
	case b.managerPath() + "/Oem/Dell/DellLCService":
		return object{"@odata.id": path, "@odata.type": "#DellLCService.v1_7_0.DellLCService", "Id": "DellLCService", "Name": "DellLCService",
			"Actions": object{"#DellLCService.GetRemoteServicesAPIStatus": object{"target": path + "/Actions/DellLCService.GetRemoteServicesAPIStatus"}}}
	}
	if strings.HasPrefix(path, b.jobsPath()) {
		return b.jobResource(path)
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

func (b *BMC) dellChange(path string) map[string]setter {
	p := b.machine.Profile
	if o, ok := b.optionOf(path, ""); ok && o.path != "" {
		return map[string]setter{"BootOptionEnabled": b.setEnabled(o.reference)}
	}
	switch path {
	case b.attributesPath():
		set := b.dellUserChange()
		for name := range b.attributes() {
			if rule, ok := dellWords()[name]; ok {
				set["Attributes/"+name] = b.dellSetter(name, rule)
			}
		}
		return set
	case b.biosPath() + "/Settings":
		return map[string]setter{"Attributes": b.setAttributes, "@Redfish.SettingsApplyTime": applyTime}
	case b.systemPath() + "/Settings":
		return map[string]setter{"Boot/BootOrder": b.setOrder, "@Redfish.SettingsApplyTime": applyTime}
	case b.systemPath():
		if !p.BootOnSettings {
			return map[string]setter{"Boot/BootOrder": b.setOrder}
		}
	}
	return nil
}

func applyTime(v any) (func(), string) {
	if m, ok := v.(object); !ok || m["ApplyTime"] != "OnReset" {
		return nil, "PropertyValueNotInList"
	}
	return func() {}, ""
}

var bounds = regexp.MustCompile(`^([0-9]+)-([0-9]+)$`) //nolint:gochecknoglobals // a constant

// dellSetter checks a value by its rule and puts it where it belongs.
func (b *BMC) dellSetter(name, rule string) setter {
	return func(v any) (func(), string) {
		if m := bounds.FindStringSubmatch(rule); m != nil {
			n, ok := v.(float64)
			if !ok {
				return nil, "PropertyValueTypeError"
			}
			if n < atoi(m[1]) || n > atoi(m[2]) {
				return nil, "PropertyValueNotInList"
			}
			return func() { b.attrs[name] = int(n) }, ""
		}
		s, ok := v.(string)
		if !ok {
			return nil, "PropertyValueTypeError"
		}
		if strings.Contains(rule, "|") {
			if !slices.Contains(strings.Split(rule, "|"), s) {
				return nil, "PropertyValueNotInList"
			}
		} else if float64(len(s)) > atoi(rule) || strings.Contains(s, " ") || strings.Contains(s, "/") && name != "Time.1.Timezone" {
			return nil, "PropertyValueFormatError"
		}
		switch {
		case name == "NIC.1.DNSRacName":
			return b.setHostname(v)
		case name == "IPv4.1.DHCPEnable":
			return func() { b.dhcp = s == "Enabled" }, ""
		case name == "NTPConfigGroup.1.NTPEnable":
			return func() { b.ntp.enabled = s == "Enabled" }, ""
		case strings.HasPrefix(name, "NTPConfigGroup.1.NTP"):
			return func() {
				for len(b.ntp.servers) < 3 {
					b.ntp.servers = append(b.ntp.servers, "")
				}
				b.ntp.servers[int(atoi(name[len(name)-1:]))-1] = s
			}, ""
		}
		return func() { b.attrs[name] = s }, ""
	}
}

func atoi(s string) float64 {
	var n float64
	_, _ = fmt.Sscan(s, &n) // digits by construction
	return n
}

// dellAnswer answers a change that an iDRAC commits by a job, or refuses
// because it is locked down; false: as every other.
func (b *BMC) dellAnswer(w http.ResponseWriter, path string, body object, store func()) bool {
	p := &b.machine.Profile
	_, option := b.optionOf(path, "")
	boot := path == b.systemPath() || path == b.systemPath()+"/Settings"
	bios := path == b.biosPath()+"/Settings"
	lifts := path == b.attributesPath() && touches(body, "Lockdown.1.SystemLockdown")
	if b.attrs["Lockdown.1.SystemLockdown"] == "Enabled" && !lifts {
		b.refuse(w, http.StatusBadRequest, "IDRAC.2.8.SYS406", "Unable to complete the operation because the system is in lockdown mode.", "Disable the lockdown mode and retry.")
		return true
	}
	if !option && !boot && !bios {
		return false
	}
	_, now := body["@Redfish.SettingsApplyTime"]
	if (option || boot) && p.OptionJobs == OptionsMerge && b.openJob() != nil {
		store()
		b.jobLocation(w, b.openJob())
		return true
	}
	if b.committed(w) {
		return true
	}
	store()
	if bios && !now || option && p.OptionJobs == "" { // stored, and committed by a later job
		noContent(w)
		return true
	}
	b.jobLocation(w, b.addJob())
	return true
}

func touches(body object, attribute string) bool {
	attrs, _ := body["Attributes"].(object)
	_, ok := attrs[attribute]
	return ok
}

func (b *BMC) dellAction(path string) action {
	switch path {
	case b.managerPath() + "/Oem/Dell/DellJobService/Actions/DellJobService.DeleteJobQueue":
		return func(w http.ResponseWriter, body object) { b.deleteJob(w, text(body["JobID"])) }
	case b.jobsPath():
		return func(w http.ResponseWriter, body object) {
			if text(body["TargetSettingsURI"]) != b.biosPath()+"/Settings" {
				b.parameterError(w, "TargetSettingsURI")
				return
			}
			if !b.committed(w) {
				b.jobLocation(w, b.addJob())
			}
		}
	case b.biosPath() + "/Settings/Actions/Oem/DellManager.ClearPending":
		return func(w http.ResponseWriter, _ object) {
			if b.openJob() != nil {
				b.refuse(w, http.StatusBadRequest, "IDRAC.2.8.BIOS011", "Unable to delete the pending data because a job is scheduled.", "Delete the job.")
				return
			}
			b.pendingBIOS = map[string]any{}
			noContent(w)
		}
	case b.managerPath() + "/Oem/Dell/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus":
		return func(w http.ResponseWriter, _ object) {
			state := "Ready"
			if b.lcPolls > 0 {
				b.lcPolls--
				state = "NotReady"
			}
			b.respond(w, http.StatusOK, object{"LCStatus": state, "RTStatus": state, "ServerStatus": "OutOfPOST", "Status": state})
		}
	}
	return nil
}
