package view

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Explanation is everything that is known about one address.
type Explanation struct {
	Address  plan.Address
	Doc      string           // what the kind is
	Device   *plan.DevicePlan // nil for what devices share
	Intent   *plan.Intent     // nil when it comes from a plan file, and for what devices share
	Want     plan.Value
	From     []string // where the wanted value comes from
	Live     plan.Live
	Planned  bool // Live is what the step of a plan file expects before it, not what was read now
	Step     *plan.Step
	Needs    []*plan.Step // that the step needs
	Checks   []plan.Check
	Observed []plan.Observation
	Policies []plan.PolicyResult // that hold something against it
	Faults   []plan.Diagnostic   // of the device
	LeftOut  bool                // by the plan's selection
}

// Explain writes what is wanted and why, what is, by which rule the two were
// judged, and the verdict.
func Explain(w io.Writer, e Explanation, o TextOptions) error {
	t := &textWriter{o: o}
	t.f("%s\n", t.bold(Clean(e.Address.String())))
	if e.Doc != "" {
		t.prose("  ", strings.ToUpper(e.Doc[:1])+strings.TrimSuffix(e.Doc[1:], ".")+".")
	}
	t.record(e)
	t.compared(e)
	t.heading("wanted because of", len(e.From) > 0)
	for _, from := range e.From {
		t.f("    %s\n", Clean(from))
	}
	t.heading("seen", len(e.Live.Evidence) > 0)
	for _, key := range slices.Sorted(maps.Keys(e.Live.Evidence)) {
		t.f("    %s: %s\n", Clean(key), Clean(cut(e.Live.Evidence[key], valueLimit)))
	}
	t.f("  rule\n")
	for _, line := range rules(e) {
		t.prose("    ", Clean(line))
	}
	t.verdicts(e)
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *textWriter) heading(name string, there bool) {
	if there {
		t.f("  %s\n", name)
	}
}

// record says which device it is, by NetBox.
func (t *textWriter) record(e Explanation) {
	if e.Device == nil {
		return
	}
	t.f("  device\n    %s  %s\n", Clean(e.Device.Name), strings.Join(headline(*e.Device), " · "))
	if i := e.Intent; i != nil {
		t.f("    status %s, role %s, serial %s\n", Clean(orNone(i.Status)), Clean(orNone(i.Role)), Clean(orNone(i.Serial)))
	}
	if e.Device.URL != "" {
		t.f("    %s\n", Clean(e.Device.URL))
	}
	if e.Device.Owned {
		t.f("    %s held: %s\n", t.color(red, "!"), Clean(e.Device.OwnedReason))
	}
}

// compared shows the wanted value beside the live one, leaf by leaf.
func (t *textWriter) compared(e Explanation) {
	want, live := leaves{}, leaves{}
	want.value("", e.Want)
	seen, unseen := e.Live.Presence == plan.Present, presence(e.Live.Presence)
	if e.Step != nil && e.Step.BeforeUnknown {
		unseen = "(cannot be seen yet)"
	}
	if seen {
		live.value("", plan.Restrict(e.Live.Value, e.Want))
	}
	paths := keys(want, live)
	if len(paths) == 0 || len(e.Checks) > 0 { // which say it better
		return
	}
	now, padded := "live", "live  "
	if e.Planned {
		now, padded = "before the step", "before"
	}
	t.f("  wanted and %s\n", now)
	differ := differing(live, want)
	for _, path := range paths {
		is, wanted := orNone(live[path].json), orNone(want[path].json)
		name := path
		if name == "" {
			name = "(the whole)"
		}
		switch limit := t.room(nil); {
		case !seen:
			t.f("    ? %s\n        wanted  %s\n        %s  %s\n", Clean(name), Clean(cut(wanted, limit)), padded, unseen)
		case slices.Contains(differ, path) && live[path].lines != nil && want[path].lines != nil:
			t.f("    %s %s, from %s (-) to wanted (+)\n", t.color(yellow, "≠"), Clean(name), now)
			for _, l := range textDiff(live[path].lines, want[path].lines, limit) {
				t.f("        %s %s\n", t.color(markColor(l.mark), l.mark), l.text)
			}
		case slices.Contains(differ, path):
			t.f("    %s %s\n        wanted  %s\n        %s  %s\n", t.color(yellow, "≠"), Clean(name), Clean(cut(wanted, limit)), padded, Clean(cut(is, limit)))
		default:
			t.f("    %s %s\n        both    %s\n", t.color(green, "="), Clean(name), Clean(cut(wanted, limit)))
		}
	}
}

