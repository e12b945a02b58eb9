package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"
)

// ChangeKind says how something of a plan differs from another plan.
type ChangeKind string

// The kinds of change.
const (
	ChangeAdded   ChangeKind = "added"   // only the later plan has it
	ChangeRemoved ChangeKind = "removed" // only the earlier plan has it
	ChangeAltered ChangeKind = "changed"
)

// Section is the part of a plan that a change is in.
type Section string

// The sections, in the order in which they are listed.
const (
	SectionTool       Section = "tool"
	SectionScope      Section = "scope"
	SectionInput      Section = "input"
	SectionPolicy     Section = "policy"
	SectionDevice     Section = "device"
	SectionStep       Section = "step"
	SectionCheck      Section = "check"
	SectionObserved   Section = "observed"
	SectionDiagnostic Section = "diagnostic"
)

// Change is one thing in which two plans differ.
type Change struct {
	Section Section       `json:"section"`
	Device  string        `json:"device,omitempty"` // empty: of the site, or of the plan
	Name    string        `json:"name"`             // address, device, file, policy, …
	Kind    ChangeKind    `json:"change"`
	Fields  []FieldChange `json:"fields"`

	// Before and After are the steps, for steps.
	Before *Step `json:"-"`
	After  *Step `json:"-"`
}

// FieldChange is one leaf that differs. Lists are leaves. A value that is not
// there is absent.
type FieldChange struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Compared names one of the two plans of a comparison.
type Compared struct {
	PlanID      string    `json:"plan_id"`
	ContentHash string    `json:"content_hash"`
	Created     time.Time `json:"created"`
	Summary     Summary   `json:"summary"`
}

// Comparison is what changed from one plan to another. Ids, times and
// statistics do not count: plans with one content hash are the same.
type Comparison struct {
	Before  Compared `json:"before"`
	After   Compared `json:"after"`
	Same    bool     `json:"same"`
	Changes []Change `json:"changes"`
}

// ComparePlans lists what changed between two plans, the earlier first.
func ComparePlans(before, after *Plan) (Comparison, error) {
	c := Comparison{Before: nameOf(before), After: nameOf(after), Changes: []Change{}}
	a, err := entries(before)
	if err != nil {
		return c, err
	}
	b, err := entries(after)
	if err != nil {
		return c, err
	}
	places := map[place]bool{}
	var all []place
	for _, list := range [][]entry{a, b} {
		for _, e := range list {
			if !places[e.place] {
				places[e.place] = true
				all = append(all, e.place)
			}
		}
	}
	was, is := index(a), index(b)
	for _, p := range all {
		if change, differs := compareEntries(p, was[p], is[p]); differs {
			c.Changes = append(c.Changes, change)
		}
	}
	sort.SliceStable(c.Changes, func(i, j int) bool { return placeLess(c.Changes[i], c.Changes[j]) })
	c.Same = len(c.Changes) == 0
	return c, nil
}

func nameOf(p *Plan) Compared {
	return Compared{PlanID: p.PlanID, ContentHash: p.ContentHash, Created: p.Created, Summary: p.Summary}
}

// place is where something stands in a plan.
type place struct {
	section Section
	device  string
	name    string
	n       int // which one of equal names
}

type entry struct {
	place
	leaves map[string]string // path → JSON
	step   *Step
}

func index(list []entry) map[place]*entry {
	out := map[place]*entry{}
	for i := range list {
		out[list[i].place] = &list[i]
	}
	return out
}

func compareEntries(p place, was, is *entry) (Change, bool) {
	c := Change{Section: p.section, Device: p.device, Name: p.name, Kind: ChangeAltered, Fields: []FieldChange{}}
	var before, after map[string]string
	if was == nil {
		c.Kind = ChangeAdded
	} else {
		before, c.Before = was.leaves, was.step
	}
	if is == nil {
		c.Kind = ChangeRemoved
	} else {
		after, c.After = is.leaves, is.step
	}
	paths := map[string]bool{}
	for path := range before {
		paths[path] = true
	}
	for path := range after {
		paths[path] = true
	}
	for path := range paths {
		b, hadB := before[path]
		a, hasA := after[path]
		if hadB == hasA && a == b {
			continue
		}
		f := FieldChange{Path: path}
		if hadB {
			f.Before = json.RawMessage(b)
		}
		if hasA {
			f.After = json.RawMessage(a)
		}
		c.Fields = append(c.Fields, f)
	}
	sort.Slice(c.Fields, func(i, j int) bool { return NaturalLess(c.Fields[i].Path, c.Fields[j].Path) })
	return c, len(c.Fields) > 0 || c.Kind != ChangeAltered
}

