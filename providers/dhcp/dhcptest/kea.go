package dhcptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Kea 2.2, DHCPv4 and DHCPv6. errSyntax leaves a running Kea as it was when a reload finds
// it; errContent, a duplicate, leaves it without a socket.
var (
	errSyntax  = errors.New("syntax")
	errContent = errors.New("content")
)

// keaMAC: Kea wants colons.
var keaMAC = regexp.MustCompile(`^([0-9A-Fa-f]{1,2}:){5}[0-9A-Fa-f]{1,2}$`)

type keaConfig struct {
	Subnets4     []keaSubnet      `json:"subnet4"`
	Subnets6     []keaSubnet      `json:"subnet6"`
	Reservations []map[string]any `json:"reservations"`
}

type keaSubnet struct {
	Subnet       string           `json:"subnet"`
	Reservations []map[string]any `json:"reservations"`
}

// keaFamily is the digit in the names of the daemon, its part of the
// configuration, and its messages.
func (s *Server) keaFamily() string {
	if s.options.IPv6 {
		return "6"
	}
	return "4"
}

func (s *Server) keaProgram() string { return "/usr/sbin/kea-dhcp" + s.keaFamily() }

// keaKnows are the keys of a reservation beside its address.
var keaKnows = []string{"hw-address", "hostname", "user-context", "option-data", "comment"}

// keaAddress reads the one address of a reservation, and names a key that the
// daemon does not know.
func (s *Server) keaAddress(r map[string]any) (text, unknown string) {
	key, other := "ip-address", "client-id"
	if s.options.IPv6 {
		key, other = "ip-addresses", "duid"
	}
	for k := range r {
		if k != key && k != other && !slices.Contains(keaKnows, k) {
			return "", k
		}
	}
	if list, _ := r[key].([]any); len(list) == 1 {
		text, _ = list[0].(string)
		return text, ""
	}
	text, _ = r[key].(string)
	return text, ""
}

// loadKea reads a configuration as a user.
func (s *Server) loadKea(config, user string) (table []host, whole string, err error) {
	whole, err = s.expandKea(config, user, 0)
	if err != nil {
		return nil, "", err
	}
	var parts map[string]keaConfig
	if jsonErr := json.Unmarshal([]byte(whole), &parts); jsonErr != nil {
		return nil, "", fmt.Errorf("%w: Syntax check failed with: %s:1.1: %w", errSyntax, config, jsonErr)
	}
	c := parts["Dhcp"+s.keaFamily()]
	seen := map[string]bool{}
	add := func(subnet netip.Prefix, r map[string]any) error {
		ipText, unknown := s.keaAddress(r)
		if unknown != "" {
			return fmt.Errorf("%w: Syntax check failed with: got unexpected keyword \"%s\" in reservations map", errSyntax, unknown)
		}
		macText, _ := r["hw-address"].(string)
		name, _ := r["hostname"].(string)
		mac, macErr := plan.ParseMAC(macText)
		ip, ipErr := netip.ParseAddr(ipText)
		switch {
		case !keaMAC.MatchString(macText) || macErr != nil:
			return fmt.Errorf("%w: Error encountered: invalid hw-address '%s'", errSyntax, macText)
		case ipErr != nil || ip.Is4() == s.options.IPv6:
			return fmt.Errorf("%w: Error encountered: Failed to convert '%s' to an address", errSyntax, ipText)
		case subnet.IsValid() && !subnet.Contains(ip):
			return fmt.Errorf("%w: Error encountered: specified reservation '%s' is not within the IPv%s subnet '%s'", errSyntax, ip, s.keaFamily(), subnet)
		case seen[mac.String()]:
			return fmt.Errorf("%w: Error encountered: failed to add new host using the HW address '%s' to the IPv%s subnet id '1' as this host has already been added", errContent, mac, s.keaFamily())
		case seen[ip.String()]:
			return fmt.Errorf("%w: Error encountered: failed to add address '%s': there's already a reservation for this address", errContent, ip)
		}
		seen[mac.String()], seen[ip.String()] = true, true
		table = append(table, host{macs: []plan.MAC{mac}, address: ip, name: name})
		return nil
	}
	for _, sub := range append(c.Subnets4, c.Subnets6...) {
		prefix, prefixErr := netip.ParsePrefix(sub.Subnet)
		if prefixErr != nil {
			return nil, "", fmt.Errorf("%w: Error encountered: subnet '%s'", errSyntax, sub.Subnet)
		}
		for _, r := range sub.Reservations {
			if err := add(prefix, r); err != nil {
				return nil, "", err
			}
		}
	}
	for _, r := range c.Reservations {
		if err := add(netip.Prefix{}, r); err != nil {
			return nil, "", err
		}
	}
	return table, whole, nil
}

