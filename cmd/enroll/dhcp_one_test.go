package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The entry of one device cannot be made: another hand took its address, before the
// plan or between plan and apply. The other device is enrolled all the same, and the
// run ends with 14.
func TestDHCPOfOneDevice(t *testing.T) {
	const folder, other = "/etc/dnsmasq.d/enroll-hosts/", "02:00:5e:09:00:00,ADDRESS,by-hand\n"
	for _, late := range []bool{false, true} {
		name := map[bool]string{false: "before the plan", true: "before the apply"}[late]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEstate(t, 2, families()[0])
			take := func() {
				e.lab.DHCP.PutFile(folder+"by-hand", strings.Replace(other, "ADDRESS", e.lab.Hosts[1].OOB.String(), 1), 0o644)
			}
			if !late {
				take()
			}
			file := filepath.Join(e.dir, "both.plan")
			if r := e.run("plan", "gpu-001", "gpu-002", "--out", file); late && r.code != exitDone || !late && r.code != exitPartial {
				t.Fatalf("plan: exit %d\n%s", r.code, r.text)
			}
			if late {
				take()
			}
			r := e.apply(file)
			if r.code != exitPartial || !strings.Contains(r.text, "DHCP_ENTRY_CONFLICT") {
				t.Errorf("apply: exit %d\n%s", r.code, r.text)
			}
			for device, want := range map[string]bool{"gpu-001": true, "gpu-002": false} {
				if _, stands := e.lab.DHCP.ReadFile(folder + device + "-bmc"); stands != want {
					t.Errorf("%s has an entry: %v", device, stands)
				}
			}
			if n, there := e.lab.Ironic.Node("gpu-001"); !there || n.ProvisionState != "available" {
				t.Errorf("gpu-001 is %q", n.ProvisionState)
			}
			if left := e.leaks(); len(left) > 0 {
				t.Errorf("left behind: %s", strings.Join(left, ", "))
			}
		})
	}
}
