package view

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
)

// Whatever a name holds: in DOT it is one quoted text on one line, in Mermaid
// nothing but plain characters and numbers.
func TestForeignTextIsNoGraph(t *testing.T) {
	dotText := regexp.MustCompile(`^"(?:[^"\\]|\\\\|\\"|\\n)*"$`)
	plain := regexp.MustCompile(`^(?:[a-zA-Z0-9 .,_/+-]|#[0-9]+;)*$`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\"\\\n\r\t;]}`#&<>%-|\x1b\u202e")))).Draw(t, "name")
		if got := dotLines([]string{s}); !dotText.MatchString(got) || strings.ContainsAny(got, "\n\r\x1b\u202e") {
			t.Fatalf("DOT: %q", got)
		}
		if got := mermaidText(s); !plain.MatchString(got) {
			t.Fatalf("Mermaid: %q", got)
		}
	})
}

// The parts of a graph: by device, with effects, with what is blocked.
func TestGraphForms(t *testing.T) {
	step := func(id, device, kind string, action plan.Action, effects ...plan.Effect) *plan.Step {
		return &plan.Step{ID: id, Address: plan.Address{Site: "lon14", Device: device, System: "bmc", Kind: kind}, Action: action, Effects: effects}
	}
	clean, blocked, after := step("s1", "a\"b", "clean", plan.ActionRun, plan.EffectReboot, plan.EffectErase), step("s2", "c", "ntp", plan.ActionUpdate), step("s3", "a\"b", "x", plan.ActionVerify)
	blocked.Blocked = &plan.Block{Rule: plan.RuleOwned}
	after.Needs = []string{"s1"}
	p := &plan.Plan{Steps: []*plan.Step{clean, blocked, after}, Devices: []plan.DevicePlan{{Name: "a\"b", Rack: "r1"}, {Name: "c", Owned: true, OwnedReason: "active"}}}
	var dot, mermaid strings.Builder
	if err := Dot(&dot, p); err != nil {
		t.Fatal(err)
	}
	if err := Mermaid(&mermaid, p); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`label="a\"b, rack r1";`, `n1 [label="> bmc.clean\nrun\nreboots the host\nERASES DISKS", fillcolor="#f4b6b6"`,
		`n2 [label="! bmc.ntp\nupdate, blocked: owned", `, "dashed", `label="c, held: active";`, "  n1 -> n3;\n",
	} {
		if !strings.Contains(dot.String(), part) {
			t.Errorf("DOT has no %s:\n%s", part, dot.String())
		}
	}
	for _, part := range []string{
		`subgraph g0["a#34;b, rack r1"]`, `n1["#62; bmc.clean<br/>run<br/>reboots the host<br/>ERASES DISKS"]:::erase`,
		`n2["#33; bmc.ntp<br/>update, blocked#58; owned"]:::blocked`, "  n1 --> n3\n", "classDef blocked fill:#eeeeec",
	} {
		if !strings.Contains(mermaid.String(), part) {
			t.Errorf("Mermaid has no %s:\n%s", part, mermaid.String())
		}
	}
}
