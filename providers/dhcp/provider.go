// Package dhcp keeps the DHCP reservations of BMCs on the site's DHCP server:
// one file per device, written over SFTP, made live by a reload or a restart over
// SSH. It serves Kea, ISC dhcpd and dnsmasq with dhcp-hostsdir; what is peculiar
// about one of them stands in the file of its flavour.
//
// What they have in common, or with SSH, and what the code does about it:
//
//   - dnsmasq reads a file the moment it is closed or renamed into the folder,
//     under any name that does not begin with ".", end with "~" or stand between
//     two "#". Temporary files and the pending marker therefore begin with a dot.
//   - What it read before stays in force until a reload: a replaced file adds a
//     second entry, a removed one takes nothing away. A file that is written again
//     with its old address is even refused ("duplicate dhcp-host IP address").
//     Only the log after a reload tells the truth, so only that is judged.
//   - An address that stands in two files is given to the one read first, and
//     the order is undefined: an innocent host loses its address at the next
//     restart. No validator notices. Neighbours are therefore read with every look.
//   - An upload whose reload never happened leaves the right file and the wrong
//     service. The marker .enroll-pending is written before the first upload and
//     removed after the health check; who finds it reloads.
//   - A user's PATH over SSH lacks /usr/sbin, the login shell may be anything and
//     its profile may print: every command is one /bin/sh script that sets its
//     own PATH and brackets its answers with a random mark.
package dhcp

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/netip"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
)

// Options are the provider's ties to the world; the zero value is the real one.
type Options struct {
	// Dial opens the TCP connection. Default: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Random is where names of temporary files and marks come from. Default: crypto/rand.
	Random io.Reader
	// Keepalive is how often the server is asked for a sign of life, and how long
	// it has to give one. Default: 15 s.
	Keepalive time.Duration
	// Owner is who this run is, for whoever finds its lock. The plan may be named
	// later, see Applying.
	Owner Holder
	// LockTimeout is how long a step waits for a lock that somebody else holds.
	// Default: ten minutes, which is longer than the lease of one whose holder died.
	LockTimeout time.Duration
	// Now is the clock of what is written into the lock. Default: time.Now.
	Now func() time.Time
	// After calls f after a pause, in a goroutine of its own, until stop is called:
	// every deadline, and every pause between two signs of life, is one. Default:
	// time.AfterFunc.
	After func(pause time.Duration, f func()) (stop func() bool)
}

// Provider reads and writes the reservations of one site. It keeps one SSH
// connection with one SFTP client, opened at the first use and again after it
// was lost; exchanges take turns on it. It fulfils providers.Reader, Runner and
// Closer.
type Provider struct {
	settings plan.DHCPSettings
	flavour  flavour
	address  string // host:port
	hops     []hop  // how it is reached; the last is the server
	options  Options
	hosts    *knownHosts
	signer   ssh.Signer // nil: the agent's keys only; gone with Close
	agent    string     // the agent's socket

	turn      chan struct{} // holds one token: who has it may use what follows
	link      *link         // nil while there is no connection
	litter    []string      // temporary files that a lost connection kept this run from removing
	token     string        // of the lock, made once
	held      bool          // the lock was this run's when it was last looked at
	forgotten bool          // the key went with Close
	requests  atomic.Int64

	mu       sync.Mutex // guards what follows
	queue    []*job     // reservations that wait to be written
	asks     []*ask     // reads that wait for a look
	beating  bool       // signs of life are given for the lock
	stopBeat func() bool
}

