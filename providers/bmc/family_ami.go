package bmc

// amiFamily is AMI MegaRAC SP-X, under whatever maker's name. It wants If-Match
// with every PATCH, and takes a third time server and fails with it later.
func amiFamily() family {
	return family{
		name: "ami", vendors: []string{"AMI"}, oem: []string{"Ami"}, product: "ami redfish server",
		bios:    biosRule{none: true},
		serials: []string{"SerialNumber"}, anyMatch: true,
		ntp: ntpRule{most: 2},
	}
}
