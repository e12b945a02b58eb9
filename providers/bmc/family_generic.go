package bmc

import (
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// genericFamily is every other BMC: OpenBMC, sushy-tools, HPE iLO. It is kept as
// far as plain Redfish goes.
func genericFamily() family {
	return family{
		name: "generic", serials: []string{"SerialNumber"}, security: plainSecurity(), boot: bootPlain, ipmi: ipmiRule{types: true},
		lockout:  lockoutRule{after: 5, window: 10 * time.Minute},
		settings: func(s *plan.BMCSettings) *plan.VendorSettings { return s.Generic },
	}
}
