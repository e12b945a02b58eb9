package dhcp

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// dnsmasqFlavour is dnsmasq with dhcp-hostsdir: one line per host, and a folder
// that it reads by itself.
func dnsmasqFlavour() flavour {
	return flavour{
		title:      "dnsmasq",
		unit:       "dnsmasq",
		config:     "/etc/dnsmasq.conf",
		apply:      applyReload,
		render:     renderLine,
		fields:     lineFields,
		owner:      markOwner,
		survey:     surveyHosts,
		surveyMain: surveyDnsmasqConf,
		includes:   dnsmasqIncludes,
		beside: func(config string) inclusion {
			dir := strings.TrimSuffix(config, path.Ext(config)) + ".d"
			return inclusion{at: dir, folder: true, takes: confDir(".dpkg-dist,.dpkg-old,.dpkg-new"), may: true}
		},
		reads: read,
	}
}

// renderLine gives the mark and one dhcp-hostsdir line. Options have no place
// in it.
func renderLine(e Entry, _ []plan.DHCPOption) string {
	return fmt.Sprintf("%s\n%s,%s,%s\n", markOf(e), e.MAC, e.Address, e.Name)
}

func lineFields(content string) (Entry, error) {
	id, device, ours := readMark(content)
	if !ours {
		return Entry{}, fmt.Errorf("the first line is not enroll's mark")
	}
	_, line, _ := strings.Cut(content, "\n")
	fields := strings.Split(strings.TrimSuffix(line, "\n"), ",")
	if len(fields) != 3 {
		return Entry{}, fmt.Errorf("the line %q is not MAC,address,name", excerpt(line))
	}
	mac, err := plan.ParseMAC(fields[0])
	if err != nil {
		return Entry{}, err
	}
	addr, err := netip.ParseAddr(fields[1])
	if err != nil || !addr.Is4() {
		return Entry{}, fmt.Errorf("%q is not an IPv4 address", fields[1])
	}
	return Entry{DeviceID: id, Device: device, MAC: mac, Address: addr, Name: fields[2]}, nil
}

// read reports whether dnsmasq reads a file of that name in a hostsdir.
func read(name string) bool {
	return name != "" && name[0] != '.' && !strings.HasSuffix(name, "~") && (name[0] != '#' || !strings.HasSuffix(name, "#"))
}

// dnsmasq reads these fields of a line as something else than a name.
var notAName = regexp.MustCompile(`^([0-9]+[smhdw]?|infinite|ignore)$`)

func surveyHosts(text string) survey {
	var out survey
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		out.claims = append(out.claims, hostClaims(line)...)
	}
	return out
}

// hostClaims lists what a dhcp-host value takes. Its grammar: fields in any
// order, several MACs, a hardware type before one, tags, a client id, a lease time.
func hostClaims(line string) []string {
	var out []string
	for _, field := range strings.Split(line, ",") {
		field = strings.TrimSpace(field)
		switch {
		case field == "", notAName.MatchString(field):
		case strings.Contains(field, ":"):
			if kind, rest, found := strings.Cut(field, "-"); found && len(kind) <= 2 {
				field = rest
			}
			if mac, err := plan.ParseMAC(field); err == nil {
				out = append(out, "MAC "+mac.String())
			} // else id:, set:, tag:, or an IPv6 address
		default:
			if addr, err := netip.ParseAddr(field); err == nil {
				out = append(out, "address "+addr.String())
			} else {
				out = append(out, "name "+lowerASCII(field))
			}
		}
	}
	return out
}

// surveyDnsmasqConf reads dnsmasq's own configuration: dhcp-host and dhcp-range.
func surveyDnsmasqConf(text string) survey {
	var out survey
	for key, value := range dnsmasqOptions(text) {
		switch key {
		case "dhcp-host":
			out.claims = append(out.claims, hostClaims(value)...)
		case "dhcp-range":
			out.rangeOf(value)
		}
	}
	return out
}

// dnsmasqOptions gives the options of a configuration that have a value, in order.
func dnsmasqOptions(text string) func(func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		for _, line := range strings.Split(text, "\n") {
			line, _, _ = strings.Cut(line, "#")
			key, value, found := strings.Cut(line, "=")
			if found && !yield(strings.TrimSpace(key), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// rangeOf reads the value of dhcp-range: tags, first and last address (or
// "static": only reservations), mask, broadcast, lease time.
func (s *survey) rangeOf(value string) {
	var addrs []netip.Addr
	static := false
	for _, field := range strings.Split(value, ",") {
		field = strings.TrimSpace(field)
		if a, err := netip.ParseAddr(field); err == nil {
			addrs = append(addrs, a)
		} else if field == "static" || field == "proxy" {
			static = true
		}
	}
	if len(addrs) == 0 {
		return
	}
	mask := addrs[1:]
	if !static {
		if len(addrs) < 2 {
			return
		}
		s.pools = append(s.pools, span{addrs[0], addrs[1]})
		mask = addrs[2:]
	}
	if len(mask) > 0 && addrs[0].Is4() {
		if p, ok := masked(addrs[0], mask[0]); ok {
			s.subnets = append(s.subnets, p)
		}
	}
}

// masked makes a subnet of an address and a netmask.
func masked(a, mask netip.Addr) (netip.Prefix, bool) {
	if !a.Is4() || !mask.Is4() {
		return netip.Prefix{}, false
	}
	bits := 0
	m := mask.As4()
	n := uint32(m[0])<<24 | uint32(m[1])<<16 | uint32(m[2])<<8 | uint32(m[3])
	for n&(1<<31) != 0 {
		bits++
		n <<= 1
	}
	if n != 0 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, bits).Masked(), true
}
