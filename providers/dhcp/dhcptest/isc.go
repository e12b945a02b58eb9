package dhcptest

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// ISC dhcpd 4.4.3. It takes an empty file, the same MAC and the same address
// twice; the same host name twice and a missing file it does not.

var iscMAC = regexp.MustCompile(`^([0-9A-Fa-f]{1,2}:){5}[0-9A-Fa-f]{1,2}$`)

type iscParser struct {
	s     *Server
	user  string
	table []host
	names map[string]bool
}

// loadISC reads a configuration as a user.
func (s *Server) loadISC(config, user string) ([]host, error) {
	p := &iscParser{s: s, user: user, names: map[string]bool{}}
	if err := p.include(config, 0); err != nil {
		return nil, err
	}
	return p.table, nil
}

func (p *iscParser) include(at string, depth int) error {
	text, errno := p.s.file(at, p.user)
	if errno != "" || depth > 10 {
		return fmt.Errorf("Can't open %s: %s", at, errno) //nolint:staticcheck,revive // dhcpd's own text
	}
	tokens, err := iscTokens(text)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	rest, err := p.statements(tokens, nil, depth)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unexpected %q", rest[0])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// statements reads up to a closing brace, which it leaves.
func (p *iscParser) statements(tokens []string, in *host, depth int) ([]string, error) {
	for len(tokens) > 0 && tokens[0] != "}" {
		end := 0
		for end < len(tokens) && tokens[end] != ";" && tokens[end] != "{" && tokens[end] != "}" {
			end++
		}
		if end == len(tokens) || tokens[end] == "}" {
			return nil, fmt.Errorf("semicolon expected")
		}
		words, rest := tokens[:end], tokens[end+1:]
		if tokens[end] == "{" {
			var h *host
			if len(words) == 2 && words[0] == "host" {
				name := words[1]
				if p.names[name] {
					return nil, fmt.Errorf("host %s: already exists", name)
				}
				if !legalName.MatchString(name) {
					return nil, fmt.Errorf("expecting left brace")
				}
				p.names[name] = true
				h = &host{name: name}
			}
			after, err := p.statements(rest, h, depth)
			if err != nil {
				return nil, err
			}
			if len(after) == 0 {
				return nil, fmt.Errorf("unexpected end of file")
			}
			if h != nil {
				p.table = append(p.table, *h)
			}
			tokens = after[1:]
			continue
		}
		if err := p.statement(words, in, depth); err != nil {
			return nil, err
		}
		tokens = rest
	}
	return tokens, nil
}

func (p *iscParser) statement(words []string, in *host, depth int) error {
	switch {
	case len(words) == 0:
	case words[0] == "include":
		if len(words) != 2 || !strings.HasPrefix(words[1], `"`) {
			return fmt.Errorf("filename string expected")
		}
		return p.include(strings.Trim(words[1], `"`), depth+1)
	case words[0] == "hardware" && in != nil:
		if len(words) != 3 || words[1] != "ethernet" || !iscMAC.MatchString(words[2]) {
			return fmt.Errorf("expecting hexadecimal number")
		}
		mac, err := plan.ParseMAC(words[2])
		if err != nil {
			return fmt.Errorf("expecting hexadecimal number")
		}
		in.macs = append(in.macs, mac)
	case words[0] == "fixed-address6" && in != nil && p.s.options.IPv6:
		if len(words) != 2 {
			return fmt.Errorf("semicolon expected")
		}
		a, err := netip.ParseAddr(words[1])
		if err != nil || !a.Is6() {
			return fmt.Errorf("semicolon expected")
		}
		in.address = a
	case words[0] == "fixed-address" && in != nil:
		if len(words) != 2 {
			return fmt.Errorf("expecting IP address or hostname")
		}
		a, err := netip.ParseAddr(words[1])
		if err != nil && (strings.Contains(words[1], "/") || !legalName.MatchString(words[1])) {
			return fmt.Errorf("expecting IP address or hostname")
		}
		in.address = a
	case words[0] == "option" || words[0] == "range" || words[0] == "authoritative" || len(words) >= 2:
	default:
		return fmt.Errorf("expecting a declaration")
	}
	return nil
}

func iscTokens(text string) ([]string, error) {
	var out []string
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n', ',':
			i++
		case '#':
			line, _, _ := strings.Cut(text[i:], "\n")
			i += len(line)
		case ';', '{', '}':
			out = append(out, string(c))
			i++
		case '"':
			end := strings.IndexByte(text[i+1:], '"')
			if end < 0 {
				return nil, fmt.Errorf("unterminated string")
			}
			out = append(out, text[i:i+end+2])
			i += end + 2
		case '\xef':
			return nil, fmt.Errorf("unknown character")
		default:
			end := strings.IndexAny(text[i:], " \t\r\n,;{}\"#")
			if end < 0 {
				end = len(text) - i
			}
			out = append(out, text[i:i+end])
			i += end
		}
	}
	return out, nil
}

// startISC: the init script checks, then starts; it fails with the old process
// already stopped.
func (s *Server) startISC() {
	d := &s.daemon
	table, err := s.loadISC(s.form().config, "root")
	if err == nil && s.refused(table) {
		err = fmt.Errorf("the daemon cannot use it")
	}
	if err != nil {
		s.log("%v", err)
		s.log("Configuration file errors encountered -- exiting")
		d.active, d.exited, d.result = false, false, "exit-code"
		return
	}
	d.table = table // the first of two with one MAC wins, as dhcpd has it
	s.log("Server starting service.")
}

// iscFamily is dhcpd's flag for what it serves.
func (s *Server) iscFamily() string {
	if s.options.IPv6 {
		return "-6"
	}
	return "-4"
}

// runDhcpd is dhcpd -t -4 -cf CONFIG, or with -6.
func runDhcpd(sh *shell, args []string) int {
	if len(args) != 4 || args[0] != "-t" || args[1] != sh.s.iscFamily() || args[2] != "-cf" {
		fmt.Fprintln(&sh.err, "Usage: dhcpd -t "+sh.s.iscFamily()+" -cf CONFIG")
		return 1
	}
	fmt.Fprintln(&sh.err, "Internet Systems Consortium DHCP Server 4.4.3-P1")
	if _, err := sh.s.loadISC(args[3], sh.user); err != nil {
		fmt.Fprintf(&sh.err, "%v\nConfiguration file errors encountered -- exiting\n", err)
		return 1
	}
	return 0
}
