package netboxtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// The site odd1: twelve devices, each recorded with one mistake, and a name that
// two devices have. testdata/lab/seed.py makes the same site in a real NetBox.
const oddSite = "odd1"

func oddName(n int) string { return fmt.Sprintf("odd-%02d", n) }

// planted are the mistakes with the one fault that each has to give.
func planted() []struct {
	n     int
	plant func(d *netboxtest.Device)
	code  plan.Code
	says  string
} {
	nic := func(d *netboxtest.Device, name string) *netboxtest.Interface {
		return &d.Interfaces[slices.IndexFunc(d.Interfaces, func(i netboxtest.Interface) bool { return i.Name == name })]
	}
	return []struct {
		n     int
		plant func(d *netboxtest.Device)
		code  plan.Code
		says  string
	}{
		{1, func(d *netboxtest.Device) { nic(d, "eth1").Peer = oddPort(2, 2) }, plan.CodeIntentAmbiguous, "in different LAGs: eth0 → odd-leaf Ethernet1/1 (Port-Channel1), eth1 → odd-leaf Ethernet2/2 (Port-Channel2)"},
		{2, func(d *netboxtest.Device) { nic(d, "eth1").Peer = oddPort(1, 2) }, plan.CodeIntentAmbiguous, "in different LAGs: eth0 → odd-leaf Ethernet1/2 (Port-Channel2), eth1 → odd-leaf Ethernet2/1 (Port-Channel1)"},
		{3, func(d *netboxtest.Device) { nic(d, "eth1").Peer.LAG = "" }, plan.CodeIntentAmbiguous, "only some of its switch ports are in a LAG"},
		{4, func(d *netboxtest.Device) {
			nic(d, "bmc").MAC, nic(d, "bmc").MACs = "", []string{nic(d, "bmc").MAC}
		}, plan.CodeIntentIncomplete, "interface bmc of odd-04 has the MAC 02:0D:D0:00:04:00, and none is marked primary"},
		{5, func(d *netboxtest.Device) { d.OOB.Interface = "eth0" }, plan.CodeIntentInvalid, "the oob_ip of odd-05 is on eth0, which is an interface of the frontend network"},
		{6, func(d *netboxtest.Device) { d.Context["ztp"] = map[string]any{} }, plan.CodePlatformUnresolvable, "ztp has no section infiniband"},
		{7, func(d *netboxtest.Device) { d.Status = "planned" }, plan.CodeStatusNotEligible, "odd-07 has the status planned"},
		{8, func(d *netboxtest.Device) { d.Position = 0 }, plan.CodeDeviceNotPlaced, "odd-08 is in rack o01 without a position"},
		{9, func(d *netboxtest.Device) { nic(d, "eth0").Planned = true }, plan.CodeIntentIncomplete, "the path from interface eth0 of odd-09 to odd-leaf Ethernet1/9 has a cable that is not connected"},
		{10, func(d *netboxtest.Device) {
			nic(d, "eth0").More = []netboxtest.Peer{{Device: "odd-leaf", Port: "Ethernet3/10"}}
		}, plan.CodeIntentAmbiguous, "the cable of interface eth0 of odd-10 ends at 2 ports: odd-leaf Ethernet1/10, odd-leaf Ethernet3/10"},
		{11, func(d *netboxtest.Device) { nic(d, "eth1").MAC = nic(d, "eth0").MAC }, plan.CodeIntentAmbiguous, "interfaces eth0 and eth1 of odd-11 have the same MAC"},
		{12, func(d *netboxtest.Device) { d.Type = netboxtest.Type{Manufacturer: "Lab Systems", Model: "Odd blank"} }, plan.CodePlatformUnresolvable, "gpu_type of its device type is empty"},
	}
}

// oddPort is the switch port of a device's k-th NIC.
func oddPort(n, k int) netboxtest.Peer {
	return netboxtest.Peer{Device: "odd-leaf", Port: fmt.Sprintf("Ethernet%d/%d", k, n), LAG: fmt.Sprintf("Port-Channel%d", n)}
}

func oddDevice(n int) netboxtest.Device {
	mac := func(k int) string { return fmt.Sprintf("02:0D:D0:00:%02X:%02X", n, k) }
	const kind = "200gbase-x-qsfp56"
	return netboxtest.Device{
		Name: oddName(n), Serial: fmt.Sprintf("ODD%02d", n), Site: oddSite, Rack: "o01", Position: float64(2*n - 1),
		Type: netboxtest.Type{Manufacturer: "Lab Systems", Model: "Odd GPU", CustomFields: map[string]any{"gpu_type": "H100"}},
		Context: map[string]any{"ironic_settings": map[string]any{
			"driver": "redfish", "interface_type": kind, "raid_interface": "no-raid", "bond": map[string]any{"mode": "802.3ad"},
		}},
		OOB: netboxtest.OOB{Address: fmt.Sprintf("203.0.113.%d/24", 10+n), Interface: "bmc"},
		Interfaces: []netboxtest.Interface{
			{Name: "bmc", MAC: mac(0), MgmtOnly: true}, {Name: "eth0", Type: kind, MAC: mac(1), Peer: oddPort(n, 1)}, {Name: "eth1", Type: kind, MAC: mac(2), Peer: oddPort(n, 2)},
		},
	}
}

