package bmc

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// realAnswer is one answer of a real BMC, as it lies beside the repository.
type realAnswer struct {
	file string
	// vendor and path are the simulator's resource that stands for it; no path: see
	// unserved.
	vendor, path string
	change       func(*bmctest.Machine)
	// understood checks that the reader takes from it what it needs.
	understood func(t *testing.T, d document)
}

// want compares what the reader finds.
func wantIs(t *testing.T, what string, got, wanted any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("%s is %v, want %v", what, got, wanted)
	}
}

func isFamily(name string) func(*testing.T, document) {
	return func(t *testing.T, d document) {
		f, sure := familyOf(d)
		wantIs(t, "the family", f.name, name)
		wantIs(t, "whether that is sure", sure, true)
		wantIs(t, "the way to sessions", d.link("Links", "Sessions"), "/redfish/v1/SessionService/Sessions")
	}
}

// isOption checks a boot option: whether it has a switch, its state, and the NIC.
func isOption(switched, enabled bool, network string) func(*testing.T, document) {
	return func(t *testing.T, d document) {
		o := decodeBootOption(d)
		wantIs(t, "whether it has a switch", o.switched, switched)
		wantIs(t, "whether it is on", o.enabled, enabled)
		if o.reference == "" {
			t.Error("no reference")
		}
		k := &conn{family: genericFamily()}
		mac, fault := k.macOf(t.Context(), document{}, o)
		wantIs(t, "the fault", fault == nil, true)
		if network != "any" {
			wantIs(t, "the NIC", mac, network)
		} else if mac.IsZero() {
			t.Error("no NIC")
		}
	}
}

const noNIC = ""

func isLink(state plan.LinkState) func(*testing.T, document) {
	return func(t *testing.T, d document) {
		got, _ := stateOfLink(d, "On")
		wantIs(t, "the link", got, state)
		if parseMAC(d.text("MACAddress")).IsZero() {
			t.Error("no address")
		}
	}
}

func isSystem(serial string, boots int) func(*testing.T, document) {
	return func(t *testing.T, d document) {
		wantIs(t, "the serial number", d.text("SerialNumber"), serial)
		wantIs(t, "the entries of the boot order", len(d.list("Boot", "BootOrder")), boots)
		if d.text("PowerState") == "" || d.link("Bios") == "" {
			t.Error("no power state or BIOS")
		}
	}
}

func isBIOS(attribute string, has bool) func(*testing.T, document) {
	return func(t *testing.T, d document) {
		_, table := d.top["Attributes"].(map[string]any)
		wantIs(t, "whether there is a table", table, true)
		wantIs(t, "whether it has "+attribute, d.key("Attributes", attribute), has)
	}
}

func hasKey(t *testing.T, d document, keys ...string) {
	t.Helper()
	if !d.key(keys...) {
		t.Errorf("no %s", strings.Join(keys, "."))
	}
}

