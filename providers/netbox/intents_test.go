package netbox_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

func mustMAC(t *testing.T, s string) plan.MAC {
	t.Helper()
	mac, err := plan.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return mac
}

// A record without a gap gives an intent without a fault or warning, whole.
func TestIntentComplete(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(7))
	c := client(t, s.URL, s.Token)
	got := intent(t, c, site(), "gpu-007")

	want := &plan.Intent{
		Site: "lab1", Name: "gpu-007", ID: 1, URL: s.URL + "/dcim/devices/1/", Status: "staged", Serial: "SVC0007", Role: "gpu-compute", Class: "COMPUTE_GPU", GPU: true,
		Manufacturer: "Lenovo", Model: "HG635N V2", DeviceTypeSlug: "hg635n-v2", Rack: "r02", Position: "17", Tags: []string{},
		CustomFields: map[string]any{"platform_class": nil}, PlatformClass: new(string), ComputedClass: "H200_LENOVOHG635NV2_NORDMA_01",
		OOB: netip.MustParseAddr("198.18.0.8"), BMCInterface: "bmc", BMCMAC: mustMAC(t, "02:00:00:00:07:00"),
		NTPServers: []string{"192.0.2.11", "ntp.example.net"},
		Ironic: plan.IronicContext{
			Driver: "redfish", InterfaceType: "100gbase-sr4", Interfaces: map[string]string{"raid_interface": "no-raid", "boot_interface": "redfish-virtual-media"},
			ResourceClass: "gpu", CPUArch: "x86_64", Capabilities: map[string]string{"boot_mode": "uefi"}, RootDevice: map[string]any{"size": ">= 400"},
			Bond: &plan.Bond{Mode: "802.3ad", Miimon: 100, XmitHashPolicy: "layer3+4", Interfaces: []string{"eth0", "eth1"}},
		},
		Inspection: plan.InspectionContext{"gpus": 8.0},
		Frontend: []plan.FrontendNIC{
			{Name: "eth0", MAC: mustMAC(t, "02:00:00:00:07:01"), Peer: &plan.Peer{Device: "leaf-r02", Port: "Ethernet1/3", Label: "swp1", Description: "server port", LAG: "Port-Channel3"}},
			{Name: "eth1", MAC: mustMAC(t, "02:00:00:00:07:02"), Peer: &plan.Peer{Device: "leaf-r02", Port: "Ethernet2/3", Label: "swp2", LAG: "Port-Channel3"}},
		},
	}
	ignore := []cmp.Option{
		cmpopts.IgnoreFields(plan.Intent{}, "Sources", "Hash", "ConfigContext"), cmpopts.IgnoreFields(plan.FrontendNIC{}, "URL"), cmpopts.IgnoreFields(plan.Peer{}, "URL"),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	}
	if diff := cmp.Diff(want, got, ignore...); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(got.Hash, "sha256:") || len(got.Sources) != 5 {
		t.Errorf("hash %q, sources %v", got.Hash, got.Sources)
	}
	for _, nic := range got.Frontend {
		if !strings.HasPrefix(nic.URL, s.URL+"/dcim/interfaces/") || !strings.HasPrefix(nic.Peer.URL, s.URL+"/dcim/interfaces/") {
			t.Errorf("pages of %s: %s, %s", nic.Name, nic.URL, nic.Peer.URL)
		}
	}
}

