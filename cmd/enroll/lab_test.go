//go:build lab

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// The real lab of testdata/lab: NetBox, Ironic, sushy-tools, sshd and dnsmasq.
// Every test brings its device to the state that it begins with, so that the
// suite can be run again on a running lab.

// realLab is the way to the services, and the program under test.
type realLab struct {
	binary string
	env    map[string]string
}

var buildOnce = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // built once for all tests
	dir, err := os.MkdirTemp("", "enroll-lab-test")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "enroll")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".").CombinedOutput() //nolint:gosec // our own path
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
})

func openLab(t *testing.T) *realLab {
	t.Helper()
	binary, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	l := &realLab{binary: binary, env: map[string]string{}}
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok {
			l.env[name] = value
		}
	}
	for _, name := range []string{"NETBOX_URL", "NETBOX_TOKEN", "IRONIC_URL", "SSH_HOST", "SSH_PORT", "SSH_USER", "SSH_KEY", "SSH_KNOWN_HOSTS", "DHCP_DIRECTORY", "SITE_DIR"} {
		if l.env["ENROLL_LAB_"+name] == "" {
			t.Fatalf("ENROLL_LAB_%s is not set; run make lab-test", name)
		}
	}
	l.env["ENROLL_SITE"] = l.get("SITE_DIR")
	l.env["NO_COLOR"] = "1"
	l.env["XDG_STATE_HOME"] = t.TempDir()
	return l
}

func (l *realLab) get(name string) string { return l.env["ENROLL_LAB_"+name] }

// with gives the lab with other variables for the program.
func (l *realLab) with(kv ...string) *realLab {
	other := &realLab{binary: l.binary, env: maps.Clone(l.env)}
	for i := 0; i < len(kv); i += 2 {
		other.env[kv[i]] = kv[i+1]
	}
	return other
}

func (l *realLab) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), l.binary, args...) //nolint:gosec // built by us
	for name, value := range l.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// enroll runs the program and wants an exit code; it gives all that was printed.
func (l *realLab) enroll(t *testing.T, want int, args ...string) string {
	t.Helper()
	out, err := l.command(args...).CombinedOutput()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != want {
		t.Fatalf("enroll %s: exit %d, want %d\n%s", strings.Join(args, " "), code, want, out)
	}
	l.noSecret(t, string(out))
	return string(out)
}

// noSecret looks for every secret of the lab's environment.
func (l *realLab) noSecret(t *testing.T, text string) {
	t.Helper()
	for name, value := range l.env {
		secret := strings.HasPrefix(name, "ENROLL_SECRET_") && !strings.HasSuffix(name, "_USERNAME") && !strings.HasSuffix(name, "_KNOWN_HOSTS")
		if secret && len(value) > 3 && strings.Contains(text, value) {
			t.Errorf("the value of %s was printed", name)
		}
	}
}

// call sends a request with a JSON body, the way an operator would with curl.
func (l *realLab) call(t *testing.T, method, url string, header map[string]string, body any) (int, map[string]any) {
	t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatalf("%s %s: %d %s", method, url, res.StatusCode, raw)
		}
	}
	return res.StatusCode, out
}

func (l *realLab) netbox(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	status, out := l.call(t, method, l.get("NETBOX_URL")+"/api/"+path, map[string]string{"Authorization": "Bearer " + l.get("NETBOX_TOKEN")}, body)
	if status >= 300 {
		t.Fatalf("NetBox: %s %s: %d %v", method, path, status, out)
	}
	return out
}

func (l *realLab) ironic(t *testing.T, method, path string, body any) (int, map[string]any) {
	t.Helper()
	return l.call(t, method, l.get("IRONIC_URL")+"/v1/"+path, map[string]string{"X-OpenStack-Ironic-API-Version": "1.82"}, body)
}

