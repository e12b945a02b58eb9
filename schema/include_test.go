package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

// writeFolders makes folders of files beside each other; it gives the path of
// the first one.
func writeFolders(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, src := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "site")
}

const sharedFolder = `
variable "domain" {
  type    = string
  default = "example.net"
}
locals {
  netbox = "https://netbox.${var.domain}"
  old    = "x"
}
site {
  configure_dhcp = false
  netbox {
    url     = local.netbox
    token   = secret("netbox", "token")
    ca_file = "ca.pem"
    timeout = "10s"
  }
  secrets "vault" {
    url    = "https://vault.example.net"
    prefix = "all"
  }
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute", "gpu-old"]
    gpu   = true
  }
  ironic "baremetal" {
    cloud          = "shared"
    device_classes = ["COMPUTE_GPU"]
    attempts       = 5
    node_lock {
      max_wait = "5m"
      backoff  = ["1s", "20s"]
    }
  }
  bmc {
    credential = secret("bmc-${device.name}", "password")
  }
}
`

// TestInclude: the included folder is read first, and the site's own attribute
// wins.
func TestInclude(t *testing.T) {
	dir := writeFolders(t, map[string]string{
		"common/all.hcl": sharedFolder,
		"site/site.hcl": `
enroll {
  include = ["../common"]
}
locals {
  old = "y"
}
site "lon14" {
  netbox {
    timeout = "20s"
  }
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
  }
  device_class "COMPUTE_CPU" {
    roles = ["compute"]
  }
  ironic "baremetal" {
    device_classes = ["COMPUTE_GPU", "COMPUTE_CPU"]
    attempts       = 2
    node_lock {
      max_wait = "6m"
    }
  }
}
`})
	file, ds := Load(dir, Options{Version: "0.1.0"})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	s := file.Site()
	if s.Name != "lon14" || s.NetBox.URL != "https://netbox.example.net" || s.NetBox.Timeout != 20*time.Second || s.ConfigureDHCP || s.Secrets.Prefix != "all" {
		t.Errorf("%+v", s)
	}
	if want := filepath.Join(filepath.Dir(dir), "common", "ca.pem"); s.NetBox.CAFile != want {
		t.Errorf("a relative path begins at its own folder: %q, want %q", s.NetBox.CAFile, want)
	}
	if d := cmp.Diff([]plan.DeviceClass{{Name: "COMPUTE_GPU", Roles: []string{"gpu-compute"}, GPU: true}, {Name: "COMPUTE_CPU", Roles: []string{"compute"}}}, s.Classes); d != "" {
		t.Errorf("lists replace, other attributes stay: -want +have\n%s", d)
	}
	i := s.Ironics[0]
	if len(s.Ironics) != 1 || i.Cloud != "shared" || i.Attempts != 2 || i.LockMaxWait != 6*time.Minute || i.LockBackoffMax != 20*time.Second || len(i.DeviceClasses) != 2 {
		t.Errorf("%+v", s.Ironics)
	}
	var names []string
	for _, f := range s.Files {
		names = append(names, f.Name)
	}
	if d := cmp.Diff([]string{"site.hcl", "../common/all.hcl"}, names); d != "" {
		t.Errorf("files: %s", d)
	}
	if !strings.HasSuffix(s.Set["netbox.url"], "common/all.hcl:13") || !strings.HasSuffix(s.Set["netbox.timeout"], "site/site.hcl:10") {
		t.Errorf("set: %q, %q", s.Set["netbox.url"], s.Set["netbox.timeout"])
	}
	settings, ds := file.Settings(device())
	if ds.HasErrors() || settings.BMCPassword.Item != "bmc-gpu-001" {
		t.Errorf("%+v %v", settings, ds)
	}
}