// Each gap of a record is a fault with the code that tells whose it is, naming
// the device; all other gaps of the same device are told in the same reading.
func TestIntentGaps(t *testing.T) {
	settings := func(d *netboxtest.Device) map[string]any { return d.Context["ironic_settings"].(map[string]any) }
	nic := func(d *netboxtest.Device, name string) *netboxtest.Interface {
		i := slices.IndexFunc(d.Interfaces, func(i netboxtest.Interface) bool { return i.Name == name })
		return &d.Interfaces[i]
	}
	other := host(2)
	other.Context["ironic_settings"].(map[string]any)["bond"] = nil
	for name, tc := range map[string]struct {
		change func(d *netboxtest.Device)
		after  func(s *netboxtest.Server)
		code   plan.Code
		says   string
		warns  bool // a warning, and no fault
	}{
		"status":                {change: func(d *netboxtest.Device) { d.Status = "planned" }, code: plan.CodeStatusNotEligible, says: "has the status planned"},
		"role without a class":  {change: func(d *netboxtest.Device) { d.Role = "pdu" }, code: plan.CodeRoutingUnresolved, says: "role pdu, which no device_class"},
		"class without Ironic":  {change: func(d *netboxtest.Device) { d.Role = "leaf" }, code: plan.CodeRoutingUnresolved, says: "class SWITCH (role leaf), which no ironic block"},
		"position":              {change: func(d *netboxtest.Device) { d.Position = 0 }, code: plan.CodeDeviceNotPlaced, says: "in rack r01 without a position"},
		"bay has no position":   {change: func(d *netboxtest.Device) { d.Position, d.Parent, d.Serial = 0, "chassis-1", "" }, code: plan.CodeIntentIncomplete, says: "no serial number", warns: true},
		"serial placeholder":    {change: func(d *netboxtest.Device) { d.Serial = "None" }, code: plan.CodeIntentInvalid, says: `placeholder "None"`},
		"no serial":             {change: func(d *netboxtest.Device) { d.Serial = "" }, code: plan.CodeIntentIncomplete, says: "no serial number", warns: true},
		"oob_ip":                {change: func(d *netboxtest.Device) { d.OOB = netboxtest.OOB{} }, code: plan.CodeIntentIncomplete, says: "no out-of-band address (oob_ip)"},
		"oob_ip unassigned":     {change: func(d *netboxtest.Device) { d.OOB.Interface = "" }, code: plan.CodeIntentIncomplete, says: "assigned to no interface"},
		"oob_ip elsewhere":      {after: func(s *netboxtest.Server) { s.MoveAddress("gpu-001", "gpu-002", "ib0") }, code: plan.CodeIntentAmbiguous, says: "is assigned to gpu-002 ib0, not to an interface of gpu-001"},
		"oob_ip translated":     {change: func(d *netboxtest.Device) { d.OOB.Inside = "10.0.0.9/24" }, code: plan.CodeIntentIncomplete, says: "is translated", warns: true},
		"oob_ip deprecated":     {change: func(d *netboxtest.Device) { d.OOB.Status = "deprecated" }, code: plan.CodeIntentInvalid, says: "has the status deprecated", warns: true},
		"oob_ip multicast":      {change: func(d *netboxtest.Device) { d.OOB.Address = "224.0.0.9/24" }, code: plan.CodeIntentInvalid, says: "is no host address"},
		"oob_ip twice":          {change: func(d *netboxtest.Device) { d.OOB.Address = "198.18.0.3/24" }, code: plan.CodeIntentAmbiguous, says: "has the out-of-band address 198.18.0.3, and so has bmc of gpu-002"},
		"BMC without MAC":       {change: func(d *netboxtest.Device) { nic(d, "bmc").MAC = "" }, code: plan.CodeIntentIncomplete, says: "interface bmc of gpu-001 has no MAC address"},
		"BMC MAC not primary":   {change: func(d *netboxtest.Device) { nic(d, "bmc").MAC, nic(d, "bmc").MACs = "", []string{"02:00:00:00:00:77"} }, code: plan.CodeIntentIncomplete, says: "none is marked primary"},
		"BMC MAC EUI-64":        {change: func(d *netboxtest.Device) { nic(d, "bmc").MAC = "21:00:F4:E9:00:11:22:33" }, code: plan.CodeIntentInvalid, says: "no MAC address of a NIC"},
		"BMC MAC elsewhere":     {change: func(d *netboxtest.Device) { nic(d, "bmc").MAC = "02:00:00:00:02:01" }, code: plan.CodeIntentAmbiguous, says: "has the MAC 02:00:00:00:02:01, and so has eth0 of gpu-002"},
		"MAC twice":             {change: func(d *netboxtest.Device) { nic(d, "eth1").MAC = nic(d, "eth0").MAC }, code: plan.CodeIntentAmbiguous, says: "have the same MAC"},
		"BMC not mgmt_only":     {change: func(d *netboxtest.Device) { nic(d, "bmc").MgmtOnly = false }, code: plan.CodeIntentInvalid, says: "not marked management only", warns: true},
		"no settings":           {change: func(d *netboxtest.Device) { d.Context = nil }, code: plan.CodeIntentIncomplete, says: "ironic_settings there is no such object"},
		"settings a list":       {change: func(d *netboxtest.Device) { d.Context["ironic_settings"] = []any{} }, code: plan.CodeIntentInvalid, says: "ironic_settings is a list, not an object"},
		"no driver":             {change: func(d *netboxtest.Device) { delete(settings(d), "driver") }, code: plan.CodeIntentIncomplete, says: "ironic_settings.driver is not set"},
		"driver placeholder":    {change: func(d *netboxtest.Device) { settings(d)["driver"] = "None" }, code: plan.CodeIntentInvalid, says: `ironic_settings.driver is the placeholder "None"`},
		"no raid_interface":     {change: func(d *netboxtest.Device) { settings(d)["raid_interface"] = nil }, code: plan.CodeIntentIncomplete, says: "ironic_settings.raid_interface is not set"},
		"no interface_type":     {change: func(d *netboxtest.Device) { delete(settings(d), "interface_type") }, code: plan.CodeIntentIncomplete, says: "ironic_settings.interface_type is not set"},
		"capabilities a number": {change: func(d *netboxtest.Device) { settings(d)["capabilities"] = 3 }, code: plan.CodeIntentInvalid, says: "ironic_settings.capabilities is a number"},
		"skip not a boolean":    {change: func(d *netboxtest.Device) { settings(d)["skip_cable_verification"] = "yes" }, code: plan.CodeIntentInvalid, says: "is a string, not true or false"},
		"bond mode":             {change: func(d *netboxtest.Device) { settings(d)["bond"].(map[string]any)["mode"] = "lacp" }, code: plan.CodeIntentInvalid, says: `ironic_settings.bond.mode is "lacp"`},
		"bond member":           {change: func(d *netboxtest.Device) { settings(d)["bond"].(map[string]any)["interfaces"] = []any{"eth0", "eth7"} }, code: plan.CodeIntentInvalid, says: "names eth7, which is no frontend interface"},
		"address with password": {change: func(d *netboxtest.Device) { settings(d)["redfish_address_override"] = "https://root:calvin@192.0.2.9" }, code: plan.CodeIntentInvalid, says: "holds a user name or password"},
		"unknown key":           {change: func(d *netboxtest.Device) { settings(d)["drivr"] = "x" }, code: plan.CodeIntentInvalid, says: "ironic_settings.drivr is no key that enroll knows", warns: true},
		"inspection a list":     {change: func(d *netboxtest.Device) { d.Context["inspection_validation"] = []any{1} }, code: plan.CodeIntentInvalid, says: "inspection_validation is a list"},
		"ntp placeholder":       {change: func(d *netboxtest.Device) { d.Context["ntp"] = []any{"None"} }, code: plan.CodeIntentInvalid, says: `"None" is no host name or address`},
		"no frontend": {change: func(d *netboxtest.Device) {
			nic(d, "eth0").Type, nic(d, "eth1").Disabled = "other", true
			settings(d)["bond"] = nil
		}, code: plan.CodeIntentIncomplete, says: "no enabled interface of type 100gbase-sr4"},
		"first NIC without MAC": {change: func(d *netboxtest.Device) { nic(d, "eth0").MAC = "" }, code: plan.CodeIntentIncomplete, says: "interface eth0 of gpu-001 has no MAC"},
		"other NIC without MAC": {change: func(d *netboxtest.Device) { nic(d, "eth1").MAC = "" }, code: plan.CodeIntentIncomplete, says: "so it gets no port in Ironic", warns: true},
		"not cabled":            {change: func(d *netboxtest.Device) { nic(d, "eth0").Peer, nic(d, "eth0").Panels = netboxtest.Peer{}, nil }, code: plan.CodeIntentIncomplete, says: "frontend interface eth0 of gpu-001 is not cabled"},
		"ends in a panel": {change: func(d *netboxtest.Device) {
			nic(d, "eth0").Peer, nic(d, "eth0").Panels = netboxtest.Peer{}, []string{"panel-1"}
		}, code: plan.CodeIntentIncomplete, says: "frontend interface eth0 of gpu-001 is cabled, but the cables end before a switch port"},
		"planned cable": {change: func(d *netboxtest.Device) { nic(d, "eth0").Planned = true }, code: plan.CodeIntentIncomplete, says: "a cable that is not connected"},
		"console port": {change: func(d *netboxtest.Device) {
			nic(d, "eth0").Peer = netboxtest.Peer{Device: "cs-1", Port: "7", Kind: "dcim.consoleport"}
		}, code: plan.CodeIntentInvalid, says: "(dcim.consoleport), which is no switch port"},
		"two far ends": {change: func(d *netboxtest.Device) {
			nic(d, "eth0").More = []netboxtest.Peer{{Device: "leaf-r09", Port: "Ethernet9"}}
		}, code: plan.CodeIntentAmbiguous, says: "ends at 2 ports: leaf-r01 Ethernet1/2, leaf-r09 Ethernet9"},
		"peer placeholder": {change: func(d *netboxtest.Device) { nic(d, "eth0").Peer.Device = "None" }, code: plan.CodeIntentInvalid, says: `has the name "None"`},
		"LAG on one port":  {change: func(d *netboxtest.Device) { nic(d, "eth0").Peer.LAG = "" }, code: plan.CodeIntentAmbiguous, says: "only some of its switch ports are in a LAG"},
		"two LAGs":         {change: func(d *netboxtest.Device) { nic(d, "eth0").Peer.LAG = "Port-Channel99" }, code: plan.CodeIntentAmbiguous, says: "in different LAGs"},
		"no LAG":           {change: func(d *netboxtest.Device) { nic(d, "eth0").Peer.LAG, nic(d, "eth1").Peer.LAG = "", "" }, code: plan.CodeIntentIncomplete, says: "none of its switch ports is in a LAG", warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := host(1)
			if tc.change != nil {
				tc.change(&d)
			}
			s := serve(t, netboxtest.Options{}, d, host(2))
			if tc.after != nil {
				tc.after(s)
			}
			in := intent(t, client(t, s.URL, s.Token), site(), "gpu-001")
			list := in.Faults
			if tc.warns {
				list = in.Warnings
				if len(in.Faults) > 0 {
					t.Errorf("faults:\n%s", texts(in.Faults))
				}
			}
			n := slices.IndexFunc(list, func(f *plan.Fault) bool { return f.Code == tc.code && strings.Contains(f.Error(), tc.says) })
			if n < 0 {
				t.Fatalf("want %s %q, got:\n%s", tc.code, tc.says, texts(list))
			}
			if f := list[n]; f.Evidence["device"] != "gpu-001" || f.Evidence["url"] == "" {
				t.Errorf("evidence %v", f.Evidence)
			}
		})
	}
}

