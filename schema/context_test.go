package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

func contextOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

const goodContext = `{"ironic_settings": {"driver": "redfish", "interface_type": "25gbase-x-sfp28", "raid_interface": "no-raid"%s}%s}`

// TestCheckContext: what is said about each kind of mistake.
func TestCheckContext(t *testing.T) {
	for _, c := range []struct{ name, context, want string }{
		{"good", fmt.Sprintf(goodContext, `, "capabilities": "boot_mode:uefi,secure_boot:true", "bond": {"mode": "802.3ad", "miimon": 100, "interfaces": ["eth0"]}, "root_device": {"size": ">= 400"}, "resource_class": null`, `, "other": {"x": 1}, "ztp": {"infiniband": {"partition": "0x8001"}, "anything": 1}, "inspection_validation": {"gpus": 8, "cpu": {"cores": 64}}`), ""},
		{"nothing", `{}`, "ironic_settings is not there. Set it in a config context that applies to the device."},
		{"null", `{"ironic_settings": null}`, "ironic_settings is not there. Set it in a config context that applies to the device."},
		{"no object", `{"ironic_settings": []}`, `ironic_settings is a list, not an object. Write for example {"driver": "redfish", "interface_type": "25gbase-x-sfp28", "raid_interface": "no-raid"}.`},
		{"missing keys", `{"ironic_settings": {"driver": "redfish", "interface_type": null}}`, "ironic_settings.interface_type is not set. Write for example \"25gbase-x-sfp28\".\nironic_settings.raid_interface is not set. Write for example \"no-raid\"."},
		{"unknown key", fmt.Sprintf(goodContext, `, "resorce_class": "x"`, ""), "ironic_settings.resorce_class is no key that enroll knows; nothing is done with it. Remove it, or correct its name. Did you mean \"resource_class\"?"},
		{"placeholder", `{"ironic_settings": {"driver": "None", "interface_type": " null ", "raid_interface": ""}}`, "ironic_settings.driver is the placeholder \"None\", which a template leaves when it has nothing to write. Write for example \"redfish\", or leave the key out.\nironic_settings.interface_type is the placeholder \" null \", which a template leaves when it has nothing to write. Write for example \"25gbase-x-sfp28\", or leave the key out.\nironic_settings.raid_interface is an empty string. Write for example \"no-raid\", or leave the key out."},
		{"wrong types", fmt.Sprintf(goodContext, `, "cpu_arch": 64, "skip_cable_verification": "yes", "capabilities": 5, "bond": {"mode": 4, "miimon": 1.5, "interfaces": "eth0"}, "target_raid_config": []`, ""),
			"ironic_settings.cpu_arch is 64, not a string. Write for example \"x86_64\".\nironic_settings.capabilities is 5, not an object of strings.\nironic_settings.bond.mode is 4, not a string. Write for example \"802.3ad\".\nironic_settings.bond.miimon is 1.5, not a whole number from 0 to 1000000.\nironic_settings.bond.interfaces is \"eth0\", not a list of strings. Write for example [\"eth0\", \"eth1\"].\nironic_settings.skip_cable_verification is \"yes\", not true or false.\nironic_settings.target_raid_config is a list, not an object. Write for example {\"logical_disks\": []}."},
		{"enum", fmt.Sprintf(goodContext, `, "bond": {"mode": "802.3da"}`, ""), "ironic_settings.bond.mode is \"802.3da\", not \"balance-rr\", \"active-backup\", \"balance-xor\", \"broadcast\", \"802.3ad\", \"balance-tlb\" or \"balance-alb\". Did you mean \"802.3ad\"?"},
		{"in a list", fmt.Sprintf(goodContext, `, "bond": {"mode": "802.3ad", "interfaces": ["eth0", null, "none"]}`, ""), "ironic_settings.bond.interfaces[1] is null, not a string.\nironic_settings.bond.interfaces[2] is the placeholder \"none\", which a template leaves when it has nothing to write."},
		{"pairs", fmt.Sprintf(goodContext, `, "capabilities": "boot_mode"`, ""), "ironic_settings.capabilities is \"boot_mode\", not NAME:VALUE,NAME:VALUE."},
		{"address", fmt.Sprintf(goodContext, `, "redfish_address_override": "https://me:pw@host"`, ""), "ironic_settings.redfish_address_override holds a user name or password; credentials stand in the vault."},
		{"ztp", fmt.Sprintf(goodContext, "", `, "ztp": [], "inspection_validation": 5`), "inspection_validation is a number, not an object. Write for example {\"gpus\": 8}.\nztp is a list, not an object. Write for example {\"infiniband\": {}}."},
		{"inspection", fmt.Sprintf(goodContext, "", `, "inspection_validation": {"gpus": "8", "cpu": {"coers": 1, "architecture": "arm64"}, "disks": {"models": [1]}}`), "inspection_validation.cpu.architecture is \"arm64\", not \"x86_64\" or \"aarch64\".\ninspection_validation.cpu.coers is no key that enroll knows; nothing is done with it. Remove it, or correct its name. Did you mean \"cores\"?\ninspection_validation.disks.models[0] is 1, not a string.\ninspection_validation.gpus is \"8\", not a whole number from 0 to 1000000."},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			for _, m := range CheckContext(contextOf(t, c.context), nil) {
				lines = append(lines, m.Text())
			}
			got := strings.Join(lines, "\n")
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +have:\n%s", d)
			}
		})
	}
}

