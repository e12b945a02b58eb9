package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const variablesFolder = `
variable "port" {
  type    = number
  default = 22
  validation {
    condition     = var.port > 0 && var.port < 65536
    error_message = "A port is a number from 1 to 65535."
  }
  validation {
    condition     = var.port != 23 || var.allow
    error_message = "Telnet is refused."
  }
}
variable "allow" {
  type    = bool
  default = false
}
variable "subnets" {
  type    = list(string)
  default = ["192.0.2.0/24"]
}
variable "user" {
  type    = string
  default = "enroll"
}
`

func variablesSite() string {
	return minimal(variablesFolder, `
  dhcp {
    host             = "192.0.2.2"
    port             = var.port
    user             = var.user
    identity_file    = "id"
    known_hosts_file = "kh"
    service          = "dnsmasq"
    directory        = "/srv/x"
    subnets          = var.subnets
  }
`)
}

// TestVarFiles: the command line wins over files, later files over earlier
// ones, and those over the environment.
func TestVarFiles(t *testing.T) {
	files := fstest.MapFS{
		"site.hcl":  {Data: []byte(variablesSite())},
		"one.vars":  {Data: []byte("port = 2201\nsubnets = [\"198.51.100.0/24\"]\nuser = \"one\"\n")},
		"two.vars":  {Data: []byte("\ufeffport = 2202\r\nuser = \"two\"")},
		"some.json": {Data: []byte(`{"port": 2203, "subnets": ["203.0.113.0/24"]}`)},
	}
	for _, c := range []struct {
		name, user, subnet string
		opts               Options
		port               int
	}{
		{"default", "enroll", "192.0.2.0/24", Options{}, 22},
		{"environment", "env", "192.0.2.0/24", Options{Env: map[string]string{"user": "env", "port": "2200"}}, 2200},
		{"file over environment", "one", "198.51.100.0/24", Options{Env: map[string]string{"user": "env"}, VarFiles: []string{"one.vars"}}, 2201},
		{"later file", "two", "198.51.100.0/24", Options{VarFiles: []string{"one.vars", "two.vars"}}, 2202},
		{"JSON", "two", "203.0.113.0/24", Options{VarFiles: []string{"two.vars", "some.json"}}, 2203},
		{"command line", "root", "198.51.100.0/24", Options{VarFiles: []string{"one.vars"}, Vars: map[string]string{"user": "root", "port": "1"}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.Files = files
			file, ds := Load("", c.opts)
			if len(ds) > 0 {
				t.Fatal(text(t, ds))
			}
			if d := file.Site().DHCP; d.Port != c.port || d.User != c.user || d.Subnets[0] != c.subnet {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestVarFileMistakes(t *testing.T) {
	for _, c := range []struct {
		name, file string
		says       []string
	}{
		{"wrong type", "port = \"x\"\n", []string{"v.hcl:1", "must be of the type number"}},
		{"unknown", "\nprot = 1\n", []string{"v.hcl:2", `Did you mean "port"?`}},
		{"function", "user = upper(\"x\")\n", []string{"values only"}},
		{"reference", "user = var.x\n", []string{"values only"}},
		{"secret", "user = secret(\"a\", \"b\")\n", []string{"values only"}},
		{"null", "user = null\n", []string{"must be of the type string"}},
		{"block", "variable \"x\" {}\n", []string{"NAME = VALUE only"}},
		{"syntax", "user = \n", []string{"v.hcl:1"}},
		{"not UTF-8", "user = \"\xff\"\n", []string{"UTF-8"}},
		{"deep", "user = " + strings.Repeat("[", 10000), []string{"nested"}},
		{"twice", "user = \"a\"\nuser = \"b\"\n", []string{"v.hcl:2"}},
		{"refused", "port = 70000\n", []string{"A port is a number from 1 to 65535.", "v.hcl:1", "var.port is 70000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(variablesSite())}, "vars/v.hcl": {Data: []byte(c.file)}}, VarFiles: []string{"vars/v.hcl"}})
			said := strings.Join(strings.Fields(text(t, ds)), " ")
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not said: %s", want, said)
				}
			}
		})
	}
	for _, bad := range []string{"", "[]", "null", `{"port": 1} {}`, `{"port": 1`, strings.Repeat("[", 100000)} {
		_, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(variablesSite())}, "v.json": {Data: []byte(bad)}}, VarFiles: []string{"v.json"}})
		if !ds.HasErrors() || !strings.Contains(text(t, ds), "JSON object") {
			t.Errorf("%.20q: %s", bad, text(t, ds))
		}
	}
	if _, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(variablesSite())}}, VarFiles: []string{"none.vars"}}); !strings.Contains(text(t, ds), "--var-file") {
		t.Error(text(t, ds))
	}
}

