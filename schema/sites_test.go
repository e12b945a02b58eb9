package schema

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// allowedWarnings are those that a good site may have: what somebody gave a reason
// for.
func allowedWarnings(t *testing.T, ds Diagnostics) {
	t.Helper()
	for _, d := range ds {
		if d.Summary != "Certificates are not checked" {
			t.Fatal(text(t, ds))
		}
	}
}

// TestSites reads the sites of the repository as a user would: they are valid,
// and a device gets its settings.
func TestSites(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join("..", "sites"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "common" { // which is of no site
			continue
		}
		n++
		t.Run(e.Name(), func(t *testing.T) {
			file, ds := Load(filepath.Join("..", "sites", e.Name()), Options{Version: "0.1.0"})
			allowedWarnings(t, ds)
			if file.Site().Name != e.Name() {
				t.Errorf("site %q stands in the folder %q", file.Site().Name, e.Name())
			}
			if demo := e.Name() == "demo" || e.Name() == "lab"; demo && len(ds) > 0 {
				t.Fatal(text(t, ds)) // those are shown to everybody
			}
			s, ds := file.Settings(&plan.Intent{Name: "gpu-001"})
			if len(ds) > 0 {
				t.Fatal(text(t, ds))
			}
			if s.BMCPassword.Field != "password" || s.BMCUsername.Field != "username" || s.Hostname == "" {
				t.Errorf("settings of gpu-001: %+v", s)
			}
		})
	}
	if n < 5 {
		t.Errorf("%d sites", n)
	}
}

// TestCommon: what sites share is not a site.
func TestCommon(t *testing.T) {
	_, ds := Load(filepath.Join("..", "sites", "common"), Options{Version: "0.1.0"})
	if !ds.HasErrors() || !strings.Contains(text(t, ds), "needs a label") {
		t.Error(text(t, ds))
	}
}

// TestSharedValues: the sites that share a folder get its values, and may say
// otherwise.
func TestSharedValues(t *testing.T) {
	file, ds := Load(filepath.Join("..", "sites", "fra7"), Options{Version: "0.1.0"})
	allowedWarnings(t, ds)
	for path, want := range map[string][2]string{ // value, how many lines it stands over
		"limits.devices": {"20", "0"}, "limits.reboots": {"3", "1"}, "bmc.credential": {`secret("bmc/${device.name}", "password")`, "1"}, "netbox.url": {`"https://netbox.example.net"`, "0"},
		"record_platform_class": {"true", "0"}, "policy.no_reboot_in_business_hours.deny": {`has_effect("reboot") && within("07:00", "17:00", "Europe/Berlin")`, "1"},
		"policy.no_reboot_in_business_hours.owner": {`"INFRA_ENG"`, "0"}, "dhcp.subnets": {`["198.51.100.0/25", "198.51.100.128/25"]`, "0"},
	} {
		found := file.Values(path)
		if len(found) != 1 || found[0].Value != want[0] || strconv.Itoa(len(found[0].Overridden)) != want[1] {
			t.Errorf("%s: %+v", path, found)
		}
	}
	s, ds := file.Settings(&plan.Intent{Name: "CPU_001", CustomFields: map[string]any{"rack_ntp": "192.0.2.123"}})
	if len(ds) > 0 || s.Hostname != "cpu-001-bmc" || len(s.NTPServers) != 1 || s.SyslogServers[0] != "syslog.example.net" {
		t.Errorf("%+v %s", s, text(t, ds))
	}
	if s, _ := file.Settings(&plan.Intent{Name: "cpu-001"}); strings.Join(s.NTPServers, " ") != "ntp1.fra7.example.net ntp2.fra7.example.net ntp3.fra7.example.net" {
		t.Errorf("%+v", s)
	}
}
