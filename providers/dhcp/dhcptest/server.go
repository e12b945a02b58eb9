// Package dhcptest is a DHCP server machine in one process: sshd with an SFTP
// subsystem, a shell that knows the commands of package dhcp and no others, sudo,
// systemd with one unit, its journal, and one of three DHCP servers: dnsmasq with
// a dhcp-hostsdir, Kea with its control agent, or ISC dhcpd. It is the simulator for tests and the embedded lab, in the style of httptest.
//
// Texts, statuses and orders were taken from Debian 12 with dnsmasq 2.90, Kea 2.2,
// ISC dhcpd 4.4.3 and OpenSSH 9.2. The SFTP server is its own, because that of pkg/sftp lets neither
// the extensions nor the point at which an answer is lost be chosen per server.
// Every login, command and SFTP request is one exchange of the recorder.
package dhcptest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// Options say what machine it is. The zero value is a healthy one.
type Options struct {
	// Now is the machine's clock. Default: time.Now.
	Now func() time.Time
	// Recorder records exchanges and injects faults. Default: an own one.
	Recorder *exchange.Recorder
	User     string // the account that may log in; default "enroll"
	// Service is "dnsmasq", "kea" or "isc"; default "dnsmasq".
	Service string
	// IPv6 makes Kea and ISC DHCPv6 servers, of 2001:db8::/64.
	IPv6 bool
	// Directory holds the reservations, owned by User; default by service:
	// "/etc/enroll-hosts.d", which is dnsmasq's dhcp-hostsdir, "/etc/kea/enroll.d" or
	// "/etc/dhcp/enroll.d".
	Directory string
	Unit      string // default by service, as in Debian
	// Main is the server's main configuration; default: one that serves 192.0.2.0/24
	// and 198.51.100.0/24 and, for Kea and ISC, includes an index in Directory, which
	// is then there and empty.
	Main string
	// Static are dhcp-host lines of dnsmasq's own configuration: MAC,address,name.
	Static []string
	// HostKeys of sshd. Default: a fresh ed25519 and a fresh RSA key. Making an
	// RSA key takes a while; tests with many servers share keys, see NewHostKeys.
	HostKeys []ssh.Signer
	// DeviceOf names the device that a file belongs to, for the records.
	DeviceOf  func(path string) string
	Behaviour Behaviour
}

// Behaviour is what differs from a healthy machine. It can be changed while the
// machine runs, see Server.Set.
type Behaviour struct {
	Banner  string // shown before the login
	Profile string // what the account's profile prints before every command

	NoPosixRename, NoFsync, NoStatVFS bool // SFTP extensions that are missing
	NoHash                            bool // there is no sha256sum
	NoShell, NoSFTP                   bool // the account is limited to the other
	NoLogin                           bool // the account's key was removed
	NoForwarding                      bool // sshd forwards nothing
	Frozen                            bool // sshd answers no keepalive any more
	NoJournal                         bool // the account may not read the journal
	NoSystemd                         bool // systemd is not process 1
	NoSudo                            bool // the account has no sudo rule
	NoControl                         bool // Kea's control agent does not run
	DieOnReload                       bool // the server ends when it is reloaded or restarted, and nothing says so

	// What the server does with a configuration that has this MAC although its own
	// check passes it. Zero: nothing.
	Refuses plan.MAC // it does not start; Kea's reload says no, and nobody is served
	DiesOf  plan.MAC // it starts, and ends two seconds later
	DeafTo  plan.MAC // Kea: the reload says yes, and nobody is served

	LostReload bool // Kea: the reload says yes, and nothing was loaded
	OldReload  bool // Kea: the reload says yes and is noted, and the old reservations stay

	StepsBack     time.Duration // the clock is put back so far at the next reload or restart, once
	HangRestart   bool          // restart and reload do not come back
	NoLink        bool          // SFTP: no hard links
	ReadOnly      bool          // nothing can be written
	FullAtClose   bool          // the disk turns out to be full when a file is closed
	SymlinkFolder bool          // the folder of the reservations is a symbolic link
	Full          bool          // no byte more fits on the disk
	FreeBytes     int           // with Full: what still fits
}

