package bmc

import (
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// xccFamily is Lenovo's XCC, XCC2 and XCC3. Some of their firmware answers 428 to
// a PATCH without If-Match.
func xccFamily() family {
	return family{
		name: "xcc", vendors: []string{"Lenovo"}, oem: []string{"Lenovo"}, makers: []string{"lenovo"},
		boot:     bootClasses,
		settings: func(s *plan.BMCSettings) *plan.VendorSettings { return s.XCC },
		serials:  []string{"SerialNumber"}, anyMatch: true,
		expands: true, ntp: ntpRule{most: 4}, password: passwordRule{least: 10, most: 32, classes: true}, resets: true, lockout: lockoutRule{after: 5, window: time.Hour}, ipmi: ipmiRule{types: true, firstAccess: true}, syslog: xccSyslog(), security: xccSecurity(),
	}
}

// xccSecurity is what Redfish has, but for SSDP, which cannot be switched off, and
// Lenovo's own.
func xccSecurity() []securityRow {
	var rows []securityRow
	for _, r := range plainSecurity() {
		if r.setting != "SSDP" {
			rows = append(rows, r)
		}
	}
	kcs := append([]secWord{{true, true}, {false, false}}, onOff()...)
	return append(rows,
		securityRow{setting: "SNMP", place: placeProtocol, keys: []string{"SNMP", "EnableSNMPv3"}, words: []secWord{{"v3", true}, {"off", false}}},
		securityRow{setting: "MinTLSVersion", place: placeXCC, keys: []string{"CryptographyManagement", "MinTLSLevel"}, words: []secWord{{"1.2", "TLSLevel1_2"}, {"1.3", "TLSLevel1_3"}}},
		securityRow{setting: "HostInterface", place: placeManager, keys: []string{"Oem", "Lenovo", "KCSEnabled"}, words: kcs},
		securityRow{setting: "KCS", place: placeManager, keys: []string{"Oem", "Lenovo", "KCSEnabled"}, words: kcs},
		securityRow{setting: "FirmwareRollback", place: placeXCC, keys: []string{"Configurator", "FWRollback"}, words: kcs},
	)
}
