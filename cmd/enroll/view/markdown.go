package view

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// MaxMarkdown is the largest comment that the usual forges accept, in bytes.
const MaxMarkdown = 65536

// MinMarkdown is the smallest limit that the head of a plan fits into.
const MinMarkdown = 2048

// Markdown writes a plan as one comment of a merge request: the summary first,
// a row per device that is not as wanted, details folded. It never grows beyond
// maxBytes, which is at least MinMarkdown: whole rows and whole devices are left
// out at the end, and counted. Devices with faults come first.
func Markdown(w io.Writer, p *plan.Plan, maxBytes int) error {
	var head strings.Builder
	fmt.Fprintf(&head, "### enroll plan for site %s\n\n**%s**\n\n", inline(cut(p.Scope.Site, 100)), p.Summary)
	if n := len(p.Errors()); n > 0 {
		fmt.Fprintf(&head, "> This plan is incomplete: %s. Nothing will be done to the devices concerned.\n\n", plural(n, "fault"))
	}
	if line := idle(p); line != "" {
		head.WriteString(line + "\n\n")
	}
	for _, line := range effectLines(p.Summary) {
		head.WriteString(line + "\n\n")
	}
	foot := fmt.Sprintf("Content `%s`, valid until %s.\n", p.ContentHash, p.Expires.UTC().Format("2006-01-02 15:04 UTC"))

	g := group(p)
	f := fitter{room: maxBytes - head.Len() - len(foot), where: "the plan file"}
	f.take("policies", policyTable(p.Policies))
	switch lines := narrowed(p, false); len(lines) {
	case 0:
	case 1:
		f.take("notes on the selection", []string{inline(lines[0]) + "\n\n"})
	default:
		f.take("notes on the selection", []string{fold(lines[0], strings.Join(lines[1:], "\n"))})
	}
	devices := slices.Clone(p.Devices)
	slices.SortStableFunc(devices, func(a, b plan.DevicePlan) int { return grave(b) - grave(a) })
	rows := []string{"| device | verdict | steps | effects |\n|---|---|---|---|\n"}
	var folds []string // the first may be the site's
	if text := section(g, plan.DevicePlan{}); text != "" {
		folds = append(folds, fold(sharedWords(g), text))
	}
	quiet, left := 0, 0
	for _, d := range devices {
		if unremarkable(d, g) {
			if d.LeftOut > 0 {
				left++
			} else {
				quiet++
			}
			continue
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %d | %s |\n", link(d), verdictWords(d, g), len(g.steps[d.Name]), inline(effectSum(d.Effects))))
		folds = append(folds, fold(d.Name+": "+verdict(d), section(g, d)))
	}
	if len(rows) > 1 {
		f.take("devices", append(rows, "\n"))
	}
	if quiet > 0 {
		f.take("", []string{plural(quiet, "device") + " as wanted.\n\n"})
	}
	if left > 0 {
		f.take("", []string{plural(left, "device") + " with all steps left out by the selection.\n\n"})
	}
	if p.HasWork() {
		f.take("", []string{inline(strings.Join(legendOf(p), ", ")) + "\n\n"})
	}
	if racks := rackRows(p); len(p.Racks) > 1 && len(racks) > 1 {
		f.take("notes on racks", []string{fold("by rack", rackText(racks))})
	}
	f.take("sections", folds)
	_, err := io.WriteString(w, head.String()+f.b.String()+foot)
	return err
}

// grave orders devices: what needs a person comes before what will run.
func grave(d plan.DevicePlan) int {
	switch d.Verdict {
	case plan.VerdictFailed, plan.VerdictUnreadable:
		return 2
	case plan.VerdictBlocked:
		return 1
	case plan.VerdictChanges, plan.VerdictClean:
	}
	return 0
}

func rackText(rows [][]string) string {
	t := &textWriter{}
	t.rows(rows)
	return strings.TrimRight(t.b.String(), "\n")
}

// fitter puts together as many parts as a limit allows.
type fitter struct {
	b     strings.Builder
	room  int
	where string // what is left out can be read
}

// take adds parts, whole ones only; those that find no room are counted. Each call
// keeps back what its note would take.
func (f *fitter) take(what string, parts []string) {
	const noteRoom = 80
	for i, part := range parts {
		if len(part) > f.room-noteRoom {
			note := fmt.Sprintf("%d more %s left out; see %s.\n\n", len(parts)-i, what, f.where)
			if f.b.Len() > 0 && !strings.HasSuffix(f.b.String(), "\n\n") {
				note = "\n" + note
			}
			if what != "" && len(note) <= f.room {
				f.room -= len(note)
				f.b.WriteString(note)
			}
			return
		}
		f.room -= len(part)
		f.b.WriteString(part)
	}
}

// section is the text form of one device, or of what is shared.
func section(g byDevice, d plan.DevicePlan) string {
	t := &textWriter{}
	if d.Name == "" {
		t.shared(g)
	} else {
		t.device(d, g)
	}
	return strings.Trim(t.b.String(), "\n")
}

// sharedWords are the title of what the devices share, with what it does to them all.
func sharedWords(g byDevice) string {
	sum := map[plan.Effect]int{}
	for _, s := range g.steps[""] {
		if s.Blocked == nil {
			for _, e := range s.Effects {
				sum[e]++
			}
		}
	}
	return strings.TrimSuffix(sharedTitle+": "+effectSum(sum), ": ")
}

// fold hides a text behind its title.
func fold(title, text string) string {
	return fmt.Sprintf("<details><summary>%s</summary>\n\n%s\n</details>\n\n", inHTML(title), fence(text))
}

// fence is a text as it stands. The fence is longer than any run of backticks in
// the text, so nothing in it can end the block.
func fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + "text\n" + strings.TrimSuffix(text, "\n") + "\n" + mark + "\n"
}

// noMention keeps forges from taking a text for the name of somebody who is told.
const noMention = "@\u200b"

// inHTML makes foreign text harmless inside an HTML element, where Markdown is not
// read.
func inHTML(s string) string {
	return strings.NewReplacer("@", noMention).Replace(html.EscapeString(Clean(s)))
}

// plainURL is what needs no escaping as the target of a link.
var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9.:_~/%?=&+-]+$`)

// link leads to the device in NetBox.
func link(d plan.DevicePlan) string {
	if plainURL.MatchString(d.URL) {
		return "[" + inline(d.Name) + "](" + d.URL + ")"
	}
	return inline(d.Name)
}

func verdictWords(d plan.DevicePlan, g byDevice) string {
	if words := faultWords(d, g); words != "" {
		return verdict(d) + ", " + inline(words)
	}
	if d.Owned {
		return verdict(d) + ", owned"
	}
	if d.UpTo {
		return verdict(d) + ", up to"
	}
	return verdict(d)
}

// inline makes foreign text harmless outside a code block: no HTML, no table
// cell border, no mention, no reference, no emphasis, no formula.
func inline(s string) string {
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_",
		"[", "\\[", "]", "\\]", "@", noMention, "#", "\\#", "!", "\\!", "~", "\\~", "$", "\\$",
	).Replace(Clean(s))
}
