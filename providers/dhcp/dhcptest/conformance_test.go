package dhcptest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

// machine is a DHCP server to be observed, the simulator or a real one. The
// account owns the folder, may read the journal, and may reload with sudo.
// What the table writes begins with conf- or .conf- and is removed again.
type machine struct {
	settings    plan.DHCPSettings
	credentials dhcp.Credentials
	host        func(n int) netip.Addr // an address of the subnet that nobody uses, 1…9

	shell *ssh.Client
	files *sftp.Client
}

// TestSimulator runs the table against the simulator.
func TestSimulator(t *testing.T) {
	srv := dhcptest.New(dhcptest.Options{})
	m := &machine{
		settings:    srv.Settings(),
		credentials: dhcp.Credentials{Identity: plan.NewSecret(string(srv.IdentityPEM), ""), KnownHosts: srv.KnownHosts},
		host:        func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(200 + n)}) },
	}
	m.settings.Settle = 10 * time.Millisecond
	conformance(t, m, func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

// conformance observes a machine and calls end when the folder is as it was.
func conformance(t *testing.T, m *machine, end func()) {
	m.connect(t)
	before := m.names(t)
	t.Cleanup(func() {
		m.clear(t)
		if after := m.names(t); after != before {
			t.Errorf("the folder held %q before and holds %q now", before, after)
		}
		_ = m.files.Close()
		_ = m.shell.Close()
		end()
	})
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			c.observe(t, m)
			m.clear(t)
		})
	}
}

