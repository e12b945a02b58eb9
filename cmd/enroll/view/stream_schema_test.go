package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// filled sets every exported field of a value, and of what it holds, to something
// that is not its zero.
func filled(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)))
		return
	case time.Duration:
		v.Set(reflect.ValueOf(90 * time.Second))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{}`)))
		return
	case plan.Code:
		v.Set(reflect.ValueOf(plan.CodeNotApplied))
		return
	case plan.Value:
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others do not occur
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(key)
		filled(value)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(v.Field(i))
			}
		}
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[error]() {
			v.Set(reflect.ValueOf(errors.New("x")))
		}
	}
}

// published is a schema that can be walked.
type published struct {
	t    *testing.T
	root map[string]any
	seen map[string]bool // members that a line has had, by path
}

// of resolves references, also those into the schema of plan files.
func (p published) of(node map[string]any) map[string]any {
	ref, ok := node["$ref"].(string)
	if !ok {
		return node
	}
	root := p.root
	inPlan, local := strings.CutPrefix(ref, planSchema)
	if local {
		root = p.root["$defs"].(map[string]any)["plan"].(map[string]any)
	} else {
		inPlan = ref
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(inPlan, "#"), "/"), "/") {
		if name != "" {
			root = root[name].(map[string]any)
		}
	}
	return p.of(root)
}

// walk wants every member of a value in the schema.
func (p published) walk(at string, node map[string]any, value any) {
	node = p.of(node)
	switch v := value.(type) {
	case []any:
		items, _ := node["items"].(map[string]any)
		for _, inner := range v {
			p.walk(at+"[]", items, inner)
		}
	case map[string]any:
		properties, ok := node["properties"].(map[string]any)
		if !ok {
			return // members of any name
		}
		for name, inner := range v {
			next, ok := properties[name].(map[string]any)
			if !ok {
				p.t.Errorf("the stream has %s.%s, the schema has not", at, name)
				continue
			}
			p.seen[at+"."+name] = true
			p.walk(at+"."+name, next, inner)
		}
	}
}

// members lists every member that the schema has below a node.
func (p published) members(at string, node map[string]any, visit func(path string, of map[string]any, name string)) {
	node = p.of(node)
	if items, ok := node["items"].(map[string]any); ok {
		p.members(at+"[]", items, visit)
	}
	properties, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		visit(at+"."+name, node, name)
		if name != "plan" { // plan files have a test of their own
			p.members(at+"."+name, properties[name].(map[string]any), visit)
		}
	}
}

// The published schema and the stream have the same members, in both directions, and
// those that the schema calls required are there also when nothing is set.
func TestTheSchemaHasWhatTheStreamHas(t *testing.T) {
	for _, k := range streamKinds() {
		if kindDocs()[k] == "" {
			t.Errorf("the schema does not say what a line of the kind %q tells", k)
		}
	}
	raw, err := StreamSchema("test")
	if err != nil {
		t.Fatal(err)
	}
	p := published{t: t, seen: map[string]bool{}}
	if err := json.Unmarshal(raw, &p.root); err != nil {
		t.Fatal(err)
	}
	line := func(l streamLine) map[string]any {
		t.Helper()
		var out bytes.Buffer
		s := NewStream(&out, func() time.Time { return time.Time{} })
		s.write(l)
		var v map[string]any
		if err := json.Unmarshal(out.Bytes(), &v); err != nil || s.err != nil {
			t.Fatal(err, s.err)
		}
		return v
	}
	var full streamLine
	filled(reflect.ValueOf(&full).Elem())
	p.walk("line", p.root, line(full))
	p.members("line", p.root, func(path string, _ map[string]any, _ string) {
		if !p.seen[path] {
			t.Errorf("the schema has %s, no line of the stream has", path)
		}
	})

	// A report of nothing but one of each.
	bare := streamLine{Kind: StreamReport, Report: &apply.Report{
		Steps: []apply.StepReport{{Step: &plan.Step{}}}, Devices: []apply.DeviceReport{{}}, Obligations: []apply.ObligationReport{{}},
	}}
	p.seen = map[string]bool{}
	p.walk("line", p.root, line(bare))
	p.members("line", p.root, func(path string, of map[string]any, name string) {
		parent := path[:strings.LastIndex(path, ".")]
		if !p.seen[strings.TrimSuffix(parent, "[]")] && parent != "line" || strings.Contains(path, "fault.") || strings.Contains(path, "checks[]") {
			return
		}
		if parent == "line" && path != "line.seq" && path != "line.time" && path != "line.elapsed" && path != "line.kind" {
			return // its kind's rule says so
		}
		required, _ := of["required"].([]any)
		if must := slices.Contains(required, any(name)); must != p.seen[path] {
			t.Errorf("%s: the schema calls it required: %v; it is there when nothing is set: %v", path, must, p.seen[path])
		}
	})
}
