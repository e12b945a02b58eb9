package main

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
)

var update = flag.Bool("update", false, "write the README's example anew")

// The plan in the README is the one that the embedded lab's drifted device
// gets.
func TestGeneratedReadmeExample(t *testing.T) {
	l, dir := startLab(t, 1)
	if code, out, errOut := invoke(t, l, dir, "apply", "--all", "--auto-approve"); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	drifted, _ := lab.FindScenario("drifted")
	if err := drifted.Change(l); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := invoke(t, l, dir, "plan", "gpu-001", "--detailed-exitcode")
	if code != exitChanges {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	out = regexp.MustCompile(`valid until \S+`).ReplaceAllString(out, "valid until 2026-12-01T10:00:00Z")
	out = regexp.MustCompile(`sha256:[0-9a-f]+`).ReplaceAllString(out, "sha256:5f0c…")
	want := "```text\n$ enroll plan gpu-001\n" + out + "```"

	path := filepath.Join("..", "..", "README.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```text\n\\$ enroll plan gpu-001\n.*?```")
	if !block.Match(raw) {
		t.Fatal("the README has no example plan")
	}
	if *update {
		if err := os.WriteFile(path, block.ReplaceAllLiteral(raw, []byte(want)), 0o644); err != nil { //nolint:gosec // a public page
			t.Fatal(err)
		}
		return
	}
	if !strings.Contains(string(raw), want) {
		t.Errorf("the README's example is not what enroll prints (make docs writes it anew):\n%s", want)
	}
}

// The README's table has every exit code of exit.go, and no other.
func TestTheReadmeHasEveryExitCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "exit") {
			codes = append(codes, v.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(raw), "| exit | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for row := range strings.Lines(table) {
		told = append(told, strings.Split(strings.TrimSpace(strings.Split(row, "|")[1]), " / ")...)
	}
	slices.Sort(codes)
	slices.Sort(told)
	if len(codes) < 10 || !slices.Equal(codes, told) {
		t.Errorf("the README tells of %v, the program has %v", told, codes)
	}
}
