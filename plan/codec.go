package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Encode writes the plan file: canonical JSON with sorted members, two spaces
// of indent and a final newline. Equal plans give equal bytes.
func Encode(p *Plan) ([]byte, error) {
	m, err := members(p)
	if err != nil {
		return nil, err
	}
	if m["seal"], err = seal(m); err != nil {
		return nil, err
	}
	return canonical(m, "  ")
}

// seal hashes all members but the seal itself.
func seal(m map[string]any) (string, error) {
	return hashWithout(m, "seal")
}

// hashWithout hashes the canonical form of all members but some.
func hashWithout(m map[string]any, left ...string) (string, error) {
	rest := maps.Clone(m)
	for _, name := range left {
		delete(rest, name)
	}
	b, err := canonical(rest, "")
	return hashOf(b), err
}

// ContentHash is the hash that people approve: SHA-256 over the canonical form
// of everything but the identity of this one plan (id, times, site folder) and
// its statistics.
func ContentHash(p *Plan) string {
	m, err := members(p)
	if err != nil {
		return "" // unreachable: every part of a plan encodes; Encode reports it
	}
	hash, err := contentHash(m)
	if err != nil {
		return ""
	}
	return hash
}

func contentHash(m map[string]any) (string, error) {
	return hashWithout(m, "content_hash", "plan_id", "created", "expires", "site_dir", "statistics", "seal")
}

func members(p *Plan) (map[string]any, error) {
	whole := *p
	whole.Inputs.Files, whole.Inputs.Objects = list(p.Inputs.Files), list(p.Inputs.Objects)
	whole.Scope.Devices, whole.Devices = list(p.Scope.Devices), list(p.Devices)
	whole.Steps, whole.Checks, whole.Observed, whole.Diagnostics = list(p.Steps), list(p.Checks), list(p.Observed), list(p.Diagnostics)
	raw, err := json.Marshal(&whole)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m map[string]any
	return m, dec.Decode(&m)
}

// list writes an empty list as [], which readers need not tell from null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// canonical relies on encoding/json writing maps with sorted keys.
func canonical(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decode reads a plan file and proves it whole: known format, hash unchanged,
// ids unique, needs complete and without a cycle. Every failure is a
// PLAN_FILE_INVALID fault.
func Decode(raw []byte) (*Plan, error) {
	var head struct {
		FormatVersion string `json:"format_version"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, invalid("the file is no whole JSON document").Because(err)
	}
	if major, _, _ := strings.Cut(head.FormatVersion, "."); major != "1" {
		return nil, invalid("the file has format version %q, this program reads 1.x", head.FormatVersion)
	}
	p := &Plan{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, invalid("a member of the file has the wrong form").Because(err)
	}
	m, err := members(p)
	if err != nil {
		return nil, invalid("the file cannot be read back").Because(err)
	}
	if got, err := contentHash(m); err != nil || got != p.ContentHash {
		return nil, invalid("the content hash is %s but the file says %s: it was edited or damaged", got, p.ContentHash)
	}
	if got, err := seal(m); err != nil || got != p.Seal {
		return nil, invalid("the seal does not fit: the file was edited or damaged outside of what the content hash covers")
	}
	if !planID.MatchString(p.PlanID) {
		return nil, invalid("the plan id %q is none", p.PlanID)
	}
	if slices.Contains(p.Steps, nil) || slices.ContainsFunc(p.Diagnostics, func(d Diagnostic) bool { return d.Fault == nil }) {
		return nil, invalid("a step or a diagnostic of the file is empty")
	}
	if err := checkNeeds(p.Steps); err != nil {
		return nil, invalid("the steps do not fit together").Because(err)
	}
	return p, nil
}

// planID is the form of plan ids; they become names of files.
var planID = regexp.MustCompile(`^[0-9a-f]{12}$`)

func invalid(format string, args ...any) *Fault { return NewFault(CodePlanInvalid, format, args...) }

type stepAlias Step

type stepJSON struct {
	*stepAlias
	Kind   string          `json:"kind"` // of the address, for readers that filter
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// AfterUnknown lists the paths of after that become known during apply.
	AfterUnknown []string `json:"after_unknown"`
}

// MarshalJSON writes unknown parts as null and lists their paths.
func (s *Step) MarshalJSON() ([]byte, error) {
	before := s.Before
	if s.BeforeUnknown {
		before = Null
	}
	whole := *s
	whole.Because, whole.Effects, whole.Needs = list(s.Because), list(s.Effects), list(s.Needs)
	return json.Marshal(stepJSON{
		stepAlias: (*stepAlias)(&whole), Kind: s.Address.KindName(), Before: knownJSON(before), After: knownJSON(s.After), AfterUnknown: list(UnknownPaths(s.After)),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Step) UnmarshalJSON(b []byte) error {
	in := stepJSON{stepAlias: (*stepAlias)(s)}
	err := json.Unmarshal(b, &in)
	if err != nil {
		return err
	}
	if s.Before, err = valueJSON(in.Before, nil); err != nil {
		return fmt.Errorf("step %s, before: %w", s.ID, err)
	}
	if s.BeforeUnknown {
		s.Before = Unknown
	}
	if s.After, err = valueJSON(in.After, in.AfterUnknown); err != nil {
		return fmt.Errorf("step %s, after: %w", s.ID, err)
	}
	return nil
}

type observationJSON struct {
	Address Address         `json:"address"`
	Rule    string          `json:"rule"`
	Text    string          `json:"text"`
	Want    json.RawMessage `json:"want"`
	Live    json.RawMessage `json:"live"`
}

// MarshalJSON writes both values as JSON.
func (o Observation) MarshalJSON() ([]byte, error) {
	return json.Marshal(observationJSON{o.Address, o.Rule, o.Text, knownJSON(o.Want), knownJSON(o.Live)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Observation) UnmarshalJSON(b []byte) error {
	var in observationJSON
	err := json.Unmarshal(b, &in)
	if err != nil {
		return err
	}
	*o = Observation{Address: in.Address, Rule: in.Rule, Text: in.Text}
	if o.Want, err = valueJSON(in.Want, nil); err != nil {
		return err
	}
	o.Live, err = valueJSON(in.Live, nil)
	return err
}

// UnknownPaths lists the unknown parts of a value, sorted; "" is the whole.
func UnknownPaths(v Value) []string {
	paths := []string{}
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

// knownJSON is ToJSON with null for unknown parts.
func knownJSON(v Value) json.RawMessage {
	if v == (Value{}) {
		return json.RawMessage("null") // a zero Value: nothing was set
	}
	if len(UnknownPaths(v)) == 0 {
		return ToJSON(v)
	}
	known, err := cty.Transform(v, func(_ cty.Path, el cty.Value) (cty.Value, error) {
		if !el.IsKnown() {
			return Null, nil
		}
		return el, nil
	})
	if err != nil {
		return json.RawMessage("null")
	}
	return ToJSON(known)
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
