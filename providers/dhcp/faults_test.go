package dhcp_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// TestStall: a server that stops answering at one exchange.
func TestStall(t *testing.T) {
	for _, service := range services {
		for _, method := range []string{"ssh.login", "ssh.exec", "sftp.init", "sftp.open", "sftp.write", "sftp.fsync", "sftp.posix-rename", "sftp.remove"} {
			t.Run(service+"/"+method, func(t *testing.T) {
				t.Parallel()
				b := newStalling(t, dhcptest.Options{Service: service, HostKeys: hostKeys()[1:]}, device(1))
				b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: method, Times: 1})
				b.wantFault(b.converge(b.p), plan.CodeDHCPUnreachable, dhcptest.Deadline.String())
				if f := b.converge(b.p); f != nil { // the same run goes on
					t.Fatal(f)
				}
				b.settled()
			})
		}
	}
}

// ending is a context that the test ends, in the way that it chooses.
type ending struct {
	context.Context
	err  error
	over chan struct{}
}

func (e *ending) Done() <-chan struct{} { return e.over }

func (e *ending) Err() error {
	select {
	case <-e.over:
		return e.err
	default:
		return nil
	}
}

// TestInterrupted: the caller gives up in the middle of a transfer.
func TestInterrupted(t *testing.T) {
	var giveUp atomic.Pointer[func()]
	c := newClock()
	b := newBench(t, dhcptest.Options{Now: c.now, Recorder: exchange.NewRecorder(c.now, when{`"fault":"stall"`: func() { (*giveUp.Load())() }})}, device(1))
	b.clock = c
	pl := b.look(b.p)
	for _, end := range []struct {
		method string
		err    error
		code   plan.Code
	}{
		{"sftp.write", context.Canceled, plan.CodeInterrupted},
		{"ssh.login", context.DeadlineExceeded, plan.CodeTimeout},
	} {
		ctx := &ending{Context: context.Background(), err: end.err, over: make(chan struct{})}
		f := func() { close(ctx.over) }
		giveUp.Store(&f)
		b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: end.method, Times: 1})
		b.wantFault(b.p.Run(ctx, b.scope, pl.Steps[0], nil).Fault, end.code)
	}
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	b.settled()
}

// TestLogin: ways in which there is no login.
func TestLogin(t *testing.T) {
	ed, other := func(b *bench) []byte { return b.srv.KnownHostsLine("ssh-ed25519") }, dhcptest.NewHostKeys()
	for name, c := range map[string]struct {
		arrange func(*bench, *dhcp.Credentials)
		code    plan.Code
		words   []string
	}{
		"unknown host key": {func(_ *bench, c *dhcp.Credentials) {
			c.KnownHosts = []byte(strings.ReplaceAll(string(c.KnownHosts), "127.0.0.1", "192.0.2.200"))
		}, plan.CodeDHCPHostKeyUnknown, []string{"SHA256:", "line to add"}},
		"changed host key":                 {func(b *bench, _ *dhcp.Credentials) { b.srv.ChangeHostKeys(other...) }, plan.CodeDHCPHostKeyChanged, []string{"expected: ", "shown: ", "known_hosts line: 1: "}},
		"changed to a key of another type": {func(b *bench, c *dhcp.Credentials) { c.KnownHosts = ed(b); b.srv.ChangeHostKeys(other[0]) }, plan.CodeDHCPHostKeyChanged, []string{"ssh-rsa", "ssh-ed25519"}},
		"revoked host key": {func(_ *bench, c *dhcp.Credentials) {
			c.KnownHosts = append(c.KnownHosts, []byte("@revoked "+strings.ReplaceAll(strings.TrimSpace(string(c.KnownHosts)), "\n", "\n@revoked ")+"\n")...)
		}, plan.CodeDHCPHostKeyChanged, []string{"revokes"}},
		"refused":    {func(b *bench, _ *dhcp.Credentials) { b.srv.Set(func(m *dhcptest.Behaviour) { m.NoLogin = true }) }, plan.CodeDHCPLoginRefused, []string{"enroll", "SHA256:", "authorized_keys"}},
		"wrong user": {func(b *bench, _ *dhcp.Credentials) { b.scope.Site.DHCP.User = "nobody" }, plan.CodeDHCPLoginRefused, []string{`"nobody"`}},
		"nobody listens": {func(b *bench, c *dhcp.Credentials) {
			b.scope.Site.DHCP.Port = 1
			c.KnownHosts = []byte(strings.ReplaceAll(string(c.KnownHosts), fmt.Sprint(b.srv.Port), "1"))
		}, plan.CodeDHCPUnreachable, []string{"127.0.0.1:1", "refused"}},
		"no SSH there": {func(b *bench, _ *dhcp.Credentials) {
			b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Garbage, Method: "ssh.login"})
		}, plan.CodeDHCPUnreachable, []string{"handshake"}},
		"only SFTP":      {func(b *bench, _ *dhcp.Credentials) { b.srv.Set(func(m *dhcptest.Behaviour) { m.NoShell = true }) }, plan.CodeDHCPCommand, []string{"refuses to run commands"}},
		"folder missing": {func(b *bench, _ *dhcp.Credentials) { b.srv.RemoveFile(dir) }, plan.CodeDHCPCommand, []string{dir, "dhcp-hostsdir"}},
		"no systemd":     {func(b *bench, _ *dhcp.Credentials) { b.srv.Set(func(m *dhcptest.Behaviour) { m.NoSystemd = true }) }, plan.CodeDHCPCommand, []string{"not been booted with systemd"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{}, device(1))
			credentials := b.credentials()
			c.arrange(b, &credentials)
			p, err := dhcp.New(*b.scope.Site.DHCP, credentials, dhcp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close(context.Background()) }()
			f := fault(b.look(p))
			b.wantFault(f, c.code, c.words...)
			if strings.Contains(f.Error(), "PRIVATE KEY") {
				t.Error("the fault holds the key")
			}
		})
	}
	t.Run("one key type on file", func(t *testing.T) {
		for _, keyType := range []string{"ssh-ed25519", "ssh-rsa"} {
			b := newBench(t, dhcptest.Options{}, device(1))
			b.srv.KnownHosts = b.srv.KnownHostsLine(keyType)
			if f := b.converge(b.connect()); f != nil {
				t.Errorf("%s: %v", keyType, f)
			}
		}
	})
}