// judgePlanted wants the right fault for each mistake, and no other.
func judgePlanted(t *testing.T, url, token string) {
	st := &plan.Site{
		Name: "odd", NetBox: plan.NetBoxSettings{Site: oddSite}, RecordPlatformClass: true, Classes: []plan.DeviceClass{{Name: "COMPUTE_GPU", Roles: []string{"gpu-compute"}, GPU: true}},
		Ironics: []plan.IronicSettings{{Name: "main", DeviceClasses: []string{"COMPUTE_GPU"}}},
	}
	c, err := netbox.New(netbox.Options{URL: url, Token: plan.NewSecret(token, "")})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"odd-twin"}
	for _, p := range planted() {
		names = append(names, oddName(p.n))
	}
	intents, failed, err := c.Intents(context.Background(), st, names)
	if err != nil {
		t.Fatal(err)
	}
	if len(failed) != 1 || failed[0].Device != "odd-twin" || failed[0].Fault.Code != plan.CodeDeviceAmbiguous {
		t.Errorf("failed: %v", failed)
	}
	for _, p := range planted() {
		t.Run(oddName(p.n), func(t *testing.T) {
			i := slices.IndexFunc(intents, func(in *plan.Intent) bool { return in.Name == oddName(p.n) })
			if i < 0 {
				t.Fatal("no intent")
			}
			faults := intents[i].Faults
			if len(faults) != 1 || faults[0].Code != p.code || !strings.Contains(faults[0].Summary, p.says) || !strings.HasPrefix(faults[0].Evidence["url"], url) || faults[0].WayOut() == "" {
				t.Errorf("want %s %q", p.code, p.says)
				for _, f := range faults {
					t.Errorf("got %v %v", f, f.Evidence)
				}
			}
		})
	}
	// The list by role has them all but the one that is planned, and the twins once.
	listed, err := c.Names(context.Background(), st, netbox.Filter{})
	if err != nil || len(listed) != 12 || slices.Contains(listed, oddName(7)) || !slices.Contains(listed, "odd-twin") {
		t.Errorf("%v %v", listed, err)
	}
	_, failed, err = c.Intents(context.Background(), st, listed)
	if err != nil || len(failed) != 1 || failed[0].Device != "odd-twin" {
		t.Errorf("%v %v", failed, err)
	}
}

func TestPlantedMistakes(t *testing.T) {
	s := netboxtest.New(netboxtest.Options{})
	defer s.Close()
	for _, p := range planted() {
		d := oddDevice(p.n)
		p.plant(&d)
		s.AddDevice(d)
	}
	for range 2 { // of two tenants, which is how NetBox lets a site have a name twice
		s.AddDevice(netboxtest.Device{Name: "odd-twin", Site: oddSite})
	}
	judgePlanted(t, s.URL, s.Token)
}

// writeAtOnce lets the three kinds write one device at the same time, round by
// round.
func writeAtOnce(t *testing.T, s service, rounds int) {
	const name = "gpu-022"
	path, _ := s.restore(t, name)
	t.Cleanup(func() { s.send(t, "PATCH", path, `{"custom_fields":{"platform_class":null}}`).want(t, 200) })
	st := &plan.Site{
		Name: "lab", NetBox: plan.NetBoxSettings{Site: siteSlug}, RecordPlatformClass: true, Classes: []plan.DeviceClass{{Name: "COMPUTE_GPU", Roles: []string{"gpu-compute"}, GPU: true}},
		Ironics: []plan.IronicSettings{{Name: "main", DeviceClasses: []string{"COMPUTE_GPU"}}},
	}
	ctx := context.Background()
	for round := range rounds {
		s.send(t, "PATCH", path, `{"status":"staged","tags":[{"slug":"ipmi_exporter"}],"custom_fields":{"platform_class":null}}`).want(t, 200)
		c, err := netbox.New(netbox.Options{URL: s.url, Token: plan.NewSecret(s.token, ""), ChangelogMessage: "enroll test"})
		if err != nil {
			t.Fatal(err)
		}
		intents, failed, err := c.Intents(ctx, st, []string{name})
		if err != nil || len(failed) > 0 || len(intents) != 1 {
			t.Fatalf("%v %v %v", intents, failed, err)
		}
		sc := &plan.Scope{Site: st, Targets: []*plan.Target{{Site: st, Intent: intents[0]}}}
		p := plan.Build(plan.Input{Scope: sc, Kinds: netbox.Kinds(), World: c.Read(ctx, sc, plan.Desired(sc, netbox.Kinds())), Owners: map[string]plan.Ownership{name: {State: plan.StateAvailable}}})
		if len(p.Steps) != 3 {
			t.Fatalf("steps %v", p.Steps)
		}
		var running sync.WaitGroup
		for _, step := range p.Steps {
			running.Go(func() {
				r := plan.Wait(0, "", nil)
				for r.Outcome == plan.OutcomeWait {
					r = c.Run(ctx, sc, step, r.Memo)
				}
				if r.Outcome != plan.OutcomeDone {
					t.Errorf("%s: %s %v", step.Address, r.Outcome, r.Fault)
				}
			})
		}
		running.Wait()
		_, d := s.device(t, name)
		class, _ := d["custom_fields"].(map[string]any)["platform_class"].(string)
		if value(d, "status") != "active" || class != intents[0].ComputedClass || !slices.Equal(slugs(d), []string{"ipmi_exporter", "ironic"}) {
			t.Fatalf("round %d: status %v, platform_class %q, tags %v", round, value(d, "status"), class, slugs(d))
		}
	}
}
