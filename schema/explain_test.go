package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every attribute, function, reference and context key is found by its name.
func TestExplainIsWhole(t *testing.T) {
	kinds := map[string]int{}
	for _, topic := range Topics() {
		kinds[topic.Kind]++
		found, _ := Explain(topic.Name)
		if len(found) == 0 {
			t.Errorf("%s is not found by its name", topic.Name)
		}
		if topic.Doc == "" || topic.Doc == "." {
			t.Errorf("%s says nothing", topic.Name)
		}
	}
	attributes := 0
	language().walkAttributes(func(*block, *attribute) { attributes++ })
	if kinds["attribute"] < attributes-5 || kinds["function"] != len(functionTable())+len(policyFunctionTable()) || kinds["reference"] != len(deviceType())+len(stepType()) || kinds["config context"] != 3 {
		t.Errorf("%v, and the table has %d attributes", kinds, attributes)
	}
}

func TestExplainNames(t *testing.T) {
	for name, want := range map[string]string{
		"dhcp.host": "dhcp.host", "site.dhcp.host": "dhcp.host", "ironic.attempts": "ironic.attempts", "site.ironic.baremetal.attempts": "ironic.attempts",
		"ironic.attempts.backoff": "", "ironic.baremetal.node_lock.backoff": "ironic.node_lock.backoff", "device_class.COMPUTE_GPU.roles": "device_class.roles",
		"secrets.vault.url": "secrets.url", "site": "site", "variable.netbox_url.default": "variable.default", "within()": "within", "format": "format",
		"device.role": "device.role", "step.kind": "step.kind", "ironic_settings.bond.mode": "ironic_settings.bond.mode", "policy.no_reboot.deny": "policy.deny",
		"configure_dhcp": "configure_dhcp", "site.configure_dhcp": "configure_dhcp", "": "", "site.": "", "....": "", "ironic": "ironic", "ironic.baremetal": "ironic",
	} {
		topics, _ := Explain(name)
		got := ""
		if len(topics) > 0 {
			got = topics[0].Name
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"dhcp.hots": "dhcp.host", "ironic.atempts": "ironic.attempts", "withing": "within", "device.rol": "device.role", "ironic_settings.drivr": "ironic_settings.driver", "xxxxxxxxxxxxxxxxxx": "",
		"attempts": "ironic.attempts", "max_wait": "ironic.node_lock.max_wait", "insecure": "bmc.tls.insecure", "time_zone": "bmc.ntp.time_zone", "mount": "secrets.app_role.mount, secrets.kubernetes.mount, secrets.mount"} {
		if topics, suggestions := Explain(name); len(topics) > 0 || strings.Join(suggestions, ", ") != want {
			got := strings.Join(suggestions, ", ")
			t.Errorf("%q suggests %q, want %q", name, got, want)
		}
	}
	// The two backends have a prefix each.
	if topics, _ := Explain("secrets.prefix"); len(topics) != 2 {
		t.Errorf("%d topics for secrets.prefix", len(topics))
	}
}

func TestValues(t *testing.T) {
	src := minimal("", `
  ironic "a" {
    endpoint       = "https://a.example.net"
    device_classes = ["COMPUTE_GPU"]
    attempts       = 2 + 3
  }
  ironic "b" {
    endpoint       = "https://b.example.net"
    device_classes = ["COMPUTE_CPU"]
    node_lock {
      max_wait = "1m"
    }
  }
  device_class "COMPUTE_CPU" {
    roles = ["compute"]
  }
`)
	file, ds := load(src, Options{})
	if ds.HasErrors() {
		t.Fatal(text(t, ds))
	}
	for name, want := range map[string][][3]string{
		"ironic.attempts":           {{"ironic.a.attempts", "5", "site.hcl:18"}, {"ironic.b.attempts", "3", ""}},
		"site.ironic.b.attempts":    {{"ironic.b.attempts", "3", ""}},
		"ironic.node_lock.max_wait": {{"ironic.a.node_lock.max_wait", `"15m"`, ""}, {"ironic.b.node_lock.max_wait", `"1m"`, "site.hcl:24"}},
		"netbox.token":              {{"netbox.token", `secret("netbox", "token")`, "site.hcl:5"}},
		"netbox.site":               {{"netbox.site", "the label of the site block", ""}},
		"dhcp.host":                 nil,
	} {
		var have [][3]string
		for _, o := range file.Values(name) {
			have = append(have, [3]string{o.Path, o.Value, o.Place})
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func FuzzExplain(f *testing.F) {
	for _, s := range []string{"site.ironic.x.attempts", "a.b.c", "secrets..url", "policy.x.y.z", "()"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		topics, suggestions := Explain(name)
		if len(topics) > 0 && len(suggestions) > 0 || strings.Contains(strings.Join(suggestions, ""), "\n") {
			t.Errorf("%q: %d topics, suggestions %q", name, len(topics), suggestions)
		}
	})
}
