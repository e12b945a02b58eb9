package view

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"
)

func TestUnified(t *testing.T) {
	lines := func(n int) []string {
		var out []string
		for i := range n {
			out = append(out, "line "+strconv.Itoa(i+1))
		}
		return out
	}
	a := lines(20)
	b := append([]string{"new"}, append(append(append([]string{}, a[:9]...), "ten"), a[10:19]...)...)
	want := `--- a
+++ b
@@ -1,3 +1,4 @@
+new
 line 1
 line 2
 line 3
@@ -7,7 +8,7 @@
 line 7
 line 8
 line 9
-line 10
+ten
 line 11
 line 12
 line 13
@@ -17,4 +18,3 @@
 line 17
 line 18
 line 19
-line 20
`
	if d := cmp.Diff(want, Unified("a", "b", strings.Join(a, "\n")+"\n", strings.Join(b, "\n")+"\n")); d != "" {
		t.Error(d)
	}
	if got := Unified("a", "b", "x\n", "x\n"); got != "" {
		t.Errorf("%q", got)
	}
	if got, want := Unified("a", "b", "x", "x\n"), "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"; got != want {
		t.Errorf("%q", got)
	}
	if got, want := Unified("a", "b", "", "x\n"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n"; got != want {
		t.Errorf("%q", got)
	}
}

// patch makes the second file of the first one.
func TestUnifiedIsAPatch(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("no patch here")
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "\n", "c\n"}), 0, 30), func(l []string) string { return strings.Join(l, "") })
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		path, diff := filepath.Join(dir, "f"), filepath.Join(dir, "d")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(diff, []byte(Unified("f", "f", before, after)), 0o600); err != nil {
			t.Fatal(err)
		}
		if before == after {
			return
		}
		out, err := exec.Command("patch", "--fuzz=0", "-s", path, diff).CombinedOutput()
		got, _ := os.ReadFile(path) // patch removes a file that becomes empty
		if err != nil || string(got) != after {
			t.Fatalf("%v %s\n%q", err, out, got)
		}
	})
}