// Server is the machine. All methods may be called from any goroutine.
type Server struct {
	// Host, Port and User are where and as whom one logs in; IdentityPEM is the
	// private key, in OpenSSH's form, that may. KnownHosts are the lines of the
	// host keys that the machine was made with.
	Host        string
	Port        int
	User        string
	IdentityPEM []byte
	KnownHosts  []byte
	// Wire is where DHCP messages of relay agents are answered.
	Wire netip.AddrPort

	options  Options
	booted   time.Time
	listener net.Listener
	wire     *net.UDPConn
	recorder *exchange.Recorder
	closed   chan struct{}
	wait     sync.WaitGroup

	mu        sync.Mutex      // guards all that follows
	allowed   []ssh.PublicKey // the account's authorized_keys
	config    *ssh.ServerConfig
	last      time.Time     // what now said last
	putBack   time.Duration // how far the clock was put back so far
	behaviour Behaviour
	tree      tree
	daemon    daemon
	watchers  []func()
	changed   bool
	conns     map[*conn]bool
}

// NewHostKeys makes an RSA and an ed25519 key, of the three that a Debian sshd
// has. ECDSA's would show nothing that these two do not.
func NewHostKeys() []ssh.Signer {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic("dhcptest: " + err.Error())
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic("dhcptest: " + err.Error())
	}
	return []ssh.Signer{signer(rsaKey), signer(edKey)} // sshd's own order
}

func signer(key any) ssh.Signer {
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		panic("dhcptest: " + err.Error()) // no other key gets here
	}
	return s
}

// New starts the machine on a loopback port of the kernel's choice. Like
// httptest.NewServer it panics when there is no port.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the machine's real clock is the default
	}
	if o.Recorder == nil {
		o.Recorder = exchange.NewRecorder(o.Now, nil)
	}
	if o.User == "" {
		o.User = "enroll"
	}
	if o.Service == "" {
		o.Service = serviceDnsmasq
	}
	form := formOf(o.Service, o.IPv6)
	if o.Directory == "" {
		o.Directory = form.directory
	}
	if o.Unit == "" {
		o.Unit = form.unit
	}
	if o.Main == "" {
		o.Main = form.main(o.Directory)
	}
	if len(o.HostKeys) == 0 {
		o.HostKeys = NewHostKeys()
	}
	_, client, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic("dhcptest: " + err.Error())
	}
	block, err := ssh.MarshalPrivateKey(client, "enroll")
	if err != nil {
		panic("dhcptest: " + err.Error())
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic("dhcptest: " + err.Error())
	}
	at := listener.Addr().(*net.TCPAddr)
	s := &Server{
		Host: at.IP.String(), Port: at.Port, User: o.User, IdentityPEM: pem.EncodeToMemory(block),
		options: o, booted: o.Now().Add(-24 * time.Hour), listener: listener, allowed: []ssh.PublicKey{signer(client).PublicKey()}, recorder: o.Recorder,
		closed: make(chan struct{}), behaviour: o.Behaviour, conns: map[*conn]bool{},
	}
	for _, key := range o.HostKeys {
		s.KnownHosts = append(s.KnownHosts, s.KnownHostsLine(key.PublicKey().Type())...)
	}
	s.tree = newTree(s.now(), o.User, o.Directory)
	s.config = s.sshConfig(o.HostKeys)
	s.install()
	s.startDaemon()
	if s.wire, err = net.ListenUDP("udp4", &net.UDPAddr{IP: at.IP}); err != nil {
		panic("dhcptest: " + err.Error())
	}
	s.Wire = s.wire.LocalAddr().(*net.UDPAddr).AddrPort()
	s.wait.Add(2)
	go s.accept()
	go s.answerWire()
	return s
}

