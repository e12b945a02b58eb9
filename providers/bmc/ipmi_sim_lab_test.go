//go:build lab

package bmc_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// TestIPMILoginLab logs in at OpenIPMI's simulator, which is not ours. Debian 12's
// speaks cipher suite 3 and not 17: that it refuses 17 and takes 3 is the fallback
// for older firmware.
func TestIPMILoginLab(t *testing.T) {
	program, err := exec.LookPath("ipmi_sim")
	if err != nil {
		t.Fatal("ipmi_sim is not installed; make lab-up installs it (package openipmi)")
	}
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.LocalAddr().(*net.UDPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	auth := "none md2 md5 straight"
	files := map[string]string{
		"lan.conf": fmt.Sprintf("name \"sim\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 %d\n    priv_limit admin\n    allowed_auths_user %s\n    allowed_auths_admin %s\n    guid a123456789abcdefa123456789abcdef\n  endlan\n"+
			"  user 1 true \"\" \"unused\" user 10 %s\n  user 2 true %q %q user 10 %s\n", port, auth, auth, auth, monitorName, monitorPassword, auth),
		"sim.emu": "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sim := exec.CommandContext(ctx, program, "-c", filepath.Join(dir, "lan.conf"), "-f", filepath.Join(dir, "sim.emu"), "-s", dir, "-n")
	sim.WaitDelay = 5 * time.Second
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = sim.Wait() }()
	started(t, port)

	w := ipmiWorld(t, port, monitorPassword)
	checkLogin(t, w, plan.CheckPass, "suite 3")
	w.close()
	w = ipmiWorld(t, port, "Wrong-2-Password")
	checkLogin(t, w, plan.CheckFail, "did not let the monitoring account in")
	w.close()
}

// started waits until the simulator answers a presence ping (ASF, as every RMCP
// service does).
func started(t *testing.T, port int) {
	t.Helper()
	ping := []byte{0x06, 0x00, 0xff, 0x06, 0x00, 0x00, 0x11, 0xbe, 0x80, 0x00, 0x00, 0x00}
	for range 100 {
		c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(ping) // refused while nobody listens
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		n, err := c.Read(make([]byte, 64))
		_ = c.Close()
		if err == nil && n > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("ipmi_sim does not answer")
}