// Routing is judged first: a device of a class that nobody enrols is not told
// about the rest of its record.
func TestRoutingComesFirst(t *testing.T) {
	d := host(1)
	d.Role, d.Status, d.OOB, d.Context = "pdu", "offline", netboxtest.OOB{}, nil
	s := serve(t, netboxtest.Options{}, d)
	in := intent(t, client(t, s.URL, s.Token), site(), "gpu-001")
	if len(in.Faults) != 1 || in.Faults[0].Code != plan.CodeRoutingUnresolved {
		t.Errorf("faults:\n%s", texts(in.Faults))
	}
}

// All gaps of a device are collected in one reading.
func TestGapsAreCollected(t *testing.T) {
	d := host(1)
	d.Status, d.Position, d.OOB = "failed", 0, netboxtest.OOB{}
	d.Interfaces[2].Peer = netboxtest.Peer{}
	s := serve(t, netboxtest.Options{}, d)
	in := intent(t, client(t, s.URL, s.Token), site(), "gpu-001")
	var codes []string
	for _, f := range in.Faults {
		codes = append(codes, string(f.Code))
	}
	want := []string{"DEVICE_STATUS_NOT_ELIGIBLE", "DEVICE_NOT_PLACED", "NETBOX_INTENT_INCOMPLETE", "NETBOX_INTENT_INCOMPLETE"}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("%s\n%s", diff, texts(in.Faults))
	}
}