// realAnswers are all that there are; a test looks that none is missing.
func realAnswers() []realAnswer {
	idracSystem, xccSystem, amiSystem := "/redfish/v1/Systems/System.Embedded.1", "/redfish/v1/Systems/1", "/redfish/v1/Systems/Self"
	idracManager := "/redfish/v1/Managers/iDRAC.Embedded.1"
	return []realAnswer{
		{"dell-idrac/service-root", bmctest.IDRAC, "/redfish/v1", nil, isFamily("idrac")},
		{"lenovo-xcc/service-root", bmctest.XCC, "/redfish/v1", nil, isFamily("xcc")},
		{"ami-megarac/service-root", bmctest.AMI, "/redfish/v1", nil, isFamily("ami")},
		{"supermicro/service-root", bmctest.Supermicro, "/redfish/v1", nil, isFamily("supermicro")},
		{"supermicro/service-root-1.9-no-vendor", bmctest.Supermicro, "/redfish/v1", nil, isFamily("supermicro")},
		{"openbmc/service-root", bmctest.Generic, "/redfish/v1", nil, isFamily("generic")},

		{"dell-idrac/manager", bmctest.IDRAC, idracManager, nil, func(t *testing.T, d document) {
			wantIs(t, "the resets", d.list("Actions", "#Manager.Reset", "ResetType@Redfish.AllowableValues"), []string{"GracefulRestart"})
			hasKey(t, d, "Links", "Oem", "Dell", "DellLCService")
			hasKey(t, d, "EthernetInterfaces")
			wantIs(t, "the job queue", name(d.link("Links", "Oem", "Dell", "Jobs")), "Jobs")
		}},
		{"lenovo-xcc/manager", bmctest.XCC, "/redfish/v1/Managers/1", nil, func(t *testing.T, d document) {
			for _, key := range []string{"Security", "Recipients"} {
				hasKey(t, d, "Oem", "Lenovo", key)
			}
			hasKey(t, d, "NetworkProtocol")
		}},
		{"ami-megarac/manager", bmctest.AMI, "/redfish/v1/Managers/Self", nil, func(t *testing.T, d document) {
			wantIs(t, "virtual media", d.text("Oem", "Ami", "VirtualMedia", "RMediaStatus"), "Disabled")
			hasKey(t, d, "Actions", "Oem", "#AMIVirtualMedia.EnableRMedia", "target")
			hasKey(t, d, "Actions", "#Manager.Reset", "@Redfish.ActionInfo")
		}},
		{"ami-megarac/manager-reset-action-info", bmctest.AMI, "/redfish/v1/Managers/Self/ResetActionInfo", nil, func(t *testing.T, d document) {
			parameters, _ := d.at("Parameters")
			list, _ := parameters.([]any)
			if len(list) == 0 {
				t.Fatal("no parameters")
			}
			p, _ := list[0].(map[string]any)
			wantIs(t, "the resets", document{top: p}.list("AllowableValues"), []string{"ForceRestart"})
		}},

		{"dell-idrac/system-fw6", bmctest.IDRAC, idracSystem, func(m *bmctest.Machine) { m.Profile.NoSystemSettings = true }, isSystem("SN00000001", 5)},
		{"dell-idrac/system-fw7", bmctest.IDRAC, idracSystem, nil, isSystem("SN00000001", 3)},
		{"lenovo-xcc/system", bmctest.XCC, xccSystem, nil, isSystem("SN00000001", 2)},
		{"ami-megarac/system", bmctest.AMI, amiSystem, nil, isSystem("SN00000001", 21)},
		{"openbmc/system", bmctest.Generic, "/redfish/v1/Systems/system", nil, isSystem("", 16)},
		{"lenovo-xcc/system-pending", bmctest.XCC, xccSystem + "/Pending", nil, func(t *testing.T, d document) { hasKey(t, d, "Boot", "BootOrder") }},
		{"ami-megarac/system-sd", bmctest.AMI, amiSystem + "/SD", nil, func(t *testing.T, d document) { hasKey(t, d, "Boot", "BootOrder") }},

		{"dell-idrac/bios", bmctest.IDRAC, idracSystem + "/Bios", nil, isBIOS("SystemServiceTag", true)},
		{"dell-idrac/bios-settings-nothing-pending", bmctest.IDRAC, idracSystem + "/Bios/Settings", nil, isBIOS("SystemServiceTag", false)},
		{"lenovo-xcc/bios", bmctest.XCC, xccSystem + "/Bios", nil, isBIOS("BootModes_SystemBootMode", true)},

		{"dell-idrac/boot-option-nic-no-mac", bmctest.IDRAC, idracSystem + "/BootOptions/Boot0001", func(m *bmctest.Machine) { m.Profile.NoRelatedItem = true }, isOption(true, true, noNIC)},
		{"dell-idrac/boot-option-nic-related-item", bmctest.IDRAC, idracSystem + "/BootOptions/Boot0001", nil, func(t *testing.T, d document) { wantIs(t, "the items", len(d.links("RelatedItem")), 1) }},
		{"dell-idrac/boot-option-unavailable-disk", bmctest.IDRAC, idracSystem + "/BootOptions/Boot0000", nil, func(t *testing.T, d document) {
			k := &conn{family: idracFamily()}
			wantIs(t, "whether it is a NIC", k.isNetwork(decodeBootOption(d)), false)
		}},
		{"lenovo-xcc/boot-option-network-class", bmctest.XCC, xccSystem + "/BootOptions/Boot0001", nil, isOption(false, true, noNIC)},
		{"ami-megarac/boot-option-disk", bmctest.AMI, amiSystem + "/BootOptions/0000", nil, isOption(true, true, noNIC)},
		{"ami-megarac/boot-option-pxe", bmctest.AMI, amiSystem + "/BootOptions/0001", nil, isOption(true, true, "02:00:5e:00:01:08")},
		{"ami-megarac/boot-option-http-same-nic", bmctest.AMI, amiSystem + "/BootOptions/0002", nil, isOption(true, true, "02:00:5e:00:01:08")},
		{"ami-megarac/boot-option-usb-nic-wrong-alias", bmctest.AMI, amiSystem + "/BootOptions/0005", nil, isOption(true, false, "any")},
		{"supermicro/boot-option-nic-mac-in-name", bmctest.Supermicro, "/redfish/v1/Systems/1/BootOptions/Boot0001", nil, isOption(true, true, "02:00:5e:00:01:0a")},
		{"openbmc/boot-option-pxe-mac", bmctest.Generic, "/redfish/v1/Systems/system/BootOptions/Boot0001", nil, isOption(true, true, "02:00:5e:00:01:15")},
		{"hpe-ilo/boot-option-pxe-mac", "", "", nil, isOption(false, true, "02:00:5e:00:01:16")},

		{"dell-idrac/system-nic-link-up", bmctest.IDRAC, idracSystem + "/EthernetInterfaces/NIC.Integrated.1-1-1", nil, isLink(plan.LinkUp)},
		{"dell-idrac/system-nic-link-null", bmctest.IDRAC, idracSystem + "/EthernetInterfaces/NIC.Integrated.1-1-1", func(m *bmctest.Machine) {
			m.NICs[0].Link = map[string]any{"LinkStatus": nil, "SpeedMbps": nil, "Status": map[string]any{"State": nil, "Health": nil}}
		}, isLink(plan.LinkUnknown)},
		{"ami-megarac/system-nic-link-up", bmctest.AMI, amiSystem + "/EthernetInterfaces/eth0", nil, isLink(plan.LinkUp)},
		{"lenovo-xcc/xcc1-system-nics-only-tomanager", bmctest.XCC, xccSystem + "/EthernetInterfaces", func(m *bmctest.Machine) { m.NICs = nil }, func(t *testing.T, d document) {
			wantIs(t, "the members", d.links("Members"), []string{"/redfish/v1/Systems/1/EthernetInterfaces/ToManager"})
		}},
		{"dell-idrac/network-device-function-mac", bmctest.IDRAC, "/redfish/v1/Chassis/System.Embedded.1/NetworkAdapters/NIC.Integrated.1/NetworkDeviceFunctions/NIC.Integrated.1-1-1", nil, func(t *testing.T, d document) {
			wantIs(t, "the address", parseMAC(d.text("Ethernet", "PermanentMACAddress")), "02:00:5e:00:01:02")
		}},
		{"dell-idrac/network-port-link-null", "", "", nil, func(t *testing.T, d document) { wantIs(t, "the link", d.text("LinkStatus"), "") }},
		{"dell-idrac/port-link-down-state-null", "", "", nil, func(t *testing.T, d document) {
			state, _ := stateOfLink(d, "On")
			wantIs(t, "the link", state, plan.LinkUnknown)
		}},
		{"lenovo-xcc/network-port-bare-hex-mac", "", "", nil, func(t *testing.T, d document) {
			wantIs(t, "the address", parseMAC(d.list("AssociatedNetworkAddresses")[0]), "02:00:5e:00:01:07")
		}},

		{"lenovo-xcc/manager-nic", bmctest.XCC, "/redfish/v1/Managers/1/EthernetInterfaces/NIC", nil, func(t *testing.T, d document) {
			wantIs(t, "the name", d.text("HostName"), "bmc-host-01")
			hasKey(t, d, "DHCPv4", "DHCPEnabled")
		}},
		{"lenovo-xcc/network-protocol", bmctest.XCC, "/redfish/v1/Managers/1/NetworkProtocol", nil, func(t *testing.T, d document) {
			wantIs(t, "the time servers", len(d.list("NTP", "NTPServers")), 0)
			on, told := d.yes("NTP", "ProtocolEnabled")
			wantIs(t, "whether they are used", on || !told, false)
		}},
		{"ami-megarac/network-protocol", bmctest.AMI, "/redfish/v1/Managers/Self/NetworkProtocol", func(m *bmctest.Machine) { m.NTPServers = []string{"a", "b"} }, func(t *testing.T, d document) {
			wantIs(t, "the time servers", d.list("NTP", "NTPServers"), []string{"ntp1.example.org", "192.0.2.15"})
		}},
		{"dell-idrac/dell-attributes-subset", bmctest.IDRAC, idracManager + "/Oem/Dell/DellAttributes/iDRAC.Embedded.1", nil, func(t *testing.T, d document) {
			for _, name := range []string{"NIC.1.DNSRacName", attrNTPEnable, attrSyslog, attrLockdown} {
				hasKey(t, d, "Attributes", name)
			}
		}},
		{"ami-megarac/inventory-status", bmctest.AMI, "/redfish/v1/Oem/Ami/InventoryData/Status", nil, func(t *testing.T, d document) {
			wantIs(t, "the inventory", d.text("InventoryData", "Status"), "Completed")
		}},
		{"lenovo-xcc/oem-network-boot-order", bmctest.XCC, xccSystem + "/Oem/Lenovo/BootSettings/BootOrder.NetworkBootOrder", nil, func(t *testing.T, d document) {
			wantIs(t, "the first NIC", parseMAC(macInName.FindString(d.list("BootOrderNext")[0])), "02:00:5e:00:01:05")
		}},
		{"supermicro/fixed-boot-order", "", "", nil, func(t *testing.T, d document) { hasKey(t, d, "FixedBootOrder") }},

		{"lenovo-xcc/account-service", bmctest.XCC, "/redfish/v1/AccountService", nil, func(t *testing.T, d document) {
			for _, key := range []string{"AccountLockoutThreshold", "AccountLockoutDuration"} {
				if _, ok := d.number(key); !ok {
					t.Errorf("no %s", key)
				}
			}
		}},
		{"lenovo-xcc/account-1", bmctest.XCC, "/redfish/v1/AccountService/Accounts/1", nil, func(t *testing.T, d document) { wantIs(t, "the user", d.text("UserName"), "root") }},
		{"dell-idrac/account-2-root", bmctest.IDRAC, "/redfish/v1/AccountService/Accounts/2", nil, func(t *testing.T, d document) { wantIs(t, "the user", d.text("UserName"), "root") }},
		{"dell-idrac/account-5-empty-slot", bmctest.IDRAC, "/redfish/v1/AccountService/Accounts/5", nil, func(t *testing.T, d document) { wantIs(t, "the user", d.text("UserName"), "") }},

		{"dell-idrac/job-collection-reboot-job", bmctest.IDRAC, idracManager + "/Oem/Dell/Jobs", nil, func(t *testing.T, d document) {
			items, _ := d.top["Members"].([]any)
			first, _ := items[0].(map[string]any)
			j := job{document{top: first}}
			wantIs(t, "the job", j.id()[:4], "RID_")
			wantIs(t, "whether it is over", j.open(), true)
		}},
		{"dell-idrac/task-with-dell-job-scheduled", "", "", nil, func(t *testing.T, d document) {
			oem, _ := d.at("Oem", "Dell")
			top, _ := oem.(map[string]any)
			j := job{document{top: top}}
			wantIs(t, "whether it waits", j.queued(), true)
			wantIs(t, "its words", j.words(), "Task successfully scheduled.")
		}},
		{"dell-idrac/error-pending-config-string-args", "", "", nil, func(t *testing.T, d document) {
			raw, _ := json.Marshal(d.top)
			wantIs(t, "the message", messages(raw)[0].id, "LC068")
		}},
	}
}

