package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

type during struct{ from, to string }

func (d during) Holds(c plan.PolicyCase) (bool, error) { return c.Within(d.from, d.to, "UTC") }

// evening is a site whose policy holds in the evening only, with a plan that was
// made at noon.
func evening(action plan.PolicyAction) (*plan.Plan, *session) {
	site := &plan.Site{Name: "lon14", Policies: []plan.Policy{{Name: "evening", Action: action, Subject: plan.SubjectPlan, When: during{"18:00", "24:00"}, Owner: plan.OwnerOnsite, Text: `within("18:00", "24:00", "UTC")`, From: "site.hcl:9"}}}
	s := &session{site: site, scope: &plan.Scope{Site: site}}
	p := &plan.Plan{Steps: []*plan.Step{{ID: "s1", Address: plan.Address{Site: "lon14", Device: "gpu-001", System: "bmc", Kind: "ntp"}, Action: plan.ActionUpdate}}}
	p.Enforce(plan.JudgePolicies(p, s.scope, time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)))
	return p, s
}

func answering(stdin string) (*app, *bytes.Buffer) {
	var out bytes.Buffer
	return &app{sys: &sys{
		stdin: strings.NewReader(stdin), stdout: &out, stderr: &out, terminal: true, lookupEnv: func(string) (string, bool) { return "1", true },
		now: func() time.Time { return time.Date(2026, 12, 1, 20, 0, 0, 0, time.UTC) },
	}}, &out
}

func TestPoliciesAreAskedAgainAtApply(t *testing.T) {
	p, s := evening(plan.PolicyDeny)
	if !p.HasWork() {
		t.Fatal("blocked at noon")
	}
	a, out := answering("")
	if err := a.judgeAgain(a.sys.stdout, p, s); err != nil {
		t.Fatal(err)
	}
	if p.HasWork() || !p.Denied() || !strings.Contains(out.String(), "! evening  denies  lon14") {
		t.Errorf("work %t, denied %t:\n%s", p.HasWork(), p.Denied(), out)
	}
	// What the plan already says is not said again.
	out.Reset()
	if err := a.judgeAgain(a.sys.stdout, p, s); err != nil || strings.Contains(out.String(), "needs approval") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestApprovalAtTheTerminal(t *testing.T) {
	for _, c := range []struct {
		stdin string
		code  plan.Code // empty: approved
	}{
		{"yes\nevening\n", ""}, {"yes\nyes\n", plan.CodeNotApproved}, {"yes\n", plan.CodeNotApproved}, {"no\n", plan.CodeNotApproved},
	} {
		p, s := evening(plan.PolicyApproval)
		a, out := answering(c.stdin)
		err := a.judgeAgain(a.sys.stdout, p, s)
		if err == nil {
			err = a.approve(context.Background(), a.sys.stdout, p, applyFlags{})
		}
		if err == nil {
			err = a.approvePolicies(context.Background(), a.sys.stdout, p, applyFlags{})
		}
		if (c.code == "") != (err == nil) || c.code != "" && !errors.Is(err, c.code) {
			t.Errorf("%q: %v\n%s", c.stdin, err, out)
		}
	}
	// --auto-approve alone does not answer for a policy.
	p, s := evening(plan.PolicyApproval)
	a, _ := answering("")
	a.sys.terminal = false
	if err := a.judgeAgain(a.sys.stdout, p, s); err != nil {
		t.Fatal(err)
	}
	if err := a.approvePolicies(context.Background(), a.sys.stdout, p, applyFlags{autoApprove: true}); !errors.Is(err, plan.CodePolicyApproval) || exitCode(err) != exitDenied {
		t.Error(err)
	}
	if err := a.approvePolicies(context.Background(), a.sys.stdout, p, applyFlags{autoApprove: true, approved: []string{"evening"}}); err != nil {
		t.Error(err)
	}
}
