package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// jsonForm writes a site file as hcl's JSON form: blocks below their types and
// labels, expressions as templates.
func jsonForm(t *testing.T, name string) map[string]any {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return jsonBody(parsed.Body.(*hclsyntax.Body), src)
}

func jsonBody(body *hclsyntax.Body, src []byte) map[string]any {
	out := map[string]any{}
	for _, a := range body.Attributes {
		out[a.Name] = jsonExpr(a.Expr, src)
	}
	for _, b := range body.Blocks {
		at, key := out, b.Type
		for _, label := range b.Labels {
			inner, ok := at[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[key] = inner
			}
			at, key = inner, label
		}
		one := jsonBody(b.Body, src)
		switch before := at[key].(type) {
		case nil:
			at[key] = one
		case []any:
			at[key] = append(before, one)
		default:
			at[key] = []any{before, one}
		}
	}
	return out
}

func jsonExpr(expr hclsyntax.Expression, src []byte) any {
	text := string(expr.Range().SliceBytes(src))
	switch e := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		switch {
		case e.Val.Type() == cty.Bool:
			return e.Val.True()
		case e.Val.Type() == cty.Number:
			return json.Number(text)
		}
	case *hclsyntax.TemplateExpr:
		return strings.Trim(text, `"`)
	case *hclsyntax.TemplateWrapExpr:
		return strings.Trim(text, `"`)
	case *hclsyntax.TupleConsExpr:
		list := []any{}
		for _, el := range e.Exprs {
			list = append(list, jsonExpr(el, src))
		}
		return list
	case *hclsyntax.ScopeTraversalExpr:
		if len(e.Traversal) == 1 { // a type
			return text
		}
	}
	return "${" + text + "}"
}

// validator knows the part of JSON Schema that the package writes, and fails for
// anything else.
type validator struct {
	t    *testing.T
	defs map[string]any
}

func (v validator) mistakes(s, value any, at string) []string {
	schema, ok := s.(map[string]any)
	if !ok {
		if s == true {
			return nil
		}
		return []string{at + " is not allowed"}
	}
	var out []string
	bad := func(format string, args ...any) { out = append(out, at+" "+fmt.Sprintf(format, args...)) }
	for key, want := range schema {
		switch key {
		case "$schema", "$id", "$defs", "title", "description", "default", "examples":
		case "$ref":
			out = append(out, v.mistakes(v.defs[strings.TrimPrefix(want.(string), "#/$defs/")], value, at)...)
		case "type":
			if !isJSONType(want.(string), value) {
				bad("is no %s: %v", want, value)
			}
		case "anyOf":
			if !slices.ContainsFunc(want.([]any), func(s any) bool { return len(v.mistakes(s, value, at)) == 0 }) {
				bad("fits none of the forms: %v", value)
			}
		case "not":
			if len(v.mistakes(want, value, at)) == 0 {
				bad("is refused: %v", value)
			}
		case "enum":
			if !slices.ContainsFunc(want.([]any), func(el any) bool { return reflect.DeepEqual(el, value) }) {
				bad("is none of %v", want)
			}
		case "pattern":
			if text, ok := value.(string); ok && !regexp.MustCompile(want.(string)).MatchString(text) {
				bad("does not fit %s", want)
			}
		case "minLength":
			if text, ok := value.(string); ok && float64(len(text)) < number(want) {
				bad("is too short")
			}
		case "minimum", "maximum":
			if n, ok := value.(json.Number); ok && (number(n) < number(want)) == (key == "minimum") && number(n) != number(want) {
				bad("is out of bounds")
			}
		case "items", "minItems", "maxItems", "uniqueItems":
			list, ok := value.([]any)
			if !ok {
				continue
			}
			if key == "minItems" && float64(len(list)) < number(want) || key == "maxItems" && float64(len(list)) > number(want) {
				bad("has %d elements", len(list))
			}
			for i, el := range list {
				if key == "items" {
					out = append(out, v.mistakes(want, el, fmt.Sprintf("%s[%d]", at, i))...)
				}
				if key == "uniqueItems" && slices.ContainsFunc(list[:i], func(b any) bool { return reflect.DeepEqual(b, el) }) {
					bad("repeats an element")
				}
			}
		case "properties", "additionalProperties", "required", "minProperties", "maxProperties":
			object, ok := value.(map[string]any)
			if !ok {
				continue
			}
			out = append(out, v.object(schema, key, want, object, at)...)
		default:
			v.t.Fatalf("the schema uses %s", key)
		}
	}
	return out
}