func placeLess(a, b Change) bool {
	order := map[Section]int{}
	for i, s := range []Section{SectionTool, SectionScope, SectionInput, SectionPolicy, SectionDevice, SectionStep, SectionCheck, SectionObserved, SectionDiagnostic} {
		order[s] = i
	}
	if a.Device != b.Device {
		return NaturalLess(a.Device, b.Device)
	}
	if order[a.Section] != order[b.Section] {
		return order[a.Section] < order[b.Section]
	}
	if a.Section == SectionStep {
		return false // in the plans' order
	}
	return NaturalLess(a.Name, b.Name)
}

// collector gathers the entries of a plan.
type collector struct {
	list  []entry
	count map[place]int
	err   error
}

// add takes over one thing as its JSON says it, without some members.
func (c *collector) add(section Section, device, name string, v any, without ...string) {
	p := place{section: section, device: device, name: name}
	c.count[p]++
	p.n = c.count[p]
	leaves, err := leavesOf(v, without)
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%s %s cannot be compared: %w", section, name, err)
	}
	c.list = append(c.list, entry{place: p, leaves: leaves})
}

// entries takes a plan apart into everything that its content hash covers.
func entries(p *Plan) ([]entry, error) {
	c := &collector{count: map[place]int{}}
	c.add(SectionTool, "", p.Tool.Name, map[string]any{"version": p.Tool.Version, "format": p.FormatVersion})
	c.add(SectionScope, "", p.Scope.Site, p.Scope, "site", "devices")
	for _, f := range p.Inputs.Files {
		c.add(SectionInput, "", f.Name, f, "name")
	}
	c.add(SectionInput, "", "site", map[string]any{"sha256": p.Inputs.Site})
	for _, o := range p.Inputs.Objects {
		c.add(SectionInput, "", o.URL, o, "url")
	}
	for _, r := range p.Policies {
		c.add(SectionPolicy, "", r.Policy, r, "policy")
	}
	for _, d := range p.Devices {
		c.add(SectionDevice, d.Name, d.Name, d, "name", "change", "run", "verify", "blocked") // which follow from the steps
		c.add(SectionInput, d.Name, "record", map[string]any{"sha256": p.Inputs.Intents[d.Name]})
		c.add(SectionInput, d.Name, "settings", map[string]any{"sha256": p.Inputs.Settings[d.Name]})
	}
	ids := map[string]string{}
	for _, s := range p.Steps {
		ids[s.ID] = s.Address.String()
	}
	for _, s := range p.Steps {
		named := *s
		named.Needs = nil
		for _, id := range s.Needs {
			named.Needs = append(named.Needs, ids[id])
		}
		sort.Strings(named.Needs)
		c.add(SectionStep, s.Address.Device, s.Address.String(), &named, "id", "address", "kind", "guard") // the guard follows from before
		c.list[len(c.list)-1].step = s
	}
	for _, check := range p.Checks {
		check.After = ids[check.After]
		c.add(SectionCheck, check.Address.Device, check.Address.String(), check, "address")
	}
	for _, o := range p.Observed {
		c.add(SectionObserved, o.Address.Device, o.Address.String()+" "+o.Rule, o, "address", "rule")
	}
	for _, d := range p.Diagnostics {
		c.add(SectionDiagnostic, d.Device, string(d.Fault.Code), map[string]any{"severity": d.Severity, "summary": d.Fault.Summary, "hint": d.Fault.WayOut(), "evidence": d.Fault.Evidence})
	}
	return c.list, c.err
}

// leavesOf flattens the JSON form of something. A member that is null, false or
// an empty list or text is as good as absent; below the first level, where
// values of the systems stand, everything counts.
func leavesOf(v any, without []string) (map[string]string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	for _, name := range without {
		delete(m, name)
	}
	out := map[string]string{}
	for name, el := range m {
		value := name == "before" || name == "after" || name == "want" || name == "live"
		if empty(el) && (el == nil || !value) {
			continue
		}
		if err := jsonLeaves(out, name, el); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func jsonLeaves(out map[string]string, at string, v any) error {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		for name, el := range m {
			if err := jsonLeaves(out, joinPath(at, name), el); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := encode(v)
	out[at] = strings.TrimSuffix(string(text), "\n")
	return err
}
