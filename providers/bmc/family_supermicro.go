package bmc

import (
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// supermicroFamily is Supermicro X11 to X13 and H13. Their roots say no vendor
// before RedfishVersion 1.14. Time servers are refused while NTP is off.
func supermicroFamily() family {
	return family{
		name: "supermicro", vendors: []string{"Supermicro"}, oem: []string{"Supermicro"}, makers: []string{"supermicro"},
		bios:         biosRule{fallback: "SD", itself: true},
		lastProgress: "SystemHardwareInitializationComplete",
		settings:     func(s *plan.BMCSettings) *plan.VendorSettings { return s.Supermicro },
		serials:      []string{"SerialNumber"},
		password:     passwordRule{none: true, least: 8, most: 20},
		lockout:      lockoutRule{after: 3, window: 10 * time.Minute},
		ntp:          ntpRule{most: 2, enableFirst: true}, syslog: supermicroSyslog(),
		security: []securityRow{{setting: "Lockdown", place: placeLockdown, keys: []string{"SysLockdownEnabled"}, last: true}},
	}
}
