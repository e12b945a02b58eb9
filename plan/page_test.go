package plan

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write generated pages and golden files anew")

func TestGeneratedFaultsPage(t *testing.T) {
	if *update {
		if err := os.WriteFile("FAULTS.md", []byte(FaultsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(FaultsPage(), string(have)); d != "" {
		t.Errorf("FAULTS.md is not what codes.go says; run make docs (-want +have):\n%s", d)
	}
}

// Every constant of type Code has a row, and no row is empty.
func TestCodesComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Code" {
			return true
		}
		code := Code(strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
		info, ok := codeTable[code]
		if !ok || info.Text == "" || info.Hint == "" || info.Owner == "" || info.Class == "" {
			t.Errorf("%s has no complete row", code)
		}
		n++
		return true
	})
	if n != len(codeTable) {
		t.Errorf("%d constants, %d rows", n, len(codeTable))
	}
}