// unserved are answers whose resources no simulator has.
var unserved = map[string]string{
	"hpe-ilo/boot-option-pxe-mac":                 "iLO is of the generic family, whose simulator is made after OpenBMC",
	"dell-idrac/network-port-link-null":           "enroll takes link states from the system's interfaces",
	"dell-idrac/port-link-down-state-null":        "enroll takes link states from the system's interfaces",
	"lenovo-xcc/network-port-bare-hex-mac":        "enroll takes link states from the system's interfaces",
	"supermicro/fixed-boot-order":                 "enroll does not set the boot order of this family",
	"dell-idrac/task-with-dell-job-scheduled":     "enroll follows the job in the maker's queue",
	"dell-idrac/error-pending-config-string-args": "it is an error body; the simulator's are compared by the tests of refusals",
}

// simulated asks a simulator for a resource.
func simulated(t *testing.T, a realAnswer) map[string]any {
	t.Helper()
	fleet := bmctest.New(bmctest.Options{Now: time.Now})
	defer fleet.Close()
	m := bmctest.Machine{Name: "m", Vendor: a.vendor, Serial: "SN1", User: "root", Password: "p", NICs: []bmctest.NIC{{MAC: plan.MAC{2, 0, 0x5e, 0, 1, 1}}, {MAC: plan.MAC{2, 0, 0x5e, 0, 1, 2}}}}
	if a.change != nil {
		a.change(&m)
	}
	b := fleet.Add(m)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 20 * time.Second} //nolint:gosec // our own server
	defer client.CloseIdleConnections()
	get := func(path string) map[string]any {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("root", "p")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var d map[string]any
		if json.Unmarshal(raw, &d) != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("the simulator answers %s with %d: %s", path, resp.StatusCode, raw)
		}
		return d
	}
	if at := filepath.Dir(a.path); strings.HasSuffix(at, "BootSettings") {
		get(at) // an XCC has it only once the list was read
	}
	return get(a.path)
}

