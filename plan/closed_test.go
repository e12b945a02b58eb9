package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every constant of a closed list's type stands in the list.
func TestClosedListsAreWhole(t *testing.T) {
	declared := map[string][]string{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			typ, ok := v.Type.(*ast.Ident)
			if !ok {
				return true
			}
			for _, value := range v.Values {
				if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					word, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					declared[typ.Name] = append(declared[typ.Name], word)
				}
			}
			return true
		})
	}
	for typ, list := range closedLists() {
		if typ == "Phase" { // an array, whole by its nature
			continue
		}
		slices.Sort(list)
		slices.Sort(declared[typ])
		if d := cmp.Diff(declared[typ], list); d != "" {
			t.Errorf("%s: -declared +listed:\n%s", typ, d)
		}
	}
}