// TestOrigin: explain can say who set a value and over whom.
func TestOrigin(t *testing.T) {
	dir := writeFolders(t, map[string]string{
		"base/all.hcl":   sharedFolder,
		"common/all.hcl": "enroll {\n  include = [\"../base\"]\n}\nsite {\n  ironic \"baremetal\" {\n    attempts = 4\n  }\n}\n",
		"site/site.hcl":  "enroll {\n  include = [\"../common\"]\n}\nlocals {\n  two = 2\n}\nsite \"x\" {\n  ironic \"baremetal\" {\n    attempts = local.two\n  }\n}\n",
	})
	file, ds := Load(dir, Options{})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	for _, path := range []string{"site.ironic.baremetal.attempts", "site.ironic.attempts", "ironic.attempts"} {
		found := file.Values(path)
		if len(found) != 1 {
			t.Fatalf("%s: %+v", path, found)
		}
		o := found[0]
		if o.Path != "ironic.baremetal.attempts" || o.Value != "2" || o.Default || o.Text != "local.two" || !strings.HasSuffix(o.Place, "site/site.hcl:9") {
			t.Errorf("%+v", o)
		}
		if len(o.Overridden) != 2 || o.Overridden[0].Text != "4" || !strings.HasSuffix(o.Overridden[0].Place, "common/all.hcl:6") || o.Overridden[1].Text != "5" || !strings.HasSuffix(o.Overridden[1].Place, "base/all.hcl:29") {
			t.Errorf("%+v", o.Overridden)
		}
	}
	for path, want := range map[string]string{
		"netbox.token":                        `secret("netbox", "token")`,
		"ironic.cleaning_deadline":            `"3h"`,
		"ironic.node_lock.backoff":            `["1s", "20s"]`,
		"configure_dhcp":                      "false",
		"bmc.credential":                      `secret("bmc-${device.name}", "password")`,
		"secrets.vault.mount":                 `"secret"`,
		"ironic.baremetal.node_lock.max_wait": `"5m"`,
		"secrets.mount":                       `"secret"`,
		"device_class.COMPUTE_GPU.gpu":        "true",
		"site.bmc.hostname":                   "the device's name",
		"device_class.COMPUTE_GPU.role":       "",
	} {
		found := file.Values(path)
		if want == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", path, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Value != want || found[0].Doc == "" {
			t.Errorf("%s: %+v, want %s", path, found, want)
		}
	}
	for _, o := range file.Origins() {
		if o.Value == "" {
			t.Errorf("%s has no value", o.Path)
		}
	}
}

// TestIncludeMistakes: cycles, missing folders, folders of another site.
func TestIncludeMistakes(t *testing.T) {
	include := func(dirs string) string { return "enroll {\n  include = [" + dirs + "]\n}\n" }
	outside := writeSite(t, map[string]string{"x.hcl": "locals {\n  x = 1\n}\n"})
	for _, c := range []struct {
		name  string
		files map[string]string
		says  []string
	}{
		{"missing", map[string]string{"site/site.hcl": include(`"../none"`) + minimal("", "")}, []string{"no such file", `"../none"`}},
		{"circle", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/a.hcl": include(`"../b"`), "b/b.hcl": include(`"../a"`)}, []string{"in a circle", "/a → ", "/b → "}},
		{"itself", map[string]string{"site/site.hcl": include(`"."`) + minimal("", "")}, []string{"in a circle"}},
		{"absolute", map[string]string{"site/site.hcl": include(`"`+outside+`"`) + minimal("", "")}, []string{"begins at this folder"}},
		{"other site", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/a.hcl": minimal("", "")[:0] + "site \"y\" {\n}\n"}, []string{`of the site "x"`, `of the site "y"`, "without a label"}},
		{"mistake inside", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/a.hcl": "site {\n  netbox {\n    urll = 1\n  }\n}\n"}, []string{"a/a.hcl:3", `Did you mean "url"?`}},
		{"empty", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/x.txt": ""}, []string{"no file with the ending .hcl"}},
		{"contradiction", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", "ironic \"b\" {\n device_classes = [\"COMPUTE_GPU\"]\n endpoint = \"http://x\"\n}\n"), "a/a.hcl": "site {\n ironic \"b\" {\n  cloud = \"x\"\n }\n}\n"}, []string{"say the same thing twice", "a/a.hcl:3"}},
		{"for another version", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/a.hcl": "enroll {\n  required_version = \">= 9\"\n}\n"}, []string{"a/a.hcl:2", "for enroll >= 9"}},
		{"twice in a shared folder", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/a.hcl": "site {\n  configure_dhcp = true\n}\n", "a/b.hcl": "site {\n  configure_dhcp = true\n}\n"}, []string{"Duplicate attribute", "a/a.hcl:2"}},
		{"block twice in a shared folder", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/a.hcl": "site {\n  secrets \"env\" {}\n}\n", "a/b.hcl": "site {\n  secrets \"env\" {}\n}\n"}, []string{"There is one secrets block", "a/a.hcl:2"}},
		{"no label", map[string]string{"site/site.hcl": strings.Replace(minimal("", ""), `site "x"`, "site", 1)}, []string{"needs a label"}},
		{"no label anywhere", map[string]string{"site/site.hcl": include(`"../a"`), "a/a.hcl": strings.Replace(minimal("", ""), `site "x"`, "site", 1)}, []string{"needs a label"}},
		{"not for the site", map[string]string{"site/site.hcl": include(`"../a"`) + minimal("", ""), "a/a.hcl": "site {\n ironic \"b\" {\n  attempts = 2\n }\n}\n"}, []string{"device_classes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, ds := Load(writeFolders(t, c.files), Options{Version: "0.1.0"})
			said := strings.Join(strings.Fields(text(t, ds)), " ")
			if file != nil || !ds.HasErrors() {
				t.Fatal("no error")
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not said: %s", want, said)
				}
			}
		})
	}
}