// table lists exchanges and what must be observed.
var table = []struct {
	name    string
	observe func(t *testing.T, m *machine)
}{
	{"a wrong key is refused", func(t *testing.T, m *machine) {
		_, err := m.dial(dhcptest.NewHostKeys()[1], m.settings.User)
		if err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
			t.Errorf("login with another key: %v", err)
		}
	}},
	{"another user is refused", func(t *testing.T, m *machine) {
		_, err := m.dial(m.signer(t), "nobody")
		if err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
			t.Errorf("login as nobody: %v", err)
		}
	}},
	{"the environment is not taken", func(t *testing.T, m *machine) {
		s, err := m.shell.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		if err := s.Setenv("LC_ALL", "C"); err == nil {
			t.Error("setenv was accepted")
		}
	}},
	{"ten sessions, SFTP among them", func(t *testing.T, m *machine) {
		var open []*ssh.Session
		defer func() {
			for _, s := range open {
				_ = s.Close()
			}
		}()
		for range 9 {
			s, err := m.shell.NewSession()
			if err != nil {
				t.Fatalf("session %d beside SFTP: %v", len(open)+1, err)
			}
			open = append(open, s)
		}
		var rejected *ssh.OpenChannelError
		if _, err := m.shell.NewSession(); !errors.As(err, &rejected) {
			t.Errorf("the tenth session beside SFTP: %v", err)
		}
	}},
	{"sbin is not in PATH", func(t *testing.T, m *machine) {
		m.exec(t, "dnsmasq --test", 127, "", "")
		m.exec(t, "/usr/sbin/dnsmasq --test", 0, "", "dnsmasq: syntax check OK.")
	}},
	{"hashes", func(t *testing.T, m *machine) {
		m.write(t, ".conf-hash", "x\n")
		const sum = "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"
		at := m.at(".conf-hash")
		m.exec(t, "sha256sum -- "+at, 0, sum+"  "+at+"\n", "")
		m.exec(t, "sha256sum -- "+at+" "+m.at(".conf-none"), 1, sum+"  "+at+"\n", "No such file or directory")
		m.exec(t, "sha256sum -- "+m.settings.Directory, 1, "", "Is a directory")
	}},
	{"a listing tells folders from files", func(t *testing.T, m *machine) {
		m.write(t, "conf-a", "one\n\ntwo")
		if err := m.files.Mkdir(m.at("conf-sub")); err != nil {
			t.Fatal(err)
		}
		cd := "cd -- " + m.settings.Directory + " && "
		m.exec(t, cd+"ls -p", 0, "conf-a\nconf-sub/\n", "")
		m.exec(t, cd+`grep -HaZ "" -- conf-a`, 0, "conf-a\x00one\nconf-a\x00\nconf-a\x00two\n", "")
		m.exec(t, cd+`grep -HaZ "" -- conf-a conf-none`, 2, "conf-a\x00one\n", "No such file or directory")
		m.exec(t, cd+`grep -HaZ "" -- conf-sub`, 2, "", "Is a directory")
		m.write(t, "conf-empty", "")
		m.exec(t, cd+`grep -HaZ "" -- conf-empty`, 1, "", "")
		m.exec(t, cd+"test -e conf-a", 0, "", "")
		m.exec(t, cd+"test -e conf-none", 1, "", "")
		m.exec(t, cd+"test -w .", 0, "", "")
		m.exec(t, "cd -- / && test -w .", 1, "", "")
	}},
	{"sudo knows the rules only", func(t *testing.T, m *machine) {
		m.exec(t, "sudo -n /usr/bin/systemctl reload "+m.settings.Unit, 0, "", "")
		m.exec(t, "sudo -n /usr/bin/systemctl stop "+m.settings.Unit, 1, "", "a password is required")
		m.exec(t, "sudo -n -l /usr/bin/systemctl reload "+m.settings.Unit, 0, "/usr/bin/systemctl reload "+m.settings.Unit+"\n", "")
		m.exec(t, "sudo -n -l /usr/bin/systemctl stop "+m.settings.Unit, 1, "", "")
		m.exec(t, "/usr/bin/systemctl reload "+m.settings.Unit, 1, "", "Failed to reload "+m.settings.Unit+".service")
	}},
	{"systemd tells the state", func(t *testing.T, m *machine) {
		out := m.exec(t, "systemctl show -p LoadState,ActiveState,SubState,Result,MainPID,ExecMainStartTimestamp "+m.settings.Unit, 0, "", "")
		for _, want := range []string{`LoadState=loaded`, `ActiveState=active`, `SubState=running`, `Result=success`, `MainPID=[1-9][0-9]*`, `ExecMainStartTimestamp=[A-Z][a-z]{2} [0-9-]{10} [0-9:]{8} [A-Z]+`} {
			if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(out) {
				t.Errorf("no line %s in\n%s", want, out)
			}
		}
		m.exec(t, "systemctl show -p LoadState,ActiveState no-such-unit", 0, "LoadState=not-found\nActiveState=inactive\n", "")
	}},
	{"SFTP extensions", func(t *testing.T, m *machine) {
		for name, version := range map[string]string{"posix-rename@openssh.com": "1", "fsync@openssh.com": "1", "statvfs@openssh.com": "2"} {
			if got, ok := m.files.HasExtension(name); !ok || got != version {
				t.Errorf("%s: %q, %v", name, got, ok)
			}
		}
		if v, err := m.files.StatVFS(m.settings.Directory); err != nil || v.Bavail == 0 || v.Frsize == 0 {
			t.Errorf("statvfs: %+v, %v", v, err)
		}
	}},
	{"SFTP errors", func(t *testing.T, m *machine) {
		m.write(t, ".conf-a", "a\n")
		m.write(t, ".conf-b", "b\n")
		if err := m.files.Mkdir(m.at(".conf-sub")); err != nil {
			t.Fatal(err)
		}
		_, err := m.files.OpenFile(m.at(".conf-a"), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		failure(t, "exclusive open of a file that exists", err)
		_, err = m.files.OpenFile(m.at(".conf-sub"), os.O_WRONLY)
		failure(t, "open of a folder for writing", err)
		failure(t, "rename onto a file", m.files.Rename(m.at(".conf-a"), m.at(".conf-b")))
		failure(t, "mkdir of a name that exists", m.files.Mkdir(m.at(".conf-sub")))
		_, err = m.files.Open(m.at(".conf-none"))
		is(t, "open of a missing file", err, fs.ErrNotExist)
		is(t, "posix-rename of a missing file", m.files.PosixRename(m.at(".conf-none"), m.at(".conf-c")), fs.ErrNotExist)
		_, err = m.files.Lstat(m.at(".conf-none"))
		is(t, "lstat of a missing file", err, fs.ErrNotExist)
		_, err = m.files.OpenFile("/etc/conf-x", os.O_WRONLY|os.O_CREATE)
		is(t, "create in root's folder", err, fs.ErrPermission)
		if err := m.files.PosixRename(m.at(".conf-a"), m.at(".conf-b")); err != nil {
			t.Errorf("posix-rename onto a file: %v", err)
		}
		if got := m.read(t, ".conf-b"); got != "a\n" {
			t.Errorf("after posix-rename: %q", got)
		}
	}},
	{"modes", func(t *testing.T, m *machine) {
		m.write(t, ".conf-a", "a\n")
		m.mode(t, ".conf-a", 0o644)
		if err := m.files.Chmod(m.at(".conf-a"), 0o600); err != nil {
			t.Fatal(err)
		}
		m.write(t, ".conf-b", "b\n")
		if err := m.files.PosixRename(m.at(".conf-b"), m.at(".conf-a")); err != nil {
			t.Fatal(err)
		}
		m.mode(t, ".conf-a", 0o644) // that of the new file
	}},
	{"a rename into the folder is read at once", func(t *testing.T, m *machine) {
		at, line := m.at("conf-1"), m.line(1, 1, "conf-1")
		since := m.now(t)
		m.publish(t, "conf-1", line)
		m.logged(t, since, []string{"inotify: " + at + " new or modified", "read " + at}, "duplicate", "bad ")
		since = m.now(t)
		m.publish(t, "conf-1", line) // the old entry is still in force
		m.logged(t, since, []string{"inotify: " + at + " new or modified", "read " + at, "duplicate dhcp-host IP address " + m.host(1).String() + " at line 1 of " + at})
		since = m.reload(t)
		m.logged(t, since, []string{"read " + at}, "inotify:", "duplicate", "bad ")
	}},
	{"an address in two files goes to one", func(t *testing.T, m *machine) {
		m.publish(t, "conf-1", m.line(1, 1, "conf-1"))
		m.publish(t, "conf-2", m.line(2, 1, "conf-2"))
		text := m.logged(t, m.reload(t), []string{"duplicate dhcp-host IP address " + m.host(1).String() + " at line 1 of " + m.at("conf-")})
		if strings.Count(text, "duplicate") != 1 || !strings.Contains(text, "read "+m.at("conf-1")) || !strings.Contains(text, "read "+m.at("conf-2")) {
			t.Errorf("want two files read and one refused:\n%s", text)
		}
	}},
	{"names that are not read", func(t *testing.T, m *machine) {
		since := m.now(t)
		for _, name := range []string{".conf-1", "conf-1~"} {
			m.publish(t, name, m.line(1, 1, "conf-1"))
		}
		m.publish(t, "conf-2", m.line(2, 2, "conf-2"))
		m.logged(t, since, []string{"read " + m.at("conf-2")}, "conf-1")
		since = m.reload(t)
		m.logged(t, since, []string{"read " + m.at("conf-2")}, "conf-1")
	}},
	{"bad lines", func(t *testing.T, m *machine) {
		for line, complaint := range map[string]string{
			"# conf\n" + strings.Replace(m.line(1, 1, "conf-1"), "conf-1", "conf 1", 1): "bad DHCP host name at line 2 of ",
			strings.Replace(m.line(1, 1, "conf-1"), ":5e:", ":zz:", 1):                  "bad hex constant at line 1 of ",
		} {
			since := m.now(t)
			m.publish(t, "conf-1", line)
			m.logged(t, since, []string{"read " + m.at("conf-1"), complaint + m.at("conf-1")})
			m.clear(t)
		}
		since := m.now(t)
		m.publish(t, "conf-1", strings.Replace(m.line(1, 1, "conf-1"), m.host(1).String(), "192.0.2.999", 1))
		m.logged(t, since, []string{"read " + m.at("conf-1")}, "bad ")
	}},
	{"a file that dnsmasq may not read", func(t *testing.T, m *machine) {
		m.write(t, ".conf-t", m.line(1, 1, "conf-1"))
		if err := m.files.Chmod(m.at(".conf-t"), 0o600); err != nil {
			t.Fatal(err)
		}
		since := m.now(t)
		if err := m.files.PosixRename(m.at(".conf-t"), m.at("conf-1")); err != nil {
			t.Fatal(err)
		}
		m.logged(t, since, []string{"read " + m.at("conf-1"), "cannot read " + m.at("conf-1") + ": Permission denied"})
	}},
	{"a removed file", func(t *testing.T, m *machine) {
		m.publish(t, "conf-1", m.line(1, 1, "conf-1"))
		since := m.now(t)
		if err := m.files.Remove(m.at("conf-1")); err != nil {
			t.Fatal(err)
		}
		m.logged(t, since, []string{"inotify: " + m.at("conf-1") + " removed", "cannot read " + m.at("conf-1") + ": No such file or directory"})
		since = m.now(t)
		m.publish(t, "conf-2", m.line(2, 1, "conf-2")) // the removed entry is in force until the reload
		m.logged(t, since, []string{"duplicate dhcp-host IP address " + m.host(1).String()})
		since = m.reload(t)
		m.logged(t, since, []string{"read " + m.at("conf-2")}, "duplicate", "conf-1")
	}},
	{"the provider: create, nothing, update, conflict", func(t *testing.T, m *machine) {
		i := m.device(1)
		if f := m.converge(t, i); f != nil {
			t.Fatal(f)
		}
		want := dhcp.Render(m.settings, dhcp.Entry{DeviceID: i.ID, Device: i.Name, MAC: i.BMCMAC, Address: i.OOB, Name: "conf-001"})
		if got := m.read(t, "conf-001"); got != want {
			t.Errorf("created %q, want %q", got, want)
		}
		if steps, f := m.plan(t, m.provider(t), i); len(steps) != 0 || f != nil {
			t.Errorf("after the creation: %d steps, %v", len(steps), f)
		}
		i.BMCMAC[5] = 0x77
		if f := m.converge(t, i); f != nil {
			t.Fatal(f)
		}
		if got := m.read(t, "conf-001"); !strings.Contains(got, i.BMCMAC.String()) {
			t.Errorf("updated %q", got)
		}
		m.publish(t, "conf-foreign", m.line(5, 5, "conf-foreign"))
		two := m.device(2)
		two.OOB = m.host(5)
		if _, f := m.plan(t, m.provider(t), two); !errors.Is(f, plan.CodeDHCPConflict) {
			t.Errorf("an address of another file: %v", f)
		}
	}},
	{"the provider: a refused entry is taken back", func(t *testing.T, m *machine) {
		i := m.device(1)
		p := m.provider(t)
		steps, err := m.plan(t, p, i)
		if err != nil || len(steps) != 2 {
			t.Fatalf("%d steps, %v", len(steps), err)
		}
		if f := m.perform(t, p, i, steps[0]); f != nil {
			t.Fatal(f)
		}
		// In this moment another hand makes the file one that dnsmasq cannot use.
		m.publish(t, "conf-001", strings.Replace(m.line(1, 1, "conf-001"), ":5e:", ":zz:", 1))
		f := m.perform(t, p, i, steps[1])
		if !errors.Is(f, plan.CodeDHCPUnhealthy) || !strings.Contains(f.Summary, "bad hex constant") {
			t.Errorf("a bad entry: %v", f)
		}
		if names := m.names(t); strings.Contains(names, "conf-") {
			t.Errorf("left behind: %s", names)
		}
	}},
}

