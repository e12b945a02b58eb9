package dhcptest

import (
	"io/fs"
	"net/netip"
	"path"
	"regexp"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

type event int

const (
	eventWritten event = iota // closed after writing, or renamed into the folder
	eventRemoved
)

// watched reports whether dnsmasq looks at a path of its hostsdir.
func (s *Server) watched(p string) bool {
	name := path.Base(p)
	return path.Dir(p) == s.options.Directory && name[0] != '.' && !strings.HasSuffix(name, "~") && (name[0] != '#' || !strings.HasSuffix(name, "#"))
}

// notify is inotify. A read adds entries; nothing that was read before leaves.
func (s *Server) notify(p string, e event) {
	if s.options.Service != serviceDnsmasq || !s.daemon.active || !s.watched(p) {
		return
	}
	switch e {
	case eventWritten:
		s.log("inotify: %s new or modified", p)
	case eventRemoved:
		s.log("inotify: %s removed", p)
	}
	s.readHosts(p)
}

// readHosts reads one file of the hostsdir.
func (s *Server) readHosts(p string) {
	s.changed = true
	s.log("read %s", p)
	n := s.tree.nodes[p]
	switch {
	case n == nil:
		s.log("cannot read %s: No such file or directory", p)
		return
	case !n.may("dnsmasq", 4):
		s.log("cannot read %s: Permission denied", p)
		return
	}
	for i, line := range strings.Split(string(n.data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		h, complaint := s.parseHost(line)
		if complaint != "" {
			s.log("%s at line %d of %s", complaint, i+1, p)
			continue
		}
		s.daemon.table = append([]host{h}, s.daemon.table...)
	}
}

var (
	legalName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	leaseTime = regexp.MustCompile(`^([0-9]+[smhdw]?|infinite|ignore)$`)
)

// parseHost reads the value of one dhcp-host, with dnsmasq's own complaints. An
// address that no parser knows (192.0.2.999) passes as a name, without a word.
func (s *Server) parseHost(line string) (host, string) {
	var h host
	for _, field := range strings.Split(line, ",") {
		field = strings.TrimSpace(field)
		switch {
		case strings.HasPrefix(field, "id:"), strings.HasPrefix(field, "set:"), strings.HasPrefix(field, "tag:"), leaseTime.MatchString(field):
		case strings.Contains(field, ":"):
			mac, err := plan.ParseMAC(field)
			if err != nil {
				return h, "bad hex constant"
			}
			h.macs = append(h.macs, mac)
		default:
			if a, err := netip.ParseAddr(field); err == nil {
				for _, other := range s.daemon.table {
					if other.address == a {
						return h, "duplicate dhcp-host IP address " + a.String()
					}
				}
				h.address = a
			} else if !legalName.MatchString(field) {
				return h, "bad DHCP host name"
			} else {
				h.name = field
			}
		}
	}
	return h, ""
}

// startDnsmasq reads the main configuration first, then the folder.
func (s *Server) startDnsmasq() {
	d := &s.daemon
	s.log("started, version 2.90 DNS disabled")
	for _, line := range s.options.Static {
		if h, complaint := s.parseHost(line); complaint == "" {
			h.static = true
			d.table = append([]host{h}, d.table...)
		}
	}
	s.rereadHosts()
}

// rereadHosts reads the folder anew in the order of the directory, which is
// undefined: here the newest file first, so that in a duplicate the older one loses.
func (s *Server) rereadHosts() {
	var kept []host
	for _, h := range s.daemon.table {
		if h.static {
			kept = append(kept, h)
		}
	}
	s.daemon.table = kept
	s.changed = true
	dir := s.tree.nodes[s.options.Directory]
	if dir == nil {
		s.log("bad dynamic directory %s: No such file or directory", s.options.Directory)
		return
	}
	names := s.tree.list(s.options.Directory)
	at := func(name string) *node { return s.tree.nodes[path.Join(s.options.Directory, name)] }
	sort.SliceStable(names, func(i, j int) bool { return at(names[i]).mtime.After(at(names[j]).mtime) })
	for _, name := range names {
		if p := path.Join(s.options.Directory, name); s.watched(p) && at(name).mode&fs.ModeDir == 0 {
			s.readHosts(p)
		}
	}
}
