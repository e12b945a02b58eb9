package dhcptest

import (
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// The DHCP servers that a machine can have.
const (
	serviceDnsmasq = "dnsmasq"
	serviceKea     = "kea"
	serviceISC     = "isc"
)

// form is what Debian's package of a server brings.
type form struct {
	directory, unit, config, index, user string
	main                                 func(directory string) string
	emptyIndex                           string
}

func formOf(service string, v6 bool) form {
	switch {
	case service == serviceKea && v6:
		return form{
			directory: "/etc/kea/enroll.d", unit: "kea-dhcp6-server", config: "/etc/kea/kea-dhcp6.conf", index: "index.json", user: "_kea",
			main: func(dir string) string {
				return `// The operator's own.
{ "Dhcp6": {
  "interfaces-config": { "interfaces": [ "br0" ] },
  "control-socket": { "socket-type": "unix", "socket-name": "/run/kea/kea6-ctrl-socket" },
  "host-reservation-identifiers": [ "hw-address", "duid" ],
  "subnet6": [
    { "id": 1, "subnet": "2001:db8::/64", "pools": [ { "pool": "2001:db8::f000 - 2001:db8::f0ff" } ],
      "reservations": <?include "` + dir + `/index.json"?> }
  ]
} }
`
			},
			emptyIndex: "[\n]\n",
		}
	case service == serviceKea:
		return form{
			directory: "/etc/kea/enroll.d", unit: "kea-dhcp4-server", config: "/etc/kea/kea-dhcp4.conf", index: "index.json", user: "_kea",
			main: func(dir string) string {
				return `// The operator's own. ` + `
{ "Dhcp4": {
  "interfaces-config": { "interfaces": [ "br0" ] }, # the BMC wire
  "control-socket": { "socket-type": "unix", "socket-name": "/run/kea/kea4-ctrl-socket" },
  "match-client-id": false, /* a BMC may change its own */
  "subnet4": [
    { "id": 1, "subnet": "192.0.2.0/24", "pools": [ { "pool": "192.0.2.240 - 192.0.2.250" } ],
      "reservations": <?include "` + dir + `/index.json"?> },
    { "id": 2, "subnet": "198.51.100.0/24" }
  ]
} }
`
			},
			emptyIndex: "[\n]\n",
		}
	case service == serviceISC && v6:
		return form{ // one unit serves both families
			directory: "/etc/dhcp/enroll.d", unit: "isc-dhcp-server", config: "/etc/dhcp/dhcpd6.conf", index: "index.conf", user: "root",
			main: func(dir string) string {
				return `# The operator's own.
default-lease-time 3600;
subnet6 2001:db8::/64 {
  range6 2001:db8::f000 2001:db8::f0ff;
}
include "` + dir + `/index.conf";
`
			},
		}
	case service == serviceISC:
		return form{
			directory: "/etc/dhcp/enroll.d", unit: "isc-dhcp-server", config: "/etc/dhcp/dhcpd.conf", index: "index.conf", user: "root",
			main: func(dir string) string {
				return `# The operator's own.
authoritative;
default-lease-time 3600;
subnet 192.0.2.0 netmask 255.255.255.0 {
  option routers 192.0.2.1;
  pool { range 192.0.2.240 192.0.2.250; }
}
subnet 198.51.100.0 netmask 255.255.255.0 { }
include "` + dir + `/index.conf";
`
			},
		}
	}
	return form{
		directory: "/etc/enroll-hosts.d", unit: "dnsmasq", config: "/etc/dnsmasq.conf", user: "dnsmasq",
		main: func(dir string) string {
			return "port=0\ndhcp-range=192.0.2.0,static,255.255.255.0,1h\ndhcp-range=198.51.100.0,static,255.255.255.0,1h\ndhcp-hostsdir=" + dir + "\n"
		},
	}
}

// form is that of the machine's server.
func (s *Server) form() form { return formOf(s.options.Service, s.options.IPv6) }

// daemon is the server's process with its unit and its journal.
type daemon struct {
	active  bool
	exited  bool   // ISC: the process is gone and the unit says that it exited, which is "active"
	deaf    bool   // Kea: the process lives without a socket
	result  string // systemd's Result
	pid     int
	started time.Time
	starts  []time.Time
	table   []host // the one read last is first, as dnsmasq keeps them
	journal []logLine
	dies    time.Time // when it will end by itself; zero: not

	// Kea
	config string // the running configuration, inclusions resolved
	loaded time.Time
}

// host is one reservation that the server holds.
type host struct {
	macs    []plan.MAC
	address netip.Addr
	name    string
	static  bool // of the main configuration; dnsmasq's reload keeps it
}

type logLine struct {
	at   time.Time
	text string
}

func (s *Server) log(format string, args ...any) {
	s.daemon.journal = append(s.daemon.journal, logLine{at: s.now(), text: fmt.Sprintf(format, args...)})
}

// install puts the main configuration and an empty index in place.
func (s *Server) install() {
	f := s.form()
	now := s.now()
	s.tree.mkdirs(now, path.Dir(f.config))
	s.tree.nodes[f.config] = &node{data: []byte(s.options.Main), mode: 0o644, mtime: now, owner: "root"}
	if f.index != "" {
		s.tree.nodes[path.Join(s.options.Directory, f.index)] = &node{data: []byte(f.emptyIndex), mode: 0o644, mtime: now, owner: s.options.User}
	}
}

// file reads a file as a user; the text is errno's.
func (s *Server) file(at, user string) (string, string) {
	n := s.tree.nodes[path.Clean(at)]
	switch {
	case n == nil:
		return "", "No such file or directory"
	case n.mode&fs.ModeDir != 0:
		return "", "Is a directory"
	case !n.may(user, 4):
		return "", "Permission denied"
	}
	return string(n.data), ""
}

// startDaemon starts the server. What is wrong with its configuration shows as
// it does on a real machine: at once, a moment later, or only in the lack of leases.
func (s *Server) startDaemon() {
	d := &s.daemon
	now := s.now()
	*d = daemon{active: true, result: "success", pid: d.pid + 1000, started: now, starts: d.starts, journal: d.journal}
	s.changed = true
	switch s.options.Service {
	case serviceKea:
		s.startKea()
	case serviceISC:
		s.startISC()
	default:
		s.startDnsmasq()
	}
	s.afterLoad()
}

// afterLoad is what the machine was told to do with certain reservations.
func (s *Server) afterLoad() {
	if of := s.behaviour.DiesOf; !of.IsZero() && s.daemon.active && s.holds(of) {
		s.daemon.dies = s.now().Add(2 * time.Second)
	}
	if s.behaviour.DieOnReload {
		s.end("signal")
	}
}

func (s *Server) holds(mac plan.MAC) bool { return s.has(s.daemon.table, mac) }

// end is the end of the process. dhcpd's unit does not notice.
func (s *Server) end(result string) {
	d := &s.daemon
	d.active, d.deaf, d.dies, s.changed = false, false, time.Time{}, true
	d.exited = s.options.Service == serviceISC
	if !d.exited {
		d.result = result
	}
}

// tick lets time pass for the process.
func (s *Server) tick() {
	if d := &s.daemon; d.active && !d.dies.IsZero() && !s.options.Now().Before(d.dies) {
		s.end("exit-code")
	}
}

// Lease is the address that a client with this MAC would get now.
func (s *Server) Lease(mac plan.MAC) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	if !s.daemon.active || s.daemon.deaf {
		return netip.Addr{}, false
	}
	for _, h := range s.daemon.table {
		for _, m := range h.macs {
			if m == mac {
				return h.address, h.address.IsValid()
			}
		}
	}
	return netip.Addr{}, false
}

