package bmc

// idracFamily is Dell's iDRAC 9 and 10. The service tag is the system's SKU and
// is what records call the serial number; SerialNumber is the board's.
func idracFamily() family {
	return family{
		name: "idrac", vendors: []string{"Dell"}, oem: []string{"Dell"}, product: "integrated dell remote access", makers: []string{"dell"},
		serials: []string{"SKU", "SerialNumber"}, attributes: true,
		ntp: ntpRule{most: 3},
	}
}
