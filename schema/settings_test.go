package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

func loadBMC(t *testing.T, attributes string) *File {
	t.Helper()
	file, ds := load(minimal("", "  bmc {\n"+attributes+"\n  }\n"), Options{})
	if ds.HasErrors() {
		t.Fatal(text(t, ds))
	}
	return file
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name, attributes string
		want             plan.Settings
	}{
		{"defaults", `credential = secret("bmc-${device.name}", "password")`, plan.Settings{
			BMCPassword: plan.SecretRef{Item: "bmc-gpu-001", Field: "password"}, BMCUsername: plan.SecretRef{Item: "bmc-gpu-001", Field: "username"},
			NTPServers: []string{"192.0.2.123"}, Hostname: "gpu-001",
			Set: map[string]string{"bmc.credential": "site.hcl:14", "bmc.ntp": "https://netbox.example.net/dcim/devices/7/"},
		}},
		{"all set", "credential = secret(device.serial, \"pw\")\nusername = secret(\"accounts\", \"enroll\")\nhostname = \"${device.name}-bmc\"\nntp_servers = [\"ntp-${device.rack}.example.net\", \"192.0.2.1\"]", plan.Settings{
			BMCPassword: plan.SecretRef{Item: "ABC1234", Field: "pw"}, BMCUsername: plan.SecretRef{Item: "accounts", Field: "enroll"},
			NTPServers: []string{"ntp-r01.example.net", "192.0.2.1"}, Hostname: "gpu-001-bmc",
			Set: map[string]string{"bmc.credential": "site.hcl:14", "bmc.username": "site.hcl:15", "bmc.hostname": "site.hcl:16", "bmc.ntp": "site.hcl:17"},
		}},
		{"by condition", "credential = device.gpu ? secret(\"gpu\", \"password\") : secret(\"cpu\", \"password\")\nhostname = try(device.custom_fields.bmc_name, device.name)\nntp_servers = device.config_context.ntp.servers", plan.Settings{
			BMCPassword: plan.SecretRef{Item: "gpu", Field: "password"}, BMCUsername: plan.SecretRef{Item: "gpu", Field: "username"},
			NTPServers: []string{"ntp1.example.net"}, Hostname: "gpu-001-oob",
			Set: map[string]string{"bmc.credential": "site.hcl:14", "bmc.hostname": "site.hcl:15", "bmc.ntp": "site.hcl:16"},
		}},
		{"every text", `credential = secret("${device.id}.${device.site}.${device.status}.${device.role}.${device.class}.${lower(device.manufacturer)}.${replace(device.model, " ", "_")}.${device.device_type}.${coalesce(device.platform, "none")}.${device.position}.${device.tags[0]}.${device.custom_fields.n}.${device.oob_ip}", "password")`, plan.Settings{
			BMCPassword: plan.SecretRef{Item: "7.lon14.staged.gpu-compute.COMPUTE_GPU.dell.PowerEdge_XE9680.poweredge-xe9680.none.10.lab.5.192.0.2.9", Field: "password"},
			BMCUsername: plan.SecretRef{Item: "7.lon14.staged.gpu-compute.COMPUTE_GPU.dell.PowerEdge_XE9680.poweredge-xe9680.none.10.lab.5.192.0.2.9", Field: "username"},
			NTPServers:  []string{"192.0.2.123"}, Hostname: "gpu-001",
			Set: map[string]string{"bmc.credential": "site.hcl:14", "bmc.ntp": "https://netbox.example.net/dcim/devices/7/"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ds := loadBMC(t, c.attributes).Settings(device())
			if len(ds) > 0 {
				t.Fatal(text(t, ds))
			}
			if d := cmp.Diff(c.want, s); d != "" {
				t.Errorf("-want +have:\n%s", d)
			}
		})
	}
}