// New checks settings and credentials; it does not connect. Errors are faults:
// CONFIG_INVALID for what the site file says, SECRET_INVALID for a key that
// cannot be used.
func New(settings plan.DHCPSettings, credentials Credentials, options Options) (*Provider, error) {
	settings = withDefaults(settings)
	fl, f := checkSettings(settings)
	if f != nil {
		return nil, f
	}
	way, f := hops(settings)
	if f != nil {
		return nil, f
	}
	signer, f := parseIdentity(settings, credentials)
	if f != nil {
		return nil, f
	}
	hosts, f := parseKnownHosts(credentials.KnownHosts)
	if f != nil {
		return nil, f
	}
	if options.Dial == nil {
		options.Dial = new(net.Dialer).DialContext
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Keepalive <= 0 {
		options.Keepalive = defaultKeepalive
	}
	if options.LockTimeout == 0 {
		options.LockTimeout = defaultLockTimeout
	}
	if options.Now == nil {
		options.Now = time.Now //nolint:forbidigo // the real clock is the default
	}
	if options.After == nil {
		options.After = func(pause time.Duration, f func()) func() bool { return time.AfterFunc(pause, f).Stop }
	}
	p := &Provider{
		settings: settings,
		flavour:  fl,
		address:  way[len(way)-1].address,
		hops:     way,
		options:  options,
		hosts:    hosts,
		signer:   signer,
		agent:    credentials.Agent,
		turn:     make(chan struct{}, 1),
	}
	p.turn <- struct{}{}
	return p, nil
}

// Requests counts logins, commands and file operations (one for a whole
// transfer: open, write, sync, close) so far.
func (p *Provider) Requests() int { return int(p.requests.Load()) }

// Close ends the connection and forgets the key: what is asked afterwards is a
// defect. It does not wait for a server that is frozen.
func (p *Provider) Close(ctx context.Context) error {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return plan.NewFault(plan.CodeDHCPUnreachable, "an exchange with %s is still under way", p.address).Because(ctx.Err())
	}
	p.silence()
	f := p.part(ctx)
	p.drop()
	p.signer, p.agent, p.forgotten = nil, "", true
	if f != nil {
		return f
	}
	return nil
}

// part gives the lock back, over a new connection where the old one does not do.
func (p *Provider) part(ctx context.Context) *plan.Fault {
	if !p.held {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, partingTime)
	defer cancel()
	var f *plan.Fault
	for range 2 {
		if p.link == nil {
			p.link, f = p.open(ctx)
		}
		if p.link != nil {
			f = p.release(ctx, p.link, false)
		}
		if f == nil {
			return nil
		}
		p.drop()
	}
	return plan.NewFault(f.Code, "the lock %s on %s could not be given back; it ends by itself %s after it was last touched", p.lockPath(), p.address, leaseOf(p.settings)).
		WithHint("Wait, or enroll doctor --break-dhcp-lock.").Because(f)
}

// partingTime is how long a server may take to give a lock back when the run ends.
const partingTime = 5 * time.Second

// Applying names the plan that is applied, for whoever finds this run's lock, and
// says how long its steps wait for a lock that somebody else holds; zero is the
// default.
func (p *Provider) Applying(planID string, lockTimeout time.Duration) {
	p.options.Owner.Plan = planID
	if lockTimeout > 0 {
		p.options.LockTimeout = lockTimeout
	}
}

// The defaults of what a site file may leave out.
const (
	defaultPort     = 22
	defaultDeadline = 120 * time.Second // the reference workflow's, for each of the four
	defaultSettle   = 3 * time.Second   // some die two seconds after their start

	defaultKeepalive   = 15 * time.Second
	defaultLockTimeout = 10 * time.Minute
)

func withDefaults(s plan.DHCPSettings) plan.DHCPSettings {
	if s.Port == 0 {
		s.Port = defaultPort
	}
	if fl, ok := flavourOf(&s); ok {
		if s.Unit == "" {
			s.Unit = fl.unit
		}
		if s.Config == "" {
			s.Config = fl.config
		}
		if s.Apply == "" {
			s.Apply = fl.apply
		}
	}
	if s.Control == "" {
		s.Control = defaultControl
	}
	if s.Settle <= 0 {
		s.Settle = defaultSettle
	}
	for _, d := range []*time.Duration{&s.Timeouts.Connect, &s.Timeouts.Login, &s.Timeouts.Command, &s.Timeouts.Transfer} {
		if *d <= 0 {
			*d = defaultDeadline
		}
	}
	return s
}

var (
	safePath = regexp.MustCompile(`^/[A-Za-z0-9._/-]+$`)
	safeUnit = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:_.@-]*$`)
	safeHost = regexp.MustCompile(`^[A-Za-z0-9.:-]+$`)
	// What a reservation's options may say: nothing that ends a statement, a block
	// or a text in one of the servers' languages.
	safeOption = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.-]*$`)
	safeValue  = regexp.MustCompile(`^[ !"$-:=>?-\[\]-z|~]+$`)
	safeUser   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// checkSettings refuses what would have to be escaped in a command. Remote
