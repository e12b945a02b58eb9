package dhcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// The starting points of TestEveryExchange: what stood in the folder before.
var starts = []struct {
	name string
	file string // "" is an empty folder
	old  func() dhcp.Entry
}{
	{"create", "", nil},
	{"update", "gpu-001-bmc", func() dhcp.Entry { e := entry(device(1)); e.MAC = mac(9); return e }},
	{"rename", "spare-1-bmc", func() dhcp.Entry { e := entry(device(1)); e.Device, e.Name = "spare-1", "spare-1-bmc"; return e }},
}

// TestEveryExchange breaks every exchange of a run in every way. Whatever
// happens, an old or the new file stands there whole, a new file that no reload
// proved has the marker beside it, and the next run ends where an undisturbed
// one does.
func TestEveryExchange(t *testing.T) {
	kinds := []exchange.Kind{exchange.Status, exchange.Reset, exchange.HalfBody, exchange.LostReply, exchange.Garbage}
	for _, start := range starts {
		arrange := func(t *testing.T) *bench {
			b := newBench(t, dhcptest.Options{}, device(1))
			if start.file != "" {
				b.srv.PutFile(at(start.file), rendered(start.old()), 0o644)
			}
			return b
		}
		whole := arrange(t)
		if f := whole.converge(whole.p); f != nil {
			t.Fatal(f)
		}
		n := len(whole.srv.Recorder().Records())
		if n < 15 {
			t.Fatalf("a run takes %d exchanges only", n)
		}
		for _, kind := range kinds {
			t.Run(start.name+"/"+string(kind), func(t *testing.T) {
				unseen := 0
				for i := 1; i <= n; i++ {
					b := arrange(t)
					b.srv.Recorder().Inject(&exchange.Fault{Kind: kind, At: i, Times: 1, Status: 4, Body: "Failure"})
					f := b.converge(b.p)
					b.disturbed(fmt.Sprintf("%s at %d", kind, i), start.file, start.old, f)
					if f == nil {
						unseen++
					}
					if i%2 == 0 { // the same run goes on, or another one an hour later
						b.clock.pass(2 * time.Hour)
						b.p = b.connect()
					}
					if f := b.converge(b.p); f != nil {
						t.Errorf("%s at %d: the next run: %v", kind, i, f)
					}
					b.settled()
					if got := strings.Join(b.srv.Files(), " "); got != "gpu-001-bmc" {
						t.Errorf("%s at %d: the folder holds %s", kind, i, got)
					}
					if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
						t.Errorf("%s at %d: lease %v", kind, i, got)
					}
					_ = b.p.Close(context.Background())
					if t.Failed() {
						for _, r := range b.srv.Recorder().Records() {
							t.Logf("%3d %-18s %s %d %s", r.Seq, r.Method, short(r.Path), r.Status, r.Fault)
						}
						return
					}
				}
				t.Logf("%d of %d exchanges could be disturbed without a fault", unseen, n)
				if unseen > n/2 {
					t.Errorf("%d of %d faults had no consequence", unseen, n)
				}
			})
		}
	}
}

func short(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

// disturbed checks what must hold right after a fault.
func (b *bench) disturbed(what, file string, old func() dhcp.Entry, f *plan.Fault) {
	b.t.Helper()
	want := rendered(entry(device(1)))
	content, there := b.srv.ReadFile(at("gpu-001-bmc"))
	isNew := there && content == want
	switch {
	case isNew:
	case file == "gpu-001-bmc" && content == rendered(old()):
	case file != "gpu-001-bmc" && !there:
		if file == "" {
			break
		}
		if got, _ := b.srv.ReadFile(at(file)); got != rendered(old()) {
			b.t.Errorf("%s: neither the former nor the new file stands there whole", what)
		}
	default:
		b.t.Errorf("%s: the file holds %q", what, content)
	}
	if isNew && f != nil && !b.srv.Pending() {
		if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
			b.t.Errorf("%s: a new file without a reload and without the marker", what)
		}
	}
	if f == nil {
		return
	}
	if f.Code == plan.CodeInternal || f.Code == plan.CodeInterrupted || f.Summary == "" {
		b.t.Errorf("%s: badly classified: %v", what, f)
	}
	if len(b.temps()) > 1 {
		b.t.Errorf("%s: left behind %v", what, b.temps())
	}
}

// TestStall: a server that stops answering at one exchange.
func TestStall(t *testing.T) {
	for _, method := range []string{"ssh.login", "ssh.exec", "sftp.init", "sftp.open", "sftp.write", "sftp.fsync", "sftp.posix-rename"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, dhcptest.Options{}, device(1))
			const deadline = time.Second
			b.scope.Site.DHCP.Timeouts = plan.DHCPTimeouts{Connect: deadline, Login: deadline, Command: deadline, Transfer: deadline}
			b.p = b.connect()
			b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: method, Times: 1})
			b.wantFault(b.converge(b.p), plan.CodeDHCPUnreachable, "1s")
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			b.settled()
		})
	}
}

// TestInterrupted: the caller gives up in the middle of a transfer.
func TestInterrupted(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	pl := b.look(b.p)
	ctx, cancel := context.WithCancel(context.Background())
	b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: "sftp.write", Times: 1})
	time.AfterFunc(50*time.Millisecond, cancel)
	b.wantFault(b.p.Run(ctx, b.scope, pl.Steps[0], nil).Fault, plan.CodeInterrupted)
	late, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	b.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.Stall, Method: "ssh.login", Times: 1})
	b.wantFault(b.p.Run(late, b.scope, pl.Steps[0], nil).Fault, plan.CodeTimeout)
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
			if f := b.converge(b.connect()); f != nil {
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
	if got := strings.Join(b.srv.Files(), " "); got != ".enroll-pending" {
		t.Errorf("the folder holds %s", got)
	}
}

// TestOrder: the marker stands before the file, and the file is whole, synced
// and hashed before it gets its name.
func TestOrder(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	var got []string
	for _, r := range b.srv.Recorder().Records() {
		name := strings.TrimPrefix(r.Path, dir+"/")
		switch {
		case r.Method == "ssh.exec" && strings.Contains(r.Path, "sha256sum -- '"):
			got = append(got, "hash")
		case r.Method == "ssh.exec" && r.Mutating:
			got = append(got, "reload")
		case r.Mutating || r.Method == "sftp.fsync":
			if strings.HasPrefix(name, ".gpu-001-bmc.enroll-") {
				name = "temp"
			}
			got = append(got, strings.TrimPrefix(r.Method, "sftp.")+" "+name)
		}
	}
	const want = "open .enroll-pending, write .enroll-pending, open temp, fsetstat temp, write temp, fsync temp, hash, posix-rename temp, " +
		"open .enroll-pending, write .enroll-pending, reload, remove .enroll-pending"
	if strings.Join(got, ", ") != want {
		t.Errorf("order:\n%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}

// TestMissingParts: what a server may lack without a consequence.
func TestMissingParts(t *testing.T) {
	for name, change := range map[string]func(*dhcptest.Behaviour){
		"sha256sum": func(m *dhcptest.Behaviour) { m.NoHash = true },
		"fsync":     func(m *dhcptest.Behaviour) { m.NoFsync = true },
		"statvfs":   func(m *dhcptest.Behaviour) { m.NoStatVFS = true },
		"journal":   func(m *dhcptest.Behaviour) { m.NoJournal = true },
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
