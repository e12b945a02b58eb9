package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/enroll-dev/enroll/plan"
)

// writeSite makes a folder of files.
func writeSite(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, src := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFolder: all files are one body, relative paths begin at the folder, and
// other files are not looked at.
func TestFolder(t *testing.T) {
	dir := writeSite(t, map[string]string{
		"b.hcl":       "variable \"ca\" { default = \"ca.pem\" }\r\n",
		"a.hcl":       "\ufeff" + strings.Replace(minimal("", ""), "    token", "    ca_file = var.ca\n    token", 1),
		".hidden.hcl": "nonsense", "x.hcl.bak": "nonsense", "README.md": "nonsense",
	})
	file, ds := Load(dir, Options{})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	s := file.Site()
	if s.Dir != dir || len(s.Files) != 2 || s.Files[0].Name != "a.hcl" || s.NetBox.CAFile != filepath.Join(dir, "ca.pem") {
		t.Errorf("%+v", s)
	}
	if got := s.Set["netbox.ca_file"]; !strings.HasPrefix(got, filepath.Join(dir, "a.hcl")+":") {
		t.Errorf("set at %q", got)
	}
}

func TestFolderMistakes(t *testing.T) {
	outside := writeSite(t, map[string]string{"x.hcl": minimal("", "")})
	link := writeSite(t, nil)
	if err := os.Symlink(filepath.Join(outside, "x.hcl"), filepath.Join(link, "site.hcl")); err != nil {
		t.Fatal(err)
	}
	folder := writeSite(t, nil)
	if err := os.Mkdir(filepath.Join(folder, "site.hcl"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, says string }{
		{"no folder", filepath.Join(outside, "none"), "no such file"},
		{"a file", filepath.Join(outside, "x.hcl"), "not a directory"},
		{"nothing in it", writeSite(t, nil), "no file with the ending .hcl"},
		{"link that leads out", link, "leads out of the site's folder"},
		{"folder instead of a file", folder, "not a regular file"},
		{"NUL", writeSite(t, map[string]string{"site.hcl": "# a\n# b\x00c\n"}), "Line 2, column 4 holds the control character U+0000"},
		{"NUL in JSON", writeSite(t, map[string]string{"site.hcl.json": "{\"//\": \"\x00\"}"}), "control character U+0000"},
		{"form feed", writeSite(t, map[string]string{"site.hcl": "\x0csite \"x\" {}"}), "control character U+000C"},
		{"UTF-16", writeSite(t, map[string]string{"site.hcl": "\xff\xfes\x00"}), "UTF-16"},
		{"Latin-1", writeSite(t, map[string]string{"site.hcl": "# line\n# K\xf6ln\n"}), "Line 2, column 4"},
		{"too large", writeSite(t, map[string]string{"site.hcl": strings.Repeat("#\n", maxFileSize)}), "2 MiB"},
		{"too deep", writeSite(t, map[string]string{"site.hcl": "x = " + strings.Repeat("[", 100000)}), "nested"},
		{"too long", writeSite(t, map[string]string{"site.hcl": "x = " + strings.Repeat("1 + ", 100000) + "1\n"}), "parts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, ds := Load(c.dir, Options{})
			if file != nil || !ds.HasErrors() {
				t.Fatal("no error")
			}
			if said := strings.Join(strings.Fields(text(t, ds)), " "); !strings.Contains(said, c.says) {
				t.Errorf("%q is not said: %s", c.says, said)
			}
		})
	}
}

// TestDuplicateAcrossFiles: hcl itself accepts equal labels in two files.
func TestDuplicateAcrossFiles(t *testing.T) {
	_, ds := Load("", Options{Files: fstest.MapFS{"a.hcl": {Data: []byte(minimal("", ""))}, "b.hcl": {Data: []byte(minimal("variable \"v\" { default = 1 }\nvariable \"v\" { default = 2 }", ""))}}})
	said := text(t, ds)
	for _, want := range []string{"There is one site block, and it already stands at a.hcl:2", `variable "v" already stands at b.hcl:1`} {
		if !strings.Contains(strings.Join(strings.Fields(said), " "), want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
}

// TestColor: colours do not change the text, and a file cannot steer the
// terminal.
func TestColor(t *testing.T) {
	_, ds := load("site \"x\" {\n  # \x1b[31m\n  urll\u202e = \"\x1b]0;x\x07\" \n}\n", Options{})
	var plain, colored strings.Builder
	if err := ds.WriteText(&plain, false); err != nil {
		t.Fatal(err)
	}
	if err := ds.WriteText(&colored, true); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(plain.String(), "\x1b\x07\u202e") {
		t.Errorf("%q", plain.String())
	}
	stripped := colored.String()
	for _, code := range []string{red, yellow, bold, dim, "0"} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+code+"m", "")
	}
	if stripped != plain.String() || stripped == colored.String() {
		t.Errorf("%q", colored.String())
	}
}

// TestLateNames: every name that is reserved is refused as such, and not as
// unknown.
func TestLateNames(t *testing.T) {
	n := 0
	var visit func(spec *block, open, closing string)
	visit = func(spec *block, open, closing string) {
		refused := func(line, name string) {
			n++
			_, ds := load(open+line+"\n"+closing, Options{})
			for _, d := range ds {
				if d.Summary == "Not supported by this version" && strings.Contains(d.Detail, name) {
					return
				}
			}
			t.Errorf("%s is not refused as reserved:\n%s", name, text(t, ds))
		}
		for i := range spec.attrs {
			if a := &spec.attrs[i]; a.later {
				refused(a.name+" = 1", a.name)
			}
		}
		for _, child := range spec.blocks {
			head := strings.TrimSuffix(blockExample(child), "{ … }")
			if child.later {
				refused(head+"{}", child.name)
				continue
			}
			visit(child, open+head+"{\n", "}\n"+closing)
		}
	}
	visit(language(), "", "")
	t.Logf("%d reserved names", n)
}

// TestMistypedNames: each attribute and block with one letter too many gets its
// own name suggested.
func TestMistypedNames(t *testing.T) {
	var visit func(spec *block, open, closing string)
	visit = func(spec *block, open, closing string) {
		for i := range spec.attrs {
			if a := &spec.attrs[i]; !a.later && len(a.name) > 3 {
				wrong := a.name[:2] + a.name[3:]
				_, ds := load(open+wrong+" = 1\n"+closing, Options{})
				if !suggested(ds, a.name) && a.name != "ssdp" { // ssh is as near
					t.Errorf("%s.%s: no suggestion for %s", spec.name, a.name, wrong)
				}
			}
		}
		for _, child := range spec.blocks {
			if child.later || child.free {
				continue
			}
			head := strings.TrimSuffix(blockExample(child), "{ … }")
			visit(child, open+head+"{\n", "}\n"+closing)
		}
	}
	visit(language(), "", "")
}

func suggested(ds Diagnostics, name string) bool {
	for _, d := range ds {
		if d.Suggestion == name {
			return true
		}
	}
	return false
}

// TestNoLeak writes a secret into every attribute of the language that holds
// one, and into some that only sound so, in several forms: nothing of what is
// said may hold it.
func TestNoLeak(t *testing.T) {
	const secret = "hunter2secret"
	forms := []string{
		`%s = "` + secret + `"`, `%s = secret("x", "y", "` + secret + `"`, "%s = <<E\n" + secret + "\nE", `%s = { value = "` + secret + `" }`,
		`%s = ["` + secret + `"]`, `%s = "${"` + secret + `"}" + 1`, `%s = upper("` + secret + `"`, `%s = ` + secret, `%s "` + secret,
		`%s : "` + secret + `"`, `%s = "x` + secret + ` # "`, `%s = nothing("` + secret + `")`, `%s = secret("x", "y", "` + secret + `")`, `%s = tonumber("` + secret + `")`, `%s = "` + secret,
	}
	names := []string{"token", "credential", "username", "identity", "known_hosts", "tokn", "password", "bmc_password", "api_key", "monitoring", "Token", "passphrase"}
	for _, name := range names {
		for _, f := range forms {
			for _, inside := range []string{"netbox", "dhcp", "bmc", "locals", ""} {
				line := strings.ReplaceAll(f, "%s", name)
				if f == `%s "`+secret && name != "token" {
					continue // labels of unknown blocks are shown
				}
				src := "site \"x\" {\n" + inside + " {\n" + line + "\n}\n}\n"
				if inside == "locals" {
					src = "locals {\n" + line + "\n}\n"
				}
				_, ds := load(src, Options{})
				var asJSON strings.Builder
				if err := ds.WriteJSON(&asJSON); err != nil {
					t.Fatal(err)
				}
				if said := text(t, ds) + asJSON.String() + ds.Error(); strings.Contains(said, secret) && f != `%s "`+secret {
					t.Errorf("%s in %q:\n%s", line, inside, said)
				}
			}
		}
	}
}

// FuzzLoad: whatever stands in a file, Load ends with a File or with an error
// that has a text, and says no secret that is written where one belongs.
func FuzzLoad(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "mistakes", "*.hcl"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range append(names, filepath.Join("testdata", "full.hcl")) {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Add(minimal("", ""))
	f.Fuzz(func(t *testing.T, src string) {
		file, ds := load(src, Options{Version: "0.1.0"})
		checkLoaded(t, file, ds)
	})
}

// checkLoaded wants a File or an error with a text, and nothing half.
func checkLoaded(t *testing.T, file *File, ds Diagnostics) {
	t.Helper()
	if (file == nil) != ds.HasErrors() {
		t.Fatalf("file %v, %v", file, ds)
	}
	said := text(t, ds)
	if ds.HasErrors() && (said == "" || ds.Error() == "") {
		t.Fatal("an error without a text")
	}
	if file != nil {
		if file.Site() == nil || file.Site().Name == "" || file.Site().NetBox.Token.IsZero() {
			t.Fatalf("%+v", file.Site())
		}
		if s, ds := file.Settings(&plan.Intent{Name: "gpu-001"}); !ds.HasErrors() && file.Site().BMC != nil && s.BMCPassword.IsZero() {
			t.Fatal("no password, and no mistake")
		}
	}
}