func failure(t *testing.T, what string, err error) {
	t.Helper()
	var status *sftp.StatusError
	if !errors.As(err, &status) || status.FxCode() != sftp.ErrSSHFxFailure || errors.Is(err, fs.ErrExist) {
		t.Errorf("%s: %v, want the generic failure", what, err)
	}
}

func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func (m *machine) signer(t *testing.T) ssh.Signer {
	t.Helper()
	s, err := ssh.ParsePrivateKey([]byte(m.credentials.Identity.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (m *machine) dial(key ssh.Signer, user string) (*ssh.Client, error) {
	return ssh.Dial("tcp", net.JoinHostPort(m.settings.Host, strconv.Itoa(m.settings.Port)), &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, Timeout: 20 * time.Second,
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), // the provider's checks have their own tests
	})
}

func (m *machine) connect(t *testing.T) {
	t.Helper()
	var err error
	if m.shell, err = m.dial(m.signer(t), m.settings.User); err != nil {
		t.Fatal(err)
	}
	if m.files, err = sftp.NewClient(m.shell); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) at(name string) string { return path.Join(m.settings.Directory, name) }

// exec runs a command and checks status and what must be in its outputs.
func (m *machine) exec(t *testing.T, command string, status int, out, errOut string) string {
	t.Helper()
	s, err := m.shell.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var stdout, stderr bytes.Buffer
	s.Stdout, s.Stderr = &stdout, &stderr
	got := 0
	var exit *ssh.ExitError
	if err := s.Run(command); errors.As(err, &exit) {
		got = exit.ExitStatus()
	} else if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	if got != status || !strings.Contains(stdout.String(), out) || !strings.Contains(stderr.String(), errOut) {
		t.Errorf("%s: status %d, %q, %q; want %d, %q, %q", command, got, stdout.String(), stderr.String(), status, out, errOut)
	}
	return stdout.String()
}

// names lists the folder, the table's own files included.
func (m *machine) names(t *testing.T) string {
	t.Helper()
	list, err := m.files.ReadDir(m.settings.Directory)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, info := range list {
		out = append(out, info.Name())
	}
	return strings.Join(out, " ")
}

// clear removes what the table wrote, and its entries from the service.
func (m *machine) clear(t *testing.T) {
	t.Helper()
	list, err := m.files.ReadDir(m.settings.Directory)
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	for _, info := range list {
		name := info.Name()
		if !strings.HasPrefix(strings.TrimPrefix(name, "."), "conf-") && name != ".enroll-pending" {
			continue
		}
		remove := m.files.Remove
		if info.IsDir() {
			remove = m.files.RemoveDirectory
		}
		if err := remove(m.at(name)); err != nil {
			t.Errorf("removing %s: %v", name, err)
		}
		removed++
	}
	if removed > 0 {
		m.reload(t)
	}
}

func (m *machine) write(t *testing.T, name, content string) {
	t.Helper()
	f, err := m.files.OpenFile(m.at(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// publish puts a file into the folder as the provider does.
func (m *machine) publish(t *testing.T, name, content string) {
	t.Helper()
	m.write(t, ".conf-temp", content)
	if err := m.files.PosixRename(m.at(".conf-temp"), m.at(name)); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) read(t *testing.T, name string) string {
	t.Helper()
	f, err := m.files.Open(m.at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (m *machine) mode(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	info, err := m.files.Stat(m.at(name))
	if err != nil || info.Mode() != want {
		t.Errorf("%s: %v, %v; want mode %v", name, info, err, want)
	}
}

// line is a reservation that collides with nobody's.
func (m *machine) line(mac, host int, name string) string {
	return fmt.Sprintf("02:00:5e:c0:0f:%02x,%s,%s\n", mac, m.host(host), name)
}

// now is the machine's time, as journalctl takes it.
func (m *machine) now(t *testing.T) string {
	t.Helper()
	out := strings.TrimSpace(m.exec(t, "date +%s.%N", 0, ".", ""))
	if len(out) < 17 {
		t.Fatalf("date says %q", out)
	}
	return out[:17]
}

func (m *machine) reload(t *testing.T) (since string) {
	t.Helper()
	since = m.now(t)
	m.exec(t, "sudo -n /usr/bin/systemctl reload "+m.settings.Unit, 0, "", "")
	return since
}

// logged waits until the journal has the lines in this order, and fails when it
// then holds one of the others.
func (m *machine) logged(t *testing.T, since string, lines []string, none ...string) string {
	t.Helper()
	var text string
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		text = m.exec(t, "journalctl -u "+m.settings.Unit+" --since @"+since+" -o cat --no-pager -n 20000", 0, "", "")
		rest, found := text, true
		for _, line := range lines {
			var there bool
			_, rest, there = strings.Cut(rest, line)
			found = found && there
		}
		if found {
			break
		}
		if time.Now().After(until) {
			t.Errorf("the journal does not say %q in this order:\n%s", lines, text)
			return text
		}
	}
	for _, word := range none {
		if strings.Contains(text, word) {
			t.Errorf("the journal says %q:\n%s", word, text)
		}
	}
	return text
}

func (m *machine) device(n int) *plan.Intent {
	return &plan.Intent{Name: fmt.Sprintf("conf-%03d", n), ID: int64(900000 + n), BMCMAC: plan.MAC{2, 0, 0x5e, 0xc0, 0x0f, byte(n)}, OOB: m.host(n), BMCInterface: "bmc"}
}

func (m *machine) provider(t *testing.T) *dhcp.Provider {
	t.Helper()
	p, err := dhcp.New(m.settings, m.credentials, dhcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func (m *machine) scope(i *plan.Intent) *plan.Scope {
	settings := m.settings
	settings.NameSuffix = ""
	site := &plan.Site{Name: "conf", ConfigureDHCP: true, DHCP: &settings}
	return &plan.Scope{Site: site, Targets: []*plan.Target{{Site: site, Intent: i}}}
}

// plan gives the steps for a device, the reservation first, and the first fault.
func (m *machine) plan(t *testing.T, p *dhcp.Provider, i *plan.Intent) ([]*plan.Step, error) {
	t.Helper()
	sc, kinds := m.scope(i), dhcp.Kinds()
	world := p.Read(context.Background(), sc, plan.Desired(sc, kinds))
	pl := plan.Build(plan.Input{Scope: sc, Kinds: kinds, World: world})
	for _, d := range pl.Diagnostics {
		if d.Severity == plan.SeverityError {
			return nil, d.Fault
		}
	}
	var reservations, services []*plan.Step
	for _, s := range pl.Steps {
		if s.Address.Device != "" {
			reservations = append(reservations, s)
		} else {
			services = append(services, s)
		}
	}
	return append(reservations, services...), nil
}

// perform runs a step to its end and reads back.
func (m *machine) perform(t *testing.T, p *dhcp.Provider, i *plan.Intent, step *plan.Step) *plan.Fault {
	t.Helper()
	sc := m.scope(i)
	var memo plan.Memo
	for range 10 {
		r := p.Run(context.Background(), sc, step, memo)
		switch r.Outcome {
		case plan.OutcomeFailed:
			return r.Fault
		case plan.OutcomeWait:
			time.Sleep(r.After)
			memo = r.Memo
			continue
		case plan.OutcomeDone, plan.OutcomeAlready:
		}
		live := p.Read(context.Background(), sc, []plan.Resource{{Address: step.Address}})[step.Address]
		if live.Fault != nil {
			return live.Fault
		}
		if !plan.Satisfies(step.After, live.Value) {
			t.Errorf("%s: after the step %s, want %s", step.Address, plan.ToJSON(live.Value), plan.ToJSON(step.After))
		}
		return nil
	}
	t.Fatalf("%s does not end", step.Address)
	return nil
}

func (m *machine) converge(t *testing.T, i *plan.Intent) *plan.Fault {
	t.Helper()
	p := m.provider(t)
	steps, err := m.plan(t, p, i)
	if err != nil {
		return plan.AsFault(err)
	}
	for _, s := range steps {
		if f := m.perform(t, p, i, s); f != nil {
			return f
		}
	}
	return nil
}
