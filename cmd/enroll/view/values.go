package view

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

func itoa(n int) string { return strconv.Itoa(n) }

// line is one line of a step's detail: a changed leaf, or a line of a text's
// difference.
type line struct {
	mark string // "+", "-", " " or "@" for text differences, "" for leaves
	path string
	text string
}

// knownAfterApply stands for what a plan cannot know.
const knownAfterApply = "(known after apply)"

// diffLines is how many lines of a text's difference are shown before the rest is
// counted.
const diffLines = 40

// details lists what a step changes, one line per changed leaf. A text of several
// lines, and a list that is too long for a line, is shown as a difference of lines.
// limit is how many characters a line has for values, 0 shows all.
func details(before, after leaves, beforeUnknown bool, limit int) []line {
	var out []line
	for _, path := range differing(before, after) {
		b, hasBefore := before[path]
		a, hasAfter := after[path]
		switch {
		case a.lines != nil && (b.lines != nil || !hasBefore) || b.lines != nil && !hasAfter:
			out = append(out, line{path: path, text: "text"})
			out = append(out, textDiff(b.lines, a.lines, limit)...)
		case limit > 0 && b.items != nil && a.items != nil && len(b.json)+len(a.json) > limit:
			out = append(out, line{path: path, text: plural(len(b.items), "item") + " → " + itoa(len(a.items))})
			out = append(out, textDiff(b.items, a.items, limit)...)
		case beforeUnknown:
			out = append(out, line{path: path, text: "? → " + cut(a.json, limit)})
		case !hasBefore:
			out = append(out, line{path: path, text: cut(a.json, limit)})
		case !hasAfter:
			out = append(out, line{path: path, text: cut(b.json, limit) + " → (nothing)"})
		default:
			was, is := cutPair(b.json, a.json, limit)
			out = append(out, line{path: path, text: was + " → " + is})
		}
	}
	return out
}

// leavesOf are the leaves of a step's two values.
func leavesOf(s *plan.Step) (before, after leaves) {
	before, after = leaves{}, leaves{}
	if !s.BeforeUnknown {
		before.value("", s.Before)
	}
	after.value("", s.After)
	return before, after
}

// differing lists the paths at which two values differ.
func differing(before, after leaves) []string {
	return slices.DeleteFunc(keys(before, after), func(path string) bool {
		b, hasBefore := before[path]
		a, hasAfter := after[path]
		switch {
		case hasBefore && hasAfter:
			return b.json == a.json || a.order != nil && sameOrder(b.order, a.order)
		case hasAfter: // the items of a list say what there is
			return a.order != nil || a.json == "[]" && before.has(path+"[")
		default:
			return b.order != nil || b.json == "null" || b.json == "[]" && after.has(path+"[")
		}
	})
}

// leaf is what stands at a path of a value.
type leaf struct {
	json  string
	lines []string // of a text of several lines, with their ends
	items []string // of a list of plain values, as lines
	order []string // of a list whose items are leaves of their own
}

// leaves are the leaves of a value by path. The items of a list are told apart by
// what identifies them, where they have that; else the list is one leaf, because
// its order counts.
type leaves map[string]leaf

func (l leaves) value(at string, v plan.Value) {
	switch {
	case v == (plan.Value{}) || v.IsKnown() && v.IsNull() && at == "":
		// nothing there
	case !v.IsKnown():
		l[at] = leaf{json: knownAfterApply}
	case v.IsNull():
		l[at] = leaf{json: "null"}
	case v.Type().IsObjectType() || v.Type().IsMapType():
		for k, el := range v.AsValueMap() {
			l.value(join(at, k), el)
		}
	case v.Type().IsTupleType() || v.Type().IsListType():
		l.list(at, v)
	default:
		one := leaf{json: string(plan.ToJSON(v))}
		if text, ok := asText(v); ok && strings.Contains(text, "\n") {
			one.lines = textLines(text)
		}
		l[at] = one
	}
}