// kindOf is the type of a JSON value; null fits every one.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		if len(v) > 0 {
			return "list of " + kindOf(v[0])
		}
		return "list"
	}
	return fmt.Sprintf("%T", v)
}

// leftOut are members that the provider reads in other resources, and that the
// simulators leave out of these.
var leftOut = map[string]string{
	"@Redfish.Settings":          "the function of a NIC and the GB200's system have one; the provider writes neither there",
	"@Redfish.Settings.Messages": "the provider compares values and does not go by messages",
	"Actions":                    "a BIOS's actions, none of which is sent",
	"Actions.Oem":                "the maker's actions, none of which is sent",
	"AttributeRegistry":          "the settings object repeats the BIOS's",
	"DHCP":                       "the protocol's switch; the provider goes by the interface",
	"DHCPv4":                     "a host's interface, which is not set",
	"HostInterfaces":             "an iDRAC's interface is found without",
	"HostName":                   "of the host's interface, not of the BMC's",
	"IPv4Addresses":              "of the host's interface, not of the BMC's",
	"IPv6Addresses":              "the provider compares the address of the record, which is IPv4 in the simulators",
	"Links":                      "ways to resources that are not read from there",
	"Links.Oem":                  "ways to resources that are not read from there",
	"MACAddress":                 "of the BMC's interface; only those of the host are compared",
	"PermanentMACAddress":        "of the BMC's interface; only those of the host are compared",
	"NTP.Port":                   "only the port of a log server is kept",
	"Oem":                        "the makers' own parts that are read are there, these are not",
	"PasswordChangeRequired":     "the provider goes by what the BMC says at the login",
	"SNMP":                       "of an account, which is not set",
	"PowerState":                 "of the BMC, not of the host",
	"Status":                     "of the BMC, not of a link",
	"UefiDevicePath":             "of an interface; that of the boot option is read",
	"VirtualMedia":               "virtual media is kept on AMI alone, whose switch is elsewhere",
}

