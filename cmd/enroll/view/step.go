package view

import (
	"strings"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// addressWidth is the column of addresses; a longer one moves what follows.
const addressWidth = 28

func column(a plan.Address) string {
	name := Clean(a.Local())
	return name + strings.Repeat(" ", max(0, addressWidth-utf8.RuneCountInString(name)))
}

func (t *textWriter) step(s *plan.Step) {
	what := strings.TrimSuffix(string(s.Action)+", "+reason(s), ", ")
	if s.Blocked != nil {
		what = string(s.Action) + " " + blockWords(s.Blocked)
	}
	lead := "  " + t.symbol(s) + " " + column(s.Address) + " "
	if first, rest, ok := strings.Cut(Clean(what), ", "); ok && t.o.Width > 0 && visible(lead+what) > t.o.Width && visible(lead+first) < t.o.Width {
		t.f("%s%s,\n", lead, first)
		lead, what = "      ", rest
	}
	parts := []string{lead + Clean(what)}
	if len(s.Effects) > 0 {
		would := ""
		if s.Blocked != nil {
			would = "if it ran: "
		}
		parts = append(parts, "["+would+t.color(effectColor(s), effects(s.Effects))+why(s)+"]")
	}
	if len(s.Serves) > 0 && s.Blocked == nil {
		parts = append(parts, "serves "+Clean(list(s.Serves, 6)))
	}
	t.parts(parts...)
	if s.Action == plan.ActionVerify || s.Reason == plan.ReasonChanged || (s.Blocked != nil && s.Blocked.Rule == plan.RuleFailed && !t.o.Full) {
		return // nothing to compare, or nothing that will come about
	}
	t.difference(s)
}

// why names the paths for which a step has its effects, where the words of its
// reason do not.
func why(s *plan.Step) string {
	if len(s.Because) == 0 || s.Reason == plan.ReasonChanged {
		return ""
	}
	return ": " + Clean(list(s.Because, 3))
}

func (t *textWriter) difference(s *plan.Step) {
	before, after := leavesOf(s)
	rows := details(before, after, s.BeforeUnknown, t.room(differing(before, after)))
	for _, from := range s.From {
		// A written secret is shown by its reference; the value is nowhere.
		if path, ref, ok := strings.Cut(from, ": "); ok && s.Sensitive && strings.HasPrefix(ref, "secret(") {
			rows = append(rows, line{path: path, text: ref})
		}
	}
	width := 0
	for _, l := range rows {
		width = max(width, utf8.RuneCountInString(Clean(l.path)))
	}
	for _, l := range rows {
		if l.mark != "" {
			t.f("        %s %s\n", t.color(markColor(l.mark), l.mark), l.text)
			continue
		}
		t.f("      %-*s  %s\n", width, Clean(l.path), Clean(l.text))
	}
}

// room is how many characters a line has for the values beside paths.
func (t *textWriter) room(paths []string) int {
	switch {
	case t.o.Full:
		return 0
	case t.o.Width == 0:
		return valueLimit
	}
	const around = 11 // indent, blanks and arrow
	widest := 0
	for _, path := range paths {
		widest = max(widest, utf8.RuneCountInString(Clean(path)))
	}
	return max(40, t.o.Width-widest-around)
}

// observed shows a difference that nobody will touch: no arrow, because nothing
// changes.
func (t *textWriter) observed(o plan.Observation) {
	t.joined(" ", "  · "+column(o.Address)+" observed, "+Clean(strings.ReplaceAll(o.Rule, "_", " "))+":", Clean(o.Text))
	live, want := leaves{}, leaves{}
	live.value("", o.Live)
	want.value("", o.Want)
	paths := differing(live, want)
	width := 0
	for _, path := range paths {
		width = max(width, utf8.RuneCountInString(Clean(path)))
	}
	for _, path := range paths {
		is, wanted := cutPair(orNone(live[path].json), orNone(want[path].json), t.room(paths))
		text := "is " + is + ", wanted " + wanted
		switch _, asked := want[path]; {
		case o.Rule == string(plan.RuleUnsupported): // nothing was seen there
			text = "wanted " + wanted
		case !asked:
			text = "is " + is
		}
		t.f("      %-*s  %s\n", width, Clean(path), Clean(text))
	}
}

// check writes a verdict; gates names what waits for it.
func (t *textWriter) check(c plan.Check, gates string) {
	head := "  " + t.verdict(c.Verdict) + " " + column(c.Address) + " "
	switch {
	case c.After != "" && gates != "":
		t.joined(" ", head+"verify, before", Clean(gates))
	case c.After != "":
		t.parts(head + "verify")
	case c.Verdict == plan.CheckUnknown:
		t.parts(head + "unknown, and not judged by this plan")
	default:
		t.parts(head + string(c.Verdict))
	}
	if c.Verdict == plan.CheckPass && !t.o.Full {
		return
	}
	t.f("      expected  %s\n", Clean(orNone(c.Expected)))
	if (c.Observed != "" && c.After == "") || c.Verdict == plan.CheckFail {
		t.f("      observed  %s\n", Clean(orNone(c.Observed)))
	}
	if c.Text != "" && c.After == "" {
		t.prose("      ", Clean(c.Text))
	}
}
