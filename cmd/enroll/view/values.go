package view

import (
	"strconv"
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/enroll-dev/enroll/plan"
)

func itoa(n int) string { return strconv.Itoa(n) }

// line is one line of a step's detail: a changed leaf, or a line of a text
// file's difference.
type line struct {
	mark string // "+", "-" or " " for text differences, "" for leaves
	path string
	text string
}

// knownAfterApply stands for what a plan cannot know.
const knownAfterApply = "(known after apply)"

// details lists what a step changes, one line per changed leaf; a text of
// several lines is shown as a difference of lines.
func details(s *plan.Step, limit int) []line {
	before, after := flatten(s.Before), flatten(s.After)
	var out []line
	for _, path := range keys(before, after) {
		b, hasBefore := before[path]
		a, hasAfter := after[path]
		switch {
		case hasBefore && hasAfter && b == a:
			continue
		case isText(a) || isText(b):
			out = append(out, line{path: path, text: "text file"})
			out = append(out, lineDiff(unquote(b), unquote(a))...)
		case s.BeforeUnknown:
			out = append(out, line{path: path, text: "? → " + cut(a, limit)})
		case !hasBefore:
			out = append(out, line{path: path, text: cut(a, limit)})
		case !hasAfter:
			out = append(out, line{path: path, text: cut(b, limit) + " → (nothing)"})
		default:
			out = append(out, line{path: path, text: cut(b, limit) + " → " + cut(a, limit)})
		}
	}
	return out
}

// flatten maps the leaves of a value by path to their JSON text. Lists are
// leaves: their order counts as a whole.
func flatten(v plan.Value) map[string]string {
	out := map[string]string{}
	if v == (plan.Value{}) || !v.IsKnown() || v.IsNull() {
		return out
	}
	flattenInto(out, "", v)
	return out
}

func flattenInto(out map[string]string, at string, v plan.Value) {
	if v.IsKnown() && !v.IsNull() && (v.Type().IsObjectType() || v.Type().IsMapType()) {
		for k, el := range v.AsValueMap() {
			path := k
			if at != "" {
				path = at + "." + k
			}
			flattenInto(out, path, el)
		}
		return
	}
	if !v.IsKnown() {
		out[at] = knownAfterApply
		return
	}
	out[at] = string(plan.ToJSON(v))
}

func keys(maps ...map[string]string) []string {
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

// isText finds JSON strings that hold several lines.
func isText(jsonText string) bool {
	return strings.HasPrefix(jsonText, `"`) && strings.Contains(jsonText, `\n`)
}

func unquote(jsonText string) string {
	s, err := strconv.Unquote(jsonText)
	if err != nil {
		return jsonText
	}
	return s
}

// lineDiff compares two texts line by line.
func lineDiff(before, after string) []line {
	d := diffmatchpatch.New()
	a, b, lines := d.DiffLinesToChars(before, after)
	var out []line
	for _, part := range d.DiffCharsToLines(d.DiffMain(a, b, false), lines) {
		mark := " "
		switch part.Type {
		case diffmatchpatch.DiffInsert:
			mark = "+"
		case diffmatchpatch.DiffDelete:
			mark = "-"
		case diffmatchpatch.DiffEqual:
		}
		for _, l := range strings.Split(strings.TrimSuffix(part.Text, "\n"), "\n") {
			if l != "" || part.Text != "" {
				out = append(out, line{mark: mark, text: Clean(l)})
			}
		}
	}
	return out
}
