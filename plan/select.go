package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Selection narrows a plan. A pattern is a glob over addresses (Address.Match),
// or one of kind:GLOB (bmc.*), action:GLOB (transition) and effect:GLOB
// (reboot), which a step fits by what it is and does.
//
// With targets only fitting steps stay, and what they need: a step never runs
// without the steps before it, and what is written is also made live. Excludes
// come first, and take along what comes after an excluded step. So a narrowed plan
// does less than the whole one, and nothing else. Of a device that no target may
// mean, or that an exclude takes out as a whole (gpu-017/*), it says nothing, not even
// its faults.
type Selection struct {
	Targets  []string
	Excludes []string
}

// None reports whether nothing is narrowed.
func (s Selection) None() bool { return len(s.Targets)+len(s.Excludes) == 0 }

// Check refuses patterns that cannot be read, and words that no step has. The
// error names the pattern.
func (s Selection) Check() error {
	for _, pattern := range append(slices.Clone(s.Targets), s.Excludes...) {
		if err := checkStepPattern(pattern); err != nil {
			return err
		}
	}
	return nil
}

func checkStepPattern(pattern string) error {
	noGlob := fmt.Errorf("%q is no glob: a bracket is not closed, or a backslash stands at its end", pattern)
	if _, err := (Address{Site: "s", Device: "d", System: "x", Kind: "k"}).Match(pattern); err != nil {
		return noGlob
	}
	name, glob := wordPattern(pattern)
	if name == "" {
		return nil
	}
	known := map[string][]string{"kind": KindNames(), "action": words(Actions()...), "effect": words(Effects()...)}[name]
	for _, w := range known {
		switch ok, err := path.Match(glob, w); {
		case err != nil:
			return noGlob
		case ok:
			return nil
		}
	}
	return fmt.Errorf("%q fits no %s; there are %s", pattern, name, strings.Join(known, ", "))
}

// wordPattern takes a pattern over kinds, actions or effects apart; name is "" for
// one over addresses.
func wordPattern(pattern string) (name, glob string) {
	name, glob, _ = strings.Cut(pattern, ":")
	switch name {
	case "kind", "action", "effect":
		return name, glob
	}
	return "", ""
}

// IsAddressPattern tells a glob over addresses from one over kinds, actions or
// effects.
func IsAddressPattern(pattern string) bool {
	name, _ := wordPattern(pattern)
	return name == ""
}

// Fits reports whether the step fits a pattern of a Selection. A pattern that
// cannot be read fits nothing.
func (s *Step) Fits(pattern string) bool {
	name, glob := wordPattern(pattern)
	fits := func(word string) bool {
		ok, err := path.Match(glob, word)
		return err == nil && ok
	}
	switch name {
	case "kind":
		return fits(s.Address.KindName())
	case "action":
		return fits(string(s.Action))
	case "effect":
		return slices.ContainsFunc(s.Effects, func(e Effect) bool { return fits(string(e)) })
	}
	ok, err := s.Address.Match(pattern)
	return err == nil && ok
}

// about reports whether something of a device may be kept, seen only by its name: a
// target may mean it, and no exclude takes it out as a whole.
func (s Selection) about(site, device string) bool {
	for _, pattern := range s.Excludes {
		if of, local := cutPattern(pattern); local == "*" && of != "" && fitsDevice(of, site, device) {
			return false
		}
	}
	return len(s.Targets) == 0 || slices.ContainsFunc(s.Targets, func(pattern string) bool { return MayMean(pattern, site, device) })
}

// MayMean reports whether a pattern may fit something of a device, seen only by the
// device's name.
func MayMean(pattern, site, device string) bool {
	if !IsAddressPattern(pattern) {
		return true
	}
	of, _ := cutPattern(pattern)
	if of == "" {
		return true
	}
	shared, err := path.Match(of, site) // what the site's devices share is of each of them
	return err == nil && shared || fitsDevice(of, site, device)
}

// cutPattern takes a glob over addresses apart: the part before SYSTEM.KIND[KEY],
// "" where it has none, and that.
func cutPattern(pattern string) (of, local string) {
	whole, _, _ := strings.Cut(pattern, "[")
	at := strings.LastIndexByte(whole, '/')
	return pattern[:max(at, 0)], pattern[at+1:]
}

// fitsDevice matches DEVICE or SITE/DEVICE.
func fitsDevice(of, site, device string) bool {
	for _, name := range []string{device, site + "/" + device} {
		if ok, err := path.Match(of, name); err == nil && ok {
			return true
		}
	}
	return false
}

func (s *Step) fitting(patterns []string) (string, bool) {
	for _, p := range patterns {
		if s.Fits(p) {
			return p, true
		}
	}
	return "", false
}

