package bmc

import (
	"time"

	"github.com/enroll-dev/enroll/plan"
)

const idracName = "idrac"

const attrLockdown = "Lockdown.1.SystemLockdown"

// idracFamily is Dell's iDRAC 9 and 10. The service tag is the system's SKU and
// is what records call the serial number; SerialNumber is the board's.
func idracFamily() family {
	return family{
		name: idracName, vendors: []string{"Dell"}, oem: []string{"Dell"}, product: "integrated dell remote access", makers: []string{"dell"},
		bios:     biosRule{jobs: true, fallback: "Settings"},
		boot:     bootJob,
		settings: func(s *plan.BMCSettings) *plan.VendorSettings { return s.IDRAC },
		serials:  []string{"SKU", "SerialNumber"}, attributes: true,
		expands: true, ntp: ntpRule{most: 3}, password: passwordRule{most: 40}, resets: true, lockout: lockoutRule{after: 3, window: time.Minute, address: true}, ipmi: ipmiRule{privilege: true}, syslog: idracSyslog(), security: idracSecurity(),
	}
}

// idracSecurity are attributes. The port of plain HTTP is blocked or not; failed
// logins block an address, not an account.
func idracSecurity() []securityRow {
	telnet := attributeRow("Telnet", "Telnet.1.Enable", onOff()...)
	telnet.otherwise = false // new firmware has none
	lockdown := attributeRow("Lockdown", attrLockdown, onOff()...)
	lockdown.last = true
	return []securityRow{
		attributeRow("HTTP", "WebServer.1.BlockHTTPPort", secWord{false, enabledWord}, secWord{true, disabledWord}),
		attributeRow("SSH", "SSH.1.Enable", onOff()...), telnet,
		attributeRow("VNC", "VNCServer.1.Enable", onOff()...),
		attributeRow("SNMP", "SNMP.1.SNMPProtocol", secWord{"v3", "SNMPv3"}, secWord{"all", "All"}),
		attributeRow("HostInterface", "OS-BMC.1.AdminState", onOff()...),
		attributeRow("MinTLSVersion", "WebServer.1.TLSProtocol", secWord{"1.2", "TLS 1.2 and Higher"}, secWord{"1.3", "TLS 1.3 Only"}),
		attributeRow("LockoutAttempts", "IPBlocking.1.FailCount"), attributeRow("LockoutSeconds", "IPBlocking.1.PenaltyTime"),
		attributeRow("IPBlocking", "IPBlocking.1.BlockEnable", onOff()...), lockdown,
	}
}