// The switch port is found through any number of patch panels.
func TestPanels(t *testing.T) {
	for panels := range 7 {
		d := host(1)
		d.Interfaces[2].Panels = nil
		for n := range panels {
			d.Interfaces[2].Panels = append(d.Interfaces[2].Panels, fmt.Sprintf("pp-%d", n+1))
		}
		s := serve(t, netboxtest.Options{}, d)
		in := intent(t, client(t, s.URL, s.Token), site(), "gpu-001")
		want := &plan.Peer{Device: "leaf-r01", Port: "Ethernet1/2", Label: "swp1", Description: "server port", LAG: "Port-Channel2"}
		if diff := cmp.Diff(want, in.Frontend[0].Peer, cmpopts.IgnoreFields(plan.Peer{}, "URL")); diff != "" || len(in.Faults) > 0 {
			t.Errorf("%d panels: %s\n%s", panels, diff, texts(in.Faults))
		}
	}
}

// Live values of one reading come from it; a guard always asks NetBox.
func TestSameReading(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	s.SetStatus("gpu-001", "active")
	address := sc.Targets[0].Address("netbox", "status", "")
	status := func(ctx context.Context) string {
		return plan.Text(c.Read(ctx, sc, desired(sc)).Get(address).Value, "status")
	}
	before := c.Requests()
	if got := status(netbox.SameReading(context.Background())); got != "staged" || c.Requests() != before {
		t.Errorf("in the same reading: %s, %d requests", got, c.Requests()-before)
	}
	if got := status(context.Background()); got != "active" || c.Requests() != before+1 {
		t.Errorf("for a guard: %s, %d requests", got, c.Requests()-before)
	}
	// What another reading did not see is asked for.
	other := client(t, s.URL, s.Token)
	if got := plan.Text(other.Read(netbox.SameReading(context.Background()), sc, desired(sc)).Get(address).Value, "status"); got != "active" || other.Requests() != 1 {
		t.Errorf("without intents: %s, %d requests", got, other.Requests())
	}
}

