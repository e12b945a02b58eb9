package netbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// site is the site that the tests' devices are in.
func site() *plan.Site {
	return &plan.Site{
		Name: "demo", NetBox: plan.NetBoxSettings{Site: "lab1"}, RecordPlatformClass: true,
		Classes: []plan.DeviceClass{{Name: "COMPUTE_GPU", Roles: []string{"gpu-compute"}, GPU: true}, {Name: "SWITCH", Roles: []string{"leaf"}}},
		Ironics: []plan.IronicSettings{{Name: "main", DeviceClasses: []string{"COMPUTE_GPU"}}},
	}
}

// host is a device without a gap: two frontend NICs in a LAG, the first through
// two patch panels, and a BMC.
func host(n int) netboxtest.Device {
	mac := func(port int) string { return fmt.Sprintf("02:00:00:%02X:%02X:%02X", n>>8, n&255, port) }
	leaf := fmt.Sprintf("leaf-r%02d", n/5+1)
	port := func(k int) string { return fmt.Sprintf("Ethernet%d/%d", k, n%5+1) }
	lag := fmt.Sprintf("Port-Channel%d", n%5+1)
	return netboxtest.Device{
		Type: netboxtest.Type{CustomFields: map[string]any{"gpu_type": "H200"}},
		Name: fmt.Sprintf("gpu-%03d", n), Serial: fmt.Sprintf("SVC%04d", n), Rack: fmt.Sprintf("r%02d", n/5+1), Position: float64(1 + 8*(n%5)),
		Context: map[string]any{
			"ntp": []any{"192.0.2.11", "ntp.example.net"},
			"ironic_settings": map[string]any{
				"driver": "redfish", "interface_type": "100gbase-sr4", "raid_interface": "no-raid", "boot_interface": "redfish-virtual-media", "resource_class": "gpu",
				"cpu_arch": "x86_64", "capabilities": map[string]any{"boot_mode": "uefi"}, "root_device": map[string]any{"size": ">= 400"},
				"bond": map[string]any{"mode": "802.3ad", "miimon": 100, "xmit_hash_policy": "layer3+4", "interfaces": []any{"eth0", "eth1"}},
			},
			"inspection_validation": map[string]any{"gpus": 8},
		},
		OOB: netboxtest.OOB{Address: fmt.Sprintf("198.18.%d.%d/16", n/250, n%250+1), Interface: "bmc"},
		Interfaces: []netboxtest.Interface{
			{Name: "bmc", MAC: mac(0), MgmtOnly: true},
			{Name: "eth1", Type: "100gbase-sr4", MAC: mac(2), Peer: netboxtest.Peer{Device: leaf, Port: port(2), Label: "swp2", LAG: lag}},
			{Name: "eth0", Type: "100gbase-sr4", MAC: mac(1), Peer: netboxtest.Peer{Device: leaf, Port: port(1), Label: "swp1", Text: "server port", LAG: lag}, Panels: []string{"pp-1", "pp-2"}},
			{Name: "ib0", Type: "infiniband-ndr"},
		},
	}
}

// serve starts a NetBox with the devices and the tag; it ends with the test.
func serve(t *testing.T, opt netboxtest.Options, devices ...netboxtest.Device) *netboxtest.Server {
	t.Helper()
	s := netboxtest.New(opt)
	t.Cleanup(s.Close)
	for _, d := range devices {
		s.AddDevice(d)
	}
	s.AddTag("ironic")
	return s
}

// client does not wait between attempts.
func client(t *testing.T, url, token string) *netbox.Client {
	t.Helper()
	c, err := netbox.New(netbox.Options{
		URL: url, Token: plan.NewSecret(token, ""), Timeout: time.Minute, UserAgent: "enroll/test", ChangelogMessage: "enroll plan 01J", Now: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// intent reads one device that must be there.
func intent(t *testing.T, c *netbox.Client, st *plan.Site, name string) *plan.Intent {
	t.Helper()
	intents, failed, err := c.Intents(context.Background(), st, []string{name})
	if err != nil || len(failed) > 0 || len(intents) != 1 {
		t.Fatalf("intents %d, failed %v, error %v", len(intents), failed, err)
	}
	return intents[0]
}

func scopeOf(st *plan.Site, intents ...*plan.Intent) *plan.Scope {
	sc := &plan.Scope{Site: st}
	for _, in := range intents {
		sc.Targets = append(sc.Targets, &plan.Target{Site: st, Intent: in})
	}
	return sc
}

// through runs a step until it does not wait any more.
func through(t *testing.T, c *netbox.Client, sc *plan.Scope, step *plan.Step) plan.Result {
	t.Helper()
	var memo plan.Memo
	for range 10 {
		r := c.Run(context.Background(), sc, step, memo)
		if r.Outcome != plan.OutcomeWait {
			return r
		}
		memo = r.Memo
	}
	t.Fatalf("%s waits for ever", step.Address)
	return plan.Result{}
}

// writable are the steps that a device without a gap gets.
func writable() []string {
	return []string{"netbox.platform_class", "netbox.status", "netbox.tag[ironic]"}
}

// texts shows faults one a line, with what a test wants to see of them.
func texts(faults []*plan.Fault) string {
	var lines []string
	for _, f := range faults {
		lines = append(lines, f.Error())
	}
	return strings.Join(lines, "\n")
}

func wantCode(t *testing.T, err error, code plan.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// faultOf wants an error of the code and gives its fault.
func faultOf(t *testing.T, err error, code plan.Code) *plan.Fault {
	t.Helper()
	wantCode(t, err, code)
	return plan.AsFault(err)
}