// now is the machine's clock: that of the options, and no two looks show the
// same microsecond, so that a log has an order on a clock that stands still.
// It is called with the lock held, or before there is anybody else.
func (s *Server) now() time.Time {
	t := s.options.Now().Add(-s.putBack)
	if least := s.last.Add(time.Microsecond); t.Before(least) {
		t = least
	}
	s.last = t
	return t
}

// stepBack puts the clock back, if it is due.
func (s *Server) stepBack() {
	s.putBack += s.behaviour.StepsBack
	if s.behaviour.StepsBack > 0 {
		s.last = time.Time{}
	}
	s.behaviour.StepsBack = 0
}

// Close ends the machine and all its connections.
func (s *Server) Close() error {
	close(s.closed)
	err := errors.Join(s.listener.Close(), s.wire.Close())
	s.mu.Lock()
	for c := range s.conns {
		_ = c.tcp.Close() // ends its goroutines
	}
	s.mu.Unlock()
	s.wait.Wait()
	return err
}

// Set changes the machine's behaviour.
func (s *Server) Set(change func(*Behaviour)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.behaviour)
}

// Cut resets every open connection, as a reboot of a firewall would.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.reset()
	}
}

// Recorder is the machine's recorder.
func (s *Server) Recorder() *exchange.Recorder { return s.recorder }

// Addr is where sshd listens, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Deadline is each of the four deadlines of Settings.
const Deadline = 20 * time.Second

// Settings are the dhcp block of a site with this machine, with short deadlines.
func (s *Server) Settings() plan.DHCPSettings {
	return plan.DHCPSettings{
		Host: s.Host, Port: s.Port, User: s.User,
		Service: s.options.Service, Directory: s.options.Directory, Unit: s.options.Unit, NameSuffix: "-bmc",
		Config: s.form().config, IPv6: s.options.IPv6,
		Timeouts: plan.DHCPTimeouts{Connect: Deadline, Login: Deadline, Command: Deadline, Transfer: Deadline},
		Settle:   time.Second,
	}
}

// KnownHostsLine is the known_hosts line of the machine's first key of a type
// ("ssh-ed25519"), with its newline; empty when it was made without one.
func (s *Server) KnownHostsLine(keyType string) []byte {
	for _, signer := range s.options.HostKeys {
		if key := signer.PublicKey(); key.Type() == keyType {
			return []byte(knownhosts.Line([]string{s.Addr()}, key) + "\n")
		}
	}
	return nil
}

// Authorize adds a key to the account's authorized_keys.
func (s *Server) Authorize(key ssh.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = append(s.allowed, key)
}

// ChangeHostKeys gives the machine new host keys, as a reinstallation does.
// KnownHosts keeps the old ones. Open connections live on.
func (s *Server) ChangeHostKeys(keys ...ssh.Signer) {
	if len(keys) == 0 {
		keys = NewHostKeys()
	}
	config := s.sshConfig(keys)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = config
}

var errRefused = errors.New("the key is not in authorized_keys")

func (s *Server) sshConfig(keys []ssh.Signer) *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u10",
		BannerCallback: func(ssh.ConnMetadata) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.behaviour.Banner
		},
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.behaviour.NoLogin || meta.User() != s.options.User || !slices.ContainsFunc(s.allowed, func(k ssh.PublicKey) bool { return bytes.Equal(key.Marshal(), k.Marshal()) }) {
				return nil, errRefused
			}
			return &ssh.Permissions{}, nil
		},
	}
	for _, key := range keys {
		config.AddHostKey(key)
	}
	return config
}

// OnChange calls f whenever dnsmasq's table may have changed. f may call the
// server's methods.
func (s *Server) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, f)
}

// locked runs do with the machine's lock and tells the watchers afterwards.
func (s *Server) locked(do func()) {
	s.mu.Lock()
	do()
	var tell []func()
	if s.changed {
		s.changed = false
		tell = append(tell, s.watchers...)
	}
	s.mu.Unlock()
	for _, f := range tell {
		f()
	}
}
