package view

import (
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// symbol carries the meaning of a step; colour only repeats it.
func symbol(s *plan.Step) string {
	if s.Blocked != nil {
		return "!"
	}
	switch s.Action {
	case plan.ActionCreate:
		return "+"
	case plan.ActionUpdate:
		return "~"
	case plan.ActionRemove:
		return "-"
	case plan.ActionRun, plan.ActionTransition:
		return ">"
	case plan.ActionWait:
		return "…"
	case plan.ActionVerify:
		return "?"
	}
	return " "
}

// checkMark is the symbol of a verdict.
func checkMark(v plan.CheckVerdict) string {
	return map[plan.CheckVerdict]string{plan.CheckPass: "✓", plan.CheckFail: "✗", plan.CheckUnknown: "?", plan.CheckSkipped: "-"}[v]
}

// reason says in words why a step is in the plan.
func reason(s *plan.Step) string {
	switch s.Reason {
	case plan.ReasonAbsent:
		return "does not exist yet"
	case plan.ReasonDiffers:
		return "differs"
	case plan.ReasonDeferred:
		if s.Action == plan.ActionVerify {
			return "once the BMC can be reached"
		}
		return "cannot be seen yet, changed only if it differs"
	case plan.ReasonState:
		return "" // the states say it
	case plan.ReasonChanged:
		return "once " + changed(s) + " written"
	case plan.ReasonPending:
		return "an earlier run left it unfinished"
	case plan.ReasonUnproven:
		return "not proven yet"
	case plan.ReasonFailedOld:
		return "the evidence at hand fails"
	case plan.ReasonForced:
		return "asked for by the operator"
	}
	return string(s.Reason)
}

// changed names what a shared step makes live.
func changed(s *plan.Step) string {
	kinds := map[string]bool{}
	for _, b := range s.Because {
		if a, err := plan.ParseAddress(b); err == nil {
			kinds[a.KindName()] = true
		}
	}
	var names []string
	for k := range kinds {
		names = append(names, k)
	}
	sort.Strings(names)
	if len(s.Because) == 1 {
		return strings.Join(names, ", ") + " is"
	}
	return itoa(len(s.Because)) + " " + strings.Join(names, ", ") + " are"
}

var effectWords = map[plan.Effect]string{
	plan.EffectErase: "ERASES DISKS", plan.EffectReboot: "reboots the host", plan.EffectPower: "changes power",
	plan.EffectBMCReset: "resets the BMC", plan.EffectCredential: "writes a password", plan.EffectServiceRestart: "restarts or reloads a shared service",
	plan.EffectIrreversible: "cannot be undone",
}

func effects(list []plan.Effect) string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = effectWords[e]
	}
	return strings.Join(words, ", ")
}

// effectNouns name an effect where it is counted.
var effectNouns = map[plan.Effect]string{
	plan.EffectErase: "disk erase", plan.EffectReboot: "reboot", plan.EffectPower: "power change", plan.EffectBMCReset: "BMC reset",
	plan.EffectCredential: "password write", plan.EffectServiceRestart: "service restart", plan.EffectIrreversible: "irreversible step",
}

// effectSum counts effects in words, in the order in which people care.
func effectSum(sum map[plan.Effect]int) string {
	var out []string
	for _, e := range plan.Effects() {
		if n := sum[e]; n > 0 {
			out = append(out, plural(n, effectNouns[e]))
		}
	}
	return strings.Join(out, ", ")
}

func blockWords(b *plan.Block) string {
	rule := map[plan.Rule]string{
		plan.RuleOwned: "owned", plan.RuleUnsupported: "unsupported", plan.RuleNotYet: "not done by this version",
		plan.RuleForeign: "in the way", plan.RuleFailed: "device has a fault",
		plan.RulePolicy: "denied",
	}[b.Rule]
	switch b.Rule {
	case plan.RuleOwned, plan.RuleFailed:
		return "blocked, " + rule // it stands at the device's head
	case plan.RulePolicy:
		if sentence, _, ok := strings.Cut(b.Text, ": "); ok && strings.HasPrefix(sentence, "policy ") {
			return "blocked, " + rule + " by " + sentence // the rest stands with the policies
		}
		return "blocked: " + b.Text // by what it comes after
	case plan.RuleUnsupported, plan.RuleNotYet, plan.RuleForeign:
	}
	return "blocked, " + rule + ": " + b.Text
}

func sortNatural(list []string) {
	sort.Slice(list, func(i, j int) bool { return plan.NaturalLess(list[i], list[j]) })
}

// byDevice groups a plan's parts by device; "" is the site.
type byDevice struct {
	steps    map[string][]*plan.Step
	checks   map[string][]plan.Check
	observed map[string][]plan.Observation
	faults   map[string][]plan.Diagnostic
}

func group(p *plan.Plan) byDevice {
	g := byDevice{map[string][]*plan.Step{}, map[string][]plan.Check{}, map[string][]plan.Observation{}, map[string][]plan.Diagnostic{}}
	for _, s := range p.Steps {
		g.steps[s.Address.Device] = append(g.steps[s.Address.Device], s)
	}
	for _, c := range p.Checks {
		g.checks[c.Address.Device] = append(g.checks[c.Address.Device], c)
	}
	for _, o := range p.Observed {
		g.observed[o.Address.Device] = append(g.observed[o.Address.Device], o)
	}
	for _, d := range p.Diagnostics {
		g.faults[d.Device] = append(g.faults[d.Device], d)
	}
	return g
}

// headline describes a device in one line.
func headline(d plan.DevicePlan) []string {
	var parts []string
	for _, s := range []string{d.Class, d.Vendor} {
		if s != "" {
			parts = append(parts, Clean(s))
		}
	}
	if d.Rack != "" {
		parts = append(parts, "rack "+Clean(d.Rack))
	}
	switch {
	case d.IronicState != "" && d.Maintenance:
		parts = append(parts, "Ironic: "+Clean(string(d.IronicState))+", in maintenance")
	case d.IronicState != "":
		parts = append(parts, "Ironic: "+Clean(string(d.IronicState)))
	case d.Verdict != plan.VerdictFailed && d.Verdict != plan.VerdictUnreadable:
		parts = append(parts, "not in Ironic")
	}
	return parts
}
