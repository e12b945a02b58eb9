package schema

import (
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// TestChecks: each rule with what it takes and what it refuses. A refusal never
// repeats the text, which may be a secret.
func TestChecks(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		name      string
		check     func(string) error
		good, bad []string
	}{
		{"slug", isSlug, []string{"lon14", "gpu-compute", "a.b_c"}, []string{"Lon14", "-x", "x-", "a b", "ä"}},
		{"service URL", isServiceURL,
			[]string{"https://netbox.example.net", "http://192.0.2.1:8000/base/", "https://[2001:db8::1]:443"},
			[]string{"netbox.example.net", "netbox.example.net:8000", "ftp://x", "https://", "https://u:pw@x", "https://x/?a=b", "https://x#y", "https://a_b", "https://192.0.2.300", "https://x:port", "https:///x", ":"}},
		{"host", isHost, []string{"dhcp1.example.net", "dhcp1.example.net.", "192.0.2.1", "2001:db8::1", "x"}, []string{"192.0.2", "192.0.2.256", "a b", "a..b", "-a", "a_b", "192.0.2.1/24", "host/x", long + ".x", strings.Repeat("a.", 130) + "a"}},
		{"host name", isHostName, []string{"gpu-001", "gpu-001.example.net"}, []string{"gpu_001", "gpu-", "x..y", long}},
		{"subnet", isSubnet, []string{"192.0.2.0/24", "192.0.2.0/30", "198.18.0.0/15", "2001:db8::/64"},
			[]string{"192.0.2.1/24", "198.51.100.0", "192.0.2.0/31", "192.0.2.0/32", "0.0.0.0/0", "224.0.0.0/8", "240.0.0.0/8", "::ffff:192.0.2.0/120", "all"}},
		{"remote directory", isRemoteDirectory, []string{"/etc/dnsmasq.d/enroll-hosts", "/srv/a_b+c"}, []string{"etc", "/", "//", "/a/../b", "/a/./b", "/a//b", "/a b", "/a;b", "/$HOME", "/a'b"}},
		{"path", isPath, []string{"ca.pem", "/etc/ca.pem", "../ca.pem"}, []string{"~/ca.pem", "~user/ca.pem"}},
		{"vault path", isVaultPath, []string{"secret", "kv/infra"}, []string{"/secret", "secret/", "a//b", "../x", "a b"}},
		{"variable name", isVariableName, []string{"VAULT_TOKEN", "_x1"}, []string{"1X", "A-B", "A B", "A=B"}},
		{"unit", isUnit, []string{"dnsmasq", "dnsmasq@bmc.service"}, []string{"dnsmasq; reboot", "a b", "$x"}},
		{"user", isUnixUser, []string{"enroll", "_x"}, []string{"Root", "a b", "-x", "x;y"}},
		{"project", isProject, []string{"2f3c0a7be61d4e4d8a57e1a0f0b9c111", "proj-enrol"}, []string{"", "None", "null"}},
		{"trait", isTrait, []string{"HW_ARCH_X86_64", "CUSTOM_GPU"}, []string{"custom", "A-B"}},
		{"suffix", isHostSuffix, []string{"-bmc", "x"}, []string{"_bmc", "-", ".x", "-BMC"}},
		{"item", func(s string) error { return isSecretName(s, true) }, []string{"bmc-gpu-001", "bmc/gpu-001", "with blank"}, []string{" x", "x ", "/x", "x/", "a//b", "a/../b", "a\nb", "."}},
		{"field", func(s string) error { return isSecretName(s, false) }, []string{"password", "private key"}, []string{"a/b", "\x00"}},
	} {
		for _, s := range c.good {
			if err := c.check(s); err != nil {
				t.Errorf("%s: %q is refused: %v", c.name, s, err)
			}
		}
		for _, s := range append(c.bad, "") {
			if s == "" && c.name == "path" {
				continue // empty texts are refused before
			}
			err := c.check(s)
			if err == nil {
				t.Errorf("%s: %q is taken", c.name, s)
				continue
			}
			if len(s) > 5 && strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q is repeated: %v", c.name, s, err)
			}
		}
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"credential", "ca_file", "timeout", "url", "user"}
	for given, want := range map[string]string{
		"credentials": "credential", "credentail": "credential", "cafile": "ca_file", "tiemout": "timeout", "urll": "url", "uesr": "user",
		"monitoring": "", "x": "", "": "", "url": "",
	} {
		if got := plan.Suggest(given, names); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// TestInsecure: a site may switch certificate checks off, with a reason and a
// warning in every run.
func TestInsecure(t *testing.T) {
	src := minimal("", "  bmc {\n    credential = secret(\"x\", \"y\")\n    tls {\n    insecure = true\n    reason = \"factory certificates\"\n  }\n  }\n")
	file, ds := load(src, Options{})
	if file == nil || len(ds) != 1 || ds[0].Severity != Warning || !strings.Contains(ds[0].Detail, "factory certificates") {
		t.Fatal(text(t, ds))
	}
	if b := file.Site().BMC; !b.Insecure || b.InsecureReason != "factory certificates" {
		t.Errorf("%+v", b)
	}
	for _, wrong := range []string{"tls {\n reason = \"x\"\n}", "tls {\n insecure = true\n reason = \"x\"\n ca_file = \"x\"\n}", "ca_file = \"x\"\n tls {\n insecure = true\n reason = \"x\"\n}",
		"ca_file = \"x\"\n tls {\n ca_file = \"x\"\n}", "tls {\n insecure = true\n}", "tls {\n insecure = true\n reason = \"x\"\n pins = [\"sha256:" + strings.Repeat("a", 64) + "\"]\n}"} {
		if _, ds := load(minimal("", "  bmc {\n    credential = secret(\"x\", \"y\")\n "+wrong+"\n  }\n"), Options{}); len(ds) == 0 || ds[0].Summary != "Contradiction" && ds[0].Summary != "Reason missing" && ds[0].Summary != "No effect" {
			t.Errorf("%s: %s", wrong, text(t, ds))
		}
	}
}

// TestManyMistakes: a damaged file does not print without end.
func TestManyMistakes(t *testing.T) {
	_, ds := load(strings.Repeat("nonsense {}\n", 1000), Options{})
	if len(ds) > maxDiagnostics+1 || !strings.Contains(ds[len(ds)-1].Detail, "200") {
		t.Errorf("%d", len(ds))
	}
}

// TestLongLine: a file can be one line of megabytes.
func TestLongLine(t *testing.T) {
	for _, pad := range []string{strings.Repeat("x", 100000), strings.Repeat("ä", 100000)} {
		_, ds := load("site \"x\" { nonsense = \""+pad+"\" }", Options{})
		if said := text(t, ds); len(said) > 6000 || !strings.Contains(said, "nonsense") {
			t.Errorf("%d bytes", len(said))
		}
	}
}