// TestNew: what is refused before any connection.
func TestNew(t *testing.T) {
	b := newBench(t, dhcptest.Options{})
	for name, c := range map[string]struct {
		change func(*plan.DHCPSettings, *dhcp.Credentials)
		code   plan.Code
	}{
		"service":    {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Service = "udhcpd" }, plan.CodeConfigInvalid},
		"apply":      {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Apply = "hope" }, plan.CodeConfigInvalid},
		"ISC reload": {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Service, s.Apply = "isc", "reload" }, plan.CodeConfigInvalid},
		"dnsmasq v6": {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.IPv6, s.Subnets = true, nil }, plan.CodeConfigInvalid},
		"control":    {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Service, s.Control = "kea", "somewhere" }, plan.CodeConfigInvalid},
		"config":     {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Service, s.Config = "kea", "/etc/kea/../x" }, plan.CodeConfigInvalid},
		"option": {func(s *plan.DHCPSettings, _ *dhcp.Credentials) {
			s.Service, s.Options = "isc", []plan.DHCPOption{{Name: "x", Value: "1; } host y {"}}
		}, plan.CodeConfigInvalid},
		"option of dnsmasq": {func(s *plan.DHCPSettings, _ *dhcp.Credentials) {
			s.Options = []plan.DHCPOption{{Name: "x", Value: "1"}}
		}, plan.CodeConfigInvalid},
		"no host":   {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Host = "" }, plan.CodeConfigInvalid},
		"port":      {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Port = 70000 }, plan.CodeConfigInvalid},
		"user":      {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.User = "-oProxyCommand=x" }, plan.CodeConfigInvalid},
		"unit":      {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Unit = "a; reboot" }, plan.CodeConfigInvalid},
		"directory": {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Directory = "/etc/$(x)" }, plan.CodeConfigInvalid},
		"relative":  {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Directory = "hosts.d" }, plan.CodeConfigInvalid},
		"subnet":    {func(s *plan.DHCPSettings, _ *dhcp.Credentials) { s.Subnets = []string{"192.0.2.1"} }, plan.CodeConfigInvalid},
		"no key":    {func(_ *plan.DHCPSettings, c *dhcp.Credentials) { c.Identity = plan.Secret{} }, plan.CodeSecretInvalid},
		"cut key": {func(_ *plan.DHCPSettings, c *dhcp.Credentials) {
			c.Identity = plan.NewSecret(c.Identity.Reveal()[:90], "")
		}, plan.CodeSecretInvalid},
		"no known hosts": {func(_ *plan.DHCPSettings, c *dhcp.Credentials) { c.KnownHosts = []byte("# none\n") }, plan.CodeConfigInvalid},
		"bad known hosts": {func(_ *plan.DHCPSettings, c *dhcp.Credentials) {
			c.KnownHosts = append(c.KnownHosts, "dhcp1 ssh-ed25519 AAAA\n"...)
		}, plan.CodeConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			settings, credentials := b.srv.Settings(), b.credentials()
			c.change(&settings, &credentials)
			_, err := dhcp.New(settings, credentials, dhcp.Options{})
			b.t = t
			b.wantFault(plan.AsFault(err), c.code)
		})
	}
}

