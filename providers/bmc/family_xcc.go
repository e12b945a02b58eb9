package bmc

// xccFamily is Lenovo's XCC, XCC2 and XCC3. Some of their firmware answers 428 to
// a PATCH without If-Match.
func xccFamily() family {
	return family{
		name: "xcc", vendors: []string{"Lenovo"}, oem: []string{"Lenovo"}, makers: []string{"lenovo"},
		serials: []string{"SerialNumber"}, anyMatch: true,
		ntp: ntpRule{most: 4},
	}
}
