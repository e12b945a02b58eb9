package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// evaluated is an expression's value as JSON, or its error.
func evaluated(t *testing.T, expression string) string {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(expression), "x", hcl.Pos{Line: 1, Column: 1})
	if diags.HasErrors() {
		t.Fatalf("%s: %v", expression, diags)
	}
	sc := &scope{values: map[string]cty.Value{"device": deviceValue(device())}, functions: functionMap()}
	v, diags := expr.Value(sc.context())
	if diags.HasErrors() {
		return "error: " + diags[0].Detail
	}
	out, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestFunctions: every function of the table with what it gives, and those that
// can fail with what they say.
func TestFunctions(t *testing.T) {
	cases := []struct{ expression, want string }{
		{`abs(-2)`, `2`}, {`alltrue([])`, `true`}, {`alltrue([true, false])`, `false`}, {`alltrue(["x"])`, `error: true and false only`},
		{`anytrue([])`, `false`}, {`anytrue([false, true])`, `true`}, {`anytrue("x")`, `error: must be a list`},
		{`can(device.custom_fields.none)`, `false`}, {`can(1)`, `true`}, {`ceil(1.1)`, `2`}, {`chomp("a\n\n")`, `"a"`},
		{`chunklist([1, 2, 3], 2)`, `[[1,2],[3]]`},
		{`cidrcontains("192.0.2.0/24", "192.0.2.255")`, `true`}, {`cidrcontains("192.0.2.0/24", "192.0.3.0")`, `false`},
		{`cidrcontains("192.0.2.0/24", "192.0.2.128/25")`, `true`}, {`cidrcontains("192.0.2.0/24", "192.0.0.0/16")`, `false`},
		{`cidrcontains("2001:db8::/32", "2001:db8::1")`, `true`}, {`cidrcontains("192.0.2.0/24", "x")`, `error: must be an address or a network`},
		{`cidrcontains("192.0.2.1/24", "192.0.2.1")`, `error: the network is "192.0.2.0/24"`},
		{`cidrhost("192.0.2.0/24", 1)`, `"192.0.2.1"`}, {`cidrhost("192.0.2.0/24", -1)`, `"192.0.2.255"`}, {`cidrhost("2001:db8::/64", 256)`, `"2001:db8::100"`},
		{`cidrhost("192.0.2.0/24", 256)`, `error: is beyond the network, which has 256 addresses`}, {`cidrhost("192.0.2.0/24", -257)`, `error: is beyond the network`},
		{`cidrhost("192.0.2.0/24", 1.5)`, `error: must be a whole number`}, {`cidrhost("x", 1)`, `error: must be a network in CIDR form`},
		{`cidrhost("::/0", pow(2, 29))`, `"::2000:0"`},
		{`cidrnetmask("192.0.2.0/20")`, `error: has bits set`}, {`cidrnetmask("192.0.0.0/20")`, `"255.255.240.0"`}, {`cidrnetmask("2001:db8::/64")`, `error: no mask`},
		{`cidrprefix("192.0.2.0/24")`, `24`}, {`cidrprefix("x")`, `error: CIDR form`},
		{`cidrsubnet("192.0.2.0/24", 2, 3)`, `"192.0.2.192/26"`}, {`cidrsubnet("2001:db8::/32", 16, 1)`, `"2001:db8:1::/48"`}, {`cidrsubnet("192.0.2.0/24", 0, 0)`, `"192.0.2.0/24"`},
		{`cidrsubnet("192.0.2.0/24", 2, 4)`, `error: does not fit into 2 bits`}, {`cidrsubnet("192.0.2.0/24", 9, 0)`, `error: must be a number from 0 to 8`}, {`cidrsubnet("192.0.2.0/24", -1, 0)`, `error: from 0 to 8`},
		{`coalesce(null, "a")`, `"a"`}, {`coalescelist([], [1])`, `[1]`}, {`compact(["a", "", null])`, `["a"]`}, {`concat([1], [2])`, `[1,2]`},
		{`contains(["a"], "a")`, `true`}, {`distinct(["a", "a"])`, `["a"]`}, {`element([1, 2], 3)`, `2`},
		{`endswith("abc", "bc")`, `true`}, {`endswith("abc", "ab")`, `false`}, {`startswith("abc", "ab")`, `true`}, {`startswith("abc", "bc")`, `false`},
		{`flatten([[1], [[2]]])`, `[1,2]`}, {`floor(1.9)`, `1`},
		{`format("%03d-%s", 7, "a")`, `"007-a"`}, {`format("%99999d", 1)`, `error: 999 characters`}, {`formatlist("%s!", ["a", "b"])`, `["a!","b!"]`},
		{`formatlist("%9999s", ["a"])`, `error: 999`}, {`indent(2, "a\nb")`, `"a\n  b"`}, {`indent(1000, "a")`, `error: 0 to 100`},
		{`index(["a", "b"], "b")`, `1`}, {`index(["a"], "b")`, `error: does not have this value`}, {`index("a", "b")`, `error: must be a list`},
		{`join("-", ["a", "b"])`, `"a-b"`}, {`jsondecode("[1]")`, `[1]`}, {`jsondecode("[")`, `error: `}, {`jsonencode({ a = [true, null] })`, `"{\"a\":[true,null]}"`},
		{`keys({ b = 1, a = 2 })`, `["a","b"]`}, {`length([1, 2])`, `2`}, {`length("äö")`, `2`}, {`length({ a = 1 })`, `1`}, {`length(1)`, `error: must be a list, a map or a text`},
		{`lookup({ a = "1" }, "b", "0")`, `"0"`}, {`lower("A")`, `"a"`}, {`max(1, 2)`, `2`}, {`merge({ a = 1 }, { a = 2 })`, `{"a":2}`}, {`min(1, 2)`, `1`},
		{`parseint("ff", 16)`, `255`}, {`parseint("x", 10)`, `error: `}, {`pow(2, 10)`, `1024`}, {`pow(2, 1e300)`, `error: too large`},
		{`range(1, 4)`, `[1,2,3]`}, {`range(100000)`, `error: `}, {`regex("[0-9]+", "a12b")`, `"12"`}, {`regex("(?P<n>[0-9])", "a1")`, `{"n":"1"}`},
		{`regex("x", "a")`, `error: `}, {`regex("(", "a")`, `error: `}, {`regexall("[0-9]", "1a2")`, `["1","2"]`}, {`regexreplace("a1b", "[0-9]", "<$0>")`, `"a\u003c1\u003eb"`},
		{`replace("aXb", "X", "-")`, `"a-b"`}, {`reverse([1, 2])`, `[2,1]`}, {`setintersection(["a", "b"], ["b"])`, `["b"]`}, {`setsubtract(["a", "b"], ["b"])`, `["a"]`},
		{`setunion(["a"], ["b"])`, `["a","b"]`}, {`signum(-3)`, `-1`}, {`slice([1, 2, 3], 1, 2)`, `[2]`}, {`sort(["b", "a"])`, `["a","b"]`}, {`split(".", "a.b")`, `["a","b"]`},
		{`strlen("ä")`, `1`}, {`strrev("ab")`, `"ba"`}, {`substr("abc", 1, 1)`, `"b"`}, {`title("a b")`, `"A B"`}, {`tobool("true")`, `true`}, {`tolist(["a", 1])`, `["a","1"]`},
		{`tomap({ a = 1, b = "x" })`, `{"a":"1","b":"x"}`}, {`tonumber("22")`, `22`}, {`tonumber("x")`, `error: `}, {`tostring(1)`, `"1"`},
		{`trim("--a-", "-")`, `"a"`}, {`trimprefix("ab", "a")`, `"b"`}, {`trimspace(" a ")`, `"a"`}, {`trimsuffix("ab", "b")`, `"a"`}, {`try(device.custom_fields.none, "x")`, `"x"`},
		{`upper("a")`, `"A"`}, {`values({ b = 1, a = 2 })`, `[2,1]`}, {`yamldecode("a: [1, x]")`, `{"a":[1,"x"]}`}, {`yamldecode("a: &x 1\nb: *x")`, `error: aliases`},
		{`yamldecode("a: '*/bmc.bios'")`, `{"a":"*/bmc.bios"}`}, {`yamldecode("[")`, `error: `}, {`zipmap(["a"], [1])`, `{"a":1}`}, {`file("x")`, `error: files are not read in conditions`}, {`templatefile("x", {})`, `error: files are not read in conditions`},
	}
	tried := map[string]bool{"secret": true}
	for _, c := range cases {
		name, _, _ := strings.Cut(c.expression, "(")
		tried[name] = true
		got := evaluated(t, c.expression)
		if part, wrong := strings.CutPrefix(c.want, "error: "); wrong {
			if !strings.HasPrefix(got, "error: ") || !strings.Contains(got, part) {
				t.Errorf("%s: %s, want an error with %q", c.expression, got, part)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.expression, got, c.want)
		}
	}
	for _, f := range functionTable() {
		if !tried[f.name] {
			t.Errorf("%s is not tried", f.name)
		}
		if f.doc == "" || f.example == "" || !strings.HasPrefix(f.signature, f.name+"(") || !strings.HasPrefix(f.example, f.name+"(") {
			t.Errorf("%s is not explained", f.name)
		}
		known := false
		for _, g := range functionGroups() {
			known = known || g == f.group
		}
		if !known {
			t.Errorf("%s is in no group", f.name)
		}
	}
}