func (l leaves) list(at string, v plan.Value) {
	items := v.AsValueSlice()
	if names := identities(items); names != nil {
		for i, el := range items {
			l.value(at+"["+names[i]+"]", el)
		}
		if len(names) > 1 {
			l[join(at, "(order)")] = leaf{json: strings.Join(names, ", "), order: names}
		}
		return
	}
	whole := leaf{json: string(plan.ToJSON(v))}
	for _, el := range items {
		if el.IsKnown() && !el.IsNull() && !el.Type().IsPrimitiveType() {
			l[at] = whole
			return
		}
		whole.items = append(whole.items, string(plan.ToJSON(el))+"\n")
	}
	l[at] = whole
}

func (l leaves) has(prefix string) bool {
	for path := range l {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// sameOrder reports whether the items that two lists share come in one order.
func sameOrder(a, b []string) bool {
	shared := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !slices.Contains(other, name) })
	}
	return slices.Equal(shared(a, b), shared(b, a))
}

// identifying are the members by which people know the items of a list: a NIC by
// its MAC, a disk by its serial number, a setting or a user by its name. The first
// that all items have, each with another value, counts.
var identifying = []string{ //nolint:gochecknoglobals // a constant table
	"mac", "mac_address", "MACAddress", "PermanentMACAddress", "serial", "serial_number", "SerialNumber", "wwn",
	"AttributeName", "name", "Name", "UserName", "BootOptionReference", "Id", "id", "address",
}

// identities names the items of a list, nil when they cannot be told apart.
func identities(items []plan.Value) []string {
	for _, member := range identifying {
		var names []string
		seen := map[string]bool{}
		for _, el := range items {
			name := plan.Text(el, member)
			if name == "" || seen[name] {
				break
			}
			seen[name] = true
			names = append(names, name)
		}
		if len(names) == len(items) && len(items) > 0 {
			return names
		}
	}
	return nil
}

func asText(v plan.Value) (string, bool) {
	if !v.IsKnown() || v.IsNull() || !v.Type().IsPrimitiveType() || v.Type().FriendlyName() != "string" {
		return "", false
	}
	return v.AsString(), true
}

// textLines cuts a text into lines, each with its end; nil when there is none.
func textLines(text string) []string {
	if text == "" {
		return nil
	}
	return slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(l string) bool { return l == "" })
}

// isText finds JSON texts of several lines.
func isText(raw json.RawMessage) bool { return strings.Contains(unquote(raw), "\n") }

// unquote gives the text of a JSON text, and other JSON as it stands.
func unquote(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

func join(at, k string) string {
	if at == "" {
		return k
	}
	return at + "." + k
}

func keys(maps ...leaves) []string {
	seen := map[string]bool{}
	var out []string
	for _, m := range maps {
		for k := range m {
			if !seen[k] {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	sortNatural(out)
	return out
}

// textDiff is the unified difference of two texts, or all of the one that there
// is.
func textDiff(before, after []string, limit int) []line {
	var out []line
	if before == nil || after == nil {
		mark, all := "+", after
		if after == nil {
			mark, all = "-", before
		}
		for _, l := range all {
			out = append(out, line{mark: mark, text: chomp(l)})
		}
	} else {
		diff := Unified("", "", strings.Join(before, ""), strings.Join(after, ""))
		for _, l := range strings.SplitAfter(strings.TrimSuffix(diff, "\n"), "\n")[2:] { // behind the names
			if place, ok := strings.CutPrefix(l, "@@ "); ok {
				out = append(out, line{mark: "@@", text: chomp(place)})
				continue
			}
			out = append(out, line{mark: l[:1], text: chomp(l[1:])})
		}
		if len(before) <= contextLines && len(after) <= contextLines && len(out) > 0 {
			out = out[1:] // all of both is there: no need to say where
		}
	}
	if limit > 0 && len(out) > diffLines+1 {
		left := len(out) - diffLines
		out = append(out[:diffLines], line{mark: "…", text: plural(left, "more line") + "; --full shows all"})
	}
	return out
}

func chomp(l string) string { return Clean(strings.TrimSuffix(l, "\n")) }