// TestVarFileOnDisk: the file may stand anywhere.
func TestVarFileOnDisk(t *testing.T) {
	dir := writeSite(t, map[string]string{"site.hcl": variablesSite()})
	vars := filepath.Join(t.TempDir(), "prod.vars")
	if err := os.WriteFile(vars, []byte("port = 2222\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, ds := Load(dir, Options{VarFiles: []string{vars}})
	if len(ds) > 0 || file.Site().DHCP.Port != 2222 {
		t.Fatal(text(t, ds))
	}
}

func TestValidation(t *testing.T) {
	for _, c := range []struct {
		name   string
		before string
		vars   map[string]string
		says   []string
	}{
		{"refused", variablesFolder, map[string]string{"port": "0"}, []string{"A port is a number", "given by --var", "var.port is 0"}},
		{"second rule", variablesFolder, map[string]string{"port": "23"}, []string{"Telnet is refused"}},
		{"second rule holds", variablesFolder, map[string]string{"port": "23", "allow": "true"}, nil},
		{"default refused", strings.Replace(variablesFolder, "default = 22", "default = 0", 1), nil, []string{"(its default)"}},
		{"looks elsewhere", "variable \"a\" {\n default = 1\n validation {\n condition = true\n error_message = \"x\"\n }\n}\n", nil, []string{"must look at the variable that it belongs to: var.a"}},
		{"not a condition", "variable \"a\" {\n default = 1\n validation {\n condition = var.a\n error_message = \"x\"\n }\n}\n", nil, []string{"true or false"}},
		{"no message", "variable \"a\" {\n default = 1\n validation {\n condition = var.a > 0\n }\n}\n", nil, []string{"error_message"}},
		{"hidden", "variable \"api_token\" {\n default = \"hunter2secret\"\n validation {\n condition = length(var.api_token) > 99\n error_message = \"x\"\n }\n}\n", nil, []string{"hidden"}},
		{"hidden too short", "variable \"api_token\" {\n default = [\"hunter2secret\"]\n validation {\n condition = length(var.api_token) > 99\n error_message = \"Too short.\"\n }\n}\n", nil, []string{"Too short."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := minimal(c.before, "")
			_, ds := load(src, Options{Vars: c.vars})
			said := strings.Join(strings.Fields(text(t, ds)), " ")
			if len(c.says) == 0 && len(ds) > 0 {
				t.Errorf("refused: %s", said)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) && want != "hidden" {
					t.Errorf("%q is not said: %s", want, said)
				}
			}
			if strings.Contains(said, "hunter2") {
				t.Errorf("a secret is said: %s", said)
			}
		})
	}
}

// TestValues: a mistake tells what the references of its expression stand for.
func TestValuesInMessages(t *testing.T) {
	src := minimal(`
variable "port" { default = 70000 }
variable "token" { default = "hunter2secret" }
variable "address" { default = "https://u:hunter2secret@x" }
locals { list = ["a"] }
`, `
  dhcp {
    host             = "${var.token}/${var.address}/${local.list[0]}/x"
    port             = var.port
    user             = "enroll"
    identity         = var.token
    known_hosts_file = "kh"
    service          = "dnsmasq"
    directory        = "/srv/x"
    subnets          = ["192.0.2.0/24"]
  }
`)
	_, ds := load(src, Options{})
	said := text(t, ds)
	for _, want := range []string{"var.port is 70000", "local.list[0] is \"a\""} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
	var asJSON strings.Builder
	if err := ds.WriteJSON(&asJSON); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(said+asJSON.String(), "hunter2") {
		t.Errorf("a secret is said: %s", said)
	}
}
