package dhcp

import (
	"fmt"
	"net/netip"
	"path"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// iscFlavour is ISC dhcpd: a host block per file, and an index that the main
// configuration includes, because dhcpd cannot include a folder. It accepts an
// empty file, and the same MAC or address twice; it refuses to start when a
// listed file is missing or a host name stands twice.
func iscFlavour(v6 bool) flavour {
	const extension, index = ".conf", "index.conf"
	// Debian's unit starts both daemons and knows of neither whether it lives. That
	// of DHCPv6 holds a UDP socket; that of DHCPv4 can do without.
	statement, config, family, socket := "fixed-address", "/etc/dhcp/dhcpd.conf", "-4", ""
	if v6 {
		statement, config, family, socket = "fixed-address6", "/etc/dhcp/dhcpd6.conf", "-6", "547"
	}
	return flavour{
		title:  "ISC dhcpd",
		unit:   "isc-dhcp-server",
		config: config,
		apply:  applyRestart,
		// Without -q, which keeps the reason silent as well.
		check:     func(config string) string { return "/usr/sbin/dhcpd -t " + family + " -cf " + config },
		extension: extension,
		index:     index,
		socket:    socket,
		render: func(e Entry, options []plan.DHCPOption) string {
			var b strings.Builder
			fmt.Fprintf(&b, "%s\nhost %s {\n  hardware ethernet %s;\n  %s %s;\n", markOf(e), e.Name, e.MAC, statement, e.Address)
			if !v6 { // DHCPv6 has no such option
				fmt.Fprintf(&b, "  option host-name \"%s\";\n", e.Name)
			}
			for _, o := range options {
				fmt.Fprintf(&b, "  option %s %s;\n", o.Name, o.Value)
			}
			b.WriteString("}\n")
			return b.String()
		},
		fields:     func(content string) (Entry, error) { return iscFields(content, v6) },
		owner:      markOwner,
		survey:     surveyISC,
		surveyMain: surveyISC,
		includes:   iscIncludes,
		reads:      withExtension(extension, index),
		renderIndex: func(dir string, names []string) string {
			if len(names) == 0 {
				return iscNoEntry
			}
			var b strings.Builder
			for _, name := range names {
				fmt.Fprintf(&b, "include \"%s\";\n", path.Join(dir, name))
			}
			return b.String()
		},
		parseIndex: parseISCIndex,
	}
}

const iscNoEntry = "# enroll has no reservation here\n"

func parseISCIndex(dir, content string) ([]string, error) {
	if content == iscNoEntry {
		return nil, nil
	}
	return indexLines(dir, content, func(line string) (string, bool) {
		at, found := strings.CutPrefix(line, `include "`)
		at, closed := strings.CutSuffix(at, `";`)
		return at, found && closed
	})
}

// indexLines reads an index line by line; comments and empty lines are nobody's.
func indexLines(dir, content string, include func(line string) (at string, ok bool)) ([]string, error) {
	var names []string
	for i, line := range strings.Split(content, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "//") {
			continue
		}
		at, ok := include(line)
		if !ok || path.Clean(at) != at || path.Dir(at) != dir || !safePath.MatchString(at) {
			return nil, fmt.Errorf("line %d, %q, is not the inclusion of a file of %s", i+1, excerpt(line), dir)
		}
		names = append(names, path.Base(at))
	}
	return names, nil
}

// iscFields reads the one host block of a file of ours.
func iscFields(content string, v6 bool) (Entry, error) {
	id, device, ours := readMark(content)
	if !ours {
		return Entry{}, fmt.Errorf("the first line is not enroll's mark")
	}
	e := Entry{DeviceID: id, Device: device}
	hosts := 0
	walkISC(content, func(path []string, words []string) {
		switch {
		case len(path) == 0 && len(words) == 2 && words[0] == "host":
			hosts++
			e.Name = words[1]
		case len(path) != 1:
		case len(words) == 3 && words[0] == "hardware" && words[1] == "ethernet":
			e.MAC, _ = plan.ParseMAC(words[2]) // what cannot be read does not render to the same bytes
		case len(words) == 2 && (words[0] == "fixed-address" && !v6 || words[0] == "fixed-address6" && v6):
			e.Address, _ = netip.ParseAddr(words[1])
		}
	})
	if hosts != 1 || e.MAC.IsZero() || !e.Address.IsValid() {
		return Entry{}, fmt.Errorf("it is not one host block with a MAC and an address")
	}
	return e, nil
}

// surveyISC reads dhcpd's language as far as it says who has what.
func surveyISC(text string) survey {
	var out survey
	walkISC(text, func(blocks []string, words []string) {
		inHost := len(blocks) > 0 && blocks[len(blocks)-1] == "host"
		switch {
		case len(words) == 0:
		case words[0] == "host" && len(words) == 2:
			out.claims = append(out.claims, "name "+lowerASCII(words[1]))
		case inHost && words[0] == "hardware" && len(words) == 3:
			if mac, err := plan.ParseMAC(words[2]); err == nil {
				out.claims = append(out.claims, "MAC "+mac.String())
			}
		case inHost && (words[0] == "fixed-address" || words[0] == "fixed-address6"):
			for _, w := range words[1:] {
				if addr, err := netip.ParseAddr(strings.TrimSuffix(w, ",")); err == nil {
					out.claims = append(out.claims, "address "+addr.String())
				}
			}
		case words[0] == "subnet" && len(words) == 4 && words[2] == "netmask":
			a, errA := netip.ParseAddr(words[1])
			m, errM := netip.ParseAddr(words[3])
			if errA == nil && errM == nil {
				if p, ok := masked(a, m); ok {
					out.subnets = append(out.subnets, p)
				}
			}
		case words[0] == "subnet6" && len(words) == 2:
			if p, err := netip.ParsePrefix(words[1]); err == nil {
				out.subnets = append(out.subnets, p.Masked())
			}
		case words[0] == "range" || words[0] == "range6":
			out.iscRange(words[1:])
		}
	})
	return out
}

func (s *survey) iscRange(words []string) {
	var addrs []netip.Addr
	for _, w := range words {
		if p, err := netip.ParsePrefix(w); err == nil {
			s.pools = append(s.pools, span{p.Masked().Addr(), lastOf(p)})
		} else if a, err := netip.ParseAddr(w); err == nil {
			addrs = append(addrs, a)
		}
	}
	switch len(addrs) {
	case 1:
		s.pools = append(s.pools, span{addrs[0], addrs[0]})
	case 2:
		s.pools = append(s.pools, span{addrs[0], addrs[1]})
	}
}

// walkISC calls visit for every statement and every head of a block, with the
// first words of the blocks around it. Quoted text is one word, without its
// quotes; what is not closed ends with the text.
func walkISC(text string, visit func(blocks []string, words []string)) {
	var blocks, words []string
	var b strings.Builder
	inWord := false
	flush := func() {
		if inWord {
			words = append(words, b.String())
		}
		b.Reset()
		inWord = false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n', ',':
			flush()
		case '#':
			flush()
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '"':
			inWord = true
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' && i+1 < len(text) {
					i++
				}
				b.WriteByte(text[i])
			}
		case ';':
			flush()
			visit(blocks, words)
			words = nil
		case '{':
			flush()
			visit(blocks, words)
			head := ""
			if len(words) > 0 {
				head = words[0]
			}
			blocks, words = append(blocks[:len(blocks):len(blocks)], head), nil
		case '}':
			flush()
			words = nil
			if len(blocks) > 0 {
				blocks = blocks[:len(blocks)-1]
			}
		default:
			b.WriteByte(c)
			inWord = true
		}
	}
}
