package dhcp

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Entry is the reservation of one BMC: what one file says.
type Entry struct {
	DeviceID int64  // NetBox's id of the device; it says whose file this is
	Device   string // the device's name, for people who look at the folder
	MAC      plan.MAC
	Address  netip.Addr // IPv4
	Name     string     // host name handed out with the address, and name of the file
}

// The first line of a file of ours. Files without a device name in it were
// written by hand after the documented form and count as ours.
var marker = regexp.MustCompile(`^# managed by enroll: device ([1-9][0-9]{0,18})(?: ([A-Za-z0-9-]+))?$`)

// Render gives the file: the marker and one dhcp-hostsdir line. Equal entries
// give equal bytes; nothing that NetBox keeps as free text is in them.
func (e Entry) Render() string {
	head := "# managed by enroll: device " + strconv.FormatInt(e.DeviceID, 10)
	if e.Device != "" {
		head += " " + e.Device
	}
	return fmt.Sprintf("%s\n%s,%s,%s\n", head, e.MAC, e.Address, e.Name)
}

// ParseEntry reads a file of ours, strictly: two lines, canonical spelling.
func ParseEntry(content string) (Entry, error) {
	head, rest, _ := strings.Cut(content, "\n")
	m := marker.FindStringSubmatch(head)
	if m == nil {
		return Entry{}, fmt.Errorf("the first line %q is not enroll's marker", excerpt(head))
	}
	line, after, found := strings.Cut(rest, "\n")
	if !found || after != "" {
		return Entry{}, fmt.Errorf("want the marker and one line, each with a newline")
	}
	fields := strings.Split(line, ",")
	if len(fields) != 3 {
		return Entry{}, fmt.Errorf("the line %q is not MAC,address,name", excerpt(line))
	}
	id, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return Entry{}, fmt.Errorf("device id %s: %w", m[1], err)
	}
	mac, err := plan.ParseMAC(fields[0])
	if err != nil || mac.String() != fields[0] {
		return Entry{}, fmt.Errorf("%q is not a MAC address in lower case with colons", fields[0])
	}
	addr, err := netip.ParseAddr(fields[1])
	if err != nil || !addr.Is4() {
		return Entry{}, fmt.Errorf("%q is not an IPv4 address", fields[1])
	}
	if reason := badName(fields[2]); reason != "" {
		return Entry{}, fmt.Errorf("the name %q %s", fields[2], reason)
	}
	return Entry{DeviceID: id, Device: m[2], MAC: mac, Address: addr, Name: fields[2]}, nil
}

// owner says whose file this is: the device id in its marker.
func owner(content string) (id int64, ours bool) {
	head, _, _ := strings.Cut(content, "\n")
	m := marker.FindStringSubmatch(head)
	if m == nil {
		return 0, false
	}
	id, err := strconv.ParseInt(m[1], 10, 64)
	return id, err == nil
}

var (
	label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// dnsmasq reads these fields of a line as something else than a name.
	notAName = regexp.MustCompile(`^([0-9]+[smhdw]?|infinite|ignore)$`)
)

// badName says what is wrong with a host name, "" when nothing is. Names are
// refused, never escaped: quotes, commas and newlines have meaning in the file.
func badName(name string) string {
	switch {
	case len(name) > 63:
		return "is longer than 63 characters"
	case !label.MatchString(name):
		return "is not a DNS label (letters, digits and hyphens, no hyphen at either end)"
	case notAName.MatchString(name):
		return "would be read as a lease time or a keyword by dnsmasq"
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

// entryName is the host and file name of a device.
func entryName(s *plan.DHCPSettings, device string) string {
	return lowerASCII(device) + lowerASCII(s.NameSuffix)
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
	return Entry{DeviceID: i.ID, Device: i.Name, MAC: i.BMCMAC, Address: addr, Name: name}, path.Join(s.Directory, name), nil
}

func checkAddress(s *plan.DHCPSettings, i *plan.Intent, addr netip.Addr) *plan.Fault {
	fault := func(format string, args ...any) *plan.Fault {
		return plan.NewFault(plan.CodeIntentInvalid, format, args...).With("device", i.URL)
	}
	switch {
	case !addr.Is4():
		return fault("the oob_ip of %s is %s; DHCP reservations are made for IPv4 only", i.Name, addr)
	case addr.IsMulticast(), addr.IsUnspecified(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fault("the oob_ip of %s is %s, which no host can have", i.Name, addr)
	}
	subnets, f := parseSubnets(s.Subnets)
	if f != nil || len(subnets) == 0 {
		return f
	}
	for _, subnet := range subnets {
		if !subnet.Contains(addr) {
			continue
		}
		if subnet.Bits() < 31 && (addr == subnet.Addr() || addr == broadcast(subnet)) {
			return fault("the oob_ip of %s is %s, the network or broadcast address of %s", i.Name, addr, subnet)
		}
		return nil
	}
	return fault("the oob_ip of %s is %s, outside every subnet of the dhcp block: %s", i.Name, addr, strings.Join(s.Subnets, ", ")).
		WithHint("Correct oob_ip in NetBox, or add its subnet to subnets in the dhcp block.")
}

// broadcast is the last address of an IPv4 subnet.
func broadcast(p netip.Prefix) netip.Addr {
	a := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(a)
}