// TestBounds: what would explode is refused, quickly.
func TestBounds(t *testing.T) {
	doubling := "locals {\n a0 = \"xxxxxxxxxx\"\n"
	for i := range 60 {
		doubling += fmt.Sprintf(" a%d = \"${local.a%d}${local.a%d}\"\n", i+1, i, i)
	}
	lists := "locals {\n a0 = [\"x\"]\n"
	for i := range 60 {
		lists += fmt.Sprintf(" a%d = concat(local.a%d, local.a%d)\n", i+1, i, i)
	}
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x]\\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	big := "locals {\n big = \"" + strings.Repeat("x", 1<<19) + "\"\n"
	for _, c := range []struct{ name, locals, says string }{
		{"doubled text", doubling + "}\n", "larger than 4 MiB"},
		{"doubled list", lists + "}\n", "larger than 4 MiB"},
		{"loop", big + " all = [for i in range(1000) : local.big]\n}\n", "would make more than 4 MiB"},
		{"loop over a list", big + " l = range(1000)\n all = { for i in local.l : i => local.big }\n}\n", "would make more than 4 MiB"},
		{"many references", big + " all = \"" + strings.Repeat("${local.big}", 600) + "\"\n}\n", "larger than 4 MiB"},
		{"YAML aliases", "locals {\n x = yamldecode(\"" + laughs + "\")\n}\n", "aliases"},
		{"deep YAML", "locals {\n x = yamldecode(\"" + strings.Repeat("[", 100000) + "\")\n}\n", "nested"},
		{"deep YAML lists", "locals {\n x = yamldecode(\"" + strings.Repeat("- ", 50000) + "\")\n}\n", "nested"},
		{"deep YAML lines", "locals {\n x = yamldecode(\"" + deepYAML(300) + "\")\n}\n", "nested"},
		{"deep JSON", "locals {\n x = jsondecode(\"" + strings.Repeat("[", 100000) + "\")\n}\n", "nested"},
		{"regular expression", big + " r = regex(\"(a*)*(b*)*$\", local.big)\n}\n", "is longer than 65536 bytes"},
		{"regular expression itself", "locals {\n r = regex(\"((((a{100}){100}){100}){100}){100}\", \"a\")\n}\n", "regex"},
		{"regular expression replaced", "locals {\n b = \"" + strings.Repeat("x", 60000) + "\"\n r = regexreplace(local.b, \"\", local.b)\n}\n", "longer than"},
		{"power", "locals {\n r = pow(10, 1e30)\n}\n", "too large"},
		{"join", big + " r = join(local.big, [for i in range(1000) : \"\"])\n}\n", "longer than"},
		{"template that calls itself", "locals {\n r = templatefile(\"self.tmpl\", { x = 1 })\n}\n", "templatefile"},
		{"template with a loop", "locals {\n r = templatefile(\"loop.tmpl\", { x = range(1000) })\n}\n", "Nested loop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := Load("", Options{Files: fstest.MapFS{
				"site.hcl": {Data: []byte(minimal(c.locals, ""))}, "self.tmpl": {Data: []byte("${templatefile(\"self.tmpl\", { x = x })}")},
				"loop.tmpl": {Data: []byte("%{ for a in x }%{ for b in x }${a}${b}%{ endfor }%{ endfor }")},
			}})
			said := strings.Join(strings.Fields(text(t, ds)), " ")
			if !ds.HasErrors() || !strings.Contains(said, strings.Join(strings.Fields(c.says), " ")) && !strings.Contains(said, "A for expression inside") {
				t.Errorf("%q is not said: %.3000s", c.says, said)
			}
		})
	}
}

