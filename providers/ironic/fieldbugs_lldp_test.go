package ironic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// TestFieldBugsOfLLDP are mistakes that other tools made in the field with what
// switches say of themselves, by the place where they were reported.
func TestFieldBugsOfLLDP(t *testing.T) {
	frame := func(system, port, description string) string {
		return fmt.Sprintf(`[[2,"05%x"],[4,"%x"],[5,"%x"]]`, port, description, system)
	}
	one := func(lldp string) string {
		return `{"inventory": {"interfaces": [{"name": "enp1", "mac_address": "02:00:00:00:00:01", "lldp": ` + lldp + `}]}}`
	}
	parsed := func(fields string) string {
		return `{"inventory": {"interfaces": [{"name": "enp1", "mac_address": "02:00:00:00:00:01"}]}, "plugin_data": {"parsed_lldp": {"enp1": ` + fields + `}}}`
	}
	for name, c := range map[string]struct {
		platform, port, inventory string
		verdict                   plan.CheckVerdict
		observed, text            string // parts of them
	}{
		"netbox #1621 #2792, netdisco #380: a short port name is another one":  {"", "Ethernet1/47", one(frame("leaf1", "Eth1/47", "")), plan.CheckFail, "leaf1 Eth1/47", "another port"},
		"netbox #1621, opted in for the platform, and said":                    {"eos", "Ethernet1/47", one(frame("leaf1", "Eth1/47", "")), plan.CheckPass, "leaf1 Eth1/47", "abbreviation (verification.port_names eos)"},
		"kayobe Dell rule: the name stands in the description":                 {"", "2/10", one(frame("leaf1", "106", "2/10")), plan.CheckPass, "leaf1 2/10", ""},
		"netbox #11196, anta #1372: a name with its domain is another one":     {"", "swp1", one(frame("leaf1.example.net", "swp1", "")), plan.CheckFail, "leaf1.example.net", "another switch"},
		"anta #1372, opted in for the platform, and said":                      {"eos", "swp1", one(frame("leaf1.example.net", "swp1", "")), plan.CheckPass, "leaf1.example.net", "without domain (verification.switch_names eos)"},
		"metal-operator #873: a value that came as a list":                     {"", "swp1", parsed(`{"switch_system_name": ["leaf1"], "switch_port_id": ["swp1", "swp2"], "switch_mgmt_addresses": ["192.0.2.1"]}`), plan.CheckPass, "leaf1 swp1", ""},
		"metal-operator #873: a value that came as a text":                     {"", "swp1", parsed(`{"switch_system_name": "leaf1", "switch_port_id": "swp1", "switch_mgmt_addresses": "192.0.2.1"}`), plan.CheckPass, "leaf1 swp1", ""},
		"metal-operator #873: TLVs whose value is a list":                      {"", "swp1", one(`[[2,["0573777031"]],[5,["6c65616631"]]]`), plan.CheckPass, "leaf1 swp1", ""},
		"LP#2155051: a name that is no UTF-8":                                  {"", "swp1", one(`[[2,"0573777031"],[5,"fffe41"]]`), plan.CheckFail, "\ufffd\ufffdA swp1", "another switch"},
		"LP#2044793: a name longer than a TLV can hold":                        {"", "swp1", one(`[[2,"0573777031"],[5,"` + strings.Repeat("41", 1<<20) + `"]]`), plan.CheckFail, "AAAA", "another switch"},
		"orb-agent #245: two neighbours that differ":                           {"", "swp1", `{"inventory": {"interfaces": [{"name": "sfp2", "mac_address": "02:00:00:00:00:01", "lldp": ` + frame("leaf1", "swp1", "") + `}, {"name": "sfp2.665", "mac_address": "02:00:00:00:00:01", "lldp": ` + frame("voip", "1", "") + `}]}}`, plan.CheckFail, "leaf1 swp1, voip 1", "2 different neighbours answer on eth0"},
		"orb-agent #245: two frames of one neighbour":                          {"", "swp1", `{"inventory": {"interfaces": [{"name": "sfp2", "mac_address": "02:00:00:00:00:01", "lldp": ` + frame("leaf1", "swp1", "") + `}, {"name": "sfp2.665", "mac_address": "02:00:00:00:00:01", "lldp": ` + frame("leaf1", "swp1", "") + `}]}}`, plan.CheckPass, "leaf1 swp1", ""},
		"firmware that eats LLDP is another verdict than a mismatch":           {"", "swp1", one(`[]`), plan.CheckUnknown, "no LLDP", "the NIC's firmware keeps it"},
		"understack #1615 #1481: a switch that calls itself None is no switch": {"", "swp1", one(frame("None", "null", "")), plan.CheckFail, "None null", "another switch"},
	} {
		t.Run(name, func(t *testing.T) {
			nic := plan.FrontendNIC{Name: "eth0", MAC: plan.MAC{2, 0, 0, 0, 0, 1}, Peer: &plan.Peer{Device: "leaf1", Port: c.port, Platform: c.platform}}
			got := judgedOn(t, `{}`, c.inventory, nic)["eth0"]
			if got.Verdict != c.verdict || !strings.Contains(got.Observed, c.observed) || !strings.Contains(got.Text, c.text) || c.text == "" && got.Text != "" {
				t.Errorf("%s: %q, %q", got.Verdict, got.Observed, got.Text)
			}
			if len(got.Observed) > 400 {
				t.Errorf("%d bytes are shown", len(got.Observed))
			}
		})
	}
}
