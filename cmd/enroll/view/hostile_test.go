package view

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
)

// withText is a plan in which a text stands wherever somebody else's words can.
func withText(text string, devices int) *plan.Plan {
	p := &plan.Plan{
		ContentHash: "sha256:0", Tool: plan.Tool{Version: text}, Expires: time.Unix(0, 0),
		Scope:    plan.ScopeRecord{Site: text, Targets: []string{text}, Excludes: []string{text}},
		Policies: []plan.PolicyResult{{Policy: text, Action: plan.PolicyDeny, Outcome: plan.PolicyFailed, Holds: []string{text}, Failed: []string{text}, Error: text, Message: text, Condition: text, From: text, Owner: plan.Owner(text)}},
	}
	value := plan.Obj(map[string]plan.Value{
		text: plan.Str(text), "file": plan.Str("a\n" + text + "\n"), "nics": plan.Strs(text, text),
		"disks": plan.Strs(), "keyed": plan.Obj(map[string]plan.Value{text: plan.Null}),
	})
	for i := range devices {
		name := text
		if i > 0 {
			name += itoa(i)
		}
		a := plan.Address{Site: text, Device: name, System: "bmc", Kind: text, Key: text}
		fault := plan.NewFault(plan.CodeBMCUnreachable, "%s", text).With(text, text).WithHint("%s", text).Because(plan.NewFault(plan.Code(text), "%s", text))
		p.Devices = append(p.Devices, plan.DevicePlan{Name: name, URL: "https://netbox.example.net/" + text, Class: text, Rack: text, Vendor: text, IronicState: plan.ProvisionState(text), Owned: true, OwnedReason: text, Verdict: plan.VerdictFailed, UpTo: true})
		p.Steps = append(p.Steps,
			&plan.Step{ID: "s1", Address: a, Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Because: []string{text}, Effects: []plan.Effect{plan.EffectErase}, From: []string{text + `: secret("` + text + `", "f")`}, Sensitive: true, Before: plan.Obj(map[string]plan.Value{"file": plan.Str("b\n")}), After: value},
			&plan.Step{ID: "s2", Address: a, Action: plan.ActionRun, Reason: plan.ReasonDiffers, Blocked: &plan.Block{Rule: plan.RuleForeign, Text: text}, Serves: []string{text}, Before: plan.Null, After: plan.Str(text)},
			&plan.Step{ID: "s3", Address: plan.Address{Site: text, System: "dhcp", Kind: "service"}, Action: plan.ActionRun, Reason: plan.ReasonChanged, Because: []string{text}, Serves: []string{text}, Before: plan.Null, After: plan.Null})
		p.Checks = append(p.Checks, plan.Check{Address: plan.Address{Site: text, Device: name, System: "check", Kind: "lldp", Key: text}, Verdict: plan.CheckFail, Expected: text, Observed: text, Text: text})
		p.Observed = append(p.Observed, plan.Observation{Address: a, Rule: text, Text: text, Want: value, Live: plan.Str(text)})
		p.Diagnostics = append(p.Diagnostics, plan.Diagnostic{Severity: plan.SeverityError, Device: name, Fault: fault}, plan.Diagnostic{Severity: plan.SeverityWarning, Fault: fault})
	}
	p.Recount()
	return p
}

// hostile are texts that try to steer a terminal, end a cell, a fence or an
// element, to call somebody, or to turn the direction of writing.
func hostile() *rapid.Generator[string] {
	pieces := []string{
		"\x1b[2J", "\x1b]8;;https://evil.example\x07", "\u009b31m", "\u202e", "\u2066", "\u200f", "\u2028", "\r", "\n", "\x00", "\x7f", "\xff", "\ue000",
		"`", "```", "````````", "~~~", "|", "\\|", "\\", "\\\\|", "<", ">", "</details>", "<script>", "<!--", "-->", "]]>", "&lt;", "&", "&#124;",
		"@everyone", "@", "#1", "!2", "[a](https://evil.example)", "![](x)", "*", "**", "_", "__", "$$x$$", "$", "\n\n# h\n", "\n- x\n", "\n|a|b|\n|-|-|\n", "  ", "\t", "a", "eth0", "漢", "é", ": secret(", `"`,
	}
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6), func(l []string) string { return strings.Join(l, "") })
}

