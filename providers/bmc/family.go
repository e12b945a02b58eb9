package bmc

import (
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// family is what differs between the makers of BMCs, as data; one file each. A
// zero field means that the family has no such thing.
type family struct {
	name string

	// By these a BMC is told (reference: service root first, the system's
	// manufacturer last: boards are sold under other names).
	vendors []string // Vendor of the root
	oem     []string // keys below Oem, of the root or the manager
	product string   // part of the root's Product, in lower case
	makers  []string // how the system's Manufacturer begins, in lower case

	// serials are the properties of the system by which a record may call the
	// machine.
	serials []string
	// anyMatch: every PATCH carries If-Match "*". Others get the resource's ETag.
	anyMatch bool
	// attributes: settings of the BMC stand in the attribute table of the maker;
	// the standard NTP resource of an iDRAC, for one, does not take effect.
	attributes bool
	// expands: members of a list come with it, asked or not by the root.
	expands  bool
	ntp      ntpRule
	password passwordRule
	lockout  lockoutRule
	ipmi     ipmiRule
	resets   bool // the BMC is restarted after its password was changed
	syslog   syslogRule
	security []securityRow
	bios     biosRule
	// lastProgress is the BootProgress at which the BMC stays, whether the host is
	// still in POST or runs for days; "" where it goes on to the operating system.
	lastProgress string
	boot         bootWay
	settings     func(*plan.BMCSettings) *plan.VendorSettings // the family's block of the site file
}

// families lists all in the order in which they are tested: an AMI stack under
// another maker's name is an AMI stack.
func families() []family {
	return []family{amiFamily(), idracFamily(), xccFamily(), supermicroFamily(), genericFamily()}
}

// familyOf tells the family from the service root. It is not sure where the
// root says nothing about its maker; then see familyOfParts.
func familyOf(root document) (f family, sure bool) {
	all := families()
	product := strings.ToLower(root.text("Product"))
	ami := all[0]
	if root.key("Oem", ami.oem[0]) || strings.Contains(product, ami.product) {
		return ami, true
	}
	if vendor := root.text("Vendor"); vendor != "" {
		for _, f := range all {
			if foldedIn(f.vendors, vendor) {
				return f, true
			}
		}
	}
	for _, f := range all {
		if f.product != "" && strings.Contains(product, f.product) || hasOem(root, f) {
			return f, true
		}
	}
	return genericFamily(), root.text("Vendor") != ""
}

// familyOfParts tells the family where the root does not: from the manager's
// Oem keys, then from the system's manufacturer.
func familyOfParts(manager, system document) family {
	for _, f := range families() {
		if hasOem(manager, f) {
			return f
		}
	}
	maker := strings.ToLower(system.text("Manufacturer"))
	for _, f := range families() {
		for _, m := range f.makers {
			if strings.HasPrefix(maker, m) {
				return f
			}
		}
	}
	return genericFamily()
}

func hasOem(d document, f family) bool {
	for _, key := range f.oem {
		if d.key("Oem", key) {
			return true
		}
	}
	return false
}

func foldedIn(list []string, s string) bool {
	for _, item := range list {
		if strings.EqualFold(item, s) {
			return true
		}
	}
	return false
}
