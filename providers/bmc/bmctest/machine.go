package bmctest

import (
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
)

// Machine is a server and its BMC as it is at the beginning.
type Machine struct {
	Name   string // the name under which requests are recorded
	Vendor string // one of the makers; default Generic
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
	StaticIP   bool           // the BMC's interface does not ask DHCP
	BIOS       map[string]any // attributes that differ from what machines of the maker begin with

	NICs []NIC // in slot order
	// FirstNIC is which NIC (from 1) is first in the boot order; 0: the disk is.
	FirstNIC    int
	PoweredOff  bool
	Unreachable bool // the port is closed until SetReachable

	Profile Profile

	// Recording is what a real BMC answered: it is served in the place of the
	// maker's tree, which then gives login, sessions and error bodies only.
	Recording *recording.Recording
}

// NIC is a network port of the host.
type NIC struct {
	MAC plan.MAC
	// Link overrides properties of the NIC as the BMC shows it: LinkStatus,
	// SpeedMbps, Status. Absent leaves one out.
	Link map[string]any
}

// Absent stands for a property that the BMC does not show.
const Absent = absent

const absent = "\x00absent"

// What an iDRAC does with changes of single boot options.
const (
	OptionsMerge  = "merge"  // each becomes part of one job
	OptionsRefuse = "refuse" // the first makes a job, which refuses the next; the empty word: stored, committed by the order's job
)

// Profile is how a BMC behaves beside what its maker sets.
type Profile struct {
	MaxSessions    int           // default 8
	SessionTimeout time.Duration // idle; default 30 min (iDRAC) or 5 min
	LockAfter      int           // failed logins until nothing is accepted any more; default 5, iDRAC 3; -1: never
	LockFor        time.Duration // default 60 s
	TellLockout    bool          // say in the refusal that the account is locked

	PasswordChange     bool // the account must change its password first
	PasswordIgnored    bool // a new password is accepted and not applied
	NoAccounts         bool // accounts are not shown
	NoAccountTypes     bool // generic: accounts have none
	ChangeRefusesLogin bool // while the password must be changed no session is given
	NoSessions         bool // no session service: Basic only
	NoBasic            bool

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

	BootTime    time.Duration // how long POST takes
	Shutdown    time.Duration // how long the operating system takes to obey
	NoOS        bool          // nobody hears the power button
	RestartTime time.Duration // how long the BMC answers nothing after its own reset
	WarmupTime  time.Duration // and how long after that it answers 503 to all but the root
	LCPolls     int           // iDRAC: looks after that which find the Lifecycle Controller not ready
	// NewCertificate: the BMC makes itself a new certificate when it is reset.
	NewCertificate bool

	// The Lifecycle Controller of an iDRAC.
	JobPolls          int    // looks until a job is scheduled
	JobsNeverSchedule bool   // it stays New
	JobFails          bool   // it fails at the boot
	NoJobLocation     bool   // a change is accepted without naming its job
	OptionJobs        string // OptionsMerge, OptionsRefuse or empty
	BIOSEcho          bool   // /Bios shows values before they are applied
	BootOnSettings    bool   // iDRAC 10: the order is written at /Settings only
	NoSystemSettings  bool   // firmware 6: the system names no settings object

	BIOSIgnored []string // attributes that are accepted and not applied
	BootIgnored bool     // an order that is accepted and not applied
	NoBIOS      bool
	// NoBIOSLink: the BIOS does not name its settings object.
	NoBIOSLink      bool
	BIOSItself      bool   // Supermicro: the settings object can only be read, the BIOS itself takes changes
	RegistryVersion string // the BIOS names its registry with it, the list of registries without
	RulesLive       bool   // rules between BIOS attributes are held against live values, not those of the request
	NoBootProgress  bool   // Supermicro X11: nothing tells how far a boot is
	NoHostNICs      bool   // the system lists no interfaces
	NoNetworkOrder  bool   // XCC: no network boot order
	KCSWords        bool   // XCC: KCSEnabled is a word
	NoSyslog        bool   // no licence: it is not there
	NoLicence       bool   // Supermicro: it is there and refused
	BoardVendor     string // AMI: Vendor of the root
	NullVendor      bool   // Supermicro: Vendor is null
	NoVendor        bool   // generic: neither Vendor nor Product
	// NoGracefulRestart: the host's reset knows the hard types only.
	NoGracefulRestart bool
	Refuse            string // every change is refused with this message

	NoTimeZone bool // the manager tells none
	ZoneName   bool // generic: it has a name of the IANA, not an offset
	NoZoneName bool // Supermicro X11: it has an offset, not a name

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
	if m.Recording != nil {
		m.Vendor = m.Recording.Family
		m.Profile.NoSessions = !m.Recording.HasSessions()
	}
	if m.Vendor == "" {
		m.Vendor = Generic
	}
	made, ok := makers()[m.Vendor]
	if !ok {
		panic("bmctest: no such maker: " + m.Vendor)
	}
	if m.Name == "" || m.User == "" || m.Password == "" || m.FirstNIC > len(m.NICs) {
		panic("bmctest: a machine needs a name, a user and a password, and FirstNIC must be one of its NICs")
	}
	if m.ServiceTag == "" {
		m.ServiceTag = m.Serial
	}
	if m.Model == "" {
		m.Model = made.model
	}
	if m.Hostname == "" {
		m.Hostname = "bmc"
		if m.Vendor == IDRAC {
			m.Hostname = "idrac-" + m.ServiceTag
		}
	}
	p := &m.Profile
	if p.MaxSessions == 0 {
		p.MaxSessions = 8
	}
	if p.SessionTimeout == 0 {
		p.SessionTimeout = made.idle
	}
	if p.LockAfter == 0 {
		p.LockAfter = made.lockAfter
	}
	p.RequireIfMatch = p.RequireIfMatch || made.ifMatch
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
	maker  maker
	name   string
	port   int

	listening sync.Mutex // guards the five below
	reserved  int        // descriptor that holds the port while nothing listens; -1: none
	pipes     *pipes
	http      *http.Server
	serving   sync.WaitGroup

	certs sync.Mutex       // guards cert
	cert  *tls.Certificate // nil: the fleet's

	mu       sync.Mutex // guards all below
	machine  Machine
	hostname string
	ntp      ntpState
	dhcp     bool
	asset    string
	values   map[string]any // settings that are one value
	attrs    map[string]any // of an iDRAC
	host     hostState

	bios, pendingBIOS map[string]any
	options           []option
	order             []string
	pendingOrder      []string
	disabled          map[string]bool // by reference
	pendingOff        map[string]bool
	jobs              []*job
	nextJob           int
	recipients        map[string]object // of an XCC
	slots, nextSlots  []string          // XCC's network boot order
	listed            bool              // XCC: its boot settings were listed

	restarts      int
	restarted     time.Time
	away, warming time.Time // the BMC itself starts
	lcPolls       int       // looks that find the Lifecycle Controller not ready

	users           []*user // beside the machine's own
	passwordChanges int

	late     []lateChange
	sessions map[string]*session // by id
	nextID   int
	failed   map[string]*failures // by account; an iDRAC counts addresses, and has one
	lockouts int
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
	b := &BMC{
		server: s, maker: makers()[m.Vendor], name: m.Name, reserved: -1, machine: m, hostname: m.Hostname, dhcp: !m.StaticIP,
		ntp:      ntpState{m.NTPEnabled, append([]string(nil), m.NTPServers...)},
		sessions: map[string]*session{}, failed: map[string]*failures{}, tasks: map[string]*task{}, recipients: map[string]object{}, disabled: map[string]bool{}, pendingOff: map[string]bool{},
		values: map[string]any{
			"http": true, "ssh": true, "ipmi": false, "ssdp": true, "snmp": true, "tls": "TLSLevel1_0", "rollback": true, "kcs": true, "offset": "-05:00", "saving": false, "lockdown": false, "firstaccess": false,
			"lockout": 0, "lockoutfor": 0, "rmedia": false, "syslog": false, "syslogserver": "", "syslogport": 0, "zone": "(UTC-06:00) Central Time",
		},
	}
	if m.Profile.KCSWords {
		b.values["kcs"] = "Enabled"
	}
	b.host.powered, b.host.last, b.restarted = !m.PoweredOff, s.opt.Now(), s.opt.Now()
	b.startDell()
	b.startBIOS()
	b.makeOptions()
	b.order = b.orderFrom(m.FirstNIC)
	for i := range m.NICs {
		b.slots = append(b.slots, b.slot(i))
	}
	return b
}

