package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// The commands that look do not write to any system, whatever they find: every
// request but those that open and close a session is a read, no lock is taken,
// and no journal begun.
func TestLookingWritesNothing(t *testing.T) {
	for _, scenario := range []string{"fresh", "drifted", "owned", "denied", "gaps"} {
		t.Run(scenario, func(t *testing.T) {
			l, dir := startLab(t, 2)
			s, _ := lab.FindScenario(scenario)
			if s.Converge != nil {
				if code, out, errOut := invoke(t, l, dir, append([]string{"apply", "--auto-approve"}, s.Converge(l)...)...); code != exitDone {
					t.Fatalf("exit %d\n%s%s", code, out, errOut)
				}
			}
			if err := s.Change(l); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
				t.Fatal(err)
			}
			l.Recorder.Reset()
			one, two := filepath.Join(dir, "one.plan"), filepath.Join(dir, "two.plan")
			for _, args := range [][]string{
				{"plan", "--all", "--out", one}, {"plan", "gpu-001", "--target", "kind:bmc.*", "--out", two}, {"plan", "gpu-001", "gpu-999"},
				{"drift", "--all"}, {"graph", "gpu-001"}, {"explain", "gpu-001/bmc.*"}, {"explain", "demo/dhcp.service"},
			} {
				before := len(l.Recorder.Records())
				if code, out, errOut := invoke(t, l, dir, args...); code == exitUsage || code == exitConfig {
					t.Fatalf("%v: exit %d\n%s%s", args, code, out, errOut)
				}
				records := l.Recorder.Records()
				if len(records) == before {
					t.Errorf("%v asked no system", args)
				}
				for _, r := range records[before:] {
					if r.Mutating || !reads(r) {
						t.Errorf("%v sent %s %s to %s", args, r.Method, r.Path, r.System)
					}
				}
			}
			asked := len(l.Recorder.Records())
			for _, args := range [][]string{
				{"show", one}, {"show", one, "--select", "kind:*", "--format", "markdown"}, {"diff", one, two}, {"graph", one}, {"explain", "--plan", one, "gpu-00?/*"},
			} {
				if code, out, errOut := invoke(t, l, dir, args...); code != exitDone && code != exitChanges {
					t.Errorf("%v: exit %d\n%s%s", args, code, out, errOut)
				}
			}
			if n := len(l.Recorder.Records()) - asked; n != 0 {
				t.Errorf("plan files were read with %d requests", n)
			}
			for _, kept := range []string{"locks", "journal"} {
				if found, _ := filepath.Glob(filepath.Join(dir, "state", "enroll", kept, "*")); len(found) > 0 {
					t.Errorf("looking left %v", found)
				}
			}
		})
	}
}

// reads reports whether a request only reads, or opens or closes a session.
func reads(r exchange.Record) bool {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return true
	case r.System == "bmc":
		return strings.HasPrefix(r.Path, "/redfish/v1/SessionService/Sessions")
	case r.System == "dhcp":
		return !r.Mutating // commands and SFTP know which of theirs write
	}
	return false
}

// The code of those commands is handed nothing that could write: it knows no
// interpreter, no lock and no journal, of the providers only their rules, and
// calls no runner.
func TestLookingIsHandedNothingThatWrites(t *testing.T) {
	files := []string{"plan.go", "select.go", "show.go", "diff.go", "drift.go", "graph.go", "explain.go", "explain_address.go"}
	forbidden := []string{"Run", "LockDevices", "OpenJournal", "Stage", "Publish", "CarryOut", "carryOut", "execute"}
	known := map[string][]string{"netbox": {"Filter", "Kinds", "SameReading"}, "dhcp": {"Kinds", "StaleResources"}, "bmc": {"Kinds"}, "ironic": {"Kinds"}}
	for _, name := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		provider := map[string]bool{}
		for _, imp := range file.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			switch last := filepath.Base(path); {
			case path == module+"/plan/apply", path == "os/exec", path == "net/http", path == "net", strings.HasSuffix(path, "/secrets"):
				t.Errorf("%s imports %s", name, path)
			case strings.HasPrefix(path, module+"/providers/"):
				provider[last] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && provider[x.Name] && !slices.Contains(known[x.Name], sel.Sel.Name) {
				t.Errorf("%s uses %s.%s", set.Position(sel.Pos()), x.Name, sel.Sel.Name)
			}
			if slices.Contains(forbidden, sel.Sel.Name) {
				t.Errorf("%s: %s", set.Position(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}
