package plan

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

// PolicyAction is what happens when a policy's condition holds.
type PolicyAction string

// The actions of a policy, in the words of the site file.
const (
	PolicyDeny     PolicyAction = "deny"             // the steps concerned are blocked
	PolicyWarn     PolicyAction = "warn"             // a warning stands in the plan
	PolicyApproval PolicyAction = "require_approval" // apply asks, also with --auto-approve
)

// PolicyActions lists the actions.
func PolicyActions() []PolicyAction { return []PolicyAction{PolicyDeny, PolicyWarn, PolicyApproval} }

// PolicySubject is what a condition is asked about, one by one. It follows from
// what the condition refers to: step.* makes it a question about every step,
// device.* alone one about every device, neither of them one about the plan.
type PolicySubject string

// The subjects.
const (
	SubjectPlan   PolicySubject = "plan"
	SubjectDevice PolicySubject = "device"
	SubjectStep   PolicySubject = "step"
)

// Condition is the compiled expression of a policy.
type Condition interface {
	// Holds evaluates the expression for one case. An error means that it cannot
	// be decided: it fails, or it depends on something that is not known.
	Holds(PolicyCase) (bool, error)
}

// Policy is a rule of the site over plans.
type Policy struct {
	Name    string
	Action  PolicyAction
	Subject PolicySubject
	// UsesDevice says that the condition refers to device.*. A step that several
	// devices share is then judged once for each of them.
	UsesDevice bool
	When       Condition
	Text       string // the expression as it is written
	Owner      Owner  // who decides about exceptions
	Message    string // for the person who meets it; empty: none
	From       string // file:line
}

// PolicyCase is what a condition is asked about. Its methods are the functions
// of the language; each looks at Steps only.
type PolicyCase struct {
	Steps  []*Step   // of the subject, without blocked ones
	Step   *Step     // nil unless the subject is a step
	Target *Target   // nil unless the condition refers to device.*
	Now    time.Time // when the plan is made, or applied
}

// PolicyOutcome is what a policy came to.
type PolicyOutcome string

// The outcomes.
const (
	PolicyPasses PolicyOutcome = "passes" // the condition holds for nothing
	PolicyHolds  PolicyOutcome = "holds"
	PolicyFailed PolicyOutcome = "failed" // it cannot be decided for something, which denies whatever the action is
)

// PolicyResult is what one policy says about one plan. Subjects are named by
// their addresses: SITE, SITE/DEVICE, or the address of a step.
type PolicyResult struct {
	Policy    string        `json:"policy"`
	Action    PolicyAction  `json:"action"`
	Outcome   PolicyOutcome `json:"outcome"`
	Holds     []string      `json:"holds"`           // subjects for which the condition holds
	Failed    []string      `json:"failed"`          // subjects for which it cannot be decided: they are denied
	Error     string        `json:"error,omitempty"` // why, for the first of them
	Owner     Owner         `json:"owner"`
	Message   string        `json:"message,omitempty"`
	Condition string        `json:"condition"`
	From      string        `json:"from"`
}

// denied are the subjects that the result denies.
func (r PolicyResult) denied() []string {
	if r.Action == PolicyDeny {
		return append(append([]string(nil), r.Holds...), r.Failed...)
	}
	return r.Failed
}

// Denies reports whether the result denies anything.
func (r PolicyResult) Denies() bool { return len(r.denied()) > 0 }

// WantsApproval reports whether apply has to ask.
func (r PolicyResult) WantsApproval() bool { return r.Action == PolicyApproval && len(r.Holds) > 0 }

// Sentence says in one sentence what the policy holds against its subjects.
func (r PolicyResult) Sentence() string {
	if len(r.Failed) > 0 {
		return fmt.Sprintf("policy %s: it cannot be decided, which denies: %s", r.Policy, r.Error)
	}
	if r.Message != "" {
		return fmt.Sprintf("policy %s: %s", r.Policy, r.Message)
	}
	return fmt.Sprintf("policy %s: %s", r.Policy, r.Condition)
}

