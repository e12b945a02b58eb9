package ironic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

// judgedOn gives the verdicts on an inventory, by the key of the check.
func judgedOn(t testing.TB, want, inventory string, nics ...plan.FrontendNIC) map[string]plan.Check {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(want), &doc); err != nil {
		t.Fatal(err)
	}
	target := &plan.Target{
		Site:   &plan.Site{Name: "demo", IronicEnrol: true, Verification: plan.Verification{PortNames: map[string][]string{"eos": {"case", "abbreviation"}}, SwitchNames: map[string][]string{"eos": {"domain"}}}},
		Intent: &plan.Intent{Name: "gpu-001", URL: "http://netbox/1/", Inspection: doc, Frontend: nics},
		Ironic: &plan.IronicSettings{},
	}
	out := map[string]plan.Check{}
	for _, c := range judgeAll(target, decoded(t, []byte(inventory))) {
		out[c.Address.Key] = c
		if c.Expected == "" || c.Observed == "" || c.Verdict != plan.CheckPass && c.Text == "" || len(c.From) < 2 {
			t.Errorf("%s lacks something: %+v", c.Address.Local(), c)
		}
	}
	return out
}

// Every check has a row for each verdict that it can reach.
func TestInspectionChecks(t *testing.T) {
	const (
		dmiCPUs = `{"plugin_data": {"dmi": {"cpu": [{"Core Count": "96"}, {"Core Count": 96}, {"Status": "Unpopulated"}]}}}`
		twoNICs = `{"inventory": {"interfaces": [{"name": "a", "mac_address": "02:00:00:00:00:01", "vendor": "0x15b3", "has_carrier": true}, {"name": "b", "mac_address": "02:00:00:00:00:02", "vendor": "15B3", "has_carrier": %s}, {"name": "b.7", "mac_address": "02:00:00:00:00:02", "vendor": "0x8086"}, {"name": "ib0", "mac_address": "00:00:10:00:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01", "vendor": "0x8086"}]}}`
		disks   = `{"inventory": {"disks": [{"name": "/dev/a", "model": "M1"}, {"name": "/dev/b", "model": "M2  "}]}}`
		gpus    = `{"plugin_data": {"pci_devices": [{"vendor_id": "10de", "product_id": "2330", "class": "030200"}, {"vendor_id": "10DE", "product_id": "2330", "class": "0x030200"}, {"vendor_id": "10de", "product_id": "22a3", "class": "068000"}, {"vendor_id": "1a03", "product_id": "2000", "class": "030000"}, {"vendor_id": "1002", "product_id": "74a1", "class": "120000"}]}}`
	)
	dimms := func(devices ...string) string {
		return `{"plugin_data": {"dmi": {"memory": {"devices": [` + strings.Join(devices, ",") + `]}}}}`
	}
	const dimm = `{"Size": "64 GB", "Speed": "4800 MT/s", "Manufacturer": "Example", "Locator": "A1"}`
	cases := []struct{ key, want, inventory, expected, verdict, observed, text string }{
		{"cpu_cores", `{"cpu": {"cores": 192}}`, dmiCPUs, "192", "pass", "192", ""},
		{"cpu_cores", `{"cpu": {"cores": 128}}`, dmiCPUs, "128", "fail", "192", "cores: 128 recorded, 192 found"},
		{"cpu_cores", `{"cpu": {"cores": 192}}`, `{"inventory": {"cpu": {"count": 192}}}`, "192", "unknown", "not reported", "the inventory has no processors of DMI (ramdisk collector dmi-decode); its cpu.count are threads, not cores"},
		{"cpu_cores", `{"cpu": {"cores": 192}}`, `{"plugin_data": {"dmi": {"cpu": [{"Core Count": "lots"}]}}}`, "192", "unknown", "not reported", "the inventory has no Core Count of processor 1"},
		{"cpu_sockets", `{"cpu": {"sockets": 2}}`, `{"inventory": {"cpu": {"socket_count": 2}}}`, "2", "pass", "2", ""},
		{"cpu_sockets", `{"cpu": {"sockets": 4}}`, dmiCPUs, "4", "fail", "2", "processors: 4 recorded, 2 found"},
		{"cpu_sockets", `{"cpu": {"sockets": 2}}`, `{}`, "2", "unknown", "not reported", "the inventory has no socket_count (ramdisks since 2024) and no processors of DMI (collector dmi-decode)"},
		{"cpu_architecture", `{"cpu": {"architecture": "x86_64"}}`, `{"inventory": {"cpu": {"architecture": "x86_64"}}}`, "x86_64", "pass", "x86_64", ""},
		{"cpu_architecture", `{"cpu": {"architecture": "x86_64"}}`, `{"inventory": {"cpu": {"architecture": "aarch64"}}}`, "x86_64", "fail", "aarch64", "the processors are aarch64, not x86_64"},
		{"cpu_architecture", `{"cpu": {"architecture": "x86_64"}}`, `{"inventory": {"cpu": {"architecture": 64}}}`, "x86_64", "unknown", "not reported", "the inventory has no cpu.architecture"},
		{"nic_count", `{"nics": {"count": 2}}`, fmt.Sprintf(twoNICs, "true"), "2", "pass", "2", ""},
		{"nic_count", `{"nics": {"count": 0}}`, fmt.Sprintf(twoNICs, "true"), "0", "fail", "2", "network interfaces: 0 recorded, 2 found"},
		{"nic_count", `{"nics": {"count": 2}}`, `{"inventory": {"interfaces": "none"}}`, "2", "unknown", "not reported", "the inventory has no interfaces"},
		{"nic_count", `{"nics": {"count": 2}}`, `{"inventory": {"interfaces": []}}`, "2", "fail", "0", "network interfaces: 2 recorded, 0 found"},
		{"nic_vendors", `{"nics": {"vendors": ["15b3"]}}`, fmt.Sprintf(twoNICs, "true"), "each of 15b3", "pass", "2 × 0x15b3", ""},
		{"nic_vendors", `{"nics": {"vendors": ["0x8086"]}}`, fmt.Sprintf(twoNICs, "true"), "each of 0x8086", "fail", "2 × 0x15b3", "another vendor: a, b"},
		{"nic_vendors", `{"nics": {"vendors": ["0x15b3"]}}`, `{"inventory": {"interfaces": [{"name": "usb0", "mac_address": "02:00:00:00:00:01", "vendor": null}]}}`, "each of 0x15b3", "unknown", "1 × (not reported)", "no vendor was reported for usb0"},
		{"nic_link", `{"nics": {"link": true}}`, fmt.Sprintf(twoNICs, "true"), "link on each", "pass", "link on a, b", ""},
		{"nic_link", `{"nics": {"link": true}}`, fmt.Sprintf(twoNICs, "false"), "link on each", "fail", "link on a; no link on b", "no link on b"},
		{"nic_link", `{"nics": {"link": true}}`, fmt.Sprintf(twoNICs, `"yes"`), "link on each", "unknown", "link on a; not reported for b", "no carrier was reported for b"},
		{"disk_count", `{"disks": {"count": 2}}`, disks, "2", "pass", "2", ""},
		{"disk_count", `{"disks": {"count": 8}}`, disks, "8", "fail", "2", "disks: 8 recorded, 2 found"},
		{"disk_count", `{"disks": {"count": 8}}`, `{"inventory": {"disks": null}}`, "8", "unknown", "not reported", "the inventory has no disks"},
		{"disk_models", `{"disks": {"models": ["M1", "M2"]}}`, disks, "each one of M1, M2", "pass", "1 × M1, 1 × M2", ""},
		{"disk_models", `{"disks": {"models": ["M1"]}}`, disks, "each one of M1", "fail", "1 × M1, 1 × M2", "another model: /dev/b (M2)"},
		{"disk_models", `{"disks": {"models": ["M1"]}}`, `{"inventory": {"disks": [{"name": "/dev/a"}]}}`, "each one of M1", "unknown", "1 × (not reported)", "no model was reported for /dev/a"},
		{"memory_total", `{"memory": {"total_gib": 2048}}`, `{"inventory": {"memory": {"physical_mb": 2097152}}}`, "2048 GiB", "pass", "2048 GiB", ""},
		{"memory_total", `{"memory": {"total_gib": 2048}}`, `{"inventory": {"memory": {"physical_mb": 2031616}}}`, "2048 GiB", "fail", "1984 GiB", "memory: 2048 GiB recorded, 1984 GiB found"},
		{"memory_total", `{"memory": {"total_gib": 1}}`, `{"inventory": {"memory": {"total": 1073741824}}}`, "1 GiB", "unknown", "not reported", "the inventory has no memory.physical_mb"},
		{"dimm_count", `{"memory": {"dimms": 1}}`, dimms(dimm, `{"Size": "No Module Installed"}`), "1", "pass", "1", ""},
		{"dimm_count", `{"memory": {"dimms": 2}}`, dimms(dimm, `{"Size": "No Module Installed"}`), "2", "fail", "1", "memory modules: 2 recorded, 1 found"},
		{"dimm_count", `{"memory": {"dimms": 2}}`, `{"plugin_data": {"dmi": null}}`, "2", "unknown", "not reported", "the inventory has no memory modules (ramdisk collector dmi-decode)"},
		{"dimm_size", `{"memory": {"dimm_gib": 64}}`, dimms(dimm, `{"Size": "65536 MB"}`), "64 GiB", "pass", "1 × 64 GB, 1 × 65536 MB", ""},
		{"dimm_size", `{"memory": {"dimm_gib": 64}}`, dimms(dimm, `{"Size": "32 GB", "Locator": "B2"}`), "64 GiB", "fail", "1 × 32 GB, 1 × 64 GB", "another size: B2"},
		{"dimm_size", `{"memory": {"dimm_gib": 64}}`, dimms(dimm, `{"Size": "Unknown"}`), "64 GiB", "unknown", "1 × 64 GB, 1 × Unknown", "no size was reported for module 2"},
		{"dimm_consistency", `{"memory": {"consistent": true}}`, dimms(dimm, dimm), "one size, speed and maker", "pass", "2 × 64 GB 4800 MT/s Example", ""},
		{"dimm_consistency", `{"memory": {"consistent": true}}`, dimms(dimm, strings.Replace(dimm, "4800", "4400", 1)), "one size, speed and maker", "fail", "1 × 64 GB 4400 MT/s Example, 1 × 64 GB 4800 MT/s Example", "modules differ in Speed: 1 × 4400 MT/s, 1 × 4800 MT/s"},
		{"dimm_consistency", `{"memory": {"consistent": true}}`, dimms(dimm, `{"Size": "64 GB", "Configured Memory Speed": "4800 MT/s"}`), "one size, speed and maker", "unknown", "1 × 64 GB 4800 MT/s, 1 × 64 GB 4800 MT/s Example", "not reported for every module: Manufacturer"},
		{"bios_allow", `{"bios": {"allow": ["2.3.4"]}}`, `{"inventory": {"system_vendor": {"firmware": {"version": "2.3.4"}}}}`, "one of 2.3.4", "pass", "2.3.4", ""},
		{"bios_allow", `{"bios": {"allow": ["2.3.4"]}}`, `{"plugin_data": {"dmi": {"bios": {"Version": "2.1.0"}}}}`, "one of 2.3.4", "fail", "2.1.0", "BIOS version 2.1.0 is none of those allowed: 2.3.4"},
		{"bios_block", `{"bios": {"block": ["2.1.0"]}}`, `{"plugin_data": {"dmi": {"bios": {"Version": "2.1.0"}}}}`, "none of 2.1.0", "fail", "2.1.0", "BIOS version 2.1.0 is blocked"},
		{"bios_block", `{"bios": {"block": ["2.1.0"]}}`, `{"plugin_data": {"dmi": {"bios": {"Version": "2.1.00"}}}}`, "none of 2.1.0", "pass", "2.1.00", ""},
		{"bios_block", `{"bios": {"block": ["2.1.0"]}}`, `{}`, "none of 2.1.0", "unknown", "not reported", "the inventory has no BIOS version (ramdisks since April 2023, or collector dmi-decode)"},
		{"gpu_count", `{"gpus": 3}`, gpus, "3", "pass", "2 × 10de:2330, 1 × 1002:74a1", ""},
		{"gpu_count", `{"gpus": 2, "gpu_devices": ["10DE:2330"]}`, gpus, "2 of 10DE:2330", "pass", "2 × 10de:2330", ""},
		{"gpu_count", `{"gpus": 8}`, gpus, "8", "fail", "2 × 10de:2330, 1 × 1002:74a1", "GPUs: 8 recorded, 3 found"},
		{"gpu_count", `{"gpus": 1}`, `{"inventory": {"pci_devices": []}}`, "1", "fail", "none", "GPUs: 1 recorded, 0 found"},
		{"gpu_count", `{"gpus": 1}`, `{"plugin_data": {"pci_devices": 4}}`, "1", "unknown", "not reported", "the inventory has no PCI devices (ramdisk collector pci-devices)"},
	}
	reached := map[string]bool{}
	for _, c := range cases {
		t.Run(c.key+" "+c.verdict, func(t *testing.T) {
			got := judgedOn(t, c.want, c.inventory)[c.key]
			have := []string{got.Expected, string(got.Verdict), got.Observed, got.Text}
			if diff := cmp.Diff([]string{c.expected, c.verdict, c.observed, c.text}, have); diff != "" {
				t.Errorf("%s on %s (-want +got):\n%s", c.want, c.inventory, diff)
			}
		})
		reached[c.key] = true
	}
	for _, c := range inspectionChecks() {
		if c.key != keyCarrier && c.key != keyPXE && !reached[c.key] { // those have tests of their own
			t.Errorf("no case for %s", c.key)
		}
	}
}

