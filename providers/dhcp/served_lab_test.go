//go:build lab

package dhcp_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

// labMachine is one of the lab's DHCP machines: the real server with a real
// client on its wire, and root's way in.
type labMachine struct {
	t        *testing.T
	name     string // as the lab's scripts know it
	settings plan.DHCPSettings
	auth     dhcp.Credentials
	root     string // its file system, seen from here
	main     string // the server's own configuration
}

func labEnv(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv("ENROLL_LAB_" + name)
	if v == "" {
		t.Fatalf("ENROLL_LAB_%s is not set; run make lab-test", name)
	}
	return v
}

func labMachines(t *testing.T) []*labMachine {
	t.Helper()
	read := func(name string) []byte {
		raw, err := os.ReadFile(labEnv(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	auth := dhcp.Credentials{Identity: plan.NewSecret(string(read("SSH_KEY")), ""), KnownHosts: read("SSH_KNOWN_HOSTS")}
	var out []*labMachine
	for _, m := range []struct{ name, port, directory, unit, main string }{
		{"dnsmasq", "SSH_PORT", "DHCP_DIRECTORY", "dnsmasq", "/etc/dnsmasq.conf"},
		{"kea", "KEA_SSH_PORT", "KEA_DIRECTORY", "kea-dhcp4-server", "/etc/kea/kea-dhcp4.conf"},
		{"isc", "ISC_SSH_PORT", "ISC_DIRECTORY", "isc-dhcp-server", "/etc/dhcp/dhcpd.conf"},
	} {
		port, err := strconv.Atoi(labEnv(t, m.port))
		if err != nil {
			t.Fatal(err)
		}
		const deadline = 20 * time.Second
		pid, err := os.ReadFile(filepath.Join(labEnv(t, "STATE"), "pids", "dhcp-"+m.name+"-init"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &labMachine{
			t: t, name: m.name, auth: auth, root: filepath.Join("/proc", strings.Fields(string(pid))[0], "root"), main: m.main,
			settings: plan.DHCPSettings{
				Host: labEnv(t, "SSH_HOST"), Port: port, User: labEnv(t, "SSH_USER"), Service: m.name,
				Directory: labEnv(t, m.directory), Unit: m.unit, NameSuffix: "-bmc", Subnets: []string{labEnv(t, "DHCP_SUBNET")},
				Timeouts: plan.DHCPTimeouts{Connect: deadline, Login: deadline, Command: deadline, Transfer: deadline},
				Settle:   time.Second,
			},
		})
	}
	return out
}

// script runs one of the lab's.
func (m *labMachine) script(name string, args ...string) (string, error) {
	out, err := exec.Command("../../testdata/lab/"+name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// inside runs a shell command as root on the machine.
func (m *labMachine) inside(command string) string {
	m.t.Helper()
	out, err := m.script("inside.sh", m.name, "sh", "-c", command)
	if err != nil {
		m.t.Fatalf("%s: %s: %v\n%s", m.name, command, err, out)
	}
	return out
}

// lease is what a client with the MAC gets: address and name, "" for nothing.
func (m *labMachine) lease(mac plan.MAC) string {
	out, err := m.script("lease.sh", mac.String(), m.name)
	if err != nil {
		return ""
	}
	return out
}

// serves fails the test unless exactly these devices get their addresses.
func (m *labMachine) serves(t *testing.T, devices ...*plan.Intent) {
	t.Helper()
	for _, d := range devices {
		want := fmt.Sprintf("%s %s-bmc", d.OOB, d.Name)
		got := ""
		for range 10 { // a client that was answered a moment ago may be told to begin anew, and a busy machine starts its server late
			if got = m.lease(d.BMCMAC); got == want {
				break
			}
		}
		if got != want {
			t.Errorf("%s: the client %s gets %q, want %q", m.name, d.BMCMAC, got, want)
		}
	}
}

func (m *labMachine) silent(t *testing.T, mac plan.MAC) {
	t.Helper()
	if got := m.lease(mac); got != "" {
		t.Errorf("%s: the client %s gets %q, and nothing is reserved for it", m.name, mac, got)
	}
}

// bench is the site with these devices; waits take their time.
func (m *labMachine) bench(t *testing.T, devices ...*plan.Intent) *bench {
	t.Helper()
	settings := m.settings
	site := &plan.Site{Name: "lab1", ConfigureDHCP: true, DHCP: &settings}
	b := &bench{t: t, clock: newClock(), wait: time.Sleep, scope: &plan.Scope{Site: site}}
	for _, d := range devices {
		b.scope.Targets = append(b.scope.Targets, &plan.Target{Site: site, Intent: d})
	}
	b.p = m.connect(t, settings, 3*time.Second)
	return b
}

func (m *labMachine) connect(t *testing.T, settings plan.DHCPSettings, patience time.Duration) *dhcp.Provider {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	p, err := dhcp.New(settings, m.auth, dhcp.Options{LockTimeout: patience, Owner: dhcp.Holder{Owner: "lab", Host: host, PID: os.Getpid()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// run converges devices, each call a run of its own.
func (m *labMachine) run(t *testing.T, devices ...*plan.Intent) *plan.Fault {
	t.Helper()
	return m.end(t, m.bench(t, devices...))
}

// whole is the bench of a run for the whole site, which has these devices and no
// others, and removes entries that are no device's.
func (m *labMachine) whole(t *testing.T, devices ...*plan.Intent) *bench {
	t.Helper()
	b := m.bench(t, devices...)
	b.scope.Whole = true
	b.scope.Parameters.PruneDHCP = true
	return b
}

func (m *labMachine) end(t *testing.T, b *bench) *plan.Fault {
	t.Helper()
	f := b.converge(b.p)
	if err := b.p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return f
}

func (m *labMachine) good(t *testing.T, devices ...*plan.Intent) {
	t.Helper()
	if f := m.run(t, devices...); f != nil {
		t.Fatalf("%s: %v\n%s", m.name, f, strings.Join(f.EvidenceLines(), "\n"))
	}
}

// clean takes everything from the machine that a test may have left.
func (m *labMachine) clean() {
	m.t.Helper()
	empty := map[string]string{"dnsmasq": "", "kea": `printf '[\n]\n' >index.json; chown enroll: index.json;`, "isc": ": >index.conf; chown enroll: index.conf;"}[m.name]
	m.inside(fmt.Sprintf("cd %s && find . -mindepth 1 -delete; %s chown enroll: . && chmod 0755 .; systemctl reset-failed %s; systemctl restart %[3]s", m.settings.Directory, empty, m.settings.Unit))
}

// tidy fails the test when a run left something behind.
func (m *labMachine) tidy(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(path.Join(m.root, m.settings.Directory))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		// The lock that was moved away for its heir is swept an hour later.
		if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(e.Name(), ".enroll-lock.enroll-") {
			t.Errorf("%s: %s was left behind", m.name, e.Name())
		}
	}
}

// servedTable is what must be observed on each of the three, in this order:
// device 1 stands from the first row on, and is served at every moment that a
// row looks.
var servedTable = []struct {
	name string
	only string // machines, "" for all
	run  func(t *testing.T, m *labMachine)
}{
	{"the client gets the address", "", func(t *testing.T, m *labMachine) {
		m.silent(t, mac(1))
		m.good(t, device(1))
		m.serves(t, device(1))
		m.silent(t, mac(9))
	}},
	{"and keeps it after somebody's restart", "", func(t *testing.T, m *labMachine) {
		m.inside("systemctl restart " + m.settings.Unit + "; sleep 1")
		m.serves(t, device(1))
	}},
	{"nothing is left to do", "", func(t *testing.T, m *labMachine) {
		b := m.bench(t, device(1))
		pl := b.look(b.p)
		if f := fault(pl); f != nil || addresses(pl) != "" {
			t.Errorf("%v, still to do: %s", f, addresses(pl))
		}
		if n := b.p.Requests(); n > 3 {
			t.Errorf("%d requests for a look, login included", n)
		}
	}},
	{"two more at once", "", func(t *testing.T, m *labMachine) {
		m.good(t, device(1), device(2), device(3))
		m.serves(t, device(1), device(2), device(3))
	}},
	{"another address", "", func(t *testing.T, m *labMachine) {
		moved := device(3)
		moved.OOB = netip.MustParseAddr("192.0.2.77")
		m.good(t, device(1), moved)
		m.serves(t, device(1), moved)
	}},
	{"another name", "", func(t *testing.T, m *labMachine) {
		renamed := device(2)
		renamed.Name = "gpu-012"
		m.good(t, device(1), renamed)
		m.serves(t, device(1), renamed)
	}},
	{"the daemon refuses its configuration", "kea isc", func(t *testing.T, m *labMachine) {
		m.inside(fmt.Sprintf("cp -p %s /root/main.kept; echo '} this is no configuration' >>%[1]s", m.main))
		f := m.run(t, device(1), device(4))
		m.inside("cp -p /root/main.kept " + m.main)
		if f == nil || f.Code != plan.CodeDHCPRefused {
			t.Errorf("%v, want %s", f, plan.CodeDHCPRefused)
		}
		m.serves(t, device(1))
		m.inside("systemctl restart " + m.settings.Unit + "; sleep 1") // at no moment would a restart fail
		m.serves(t, device(1))
	}},
	{"somebody edits between read and rename", "", func(t *testing.T, m *labMachine) {
		b := m.bench(t, device(1), device(4))
		pl := b.look(b.p)
		if f := fault(pl); f != nil {
			t.Fatal(f)
		}
		at, content := dhcp.FileName(m.settings, entry(device(4))), dhcp.Render(m.settings, entry(device(4)))
		foreign := strings.ReplaceAll(content, "1004", "9004")
		if err := os.WriteFile(path.Join(m.root, m.settings.Directory, at), []byte(foreign), 0o644); err != nil {
			t.Fatal(err)
		}
		f := b.apply(b.p, pl)
		_ = b.p.Close(context.Background())
		if f == nil || f.Code != plan.CodeDHCPForeignFile && f.Code != plan.CodePlanStale {
			t.Errorf("%v, want that the file is another's", f)
		}
		raw, err := os.ReadFile(path.Join(m.root, m.settings.Directory, at))
		if err != nil || string(raw) != foreign {
			t.Errorf("the other's file holds %q, %v", raw, err)
		}
		m.inside("rm " + path.Join(m.settings.Directory, at))
		m.serves(t, device(1))
	}},
	{"read-only folder", "", func(t *testing.T, m *labMachine) {
		m.inside("chown root: " + m.settings.Directory)
		f := m.run(t, device(1), device(4))
		m.inside("chown enroll: " + m.settings.Directory)
		if f == nil || f.Code != plan.CodeDHCPTransfer || !strings.Contains(f.WayOut(), "chown") {
			t.Errorf("%v, want %s and how it is given", f, plan.CodeDHCPTransfer)
		}
		m.serves(t, device(1))
	}},
	{"disk full", "", func(t *testing.T, m *labMachine) {
		// The folder's files on a small disk, over the folder, and not a byte left.
		m.inside(fmt.Sprintf("cd / && rm -rf /root/kept && cp -a %s /root/kept && mount -t tmpfs -o size=64k,mode=755 full %[1]s && chown enroll: %[1]s && cp -a /root/kept/. %[1]s/ && dd if=/dev/zero of=%[1]s/.fill bs=4k 2>/dev/null; true", m.settings.Directory))
		f := m.run(t, device(1), device(4))
		left := m.inside("ls -A " + m.settings.Directory)
		m.inside("umount -l " + m.settings.Directory)
		if f == nil || f.Code != plan.CodeDHCPTransfer || !strings.Contains(strings.Join(f.EvidenceLines(), "\n"), "free bytes: 0") {
			t.Errorf("%v\n%s, want %s and how much is free", f, strings.Join(f.EvidenceLines(), "\n"), plan.CodeDHCPTransfer)
		}
		if at := dhcp.FileName(m.settings, entry(device(4))); strings.Contains(left, at) {
			t.Errorf("half a file may stand there: %s", left)
		}
		m.serves(t, device(1))
	}},
	{"the service is not let to be told", "dnsmasq isc", func(t *testing.T, m *labMachine) {
		m.inside("mv /etc/sudoers.d/enroll /root/sudoers.kept")
		f := m.run(t, device(1), device(4))
		m.inside("mv /root/sudoers.kept /etc/sudoers.d/enroll")
		if f == nil || f.Code != plan.CodeDHCPCommand || !strings.Contains(f.WayOut(), "/etc/sudoers.d") {
			t.Errorf("%v, want %s", f, plan.CodeDHCPCommand)
		}
		m.serves(t, device(1))
		m.good(t, device(1), device(4)) // what was uploaded is made live now
		m.serves(t, device(1), device(4))
	}},
	{"the restart fails, and so does the way back", "kea isc", func(t *testing.T, m *labMachine) {
		m.inside("ip link set br0 down && ip address del 192.0.2.1/24 dev br0")
		f := m.run(t, device(1), device(5))
		// Kea never opens its socket on an interface that is not running when it starts.
		m.inside("ip address add 192.0.2.1/24 dev br0 && ip link set br0 up && timeout 60 sh -c 'until ip link show br0 | grep -q LOWER_UP; do sleep 0.1; done'")
		if f == nil || f.Code != plan.CodeDHCPUnhealthy {
			t.Fatalf("%v, want %s", f, plan.CodeDHCPUnhealthy)
		}
		told := strings.Join(f.EvidenceLines(), "\n")
		for _, word := range []string{"rollback", "commands", "systemctl"} {
			if !strings.Contains(told, word) {
				t.Errorf("%s is not told:\n%s", word, told)
			}
		}
		m.inside("systemctl reset-failed " + m.settings.Unit + "; systemctl restart " + m.settings.Unit + "; sleep 1") // what the evidence says
		m.serves(t, device(1))
		m.good(t, device(1), device(5))
		m.serves(t, device(1), device(5))
	}},
	{"a neighbour has the MAC", "", func(t *testing.T, m *labMachine) {
		twin := entry(device(6))
		twin.DeviceID, twin.Name, twin.Address = 7777, "other", netip.MustParseAddr("192.0.2.78")
		at := path.Join(m.root, m.settings.Directory, dhcp.FileName(m.settings, twin))
		if err := os.WriteFile(at, []byte(dhcp.Render(m.settings, twin)), 0o644); err != nil {
			t.Fatal(err)
		}
		f := m.run(t, device(1), device(6))
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		if f == nil || f.Code != plan.CodeDHCPConflict {
			t.Errorf("%v, want %s", f, plan.CodeDHCPConflict)
		}
		m.serves(t, device(1))
	}},
	{"the lock is held", "", func(t *testing.T, m *labMachine) {
		first := m.bench(t, device(1), device(6))
		pl := first.look(first.p)
		var uploaded bool
		for _, step := range pl.Steps {
			if step.Address.Kind == "reservation" && step.Blocked == nil {
				if f := first.step(first.p, step); f != nil {
					t.Fatal(f)
				}
				uploaded = true
				break
			}
		}
		if !uploaded {
			t.Fatal("there was nothing to upload")
		}
		if f := m.run(t, device(1), device(7)); f == nil || f.Code != plan.CodeDHCPLockHeld || !strings.Contains(f.Error(), "lab@") {
			t.Errorf("%v, want %s with its holder", f, plan.CodeDHCPLockHeld)
		}
		if err := first.p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.good(t, device(1), device(6), device(7))
		m.serves(t, device(1), device(6), device(7))
	}},
	{"the entries of others go when somebody asks", "", func(t *testing.T, m *labMachine) {
		if f := m.end(t, m.whole(t, device(1), device(7))); f != nil {
			t.Fatal(f)
		}
		m.serves(t, device(1), device(7))
		m.silent(t, mac(6))
		m.tidy(t)
	}},
	{"its holder is long dead", "", func(t *testing.T, m *labMachine) {
		m.inside(fmt.Sprintf(`cd %s && echo '{"owner":"nobody","host":"gone","pid":7,"since":"2026-01-01T00:00:00Z","lease":"5m0s","token":"00"}' >.enroll-lock && touch -d '1 hour ago' .enroll-lock && chown enroll: .enroll-lock`, m.settings.Directory))
		m.good(t, device(1), device(8))
		m.serves(t, device(1), device(8))
		m.tidy(t)
	}},
}

// TestServedLab: real clients keep their service, whatever goes wrong on the way.
func TestServedLab(t *testing.T) {
	for _, m := range labMachines(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // each machine has its own wire, clients and files
			m.t = t
			m.clean()
			t.Cleanup(m.clean)
			for _, row := range servedTable {
				if row.only != "" && !strings.Contains(row.only, m.name) {
					continue
				}
				if !t.Run(row.name, func(t *testing.T) { m.t = t; row.run(t, m) }) {
					m.t = t
					m.clean()
					m.good(t, device(1))
				}
				m.t = t
			}
		})
	}
}

// TestDiscoveryLab asks the real servers as a relay agent on their wire.
func TestDiscoveryLab(t *testing.T) {
	if asked := os.Getenv("ENROLL_LAB_ASK"); asked != "" { // on the wire
		hw, err := plan.ParseMAC(asked)
		if err != nil {
			t.Fatal(err)
		}
		got, f := dhcp.Discovery{MAC: hw, Server: netip.MustParseAddrPort("192.0.2.1:67"), Relay: netip.MustParseAddrPort("192.0.2.250:67"), Timeout: 3 * time.Second}.Ask(context.Background())
		switch {
		case f != nil:
			t.Fatal(f)
		case got == nil:
			fmt.Println("offer: none")
		default:
			fmt.Printf("offer: %s %s of %s\n", got.Address, got.Name, got.Server)
		}
		return
	}
	for _, m := range labMachines(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // each machine has a network of its own
			m.t = t
			m.clean()
			t.Cleanup(m.clean)
			m.good(t, device(1))
			leases := func() string {
				return m.inside("cat /var/lib/misc/dnsmasq.leases /var/lib/kea/kea-leases4.csv /var/lib/dhcp/dhcpd.leases 2>/dev/null; true")
			}
			before := leases()
			for hw, want := range map[plan.MAC]string{mac(1): "offer: 192.0.2.11 gpu-001-bmc of 192.0.2.1", mac(2): "offer: none"} {
				cmd := exec.Command("../../testdata/lab/onwire.sh", m.name, os.Args[0], "-test.run", "^TestDiscoveryLab$")
				cmd.Env = append(os.Environ(), "ENROLL_LAB_ASK="+hw.String())
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), want+"\n") {
					t.Errorf("%s: %v\n%s\nwant %s", hw, err, out, want)
				}
			}
			if after := leases(); after != before {
				t.Errorf("the questions changed the leases from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestSudoersLab: what is printed for sudoers is taken by sudo, and is enough.
func TestSudoersLab(t *testing.T) {
	for _, m := range labMachines(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // each machine has a network of its own
			m.t = t
			text := dhcp.Sudoers(m.settings)
			at := "/etc/sudoers.d/enroll"
			before := m.inside("cat " + at)
			if err := os.WriteFile(m.root+"/root/sudoers", []byte(text), 0o440); err != nil {
				t.Fatal(err)
			}
			m.inside("visudo -cf /root/sudoers && mv /root/sudoers " + at)
			t.Cleanup(func() { m.inside("cat >" + at + " <<'END'\n" + before + "\nEND\n") })
			p := m.connect(t, m.settings, time.Second)
			for _, found := range p.Probe(context.Background(), nil) {
				if found.Fault != nil {
					t.Errorf("%s: %v\n%s", found.What, found.Fault, strings.Join(found.Fault.EvidenceLines(), "\n"))
				}
			}
			for _, line := range strings.Split(text, "\n") {
				if _, command, found := strings.Cut(line, "NOPASSWD: "); found {
					m.inside("su enroll -c 'sudo -n " + command + "'; sleep 1")
				}
			}
			if out, err := m.script("inside.sh", m.name, "su", "enroll", "-c", "sudo -n /usr/bin/systemctl stop "+m.settings.Unit); err == nil {
				t.Errorf("a command that is not printed is let in: %s", out)
			}
		})
	}
}