func deepYAML(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\\n")
	}
	return b.String()
}

// TestFiles: file and templatefile read their own folder, and what they read is
// part of the plan's inputs.
func TestFiles(t *testing.T) {
	dir := writeFolders(t, map[string]string{
		"common/all.hcl":         "locals {\n  banner = trimspace(file(\"text/banner.txt\"))\n}\nsite {\n  bmc {\n    hostname = templatefile(\"name.tmpl\", { name = device.name, gpu = device.gpu, suffix = local.suffix })\n  }\n}\n",
		"common/name.tmpl":       "${name}%{ if gpu }-gpu%{ endif }-${suffix}",
		"common/text/banner.txt": "ntp9\r\n",
		"site/banner.txt":        "wrong",
		"site/site.hcl": "enroll {\n  include = [\"../common\"]\n}\nlocals {\n  suffix = file(\"./suffix.txt\")\n}\n" +
			minimal("", "  bmc {\n    credential = secret(\"x\", \"y\")\n    ntp_servers = [\"${local.banner}.example.net\"]\n  }\n"),
		"site/suffix.txt": "bmc",
	})
	file, ds := Load(dir, Options{})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	s, ds := file.Settings(device())
	if ds.HasErrors() || s.Hostname != "gpu-001-gpu-bmc" || s.NTPServers[0] != "ntp9.example.net" {
		t.Fatalf("%+v %s", s, text(t, ds))
	}
	var names []string
	for _, f := range file.Site().Files {
		names = append(names, f.Name)
		if len(f.SHA256) != 64 {
			t.Errorf("%+v", f)
		}
	}
	if got := strings.Join(names, " "); got != "site.hcl ../common/all.hcl suffix.txt ../common/name.tmpl ../common/text/banner.txt" {
		t.Errorf("inputs: %s", got)
	}
}

