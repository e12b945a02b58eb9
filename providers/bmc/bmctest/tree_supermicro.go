package bmctest

import (
	"net/http"
	"strings"
	"time"
)

// smc is a Supermicro X12.
func smc() maker {
	return maker{
		system: "1", manager: "1", nic: "1", model: "SYS-821GE", registry: "Base.1.10", lockAfter: 3, idle: 5 * time.Minute, bodyETag: true,
		managerResets: []any{"GracefulRestart"}, resetInfo: true, biosSettings: "SD",
		root: func(b *BMC, d object) {
			d["RedfishVersion"] = "1.11.0"
			delete(d, "Vendor")
			delete(d, "Product")
			d["Oem"] = object{"Supermicro": object{"DumpService": link(rootPath + "/Oem/Supermicro/DumpService")}}
			if b.machine.Profile.NullVendor {
				d["Vendor"] = nil
			}
		},
		resource: (*BMC).smcResource, change: (*BMC).smcChange,
	}
}

func (b *BMC) smcSyslogPath() string { return b.managerPath() + "/Oem/Supermicro/Syslog" }

func (b *BMC) smcLockdownPath() string { return b.managerPath() + "/Oem/Supermicro/SysLockdown" }

func (b *BMC) smcResource(path string) object {
	if path == b.smcLockdownPath() {
		return object{"@odata.id": path, "@odata.type": "#SysLockdown.v1_0_0.SysLockdown", "Id": "SysLockdown", "Name": "SysLockdown", "SysLockdownEnabled": b.values["lockdown"]}
	}
	if path != b.smcSyslogPath() || b.machine.Profile.NoSyslog {
		return nil
	}
	d := object{"@odata.id": path, "@odata.type": "#SmcSyslog.v1_0_0.SmcSyslog", "Id": "Syslog", "Name": "Syslog", "EnableSyslog": b.values["syslog"], "SyslogServer": nil, "SyslogPortNumber": b.values["syslogport"]}
	if s := text(b.values["syslogserver"]); s != "" {
		d["SyslogServer"] = s
	}
	return d
}

func (b *BMC) smcChange(path string) map[string]setter {
	if o, ok := b.optionOf(path, ""); ok {
		return map[string]setter{"BootOptionEnabled": b.setEnabled(o.reference)}
	}
	switch path {
	case b.smcSyslogPath():
		return map[string]setter{"EnableSyslog": b.flag("syslog"), "SyslogServer": b.line("syslogserver"), "SyslogPortNumber": b.count("syslogport", 1, 65535)}
	case b.systemPath():
		return map[string]setter{"Boot/BootOrder": b.setOrder}
	case b.biosPath():
		if !b.machine.Profile.BIOSItself {
			return nil
		}
		return map[string]setter{"Attributes": b.setAttributes}
	case b.biosPath() + "/SD":
		if b.machine.Profile.BIOSItself {
			return nil
		}
		return map[string]setter{"Attributes": b.setAttributes}
	case b.managerPath():
		if b.machine.Profile.NoZoneName {
			return map[string]setter{"DateTimeLocalOffset": b.offset}
		}
		return map[string]setter{"TimeZoneName": b.choice("zone", "(UTC+00:00) Coordinated Universal Time", "(UTC-06:00) Central Time")}
	case b.smcLockdownPath():
		return map[string]setter{"SysLockdownEnabled": b.flag("lockdown")}
	}
	return nil
}

// smcLocked refuses a change while the system is locked down.
func (b *BMC) smcLocked(w http.ResponseWriter) bool {
	if b.values["lockdown"] != true {
		return false
	}
	b.refuse(w, http.StatusForbidden, "SMC.1.0.OemSystemLockdownEnabled", "The system is locked down.", "Disable the lockdown first.")
	return true
}

// smcAnswer refuses what a Supermicro refuses before it looks at values.
func (b *BMC) smcAnswer(w http.ResponseWriter, path string, doc, body object) bool {
	ntp, _ := body["NTP"].(object)
	_, servers := ntp["NTPServers"]
	switch {
	case path != b.smcLockdownPath() && b.smcLocked(w):
	case path == b.protocolPath() && servers && !b.ntp.enabled:
		b.refuse(w, http.StatusBadRequest, "SMC.1.0.OemNtpPatchSettingCondition", "NTP servers can be set while NTP is enabled only.", "Enable NTP first.")
	case path == b.protocolPath() && equalTo(doc, body):
		b.refuse(w, http.StatusBadRequest, "SMC.1.0.NetworkProtocolServiceConfigureFailed", "The service is in that state already.", "Change the state.")
	case (path == b.smcSyslogPath() || strings.HasPrefix(path, b.biosPath())) && b.machine.Profile.NoLicence:
		b.refuse(w, http.StatusForbidden, "SMC.1.0.OemLicenseNotPassed", "A licence is needed.", "Activate SFT-OOB-LIC.")
	default:
		return false
	}
	return true
}
