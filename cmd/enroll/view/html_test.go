package view

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
)

// Whatever a system answers: it stands in the page as text. What is left when the
// page's own tags are taken out has no angle bracket, and every link leads to a
// place on the page or over HTTP.
func TestForeignTextIsNoMarkup(t *testing.T) {
	tag := regexp.MustCompile(`</?(?:html|head|body|title|h1|h2|p|dl|dt|dd|table|tr|th|td|details|summary|pre|span|a)(?: [a-z]+(?:="[^"<>]*")?)*>`)
	href := regexp.MustCompile(`href="([^"]*)"`)
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("<>&\"'`=/\x1b[31m\u202e\n")))).Draw(t, "text")
		hostile := rapid.SampledFrom([]string{foreign, "</pre><script>alert(1)</script>", "\x1b[31m<b>\x1b[0m", `" onmouseover="x`, "javascript:alert(1)"}).Draw(t, "value")
		device := plan.DevicePlan{Name: hostile, URL: hostile, Rack: hostile, Vendor: hostile, Class: hostile, Owned: true, OwnedReason: hostile, Verdict: plan.VerdictChanges}
		p := &plan.Plan{
			Scope: plan.ScopeRecord{Site: hostile, Targets: []string{hostile}}, Devices: []plan.DevicePlan{device, {Name: "other", Rack: "r2", URL: "https://netbox.example.net/" + hostile}},
			Steps: []*plan.Step{{
				ID: "s1", Address: plan.Address{Site: hostile, Device: hostile, System: "bmc", Kind: "ntp", Key: hostile}, Action: plan.ActionUpdate, Effects: []plan.Effect{plan.EffectReboot},
				Before: plan.Obj(map[string]plan.Value{hostile: plan.Str(hostile)}), After: plan.Obj(map[string]plan.Value{"x": plan.Str(hostile + "\n" + hostile)}), From: []string{hostile},
			}},
			Checks:      []plan.Check{{Address: plan.Address{Site: hostile, Device: hostile, System: "check", Kind: "lldp"}, Verdict: plan.CheckFail, Expected: hostile, Observed: hostile, Text: hostile}},
			Diagnostics: []plan.Diagnostic{{Severity: plan.SeverityError, Device: hostile, Fault: plan.NewFault(plan.CodeInternal, "%s", hostile).With(hostile, hostile)}},
			Policies:    []plan.PolicyResult{{Policy: hostile, Action: plan.PolicyDeny, Outcome: plan.PolicyHolds, Holds: []string{hostile}, Message: hostile, Condition: hostile, From: hostile}},
		}
		p.Recount()
		var b strings.Builder
		if err := HTML(&b, p); err != nil {
			t.Fatal(err)
		}
		_, body, found := strings.Cut(b.String(), "</style>")
		if !found {
			t.Fatal("no style")
		}
		if rest := tag.ReplaceAllString(body, ""); strings.ContainsAny(rest, "<>\x1b\u202e") {
			t.Fatalf("foreign markup:\n%s", rest)
		}
		for _, m := range href.FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(m[1], "#d") && !strings.HasPrefix(m[1], "http") {
				t.Fatalf("a link to %s", m[1])
			}
		}
	})
}