// TestIncludeShared: two folders may include a third, and another kind of
// secrets block replaces.
func TestIncludeShared(t *testing.T) {
	dir := writeFolders(t, map[string]string{
		"base/a.hcl": sharedFolder, "one/a.hcl": "enroll {\n  include = [\"../base\"]\n}\n", "two/a.hcl": "enroll {\n  include = [\"../base\"]\n}\n",
		"site/site.hcl": "enroll {\n  include = [\"../one\", \"../two\"]\n}\nsite \"x\" {\n  secrets \"env\" {}\n}\n",
	})
	file, ds := Load(dir, Options{})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	if s := file.Site(); s.Secrets.Backend != "env" || s.Secrets.Prefix != "ENROLL_SECRET" || len(s.Files) != 4 {
		t.Errorf("%+v", s)
	}
}

// TestLinksOut: an included folder is as closed as the site's own.
func TestLinksOut(t *testing.T) {
	dir := writeFolders(t, map[string]string{"site/site.hcl": "enroll {\n  include = [\"../a\"]\n}\n" + minimal("", ""), "a/a.hcl": "", "secret/x.hcl": "locals {\n  x = 1\n}\n"})
	parent := filepath.Dir(dir)
	if err := os.Symlink(filepath.Join(parent, "secret", "x.hcl"), filepath.Join(parent, "a", "x.hcl")); err != nil {
		t.Fatal(err)
	}
	if _, ds := Load(dir, Options{}); !ds.HasErrors() || !strings.Contains(text(t, ds), "symbolic link that leads out") {
		t.Error(text(t, ds))
	}
}

// TestIncludeHash: a checkout may stand anywhere, and what it means is the same.
func TestIncludeHash(t *testing.T) {
	hash := func(ca string) string {
		dir := writeFolders(t, map[string]string{
			"common/all.hcl": strings.Replace(sharedFolder, "ca.pem", ca, 1),
			"site/site.hcl":  "enroll {\n  include = [\"../common\"]\n}\nsite \"x\" {\n  ironic \"baremetal\" {\n    ca_file = \"own.pem\"\n  }\n}\n",
		})
		file, ds := Load(dir, Options{})
		if len(ds) > 0 {
			t.Fatal(text(t, ds))
		}
		return file.Site().Hash()
	}
	first, again, other := hash("ca.pem"), hash("ca.pem"), hash("other.pem")
	if first != again || first == other {
		t.Errorf("%s, %s, %s", first, again, other)
	}
}

// TestIncludeThroughLink: a link in the path of an include must not lead to what is
// not reviewed with the site; how the site's folder itself was reached is free.
func TestIncludeThroughLink(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"repo/common", "repo/site/v2", "elsewhere"} {
		write(name+"/a.hcl", "locals {\n  a = 1\n}\n")
	}
	write("repo/site/site.hcl", "")
	for link, to := range map[string]string{"repo/site/current": "v2", "repo/site/out": "../../elsewhere", "repo/out": "../elsewhere", "checkout": "repo"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ site, include, says string }{
		{"repo/site", "../common", ""},
		{"checkout/site", "../common", ""},
		{"repo/site", "current", ""},
		{"repo/site", "out", "leads out of this folder"},
		{"repo/site", "../out", "leads out of this folder"},
		{"checkout/site", "../out", "leads out of this folder"},
	} {
		write("repo/site/site.hcl", minimal("enroll {\n  include = [\""+c.include+"\"]\n}\n", ""))
		_, ds := Load(filepath.Join(dir, c.site), Options{})
		said := strings.Join(strings.Fields(text(t, ds)), " ")
		if (c.says == "") != (len(ds) == 0) || !strings.Contains(said, c.says) {
			t.Errorf("%s includes %s: %s", c.site, c.include, said)
		}
	}
}
