package dhcptest_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

var oneMAC = plan.MAC{2, 0, 0x5e, 0x10, 0, 1}

const oneLine = "02:00:5e:10:00:01,192.0.2.11,gpu-001-bmc\n"

// start makes a machine on a clock that stands still.
func start(t *testing.T, o dhcptest.Options) *dhcptest.Server {
	t.Helper()
	at := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return at }
	srv := dhcptest.New(o)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func run(t *testing.T, srv *dhcptest.Server, command string) (string, int) {
	t.Helper()
	key, err := ssh.ParsePrivateKey(srv.IdentityPEM)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ssh.Dial("tcp", srv.Addr(), &ssh.ClientConfig{User: srv.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.CombinedOutput(command)
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitStatus()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// TestLease follows one address: a new file serves at once, a changed one adds,
// and only a reload takes away.
func TestLease(t *testing.T) {
	srv := start(t, dhcptest.Options{})
	told := 0
	srv.OnChange(func() { told++; srv.Lease(oneMAC) })
	lease := func(what, want string) {
		t.Helper()
		got, ok := srv.Lease(oneMAC)
		if ok != (want != "") || ok && got != netip.MustParseAddr(want) {
			t.Errorf("%s: %v, %v; want %q", what, got, ok, want)
		}
	}
	lease("nothing there", "")
	srv.PutFile("gpu-001-bmc", oneLine, 0o644)
	lease("new", "192.0.2.11")
	srv.PutFile("gpu-001-bmc", strings.Replace(oneLine, "5e:10:00:01", "5e:10:00:02", 1), 0o644)
	lease("changed, not reloaded", "192.0.2.11")
	if out, status := run(t, srv, "sudo -n /usr/bin/systemctl reload dnsmasq"); status != 0 {
		t.Fatal(out)
	}
	lease("changed and reloaded", "")
	srv.PutFile("gpu-001-bmc", oneLine, 0o644)
	srv.Kill()
	lease("killed", "")
	srv.Start()
	lease("started", "192.0.2.11")
	srv.RemoveFile("gpu-001-bmc")
	lease("removed, not reloaded", "192.0.2.11")
	if told < 6 {
		t.Errorf("OnChange was called %d times", told)
	}
}

// TestStartLimit: systemd refuses the sixth start within 10 s.
func TestStartLimit(t *testing.T) {
	srv := start(t, dhcptest.Options{})
	for i := range 5 {
		if out, status := run(t, srv, "sudo -n /usr/bin/systemctl restart dnsmasq"); status != 0 {
			t.Fatalf("restart %d: %s", i+1, out)
		}
	}
	if _, status := run(t, srv, "sudo -n /usr/bin/systemctl restart dnsmasq"); status != 1 {
		t.Errorf("the sixth restart: status %d", status)
	}
	if out, _ := run(t, srv, "systemctl show -p Result dnsmasq"); out != "Result=start-limit-hit\n" {
		t.Errorf("%q", out)
	}
}

// TestRecords: what is recorded, as whose, and whether it wrote.
func TestRecords(t *testing.T) {
	recorder := exchange.NewRecorder(time.Now, nil)
	srv := start(t, dhcptest.Options{Recorder: recorder, DeviceOf: func(p string) string { return strings.TrimSuffix(p[strings.LastIndex(p, "/")+1:], "-bmc") }})
	run(t, srv, "systemctl is-active dnsmasq")
	run(t, srv, "sudo -n /usr/bin/systemctl reload dnsmasq")
	var got []string
	for _, r := range recorder.Records() {
		line := r.System + " " + r.Method
		if r.Mutating {
			line += " mutating"
		}
		got = append(got, line)
	}
	const want = "dhcp ssh.login, dhcp ssh.exec, dhcp ssh.login, dhcp ssh.exec mutating"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}

// TestShellRefuses: what no command of enroll uses is an error here, so that a
// new one shows in tests.
func TestShellRefuses(t *testing.T) {
	srv := start(t, dhcptest.Options{})
	for _, command := range []string{"ls | cat", "echo x > /tmp/x", "echo `id`", `echo "$HOME"`, "sh -c 'a; (b)'", "ls -l", "systemctl stop dnsmasq", "rm x", "'"} {
		if out, status := run(t, srv, command); status == 0 {
			t.Errorf("%s: %q", command, out)
		}
	}
}
