package view

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Comparison writes what changed between two plans, device by device; "+" is only
// in the later one, "-" only in the earlier one. NetBox objects are counted, and
// what is not changed but new or gone is named, unless everything is asked for.
func Comparison(w io.Writer, c plan.Comparison, o TextOptions) error {
	t := &textWriter{o: o}
	if c.Same {
		t.f("Both plans have the same content, %s\n", c.After.ContentHash)
		return flush(w, t)
	}
	for _, n := range []struct {
		word string
		plan.Compared
	}{{"From", c.Before}, {"to  ", c.After}} {
		t.f("%s plan %s, made %s, content %s\n", n.word, n.PlanID, n.Created.UTC().Format(time.RFC3339), n.ContentHash)
	}
	device, first, objects := "", true, 0
	whole := map[string]bool{} // devices that only one of the plans has
	for _, change := range c.Changes {
		whole[change.Device] = whole[change.Device] || change.Section == plan.SectionDevice && change.Kind != plan.ChangeAltered
	}
	for _, change := range c.Changes {
		if change.Section == plan.SectionInput && whole[change.Device] && !o.Full {
			continue
		}
		if change.Section == plan.SectionInput && strings.Contains(change.Name, "://") && !o.Full {
			objects++
			continue
		}
		if first || change.Device != device {
			t.f("\n%s\n", t.bold(Clean(orSite(change.Device))))
			device, first = change.Device, false
		}
		t.change(change)
	}
	t.f("\n")
	if objects > 0 {
		t.f("%s of NetBox changed; --full lists them\n", plural(objects, "object"))
	}
	t.f("From %s\nto   %s\n", c.Before.Summary, c.After.Summary)
	t.f("%s\n", tally(c))
	return flush(w, t)
}

func flush(w io.Writer, t *textWriter) error {
	_, err := io.WriteString(w, t.b.String())
	return err
}

func orSite(device string) string {
	if device == "" {
		return "the site and the plan"
	}
	return device
}

// tally is the last line of a comparison.
func tally(c plan.Comparison) string {
	steps, others, devices := map[plan.ChangeKind]int{}, 0, map[string]bool{}
	for _, change := range c.Changes {
		if change.Section == plan.SectionStep {
			steps[change.Kind]++
		} else {
			others++
		}
		if change.Device != "" {
			devices[change.Device] = true
		}
	}
	return fmt.Sprintf("Diff: %d devices, %d steps added, %d removed, %d changed; %d other changes.",
		len(devices), steps[plan.ChangeAdded], steps[plan.ChangeRemoved], steps[plan.ChangeAltered], others)
}

func (t *textWriter) change(c plan.Change) {
	mark := map[plan.ChangeKind]string{plan.ChangeAdded: "+", plan.ChangeRemoved: "-", plan.ChangeAltered: "~"}[c.Kind]
	shade := map[string]string{"+": green, "-": red, "~": yellow}[mark]
	name := c.Name
	if a, err := plan.ParseAddress(c.Name); err == nil && c.Device != "" {
		name = a.Local()
	} else if c.Section == plan.SectionDevice {
		name = ""
	}
	what := strings.TrimSpace(sectionWords[c.Section] + " " + Clean(name))
	switch {
	case c.Section == plan.SectionStep && c.Kind == plan.ChangeAdded:
		t.f("  %s %-28s %s\n", t.color(shade, mark), what, t.stepWords(c.After))
		t.difference(c.After)
	case c.Section == plan.SectionStep && c.Kind == plan.ChangeRemoved:
		t.f("  %s %-28s %s\n", t.color(shade, mark), what, t.stepWords(c.Before))
	case c.Kind == plan.ChangeAltered && (c.Section != plan.SectionInput || t.o.Full):
		t.f("  %s %s\n", t.color(shade, mark), what)
		t.fields(c)
	case t.o.Full:
		t.f("  %s %-28s %s\n", t.color(shade, mark), what, t.gist(c))
		t.fields(c)
	default:
		t.f("  %s\n", strings.TrimRight(fmt.Sprintf("%s %-28s %s", t.color(shade, mark), what, t.gist(c)), " "))
	}
}

// gist is what to know of something that only one of the plans has.
func (t *textWriter) gist(c plan.Change) string {
	for _, f := range c.Fields {
		switch f.Path {
		case "verdict", "summary", "text", "outcome":
			raw := f.Before
			if c.Kind == plan.ChangeAdded {
				raw = f.After
			}
			return Clean(cut(unquote(raw), valueLimit))
		}
	}
	return ""
}

var sectionWords = map[plan.Section]string{
	plan.SectionTool: "tool", plan.SectionScope: "scope", plan.SectionInput: "input", plan.SectionPolicy: "policy", plan.SectionDevice: "device",
	plan.SectionStep: "", plan.SectionCheck: "", plan.SectionObserved: "observed", plan.SectionDiagnostic: "fault",
}

// stepWords says in one line what a step does.
func (t *textWriter) stepWords(s *plan.Step) string {
	text := strings.TrimSuffix(string(s.Action)+", "+reason(s), ", ")
	if s.Blocked != nil {
		text = string(s.Action) + " " + blockWords(s.Blocked)
	}
	text = Clean(text)
	if len(s.Effects) > 0 {
		text += "  [" + t.color(effectColor(s), effects(s.Effects)) + "]"
	}
	return text
}

func (t *textWriter) fields(c plan.Change) {
	limit := valueLimit
	if t.o.Full {
		limit = 0
	}
	width := 0
	for _, f := range c.Fields {
		width = max(width, len(Clean(f.Path)))
	}
	for _, f := range c.Fields {
		switch b, a := fieldText(f.Before), fieldText(f.After); {
		case isText(f.Before) || isText(f.After):
			t.f("      %s  text\n", Clean(f.Path))
			for _, l := range textDiff(textLines(unquote(f.Before)), textLines(unquote(f.After)), limit) {
				t.f("        %s %s\n", t.color(markColor(l.mark), l.mark), l.text)
			}
		case c.Kind == plan.ChangeAltered:
			was, is := cutPair(b, a, limit)
			t.f("      %-*s  %s → %s\n", width, Clean(f.Path), Clean(was), Clean(is))
		case c.Kind == plan.ChangeAdded:
			t.f("      %-*s  %s\n", width, Clean(f.Path), Clean(cut(a, limit)))
		default:
			t.f("      %-*s  %s\n", width, Clean(f.Path), Clean(cut(b, limit)))
		}
	}
}

func fieldText(raw json.RawMessage) string { return orNone(string(raw)) }
