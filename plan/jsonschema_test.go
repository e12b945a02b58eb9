package plan

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// generator makes the JSON Schema of what the codec writes.
type generator struct {
	defs map[string]any
	docs map[string]string // TYPE.FIELD → its comment
}

type schemaNode = map[string]any

func (g *generator) of(t reflect.Type) schemaNode {
	switch t {
	case reflect.TypeFor[time.Time]():
		return schemaNode{"type": "string", "format": "date-time"}
	case reflect.TypeFor[Address]():
		return schemaNode{"type": "string", "pattern": `^[^/]+/([^/]+/)?[^/.]+\.[^/]+`, "description": "SITE/DEVICE/SYSTEM.KIND[KEY], or SITE/SYSTEM.KIND of what devices share"}
	case reflect.TypeFor[Duration]():
		return schemaNode{"type": "string", "pattern": `^[0-9].*[a-zµ]$`, "description": "a duration, for example 5m0s"}
	case reflect.TypeFor[json.RawMessage]():
		return schemaNode{}
	}
	if list, ok := closedLists()[t.Name()]; ok && t.Kind() == reflect.String {
		return schemaNode{"enum": list}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Slice:
		return schemaNode{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		out := schemaNode{"type": "object", "additionalProperties": g.of(t.Elem())}
		if key := g.of(t.Key()); key["enum"] != nil {
			out["propertyNames"] = key
		}
		return out
	case reflect.Struct:
		name := strings.TrimSuffix(t.Name(), "JSON")
		name = strings.ToUpper(name[:1]) + name[1:]
		if _, done := g.defs[name]; !done {
			g.defs[name] = nil
			g.defs[name] = g.object(t)
		}
		return schemaNode{"$ref": "#/$defs/" + name}
	case reflect.String:
		return schemaNode{"type": "string"}
	case reflect.Bool:
		return schemaNode{"type": "boolean"}
	default:
		return schemaNode{"type": "integer"}
	}
}

func (g *generator) object(t reflect.Type) schemaNode {
	properties, required := schemaNode{}, []string{}
	g.members(t, properties, &required)
	return schemaNode{"type": "object", "properties": properties, "required": required}
}

// members adds a struct's fields, and those of what it embeds where it has none of
// the name, as encoding/json does.
func (g *generator) members(t reflect.Type, properties schemaNode, required *[]string) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			embedded = append(embedded, inner)
			continue
		case name == "-" || !f.IsExported() || properties[name] != nil:
			continue
		}
		node := g.of(f.Type)
		if t == reflect.TypeFor[stepAlias]() && name == "phase" {
			node = schemaNode{"enum": closedLists()["Phase"]}
		}
		if doc := g.docs[strings.TrimSuffix(t.Name(), "Alias")+"."+f.Name]; doc != "" {
			if rest, ok := strings.CutPrefix(doc, f.Name+" "); ok {
				doc = name + " " + rest
			}
			node["description"] = doc
		}
		properties[name] = node
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
	for _, inner := range embedded {
		g.members(inner, properties, required)
	}
}

// comments reads what the source says about fields. Types of the codec that stand
// for one of the model are found under the model's name too.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		commentsOf(file, out)
	}
	return out
}

func commentsOf(file *ast.File, out map[string]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		body, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range body.Fields.List {
			text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
			for _, name := range f.Names {
				for _, typ := range []string{spec.Name.Name, strings.ToLower(spec.Name.Name[:1]) + spec.Name.Name[1:]} {
					out[typ+"."+name.Name] = text
				}
			}
		}
		return true
	})
}

func generated(t *testing.T) []byte {
	t.Helper()
	g := &generator{defs: map[string]any{}, docs: comments(t)}
	root := g.object(reflect.TypeFor[planForm]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "urn:enroll:plan:1"
	root["title"] = "Plan file of enroll, format 1.x"
	root["properties"].(schemaNode)["format_version"] = schemaNode{"type": "string", "pattern": `^1\.[0-9]+$`}
	root["$defs"] = g.defs
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The published schema is what the types say.
func TestGeneratedJSONSchema(t *testing.T) {
	want := generated(t)
	if *update {
		if err := os.WriteFile("plan.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(want), string(JSONSchema())); d != "" {
		t.Errorf("plan.schema.json is not what the types say; run make docs (-want +have):\n%s", d)
	}
}
