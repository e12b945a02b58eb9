package bmc

import "strings"

// vendor is what differs between makers, as far as the kinds of this version
// need it.
type vendor struct {
	name string
	// attributes: hostname and NTP are set through the attribute table of the
	// maker; the standard NTP resource of an iDRAC does not take effect.
	attributes bool
	// serviceTag: SKU identifies the machine too. On a Dell it is the service
	// tag, on others a product number.
	serviceTag bool
	// maxNTP is how many time servers the BMC can hold; 0: not known.
	maxNTP int
}

var (
	generic = vendor{name: "generic"}                                              //nolint:gochecknoglobals // a constant table
	idrac   = vendor{name: "idrac", attributes: true, serviceTag: true, maxNTP: 3} //nolint:gochecknoglobals // a constant table
)

// vendorOf tells the maker from the service root. A board maker's root that
// carries AMI's part is an AMI stack and treated as generic.
func vendorOf(root document) vendor {
	if root.key("Oem", "Ami") {
		return generic
	}
	product := strings.ToLower(root.text("Product"))
	if strings.EqualFold(root.text("Vendor"), "Dell") || root.key("Oem", "Dell") || strings.Contains(product, "integrated dell remote access") {
		return idrac
	}
	return generic
}