// What stands in a value never reaches the terminal as anything but a picture of
// itself.
func TestTextShowsHostileValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, width := hostile().Draw(t, "text"), rapid.SampledFrom([]int{0, 60, 100}).Draw(t, "width")
		var b strings.Builder
		p := withText(text, rapid.IntRange(1, 6).Draw(t, "devices"))
		if err := Text(&b, p, TextOptions{Width: width, Full: rapid.Bool().Draw(t, "full")}); err != nil {
			t.Fatal(err)
		}
		shownOnly(t, b.String())
		if !strings.HasSuffix(b.String(), "\n"+p.Summary.String()+"\n") {
			t.Fatalf("the last line is not the summary:\n%s", b.String())
		}
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

func shownOnly(t failer, out string) {
	for _, r := range strings.ReplaceAll(out, noMention, "@") {
		if r != '\n' && plan.Invisible(r) || r == unicode.ReplacementChar {
			t.Fatalf("%U reaches the reader:\n%q", r, out)
		}
	}
}

var tag = regexp.MustCompile(`<[^>]*>`)

// skeleton is what a forge makes of a page: its elements without their content.
func skeleton(t failer, page string) []string {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	var b bytes.Buffer
	if err := md.Convert([]byte(page), &b); err != nil {
		t.Fatalf("%v", err)
	}
	return slices.DeleteFunc(tag.FindAllString(b.String(), -1), func(s string) bool {
		// Addresses that a forge makes links of by itself lead where they say.
		return strings.HasPrefix(s, "<a ") || s == "</a>"
	})
}

// A page has the same elements whatever stands in the values: nothing breaks out of
// its cell, its fence or its fold, nobody is called, and it never grows beyond its
// limit.
func TestMarkdownHoldsHostileValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, devices := hostile().Draw(t, "text"), rapid.IntRange(1, 6).Draw(t, "devices")
		page := func(text string) string {
			var b strings.Builder
			if err := Markdown(&b, withText(text, devices), 1<<20); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		got := page(text)
		shownOnly(t, got)
		if d := cmp.Diff(skeleton(t, page("plain")), skeleton(t, got)); d != "" {
			t.Fatalf("%q breaks out: -plain +hostile\n%s\n%s", text, d, got)
		}
		if outside := outsideFences(got); strings.Contains(strings.ReplaceAll(outside, noMention, ""), "@") {
			t.Fatalf("somebody is called:\n%s", outside)
		}
	})
}

func outsideFences(page string) string {
	var out []string
	fence := ""
	for _, l := range strings.Split(page, "\n") {
		switch {
		case fence != "":
			if l == fence {
				fence = ""
			}
		case strings.HasPrefix(l, "```"):
			fence = strings.TrimSuffix(l, "text")
		default:
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func TestMarkdownKeepsItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, devices := rapid.IntRange(MinMarkdown, 20000).Draw(t, "limit"), rapid.IntRange(1, 60).Draw(t, "devices")
		p := withText(hostile().Draw(t, "text"), devices)
		var b strings.Builder
		if err := Markdown(&b, p, limit); err != nil {
			t.Fatal(err)
		}
		if b.Len() > limit {
			t.Fatalf("%d bytes, limit %d", b.Len(), limit)
		}
		if !strings.Contains(b.String(), p.Summary.String()) || !strings.Contains(b.String(), "Content `sha256:0`") {
			t.Fatal("the summary or the content hash is missing")
		}
		if folds := strings.Count(b.String(), "</summary>"); folds < devices+1 && !strings.Contains(b.String(), "left out; see the plan file") {
			t.Fatalf("%d of %d devices are shown and nothing says so:\n%s", folds, devices, b.String())
		}
	})
}

// JSON says the same as the values, and shows what is invisible in them.
func TestJSONHoldsHostileValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := withText(hostile().Draw(t, "text"), 1)
		var document, lines bytes.Buffer
		if err := JSON(&document, p.Policies); err != nil {
			t.Fatalf("%v", err)
		}
		shownOnly(t, document.String())
		s := NewStream(&lines, func() time.Time { return time.Unix(0, 0) })
		s.Event(plan.Event{Kind: plan.EventEnd, Text: p.Scope.Site, Step: p.Steps[0], Fault: p.Diagnostics[0].Fault})
		if err := s.Plan(p); err != nil {
			t.Fatalf("%v", err)
		}
		shownOnly(t, lines.String())
	})
}