// TestTransfer: a server that cannot take the file.
func TestTransfer(t *testing.T) {
	set := func(change func(*dhcptest.Behaviour)) func(*bench) {
		return func(b *bench) { b.srv.Set(change) }
	}
	for name, c := range map[string]struct {
		arrange func(*bench)
		code    plan.Code
		words   []string
	}{
		"disk full":        {set(func(m *dhcptest.Behaviour) { m.Full = true }), plan.CodeDHCPTransfer, []string{"free bytes: 0"}},
		"disk full later":  {set(func(m *dhcptest.Behaviour) { m.Full, m.FreeBytes = true, 80 }), plan.CodeDHCPTransfer, []string{"free bytes"}},
		"not our folder":   {func(b *bench) { b.srv.Chown(dir, "root", 0o755) }, plan.CodeDHCPTransfer, []string{"chown"}},
		"no posix-rename":  {set(func(m *dhcptest.Behaviour) { m.NoPosixRename = true }), plan.CodeDHCPTransfer, []string{"posix-rename", "Nothing was written"}},
		"no SFTP":          {set(func(m *dhcptest.Behaviour) { m.NoSFTP = true }), plan.CodeDHCPTransfer, []string{"sftp"}},
		"reload forbidden": {set(func(m *dhcptest.Behaviour) { m.NoSudo = true }), plan.CodeDHCPCommand, []string{"a password is required", "NOPASSWD: /usr/bin/systemctl reload dnsmasq"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{}, device(1))
			c.arrange(b)
			f := b.converge(b.p)
			b.wantFault(f, c.code, c.words...)
			if temps := b.temps(); len(temps) != 0 {
				t.Errorf("left behind: %v", temps)
			}
			if _, there := b.srv.ReadFile(at("gpu-001-bmc")); there != (name == "reload forbidden") {
				t.Errorf("the file is there: %v", there)
			}
			b.srv.Set(func(m *dhcptest.Behaviour) { *m = dhcptest.Behaviour{} })
			b.srv.Chown(dir, "enroll", 0o755)
			b.end()
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			b.settled()
		})
	}
}

// TestWrittenNothing: the server says that it wrote and did not.
func TestWrittenNothing(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: "sftp.write", Path: at(".gpu-001-bmc"), Status: 0, Times: 1})
	b.wantFault(b.converge(b.p), plan.CodeDHCPTransfer, "does not hold what was written")
	if got := strings.Join(b.srv.Files(), " "); got != ".enroll-lock .enroll-pending" {
		t.Errorf("the folder holds %s", got)
	}
}

var tempSuffix = regexp.MustCompile(`\.enroll-[0-9a-f]{16}$`)

// TestOrder: the marker stands before the file, and the file is whole, synced
// and hashed before it gets its name.
func TestOrder(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	var got, synced []string
	for _, r := range b.srv.Recorder().Records() {
		name := tempSuffix.ReplaceAllString(strings.TrimPrefix(r.Path, dir+"/"), "~")
		switch {
		case r.Method == "ssh.exec" && strings.Contains(r.Path, "sha256sum -- '"):
			got = append(got, "hash")
		case r.Method == "ssh.exec" && r.Mutating:
			got = append(got, "reload")
		case r.Method == "sftp.fsync":
			synced = append(synced, name)
		case r.Method == "sftp.posix-rename" || r.Method == "sftp.rename" || r.Method == "sftp.remove":
			if strings.HasPrefix(r.Method, "sftp.posix") && !slices.Contains(synced, name) {
				t.Errorf("%s got its name before it was synced", name)
			}
			got = append(got, strings.TrimPrefix(r.Method, "sftp.")+" "+name)
		}
	}
	const want = "rename .enroll-lock~, posix-rename .enroll-pending~, hash, posix-rename .gpu-001-bmc~, " +
		"reload, remove .enroll-pending, remove .enroll-lock"
	if strings.Join(got, ", ") != want {
		t.Errorf("order:\n%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}

// TestMissingParts: what a server may lack without a consequence.
func TestMissingParts(t *testing.T) {
	for name, change := range map[string]func(*dhcptest.Behaviour){
		"sha256sum":  func(m *dhcptest.Behaviour) { m.NoHash = true },
		"hard links": func(m *dhcptest.Behaviour) { m.NoLink = true },
		"fsync":      func(m *dhcptest.Behaviour) { m.NoFsync = true },
		"statvfs":    func(m *dhcptest.Behaviour) { m.NoStatVFS = true },
		"journal":    func(m *dhcptest.Behaviour) { m.NoJournal = true },
		"silence": func(m *dhcptest.Behaviour) {
			m.Banner, m.Profile = "Authorised use only.\n", "Welcome to dhcp1\n@0 begin 0\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{}, device(1))
			b.srv.Set(change)
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
				t.Errorf("lease %v", got)
			}
			b.settled()
		})
	}
}