// JudgePolicies asks the policies of the plan's site about the plan. What is
// blocked already is no part of the question, and a subject without a step that
// could run is not asked about. It is pure.
func JudgePolicies(p *Plan, sc *Scope, now time.Time) []PolicyResult {
	var out []PolicyResult
	for _, policy := range sc.Site.Policies {
		r := PolicyResult{
			Policy: policy.Name, Action: policy.Action, Outcome: PolicyPasses, Owner: policy.Owner,
			Message: policy.Message, Condition: policy.Text, From: policy.From, Holds: []string{}, Failed: []string{},
		}
		for _, c := range cases(policy, p, sc) {
			c.Now = now
			holds, err := policy.When.Holds(c.PolicyCase)
			switch {
			case err != nil:
				if r.Error == "" {
					r.Error = err.Error()
				}
				r.Outcome, r.Failed = PolicyFailed, append(r.Failed, c.name)
			case holds:
				r.Holds = append(r.Holds, c.name)
				if r.Outcome == PolicyPasses {
					r.Outcome = PolicyHolds
				}
			}
		}
		r.Holds, r.Failed = distinct(r.Holds), distinct(r.Failed)
		out = append(out, r)
	}
	return out
}

// namedCase is a case with the address of its subject.
type namedCase struct {
	PolicyCase
	name string
}

