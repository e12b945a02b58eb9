package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormat(t *testing.T) {
	for name, c := range map[string][2]string{
		"indent and alignment": {"site \"x\" {\nnetbox {\nurl=\"u\"\n    token  =  1\n}\n}", "site \"x\" {\n  netbox {\n    url   = \"u\"\n    token = 1\n  }\n}\n"},
		"empty lines":          {"\n\n\na = 1\n\n\n\n\nb = 2\n  \n\t\n", "a = 1\n\nb = 2\n"},
		"comments":             {"# one\n\n\n\n// two\na = 1 # three\n/* four\n\n\n\n   five */\nb=2\n", "# one\n\n// two\na = 1 # three\n/* four\n\n\n\n   five */\nb = 2\n"},
		"heredoc":              {"a = <<EOT\none\n\n\n\n  two  \nEOT\n\n\nb = <<-EOT\n    three\n\n\n    EOT\n", "a = <<EOT\none\n\n\n\n  two  \nEOT\n\n\nb = <<-EOT\n    three\n\n\n    EOT\n"},
		"carriage returns":     {"a = 1\r\n\r\n\r\nb=2\r\n", "a = 1\n\nb = 2\n"},
		"byte order mark":      {"\xef\xbb\xbfa=1\n", "a = 1\n"},
		"only comments":        {"\n\n# nothing yet", "# nothing yet\n"},
		"nothing":              {"", ""},
		"nothing but space":    {"\n \n\n", ""},
		"string with newline":  {"a = \"x\\n\\n\\ny\"\n", "a = \"x\\n\\n\\ny\"\n"},
		"template":             {"a = \"${ var.x }-${var.y}\"\n", "a = \"${var.x}-${var.y}\"\n"},
	} {
		got, ds := Format("site.hcl", []byte(c[0]))
		if len(ds) > 0 {
			t.Errorf("%s: %s", name, text(t, ds))
			continue
		}
		want := c[1]
		if name == "heredoc" { // the empty lines between them are not in one
			want = strings.Replace(want, "EOT\n\n\nb", "EOT\n\nb", 1)
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		again, _ := Format("site.hcl", got)
		if !bytes.Equal(again, got) {
			t.Errorf("%s is not stable:\n%s\n%s", name, got, again)
		}
	}
}

// A carriage return inside a heredoc is part of a value.
func TestFormatKeepsHeredocs(t *testing.T) {
	got, ds := Format("site.hcl", []byte("a = <<EOT\r\none\r\n\r\n\r\nEOT\r\nb=1\r\n"))
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	if !strings.Contains(string(got), "one\r\n\r\n\r\n") || !strings.HasSuffix(string(got), "b = 1\n") {
		t.Errorf("%q", got)
	}
}

func TestFormatRefusesWhatDoesNotParse(t *testing.T) {
	for name, src := range map[string]string{
		"open block": "site \"x\" {\n", "not UTF-8": "a = \"\xff\"\n", "UTF-16": "\xff\xfea\x00", "nested": "a = " + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + "\n",
		"secret": "token = \"hunter2secret\n",
	} {
		got, ds := Format("site.hcl", []byte(src))
		if got != nil || !ds.HasErrors() {
			t.Errorf("%s: %q %v", name, got, ds)
		}
		if strings.Contains(text(t, ds), "hunter2secret") {
			t.Errorf("%s: a hidden text is said", name)
		}
	}
}

// TestSitesFormatted keeps the shipped sites as enroll fmt writes them.
func TestSitesFormatted(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "sites", "*", "*.hcl"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, ds := Format(name, src)
		if len(ds) > 0 {
			t.Fatal(text(t, ds))
		}
		if d := cmp.Diff(string(src), string(got)); d != "" {
			t.Errorf("%s is not formatted; run enroll fmt (-is +should):\n%s", name, d)
		}
	}
}

func TestShown(t *testing.T) {
	src := "token = \"hunter2secret\"\nurl = \"https://me:hunter2secret@host\"\ncredential = secret(\"a\", \"b\")\nname = \"x\"\n"
	got := Shown([]byte(src))
	if strings.Contains(got, "hunter2secret") || !strings.Contains(got, `credential = secret("a", "b")`) || !strings.Contains(got, `name = "x"`) {
		t.Errorf("%s", got)
	}
}

func FuzzFormat(f *testing.F) {
	names, _ := filepath.Glob(filepath.Join("testdata", "mistakes", "*.hcl")) // a bad pattern is the only error
	for _, name := range append(names, filepath.Join("testdata", "full.hcl")) {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	for _, s := range []string{"a=<<E\n\n\nE\n", "/*\n\n\n*/a=1", "a = \"${<<E\nx\nE\n}\"\n", "a={b=1,c=2}\n", "a=[\n\n\n1,\n\n2]\n", "a {}\n\n\n#\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, ds := Format("f.hcl", src)
		if ds.HasErrors() {
			return
		}
		again, ds := Format("f.hcl", got)
		if ds.HasErrors() || !bytes.Equal(got, again) {
			t.Errorf("not stable (%v):\n%q\n%q", ds, got, again)
		}
	})
}
