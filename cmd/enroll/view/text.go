package view

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// TextOptions steer the text form.
type TextOptions struct {
	Color bool // escape sequences for colour; the symbols say the same without
	Full  bool // long values whole, unchanged things listed
}

const valueLimit = 160 // characters of one value before it is cut

// Text writes a plan for people at a terminal. Its last line is
// plan.Summary.String, always.
func Text(w io.Writer, p *plan.Plan, o TextOptions) error {
	t := &textWriter{o: o}
	g := group(p)
	t.f("Site %s, %s, by enroll %s, valid until %s\n", Clean(p.Scope.Site), plural(len(p.Devices), "device"), Clean(p.Tool.Version), p.Expires.UTC().Format(time.RFC3339))
	for _, line := range narrowed(p.Scope, o.Full) {
		t.f("%s\n", line)
	}
	t.site(g)
	for _, d := range p.Devices {
		if unremarkable(d, g) && len(p.Devices) > 1 && !o.Full {
			t.f("\n%s  %s · %s\n", t.bold(Clean(d.Name)), strings.Join(headline(d), " · "), t.asWanted(d, g))
			continue
		}
		t.device(d, g)
	}
	t.policies(p.Policies)
	t.closing(p)
	_, err := io.WriteString(w, t.b.String())
	return err
}

type textWriter struct {
	b strings.Builder
	o TextOptions
}

func (t *textWriter) f(format string, args ...any) { fmt.Fprintf(&t.b, format, args...) }

func (t *textWriter) site(g byDevice) {
	if len(g.steps[""])+len(g.faults[""])+len(g.observed[""]) == 0 {
		return
	}
	t.f("\n%s\n", t.bold("shared by the site"))
	t.faults(g.faults[""])
	for _, s := range g.steps[""] {
		t.step(s)
	}
	for _, o := range g.observed[""] {
		t.observed(o)
	}
}

// unremarkable devices need no more than a line.
func unremarkable(d plan.DevicePlan, g byDevice) bool {
	if d.Verdict != plan.VerdictClean || d.Owned || len(g.observed[d.Name])+len(g.faults[d.Name]) > 0 {
		return false
	}
	for _, c := range g.checks[d.Name] {
		if c.Verdict != plan.CheckPass && (c.Verdict != plan.CheckUnknown || d.LeftOut == 0) {
			return false
		}
	}
	return true
}

func (t *textWriter) asWanted(d plan.DevicePlan, g byDevice) string {
	text := "= " + plural(d.Unchanged, "resource") + " as wanted"
	n := 0
	for _, c := range g.checks[d.Name] {
		if c.Verdict == plan.CheckPass {
			n++
		}
	}
	if n > 0 {
		text += ", " + t.color(green, "✓") + " " + plural(n, "check") + " passed"
	}
	if d.LeftOut > 0 {
		text += ", " + plural(d.LeftOut, "step") + " left out"
	}
	return text
}

// device writes a device's part in the order in which it would happen: a check
// that is judged during apply stands where it is judged.
func (t *textWriter) device(d plan.DevicePlan, g byDevice) {
	t.f("\n%s  %s\n", t.bold(Clean(d.Name)), strings.Join(headline(d), " · "))
	if d.Owned {
		t.f("  %s %s: %s; only drift is shown\n", t.color(red, "!"), plan.CodeNodeOwned, Clean(d.OwnedReason))
	}
	t.faults(g.faults[d.Name])
	checks := map[plan.Address]plan.Check{} // a check says more than the step that will judge it
	for _, c := range g.checks[d.Name] {
		checks[c.Address] = c
	}
	for _, s := range g.steps[d.Name] {
		if c, ok := checks[s.Address]; ok {
			t.check(c, gates(s, g.steps[d.Name]))
			delete(checks, s.Address)
			continue
		}
		t.step(s)
	}
	for _, c := range g.checks[d.Name] {
		if _, left := checks[c.Address]; left {
			t.check(c, "")
		}
	}
	for _, o := range g.observed[d.Name] {
		t.observed(o)
	}
	if d.Unchanged > 0 {
		t.f("  = %s as wanted\n", plural(d.Unchanged, "resource"))
	}
	if d.LeftOut > 0 {
		t.f("  - %s left out by the selection\n", plural(d.LeftOut, "step"))
	}
	if d.Unread > 0 {
		t.f("  %s %s could not be read; nothing is known of them\n", t.color(red, "✗"), plural(d.Unread, "resource"))
	}
	if d.UpTo && d.Verdict == plan.VerdictChanges {
		t.f("  Counts are \"up to\": what cannot be seen yet may turn out to be right, so apply may do less, never more.\n")
	}
}

// gates names the steps that a verification lets through.
func gates(verify *plan.Step, steps []*plan.Step) string {
	var names []string
	for _, s := range steps {
		for _, id := range s.Needs {
			if id == verify.ID {
				names = append(names, s.Address.Local())
			}
		}
	}
	return list(names, 3)
}

// observed shows a difference that nobody will touch: no arrow, because nothing
// changes.
func (t *textWriter) observed(o plan.Observation) {
	t.f("  %s %-28s observed, %s: %s\n", "·", o.Address.Local(), strings.ReplaceAll(o.Rule, "_", " "), Clean(o.Text))
	live, want := flatten(o.Live), flatten(o.Want)
	limit := valueLimit
	if t.o.Full {
		limit = 0
	}
	for _, path := range keys(live, want) {
		if live[path] != want[path] {
			t.f("      %s  is %s, recorded %s\n", Clean(path), Clean(cut(orNone(live[path]), limit)), Clean(cut(orNone(want[path]), limit)))
		}
	}
}