func presence(p plan.Presence) string {
	switch p {
	case plan.Absent:
		return "(does not exist)"
	case plan.Unreachable:
		return "(nothing answers)"
	case plan.Unsupported:
		return "(the system has no such thing)"
	case plan.Present, plan.Unreadable:
	}
	return "(not known)"
}

// ruleWords say by which rule of the planner a step came about.
var ruleWords = map[plan.Reason]string{
	plan.ReasonAbsent:    "What does not exist is created.",
	plan.ReasonDiffers:   "What is wanted and differs is written; whatever else the system has there is left alone.",
	plan.ReasonDeferred:  "What cannot be seen before an earlier step is planned from the record alone, as an upper bound: apply reads it first and writes only what differs.",
	plan.ReasonState:     "The machine goes on to the next state of the way to available.",
	plan.ReasonChanged:   "What an earlier step of the plan writes is made live.",
	plan.ReasonPending:   "What an earlier run left unfinished is finished.",
	plan.ReasonUnproven:  "What is not proven yet is looked at.",
	plan.ReasonFailedOld: "Evidence that fails is taken again.",
	plan.ReasonForced:    "The operator asked for it.",
}

var blockRules = map[plan.Rule]string{
	plan.RuleOwned:       "A node that Nova or somebody else holds is not written to; a difference is drift.",
	plan.RuleUnsupported: "What the system has not cannot be set.",
	plan.RuleNotYet:      "This version cannot do it.",
	plan.RuleForeign:     "What somebody else does is not interfered with.",
	plan.RuleFailed:      "Nothing is done to a device with a fault.",
	plan.RulePolicy:      "A policy of the site denies it.",
}

// rules name what decided, the strongest last.
func rules(e Explanation) []string {
	var out []string
	if s := e.Step; s != nil {
		out = append(out, ruleWords[s.Reason])
		if s.Blocked != nil {
			out = append(out, blockRules[s.Blocked.Rule])
		}
	}
	for _, o := range e.Observed {
		out = append(out, "observed, "+strings.ReplaceAll(o.Rule, "_", " ")+": "+o.Text)
	}
	for _, r := range e.Policies {
		out = append(out, r.Sentence()+" ("+r.From+")")
	}
	switch {
	case e.LeftOut:
		out = append(out, "The selection of the plan leaves it out.")
	case len(e.Checks) > 0:
		out = append(out, "Reality is held against the record; a check that fails or is not proven stops what comes after it.")
	case len(out) > 0:
	case e.Live.Presence == plan.Present && !plan.Satisfies(e.Want, e.Live.Value):
		out = append(out, "It differs, and nothing is to be done: the system is past this, or does not need it.")
	case e.Live.Presence == plan.Present:
		out = append(out, "What is wanted is there; whatever else the system has there does not count.")
	default:
		out = append(out, "Nothing was decided: the device has a fault, or this could not be read.")
	}
	return out
}

func (t *textWriter) verdicts(e Explanation) {
	t.f("  verdict\n")
	var said bool
	if s := e.Step; s != nil {
		said = true
		t.f("    %s %s\n", t.symbol(s), t.stepWords(s))
		for _, b := range s.Because {
			t.f("      because of %s\n", Clean(b))
		}
		for _, n := range e.Needs {
			t.f("      after %s\n", Clean(beside(n.Address, e.Address)))
		}
		if len(s.Serves) > 0 {
			t.f("      serves %s\n", Clean(list(s.Serves, 6)))
		}
	}
	for _, c := range e.Checks {
		said = true
		t.f("    %s %s\n      expected  %s\n      observed  %s\n", t.verdict(c.Verdict), c.Verdict, Clean(orNone(c.Expected)), Clean(orNone(c.Observed)))
		if c.Text != "" {
			t.prose("      ", Clean(c.Text))
		}
	}
	for _, f := range e.Faults {
		said = true
		t.faults([]plan.Diagnostic{f})
	}
	if said {
		return
	}
	switch {
	case len(e.Observed) > 0:
		t.f("    · left alone\n")
	case e.LeftOut:
		t.f("    - left out\n")
	case e.Live.Presence == plan.Present && !plan.Satisfies(e.Want, e.Live.Value):
		t.f("    %s nothing to do\n", t.color(green, "="))
	default:
		t.f("    %s as wanted\n", t.color(green, "="))
	}
}
