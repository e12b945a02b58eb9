package dhcp

import (
	"encoding/base32"
	"net/netip"
	"path"
	"regexp"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Entry is the reservation of one BMC: what one file says.
type Entry struct {
	DeviceID int64  // NetBox's id of the device; it says whose file this is
	Device   string // the device's name, for people who look at the folder
	MAC      plan.MAC
	Address  netip.Addr
	Name     string // host name handed out with the address, and name of the file without its extension
}

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// badName says what is wrong with a host name, "" when nothing is. Names are
// refused, never escaped: quotes, commas and newlines have meaning in the file.
func badName(name string) string {
	switch {
	case len(name) > 63:
		return "is longer than 63 characters"
	case !label.MatchString(name):
		return "is not a DNS label (letters, digits and hyphens, no hyphen at either end)"
	case notAName.MatchString(name):
		return "is a lease time or a keyword in dnsmasq's grammar"
	case name == "index":
		return "is the name of the index"
	}
	return ""
}

// lowerASCII leaves everything outside A-Z alone: Unicode has letters whose
// lower case is an ASCII letter.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// escaped begins the names of devices that cannot be host and file names as
// they are.
const escaped = "enroll--"

// base32 in lower case: letters and digits that mean the same to every file
// system and in every host name.
var hexNames = base32.HexEncoding.WithPadding(base32.NoPadding)

// entryName is the host and file name of a device: the name in lower case with
// the site's suffix where that is a DNS label that no server reads as something
// else, and else one from which DeviceOf reads the device's name again. Two
// devices never share a name, but for upper and lower case.
func entryName(s *plan.DHCPSettings, device string) string {
	suffix := lowerASCII(s.NameSuffix)
	name := lowerASCII(device) + suffix
	if badName(name) == "" && !strings.HasPrefix(name, escaped) {
		return name
	}
	return escaped + lowerASCII(hexNames.EncodeToString([]byte(device))) + suffix
}

// DeviceOf reads the device's name out of a reservation's name; a name in lower
// case may stand for one with capitals.
func DeviceOf(s *plan.DHCPSettings, name string) (device string, ok bool) {
	device, ok = strings.CutSuffix(name, lowerASCII(s.NameSuffix))
	text, mapped := strings.CutPrefix(device, escaped)
	if !mapped {
		return device, ok && entryName(s, device) == name
	}
	raw, err := hexNames.DecodeString(strings.ToUpper(text))
	return string(raw), ok && err == nil && entryName(s, string(raw)) == name
}

// entryFor derives a device's entry and its path. The fault names what NetBox
// or the site file has to say instead.
func entryFor(t *plan.Target) (Entry, string, *plan.Fault) {
	s, i := t.Site.DHCP, t.Intent
	fault := func(code plan.Code, format string, args ...any) (Entry, string, *plan.Fault) {
		return Entry{}, "", plan.NewFault(code, format, args...).With("device", i.URL)
	}
	if f := checkDirectory(s.Directory); f != nil {
		return Entry{}, "", f
	}
	name := entryName(s, i.Name)
	if reason := badName(name); reason != "" {
		return fault(plan.CodeIntentInvalid, "%q would get the DHCP host name %q, which %s", i.Name, name, reason)
	}
	if i.ID <= 0 {
		return fault(plan.CodeIntentInvalid, "%s has the NetBox id %d", i.Name, i.ID)
	}
	switch {
	case i.BMCMAC.IsZero():
		return fault(plan.CodeIntentIncomplete, "%s has no MAC address for its BMC: the interface %q with the oob_ip records none", i.Name, i.BMCInterface)
	case i.BMCMAC.Multicast():
		return fault(plan.CodeIntentInvalid, "the BMC of %s has the MAC address %s, which is a multicast address", i.Name, i.BMCMAC)
	case !i.OOB.IsValid():
		return fault(plan.CodeIntentIncomplete, "%s has no oob_ip", i.Name)
	}
	addr := i.OOB.Unmap()
	if f := checkAddress(s, i, addr); f != nil {
		return Entry{}, "", f
	}
	e := Entry{DeviceID: i.ID, Device: i.Name, MAC: i.BMCMAC, Address: addr, Name: name}
	return e, path.Join(s.Directory, FileName(*s, e)), nil
}

func checkAddress(s *plan.DHCPSettings, i *plan.Intent, addr netip.Addr) *plan.Fault {
	fault := func(format string, args ...any) *plan.Fault {
		return plan.NewFault(plan.CodeIntentInvalid, format, args...).With("device", i.URL)
	}
	switch {
	case addr.Is4() == s.IPv6:
		return fault("the oob_ip of %s is %s, and the site's DHCP server serves %s", i.Name, addr, familyOf(s.IPv6)).
			WithHint("Correct oob_ip in NetBox, or let the dhcp block describe the %s service (family).", familyOf(!s.IPv6))
	case addr.IsMulticast(), addr.IsUnspecified(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fault("the oob_ip of %s is %s, which no host can have", i.Name, addr)
	}
	subnets, f := parseSubnets(s.Subnets, s.IPv6)
	if f != nil || len(s.Subnets) == 0 {
		return f
	}
	for _, subnet := range subnets {
		if !subnet.Contains(addr) {
			continue
		}
		if addr.Is4() && subnet.Bits() < 31 && (addr == subnet.Addr() || addr == lastOf(subnet)) {
			return fault("the oob_ip of %s is %s, the network or broadcast address of %s", i.Name, addr, subnet)
		}
		return nil
	}
	return fault("the oob_ip of %s is %s, outside every subnet of the dhcp block: %s", i.Name, addr, strings.Join(s.Subnets, ", ")).
		WithHint("Correct oob_ip in NetBox, or add its subnet to subnets in the dhcp block.")
}

// lastOf is the last address of a subnet, for IPv4 its broadcast address.
func lastOf(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(a); bit++ {
		a[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(a) // of the same length
	return last
}

func familyOf(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}
