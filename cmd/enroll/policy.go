package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
)

// judgeAgain asks the site's policies about a reviewed plan at the moment when it
// is applied. They can only block more of it than the plan shows.
func (a *app) judgeAgain(w io.Writer, p *plan.Plan, s *session) error {
	if len(s.site.Policies) == 0 {
		return nil
	}
	before := p.Policies
	p.Enforce(plan.JudgePolicies(p, s.scope, a.sys.now()))
	var news []plan.PolicyResult
	for _, r := range p.Policies {
		if (r.Denies() || r.WantsApproval()) && !slices.ContainsFunc(before, func(old plan.PolicyResult) bool {
			return old.Policy == r.Policy && slices.Equal(old.Holds, r.Holds) && slices.Equal(old.Failed, r.Failed)
		}) {
			news = append(news, r)
		}
	}
	if len(news) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nThe policies of the site say more now than when the plan was made:\n")
	return view.Policies(w, news, a.sys.color())
}

// stillAllowed asks what depends on the time once more after people were asked,
// who may have taken long.
func (a *app) stillAllowed(w io.Writer, p *plan.Plan, s *session, f applyFlags) error {
	if err := a.checkLife(p, f); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, r := range p.ApprovalsWanted() {
		wanted[r.Policy] = true
	}
	if err := a.judgeAgain(w, p, s); err != nil {
		return err
	}
	for _, r := range p.ApprovalsWanted() {
		if !wanted[r.Policy] {
			return plan.NewFault(plan.CodePolicyApproval, "%s; it did not want to be asked when the plan was shown", r.Sentence()).Of(r).With("from", r.From)
		}
	}
	return nil
}

// checkApproved refuses what --approve cannot mean, before anybody is asked.
func checkApproved(approved []string, site *plan.Site) error {
	var names []string
	actions := map[string]plan.PolicyAction{}
	for _, policy := range site.Policies {
		names = append(names, policy.Name)
		actions[policy.Name] = policy.Action
	}
	for _, name := range approved {
		if slices.Contains(classNames(), name) {
			continue
		}
		if !slices.Contains(names, name) {
			return usageError{fmt.Errorf("--approve: %q is no class of effects (%s) and no policy of the site, which has %s", name, approvable(), orNone(names))}
		}
		switch actions[name] {
		case plan.PolicyDeny:
			return usageError{fmt.Errorf("--approve: the policy %q denies, and what it denies cannot be approved here; its owner decides about exceptions", name)}
		case plan.PolicyWarn:
			return usageError{fmt.Errorf("--approve: the policy %q only warns; nothing is to be approved", name)}
		case plan.PolicyApproval:
		}
	}
	return nil
}

// approvePolicies asks for each policy that wants approval, by its name, unless
// the command line gave it. What is approved for the whole plan does not count.
func (a *app) approvePolicies(ctx context.Context, w io.Writer, p *plan.Plan, f applyFlags) error {
	if !p.HasWork() || f.resumed != nil {
		return nil
	}
	for _, r := range p.ApprovalsWanted() {
		if slices.Contains(f.approved, r.Policy) {
			fmt.Fprintf(w, "Approved by --approve %s: %s\n", r.Policy, view.Clean(r.Sentence()))
			continue
		}
		if !a.sys.terminal {
			return plan.NewFault(plan.CodePolicyApproval, "%s", r.Sentence()).
				Of(r).With("concerns", strings.Join(r.Holds, ", ")).With("from", r.From).
				WithHint("Ask %s; nobody can be asked here. Then apply with --approve %s.", r.Owner, r.Policy)
		}
		fmt.Fprintf(w, "%s\n  concerns %s; %s decides.\nType the policy's name to approve this: ", view.Clean(r.Sentence()), strings.Join(r.Holds, ", "), r.Owner)
		if err := a.answered(ctx, r.Policy); err != nil {
			return err
		}
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