func newFile(fd int) *os.File { return os.NewFile(uintptr(fd), "bmctest") }

func (b *BMC) now() time.Time { return b.server.opt.Now() }

// settle lets changes take effect whose time has come.
func (b *BMC) settle() {
	due := b.late
	b.late = nil // one that takes effect may bring another
	for _, c := range due {
		if c.at.After(b.now()) {
			b.late = append(b.late, c)
			continue
		}
		c.apply()
	}
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
	return !b.isLocked(user) && user == b.machine.User && password == b.machine.Password
}

// FailedLogins is how many logins of the machine's account failed since the last
// good one, on an iDRAC of all accounts.
func (b *BMC) FailedLogins() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failuresOf(b.machine.User).count
}

// Lockouts is how often an account, or an address, was shut out.
func (b *BMC) Lockouts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lockouts
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

// Value is a setting that is one value: http, ssh, ssdp, snmp, ipmi, tls, kcs,
// rollback, lockout, lockoutfor, rmedia, syslog, syslogserver, syslogport, zone,
// offset, saving, lockdown, firstaccess.
func (b *BMC) Value(name string) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return b.values[name]
}

// SetValue sets it as a person would.
func (b *BMC) SetValue(name string, value any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	b.values[name] = value
}

// SetAttribute sets an attribute of an iDRAC as a person would.
func (b *BMC) SetAttribute(name string, value any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	b.attrs[name] = value
}

// Attribute is an attribute of an iDRAC.
func (b *BMC) Attribute(name string) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return b.attributes()[name]
}

// Vendor is the maker of the BMC.
func (b *BMC) Vendor() string { return b.machine.Vendor }

// Recipients are the addresses to which an XCC sends its log, in the order of
// their ids.
func (b *BMC) Recipients() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, id := range sorted(b.recipients) {
		settings, _ := b.recipients[id]["RecipientSettings"].(object)
		out = append(out, text(settings["Address"]))
	}
	return out
}

// DropRecipients forgets to whom an XCC sends its log, as a person would.
func (b *BMC) DropRecipients() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recipients = map[string]object{}
}

// SetDHCP sets it as a person would.
func (b *BMC) SetDHCP(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dhcp = on
}

// DHCP tells whether the BMC's interface asks DHCP for its address.
func (b *BMC) DHCP() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return b.dhcp
}

func trimSlash(path string) string {
	if path == "/" {
		return path
	}
	return strings.TrimSuffix(path, "/")
}