// shell runs a command on the DHCP machine.
func (l *realLab) shell(t *testing.T, script string) string {
	t.Helper()
	key, err := os.ReadFile(l.get("SSH_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := knownhosts.New(l.get("SSH_KNOWN_HOSTS"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(l.get("SSH_HOST"), l.get("SSH_PORT")), &ssh.ClientConfig{
		User: l.get("SSH_USER"), Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: hosts, Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	out, err := session.CombinedOutput(script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func (l *realLab) device(t *testing.T, name string) map[string]any {
	t.Helper()
	results := l.netbox(t, http.MethodGet, "dcim/devices/?name="+name, nil)["results"].([]any)
	if len(results) != 1 {
		t.Fatalf("NetBox has %d devices %s", len(results), name)
	}
	return results[0].(map[string]any)
}

func id(o map[string]any) string { return strconv.Itoa(int(o["id"].(float64))) }

// reset makes devices those that are racked and recorded and nothing else.
func (l *realLab) reset(t *testing.T, names ...string) {
	t.Helper()
	remove := "cd " + l.get("DHCP_DIRECTORY") + " && rm -f .enroll-* .*.enroll-*"
	for _, name := range names {
		l.deleteNode(t, name)
		remove += " " + name + "-bmc"
		l.netbox(t, http.MethodPatch, "dcim/devices/"+id(l.device(t, name))+"/", map[string]any{"status": "staged", "tags": []any{}})
	}
	l.shell(t, remove) // one session for all: sshd refuses who logs in too often
}

// deleteNode deletes a device's node, whatever a killed run left it at.
func (l *realLab) deleteNode(t *testing.T, name string) {
	t.Helper()
	status, node := l.ironic(t, http.MethodGet, "nodes/"+name, nil)
	if status == http.StatusNotFound {
		return
	}
	if node["instance_uuid"] != nil {
		l.ironicPatch(t, name, map[string]any{"op": "remove", "path": "/instance_uuid"})
	}
	// Outside of maintenance Ironic keeps a node that waits, or failed, in inspection.
	// What holds the node's lock is waited for.
	for range 120 {
		l.ironic(t, http.MethodPut, "nodes/"+name+"/maintenance", map[string]any{})
		if status, _ = l.ironic(t, http.MethodDelete, "nodes/"+name, nil); status == http.StatusNoContent || status == http.StatusNotFound {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("node %s cannot be deleted: %d", name, status)
}

func (l *realLab) ironicPatch(t *testing.T, name string, ops ...map[string]any) {
	t.Helper()
	if status, out := l.ironic(t, http.MethodPatch, "nodes/"+name, ops); status != http.StatusOK {
		t.Fatalf("Ironic: PATCH %s: %d %v", name, status, out)
	}
}

// traces is what a write to any system would change: NetBox's change log,
// Ironic's nodes and ports with their times, the history of the device's own
// node (Ironic writes into those of others by itself, after its power sync), and
// the times of the files on the DHCP machine.
func (l *realLab) traces(t *testing.T, device string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, "NetBox changes:", l.netbox(t, http.MethodGet, "core/object-changes/?limit=1", nil)["count"])
	_, nodes := l.ironic(t, http.MethodGet, "nodes/detail?limit=1000", nil)
	for _, n := range nodes["nodes"].([]any) {
		node := n.(map[string]any)
		fmt.Fprintln(&b, "node", node["name"], node["provision_state"], node["provision_updated_at"], node["driver_info"], node["maintenance"])
		if node["name"] == device {
			_, history := l.ironic(t, http.MethodGet, "nodes/"+device+"/history", nil)
			fmt.Fprintln(&b, "node", device, node["power_state"], history["history"])
		}
	}
	_, ports := l.ironic(t, http.MethodGet, "ports/detail?limit=1000", nil)
	for _, p := range ports["ports"].([]any) {
		port := p.(map[string]any)
		fmt.Fprintln(&b, "port", port["address"], port["created_at"], port["updated_at"])
	}
	b.WriteString(l.shell(t, "cd "+l.get("DHCP_DIRECTORY")+" && stat -c '%n %y %s' . .enroll* * 2>/dev/null || true"))
	return b.String()
}

// unmoved wants that nothing was written between.
func (l *realLab) unmoved(t *testing.T, device string, act func()) {
	t.Helper()
	before := l.traces(t, device)
	act()
	if after := l.traces(t, device); after != before {
		t.Errorf("something was written.\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

const nothingToDo = "Plan: 1 devices, 0 to change, 0 to run, 0 to verify, 0 blocked; 0 host reboots, 0 disk erase, 0 service restart.\n"

func TestLabFreshDeviceToAvailable(t *testing.T) {
	l := openLab(t)
	l.reset(t, "gpu-001")
	l.unmoved(t, "gpu-001", func() {
		has(t, l.enroll(t, exitChanges, "plan", "gpu-001", "--detailed-exitcode"), "1 host reboots, 1 disk erase, 1 service restart")
	})
	out := l.enroll(t, exitDone, "apply", "gpu-001", "--auto-approve")
	t.Log(out[strings.Index(out, "Approved"):])
	_, node := l.ironic(t, http.MethodGet, "nodes/gpu-001", nil)
	if node["provision_state"] != "available" || node["power_state"] != "power on" {
		t.Errorf("node is %v, %v", node["provision_state"], node["power_state"])
	}
	device := l.device(t, "gpu-001")
	if status := device["status"].(map[string]any)["value"]; status != "active" {
		t.Errorf("NetBox status %v", status)
	}
	if tags := fmt.Sprint(device["tags"]); !strings.Contains(tags, "slug:ironic") {
		t.Errorf("NetBox tags %s", tags)
	}
	l.unmoved(t, "gpu-001", func() {
		has(t, l.enroll(t, exitDone, "plan", "gpu-001", "--detailed-exitcode"), "\nNothing to do.\n", nothingToDo)
		has(t, l.enroll(t, exitDone, "apply", "gpu-001", "--auto-approve"), nothingToDo)
	})
}

func TestLabOwnedNodeIsNotTouched(t *testing.T) {
	l := openLab(t)
	l.reset(t, "gpu-002")
	if status, out := l.ironic(t, http.MethodPost, "nodes", map[string]any{"name": "gpu-002", "driver": "fake-hardware"}); status != http.StatusCreated {
		t.Fatalf("node: %d %v", status, out)
	}
	l.ironicPatch(t, "gpu-002", map[string]any{"op": "add", "path": "/instance_uuid", "value": "5f1ff2a1-7f0e-4f0c-9e53-6a6f6a3f6f02"})
	t.Cleanup(func() { l.reset(t, "gpu-002") })
	l.unmoved(t, "gpu-002", func() {
		has(t, l.enroll(t, exitDenied, "plan", "gpu-002"), "NODE_OWNED", "instance_uuid 5f1ff2a1-7f0e-4f0c-9e53-6a6f6a3f6f02 is set", " 0 to change, 0 to run, ")
		l.enroll(t, exitDenied, "apply", "gpu-002", "--auto-approve")
	})
}

// recable moves the cable of an interface to another switch port.
func (l *realLab) recable(t *testing.T, device, nic, leaf, port string) {
	t.Helper()
	one := func(path string) map[string]any {
		results := l.netbox(t, http.MethodGet, path, nil)["results"].([]any)
		if len(results) != 1 {
			t.Fatalf("NetBox: %s has %d results", path, len(results))
		}
		return results[0].(map[string]any)
	}
	iface := one("dcim/interfaces/?device=" + device + "&name=" + nic)
	if cable, ok := iface["cable"].(map[string]any); ok {
		l.netbox(t, http.MethodDelete, "dcim/cables/"+id(cable)+"/", nil)
	}
	far := one("dcim/interfaces/?device=" + leaf + "&name=" + port)
	end := func(o map[string]any) []any {
		return []any{map[string]any{"object_type": "dcim.interface", "object_id": o["id"]}}
	}
	l.netbox(t, http.MethodPost, "dcim/cables/", map[string]any{"a_terminations": end(iface), "b_terminations": end(far), "status": "connected"})
}

func TestLabWrongCableIsNamed(t *testing.T) {
	l := openLab(t)
	l.reset(t, "gpu-022")
	back := func() { l.recable(t, "gpu-022", "eth0", "leaf-r05-1", "Ethernet1/2") }
	t.Cleanup(back)
	l.recable(t, "gpu-022", "eth0", "leaf-r05-1", "Ethernet1/5")
	out := l.enroll(t, exitVerify, "apply", "gpu-022", "--auto-approve")
	has(t, out, "INSPECTION_MISMATCH", "expected leaf-r05-1 Ethernet1/5, observed leaf-r05-1 Ethernet1/2")
	t.Log(out[strings.Index(out, "Approved"):])
	if _, node := l.ironic(t, http.MethodGet, "nodes/gpu-022", nil); node["provision_state"] != "manageable" {
		t.Errorf("the node went on to %v", node["provision_state"])
	}
	// The evidence is at hand now: planning alone finds it, and goes no further.
	l.unmoved(t, "gpu-022", func() {
		has(t, l.enroll(t, exitVerify, "plan", "gpu-022"), "leaf-r05-1 Ethernet1/5", "leaf-r05-1 Ethernet1/2", " 0 to change, 0 to run, ")
	})
	back()
	l.enroll(t, exitDone, "apply", "gpu-022", "--auto-approve")
	has(t, l.enroll(t, exitDone, "plan", "gpu-022", "--detailed-exitcode"), nothingToDo)
}

// killed runs apply and kills it hard once it has printed a line that is the one.
func (l *realLab) killed(t *testing.T, the func(line []byte) bool, args ...string) {
	t.Helper()
	cmd := l.command(args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(out, &seen))
	lines.Buffer(nil, 64<<20) // the plan is one line of the stream of events
	for lines.Scan() {
		if the(lines.Bytes()) {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed, as wanted
			return
		}
	}
	t.Fatalf("it came to its end and not to the kill: %v, %v\n%s", lines.Err(), cmd.Wait(), seen.String())
}

// saying is a line with a text.
func saying(text string) func([]byte) bool {
	return func(line []byte) bool { return bytes.Contains(line, []byte(text)) }
}

func TestLabKilledApplyConverges(t *testing.T) {
	t.Run("planned again", func(t *testing.T) {
		l := openLab(t)
		l.reset(t, "gpu-004")
		l.killed(t, saying("provision state inspecting"), "apply", "gpu-004", "--auto-approve")
		l.enroll(t, exitDone, "apply", "gpu-004", "--auto-approve")
		has(t, l.enroll(t, exitDone, "plan", "gpu-004", "--detailed-exitcode"), nothingToDo)
	})
	t.Run("the same plan file", func(t *testing.T) {
		l := openLab(t)
		l.reset(t, "gpu-005")
		file := filepath.Join(t.TempDir(), "gpu-005.plan")
		l.enroll(t, exitDone, "plan", "gpu-005", "--out", file)
		l.killed(t, saying("provision state clean"), "apply", file, "--auto-approve")
		l.enroll(t, exitDone, "apply", file, "--auto-approve")
		has(t, l.enroll(t, exitDone, "plan", "gpu-005", "--detailed-exitcode"), nothingToDo)
		has(t, l.enroll(t, exitStale, "apply", file, "--auto-approve"), "PLAN_ALREADY_APPLIED")
	})
}

// otherSite is the lab's site folder with a text replaced.
func (l *realLab) otherSite(t *testing.T, old, now string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(l.get("SITE_DIR"), "site.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte(old)) {
		t.Fatalf("the lab's site file has no %q", old)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), bytes.ReplaceAll(raw, []byte(old), []byte(now)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// closedPort is a port of loopback that nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestLabWhatGoesWrongIsNamed(t *testing.T) {
	l := openLab(t)
	l.reset(t, "gpu-006")
	// try wants the same from plan and apply, and no trace of either.
	try := func(t *testing.T, l *realLab, code int, parts ...string) {
		t.Helper()
		l.unmoved(t, "gpu-006", func() {
			out := l.enroll(t, code, "plan", "gpu-006")
			has(t, out, parts...)
			t.Log(out)
			has(t, l.enroll(t, code, "apply", "gpu-006", "--auto-approve"), parts...)
		})
	}
	t.Run("NetBox token", func(t *testing.T) {
		try(t, l.with("ENROLL_SECRET_NETBOX_ENROLL_CREDENTIAL", "nbt_AAAAAAAAAAAA.bm90QVRva2VuQXRBbGwxMjM0NTY3ODkwYWJjZGVm"), exitError, "NETBOX_DENIED", "INFRA_ENG")
	})
	t.Run("NetBox down", func(t *testing.T) {
		dir := l.otherSite(t, l.get("NETBOX_URL"), "http://"+closedPort(t))
		try(t, l.with("ENROLL_SITE", dir), exitError, "NETBOX_UNREACHABLE")
	})
	t.Run("Ironic down", func(t *testing.T) {
		dir := l.otherSite(t, l.get("IRONIC_URL"), "http://"+closedPort(t))
		try(t, l.with("ENROLL_SITE", dir), exitError, "IRONIC_UNREACHABLE", "OPENSTACK")
	})
	t.Run("changed host key", func(t *testing.T) {
		lines := strings.Split(l.env["ENROLL_SECRET_SSH_CONFIG_DHCP_KNOWN_HOSTS"], "\n")
		i := slices.IndexFunc(lines, func(s string) bool { return strings.Contains(s, "ssh-ed25519") })
		host, _, _ := strings.Cut(lines[i], " ")
		other := host + " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJbSMpPPkSrtqHWBWKRpQBdzWbvNGmLHcpsStGEmOjlK"
		try(t, l.with("ENROLL_SECRET_SSH_CONFIG_DHCP_KNOWN_HOSTS", other), exitError, "DHCP_HOST_KEY_CHANGED", "attack")
	})
	t.Run("three mistakes in the site file", func(t *testing.T) {
		dir := l.otherSite(t, "device_classes      = [\"COMPUTE_GPU\"]", "device_classes      = [\"COMPUTE_GPUU\"]\n    atempts = 3\n    timeout = \"fast\"")
		try(t, l.with("ENROLL_SITE", dir), exitConfig, "3 errors", "COMPUTE_GPUU", "attempts", "timeout", "site.hcl:")
	})
	t.Run("unreachable BMC", func(t *testing.T) {
		// Its DHCP entry is in force, so it should answer.
		l.enroll(t, exitDone, "apply", "gpu-006", "--auto-approve", "--target", "lab1/gpu-006/dhcp.*", "--target", "lab1/dhcp.*")
		device := l.device(t, "gpu-006")
		local := device["local_context_data"]
		t.Cleanup(func() {
			l.netbox(t, http.MethodPatch, "dcim/devices/"+id(device)+"/", map[string]any{"local_context_data": local})
			l.reset(t, "gpu-006")
		})
		l.netbox(t, http.MethodPatch, "dcim/devices/"+id(device)+"/", map[string]any{"local_context_data": map[string]any{
			"ironic_settings": map[string]any{"redfish_address_override": "https://" + closedPort(t)}}})
		try(t, l, exitError, "BMC_UNREACHABLE", "ONSITE")
	})
}