func TestSettingsWithoutBMC(t *testing.T) {
	file, ds := load(minimal("", ""), Options{})
	if ds.HasErrors() {
		t.Fatal(text(t, ds))
	}
	s, ds := file.Settings(device())
	if len(ds) > 0 || s.Hostname != "gpu-001" || !s.BMCPassword.IsZero() {
		t.Errorf("%+v %v", s, ds)
	}
}

// TestSettingsMistakes are those that only a device shows. They have a place,
// name the device, and stay with it.
func TestSettingsMistakes(t *testing.T) {
	good := `credential = secret("bmc-${device.name}", "password")`
	for _, c := range []struct {
		name, attributes string
		change           func(*plan.Intent)
		says             []string
		line             int
	}{
		{"nothing in NetBox", `credential = secret("bmc-${device.serial}", "password")`, func(i *plan.Intent) { i.Serial = "" }, []string{"device.serial", "gpu-001", "coalesce"}, 14},
		{"no custom field", good + "\nhostname = device.custom_fields.bmc_nam", nil, []string{`"bmc_nam"`, `"bmc_name"`}, 15},
		{"empty custom field", good + "\nhostname = device.custom_fields.nothing", nil, []string{"null"}, 15},
		{"unsuitable item", `credential = secret("bmc/${device.model}", "password")`, func(i *plan.Intent) { i.Model = "../x" }, []string{"plain path"}, 14},
		{"unsuitable host name", good + "\nhostname = device.model", nil, []string{"host name"}, 15},
		{"unsuitable device name", good, func(i *plan.Intent) { i.Name = "gpu_001" }, []string{"gpu_001", "hostname ="}, 13},
		{"wrong type", good + "\nntp_servers = device.custom_fields.n", nil, []string{"list of texts"}, 15},
		{"no tag", good + "\nhostname = device.tags[3]", nil, []string{"index"}, 15},
		{"secret elsewhere", good + "\nhostname = device.custom_fields.n == 5 ? secret(\"x\", \"y\") : secret(\"x\", \"z\")", nil, []string{"takes no secret"}, 15},
		{"plain text as a secret", "credential = device.custom_fields.bmc_name", nil, []string{"is a secret"}, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, ds := load(minimal("", "  bmc {\n"+c.attributes+"\n  }\n"), Options{})
			if file != nil { // what is wrong for every device is refused by Load
				intent := device()
				if c.change != nil {
					c.change(intent)
				}
				_, ds = file.Settings(intent)
			}
			said := text(t, ds)
			if !ds.HasErrors() || ds[0].Range.Start.Line != c.line {
				t.Fatalf("line %d is not named: %s", c.line, said)
			}
			for _, s := range c.says {
				if !strings.Contains(strings.Join(strings.Fields(said), " "), s) {
					t.Errorf("%q is not said: %s", s, said)
				}
			}
			f := ds.Fault("gpu-001")
			if !errors.Is(f, plan.CodeConfigInvalid) || !strings.Contains(f.Error(), "gpu-001") || !strings.Contains(f.Error(), fmt.Sprintf("site.hcl:%d", c.line)) {
				t.Errorf("fault %v", f)
			}
		})
	}
	if f := (Diagnostics{}).Fault("gpu-001"); f != nil {
		t.Errorf("a fault without a mistake: %v", f)
	}
}

// TestSettingsConcurrently is for the race detector; each device gets its own.
func TestSettingsConcurrently(t *testing.T) {
	file := loadBMC(t, "credential = secret(\"bmc-${device.name}\", \"password\")\nhostname = device.custom_fields.bmc_name")
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			intent := device()
			intent.Name = fmt.Sprintf("gpu-%03d", i)
			if i%2 == 1 {
				intent.CustomFields = nil
			}
			s, ds := file.Settings(intent)
			if s.BMCPassword.Item != "bmc-"+intent.Name || ds.HasErrors() != (i%2 == 1) {
				t.Errorf("%s: %+v %v", intent.Name, s, ds)
			}
		})
	}
	group.Wait()
}

