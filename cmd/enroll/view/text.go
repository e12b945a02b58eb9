package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// TextOptions steer the text form.
type TextOptions struct {
	Color bool // escape sequences for colour; the symbols say the same without
	Full  bool // long values whole, unchanged things listed
	Width int  // of the terminal, in characters; 0 where there is none: nothing is fitted
}

// valueLimit is how many characters of a value are shown where no terminal bounds
// the line.
const valueLimit = 160

// legend explains the symbols, which carry the meaning.
var legend = []string{ //nolint:gochecknoglobals // a constant table
	"+ create", "~ update", "- remove", "> run", "… wait", "? verify", "! blocked", "· observed", "✓ passed", "✗ failed", "= as wanted",
}

// legendOf explains the symbols that a plan has.
func legendOf(p *plan.Plan) []string {
	used := map[string]bool{"✗": len(p.Errors()) > 0}
	for _, s := range p.Steps {
		used[symbol(s)] = true
	}
	for _, c := range p.Checks {
		used[checkMark(c.Verdict)] = used[checkMark(c.Verdict)] || c.Verdict != plan.CheckSkipped
	}
	used["·"] = len(p.Observed) > 0
	for _, d := range p.Devices {
		used["="] = used["="] || d.Unchanged > 0
		used["!"] = used["!"] || d.Owned
	}
	out := slices.DeleteFunc(slices.Clone(legend), func(entry string) bool {
		mark, _, _ := strings.Cut(entry, " ")
		return !used[mark]
	})
	if len(out) > 0 {
		out[0] = "Symbols: " + out[0]
	}
	return out
}

// tableFrom is from how many devices on a table stands above the plan, and devices
// that are as wanted are counted instead of listed.
const tableFrom = 5

