package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/zclconf/go-cty/cty"
)

// UnknownPaths lists the unknown parts of a value, sorted; "" is the whole.
func UnknownPaths(v Value) []string {
	paths := []string{}
	if v.IsWhollyKnown() {
		return paths
	}
	unknownInto(&paths, "", v)
	sort.Strings(paths)
	return paths
}

func unknownInto(paths *[]string, at string, v Value) {
	switch {
	case !v.IsKnown():
		*paths = append(*paths, at)
	case isObject(v):
		for _, k := range attributeNames(v) {
			unknownInto(paths, joinPath(at, k), attribute(v, k))
		}
	case isList(v):
		for i, el := range v.AsValueSlice() {
			unknownInto(paths, fmt.Sprintf("%s[%d]", at, i), el)
		}
	}
}

// knownJSON is ToJSON with null for unknown parts, and the paths of these.
func knownJSON(v Value) (json.RawMessage, []string) {
	if v == (Value{}) {
		return json.RawMessage("null"), []string{} // a zero Value: nothing was set
	}
	var b bytes.Buffer
	if writeJSON(&b, v, "null") {
		return b.Bytes(), []string{}
	}
	return b.Bytes(), UnknownPaths(v)
}

// valueJSON reads a value; the parts at the given paths become unknown.
func valueJSON(raw json.RawMessage, unknown []string) (Value, error) {
	if len(raw) == 0 {
		return Null, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return Null, err
	}
	set := map[string]bool{}
	for _, p := range unknown {
		set[p] = true
	}
	return fromAny(v, "", set)
}

// FromAny turns plain data (maps, slices, strings, json.Number, float64, int,
// bool, nil) into a value.
func FromAny(v any) (Value, error) { return fromAny(v, "", nil) }

func fromAny(v any, at string, unknown map[string]bool) (Value, error) {
	if unknown[at] {
		return Unknown, nil
	}
	switch x := v.(type) {
	case nil:
		return Null, nil
	case string:
		return Str(x), nil
	case bool:
		return Bool(x), nil
	case int:
		return Int(x), nil
	case float64:
		return cty.NumberFloatVal(x), nil
	case json.Number:
		return cty.ParseNumberVal(x.String())
	case []any:
		list := make([]cty.Value, len(x))
		for i, el := range x {
			var err error
			if list[i], err = fromAny(el, fmt.Sprintf("%s[%d]", at, i), unknown); err != nil {
				return Null, err
			}
		}
		return cty.TupleVal(list), nil
	case map[string]any:
		attrs := make(map[string]cty.Value, len(x))
		for k, el := range x {
			var err error
			if attrs[k], err = fromAny(el, joinPath(at, k), unknown); err != nil {
				return Null, err
			}
		}
		return cty.ObjectVal(attrs), nil
	}
	return Null, fmt.Errorf("a value of type %T cannot be part of a plan", v)
}
