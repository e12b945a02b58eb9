package schema

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Topic is one thing of the language that can be explained.
type Topic struct {
	Name    string // as it is asked for: "dhcp.host", "within", "ironic_settings.bond.mode"
	Kind    string // attribute, block, function, reference, context key
	Doc     string
	Facts   []Fact // in order
	Example string // as it is written; empty: none
	// Below are the names of what stands inside, for blocks and objects.
	Below []string
	// Later is part of the language and refused by this version.
	Later bool
}

// Fact is one line about a topic.
type Fact struct{ Name, Text string }

// Topics lists everything that Explain knows, sorted by name.
func Topics() []Topic {
	var out []Topic
	blockTopics(language(), "", &out)
	for _, f := range functionTable() {
		out = append(out, functionTopic(f, "everywhere"))
	}
	for _, f := range policyFunctionTable() {
		out = append(out, functionTopic(f, "in policies"))
	}
	device := deviceDocs()
	for name, t := range deviceType() {
		out = append(out, Topic{Name: "device." + name, Kind: "reference", Doc: sentence(device[name]), Facts: []Fact{
			{"type", t.FriendlyName()}, {"where", "in " + strings.Join(perDeviceNames(), ", ") + " and in policies"}, {"missing", "null where NetBox has nothing"},
		}})
	}
	step := stepDocs()
	for name, t := range stepType() {
		out = append(out, Topic{Name: "step." + name, Kind: "reference", Doc: sentence(step[name]), Facts: []Fact{{"type", t.FriendlyName()}, {"where", "in policies"}}})
	}
	for _, d := range contextDocuments() {
		contextTopics(d, "", &out)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Explain gives the topics of a name: an attribute or block by its path below the
// site block, with or without "site." before it and the labels of blocks in it;
// a function with or without brackets; a reference; a key of a config context. A
// name may mean two things. Without any, suggestions are the names that were
// probably meant: those whose last part it is, or a similar one.
func Explain(name string) (topics []Topic, suggestions []string) {
	wanted := canonicalName(name)
	var names []string
	for _, t := range Topics() {
		if t.Name == wanted {
			topics = append(topics, t)
		}
		if wanted != "" && strings.HasSuffix(t.Name, "."+wanted) && !slices.Contains(suggestions, t.Name) {
			suggestions = append(suggestions, t.Name)
		}
		names = append(names, t.Name)
	}
	if topics != nil {
		return topics, nil
	}
	if meant := plan.Suggest(wanted, names); len(suggestions) == 0 && meant != "" {
		suggestions = []string{meant}
	}
	return nil, suggestions
}

// canonicalName takes out what may be left out: "site.", brackets, labels.
func canonicalName(name string) string {
	name = strings.TrimSuffix(name, "()")
	if name == "site" {
		return name
	}
	name = strings.TrimPrefix(name, "site.")
	parts := strings.Split(name, ".")
	at := language()
	for _, b := range at.named("site") {
		at = b
	}
	if len(parts) > 1 && len(language().named(parts[0])) > 0 {
		at = language()
	}
	kept := []string{}
	for i := 0; i < len(parts); i++ {
		kept = append(kept, parts[i])
		rows := at.named(parts[i])
		if len(rows) == 0 {
			return strings.Join(append(kept, parts[i+1:]...), ".")
		}
		at = rows[0]
		if i+1 == len(parts) || at.label == nil {
			continue
		}
		variant := i+2 < len(parts) && slices.ContainsFunc(rows, func(row *block) bool { return row.variant == parts[i+1] })
		if row := rowWith(rows, parts[i+1]); row != nil && !variant {
			at = row
			continue
		}
		if i+2 == len(parts) && plan.Suggest(parts[i+1], append(at.attributeNames(), at.blockNames()...)) != "" {
			continue // hardly a label
		}
		for _, row := range rows {
			if row.variant == parts[i+1] {
				at = row
			}
		}
		i++ // a label
	}
	return strings.Join(kept, ".")
}

// rowWith finds the row of a block that has an attribute or a block of a name.
func rowWith(rows []*block, name string) *block {
	for _, row := range rows {
		if row.attribute(name) != nil || len(row.named(name)) > 0 {
			return row
		}
	}
	return nil
}

// blockTopics adds a block, its attributes and what is below.
func blockTopics(b *block, path string, out *[]Topic) {
	for i := range b.attrs {
		addTopic(out, attributeTopic(b, &b.attrs[i], path))
	}
	for _, child := range b.blocks {
		below := joinPath(path, child.name)
		if child.name == "site" {
			below = ""
		}
		t := Topic{Name: joinPath(path, child.name), Kind: "block", Doc: child.doc, Later: child.later}
		if child.label != nil {
			t.Facts = append(t.Facts, Fact{"label", child.label.doc})
		}
		t.Facts = append(t.Facts, Fact{"how often", howOften(child)})
		if child.since != "" {
			t.Facts = append(t.Facts, Fact{"since", child.since})
		}
		if !child.later {
			t.Example = blockExample(child)
			t.Below = append(child.attributeNames(), child.blockNames()...)
		}
		addTopic(out, t)
		if !child.later {
			blockTopics(child, below, out)
		}
	}
}

// addTopic leaves out what stands there already: the rows of a block whose label
// chooses its attributes share some of them.
func addTopic(out *[]Topic, t Topic) {
	for _, before := range *out {
		if before.Name == t.Name && before.Kind == t.Kind && (before.Doc == t.Doc || t.Later) {
			return
		}
	}
	*out = append(*out, t)
}

func howOften(b *block) string {
	switch {
	case b.required && b.many:
		return "once or more, with different labels"
	case b.required:
		return "once"
	case b.many && b.label != nil:
		return "any number, with different labels"
	case b.many:
		return "any number"
	}
	return "once or not at all"
}

func attributeTopic(b *block, a *attribute, path string) Topic {
	t := Topic{Name: joinPath(path, a.name), Kind: "attribute", Doc: a.doc, Later: a.later}
	if a.later {
		return t
	}
	t.Example = a.name + " = " + a.example
	typ := string(a.typ)
	if len(a.enum) > 0 {
		typ += ": " + strings.Join(a.enum, ", ")
	}
	t.Facts = append(t.Facts, Fact{"type", typ})
	if a.min != "" || a.max != "" {
		t.Facts = append(t.Facts, Fact{"bounds", a.min + " to " + a.max})
	}
	if a.unit != "" && a.unit != string(a.typ) {
		t.Facts = append(t.Facts, Fact{"unit", a.unit})
	}
	switch {
	case a.required:
		t.Facts = append(t.Facts, Fact{"default", "none: it is required"})
	case a.fallback != "":
		t.Facts = append(t.Facts, Fact{"default", a.fallback})
	default:
		t.Facts = append(t.Facts, Fact{"default", a.fallbackDoc})
	}
	if a.perDevice {
		t.Facts = append(t.Facts, Fact{"per device", "the expression may use device.*"})
	}
	if b.variant != "" {
		t.Facts = append(t.Facts, Fact{"where", fmt.Sprintf("in the block %s %q", b.name, b.variant)})
	}
	return Topic{Name: t.Name, Kind: t.Kind, Doc: t.Doc, Example: t.Example, Facts: append(t.Facts, Fact{"decides", a.effect}, Fact{"since", a.since})}
}

func functionTopic(f languageFunction, where string) Topic {
	return Topic{Name: f.name, Kind: "function", Doc: f.doc, Example: f.example, Facts: []Fact{{"form", f.signature}, {"where", where}}}
}

func contextTopics(k contextKey, path string, out *[]Topic) {
	name := joinPath(path, k.name)
	kind := "context key"
	if path == "" {
		kind = "config context"
	}
	t := Topic{Name: name, Kind: kind, Doc: k.doc, Facts: []Fact{{"type", string(k.typ)}}}
	if len(k.enum) > 0 {
		t.Facts[0].Text += ": " + strings.Join(k.enum, ", ")
	}
	if k.required {
		t.Facts = append(t.Facts, Fact{"default", "none: it is required"})
	}
	t.Facts = append(t.Facts, Fact{"where", "in NetBox's config context"})
	if k.example != "" {
		t.Example = `"` + k.name + `": ` + k.example
	}
	for _, child := range k.keys {
		t.Below = append(t.Below, child.name)
	}
	*out = append(*out, t)
	for _, child := range k.keys {
		contextTopics(child, name, out)
	}
}

// sentence makes a description of the reference page one.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
