package view

import (
	"fmt"
	"io"

	"github.com/enroll-dev/enroll/plan"
)

// Policies writes what policies hold against a plan, one paragraph each.
func Policies(w io.Writer, results []plan.PolicyResult, color bool) error {
	t := &textWriter{o: TextOptions{Color: color, Full: true}}
	t.policies(results)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// policies shows what applies; what passes is counted, or listed in full.
func (t *textWriter) policies(results []plan.PolicyResult) {
	if len(results) == 0 {
		return
	}
	t.f("\n%s\n", t.bold("policies"))
	passed := 0
	for _, r := range results {
		if r.Outcome == plan.PolicyPasses {
			passed++
			if t.o.Full {
				t.f("  %s %s  passes\n", t.color(green, "✓"), Clean(r.Policy))
			}
			continue
		}
		mark, shade := policyMark(r)
		t.f("  %s %s  %s  %s\n", t.color(shade, mark), Clean(r.Policy), Clean(policyWords(r)), list(subjects(r), 6))
		if r.Message != "" {
			t.f("      %s\n", Clean(r.Message))
		}
		if r.Error != "" {
			t.f("      cannot be decided: %s\n", Clean(r.Error))
		}
		t.f("      %s, owner %s (%s)\n", Clean(cut(r.Condition, valueLimit)), Clean(string(r.Owner)), Clean(r.From))
	}
	switch {
	case passed == 0 || t.o.Full:
	case passed == 1:
		t.f("  %s 1 policy passes\n", t.color(green, "✓"))
	default:
		t.f("  %s %d policies pass\n", t.color(green, "✓"), passed)
	}
}

func policyMark(r plan.PolicyResult) (mark, shade string) {
	if r.Denies() {
		return "!", red
	}
	return "!", yellow
}

// policyWords says what a result means for the plan.
func policyWords(r plan.PolicyResult) string {
	switch {
	case len(r.Failed) > 0:
		return "denies, because it cannot be decided"
	case r.Action == plan.PolicyDeny:
		return "denies"
	case r.Action == plan.PolicyApproval:
		return "needs approval, --approve " + r.Policy
	}
	return "warns"
}

func subjects(r plan.PolicyResult) []string {
	var out []string
	for _, s := range append(append([]string(nil), r.Failed...), r.Holds...) {
		out = append(out, Clean(s))
	}
	return out
}

// policyTable is the Markdown form: the head and a row for each policy that
// applies, nil when none does.
func policyTable(results []plan.PolicyResult) []string {
	var rows []string
	for _, r := range results {
		if r.Outcome != plan.PolicyPasses {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s |\n", inline(r.Policy), inline(policyWords(r)), inline(list(subjects(r), 6)), inline(grounds(r)), inline(string(r.Owner))))
		}
	}
	if rows == nil {
		return nil
	}
	return append(append([]string{"| policy | says | concerns | why | owner |\n|---|---|---|---|---|\n"}, rows...), "\n")
}

// grounds are what a policy holds against its subjects.
func grounds(r plan.PolicyResult) string {
	switch {
	case r.Error != "":
		return r.Error
	case r.Message != "":
		return r.Message
	}
	return cut(r.Condition, valueLimit)
}
