package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/netbox"
)

const module = "github.com/enroll-dev/enroll"

type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

func listPackages(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "go", "list", "-deps=false", "-json=ImportPath,Name,Dir,Imports,Deps,GoFiles", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	pkgs := map[string]pkg{}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs[strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")] = p
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list shows only %d packages", len(pkgs))
	}
	return pkgs
}

// Dependencies point cmd → (schema, providers) → plan, and planning is pure
// (design section 3).
func TestImportRules(t *testing.T) {
	pkgs := listPackages(t)
	rules := []struct {
		from      string // prefix of the package
		forbidden string // regular expression over import paths
		why       string
		deps      bool // look at everything reachable, not only at direct imports
	}{
		{"plan", `^(net|net/http|os|os/exec|crypto/tls|golang\.org/x/crypto/ssh)$`, "the planner is pure: no network, no files", false},
		{"plan", module + `/(providers|schema|cmd)`, "the model knows nobody", true},
		{"plan/apply", module + `/(providers|schema|cmd)`, "the interpreter knows the model only", true},
		{"providers", module + `/(schema|cmd|plan/apply)`, "providers know the model only", true},
		{"schema", module + `/(providers|cmd|plan/apply)`, "the language knows the model only", true},
		{"", `^testing$`, "test code does not belong into the program", false},
	}
	for path, p := range pkgs {
		if bad := regexp.MustCompile(`(^|/)(util|utils|common|helpers|types)$`); bad.MatchString(path) {
			t.Errorf("package %s: a name that says nothing", path)
		}
		for _, r := range rules {
			if path != r.from && !strings.HasPrefix(path, r.from+"/") && r.from != "" {
				continue
			}
			if r.from == "plan" && path != "plan" {
				continue // plan/apply has its own rule
			}
			list := p.Imports
			if r.deps {
				list = p.Deps
			}
			re := regexp.MustCompile(r.forbidden)
			for _, imp := range list {
				if re.MatchString(imp) {
					t.Errorf("%s imports %s: %s", path, imp, r.why)
				}
			}
		}
	}
}

// Only the given folders stand at the top.
func TestTopLevel(t *testing.T) {
	allowed := map[string]bool{
		"cmd": true, "plan": true, "providers": true, "schema": true, "sites": true, "examples": true, "testdata": true,
		"go.mod": true, "go.sum": true, "Makefile": true, "README.md": true, "LICENSE": true, "bin": true,
	}
	entries, err := filepath.Glob(filepath.Join("..", "..", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := filepath.Base(e); !allowed[name] && !strings.HasPrefix(name, ".") {
			t.Errorf("%s does not belong at the top level", name)
		}
	}
}

// The table of kinds that patterns are held against is that of the providers.
func TestKindsAreThoseOfTheProviders(t *testing.T) {
	have := map[string]bool{}
	for _, kinds := range [][]plan.Kind{netbox.Kinds(), dhcp.Kinds(), bmc.Kinds(), ironic.Kinds()} {
		for _, k := range kinds {
			name, _, _ := strings.Cut(k.Name, "[")
			have[name] = true
		}
	}
	for _, name := range plan.KindNames() {
		if !have[name] {
			t.Errorf("plan knows %s, and no provider makes it", name)
		}
		delete(have, name)
	}
	for name := range have {
		t.Errorf("a provider makes %s, and plan does not know it", name)
	}
}