// Serving reports whether the process runs and clients reach it.
func (s *Server) Serving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	return s.daemon.active && !s.daemon.deaf
}

// Kill ends the server's process with a signal.
func (s *Server) Kill() { s.locked(func() { s.end("signal") }) }

// Start starts the server, as an operator on the machine would.
func (s *Server) Start() { s.locked(s.startDaemon) }

// Restart is systemctl restart, as an operator on the machine would; false when
// it fails or the server does not run two seconds later.
func (s *Server) Restart() bool {
	ok := false
	s.locked(func() {
		s.daemon.starts = append(s.daemon.starts, s.now())
		s.startDaemon()
		ok = s.daemon.active && s.daemon.dies.IsZero()
	})
	return ok
}

// WouldStart tells why the server would not come up if somebody restarted it now;
// nil when it would. It changes nothing.
func (s *Server) WouldStart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.form()
	var err error
	switch s.options.Service {
	case serviceKea:
		_, _, err = s.loadKea(f.config, f.user)
	case serviceISC:
		_, err = s.loadISC(f.config, f.user)
	}
	return err
}

// Starts is how often the server was started so far, the first time included.
func (s *Server) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.daemon.pid / 1000
}

// Journal gives the texts of the unit's journal.
func (s *Server) Journal() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, l := range s.daemon.journal {
		out = append(out, l.text)
	}
	return out
}