// names are restricted instead of quoted alone: they also stand in sudoers.
func checkSettings(s plan.DHCPSettings) (flavour, *plan.Fault) {
	invalid := func(format string, args ...any) (flavour, *plan.Fault) {
		return flavour{}, plan.NewFault(plan.CodeConfigInvalid, format, args...)
	}
	fl, known := flavourOf(&s)
	switch {
	case !known:
		return invalid("dhcp service %q: there are dnsmasq, kea and isc", s.Service)
	case s.Host == "":
		return invalid("the dhcp block names no host")
	case s.Port < 1 || s.Port > 65535:
		return invalid("dhcp port %d is no TCP port", s.Port)
	case !safeUser.MatchString(s.User):
		return invalid("dhcp user %q is no account name", s.User)
	case !safeUnit.MatchString(s.Unit):
		return invalid("dhcp unit %q is no systemd unit", s.Unit)
	case !safePath.MatchString(s.Config) || path.Clean(s.Config) != s.Config:
		return invalid("dhcp config %q: want an absolute path of letters, digits and ._/-", s.Config)
	case s.Apply != applyReload && s.Apply != applyRestart, s.Apply == applyReload && s.Service == serviceISC:
		return invalid("dhcp apply %q: %s", s.Apply, map[bool]string{true: "dhcpd can only be restarted", false: "want reload or restart"}[s.Service == serviceISC])
	case s.IPv6 && s.Service == serviceDnsmasq:
		return invalid("DHCPv6 is served with kea and isc, not with dnsmasq")
	case len(s.Options) > 0 && s.Service == serviceDnsmasq:
		return invalid("dnsmasq takes no options in a host's file; set them in its own configuration")
	}
	if f := checkControl(s); f != nil {
		return flavour{}, f
	}
	for _, o := range s.Options {
		if !safeOption.MatchString(o.Name) || !safeValue.MatchString(o.Value) || strings.Count(o.Value, `"`)%2 != 0 {
			return invalid("dhcp option %q with the value %q: names are letters, digits, dots and hyphens; values hold no ; { } # < or backslash and close their quotes", o.Name, o.Value)
		}
	}
	if f := checkDirectory(s.Directory); f != nil {
		return flavour{}, f
	}
	_, f := parseSubnets(s.Subnets, s.IPv6)
	return fl, f
}

// checkControl wants an address or a path where Kea takes commands.
func checkControl(s plan.DHCPSettings) *plan.Fault {
	if safePath.MatchString(s.Control) {
		return nil
	}
	host, port, err := net.SplitHostPort(s.Control)
	if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || n < 1 || n > 65535 || !safeHost.MatchString(host) {
		return plan.NewFault(plan.CodeConfigInvalid, "dhcp control %q is neither HOST:PORT of Kea's control agent nor the absolute path of its socket", s.Control)
	}
	return nil
}

func checkDirectory(dir string) *plan.Fault {
	if !safePath.MatchString(dir) || path.Clean(dir) != dir {
		return plan.NewFault(plan.CodeConfigInvalid, "dhcp directory %q: want an absolute path of letters, digits and ._/- without a slash at the end", dir)
	}
	return nil
}

func parseSubnets(texts []string, v6 bool) ([]netip.Prefix, *plan.Fault) {
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, plan.NewFault(plan.CodeConfigInvalid, "dhcp subnet %q is no prefix such as 192.0.2.0/24", text)
		}
		if prefix.Addr().Is4() != v6 { // those of the other family are another service's
			out = append(out, prefix.Masked())
		}
	}
	return out, nil
}

// writeTemp puts bytes into a file of this machine that is gone when read has
// returned: knownhosts reads only files.
func writeTemp(content []byte, read func(name string) error) (err error) {
	f, err := os.CreateTemp("", "enroll-known-hosts-")
	if err != nil {
		return err
	}
	defer func() {
		if rmErr := os.Remove(f.Name()); err == nil {
			err = rmErr
		}
	}()
	if _, err = f.Write(content); err != nil {
		_ = f.Close() // the write's error says more
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return read(f.Name())
}
