package dhcp

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// flavour is what is peculiar about one kind of DHCP server: the form of its
// files, what they take, and how the server is asked and told. It is a table of
// pure functions; one file of this package holds one flavour.
type flavour struct {
	title     string // for people
	unit      string // of systemd; default of the site's
	config    string // path of the main configuration; default of the site's
	apply     string // how changes go live; default of the site's
	extension string // of a reservation's file
	// index is the name of the file that lists the reservations' files, where the
	// server cannot read a folder; "" where it can.
	index string
	// render gives a reservation's file. Equal entries give equal bytes; nothing
	// that NetBox keeps as free text is in them.
	render func(e Entry, options []plan.DHCPOption) string
	// fields reads what a file of ours says, without regard to its spelling.
	fields func(content string) (Entry, error)
	// owner says whose file this is: the device id in our mark.
	owner func(content string) (id int64, ours bool)
	// survey reads anybody's file of the folder, surveyMain the server's own
	// configuration.
	survey     func(text string) survey
	surveyMain func(text string) survey
	// includes are the files that the server's own configuration names further;
	// beside is what the unit of Debian adds to it, nil where that is nothing.
	includes func(text string) []inclusion
	beside   func(config string) inclusion
	// reads reports whether a file of that name in the folder counts: whether the
	// server reads it, or could be told to.
	reads func(name string) bool

	// check is the command with which the server checks a configuration; nil where
	// its check proves nothing about reservations.
	check func(config string) string

	renderIndex func(dir string, names []string) string
	parseIndex  func(dir, content string) ([]string, error)

	// socket is the UDP port that a serving process holds, where a process can run
	// without it; else "".
	socket string
}

// The values of apply in the dhcp block.
const (
	applyReload  = "reload"
	applyRestart = "restart"
)

// defaultControl is where Debian's Kea control agent listens.
const defaultControl = "127.0.0.1:8000"

// survey is what a text of a DHCP server's language says, as far as it can be
// read.
type survey struct {
	claims  []string       // what it takes: "MAC …", "address …", "name …"
	subnets []netip.Prefix // what it declares
	pools   []span         // what it gives to anybody
	opaque  bool           // it could not be read, so nobody knows what it takes
}

// span is a range of addresses, both ends included.
type span struct{ from, to netip.Addr }

func (s span) contains(a netip.Addr) bool {
	return s.from.Is4() == a.Is4() && s.from.Compare(a) <= 0 && a.Compare(s.to) <= 0
}

func (s span) String() string { return s.from.String() + " - " + s.to.String() }

// The values of service in the dhcp block.
const (
	serviceDnsmasq = "dnsmasq"
	serviceKea     = "kea"
	serviceISC     = "isc"
)

// flavourOf gives the flavour of a site's server; false when there is none of
// that name.
func flavourOf(s *plan.DHCPSettings) (flavour, bool) {
	switch s.Service {
	case serviceDnsmasq:
		return dnsmasqFlavour(), true
	case serviceKea:
		return keaFlavour(s.IPv6), true
	case serviceISC:
		return iscFlavour(s.IPv6), true
	}
	return flavour{}, false
}

// Render gives a reservation's file as the site's server wants it.
func Render(s plan.DHCPSettings, e Entry) string {
	fl, ok := flavourOf(&s)
	if !ok {
		return ""
	}
	return fl.render(e, s.Options)
}

// FileName is the name of a reservation's file in the site's folder.
func FileName(s plan.DHCPSettings, e Entry) string {
	fl, _ := flavourOf(&s)
	return e.Name + fl.extension
}

// RenderIndex gives the index file of these reservations' files, by their names
// in the folder; path is "" where the server needs none.
func RenderIndex(s plan.DHCPSettings, names []string) (at, content string) {
	fl, ok := flavourOf(&s)
	if !ok || fl.index == "" {
		return "", ""
	}
	names = append([]string(nil), names...)
	sort.Strings(names)
	return path.Join(s.Directory, fl.index), fl.renderIndex(s.Directory, names)
}

// parse reads a file of ours, strictly: what it says must render to the same
// bytes.
func (fl flavour) parse(content string, options []plan.DHCPOption) (Entry, error) {
	e, err := fl.fields(content)
	if err != nil {
		return Entry{}, err
	}
	if reason := badName(e.Name); reason != "" {
		return Entry{}, fmt.Errorf("the name %q %s", excerpt(e.Name), reason)
	}
	if fl.render(e, options) != content {
		return Entry{}, fmt.Errorf("it is not written the way enroll writes it")
	}
	return e, nil
}

// The comment that marks a file of ours. Files without a device name in it were
// written by hand after the documented form and count as ours.
var marker = regexp.MustCompile(`^# managed by enroll: device ([1-9][0-9]{0,18})(?: ([A-Za-z0-9-]+))?$`)

// markOf is the comment for an entry. Names that had to be mapped to be safe
// are left out: the file's own name says them.
func markOf(e Entry) string {
	head := "# managed by enroll: device " + strconv.FormatInt(e.DeviceID, 10)
	if plainDevice.MatchString(e.Device) {
		head += " " + e.Device
	}
	return head
}

var plainDevice = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// markOwner reads the comment in the first line.
func markOwner(content string) (id int64, ours bool) {
	id, _, ours = readMark(content)
	return id, ours
}

func readMark(content string) (id int64, device string, ours bool) {
	head, _, _ := strings.Cut(content, "\n")
	m := marker.FindStringSubmatch(head)
	if m == nil {
		return 0, "", false
	}
	id, err := strconv.ParseInt(m[1], 10, 64)
	return id, m[2], err == nil
}

// withExtension counts the files that an index could list.
func withExtension(extension, index string) func(string) bool {
	return func(name string) bool {
		return strings.HasSuffix(name, extension) && name != index && !strings.HasPrefix(name, ".")
	}
}
