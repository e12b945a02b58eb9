package plan

import (
	"fmt"
	"slices"
	"strings"
)

// closedLists are the words that a plan may use where a program or a person
// decides by them, by the name of their Go type. A file with another word was made
// by a version that means something which this one would not do.
func closedLists() map[string][]string {
	return map[string][]string{
		"Action":        words(Actions()...),
		"Reason":        words(ReasonAbsent, ReasonDiffers, ReasonDeferred, ReasonState, ReasonChanged, ReasonPending, ReasonUnproven, ReasonFailedOld, ReasonForced),
		"Effect":        words(Effects()...),
		"Rule":          words(RuleOwned, RuleUnsupported, RuleNotYet, RuleForeign, RuleFailed, RulePolicy),
		"DeviceVerdict": words(VerdictClean, VerdictChanges, VerdictBlocked, VerdictFailed, VerdictUnreadable),
		"CheckVerdict":  words(CheckPass, CheckFail, CheckUnknown, CheckSkipped),
		"Severity":      words(SeverityError, SeverityWarning),
		"PolicyAction":  words(PolicyActions()...),
		"PolicyOutcome": words(PolicyPasses, PolicyHolds, PolicyFailed),
		"Phase":         phaseNames[:],
	}
}

func words[T ~string](list ...T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// listChecker collects the first word that stands in no list.
type listChecker struct {
	lists map[string][]string
	err   error
}

func (c *listChecker) want(typ, word, format string, args ...any) {
	if c.err == nil && !slices.Contains(c.lists[typ], word) {
		c.err = fmt.Errorf("%s is %q, and this version knows %s", fmt.Sprintf(format, args...), word, strings.Join(c.lists[typ], ", "))
	}
}

// checkLists holds the words of a plan against the closed lists.
func checkLists(p *Plan) error {
	c := listChecker{lists: closedLists()}
	for _, d := range p.Devices {
		c.want("DeviceVerdict", string(d.Verdict), "the verdict of device %q", d.Name)
	}
	for _, s := range p.Steps {
		c.want("Action", string(s.Action), "the action of step %s (%s)", s.ID, s.Address)
		c.want("Reason", string(s.Reason), "the reason of step %s (%s)", s.ID, s.Address)
		c.want("Phase", s.Phase, "the phase of step %s (%s)", s.ID, s.Address)
		for _, e := range s.Effects {
			c.want("Effect", string(e), "an effect of step %s (%s)", s.ID, s.Address)
		}
		if s.Blocked != nil {
			c.want("Rule", string(s.Blocked.Rule), "the rule that blocks step %s (%s)", s.ID, s.Address)
		}
	}
	for _, k := range p.Checks {
		c.want("CheckVerdict", string(k.Verdict), "the verdict of %s", k.Address)
	}
	for _, d := range p.Diagnostics {
		c.want("Severity", string(d.Severity), "the severity of a diagnostic (%s)", d.Fault.Code)
	}
	for _, r := range p.Policies {
		c.want("PolicyAction", string(r.Action), "the action of policy %q", r.Policy)
		c.want("PolicyOutcome", string(r.Outcome), "the outcome of policy %q", r.Policy)
	}
	return c.err
}