// Nothing is asked that the record does not ask for, and all failures are told.
func TestInspectionAsksWhatIsRecorded(t *testing.T) {
	if got := judgedOn(t, `{}`, `{}`); len(got) != 0 {
		t.Errorf("asked for nothing, judged %v", got)
	}
	failed := 0
	for _, c := range judgedOn(t, `{"cpu": {"sockets": 4, "architecture": "aarch64"}, "disks": {"count": 9}, "gpus": 8, "bios": {"block": ["3.40"]}}`, string(recorded(t, "inventory-200"))) {
		if c.Verdict == plan.CheckFail {
			failed++
		}
	}
	if failed != 5 {
		t.Errorf("%d failures told, want 5", failed)
	}
}

func TestCable(t *testing.T) {
	frame := func(system, port, description string) string {
		return fmt.Sprintf(`[[2,"05%x"],[4,"%x"],[5,"%x"]]`, port, description, system)
	}
	one := func(lldp string) string {
		return `{"inventory": {"interfaces": [{"name": "enp1", "mac_address": "02:00:00:00:00:01", "lldp": ` + lldp + `}]}}`
	}
	cases := []struct{ name, platform, port, inventory, verdict, observed, text string }{
		{"as recorded", "", "swp1", one(frame("leaf1", "swp1", "gpu-001")), "pass", "leaf1 swp1", ""},
		{"name in the description", "", "2/10", one(frame("leaf1", "106", "2/10")), "pass", "leaf1 2/10", ""},
		{"another port", "", "swp1", one(frame("leaf1", "swp2", "x")), "fail", "leaf1 swp2 (x)", "eth0 is cabled to another port than NetBox records"},
		{"another switch", "", "swp1", one(frame("leaf2", "swp1", "")), "fail", "leaf2 swp1", "eth0 is cabled to another switch than NetBox records"},
		{"short name", "", "Ethernet1/47", one(frame("leaf1", "Eth1/47", "")), "fail", "leaf1 Eth1/47", "eth0 is cabled to another port than NetBox records"},
		{"short name, allowed", "eos", "Ethernet1/47", one(frame("leaf1", "eth1/47", "")), "pass", "leaf1 eth1/47", "port name equal without case, abbreviation (verification.port_names eos)"},
		{"other number, abbreviated", "eos", "Ethernet1/47", one(frame("leaf1", "Eth1/48", "")), "fail", "leaf1 Eth1/48", "eth0 is cabled to another port than NetBox records"},
		{"domain", "", "swp1", one(frame("leaf1.example.net", "swp1", "")), "fail", "leaf1.example.net swp1", "eth0 is cabled to another switch than NetBox records"},
		{"domain, allowed", "eos", "swp1", one(frame("leaf1.example.net", "swp1", "")), "pass", "leaf1.example.net swp1", "switch name equal without domain (verification.switch_names eos)"},
		{"bad bytes", "", "swp1", one(`[[2,"0573777031"],[5,"fffe41"]]`), "fail", "\ufffd\ufffdA swp1", "eth0 is cabled to another switch than NetBox records"},
		{"no frame", "", "swp1", one(`[]`), "unknown", "no LLDP", "no LLDP frame was reported for eth0: the switch sends none, the NIC's firmware keeps it, or the ramdisk does not collect it"},
		{"no interface", "", "swp1", `{"inventory": {"interfaces": []}}`, "unknown", "no such interface", "the inventory has no interface with MAC address 02:00:00:00:00:01"},
		{
			"two neighbours", "", "swp1",
			`{"inventory": {"interfaces": [{"name": "sfp2", "mac_address": "02:00:00:00:00:01", "lldp": ` + frame("leaf1", "swp1", "") + `}, {"name": "sfp2.665", "mac_address": "02:00:00:00:00:01", "lldp": ` + frame("voip", "1", "") + `}]}}`,
			"fail", "leaf1 swp1, voip 1", "2 different neighbours answer on eth0; eth0 is cabled to another switch than NetBox records",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			nic := plan.FrontendNIC{Name: "eth0", MAC: plan.MAC{2, 0, 0, 0, 0, 1}, Peer: &plan.Peer{Device: "leaf1", Port: c.port, Platform: c.platform}}
			got := judgedOn(t, `{}`, c.inventory, nic)["eth0"]
			if diff := cmp.Diff([]string{"leaf1 " + c.port, c.verdict, c.observed, c.text}, []string{got.Expected, string(got.Verdict), got.Observed, got.Text}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSameName(t *testing.T) {
	cases := []struct {
		a, b, ignore string
		same         bool
		used         string
	}{
		{"swp1", "swp1", "", true, ""},
		{"swp1", "swp01", "", false, ""},
		{"swp1", "swp01", "leading_zeros", true, "leading_zeros"},
		{"Eth1/0", "Eth1/00", "leading_zeros", true, "leading_zeros"},
		{"swp10", "swp1", "leading_zeros", false, ""},
		{"Ethernet 1/1", "Ethernet1/1", "spaces", true, "spaces"},
		{"ETH1", "eth1", "spaces,case", true, "case"},
		{"TenGigabitEthernet1/1", "Te1/1", "abbreviation", true, "abbreviation"},
		{"E1/1", "Ethernet1/1", "abbreviation", false, ""},
		{"Ethernet1/1", "Ethernot1/1", "abbreviation", false, ""},
		{"leaf1.a.example", "leaf1", "domain", true, "domain"},
		{"192.0.2.1", "192", "domain", false, ""},
		{"swp1", "", "case,abbreviation", false, ""},
	}
	for _, c := range cases {
		same, used := sameName(c.a, c.b, strings.Split(c.ignore, ","))
		if same != c.same || strings.Join(used, ",") != c.used {
			t.Errorf("%q and %q without %s: %v %v", c.a, c.b, c.ignore, same, used)
		}
	}
}

// everything asks for every check there is.
const everything = `{"cpu": {"cores": 1, "sockets": 1, "architecture": "x86_64"}, "nics": {"count": 1, "vendors": ["0x15b3"], "link": true}, "disks": {"count": 1, "models": ["M"]},
	"memory": {"total_gib": 1, "dimms": 1, "dimm_gib": 1, "consistent": true}, "bios": {"allow": ["1"], "block": ["2"]}, "gpus": 1, "gpu_devices": ["10de:2330"]}`

// decent checks that what is shown of an inventory can be shown.
func decent(t testing.TB, checks map[string]plan.Check) {
	t.Helper()
	for _, c := range checks {
		for _, text := range []string{c.Expected, c.Observed, c.Text} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\n\r") || len(text) > 4000 {
				t.Errorf("%s: %d bytes that cannot be printed: %.200q", c.Address.Local(), len(text), text)
			}
		}
	}
}

func TestHostileInventories(t *testing.T) {
	nic := plan.FrontendNIC{Name: "eth0", MAC: plan.MAC{2, 0, 0, 0, 0, 1}, Peer: &plan.Peer{Device: "leaf1", Port: "swp1"}}
	var many strings.Builder
	for n := range 10_000 {
		if n > 0 {
			many.WriteByte(',')
		}
		fmt.Fprintf(&many, `{"name": "if%d", "mac_address": "02:00:00:00:%02x:%02x", "vendor": "0x%04x", "has_carrier": false, "lldp": [[5,"6c%04x"]]}`, n, n>>8, n&255, n, n)
	}
	huge := strings.Repeat("x", 1<<20)
	for name, body := range map[string]string{
		"10,000 interfaces":  `{"inventory": {"interfaces": [` + many.String() + `]}}`,
		"1 MB names":         `{"inventory": {"interfaces": [{"name": "` + huge + `", "mac_address": "02:00:00:00:00:01", "vendor": "` + huge + `", "lldp": [[5,"` + strings.Repeat("61", 1<<19) + `"]]}], "cpu": {"architecture": "` + huge + `"}, "disks": [{"name": "` + huge + `", "model": "` + huge + `"}]}}`,
		"bad UTF-8":          "{\"inventory\": {\"cpu\": {\"architecture\": \"\xff\xfe\\u001b[31m\"}, \"disks\": [{\"model\": \"\xff\\u0000\"}], \"interfaces\": [{\"name\": \"\xff\", \"mac_address\": \"02:00:00:00:00:01\"}]}}",
		"all of other types": `{"inventory": {"interfaces": {"a": 1}, "cpu": [], "memory": "much", "disks": {"a": 1}, "system_vendor": 7, "pci_devices": true}, "plugin_data": {"lldp_raw": [], "parsed_lldp": {"enp1": "x"}, "all_interfaces": 4, "dmi": {"cpu": {"a": 1}, "memory": {"devices": [null, 4, "x", []]}}}}`,
		"nothing":            `null`,
		"no object":          `[1, 2]`,
	} {
		t.Run(name, func(t *testing.T) {
			checks := judgedOn(t, everything, body, nic)
			decent(t, checks)
			if len(checks) != len(inspectionChecks())+1 {
				t.Errorf("%d checks", len(checks))
			}
			if name == "all of other types" || name == "nothing" || name == "no object" {
				for key, c := range checks {
					if c.Verdict == plan.CheckFail {
						t.Errorf("%s fails where nothing was reported: %+v", key, c)
					}
				}
			}
		})
	}
}

func FuzzInventory(f *testing.F) {
	f.Add(recorded(f, "inventory-200"))
	f.Add([]byte(`{"inventory": {"interfaces": [{"name": "a", "mac_address": "02:00:00:00:00:01", "lldp": [[5, ["61"]], 7]}], "memory": {"physical_mb": -1}}, "plugin_data": {"dmi": {"memory": {"devices": [{"Size": "99999999 TB"}]}}}}`))
	f.Add([]byte(`{"plugin_data": {"parsed_lldp": {"a": {"switch_system_name": ["x", 3]}}, "pci_devices": [{"vendor_id": "zz", "class": "03"}]}}`))
	nic := plan.FrontendNIC{Name: "eth0", MAC: plan.MAC{2, 0, 0, 0, 0, 1}, Peer: &plan.Peer{Device: "leaf1", Port: "swp1"}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := decodeInventory(raw); err != nil {
			return
		}
		decent(t, judgedOn(t, everything, string(raw), nic))
	})
}

// BenchmarkVerify is one thousand inventories, decoded and judged by every check.
func BenchmarkVerify(b *testing.B) {
	raw := recorded(b, "inventory-200")
	var doc map[string]any
	if err := json.Unmarshal([]byte(everything), &doc); err != nil {
		b.Fatal(err)
	}
	target := &plan.Target{Site: &plan.Site{Name: "demo", IronicEnrol: true}, Ironic: &plan.IronicSettings{}, Intent: &plan.Intent{Name: "gpu-001", Inspection: doc}}
	for n := range 8 {
		mac := plan.MAC{0x52, 0x54, 0, 0, 1, byte(0x2c + n)}
		target.Intent.Frontend = append(target.Intent.Frontend, plan.FrontendNIC{Name: fmt.Sprintf("eth%d", n), MAC: mac, Peer: &plan.Peer{Device: "leaf01", Port: "swp1"}})
	}
	b.ReportAllocs()
	for b.Loop() {
		for range 1000 {
			inv, err := decodeInventory(raw)
			if err != nil {
				b.Fatal(err)
			}
			judgeAll(target, inv)
		}
	}
}

func TestPXEPort(t *testing.T) {
	nic := plan.FrontendNIC{Name: "eth0", MAC: plan.MAC{2, 0, 0, 0, 0, 1}}
	for _, c := range []struct {
		pxe     []string
		verdict plan.CheckVerdict
	}{
		{nil, plan.CheckSkipped}, {[]string{}, plan.CheckFail}, {[]string{"02:00:00:00:00:01"}, plan.CheckPass},
		{[]string{"02:00:00:00:00:02"}, plan.CheckFail}, {[]string{"02:00:00:00:00:01", "02:00:00:00:00:02"}, plan.CheckFail},
	} {
		if f := pxePort(nic, &inventory{pxe: c.pxe}); f.verdict != c.verdict || f.observed == "" {
			t.Errorf("%v: %+v", c.pxe, f)
		}
	}
}
