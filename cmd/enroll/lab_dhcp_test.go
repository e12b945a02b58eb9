//go:build lab

package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// on gives the lab with the site's DHCP server on another of its machines.
func (l *realLab) on(t *testing.T, machine string) *realLab {
	t.Helper()
	if machine == "dnsmasq" {
		return l
	}
	prefix := strings.ToUpper(machine) + "_"
	dir := l.otherSite(t, `service     = "dnsmasq"`, `service     = "`+machine+`"`)
	l = l.with("ENROLL_SITE", dir, "ENROLL_LAB_SITE_DIR", dir)
	for _, change := range [][2]string{
		{`port        = ` + l.get("SSH_PORT"), `port        = ` + l.get(prefix+"SSH_PORT")},
		{l.get("DHCP_DIRECTORY"), l.get(prefix + "DIRECTORY")},
	} {
		dir := l.otherSite(t, change[0], change[1])
		l = l.with("ENROLL_SITE", dir, "ENROLL_LAB_SITE_DIR", dir)
	}
	return l
}

// script runs one of the lab's.
func (l *realLab) script(t *testing.T, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join("..", "..", "testdata", "lab", name), args...) //nolint:gosec // our own
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// folder is where a machine's reservations stand.
func (l *realLab) folder(machine string) string {
	if machine == "dnsmasq" {
		return "/etc/enroll-hosts.d"
	}
	return l.get(strings.ToUpper(machine) + "_DIRECTORY")
}

// vacate takes the device's reservation, and what a killed run left, from a machine.
func (l *realLab) vacate(t *testing.T, machine, device string) {
	t.Helper()
	index := map[string]string{"dnsmasq": "true", "kea": `printf '[\n]\n' >index.json`, "isc": ": >index.conf"}[machine]
	unit := map[string]string{"dnsmasq": "dnsmasq", "kea": "kea-dhcp4-server", "isc": "isc-dhcp-server"}[machine]
	if out, code := l.script(t, "inside.sh", machine, "sh", "-c", "cd "+l.folder(machine)+" && "+index+" && rm -f "+device+"-bmc* .*enroll* && systemctl restart "+unit); code != 0 {
		t.Fatal(out)
	}
}

// TestLabVerifyDHCP runs the program on the BMC network of each machine: first
// nothing is offered, then what was planned, then something else.
func TestLabVerifyDHCP(t *testing.T) {
	base := openLab(t)
	device := "gpu-020"
	base.reset(t, device)
	for _, machine := range []string{"dnsmasq", "kea", "isc"} {
		t.Run(machine, func(t *testing.T) {
			l := base.on(t, machine)
			l.vacate(t, machine, device)
			t.Cleanup(func() { l.vacate(t, machine, device) })
			netbox, err := url.Parse(l.get("NETBOX_URL"))
			if err != nil {
				t.Fatal(err)
			}
			// NetBox is reached there at the address that it has here.
			bridge := exec.CommandContext(t.Context(), "../../testdata/lab/onwire.sh", machine, "sh", "-c",
				"ip link set lo up; exec socat TCP4-LISTEN:"+netbox.Port()+",bind=127.0.0.1,reuseaddr,fork 'EXEC:nsenter --net=/proc/"+strconv.Itoa(os.Getpid())+"/ns/net socat STDIO TCP4\\:127.0.0.1\\:"+netbox.Port()+"'")
			bridge.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := bridge.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = syscall.Kill(-bridge.Process.Pid, syscall.SIGTERM) // the forks too
				_ = bridge.Wait()
			}()
			verify := func(want int) string {
				t.Helper()
				var out string
				for range 20 { // until socat listens
					cmd := l.command()
					cmd.Path, cmd.Args = "../../testdata/lab/onwire.sh", []string{"onwire.sh", machine, l.binary, "verify", "--dhcp", device, "--relay", "192.0.2.250", "--server", "192.0.2.1", "--timeout", "3s"}
					raw, _ := cmd.CombinedOutput()
					out = string(raw)
					if cmd.ProcessState.ExitCode() == want {
						return out
					}
					if !strings.Contains(out, "NETBOX_UNREACHABLE") {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				t.Fatalf("want exit %d\n%s", want, out)
				return ""
			}
			has(t, verify(exitVerify), "✗ address", "no offer")
			l.enroll(t, exitDone, "apply", device, "--target", "dhcp.*", "--auto-approve")
			has(t, verify(exitDone), "✓ address: 192.0.2.30", "✓ host name: "+device+"-bmc")
			has(t, l.enroll(t, exitDone, "plan", device, "--target", "dhcp.*", "--detailed-exitcode"), "Nothing to do")
		})
	}
}

// killedAtWork runs apply and kills it hard once it holds the lock of a DHCP
// machine and has its marker there.
func (l *realLab) killedAtWork(t *testing.T, machine string, args ...string) {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(l.get("STATE"), "pids", "dhcp-"+machine+"-init"))
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join("/proc", strings.Fields(string(pid))[0], "root", l.folder(machine), ".enroll-pending")
	cmd := l.command(args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		select {
		case err := <-ended:
			t.Fatalf("apply ended before it wrote to the DHCP server: %v\n%s", err, out.String())
		default:
		}
		if _, err := os.Stat(marker); err == nil {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("it ended by itself before it was killed")
	}
}

// TestLabKilledInDHCP kills the program while it is at the DHCP server. The next
// run waits for the lease's end and finishes; here the lease is made to end.
func TestLabKilledInDHCP(t *testing.T) {
	base := openLab(t)
	device := "gpu-021"
	base.reset(t, device)
	for _, machine := range []string{"dnsmasq", "kea", "isc"} {
		t.Run(machine, func(t *testing.T) {
			l := base.on(t, machine)
			l.vacate(t, machine, device)
			t.Cleanup(func() { l.vacate(t, machine, device) })
			l.killedAtWork(t, machine, "apply", device, "--target", "dhcp.*", "--auto-approve")
			if out, code := l.script(t, "inside.sh", machine, "sh", "-c", "cd "+l.folder(machine)+" && for f in .enroll-lock .*.enroll-*; do [ ! -e $f ] || touch -d '2 hours ago' $f; done"); code != 0 {
				t.Fatal(out)
			}
			l.enroll(t, exitDone, "apply", device, "--target", "dhcp.*", "--auto-approve")
			has(t, l.enroll(t, exitDone, "plan", device, "--target", "dhcp.*", "--detailed-exitcode"), "Nothing to do")
			out, _ := l.script(t, "inside.sh", machine, "ls", "-A", l.folder(machine))
			// The lock that was moved away for its heir is swept an hour later.
			if regexp.MustCompile(`(?m)^\.`).MatchString(regexp.MustCompile(`(?m)^\.enroll-lock\.enroll-[0-9a-f]{16}$`).ReplaceAllString(out, "")) {
				t.Errorf("left behind:\n%s", out)
			}
			mac := l.netbox(t, http.MethodGet, "dcim/interfaces/?name=bmc&device="+device, nil)["results"].([]any)[0].(map[string]any)["mac_address"].(string)
			if out, code := l.script(t, "lease.sh", strings.ToLower(mac), machine); code != 0 {
				t.Errorf("no lease for %s: %s", mac, out)
			}
		})
	}
}