func (t *textWriter) faults(list []plan.Diagnostic) {
	for _, d := range list {
		if d.Severity == plan.SeverityWarning {
			t.f("  %s warning %s: %s\n", t.color(yellow, "!"), d.Fault.Code, Clean(d.Fault.Summary))
			continue
		}
		Fault(&t.b, d.Fault, "  ", t.o.Color)
	}
}

// Fault writes one fault as a paragraph: what, evidence, whose, way out.
func Fault(w io.Writer, f *plan.Fault, indent string, color bool) {
	mark := "✗"
	if color {
		mark = red + mark + reset
	}
	text := Clean(f.Summary)
	if f.Cause != nil {
		text += ": " + Clean(f.Cause.Error())
	}
	fmt.Fprintf(w, "%s%s %s: %s\n", indent, mark, f.Code, text)
	for _, evidence := range f.EvidenceLines() {
		for i, l := range strings.Split(evidence, "\n") {
			if i > 0 {
				l = "  " + l
			}
			fmt.Fprintf(w, "%s    %s\n", indent, cut(Clean(l), 300))
		}
	}
	fmt.Fprintf(w, "%s    For %s: %s\n", indent, f.Owner(), Clean(f.WayOut()))
}

func (t *textWriter) step(s *plan.Step) {
	what := strings.TrimSuffix(string(s.Action)+", "+reason(s), ", ")
	if s.Blocked != nil {
		what = string(s.Action) + " " + blockWords(s.Blocked)
	}
	t.f("  %s %-28s %s", t.symbol(s), s.Address.Local(), Clean(what))
	if len(s.Effects) > 0 {
		t.f("  [%s]", t.color(effectColor(s), effects(s.Effects)))
	}
	if len(s.Serves) > 0 && s.Blocked == nil {
		t.f("  serves %s", list(s.Serves, 6))
	}
	t.f("\n")
	if s.Action == plan.ActionVerify || s.Reason == plan.ReasonChanged || (s.Blocked != nil && s.Blocked.Rule == plan.RuleFailed && !t.o.Full) {
		return // nothing to compare, or nothing that will come about
	}
	t.difference(s)
	for _, from := range s.From {
		// A written secret is shown by its reference; the value is nowhere.
		if path, ref, ok := strings.Cut(from, ": "); ok && s.Sensitive && strings.HasPrefix(ref, "secret(") {
			t.f("      %s  %s\n", Clean(path), Clean(ref))
		}
	}
}

func (t *textWriter) difference(s *plan.Step) {
	limit := valueLimit
	if t.o.Full {
		limit = 0
	}
	width := 0
	rows := details(s, limit)
	for _, l := range rows {
		width = max(width, utf8.RuneCountInString(l.path))
	}
	for _, l := range rows {
		if l.mark != "" {
			t.f("        %s %s\n", t.color(markColor(l.mark), l.mark), l.text)
			continue
		}
		t.f("      %-*s  %s\n", width, Clean(l.path), Clean(l.text))
	}
}

// check writes a verdict; gates names what waits for it.
func (t *textWriter) check(c plan.Check, gates string) {
	switch {
	case c.After != "" && gates != "":
		t.f("  %s %-28s verify, before %s\n", t.verdict(c.Verdict), c.Address.Local(), Clean(gates))
	case c.After != "":
		t.f("  %s %-28s verify\n", t.verdict(c.Verdict), c.Address.Local())
	case c.Verdict == plan.CheckUnknown:
		t.f("  %s %-28s unknown, and not judged by this plan\n", t.verdict(c.Verdict), c.Address.Local())
	default:
		t.f("  %s %-28s %s\n", t.verdict(c.Verdict), c.Address.Local(), c.Verdict)
	}
	if c.Verdict == plan.CheckPass && !t.o.Full {
		return
	}
	t.f("      expected  %s\n", Clean(orNone(c.Expected)))
	if (c.Observed != "" && c.After == "") || c.Verdict == plan.CheckFail {
		t.f("      observed  %s\n", Clean(orNone(c.Observed)))
	}
	if c.Text != "" && c.After == "" {
		t.f("      %s\n", Clean(c.Text))
	}
}

func (t *textWriter) closing(p *plan.Plan) {
	t.f("\n")
	if failed := p.FailedChecks(); len(failed) > 0 {
		t.f("%s\n", t.color(red, plural(len(failed), "check")+" failed on the evidence at hand."))
	}
	if n := len(p.Errors()); n > 0 {
		t.f("%s\n", t.color(red, "This plan is incomplete: "+plural(n, "fault")+" above. Nothing will be done to the devices concerned."))
	}
	if line := idle(p); line != "" {
		t.f("%s\n", line)
	}
	if p.HasWork() {
		t.f("Symbols: + create  ~ update  > run  … wait  ? verify  ! blocked  · observed  = as wanted\n")
	}
	t.f("Content %s\n", p.ContentHash)
	t.f("%s\n", p.Summary)
}

// idle says that a plan has nothing to do, "" when it has.
func idle(p *plan.Plan) string {
	switch {
	case p.HasWork() || len(p.Errors()) > 0:
		return ""
	case p.Summary.Blocked > 0:
		return "Nothing will be done: what differs is blocked."
	case len(p.FailedChecks()) > 0:
		return "Nothing to do, but not everything is as recorded."
	}
	return "Nothing to do."
}

func orNone(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}

// list joins names and counts what is beyond the first n.
func list(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + " and " + itoa(len(names)-n) + " more"
}