// skip_cable_verification excuses an uncabled interface and keeps the link of a
// cabled one.
func TestSkipCableVerification(t *testing.T) {
	d := host(1)
	settings := d.Context["ironic_settings"].(map[string]any)
	settings["skip_cable_verification"], settings["bond"] = true, nil
	d.Interfaces[2].Peer = netboxtest.Peer{}
	s := serve(t, netboxtest.Options{}, d)
	in := intent(t, client(t, s.URL, s.Token), site(), "gpu-001")
	if len(in.Faults) > 0 {
		t.Errorf("faults:\n%s", texts(in.Faults))
	}
	if in.Frontend[0].Peer != nil || in.Frontend[1].Peer == nil {
		t.Errorf("peers %v, %v", in.Frontend[0].Peer, in.Frontend[1].Peer)
	}
}

// A device that cannot be told apart, or is not there, is a diagnostic; the
// others are read.
func TestIntentsWithoutDevice(t *testing.T) {
	twin, elsewhere := host(3), host(4)
	twin.OOB, twin.Interfaces = netboxtest.OOB{}, nil
	elsewhere.Site, elsewhere.Name = "lab2", "gpu-001"
	s := serve(t, netboxtest.Options{}, host(1), elsewhere, host(3), twin)
	intents, failed, err := client(t, s.URL, s.Token).Intents(context.Background(), site(), []string{"gpu-003", "GPU-001", "gpu-001", "gpu-001", "null", "gpu-404"})
	if err != nil {
		t.Fatal(err)
	}
	if len(intents) != 1 || intents[0].Name != "gpu-001" || len(intents[0].Faults) != 0 {
		t.Errorf("intents %v", intents)
	}
	got := map[string]string{}
	for _, d := range failed {
		if d.Severity != plan.SeverityError {
			t.Errorf("%s: severity %s", d.Device, d.Severity)
		}
		got[d.Device] = string(d.Fault.Code) + " " + d.Fault.Evidence["similar"]
	}
	want := map[string]string{"gpu-003": "DEVICE_AMBIGUOUS ", "GPU-001": "DEVICE_NOT_FOUND gpu-001", "null": "NETBOX_INTENT_INVALID ", "gpu-404": "DEVICE_NOT_FOUND "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An answer without any of the devices that were asked for stops the run.
func TestIntentsOfNothing(t *testing.T) {
	s := serve(t, netboxtest.Options{})
	intents, failed, err := client(t, s.URL, s.Token).Intents(context.Background(), site(), []string{"gpu-001", "gpu-002"})
	if f := faultOf(t, err, plan.CodeDeviceNotFound); intents != nil || failed != nil || !strings.Contains(f.Summary, "none of the 2 devices") {
		t.Errorf("%v %v %v", intents, failed, f)
	}
}

// An intent is the same whatever enroll itself changes during an apply, and
// another one when somebody moves a cable.
func TestIntentHash(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	c := client(t, s.URL, s.Token)
	before := intent(t, c, site(), "gpu-001").Hash
	s.Update("gpu-001", func(d *netboxtest.Device) {
		d.Status, d.Tags, d.CustomFields = "active", []string{"ironic"}, map[string]any{"platform_class": "X"}
	})
	if got := intent(t, c, site(), "gpu-001").Hash; got != before {
		t.Error("status, tags and platform_class are in the hash")
	}
	s.SetPeer("gpu-001", "eth0", netboxtest.Peer{Device: "leaf-r01", Port: "Ethernet44", LAG: "Port-Channel2"})
	if got := intent(t, c, site(), "gpu-001").Hash; got == before {
		t.Error("the cable is not in the hash")
	}
}

func TestNames(t *testing.T) {
	devices := []netboxtest.Device{host(10), host(2), host(1), host(3), host(4), host(5)}
	devices[0].Name = "gpu-10"
	devices[1].Name = "gpu-2"
	devices[2].Status = "active"
	devices[3].Status = "offline"
	devices[4].Site = "lab2"
	devices[5].Role = "storage"
	s := serve(t, netboxtest.Options{}, devices...)
	names, err := client(t, s.URL, s.Token).Names(context.Background(), site(), netbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gpu-001", "gpu-2", "gpu-10"}, names); diff != "" {
		t.Error(diff)
	}
}

// A filter narrows; what it names and does not exist is an error that suggests.
func TestNamesByFilter(t *testing.T) {
	devices := []netboxtest.Device{host(1), host(2), host(6), host(7), host(8)}
	devices[0].Tags = []string{"wave-1"}
	devices[1].Tags = []string{"wave-1", "burn-in"}
	devices[2].Tags = []string{"burn-in"}
	devices[3].Status = "planned"
	devices[4].Role = "cpu-compute"
	elsewhere := host(3)
	elsewhere.Site, elsewhere.Rack = "lab2", "r09"
	s := serve(t, netboxtest.Options{}, append(devices, elsewhere)...)
	st := site()
	st.Classes = append(st.Classes, plan.DeviceClass{Name: "COMPUTE_CPU", Roles: []string{"cpu-compute"}})
	st.Ironics[0].DeviceClasses = append(st.Ironics[0].DeviceClasses, "COMPUTE_CPU")
	for name, tc := range map[string]struct {
		filter netbox.Filter
		want   string // names, or
		says   string // summary and way out of the fault
	}{
		"nothing":        {netbox.Filter{}, "gpu-001 gpu-002 gpu-006 gpu-008", ""},
		"role":           {netbox.Filter{Roles: []string{"cpu-compute"}}, "gpu-008", ""},
		"racks":          {netbox.Filter{Racks: []string{"r01"}}, "gpu-001 gpu-002", ""},
		"two racks":      {netbox.Filter{Racks: []string{"r01", "r02"}}, "gpu-001 gpu-002 gpu-006 gpu-008", ""},
		"tag":            {netbox.Filter{Tags: []string{"burn-in"}}, "gpu-002 gpu-006", ""},
		"all tags":       {netbox.Filter{Tags: []string{"burn-in", "wave-1"}}, "gpu-002", ""},
		"status":         {netbox.Filter{Statuses: []string{"planned"}}, "gpu-007", ""},
		"nothing fits":   {netbox.Filter{Racks: []string{"r02"}, Tags: []string{"wave-1"}}, "", ""},
		"unknown role":   {netbox.Filter{Roles: []string{"gpu-comptue"}}, "", `no device_class of site demo has the role "gpu-comptue"|Did you mean gpu-compute?`},
		"role of SWITCH": {netbox.Filter{Roles: []string{"leaf"}}, "", `no ironic block of site demo manages the class of the role "leaf"|The roles that the site enrols are cpu-compute, gpu-compute.`},
		"unknown rack":   {netbox.Filter{Racks: []string{"r01", "r2"}}, "", `site lab1 has no rack "r2"|Did you mean r02?`},
		"foreign rack":   {netbox.Filter{Racks: []string{"rack nine"}}, "", `site lab1 has no rack "rack nine"|There are r01, r02.`},
		"unknown tag":    {netbox.Filter{Tags: []string{"wave-\x1b[31m2"}}, "", `NetBox has no tag with the slug "wave-[31m2"|There are burn-in, ironic, wave-1.`},
		"unknown status": {netbox.Filter{Statuses: []string{"stagged"}}, "", `NetBox has no device status "stagged"|Did you mean staged?`},
	} {
		t.Run(name, func(t *testing.T) {
			names, err := client(t, s.URL, s.Token).Names(context.Background(), st, tc.filter)
			if tc.says != "" {
				f := faultOf(t, err, plan.CodeConfigInvalid)
				if got := f.Summary + "|" + f.WayOut(); got != tc.says {
					t.Errorf("%s", got)
				}
				return
			}
			if err != nil || strings.Join(names, " ") != tc.want {
				t.Errorf("%v %v", names, err)
			}
		})
	}
}

// A site whose roles NetBox does not know must not look like an empty one.
func TestNamesOfUnknownRoles(t *testing.T) {
	s := serve(t, netboxtest.Options{})
	_, err := client(t, s.URL, s.Token).Names(context.Background(), site(), netbox.Filter{})
	wantCode(t, err, plan.CodeConfigInvalid)
	st := site()
	st.NetBox.Site = "nowhere"
	_, err = client(t, s.URL, s.Token).Names(context.Background(), st, netbox.Filter{})
	wantCode(t, err, plan.CodeConfigInvalid)
}

// The values that may stand in more than one form.
func TestIntentForms(t *testing.T) {
	d := host(1)
	settings := d.Context["ironic_settings"].(map[string]any)
	settings["capabilities"], settings["bond"], settings["run_inspection"] = "boot_mode:uefi, secure_boot:true", nil, true
	settings["redfish_address_override"] = "https://192.0.2.9:8000/redfish/v1/Systems/7"
	d.Position, d.OOB.Address, d.Tags = 10.5, "2001:db8::17/64", []string{"b", "a"}
	d.CustomFields = map[string]any{"fabric": "ib", "platform_class": "HG635N_V2_H200"}
	d.Interfaces = append(d.Interfaces, netboxtest.Interface{Name: "eth10", Type: "100gbase-sr4", MAC: "02:00:00:00:01:0A", Peer: netboxtest.Peer{Device: "leaf-9", Port: "1"}})
	d.Interfaces[1].Name = "eth2"
	s := serve(t, netboxtest.Options{Fields: []netboxtest.Field{
		{Object: "dcim.devicetype", Name: "gpu_type"}, {Object: "dcim.device", Name: "platform_class"}, {Object: "dcim.device", Name: "fabric", Choices: []string{"ib", "roce"}}, {Object: "dcim.site", Name: "ntp_servers"},
	}}, d)
	for _, tc := range []struct {
		servers any
		want    string
	}{
		{nil, "192.0.2.11 ntp.example.net"}, {"", "192.0.2.11 ntp.example.net"}, {"192.0.2.1, 192.0.2.2\n", "192.0.2.1 192.0.2.2"}, {[]any{"2001:db8::1"}, "2001:db8::1"},
	} {
		s.AddSite(netboxtest.Site{Slug: "lab1", CustomFields: map[string]any{"ntp_servers": tc.servers}})
		if in := intent(t, client(t, s.URL, s.Token), site(), "gpu-001"); strings.Join(in.NTPServers, " ") != tc.want || len(in.Faults) > 0 {
			t.Errorf("ntp_servers %v: %v\n%s", tc.servers, in.NTPServers, texts(in.Faults))
		}
	}
	s.AddSite(netboxtest.Site{Slug: "lab1", CustomFields: map[string]any{"ntp_servers": map[string]any{"a": 1}}})
	in := intent(t, client(t, s.URL, s.Token), site(), "gpu-001")
	if len(in.Faults) != 1 || in.Faults[0].Code != plan.CodeIntentInvalid || !strings.Contains(in.Faults[0].Summary, "ntp_servers of NetBox site lab1") {
		t.Errorf("faults:\n%s", texts(in.Faults))
	}
	var order []string
	for _, nic := range in.Frontend {
		order = append(order, nic.Name)
	}
	if got := strings.Join(order, " "); got != "eth0 eth2 eth10" {
		t.Errorf("frontend %s", got)
	}
	if in.Position != "10.5" || in.OOB.String() != "2001:db8::17" || in.CustomFields["fabric"] != "ib" || in.PlatformClass == nil || *in.PlatformClass != "HG635N_V2_H200" || strings.Join(in.Tags, "") != "ab" {
		t.Errorf("%+v", in)
	}
	if in.Ironic.Capabilities["secure_boot"] != "true" || in.Ironic.RedfishAddress != "https://192.0.2.9:8000/redfish/v1/Systems/7" || in.Ironic.Bond != nil {
		t.Errorf("%+v", in.Ironic)
	}
	if len(in.Warnings) > 0 {
		t.Errorf("warnings:\n%s", texts(in.Warnings))
	}
}

// The platforms of the switches are asked for where the site compares names by
// them, and nowhere else: one request for all.
func TestSwitchPlatforms(t *testing.T) {
	s := serve(t, netboxtest.Options{}, netboxtest.Device{Name: "leaf-r01", Role: "leaf", Platform: "arista-eos"}, host(1))
	st := site()
	c := client(t, s.URL, s.Token)
	if in := intent(t, c, st, "gpu-001"); in.Frontend[0].Peer.Platform != "" {
		t.Errorf("platform %q, and nobody asked", in.Frontend[0].Peer.Platform)
	}
	before := c.Requests()
	intent(t, c, st, "gpu-001")
	without := c.Requests() - before
	st.Verification.PortNames = map[string][]string{"arista-eos": {"case"}}
	before = c.Requests()
	in := intent(t, c, st, "gpu-001")
	if n := c.Requests() - before; n != without+1 {
		t.Errorf("%d requests, want %d", n, without+1)
	}
	for _, nic := range in.Frontend {
		want := ""
		if nic.Peer.Device == "leaf-r01" {
			want = "arista-eos"
		}
		if nic.Peer.Platform != want {
			t.Errorf("%s leads to %s with platform %q, want %q", nic.Name, nic.Peer.Device, nic.Peer.Platform, want)
		}
	}
}