// always are annotations that the simulators have nowhere.
var always = regexp.MustCompile(`(@odata\.context|@Redfish\.AllowableValues)$`)

// made are members of a simulator's answer that the real one lacks.
var made = map[string]string{
	"dell-idrac/job-collection-reboot-job Members@odata.count": "the answer is of firmware 4, later ones have it",
	"supermicro/service-root-1.9-no-vendor @odata.etag":        "the simulator is made after the later firmware, which has it",
	"openbmc/system AssetTag":                                  "a GB200's host names neither its maker nor itself; other builds do, and tests need a serial number",
	"openbmc/system Manufacturer":                              "a GB200's host names neither its maker nor itself; other builds do, and tests need a serial number",
	"openbmc/system Model":                                     "a GB200's host names neither its maker nor itself; other builds do, and tests need a serial number",
	"openbmc/system SKU":                                       "a GB200's host names neither its maker nor itself; other builds do, and tests need a serial number",
	"openbmc/system SerialNumber":                              "a GB200's host names neither its maker nor itself; other builds do, and tests need a serial number",
	"openbmc/system HostName":                                  "other builds have it; it is null",
	"openbmc/system Boot.BootSourceOverrideMode":               "other builds have it; it is never written",
	"openbmc/system EthernetInterfaces":                        "other builds list the host's interfaces; Profile.NoHostNICs stands for those that do not",
}