// Drawn is a step that a selection took along, or left out.
type Drawn struct {
	Address Address `json:"address"`
	// Pattern is the one that the step fits, where it was excluded itself.
	Pattern string `json:"pattern,omitempty"`
	// By is the step that needs it; of one that is left out, the step that it needs.
	By Address `json:"by,omitzero"`
}

// Select derives a smaller plan: what Build would have made with that selection,
// as far as a document can tell. What a policy denied stays denied, also where
// the smaller plan would pass it; apply asks the policies again. Created and
// Expires stay, because the world was not read again. The caller gives the plan
// its own id. The error says what is wrong with the selection.
func (p *Plan) Select(sel Selection) (*Plan, error) {
	if err := sel.Check(); err != nil {
		return nil, err
	}
	if len(p.Scope.Targets) > 0 && len(sel.Targets) > 0 {
		return nil, fmt.Errorf("the plan was narrowed to %s before; select from the whole plan", strings.Join(p.Scope.Targets, ", "))
	}
	if len(sel.Targets) == 0 {
		sel.Targets = p.Scope.Targets // what only an excluded step needed goes with it
	}
	out := *p
	out.PlanID, out.Seal = "", ""
	out.Steps, out.Devices, out.Checks = nil, slices.Clone(p.Devices), slices.Clone(p.Checks)
	for _, s := range p.Steps {
		c := *s
		c.Needs, c.Serves, c.Because = slices.Clone(s.Needs), slices.Clone(s.Serves), slices.Clone(s.Because)
		out.Steps = append(out.Steps, &c)
	}
	out.narrow(sel)
	if err := out.CheckSelection(); err != nil {
		return nil, err
	}
	out.link()
	out.judgeDevices()
	out.forgetSubjects()
	out.Recount()
	out.takeHash()
	return &out, nil
}

// CheckSelection refuses a selection that contradicts itself: a target of which
// excludes leave nothing.
func (p *Plan) CheckSelection() error {
	if len(p.Scope.Unmet) == 0 {
		return nil
	}
	return fmt.Errorf("%s without %s leaves nothing: every step that the one asks for is taken out by the other, or comes after one that is",
		strings.Join(p.Scope.Unmet, " or "), strings.Join(p.Scope.Excludes, " and "))
}

// link tells each check after which step it runs.
func (p *Plan) link() {
	byAddress := map[Address]string{}
	for _, s := range p.Steps {
		if s.Action == ActionVerify && s.Blocked == nil {
			byAddress[s.Address] = s.ID
		}
	}
	for i, c := range p.Checks {
		p.Checks[i].After = byAddress[c.Address]
	}
}

// judgeDevices gives the devices that have no fault the verdict of their steps.
func (p *Plan) judgeDevices() {
	runs, blocked := map[string]bool{}, map[string]bool{}
	for _, s := range p.Steps {
		switch {
		case s.Blocked != nil:
			blocked[s.Address.Device] = true
		case s.Address.Shared():
			for _, name := range s.Serves {
				runs[name] = true
			}
		default:
			runs[s.Address.Device] = true
		}
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		switch {
		case d.Verdict == VerdictFailed || d.Verdict == VerdictUnreadable:
		case runs[d.Name]:
			d.Verdict = VerdictChanges
		case blocked[d.Name]:
			d.Verdict = VerdictBlocked
		default:
			d.Verdict = VerdictClean
		}
	}
}

// forgetSubjects takes out of the policies' results what the plan has no step of
// any more, and the warnings about it.
func (p *Plan) forgetSubjects() {
	there := map[string]bool{}
	for _, s := range p.Steps {
		there[s.Address.Site], there[s.Address.String()] = true, true
		there[s.Address.Site+"/"+s.Address.Device] = true
		for _, name := range s.Serves {
			there[s.Address.Site+"/"+name] = true
		}
	}
	gone := func(subject string) bool { return !there[subject] }
	p.Policies = slices.Clone(p.Policies)
	for i := range p.Policies {
		r := &p.Policies[i]
		r.Holds, r.Failed = slices.DeleteFunc(slices.Clone(r.Holds), gone), slices.DeleteFunc(slices.Clone(r.Failed), gone)
		switch {
		case len(r.Failed) > 0:
			r.Outcome = PolicyFailed
		case len(r.Holds) > 0:
			r.Outcome, r.Error = PolicyHolds, ""
		default:
			r.Outcome, r.Error = PolicyPasses, ""
		}
	}
	p.Diagnostics = slices.DeleteFunc(slices.Clone(p.Diagnostics), func(d Diagnostic) bool {
		return d.Fault.Code == CodePolicyWarning && gone(d.Fault.Evidence["concerns"])
	})
}