// cases lists what a policy is asked about, in the plan's order.
func cases(policy Policy, p *Plan, sc *Scope) []namedCase {
	var runs []*Step
	for _, s := range p.Steps {
		if s.Blocked == nil {
			runs = append(runs, s)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	var out []namedCase
	switch policy.Subject {
	case SubjectPlan:
		out = append(out, namedCase{PolicyCase{Steps: runs}, sc.Site.Name})
	case SubjectDevice:
		for _, t := range sc.Targets {
			var own []*Step
			for _, s := range runs {
				if concerns(s, t.Name()) {
					own = append(own, s)
				}
			}
			if len(own) > 0 {
				out = append(out, namedCase{PolicyCase{Steps: own, Target: t}, sc.Site.Name + "/" + t.Name()})
			}
		}
	case SubjectStep:
		for _, s := range runs {
			one := PolicyCase{Steps: []*Step{s}, Step: s}
			if !policy.UsesDevice {
				out = append(out, namedCase{one, s.Address.String()})
				continue
			}
			for _, t := range sc.Targets {
				if concerns(s, t.Name()) {
					one.Target = t
					out = append(out, namedCase{one, s.Address.String()})
				}
			}
		}
	}
	return out
}

// concerns reports whether a step is the device's own or serves it.
func concerns(s *Step, device string) bool {
	if !s.Address.Shared() {
		return s.Address.Device == device
	}
	for _, name := range s.Serves {
		if name == device {
			return true
		}
	}
	return false
}

// Enforce blocks what the results deny: the steps of the subjects, and every
// step that would come after a blocked one. A step that devices share is blocked
// when it is denied itself, or when no device that it serves is left. It records
// the results in the plan and counts anew; it never unblocks anything.
func (p *Plan) Enforce(results []PolicyResult) {
	p.Policies = stillDenied(p.Policies, results)
	for _, r := range results {
		denied := map[string]bool{}
		for _, name := range r.denied() {
			denied[name] = true
		}
		if len(denied) == 0 {
			continue
		}
		for _, s := range p.Steps {
			device := s.Address.Site + "/" + s.Address.Device
			if s.Blocked == nil && (denied[s.Address.Site] || denied[device] || denied[s.Address.String()]) {
				s.Blocked = &Block{Rule: RulePolicy, Text: r.Sentence()}
			}
		}
	}
	p.blockDependents()
	p.Recount()
}

// stillDenied carries over what was denied before: it is blocked, so the policies
// were not asked about it again.
func stillDenied(before, now []PolicyResult) []PolicyResult {
	out := append([]PolicyResult(nil), now...)
	for i, r := range out {
		for _, old := range before {
			if old.Policy != r.Policy || !old.Denies() {
				continue
			}
			if old.Action == PolicyDeny {
				out[i].Holds = distinct(append(append([]string{}, old.Holds...), r.Holds...))
			}
			out[i].Failed = distinct(append(append([]string{}, old.Failed...), r.Failed...))
			out[i].Outcome = PolicyHolds
			if len(out[i].Failed) > 0 {
				out[i].Outcome = PolicyFailed
			}
			if r.Error == "" {
				out[i].Error = old.Error
			}
		}
	}
	return out
}

// blockDependents goes on until nothing changes: what waits for a step that a
// policy blocks is blocked with it.
func (p *Plan) blockDependents() {
	byID := map[string]*Step{}
	for _, s := range p.Steps {
		byID[s.ID] = s
	}
	for changed := true; changed; {
		changed = false
		for _, s := range p.Steps {
			if s.Blocked != nil {
				continue
			}
			if block := p.dependentBlock(s, byID); block != nil {
				s.Blocked, changed = block, true
			}
		}
	}
	for _, s := range p.Steps {
		s.Needs = without(s.Needs, func(id string) bool {
			return byID[id] != nil && byID[id].Blocked != nil && byID[id].Blocked.Rule == RulePolicy && s.Blocked == nil
		})
	}
}

// dependentBlock says why a step cannot run any more, or nil.
func (p *Plan) dependentBlock(s *Step, byID map[string]*Step) *Block {
	if s.Address.Shared() {
		return p.nobodyLeft(s, byID)
	}
	for _, id := range s.Needs {
		if n := byID[id]; n != nil && n.Blocked != nil && n.Blocked.Rule == RulePolicy {
			return comesAfter(root(n, s.Address.Device, byID))
		}
	}
	return nil
}

// root is the step for which a denied one cannot run: the first denied one of the
// device that it comes after, through others, or itself.
func root(s *Step, device string, byID map[string]*Step) *Step {
	for _, id := range s.Needs {
		n := byID[id]
		if n != nil && n.Blocked != nil && n.Blocked.Rule == RulePolicy && (n.Address.Shared() || n.Address.Device == device) {
			return root(n, device, byID)
		}
	}
	return s
}

// comesAfter blocks what waits for a denied step. What the policy says stands once,
// with that step.
func comesAfter(denied *Step) *Block {
	after := "it comes after " + denied.Address.Local()
	if by, _, _ := strings.Cut(denied.Blocked.Text, ": "); strings.HasPrefix(by, "policy ") {
		return &Block{Rule: RulePolicy, Text: after + ", denied by " + by}
	}
	return &Block{Rule: RulePolicy, Text: after + ", which is denied: " + denied.Blocked.Text}
}

// nobodyLeft takes devices whose own part of a shared step is denied out of it.
// What an earlier run left unfinished stays due, and so does what comes after a
// step that serves no device either.
func (p *Plan) nobodyLeft(s *Step, byID map[string]*Step) *Block {
	if s.Reason == ReasonPending {
		return nil
	}
	var alone []*Step
	due := false
	for _, id := range s.Needs {
		if n := byID[id]; n != nil && n.Alone() {
			alone = append(alone, n)
			due = due || n.Blocked == nil
		}
	}
	if len(s.Serves) == 0 {
		if len(alone) == 0 || due {
			return nil
		}
		return comesAfter(alone[0])
	}
	denied := map[string]bool{}
	for _, other := range p.Steps {
		if other.Blocked != nil && other.Blocked.Rule == RulePolicy && other.Address.System == s.Address.System && !other.Address.Shared() {
			denied[other.Address.Device] = true
		}
	}
	serves := without(s.Serves, func(name string) bool { return denied[name] })
	if len(serves) == 0 && !due {
		return &Block{Rule: RulePolicy, Text: "every device that it would serve is denied by a policy"}
	}
	s.Serves = serves
	return nil
}

func without(list []string, drop func(string) bool) []string {
	var out []string
	for _, el := range list {
		if !drop(el) {
			out = append(out, el)
		}
	}
	return out
}

func distinct(list []string) []string {
	seen := map[string]bool{}
	out := []string{}
	for _, el := range list {
		if !seen[el] {
			seen[el] = true
			out = append(out, el)
		}
	}
	return out
}

// HasEffect reports whether a step of the case has the effect.
func (c PolicyCase) HasEffect(name string) (bool, error) {
	n, err := c.CountEffect(name)
	return n > 0, err
}

// CountEffect counts the devices that have a step with the effect; steps that
// devices share count each for itself.
func (c PolicyCase) CountEffect(name string) (int, error) {
	if err := CheckEffect(name); err != nil {
		return 0, err
	}
	found := map[string]bool{}
	for _, s := range c.Steps {
		for _, e := range s.Effects {
			if string(e) != name {
				continue
			}
			if s.Address.Shared() {
				found[s.Address.String()] = true
			} else {
				found[s.Address.Device] = true
			}
		}
	}
	return len(found), nil
}

// Changes reports whether a step of the case writes to an address that fits the
// pattern.
func (c PolicyCase) Changes(pattern string) (bool, error) {
	if err := CheckPattern(pattern); err != nil {
		return false, err
	}
	for _, s := range c.Steps {
		if ok, err := s.Address.Match(pattern); err == nil && ok && s.Action.Mutates() {
			return true, nil
		}
	}
	return false, nil
}

// Within reports whether the time of day is at or after from and before to in a
// time zone. A span whose end comes before its beginning goes over midnight.
func (c PolicyCase) Within(from, to, zone string) (bool, error) {
	begin, end, place, err := CheckWithin(from, to, zone)
	if err != nil {
		return false, err
	}
	if c.Now.IsZero() {
		return false, errors.New("the time is not known")
	}
	local := c.Now.In(place)
	now := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute + time.Duration(local.Second())*time.Second
	if begin < end {
		return begin <= now && now < end, nil
	}
	return begin <= now || now < end, nil
}

// CheckEffect wants the name of an effect.
func CheckEffect(name string) error {
	var names []string
	for _, e := range Effects() {
		if string(e) == name {
			return nil
		}
		names = append(names, string(e))
	}
	return fmt.Errorf("there is no effect %q; the effects are %s", name, strings.Join(names, ", "))
}

// CheckWithin wants two times of day as "08:00" and a time zone by its name in
// the IANA database.
func CheckWithin(from, to, zone string) (begin, end time.Duration, place *time.Location, err error) {
	if begin, err = timeOfDay(from); err != nil {
		return 0, 0, nil, err
	}
	if end, err = timeOfDay(to); err != nil {
		return 0, 0, nil, err
	}
	if begin == end {
		return 0, 0, nil, fmt.Errorf("the time from %s to %s is empty", from, to)
	}
	if zone == "" || zone == "Local" {
		return 0, 0, nil, errors.New("the time zone must be named, for example \"Europe/London\" or \"UTC\"")
	}
	if place, err = time.LoadLocation(zone); err != nil {
		return 0, 0, nil, fmt.Errorf("there is no time zone %q; write one of the IANA database, for example \"Europe/London\" or \"UTC\"", zone)
	}
	return begin, end, place, nil
}

func timeOfDay(s string) (time.Duration, error) {
	if s == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return 0, fmt.Errorf("%q is no time of day; write hours and minutes such as \"08:00\"", s)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// ApprovalsWanted lists the policies that make apply ask, sorted.
func (p *Plan) ApprovalsWanted() []PolicyResult {
	var out []PolicyResult
	for _, r := range p.Policies {
		if r.WantsApproval() {
			out = append(out, r)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Policy < out[j].Policy })
	return out
}