// tables are objects whose members are data: which a machine has differs.
var tables = regexp.MustCompile(`(^|\.)Attributes\.`)

// differences compares the members and types of two answers, by the path of each:
// "+" the simulator alone has it, "-" the real one alone, "~" of another type.
func differences(actual, simulator map[string]any, prefix string) map[string]string {
	out := map[string]string{}
	for _, key := range sortedKeys(simulator) {
		path := prefix + key
		have, ok := actual[key]
		a, b := kindOf(have), kindOf(simulator[key])
		inner, isObject := have.(map[string]any)
		other, bothObjects := simulator[key].(map[string]any)
		switch {
		case tables.MatchString(path):
		case !ok:
			out[path] = "+"
		case isObject && bothObjects:
			maps.Copy(out, differences(inner, other, path+"."))
		case a != b && a != "null" && b != "null" && a != "list" && b != "list":
			out[path] = "~ " + b + ", and really " + a
		}
	}
	for _, key := range sortedKeys(actual) {
		if _, ok := simulator[key]; !ok && !tables.MatchString(prefix+key) {
			out[prefix+key] = "-"
		}
	}
	return out
}

const realSamples = "../../../shared/samples/redfish"

// unreadMembers reads testdata/unread.txt.
func unreadMembers(t *testing.T) map[string]bool {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "unread.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	out := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			out[line] = true
		}
	}
	return out
}

// The reader understands every answer of a real BMC that there is, and the
// simulator's answer for the same resource has the same members of the same types.
// Where they differ a table says why; a reason that has gone is an error too.
func TestRealAnswers(t *testing.T) {
	if _, err := os.Stat(realSamples); os.IsNotExist(err) {
		t.Skip("no answers of real BMCs lie beside the repository")
	}
	unread := unreadMembers(t)
	left := map[string]bool{}
	for path := range unread {
		left[path] = true
	}
	for path := range leftOut {
		left[path] = true
	}
	for key := range made {
		left[key] = true
	}
	compared := map[string]bool{}
	for _, a := range realAnswers() {
		t.Run(a.file, func(t *testing.T) {
			d := sample(t, a.file+".json")
			compared[a.file] = true
			a.understood(t, d)
			if (a.path == "") != (unserved[a.file] != "") {
				t.Errorf("served at %q, and the reason why not is %q", a.path, unserved[a.file])
			}
			if a.path == "" {
				return
			}
			found := differences(d.top, simulated(t, a), "")
			for _, path := range sortedKeys(found) {
				how := found[path]
				switch {
				case how == "-" && always.MatchString(path):
				case how == "-" && (unread[path] || leftOut[path] != ""):
					delete(left, path)
				case how == "+" && made[a.file+" "+path] != "":
					delete(left, a.file+" "+path)
				default:
					t.Errorf("%s: %s (- the real one alone has it, + the simulator alone, ~ of another type)", path, how)
				}
			}
		})
	}
	for _, key := range sortedKeys(left) {
		t.Errorf("%s: the reason for this difference is stale: there is none", key)
	}
	files, err := filepath.Glob(filepath.Join(realSamples, "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".json")
		if !compared[name] {
			t.Errorf("%s is compared with nothing", name)
		}
	}
}

// What unread.txt lists is in none of the provider's sources.
func TestUnreadIsUnread(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := ""
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources += string(raw)
	}
	for path := range unreadMembers(t) {
		member := strings.TrimSuffix(path, "@odata.count") // which has a dot of its own
		if last := path[strings.LastIndexByte(member, '.')+1:]; strings.Contains(sources, `"`+last+`"`) {
			t.Errorf("the provider reads %s: let the simulators have it", path)
		}
	}
}