func (v validator) object(schema map[string]any, key string, want any, object map[string]any, at string) []string {
	var out []string
	known, _ := schema["properties"].(map[string]any)
	switch key {
	case "required":
		for _, name := range want.([]any) {
			if _, ok := object[name.(string)]; !ok {
				out = append(out, at+" lacks "+name.(string))
			}
		}
	case "minProperties", "maxProperties":
		if n := float64(len(object)); key[:3] == "min" && n < number(want) || key[:3] == "max" && n > number(want) {
			out = append(out, fmt.Sprintf("%s has %d members", at, len(object)))
		}
	default:
		for name, el := range object {
			switch s, ok := known[name]; {
			case ok && key == "properties":
				out = append(out, v.mistakes(s, el, at+"."+name)...)
			case !ok && key == "additionalProperties":
				out = append(out, v.mistakes(want, el, at+"."+name)...)
			}
		}
	}
	return out
}

func number(v any) float64 {
	n, err := v.(json.Number).Float64()
	if err != nil {
		return math.NaN()
	}
	return n
}

func isJSONType(want string, v any) bool {
	switch v := v.(type) {
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case json.Number:
		return want == "number" || want == "integer" && !strings.Contains(v.String(), ".")
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

func parseJSON(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return v
}

// judge validates a value, given as anything that JSON can say.
func judge(t *testing.T, schema []byte, value any) []string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	s := parseJSON(t, schema).(map[string]any)
	defs, _ := s["$defs"].(map[string]any)
	return validator{t, defs}.mistakes(s, parseJSON(t, raw), "site")
}

// TestJSONSchemaFitsSites validates the shipped sites and the file that sets
// everything, in their JSON form.
func TestJSONSchemaFitsSites(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "sites", "*", "site.hcl"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range append(names, filepath.Join("testdata", "full.hcl")) {
		if mistakes := judge(t, JSONSchema("0.1.0"), jsonForm(t, name)); len(mistakes) > 0 {
			t.Errorf("%s:\n%s", name, strings.Join(mistakes, "\n"))
		}
	}
}

func TestJSONSchemaRefusesMistakes(t *testing.T) {
	name := filepath.Join("..", "sites", "demo", "site.hcl")
	for what, change := range map[string]func(site map[string]any){
		"misspelt attribute": func(s map[string]any) { s["configure_dchp"] = true },
		"misspelt block":     func(s map[string]any) { s["netbx"] = map[string]any{} },
		"literal secret":     func(s map[string]any) { s["netbox"].(map[string]any)["token"] = "abc" },
		"wrong type":         func(s map[string]any) { s["configure_bmc"] = "yes" },
		"wrong enum":         func(s map[string]any) { s["dhcp"].(map[string]any)["service"] = "dnsmask" },
		"out of bounds":      func(s map[string]any) { s["dhcp"].(map[string]any)["port"] = 99999 },
		"no duration":        func(s map[string]any) { s["netbox"].(map[string]any)["timeout"] = "30 seconds" },
		"empty list":         func(s map[string]any) { s["dhcp"].(map[string]any)["subnets"] = []any{} },
		"two backends":       func(s map[string]any) { s["secrets"].(map[string]any)["vault"] = map[string]any{"url": "https://v"} },
		"later":              func(s map[string]any) { s["secrets"] = map[string]any{"no_such": map[string]any{}} },
	} {
		doc := jsonForm(t, name)
		change(doc["site"].(map[string]any)["demo"].(map[string]any))
		if mistakes := judge(t, JSONSchema("0.1.0"), doc); len(mistakes) == 0 {
			t.Errorf("%s is taken", what)
		}
	}
	// What the site file may say beside literals.
	doc := jsonForm(t, name)
	demo := doc["site"].(map[string]any)["demo"].(map[string]any)
	demo["configure_bmc"] = "${var.bmc}"
	demo["//"] = "a comment"
	demo["dhcp"] = []any{demo["dhcp"]}
	demo["netbox"].(map[string]any)["timeout"] = "${local.patience}s"
	if mistakes := judge(t, JSONSchema("0.1.0"), doc); len(mistakes) > 0 {
		t.Error(mistakes)
	}
}

// TestJSONSchemaIsWhole finds every attribute of the table in the schema, with
// its explanation, and the version in the stamp.
func TestJSONSchemaIsWhole(t *testing.T) {
	raw := JSONSchema("1.2.3")
	if !bytes.Equal(raw, JSONSchema("1.2.3")) {
		t.Error("two times the same gives two texts")
	}
	if len(raw) > 300_000 { // editors load it at every start
		t.Errorf("%d bytes", len(raw))
	}
	s := parseJSON(t, raw).(map[string]any)
	if s["$id"] != "urn:enroll:site:1.2.3" {
		t.Error(s["$id"])
	}
	found := map[string]bool{}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for name, p := range properties {
					if doc, _ := p.(map[string]any)["description"].(string); doc != "" || p.(map[string]any)["anyOf"] != nil {
						found[name] = true
					}
				}
			}
			for _, el := range v {
				look(el)
			}
		case []any:
			for _, el := range v {
				look(el)
			}
		}
	}
	look(s)
	language().walkAttributes(func(b *block, a *attribute) {
		if !a.later && !found[a.name] {
			t.Errorf("%s.%s is not in the schema", b.name, a.name)
		}
	})
}

