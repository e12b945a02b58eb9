package schema

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

func text(t *testing.T, ds Diagnostics) string {
	t.Helper()
	var b strings.Builder
	if err := ds.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// load reads one file with the name site.hcl.
func load(src string, opts Options) (*File, Diagnostics) {
	opts.Files = fstest.MapFS{"site.hcl": {Data: []byte(src)}}
	return Load("", opts)
}

// minimal is a valid site with something in it and something before it. Without
// a dhcp or bmc block the site switches what needs one off.
func minimal(before, inside string) string {
	switches := ""
	if !strings.Contains(inside, "configure_dhcp") && !strings.Contains(inside, "dhcp {") {
		switches += "  configure_dhcp = false\n"
	}
	if !strings.Contains(inside, "bmc {") {
		switches += "  configure_bmc = false\n"
	}
	ironic := "" // at the end: the tests count lines
	if !strings.Contains(inside, "ironic \"") {
		ironic = "  ironic \"x\" {\n    cloud          = \"x\"\n    device_classes = [\"COMPUTE_GPU\"]\n  }\n"
	}
	return before + `
site "x" {
  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
  }
  secrets "env" {}
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
  }
  ironic_enrol = false
` + switches + inside + ironic + "}\n"
}

func device() *plan.Intent {
	return &plan.Intent{
		Name: "gpu-001", ID: 7, Serial: "ABC1234", Site: "lon14", Status: "staged", Role: "gpu-compute", Class: "COMPUTE_GPU", GPU: true,
		Manufacturer: "Dell", Model: "PowerEdge XE9680", DeviceTypeSlug: "poweredge-xe9680", Rack: "r01", Position: "10", Tags: []string{"lab"},
		URL:          "https://netbox.example.net/dcim/devices/7/",
		CustomFields: map[string]any{"bmc_name": "gpu-001-oob", "nothing": nil, "n": 5.0}, ConfigContext: map[string]any{"ntp": map[string]any{"servers": []any{"ntp1.example.net"}}},
		NTPServers: []string{"192.0.2.123"}, OOB: netip.MustParseAddr("192.0.2.9"),
	}
}

// TestSite compares a site with everything set to the plain struct.
func TestSite(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "full.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	file, ds := load(string(src), Options{Version: "0.1.0", Vars: map[string]string{"port": "2222"}})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	site := *file.Site()
	if len(site.Files) != 1 || site.Files[0].Name != "site.hcl" || len(site.Files[0].SHA256) != 64 {
		t.Errorf("files %+v", site.Files)
	}
	for path, want := range map[string]string{"dhcp.host": "site.hcl:", "dhcp.timeouts.login": "site.hcl:", "ironic.baremetal.attempts": "site.hcl:", "configure_dhcp": "site.hcl:"} {
		if got := site.Set[path]; !strings.HasPrefix(got, want) {
			t.Errorf("%s is set at %q", path, got)
		}
	}
	if at := site.Set["dhcp.host"]; !strings.Contains(strings.Split(string(src), "\n")[lineOf(t, at)-1], "host") {
		t.Errorf("dhcp.host is not at %s", at)
	}
	site.Files, site.Set = nil, nil
	want := plan.Site{
		Name:          "lon14",
		ConfigureDHCP: true, ConfigureBMC: true, IronicEnrol: true, RecordPlatformClass: true,
		NetBox:  plan.NetBoxSettings{URL: "https://netbox.example.net/base", Token: plan.SecretRef{Item: "netbox", Field: "token"}, Site: "london-14", AllowUnplaced: true, CAFile: "/etc/ssl/nb.pem", Timeout: 10 * time.Second},
		Secrets: plan.SecretsSettings{Backend: "vault", URL: "https://vault.example.net:8200", Mount: "kv/infra", Prefix: "lon14", TokenEnv: "LON14_TOKEN", CAFile: "ca.pem", Timeout: 30 * time.Second},
		Classes: []plan.DeviceClass{{Name: "COMPUTE_GPU", Roles: []string{"gpu-compute"}, GPU: true}, {Name: "COMPUTE_CPU", Roles: []string{"compute", "hypervisor"}}},
		Ironics: []plan.IronicSettings{{
			Name: "baremetal", Endpoint: "http://ironic.example.net:6385", DeviceClasses: []string{"COMPUTE_GPU"}, EnrolProject: "2f3c", SchedulerTrait: "HW_ARCH_X86_64",
			CleaningDeadline: 2 * time.Hour, InspectDeadline: 30 * time.Minute, LockMaxWait: 5 * time.Minute, LockBackoffMin: time.Second, LockBackoffMax: 20 * time.Second,
			Attempts: 2, CAFile: "ironic.pem", Timeout: 20 * time.Second, SwitchToIPMI: true, SwitchPlatforms: []string{"LENOVOHG635NV2", "H200_DELLPOWEREDGEXE9680_IB_01"},
		}, {
			Name: "cpu", Cloud: "lon14", Clouds: plan.SecretRef{Item: "openstack", Field: "clouds_yaml"}, SecureFile: "secure.yaml", DeviceClasses: []string{"COMPUTE_CPU"},
			CleaningDeadline: 3 * time.Hour, InspectDeadline: time.Hour, LockMaxWait: 15 * time.Minute, LockBackoffMin: 10 * time.Second, LockBackoffMax: time.Minute,
			Attempts: 3, Timeout: time.Minute,
		}},
		DHCP: &plan.DHCPSettings{
			Host: "dhcp1.example.net", Port: 2222, User: "enroll", IdentityFile: "keys/id_ed25519", KnownHosts: plan.SecretRef{Item: "dhcp", Field: "known_hosts"},
			Service: "dnsmasq", Directory: "/etc/dnsmasq.d/enroll", Unit: "dnsmasq@bmc", NameSuffix: "", Subnets: []string{"192.0.2.0/24", "2001:db8::/64"},
			Timeouts: plan.DHCPTimeouts{Connect: 5 * time.Second, Login: 6 * time.Second, Command: 7 * time.Second, Transfer: 120 * time.Second}, Settle: 0,
			Config: "/etc/dnsmasq.conf", Control: "127.0.0.1:8000",
		},
		BMC: &plan.BMCSettings{
			CAFile: "bmc.pem", RestrictBoot: false, Timeout: 15 * time.Second, ReadyBudget: 10 * time.Minute,
			Pins: []string{"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}, MinTLSVersion: "1.3",
			Monitoring: plan.SecretRef{Item: "ipmi_exporter", Field: "password"}, MonitoringUser: plan.SecretRef{Item: "ipmi_exporter", Field: "username"},
			MonitoringRole: "ReadOnly",
			TimeZone:       "Europe/London", Syslog: &plan.SyslogSettings{Port: 6514, Protocol: "tls"},
			Security: &plan.SecuritySettings{HTTP: ptr(false), HostInterface: ptr(true), SNMP: "off", MinTLSVersion: "1.3", LockoutAttempts: ptr(5), LockoutDuration: time.Minute},
			BIOS: []plan.BIOSSettings{
				{Class: "DELLPOWEREDGEXE9680", Attributes: map[string]any{"BootMode": "Uefi", "Cores": int64(32), "Turbo": true, "Ratio": 1.5}},
				{Class: "H200_DELLPOWEREDGEXE9680_IB_01", Attributes: map[string]any{"BootMode": "Uefi"}},
			},
			IDRAC: &plan.VendorSettings{RestrictBoot: ptr(true), Attributes: map[string]any{"WebServer.1.HttpsRedirection": "Enabled"}, Lockdown: ptr(true), IPBlocking: ptr(false)},
			XCC:   &plan.VendorSettings{KCS: ptr(false), FirmwareRollback: ptr(false)}, AMI: &plan.VendorSettings{VirtualMedia: ptr(true)},
			Supermicro: &plan.VendorSettings{RestrictBoot: ptr(false), Lockdown: ptr(false)}, Generic: &plan.VendorSettings{Manager: "BMC"},
		},
		Limits:       plan.Limits{Devices: 8, RequestsPerBMC: 2, Reboots: 4, RebootsPerRack: 1, DHCPBatch: 10},
		OwnedNodes:   plan.OwnedNodes{Release: []string{"bmc.ntp", "bmc.syslog"}},
		Verification: plan.Verification{PortNames: map[string][]string{"cumulus-linux": {"case", "abbreviation"}, "sonic": {"spaces"}}},
	}
	if d := cmp.Diff(want, site); d != "" {
		t.Errorf("-want +have:\n%s", d)
	}
	settings, ds := file.Settings(device())
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	if d := cmp.Diff([][]string{{"ntp1.example.net", "ntp-lon14.example.net"}, {"syslog-lon14.example.net"}}, [][]string{settings.NTPServers, settings.SyslogServers}); d != "" {
		t.Error(d)
	}
}

func ptr[T any](v T) *T { return &v }

func lineOf(t *testing.T, at string) int {
	t.Helper()
	_, line, _ := strings.Cut(at, ":")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(at)
	}
	return n
}

// TestDefaults wants the defaults of the design for what is not written.
func TestDefaults(t *testing.T) {
	file, ds := load(minimal("", `
  ironic "b" {
    cloud          = "b"
    device_classes = ["COMPUTE_GPU"]
  }
  dhcp {
    host             = "192.0.2.2"
    user             = "enroll"
    identity         = secret("dhcp", "key")
    known_hosts_file = "known_hosts"
    service          = "dnsmasq"
    directory        = "/etc/dnsmasq.d/enroll/"
    subnets          = ["192.0.2.0/24"]
  }
  bmc {
    credential = secret("bmc-${device.name}", "password")
  }
`), Options{})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	s := file.Site()
	if !s.ConfigureDHCP || !s.ConfigureBMC || s.IronicEnrol || s.RecordPlatformClass {
		t.Errorf("switches %+v", s)
	}
	if s.NetBox.Site != "x" || s.NetBox.Timeout != 30*time.Second {
		t.Errorf("netbox %+v", s.NetBox)
	}
	if s.Secrets.Backend != "env" || s.Secrets.Prefix != "ENROLL_SECRET" {
		t.Errorf("secrets %+v", s.Secrets)
	}
	d := s.DHCP
	two := 120 * time.Second
	if d.Port != 22 || d.Unit != "dnsmasq" || d.NameSuffix != "-bmc" || d.Settle != 3*time.Second || d.Directory != "/etc/dnsmasq.d/enroll" ||
		d.Timeouts != (plan.DHCPTimeouts{Connect: two, Login: two, Command: two, Transfer: two}) {
		t.Errorf("dhcp %+v", d)
	}
	if l := s.Limits; l != (plan.Limits{Devices: 16, RequestsPerBMC: 1, Reboots: 5, RebootsPerRack: 2, DHCPBatch: 50}) {
		t.Errorf("limits %+v", l)
	}
	if s.OwnedNodes.Release != nil || s.BMC.Security != nil || s.BMC.IDRAC != nil {
		t.Errorf("what is not written is there: %+v", s)
	}
	if b := s.BMC; !b.RestrictBoot || b.Insecure || b.Timeout != 30*time.Second || b.ReadyBudget != 30*time.Minute {
		t.Errorf("bmc %+v", b)
	}
	if _, set := s.Set["dhcp.port"]; set {
		t.Error("a default counts as set")
	}
}

func TestVariables(t *testing.T) {
	const before = `
variable "s" { type = string }
variable "n" {
  type    = number
  default = 7
}
variable "l" { type = list(string) }
variable "any" {}
variable "b" {
  type    = bool
  default = false
}
locals {
  host = "${var.s}.${local.domain}"
  domain = "example.net"
}
`
	src := minimal(before, `
  record_platform_class = var.b
  dhcp {
    host             = local.host
    port             = var.n
    user             = var.any
    identity_file    = "id"
    known_hosts_file = "kh"
    service          = "dnsmasq"
    directory        = "/srv/x"
    unit             = "unit-${var.n}"
    subnets          = [for s in var.l : "${s}/24"]
  }
`)
	file, ds := load(src, Options{Vars: map[string]string{"s": "dhcp1", "l": `["192.0.2.0", "198.51.100.0"]`, "any": "enroll", "b": "true"}})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	d := file.Site().DHCP
	if d.Host != "dhcp1.example.net" || d.Port != 7 || d.User != "enroll" || d.Unit != "unit-7" || len(d.Subnets) != 2 || d.Subnets[1] != "198.51.100.0/24" || !file.Site().RecordPlatformClass {
		t.Errorf("%+v", d)
	}
	for name, given := range map[string]map[string]string{
		"wrong number": {"s": "x", "n": "seven", "l": "[]", "any": "x"},
		"wrong list":   {"s": "x", "l": "one, two", "any": "x"},
		"deep list":    {"s": "x", "l": strings.Repeat("[", 5000), "any": "x"},
		"not given":    {"s": "x", "l": `["192.0.2.0"]`},
	} {
		if _, ds := load(src, Options{Vars: given}); ds.count(Error) == 0 || !strings.Contains(text(t, ds), "variable") {
			t.Errorf("%s: %v", name, ds)
		}
	}
	_, ds = load(minimal(`variable "port" { default = 1 }`, ""), Options{Vars: map[string]string{"prot": "1"}})
	if ds.HasErrors() || len(ds) != 1 || ds[0].Suggestion != "port" {
		t.Errorf("a value for an unknown variable: %+v", ds)
	}
}

func TestVersionFits(t *testing.T) {
	for _, c := range []struct {
		constraint, version string
		want                bool
	}{
		{">= 0.1", "0.1.0", true}, {">= 0.1", "v0.1.0-3-gabc", true}, {"> 0.1", "0.1.0", false}, {"= 0.1", "0.1.0", true}, {"0.1.1", "0.1.0", false},
		{"!= 0.1.0", "0.1.0", false}, {"< 0.2, >= 0.1", "0.1.9", true}, {"< 0.2, >= 0.1", "0.2.0", false}, {"<= 1", "1.0.0", true},
		{"~> 0.1", "0.9.0", true}, {"~> 0.1", "1.0.0", false}, {"~> 0.1.2", "0.1.9", true}, {"~> 0.1.2", "0.2.0", false}, {"~> 0.1.2", "0.1.1", false}, {"~> 1", "2.0.0", true},
		{">= 99", "dev", true}, {">= 99", "", true},
	} {
		if err := isVersionConstraint(c.constraint); err != nil {
			t.Errorf("%q: %v", c.constraint, err)
		}
		if got := versionFits(c.constraint, c.version); got != c.want {
			t.Errorf("%q with %q: %v", c.constraint, c.version, got)
		}
	}
	for _, bad := range []string{"", "latest", ">= ", "0.1,", ">= 0.1 < 2", "^1.0", "1.2.3.4"} {
		if isVersionConstraint(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
