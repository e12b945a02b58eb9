package plan

import (
	"slices"
	"time"
)

// Duration is a time.Duration that is written as text ("5m0s").
type Duration time.Duration

// MarshalText writes the duration as Go does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	*d = Duration(parsed)
	return err
}

// Action is what a step does.
type Action string

// The actions. The first three change a value, the next three start or await a
// process, verify only looks.
const (
	ActionCreate     Action = "create"
	ActionUpdate     Action = "update"
	ActionRemove     Action = "remove"
	ActionRun        Action = "run"
	ActionTransition Action = "transition"
	ActionWait       Action = "wait"
	ActionVerify     Action = "verify"
)

// Actions lists all actions in their order.
func Actions() []Action {
	return []Action{ActionCreate, ActionUpdate, ActionRemove, ActionRun, ActionTransition, ActionWait, ActionVerify}
}

// Mutates reports whether the action may write.
func (a Action) Mutates() bool { return a != ActionVerify && a != ActionWait }

// Reason says why a step is in the plan. The list is closed.
type Reason string

// The reasons.
const (
	ReasonAbsent    Reason = "absent"          // the resource does not exist
	ReasonDiffers   Reason = "differs"         // live and wanted value differ
	ReasonDeferred  Reason = "not_reachable"   // cannot be seen before an earlier step; planned from intent, an upper bound
	ReasonState     Reason = "state"           // the machine is not yet in the state that comes next
	ReasonChanged   Reason = "dependency"      // an earlier step changes what this one serves
	ReasonPending   Reason = "pending"         // an earlier run left this unfinished
	ReasonUnproven  Reason = "unproven"        // there is no evidence yet
	ReasonFailedOld Reason = "evidence_failed" // the evidence at hand fails a check
	ReasonForced    Reason = "operator"        // an operator parameter asks for it
)

// Step is one executable difference.
type Step struct {
	ID      string   `json:"id"`
	Address Address  `json:"address"`
	Action  Action   `json:"action"`
	Reason  Reason   `json:"reason"`
	Because []string `json:"because"` // the paths or addresses that made it necessary
	Effects []Effect `json:"effects"`
	Needs   []string `json:"needs"`            // ids of steps that must be done before
	Serves  []string `json:"serves,omitempty"` // devices that a shared step serves; none: it is about what no device has
	Budget  Duration `json:"budget,omitempty"`
	Phase   string   `json:"phase"`

	Before        Value `json:"-"` // Null: absent; Unknown: see BeforeUnknown
	After         Value `json:"-"`
	BeforeUnknown bool  `json:"before_unknown,omitempty"`
	Sensitive     bool  `json:"sensitive,omitempty"` // a secret is written; only its reference is shown

	// Guard is the fingerprint of Before: what must still be true when the step
	// runs. Empty when nothing was known.
	Guard string `json:"guard,omitempty"`

	// OnOwned steps may run although Nova owns the node (the NetBox tag).
	OnOwned bool `json:"on_owned,omitempty"`
	// Blocked steps are shown and never run.
	Blocked *Block `json:"blocked_by,omitempty"`
	// From says where the wanted value comes from.
	From []string `json:"from,omitempty"`

	needs []*Step // the same as Needs while ids are not given yet
}

// Alone reports whether the step is about what no device has.
func (s *Step) Alone() bool { return s.Address.Shared() && s.Action == ActionRemove }

// afterAlone reports whether a shared step, while its needs are not numbered yet,
// is due also without a device that it serves: it comes after one that has none.
func (s *Step) afterAlone() bool {
	return slices.ContainsFunc(s.needs, func(n *Step) bool { return n.Alone() && n.Blocked == nil })
}

// Rule is why something is blocked. The list is closed.
type Rule string

// The rules that block.
const (
	RuleOwned       Rule = "owned"         // Nova or somebody else holds the node
	RuleUnsupported Rule = "unsupported"   // the system has no such thing
	RuleNotYet      Rule = "not_supported" // this version of enroll cannot do it; it says what a person has to do
	RuleForeign     Rule = "foreign"       // somebody else's doing is in the way
	RuleFailed      Rule = "device_failed" // the device has a fault; nothing of it runs
	RulePolicy      Rule = "policy"        // a policy of the site denies it
)

// Block says why a step is shown but never run.
type Block struct {
	Rule Rule   `json:"rule"`
	Text string `json:"text"`
}

// Observation is a difference that nobody will touch, and the rule for that.
type Observation struct {
	Address Address
	Rule    string // create_only, kept, tolerated, …
	Text    string
	Want    Value
	Live    Value
}

// CheckVerdict is the outcome of a verification.
type CheckVerdict string

// The verdicts.
const (
	CheckPass    CheckVerdict = "pass"
	CheckFail    CheckVerdict = "fail"
	CheckUnknown CheckVerdict = "unknown" // no evidence, or not yet
	CheckSkipped CheckVerdict = "skipped" // switched off by the record itself
)

// Check is a verification of reality against the record.
type Check struct {
	Address  Address      `json:"address"`
	Verdict  CheckVerdict `json:"verdict"`
	Expected string       `json:"expected"`
	Observed string       `json:"observed"`
	// Text says in one sentence what is wrong or why it is unknown.
	Text string `json:"text,omitempty"`
	// After is the id of the step after which the check runs (again).
	After string `json:"after,omitempty"`
	// From says where expected and observed come from.
	From []string `json:"from,omitempty"`
}
