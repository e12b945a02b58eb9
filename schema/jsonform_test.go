package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

// loadJSON reads one file with the name site.hcl.json.
func loadJSON(src string, opts Options) (*File, Diagnostics) {
	opts.Files = fstest.MapFS{"site.hcl.json": {Data: []byte(src)}}
	return Load("", opts)
}

// TestJSONForm: a site means the same in both forms.
func TestJSONForm(t *testing.T) {
	for _, name := range []string{filepath.Join("testdata", "full.hcl"), filepath.Join("..", "sites", "demo", "site.hcl"), filepath.Join("..", "sites", "osl2", "site.hcl")} {
		t.Run(name, func(t *testing.T) {
			native, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			other, err := json.MarshalIndent(jsonForm(t, name), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			one, ds := load(string(native), Options{})
			if one == nil {
				t.Fatal(text(t, ds))
			}
			two, ds := loadJSON("\ufeff"+string(other), Options{})
			if two == nil {
				t.Fatal(text(t, ds))
			}
			a, b := *one.Site(), *two.Site()
			a.Files, a.Set, b.Files, b.Set = nil, nil, nil, nil
			less := func(s plan.Site) { // the order of JSON's names is another one
				if len(s.Classes) > 1 && s.Classes[0].Name > s.Classes[1].Name {
					s.Classes[0], s.Classes[1] = s.Classes[1], s.Classes[0]
				}
			}
			less(a)
			less(b)
			if d := cmp.Diff(a, b); d != "" {
				t.Errorf("-native +JSON:\n%s", d)
			}
			x, _ := one.Settings(device())
			y, ds := two.Settings(device())
			x.Set, y.Set = nil, nil
			if d := cmp.Diff(x, y); d != "" || ds.HasErrors() {
				t.Errorf("-native +JSON:\n%s%s", d, text(t, ds))
			}
			for path, at := range two.Site().Set {
				line := strings.Split(string(other), "\n")[lineOf(t, at)-1]
				if name := path[strings.LastIndexByte(path, '.')+1:]; !strings.Contains(line, `"`+name+`"`) {
					t.Errorf("%s is not at %s: %s", path, at, line)
				}
			}
		})
	}
}

const smallJSON = `{
  "//": "a comment",
  "variable": {"port": {"type": "number", "default": 22}},
  "site": {"x": {
    "netbox": {"url": "https://netbox.example.net", "token": "${secret(\"netbox\", \"token\")}"},
    "secrets": {"env": {}},
    "device_class": [{"A": {"roles": ["a"]}}, {"B": {"roles": ["b"]}}],
    "policy": {"p": {"deny": "${has_effect(\"reboot\")}", "owner": "INFRA_ENG"}},
    "configure_dhcp": false, "configure_bmc": false, "ironic_enrol": false,
    "ironic": {"one": {"cloud": "x", "device_classes": ["A", "B"]}}
  }}
}`

// TestJSONPlaces: the place of a mistake is exact behind escapes too, and what is
// shown of an expression is what it means.
func TestJSONPlaces(t *testing.T) {
	for _, c := range []struct{ text, marked string }{
		{`"${lower(\"é\\\"x\") == lowr(\"y\")}"`, "lowr"},
		{`"${lower(\"\ud83d\ude00\u00e9\") == var.prt}"`, ".prt"},
		{`"${\n\n lower(\"a\") == var.prt}"`, ".prt"},
		{`"${lower(\"a\") == }"`, "}"},
	} {
		src := strings.Replace(smallJSON, `"${has_effect(\"reboot\")}"`, c.text, 1)
		_, ds := loadJSON(src, Options{})
		if len(ds) != 1 {
			t.Errorf("%s: %s", c.text, text(t, ds))
			continue
		}
		at := ds[0].Range
		line := strings.Split(src, "\n")[at.Start.Line-1]
		if got := src[at.Start.Byte:at.End.Byte]; got != c.marked && c.marked != "" || at.Start.Line != 8 || at.End.Line != 8 || string([]rune(line)[at.Start.Column-1:at.End.Column-1]) != got {
			t.Errorf("%s: %q at %+v", c.text, got, at)
		}
		if s := ds[0].Snippet; c.marked != "" && s.Code[s.HighlightStartOffset:s.HighlightEndOffset] != c.marked {
			t.Errorf("%s: %q is underlined", c.text, s.Code[s.HighlightStartOffset:s.HighlightEndOffset])
		}
	}
	file, ds := loadJSON(smallJSON, Options{})
	if file == nil {
		t.Fatal(text(t, ds))
	}
	if p := file.Site().Policies[0]; p.Text != `has_effect("reboot")` {
		t.Errorf("the condition is shown as %s", p.Text)
	}
	if o := file.Values("netbox.token"); len(o) != 1 || o[0].Text != `secret("netbox", "token")` {
		t.Errorf("the token is explained as %+v", o)
	}
}

// TestJSONMistakes have the place in the JSON text.
func TestJSONMistakes(t *testing.T) {
	if file, ds := loadJSON(smallJSON, Options{}); len(ds) > 0 || len(file.Site().Classes) != 2 || len(file.Site().Policies) != 1 {
		t.Fatal(text(t, ds))
	}
	for _, c := range []struct{ name, old, new, says string }{
		{"not JSON", `"//": "a comment",`, `"//": "a comment"`, "site.hcl.json:3:"},
		{"no object", smallJSON, "[]", "is one object"},
		{"misspelt", `"url"`, `"urll"`, `site.hcl.json:5:16, in site "x" / netbox`},
		{"literal secret", `"${secret(\"netbox\", \"token\")}"`, `"hunter2secret"`, "is a secret, and a site file holds none"},
		{"wrong type", `["a"]`, `"a"`, "must be a list of texts"},
		{"reference", `["a"]`, `["${var.prot}"]`, `Did you mean "port"?`},
		{"template", `["a"]`, `["${"]`, "site.hcl.json:7:"},
		{"twice", `"configure_bmc": false,`, `"configure_bmc": false, "configure_bmc": true,`, "already stands at site.hcl.json:9"},
		{"block as a text", `{"env": {}}`, `"env"`, "In JSON that is an object"},
		{"label as a text", `{"env": {}}`, `{"env": 5}`, "it is an object by the label"},
		{"type", `"number"`, `"nmber"`, "The type of variable"},
		{"deep", `["a"]`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested 64 deep"},
		{"deeper than encoding/json takes", `["a"]`, strings.Repeat("[", 50000) + strings.Repeat("]", 50000), "depth"},
		{"deep template", `["a"]`, `["` + strings.Repeat("${[", 1000) + `"]`, "nested"},
		{"unknown block", `"configure_bmc": false,`, `"configure_bmc": false, "nonsense": {"token": "hunter2secret"},`, "has no attribute"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := loadJSON(strings.Replace(smallJSON, c.old, c.new, 1), Options{})
			said := strings.Join(strings.Fields(text(t, ds)), " ")
			if !ds.HasErrors() || !strings.Contains(said, c.says) || strings.Contains(said, "hunter2") {
				t.Errorf("%q is not said: %s", c.says, said)
			}
		})
	}
}

// TestBothForms: files of both forms are one body.
func TestBothForms(t *testing.T) {
	file, ds := Load("", Options{Files: fstest.MapFS{"a.hcl": {Data: []byte(minimal("", "  bmc {\n    credential = secret(\"x\", local.item)\n  }\n"))}, "b.hcl.json": {Data: []byte(`{"locals": {"item": "p"}}`)}}})
	if len(ds) > 0 || len(file.Site().Files) != 2 {
		t.Fatal(text(t, ds))
	}
}

// FuzzJSON: as FuzzLoad, for the JSON form.
func FuzzJSON(f *testing.F) {
	f.Add(smallJSON)
	for _, s := range []string{"{}", `{"site": []}`, `{"site": {"x": [{}]}}`, `{"a": "\u00e9${\"\n\"}"}`, `{"locals": {"a": {"b": [1, true, null, 1e9]}}}`, "\ufeff{}", `{"site":{"x":{"netbox":{"token":"${secret(\"a\",\"b\")}"}}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		file, ds := loadJSON(src, Options{Version: "0.1.0"})
		checkLoaded(t, file, ds)
	})
}

// FuzzVariables: whatever a file of variables holds, there is a value or a
// mistake.
func FuzzVariables(f *testing.F) {
	for _, s := range []string{"port = 1\n", "user = \"x\"\nsubnets = [\"a\"]", "user = \"${", "port = {}\n", "\ufeffport=1", "port = 1e99999\n", "user = <<E\nx\nE\n"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Add(`{"port": 1, "user": null}`, true)
	f.Fuzz(func(t *testing.T, src string, asJSON bool) {
		name := "v.vars"
		if asJSON {
			name = "v.json"
		}
		file, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(variablesSite())}, name: {Data: []byte(src)}}, VarFiles: []string{name}})
		checkLoaded(t, file, ds)
	})
}

// TestJSONNoLeak writes a secret where one belongs, in several forms.
func TestJSONNoLeak(t *testing.T) {
	const secret = "hunter2secret"
	for _, name := range []string{"token", "credential", "identity", "tokn", "password", "api_key", "monitoring"} {
		for _, form := range []string{`"` + secret + `"`, `["` + secret + `"]`, `{"x": "` + secret + `"}`, `"${upper(\"` + secret + `\")}"`, `"` + secret, `"\"` + secret + `\""`, `"${secret(\"a\", \"b\", \"` + secret + `\")}"`, `"x ${\"` + secret + `\"}"`} {
			for _, inside := range []string{"netbox", "dhcp", "bmc", "nonsense"} {
				src := `{"site": {"x": {"` + inside + `": {"url": "${secret(\"a\", \"b\")}", "` + name + `": ` + form + `}}}}`
				_, ds := loadJSON(src, Options{})
				var asJSON strings.Builder
				if err := ds.WriteJSON(&asJSON); err != nil {
					t.Fatal(err)
				}
				if said := text(t, ds) + asJSON.String() + ds.Error(); strings.Contains(said, secret) {
					t.Errorf("%s:\n%s", src, said)
				}
			}
		}
	}
}
