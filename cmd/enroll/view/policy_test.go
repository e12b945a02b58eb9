package view

import (
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// results are one policy of each outcome, with words that try to steer a terminal
// and a table.
func results() []plan.PolicyResult {
	return []plan.PolicyResult{
		{Policy: "a", Action: plan.PolicyDeny, Outcome: plan.PolicyHolds, Holds: []string{"lon14/gpu-001", "lon14/gpu-002"}, Owner: plan.OwnerInfra, Message: "not | now\x1b[2J", Condition: "x", From: "site.hcl:9"},
		{Policy: "b", Action: plan.PolicyWarn, Outcome: plan.PolicyFailed, Failed: []string{"lon14"}, Error: "no such field", Owner: plan.OwnerOnsite, Condition: "y", From: "site.hcl:12"},
		{Policy: "c", Action: plan.PolicyApproval, Outcome: plan.PolicyHolds, Holds: []string{"lon14"}, Owner: plan.OwnerNetBox, Condition: "z", From: "site.hcl:15"},
		{Policy: "d", Action: plan.PolicyWarn, Outcome: plan.PolicyHolds, Holds: []string{"lon14"}, Owner: plan.OwnerInfra, Condition: "v", From: "site.hcl:18"},
		{Policy: "e", Action: plan.PolicyDeny, Outcome: plan.PolicyPasses, Owner: plan.OwnerInfra, Condition: "w", From: "site.hcl:21"},
	}
}

func TestPolicies(t *testing.T) {
	p := &plan.Plan{Policies: results(), Observed: []plan.Observation{{Address: plan.Address{Site: "lon14", System: "dhcp", Kind: "service"}, Rule: plan.RuleTolerated, Text: "known", Want: plan.Null, Live: plan.Null}}}
	var b strings.Builder
	if err := Text(&b, p, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"! a  denies  lon14/gpu-001, lon14/gpu-002\n      not | now", "! b  denies, because it cannot be decided  lon14\n      cannot be decided: no such field\n      y, owner ONSITE (site.hcl:12)",
		"! c  needs approval, --approve c  lon14\n      z, owner NETBOX", "! d  warns  lon14", "✓ 1 policy passes", "dhcp.service", "tolerated: known",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("a policy's words steer the terminal")
	}
	b.Reset()
	if err := Markdown(&b, p, MaxMarkdown); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `| a | denies | lon14/gpu-001, lon14/gpu-002 | not \| now`) || strings.Contains(b.String(), "| e |") {
		t.Errorf("%s", b.String())
	}
}