// expandKea resolves inclusions and takes comments and trailing commas out.
func (s *Server) expandKea(at, user string, depth int) (string, error) {
	text, errno := s.file(at, user)
	if errno != "" || depth > 10 {
		return "", fmt.Errorf("%w: Syntax check failed with: Can't open include file %s: %s", errSyntax, at, errno)
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case rest[0] == '"':
			end := 1
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(rest) {
				return "", fmt.Errorf("%w: Syntax check failed with: %s: unterminated string", errSyntax, at)
			}
			b.WriteString(rest[:end+1])
			i += end + 1
		case rest[0] == '#', strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			i += len(line)
		case strings.HasPrefix(rest, "/*"):
			inside, _, found := strings.Cut(rest, "*/")
			if !found {
				return "", fmt.Errorf("%w: Syntax check failed with: %s: Comment not closed", errSyntax, at)
			}
			i += len(inside) + 2
		case strings.HasPrefix(rest, "<?include"):
			directive, _, found := strings.Cut(rest, "?>")
			name := strings.Trim(strings.TrimSpace(strings.TrimPrefix(directive, "<?include")), `"`)
			if !found {
				return "", fmt.Errorf("%w: Syntax check failed with: %s: Directive not closed", errSyntax, at)
			}
			inner, err := s.expandKea(name, user, depth+1)
			if err != nil {
				return "", err
			}
			b.WriteString(inner)
			i += len(directive) + 2
		case rest[0] == ']' || rest[0] == '}':
			sofar := strings.TrimRight(b.String(), " \t\r\n")
			b.Reset()
			b.WriteString(strings.TrimSuffix(sofar, ",") + rest[:1])
			i++
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	return b.String(), nil
}

func keaText(err error) string {
	_, text, _ := strings.Cut(err.Error(), ": ")
	return text
}

// startKea: the unit is of Type=simple, so the start succeeds before the
// configuration is read; a process that cannot use it ends in less than half a second.
func (s *Server) startKea() {
	d := &s.daemon
	table, whole, err := s.loadKea(s.form().config, "_kea")
	if err == nil && s.refused(table) {
		err = fmt.Errorf("%w: Error encountered: the daemon cannot use it", errContent)
	}
	if err != nil {
		s.log("ERROR [kea-dhcp%[1]s.dhcp%[1]s] DHCP%[1]s_INIT_FAIL failed to initialize Kea server: %[2]s", s.keaFamily(), keaText(err))
		d.deaf, d.dies = true, s.now().Add(400*time.Millisecond)
		return
	}
	d.table, d.config, d.loaded = table, whole, s.now()
	d.deaf = s.deafened(table)
	s.log("INFO  [kea-dhcp%[1]s.dhcp%[1]s] DHCP%[1]s_STARTED Kea DHCPv%[1]s server version 2.2.0 started", s.keaFamily())
}

func (s *Server) has(table []host, mac plan.MAC) bool {
	if mac.IsZero() {
		return false
	}
	for _, h := range table {
		for _, m := range h.macs {
			if m == mac {
				return true
			}
		}
	}
	return false
}

func (s *Server) refused(table []host) bool  { return s.has(table, s.behaviour.Refuses) }
func (s *Server) deafened(table []host) bool { return s.has(table, s.behaviour.DeafTo) }

// reloadKea is config-reload.
func (s *Server) reloadKea() (result int, text string) {
	d := &s.daemon
	s.stepBack()
	if s.behaviour.OldReload {
		d.loaded = s.now()
	}
	if s.behaviour.LostReload || s.behaviour.OldReload {
		return 0, "Configuration successful."
	}
	s.changed = true
	table, whole, err := s.loadKea(s.form().config, "_kea")
	if err == nil && s.refused(table) {
		err = fmt.Errorf("%w: Error encountered: the daemon cannot use it", errContent)
	}
	if err != nil {
		s.log("ERROR [kea-dhcp%[1]s.dhcp%[1]s] DHCP%[1]s_DYNAMIC_RECONFIGURATION_FAIL dynamic server reconfiguration failed with file: %[2]s", s.keaFamily(), keaText(err))
		if errors.Is(err, errContent) {
			s.log("FATAL [kea-dhcp%[1]s.dhcp%[1]s] DHCP%[1]s_CONFIG_UNRECOVERABLE_ERROR DHCPv%[1]s server new configuration failed with an error which cannot be recovered", s.keaFamily())
			d.deaf = true // and it says nothing about it when it is asked
		}
		return 1, "Config reload failed: configuration error using file '" + s.form().config + "': " + keaText(err)
	}
	d.table, d.config, d.loaded, d.deaf = table, whole, s.now(), s.deafened(table)
	s.afterLoad()
	return 0, "Configuration successful."
}

// keaCommand answers a command at the control channel of the agent, which forwards
// it to a daemon that it knows.
func (s *Server) keaCommand(command string, services []string) any {
	d := &s.daemon
	s.tick()
	if ours := "dhcp" + s.keaFamily(); !slices.Equal(services, []string{ours}) {
		return map[string]any{"result": 1, "text": fmt.Sprintf("forwarding socket is not configured for the server type %s", strings.Join(services, ", "))}
	}
	if !d.active {
		return map[string]any{"result": 1, "text": "unable to forward command to the dhcp" + s.keaFamily() + " service: No such file or directory. The server is likely to be offline"}
	}
	switch command {
	case "config-reload":
		result, text := s.reloadKea()
		return map[string]any{"result": result, "text": text}
	case "status-get":
		return map[string]any{"result": 0, "arguments": map[string]any{
			"pid": d.pid, "uptime": wholeSeconds(d.started, s.now()), "reload": wholeSeconds(d.loaded, s.now()),
			"sockets": map[string]any{"status": "ready"}, "multi-threading-enabled": false,
		}}
	case "config-get":
		return map[string]any{"result": 0, "arguments": json.RawMessage(d.config)}
	}
	return map[string]any{"result": 2, "text": "'" + command + "' command not supported."}
}

// wholeSeconds is how Kea counts: both ends on a clock without fractions.
func wholeSeconds(from, to time.Time) int64 { return to.Unix() - from.Unix() }

// runKea is kea-dhcp4 -t, or kea-dhcp6 -t.
func runKea(sh *shell, args []string) int {
	if len(args) != 2 || args[0] != "-t" {
		fmt.Fprintln(&sh.err, "Usage: "+sh.s.keaProgram()+" -t CONFIG")
		return 1
	}
	if _, _, err := sh.s.loadKea(args[1], sh.user); err != nil {
		fmt.Fprintln(&sh.err, keaText(err))
		return 1
	}
	fmt.Fprintln(&sh.out, "INFO  [kea-dhcp"+sh.s.keaFamily()+".hosts] HOSTS_BACKENDS_REGISTERED the following host backend types are available: mysql postgresql")
	return 0
}
