package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// MaxMarkdown is the largest comment that the usual forges accept, in bytes.
const MaxMarkdown = 65536

// Markdown writes a plan as one comment of a merge request: the summary first,
// a row per device, details folded. It never grows beyond maxBytes: whole
// devices are left out at the end, and counted.
func Markdown(w io.Writer, p *plan.Plan, maxBytes int) error {
	var head strings.Builder
	fmt.Fprintf(&head, "### enroll plan for site %s\n\n**%s**\n\n", inline(p.Scope.Site), p.Summary)
	if n := len(p.Errors()); n > 0 {
		fmt.Fprintf(&head, "> This plan is incomplete: %s. Nothing will be done to the devices concerned.\n\n", plural(n, "fault"))
	}
	if lines := narrowed(p.Scope, false); len(lines) > 0 {
		head.WriteString(fold(lines[0], strings.Join(lines, "\n")))
		head.WriteString("\n")
	}
	if line := idle(p); line != "" {
		head.WriteString(line + "\n\n")
	}
	head.WriteString(policyTable(p.Policies))
	foot := fmt.Sprintf("\nContent `%s`, valid until %s.\n", p.ContentHash, p.Expires.UTC().Format("2006-01-02 15:04 UTC"))

	g := group(p)
	rows := []string{"| device | verdict | steps | effects |\n|---|---|---|---|\n"}
	var folds []string // the first may be the site's
	if text := section(p, g, plan.DevicePlan{}); text != "" {
		folds = append(folds, fold("shared by the site", text))
	}
	for _, d := range p.Devices {
		rows = append(rows, fmt.Sprintf("| %s | %s | %d | %s |\n", link(d), verdictWords(d, g), len(g.steps[d.Name]), inline(deviceEffects(g.steps[d.Name]))))
		if d.Verdict != plan.VerdictClean || len(g.observed[d.Name]) > 0 {
			folds = append(folds, fold(d.Name+": "+string(d.Verdict), section(p, g, d)))
		}
	}
	out := fit(head.String(), rows, folds, foot, maxBytes)
	_, err := io.WriteString(w, out)
	return err
}

// fit puts together as many parts as the limit allows; rows matter more than
// folds.
func fit(head string, rows, folds []string, foot string, maxBytes int) string {
	const noteRoom = 120
	room := maxBytes - len(head) - len(foot) - noteRoom
	var b strings.Builder
	b.WriteString(head)
	take := func(parts []string, what string) {
		for i, part := range parts {
			if len(part) > room {
				fmt.Fprintf(&b, "\n%d more %s left out; see the plan file.\n", len(parts)-i, what)
				return
			}
			room -= len(part)
			b.WriteString(part)
		}
	}
	take(rows, "rows")
	b.WriteString("\n")
	take(folds, "sections")
	b.WriteString(foot)
	return b.String()
}

// section is the text form of one device, or of what is shared.
func section(_ *plan.Plan, g byDevice, d plan.DevicePlan) string {
	t := &textWriter{}
	if d.Name == "" {
		t.site(g)
	} else {
		t.device(d, g)
	}
	return strings.Trim(t.b.String(), "\n")
}

// fold hides a text behind its title. The fence is longer than any run of
// backticks in the text, so nothing in it can end the block.
func fold(title, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fmt.Sprintf("<details><summary>%s</summary>\n\n%stext\n%s\n%s\n\n</details>\n", inline(title), fence, text, fence)
}

// link leads to the device in NetBox.
func link(d plan.DevicePlan) string {
	if strings.HasPrefix(d.URL, "https://") || strings.HasPrefix(d.URL, "http://") {
		if !strings.ContainsAny(d.URL, " ()<>|") && isClean(d.URL) {
			return "[" + inline(d.Name) + "](" + d.URL + ")"
		}
	}
	return inline(d.Name)
}

func verdictWords(d plan.DevicePlan, g byDevice) string {
	for _, f := range g.faults[d.Name] {
		if f.Severity == plan.SeverityError {
			return string(d.Verdict) + ", " + string(f.Fault.Code)
		}
	}
	if d.Owned {
		return string(d.Verdict) + ", owned"
	}
	if d.UpTo {
		return string(d.Verdict) + ", up to"
	}
	return string(d.Verdict)
}

func deviceEffects(steps []*plan.Step) string {
	seen := map[plan.Effect]bool{}
	for _, s := range steps {
		if s.Blocked == nil {
			for _, e := range s.Effects {
				seen[e] = true
			}
		}
	}
	var out []plan.Effect
	for _, e := range plan.Effects() {
		if seen[e] {
			out = append(out, e)
		}
	}
	return effects(out)
}

// inline makes foreign text harmless outside a code block: no HTML, no table
// cell border, no mention, no emphasis.
func inline(s string) string {
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_",
		"[", "\\[", "]", "\\]", "@", "@\u200b", "#", "\\#", "!", "\\!", "~", "\\~",
	).Replace(Clean(s))
}
