package bmc

// genericFamily is every other BMC: OpenBMC, sushy-tools, HPE iLO. It is kept as
// far as plain Redfish goes.
func genericFamily() family {
	return family{name: "generic", serials: []string{"SerialNumber"}, security: plainSecurity()}
}
