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
	t.site(g)
	for _, d := range p.Devices {
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
	if len(g.steps[""])+len(g.faults[""]) == 0 {
		return
	}
	t.f("\n%s\n", t.bold("shared by the site"))
	t.faults(g.faults[""])
	for _, s := range g.steps[""] {
		t.step(s)
	}
}

func (t *textWriter) device(d plan.DevicePlan, g byDevice) {
	t.f("\n%s  %s\n", t.bold(Clean(d.Name)), strings.Join(headline(d), " · "))
	if d.Owned {
		t.f("  %s held: %s; only drift is shown\n", t.color(red, "!"), Clean(d.OwnedReason))
	}
	t.faults(g.faults[d.Name])
	judged := map[plan.Address]bool{} // a check says more than the step that will judge it
	for _, c := range g.checks[d.Name] {
		judged[c.Address] = true
	}
	for _, s := range g.steps[d.Name] {
		if !judged[s.Address] {
			t.step(s)
		}
	}
	t.checks(g.checks[d.Name])
	for _, o := range g.observed[d.Name] {
		t.f("  %s %-28s observed, %s: %s\n", "·", o.Address.Local(), strings.ReplaceAll(o.Rule, "_", " "), Clean(o.Text))
		t.difference(&plan.Step{Before: o.Live, After: o.Want})
	}
	if d.Unchanged > 0 {
		t.f("  = %s as wanted\n", plural(d.Unchanged, "resource"))
	}
	if d.UpTo && d.Verdict == plan.VerdictChanges {
		t.f("  Counts are \"up to\": what cannot be seen yet may turn out to be right, so apply may do less, never more.\n")
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
	for _, l := range f.EvidenceLines() {
		fmt.Fprintf(w, "%s    %s\n", indent, cut(Clean(l), 300))
	}
	fmt.Fprintf(w, "%s    %s: %s\n", indent, f.Owner(), Clean(f.WayOut()))
}

func (t *textWriter) step(s *plan.Step) {
	what := string(s.Action) + ", " + reason(s)
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
	if s.Action == plan.ActionVerify || (s.Blocked != nil && s.Blocked.Rule == plan.RuleFailed && !t.o.Full) {
		return // nothing to compare, or nothing that will come about
	}
	t.difference(s)
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

func (t *textWriter) checks(checks []plan.Check) {
	for _, c := range checks {
		when := ""
		if c.After != "" {
			when = " (judged during apply)"
		}
		t.f("  %s %-28s %s%s\n", t.verdict(c.Verdict), c.Address.Local(), c.Verdict, when)
		if c.Verdict == plan.CheckPass && !t.o.Full {
			continue
		}
		t.f("      expected  %s\n", Clean(orNone(c.Expected)))
		if c.Observed != "" || c.Verdict == plan.CheckFail {
			t.f("      observed  %s\n", Clean(orNone(c.Observed)))
		}
		if c.Text != "" {
			t.f("      %s\n", Clean(c.Text))
		}
	}
}

func (t *textWriter) closing(p *plan.Plan) {
	t.f("\n")
	if failed := p.FailedChecks(); len(failed) > 0 {
		t.f("%s\n", t.color(red, plural(len(failed), "check")+" failed on the evidence at hand."))
	}
	if n := len(p.Errors()); n > 0 {
		t.f("%s\n", t.color(red, "This plan is incomplete: "+plural(n, "fault")+" above. What is listed for the devices concerned will not run."))
	}
	switch {
	case p.HasWork() || len(p.Errors()) > 0:
	case p.Summary.Blocked > 0:
		t.f("Nothing will be done: what differs is blocked.\n")
	default:
		t.f("Nothing to do.\n")
	}
	if p.HasWork() {
		t.f("Symbols: + create  ~ update  > run  … wait  ? verify  ! blocked  · observed  = as wanted\n")
	}
	t.f("Content %s\n", p.ContentHash)
	t.f("%s\n", p.Summary)
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
