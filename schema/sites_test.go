package schema

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// TestSites reads the sites of the repository as a user would: they are valid
// without a warning, and a device gets its settings.
func TestSites(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join("..", "sites"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		n++
		t.Run(e.Name(), func(t *testing.T) {
			file, ds := Load(filepath.Join("..", "sites", e.Name()), Options{Version: "0.1.0"})
			if len(ds) > 0 {
				t.Fatal(text(t, ds))
			}
			if file.Site().Name != e.Name() {
				t.Errorf("site %q stands in the folder %q", file.Site().Name, e.Name())
			}
			s, ds := file.Settings(&plan.Intent{Name: "gpu-001"})
			if len(ds) > 0 {
				t.Fatal(text(t, ds))
			}
			if s.BMCPassword.Field != "password" || s.BMCUsername.Field != "username" || s.Hostname == "" {
				t.Errorf("settings of gpu-001: %+v", s)
			}
		})
	}
	if n < 2 {
		t.Errorf("%d sites", n)
	}
}