// TestContextSource follows NetBox's merge.
func TestContextSource(t *testing.T) {
	layers := []ContextLayer{
		{"global", contextOf(t, `{"ztp": {"url": "http://x", "infiniband": {"partition": "1"}}, "ironic_settings": {"driver": "None", "bond": {"mode": "x", "interfaces": [1]}}}`)},
		{"site-lon14", contextOf(t, `{"ztp": {}, "ironic_settings": {"bond": {"mode": "y"}}}`)},
		{"local", contextOf(t, `{"ironic_settings": {"raid_interface": "null"}}`)},
	}
	source := ContextSource(layers)
	for path, want := range map[string]string{
		"ironic_settings.driver": "global", "ironic_settings.bond.mode": "site-lon14", "ironic_settings.bond.interfaces[0]": "global", "ironic_settings.raid_interface": "local",
		"ironic_settings.none": "", "ztp.infiniband": "site-lon14", "ztp": "site-lon14", "other": "", "": "",
	} {
		if got := source(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	merged := contextOf(t, `{"ztp": {}, "ironic_settings": {"driver": "None", "interface_type": "x", "raid_interface": "null", "bond": {"mode": "y", "interfaces": [1]}}}`)
	found := CheckContext(merged, source)
	if len(found) != 4 {
		t.Fatalf("%+v", found)
	}
	f := found[0].Fault("gpu-001", "https://netbox.example.net/dcim/devices/7/config-context/")
	if !errors.Is(f, plan.CodeIntentInvalid) || f.Code.Info().Owner != plan.OwnerNetBox || !strings.Contains(f.Error(), `"global"`) || !strings.Contains(f.Error(), "ironic_settings.driver") {
		t.Errorf("%v", f)
	}
	missing := CheckContext(map[string]any{}, source)[0]
	if f := missing.Fault("x", "y"); !errors.Is(f, plan.CodeIntentIncomplete) || f.Code.Info().Owner != plan.OwnerNetBox {
		t.Errorf("%v", f)
	}
}

// TestContextExamples: what messages tell people to write is accepted.
func TestContextExamples(t *testing.T) {
	for _, d := range contextDocuments() {
		var visit func(k contextKey, path string)
		visit = func(k contextKey, path string) {
			var v any
			if err := json.Unmarshal([]byte(k.example), &v); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			c := &contextCheck{}
			c.value(path, k, v)
			for _, m := range c.found {
				t.Errorf("example of %s: %s", path, m.Text())
			}
			for _, child := range k.keys {
				visit(child, path+"."+child.name)
			}
		}
		visit(d, d.name)
	}
	if keys := ContextKeys(); len(keys) < 40 {
		t.Errorf("%d keys", len(keys))
	}
}

// FuzzContext: whatever JSON a config context is, there is an answer with paths,
// and the same one each time.
func FuzzContext(f *testing.F) {
	for _, s := range []string{`{}`, `{"ironic_settings": {"bond": {"mode": []}}}`, `{"ztp": [[[[]]]]}`, `{"inspection_validation": {"": null, "gpus": 1e400}}`, fmt.Sprintf(goodContext, "", "")} {
		f.Add(s)
	}
	if src, err := os.ReadFile(filepath.Join("testdata", "context.json")); err == nil {
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var context map[string]any
		if json.Unmarshal([]byte(text), &context) != nil {
			return
		}
		found := CheckContext(context, ContextSource([]ContextLayer{{"a", context}}))
		for _, m := range found {
			if m.Path == "" || m.Detail == "" || m.Severity == "" || len(m.Text()) > 2000 {
				t.Errorf("%+v", m)
			}
		}
		if d := cmp.Diff(found, CheckContext(context, ContextSource([]ContextLayer{{"a", context}}))); d != "" {
			t.Error(d)
		}
	})
}
