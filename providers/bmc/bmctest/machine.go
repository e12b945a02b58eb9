package bmctest

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// The makers of BMCs.
const (
	Generic = "generic"
	IDRAC   = "idrac"
)

// Machine is a server and its BMC as it is at the beginning.
type Machine struct {
	Name   string // the name under which requests are recorded
	Vendor string // Generic or IDRAC; default Generic
	// Serial is SerialNumber of the system. ServiceTag is what a Dell calls by
	// that name (SKU); default Serial.
	Serial     string
	ServiceTag string
	Model      string

	User     string
	Password string

	Hostname   string // default as makers ship them
	NTPEnabled bool
	NTPServers []string

	NICs []NIC // in slot order
	// FirstNIC is which NIC (from 1) is first in the boot order; 0: the disk is.
	FirstNIC    int
	PoweredOff  bool
	Unreachable bool // the port is closed until SetReachable

	Profile Profile
}

// NIC is a network port of the host.
type NIC struct{ MAC plan.MAC }

// Profile is how a BMC behaves beside what its maker sets.
type Profile struct {
	MaxSessions    int           // default 8
	SessionTimeout time.Duration // idle; default 30 min (iDRAC) or 5 min
	LockAfter      int           // failed logins until nothing is accepted any more; default 5, iDRAC 3; -1: never
	LockFor        time.Duration // default 60 s
	TellLockout    bool          // say in the refusal that the account is locked

	PasswordChange bool // the account must change its password first
	NoSessions     bool // no session service: Basic only
	NoBasic        bool

	NoETag         bool
	RequireIfMatch bool // 428 to a PATCH without it
	// Tasks lets a PATCH answer 202 with a task that takes effect at its end, after
	// TaskPolls looks at it (default 2).
	Tasks     bool
	TaskPolls int
	TaskFails bool // and the task ends with an exception
	// Late lets an accepted change show only that much later.
	Late time.Duration
	// SettingsObject puts writes of a generic BMC's resources to …/Settings.
	SettingsObject bool

	ReadOnly           bool // interface and network protocol take no PATCH
	NoHostname         bool // neither has a HostName
	HostnameOnProtocol bool // the interface has none
	NoNetworkProtocol  bool
	NoBootOptions      bool
	NoRelatedItem      bool // iDRAC firmware 6: boot options lead to NICs by BIOS attributes only

	AbsoluteLocation bool // Location of a session with scheme and another host name
	NoLocation       bool // none at all
	TrailingSlash    bool // links end with a slash
	RelativeLinks    bool // links of the root lack /redfish/v1/
	WrongType        bool // JSON is sent as text/html
	Busy             int  // that many requests after the login are answered 503
}

func (m Machine) withDefaults() Machine {
	if m.Vendor == "" {
		m.Vendor = Generic
	}
	if m.Vendor != Generic && m.Vendor != IDRAC {
		panic("bmctest: no such maker: " + m.Vendor)
	}
	if m.Name == "" || m.User == "" || m.Password == "" || m.FirstNIC > len(m.NICs) {
		panic("bmctest: a machine needs a name, a user and a password, and FirstNIC must be one of its NICs")
	}
	if m.ServiceTag == "" {
		m.ServiceTag = m.Serial
	}
	if m.Model == "" {
		m.Model = map[string]string{Generic: "Example Server", IDRAC: "PowerEdge XE9680"}[m.Vendor]
	}
	if m.Hostname == "" {
		m.Hostname = map[string]string{Generic: "bmc", IDRAC: "idrac-" + m.ServiceTag}[m.Vendor]
	}
	p := &m.Profile
	if p.MaxSessions == 0 {
		p.MaxSessions = 8
	}
	if p.SessionTimeout == 0 {
		p.SessionTimeout = map[string]time.Duration{Generic: 5 * time.Minute, IDRAC: 30 * time.Minute}[m.Vendor]
	}
	if p.LockAfter == 0 {
		p.LockAfter = map[string]int{Generic: 5, IDRAC: 3}[m.Vendor]
	}
	if p.LockFor == 0 {
		p.LockFor = time.Minute
	}
	if p.TaskPolls == 0 {
		p.TaskPolls = 2
	}
	return m
}

// BMC is one simulated BMC.
type BMC struct {
	URL string // https://127.0.0.1:port

	server *Server
	name   string
	port   int

	listening sync.Mutex // guards the four below
	reserved  int        // descriptor that holds the port while nothing listens; -1: none
	http      *http.Server
	serving   sync.WaitGroup

	mu       sync.Mutex // guards all below
	machine  Machine
	hostname string
	ntp      ntpState
	powered  bool
	firstNIC int
	asset    string
	late     []lateChange
	sessions map[string]*session // by id
	nextID   int
	failures int
	locked   time.Time // until then
	tasks    map[string]*task
}

type ntpState struct {
	enabled bool
	servers []string
}

// lateChange is a change that was accepted and does not show yet.
type lateChange struct {
	at    time.Time
	apply func()
}

func newBMC(s *Server, m Machine) *BMC {
	return &BMC{
		server: s, name: m.Name, reserved: -1, machine: m, hostname: m.Hostname, powered: !m.PoweredOff, firstNIC: m.FirstNIC,
		ntp:      ntpState{m.NTPEnabled, append([]string(nil), m.NTPServers...)},
		sessions: map[string]*session{}, tasks: map[string]*task{},
	}
}

func newFile(fd int) *os.File { return os.NewFile(uintptr(fd), "bmctest") }

func (b *BMC) now() time.Time { return b.server.opt.Now() }

// settle lets changes take effect whose time has come.
func (b *BMC) settle() {
	var left []lateChange
	for _, c := range b.late {
		if c.at.After(b.now()) {
			left = append(left, c)
			continue
		}
		c.apply()
	}
	b.late = left
}

// Hostname is the host name that the BMC has now.
func (b *BMC) Hostname() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return b.hostname
}

// NTP is what the BMC has now.
func (b *BMC) NTP() (enabled bool, servers []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	for _, s := range b.ntp.servers {
		if s != "" { // an iDRAC has three places
			servers = append(servers, s)
		}
	}
	return b.ntp.enabled, servers
}

// Powered tells whether the host is on.
func (b *BMC) Powered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.powered
}

// Sessions is how many sessions are open.
func (b *BMC) Sessions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire()
	return len(b.sessions)
}

// EndSessions forgets all sessions, as a reset of the BMC does.
func (b *BMC) EndSessions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions = map[string]*session{}
}

// Accepts tells whether the BMC would take a login, without trying one.
func (b *BMC) Accepts(user, password string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.isLocked() && user == b.machine.User && password == b.machine.Password
}

// FailedLogins is how many logins failed since the last good one.
func (b *BMC) FailedLogins() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures
}

// Change changes the machine behind the BMC: another password, serial number or
// profile. Host name, NTP, power and boot order of a running BMC have setters
// of their own.
func (b *BMC) Change(change func(*Machine)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.machine)
}

// SetHostname sets the host name as a person would at the BMC's web page.
func (b *BMC) SetHostname(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hostname = name
}

// SetNTP sets the time servers as a person would.
func (b *BMC) SetNTP(enabled bool, servers ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ntp = ntpState{enabled, append([]string(nil), servers...)}
}

// SetFirstNIC puts a NIC (from 1) first in the boot order, or the disk (0).
func (b *BMC) SetFirstNIC(nic int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.firstNIC = nic
}

func trimSlash(path string) string {
	if path == "/" {
		return path
	}
	return strings.TrimSuffix(path, "/")
}