func TestFileMistakes(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.txt")
	if err := os.WriteFile(outside, []byte("hunter2secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, expression, says string }{
		{"missing", `file("none.txt")`, "no such file"},
		{"outside", `file("../outside.txt")`, `without ".."`},
		{"absolute", `file("` + outside + `")`, `without ".."`},
		{"link", `file("link.txt")`, "symbolic link that leads out"},
		{"folder", `file("sub")`, "not a regular file"},
		{"not text", `file("latin.txt")`, "no UTF-8"},
		{"too large", `file("large.txt")`, "2 MiB"},
		{"broken template", `templatefile("broken.tmpl", {})`, "broken.tmpl:2"},
		{"unknown value", `templatefile("unknown.tmpl", { name = 1 })`, `Did you mean "name"?`},
		{"no map", `templatefile("unknown.tmpl", "x")`, "must be a map"},
		{"deep template", `templatefile("deep.tmpl", {})`, "nested"},
		{"secret in a template", `templatefile("secret.tmpl", {})`, "secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeSite(t, map[string]string{
				"site.hcl": minimal("locals {\n  x = "+c.expression+"\n}\n", ""), "latin.txt": "\xe4", "large.txt": strings.Repeat("x", maxFileSize+1),
				"broken.tmpl": "a\n${", "unknown.tmpl": "${nmae}", "deep.tmpl": strings.Repeat("${\"", 1000), "secret.tmpl": "${secret(\"a\", \"b\")}",
			})
			if err := os.Symlink(outside, filepath.Join(dir, "link.txt")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			_, ds := Load(dir, Options{})
			said := strings.Join(strings.Fields(text(t, ds)), " ")
			if !ds.HasErrors() || !strings.Contains(said, c.says) || strings.Contains(said, "hunter2secret") {
				t.Errorf("%q is not said: %s", c.says, said)
			}
		})
	}
	// The name depends on the device.
	dir := writeSite(t, map[string]string{"gpu-001": "x", "site.hcl": minimal("", "  bmc {\n    credential = secret(\"x\", \"y\")\n    hostname = file(device.name)\n  }\n")})
	file, ds := Load(dir, Options{})
	if file == nil {
		t.Fatal(text(t, ds))
	}
	if _, ds := file.Settings(device()); !ds.HasErrors() || !strings.Contains(text(t, ds), "same for all devices") {
		t.Errorf("a file whose name depends on the device is read: %s", text(t, ds))
	}
}

// TestFileContentIsNotShown: a file may hold anything.
func TestFileContentIsNotShown(t *testing.T) {
	dir := writeSite(t, map[string]string{
		"key.txt":  "-----BEGIN KEY-----\nhunter2secret\n",
		"site.hcl": minimal("locals {\n  x = file(\"key.txt\")\n}\n", "  dhcp {\n    host = local.x\n    user = \"e\"\n    identity = file(\"key.txt\")\n    known_hosts_file = local.x\n    service = \"dnsmasq\"\n    directory = \"/x\"\n    subnets = [local.x]\n  }\n"),
	})
	_, ds := Load(dir, Options{})
	if said := text(t, ds); strings.Contains(said, "hunter2") || !strings.Contains(said, "is a text of 34 bytes") {
		t.Error(said)
	}
}
