package bmc

import (
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// amiFamily is AMI MegaRAC SP-X, under whatever maker's name. It wants If-Match
// with every PATCH, and takes a third time server and fails with it later.
func amiFamily() family {
	return family{
		name: "ami", vendors: []string{"AMI"}, oem: []string{"Ami"}, product: "ami redfish server",
		bios:     biosRule{fallback: "SD"},
		boot:     bootRestrict,
		settings: func(s *plan.BMCSettings) *plan.VendorSettings { return s.AMI },
		serials:  []string{"SerialNumber"}, anyMatch: true,
		ntp: ntpRule{most: 2}, password: passwordRule{most: 20}, resets: true,
		lockout: lockoutRule{after: 5, window: 10 * time.Minute},
	}
}