// Text writes a plan for people at a terminal. Its last line is
// plan.Summary.String, always.
func Text(w io.Writer, p *plan.Plan, o TextOptions) error {
	if o.Width > 0 {
		o.Width = max(o.Width, 60)
	}
	t := &textWriter{o: o}
	g := group(p)
	t.joined(", ", "Site "+Clean(p.Scope.Site), plural(len(p.Devices), "device"), "by enroll "+Clean(p.Tool.Version), "valid until "+p.Expires.UTC().Format(time.RFC3339))
	for _, line := range narrowed(p, o.Full) {
		t.f("%s\n", line)
	}
	many := len(p.Devices) >= tableFrom
	if many {
		t.table(p, g)
	}
	t.site(g)
	for _, d := range p.Devices {
		switch quiet := unremarkable(d, g) && len(p.Devices) > 1 && !o.Full; {
		case quiet && many:
			// counted in the table
		case quiet:
			t.f("\n%s  %s · %s\n", t.bold(Clean(d.Name)), strings.Join(headline(d), " · "), t.asWanted(d, g))
		default:
			t.device(d, g)
		}
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

// parts writes a line of parts, between two blanks each.
func (t *textWriter) parts(list ...string) { t.joined("  ", list...) }

// joined writes a line of parts. What does not fit into the terminal's width goes
// on below, indented: a part is never broken.
func (t *textWriter) joined(between string, list ...string) {
	const indent = "      "
	column := 0
	for i, part := range list {
		switch n := visible(part); {
		case i == 0:
			t.b.WriteString(part)
			column = n
		case t.o.Width > 0 && column+len(between)+n > t.o.Width:
			t.b.WriteString("\n" + indent + part)
			column = len(indent) + n
		default:
			t.b.WriteString(between + part)
			column += len(between) + n
		}
	}
	t.b.WriteString("\n")
}

// colored is prose in one colour.
func (t *textWriter) colored(indent, c, text string) {
	if t.o.Width == 0 {
		t.f("%s%s\n", indent, t.color(c, text))
		return
	}
	for _, l := range Wrap(text, t.o.Width-len(indent)) {
		t.f("%s%s\n", indent, t.color(c, l))
	}
}

// marked is a text behind a symbol, broken between words at the terminal's width;
// it goes on below, indented.
func (t *textWriter) marked(indent, symbol, text, c string) {
	t.f("%s%s ", indent, t.color(c, symbol))
	if t.o.Width == 0 {
		t.f("%s\n", text)
		return
	}
	for i, l := range Wrap(text, t.o.Width-len(indent)-4) {
		if i > 0 {
			t.f("%s    ", indent)
		}
		t.f("%s\n", l)
	}
}

// prose writes a sentence of ours, broken between words at the terminal's width.
func (t *textWriter) prose(indent, text string) { t.colored(indent, "", text) }

func (t *textWriter) site(g byDevice) {
	if len(g.steps[""])+len(g.faults[""])+len(g.observed[""]) == 0 {
		return
	}
	t.f("\n%s\n", t.bold(sharedTitle))
	t.shared(g)
}

// sharedTitle stands over what belongs to no device alone.
const sharedTitle = "shared by the site"

func (t *textWriter) shared(g byDevice) {
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
	if d.LeftOut > 0 {
		text = "- " + plural(d.LeftOut, "step") + " left out by the selection, " + plural(d.Unchanged, "resource") + " as wanted"
	}
	n := 0
	for _, c := range g.checks[d.Name] {
		if c.Verdict == plan.CheckPass {
			n++
		}
	}
	if n > 0 {
		text += ", " + t.color(green, "✓") + " " + plural(n, "check") + " passed"
	}
	return text
}

// device writes a device's part in the order in which it would happen: a check
// that is judged during apply stands where it is judged.
func (t *textWriter) device(d plan.DevicePlan, g byDevice) {
	t.f("\n%s  %s\n", t.bold(Clean(d.Name)), strings.Join(headline(d), " · "))
	if d.Owned {
		t.marked("  ", "!", string(plan.CodeNodeOwned)+": "+Clean(d.OwnedReason)+"; only drift is shown", red)
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
	passed := 0
	for _, c := range g.checks[d.Name] {
		if _, left := checks[c.Address]; !left {
			continue
		}
		if c.Verdict == plan.CheckPass && !t.o.Full {
			passed++
			continue
		}
		t.check(c, "")
	}
	for _, o := range g.observed[d.Name] {
		t.observed(o)
	}
	if passed > 0 {
		t.f("  %s %s passed\n", t.color(green, "✓"), plural(passed, "check"))
	}
	if d.Unchanged > 0 {
		t.f("  = %s as wanted\n", plural(d.Unchanged, "resource"))
	}
	if d.LeftOut > 0 {
		t.f("  - %s left out by the selection\n", plural(d.LeftOut, "step"))
	}
	if d.Unread > 0 {
		t.f("  %s %s could not be read or judged\n", t.color(red, "✗"), plural(d.Unread, "resource"))
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

func (t *textWriter) faults(list []plan.Diagnostic) {
	for _, d := range list {
		if d.Severity == plan.SeverityWarning {
			t.marked("  ", "!", "warning "+Clean(string(d.Fault.Code))+": "+Clean(d.Fault.Summary), yellow)
			continue
		}
		t.fault(d.Fault, "  ")
	}
}

// Fault writes one fault as a paragraph: what, evidence, whose, way out.
func Fault(w io.Writer, f *plan.Fault, indent string, color bool) {
	t := &textWriter{o: TextOptions{Color: color}}
	t.fault(f, indent)
	_, _ = io.WriteString(w, t.b.String())
}

func (t *textWriter) fault(f *plan.Fault, indent string) {
	text := Clean(f.Summary)
	if f.Cause != nil {
		text += ": " + Clean(f.Cause.Error())
	}
	t.marked(indent, "✗", Clean(string(f.Code))+": "+text, red)
	for _, evidence := range f.EvidenceLines() {
		for i, l := range strings.Split(evidence, "\n") {
			if i > 0 {
				l = "  " + l
			}
			t.f("%s    %s\n", indent, cut(Clean(l), 300))
		}
	}
	t.prose(indent+"    ", "For "+Clean(string(f.Owner()))+": "+Clean(f.WayOut()))
}

func (t *textWriter) closing(p *plan.Plan) {
	t.f("\n")
	if failed := p.FailedChecks(); len(failed) > 0 {
		t.f("%s\n", t.color(red, plural(len(failed), "check")+" failed on the evidence at hand."))
	}
	if n := len(p.Errors()); n > 0 {
		t.colored("", red, "This plan is incomplete: "+plural(n, "fault")+" above. Nothing will be done to the devices concerned.")
	}
	if line := idle(p); line != "" {
		t.f("%s\n", line)
	}
	if strings.Contains(t.b.String(), cutMark) {
		t.f("Values that end with %sN) have N characters more; --full shows them.\n", cutMark)
	}
	if p.HasWork() {
		t.parts(legendOf(p)...)
	}
	for _, line := range effectLines(p.Summary) {
		t.prose("", line)
	}
	t.f("Content %s\n", p.ContentHash)
	t.f("%s\n", p.Summary)
}

// effectLines sum up what the plan does to the world besides values.
func effectLines(s plan.Summary) []string {
	var out []string
	upTo := ""
	if s.UpTo {
		upTo = "up to "
	}
	words := effectSum(s.Effects)
	if n := s.Effects[plan.EffectReboot]; n != s.HostReboots {
		reboots := plural(n, effectNouns[plan.EffectReboot])
		words = strings.Replace(words, reboots, reboots+" of "+plural(s.HostReboots, "host"), 1)
	}
	if words != "" {
		out = append(out, "Effects: "+upTo+words+".")
	}
	if s.UpTo {
		out = append(out, `Counts are "up to": what cannot be seen yet may turn out to be right, so apply may do less, never more.`)
	}
	return out
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
	case p.Scope.LeftOut > 0:
		return "Nothing to do: the selection leaves out all " + plural(p.Scope.LeftOut, "step") + "."
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