func TestContextSchemas(t *testing.T) {
	if _, ok := ContextSchema("ironic", "0.1.0"); ok {
		t.Error("a document that does not exist has a schema")
	}
	for _, d := range contextDocuments() {
		schema, ok := ContextSchema(d.name, "0.1.0")
		if !ok {
			t.Fatal(d.name)
		}
		if mistakes := judge(t, schema, map[string]any{d.name: json.RawMessage(d.example)}); len(mistakes) > 0 {
			t.Errorf("example of %s: %v", d.name, mistakes)
		}
		for _, k := range d.keys { // every example of a key fits the key
			s, err := json.Marshal(contextSchema(k))
			if err != nil {
				t.Fatal(err)
			}
			if mistakes := judge(t, s, json.RawMessage(k.example)); len(mistakes) > 0 || k.doc == "" {
				t.Errorf("%s.%s: %v", d.name, k.name, mistakes)
			}
		}
	}
	schema, _ := ContextSchema("ironic_settings", "0.1.0")
	for what, c := range map[string]struct {
		doc  string
		good bool
	}{
		"whole":             {`{"driver": "redfish", "interface_type": "x", "raid_interface": "no-raid", "bond": {"mode": "802.3ad", "miimon": 100}, "root_device": {"size": ">= 100"}, "capabilities": "boot_mode:uefi,secure_boot:true"}`, true},
		"missing driver":    {`{"interface_type": "x", "raid_interface": "no-raid"}`, false},
		"misspelt key":      {`{"driver": "redfish", "interface_type": "x", "raid_interface": "no-raid", "resource_clas": "x"}`, false},
		"wrong type":        {`{"driver": 5, "interface_type": "x", "raid_interface": "no-raid"}`, false},
		"placeholder":       {`{"driver": "None", "interface_type": "x", "raid_interface": "no-raid"}`, false},
		"empty text":        {`{"driver": "redfish", "interface_type": "", "raid_interface": "no-raid"}`, false},
		"null as text":      {`{"driver": "redfish", "interface_type": "null", "raid_interface": "no-raid"}`, false},
		"unknown bond mode": {`{"driver": "redfish", "interface_type": "x", "raid_interface": "no-raid", "bond": {"mode": "lacp"}}`, false},
		"bond without mode": {`{"driver": "redfish", "interface_type": "x", "raid_interface": "no-raid", "bond": {"miimon": 5}}`, false},
	} {
		mistakes := judge(t, schema, map[string]any{"ironic_settings": json.RawMessage(c.doc)})
		if (len(mistakes) == 0) != c.good {
			t.Errorf("%s: %v", what, mistakes)
		}
	}
}