// TestJSONNumbers: NetBox's answers may be decoded either way.
func TestJSONNumbers(t *testing.T) {
	intent := device()
	intent.CustomFields = map[string]any{"n": json.Number("12"), "m": 3, "list": []any{true, "x", map[string]any{"y": nil}}}
	s, ds := loadBMC(t, "credential = secret(\"${device.custom_fields.n}-${device.custom_fields.m}-${device.custom_fields.list[1]}\", \"password\")").Settings(intent)
	if ds.HasErrors() || s.BMCPassword.Item != "12-3-x" {
		t.Errorf("%+v %v", s, ds)
	}
}

// TestSecretsSettings: each kind of secrets block as plain data, with paths that
// begin at the site's folder.
func TestSecretsSettings(t *testing.T) {
	for _, c := range []struct {
		block string
		want  plan.SecretsSettings
	}{
		{`"env" {}`, plan.SecretsSettings{Backend: "env", Prefix: "ENROLL_SECRET"}},
		{`"vault" {
    url = "https://vault.example.net/"
    token_file = "token"
    namespace = "infra/lon14"
    timeout = "5s"
  }`, plan.SecretsSettings{Backend: "vault", URL: "https://vault.example.net", Mount: "secret", Namespace: "infra/lon14", TokenEnv: "VAULT_TOKEN", TokenFile: "site/token", Timeout: 5 * time.Second}},
		{`"vault" {
    url = "https://vault.example.net"
    app_role {
      role_id        = "the-role"
      secret_id_file = "/run/secret-id"
    }
  }`, plan.SecretsSettings{
			Backend: "vault", URL: "https://vault.example.net", Mount: "secret", TokenEnv: "VAULT_TOKEN", Timeout: 30 * time.Second,
			AppRole: &plan.VaultAppRole{Mount: "approle", RoleID: "the-role", SecretIDEnv: "VAULT_SECRET_ID", SecretIDFile: "/run/secret-id"},
		}},
		{`"vault" {
    url = "https://vault.example.net"
    kubernetes {
      mount = "k8s/lon14"
      role  = "enroll"
    }
  }`, plan.SecretsSettings{
			Backend: "vault", URL: "https://vault.example.net", Mount: "secret", TokenEnv: "VAULT_TOKEN", Timeout: 30 * time.Second,
			Kubernetes: &plan.VaultKubernetes{Mount: "k8s/lon14", Role: "enroll", TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token"},
		}},
		{`"onepassword" {
    url   = "https://op-connect.example.net"
    vault = "lon14"
  }`, plan.SecretsSettings{Backend: "onepassword", URL: "https://op-connect.example.net", Vault: "lon14", TokenEnv: "OP_CONNECT_TOKEN", Timeout: 30 * time.Second}},
		{`"age" {
    file          = "secrets.age"
    identity_file = "../identity"
  }`, plan.SecretsSettings{Backend: "age", File: "site/secrets.age", IdentityEnv: "ENROLL_AGE_IDENTITY", IdentityFile: "identity"}},
		{`"command" {
    argv = ["op", "get", "{item}", "get"]
  }`, plan.SecretsSettings{Backend: "command", Argv: []string{"op", "get", "{item}", "get"}, Timeout: 30 * time.Second}},
		{`"command" {
    argv = ["./bin/secrets"]
  }`, plan.SecretsSettings{Backend: "command", Argv: []string{"site/bin/secrets"}, Timeout: 30 * time.Second}},
	} {
		src := strings.Replace(minimal("", ""), `"env" {}`, c.block, 1)
		file, ds := Load("site", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(src)}}})
		if ds.HasErrors() {
			t.Errorf("%s: %s", c.block, text(t, ds))
			continue
		}
		if diff := cmp.Diff(c.want, file.Site().Secrets); diff != "" {
			t.Errorf("%s: -want +have\n%s", c.block, diff)
		}
	}
}
