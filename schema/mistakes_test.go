package schema

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write generated pages and golden files anew")

// TestMistakes compares what is said about the files in testdata/mistakes, word
// by word. Nothing that is hidden may be said.
func TestMistakes(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "mistakes", "*.hcl"))
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".hcl"), func(t *testing.T) {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, ds := load(string(src), Options{Version: "0.1.0"})
			if file != nil && ds.HasErrors() || file == nil && !ds.HasErrors() {
				t.Errorf("file %v beside %d errors", file, ds.count(Error))
			}
			got := text(t, ds)
			var asJSON strings.Builder
			if err := ds.WriteJSON(&asJSON); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got+asJSON.String(), "hunter2secret") {
				t.Errorf("a hidden text is said:\n%s", got)
			}
			for _, d := range ds {
				if !d.Range.IsZero() && (d.Snippet == nil || d.Range.Start.Line == 0) {
					t.Errorf("no place or no source line: %+v", d)
				}
			}
			golden(t, strings.TrimSuffix(name, ".hcl")+".txt", got)
		})
	}
}

// TestTwelve: twelve mistakes are twelve diagnostics, in the order of their lines.
func TestTwelve(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "mistakes", "twelve.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	_, ds := load(string(src), Options{Version: "0.1.0"})
	if len(ds) != 12 {
		t.Errorf("%d diagnostics", len(ds))
	}
	for i := 1; i < len(ds); i++ {
		if ds[i].Range.Start.Line < ds[i-1].Range.Start.Line {
			t.Errorf("line %d stands after line %d", ds[i].Range.Start.Line, ds[i-1].Range.Start.Line)
		}
	}
}

func TestJSON(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "mistakes", "several.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	_, ds := load(string(src), Options{})
	var b strings.Builder
	if err := ds.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "several.json"), b.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./schema -update writes it anew); got:\n%s", path, got)
	}
}
