package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

// Owner is who has to act on a fault.
type Owner string

// The owners of the reference workflow.
const (
	OwnerInfra     Owner = "INFRA_ENG"
	OwnerOnsite    Owner = "ONSITE"
	OwnerNetBox    Owner = "NETBOX"
	OwnerFleet     Owner = "FLEET_MANAGER"
	OwnerOpenStack Owner = "OPENSTACK"
)

// Class groups faults by what the interpreter does with them.
type Class string

// The classes of faults.
const (
	ClassConfig       Class = "config"       // a site file or an argument is wrong
	ClassIntent       Class = "intent"       // NetBox does not say enough, or contradicts itself
	ClassUnreachable  Class = "unreachable"  // no connection, or it was lost
	ClassBusy         Class = "busy"         // the system asked to come back later
	ClassDenied       Class = "denied"       // credentials or rights
	ClassStale        Class = "stale"        // the world moved since the plan
	ClassRefused      Class = "refused"      // the system understood and said no
	ClassProtocol     Class = "protocol"     // an answer that makes no sense
	ClassVerification Class = "verification" // reality and record disagree
	ClassOwned        Class = "owned"        // Nova or an operator holds the machine
	ClassTimeout      Class = "timeout"      // a budget ran out
	ClassInternal     Class = "internal"     // a defect of enroll itself
)

// Code names one kind of fault. All codes stand in the table of codes.go; it
// feeds FAULTS.md and `enroll explain CODE`. A Code is an error so that
// errors.Is(err, CodePlanStale) works through every wrapping.
type Code string

func (c Code) Error() string { return string(c) }

// Fault is a classified failure: what happened, to whom it belongs, what to
// do, and the evidence. It never holds a secret.
type Fault struct {
	Code     Code
	Summary  string            // one sentence with the concrete names and values
	Hint     string            // the way out; empty means the code's own hint
	Evidence map[string]string // what was seen: method, path, status, both values, URLs
	Cause    error             // the underlying error; its text was cleaned of secrets
	// Decides is who has to act where that is not the code's owner but a policy's.
	Decides Owner
	// After is how long the system asked to be left alone; zero when it did not say.
	After time.Duration
}

// NewFault makes a fault of a code with a formatted summary.
func NewFault(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Summary: fmt.Sprintf(format, args...)}
}

// With adds a piece of evidence and returns the fault. Empty values are left out.
func (f *Fault) With(key, value string) *Fault {
	if value == "" {
		return f
	}
	if f.Evidence == nil {
		f.Evidence = map[string]string{}
	}
	f.Evidence[key] = value
	return f
}

// WithHint replaces the code's general hint by a concrete one.
func (f *Fault) WithHint(format string, args ...any) *Fault {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// Because sets the underlying error.
func (f *Fault) Because(err error) *Fault { f.Cause = err; return f }

func (f *Fault) Error() string {
	text := string(f.Code) + ": " + f.Summary
	if f.Cause != nil {
		text += ": " + f.Cause.Error()
	}
	return text
}

// Is makes errors.Is(err, CodeX) true for a fault of that code.
func (f *Fault) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == f.Code
}

func (f *Fault) Unwrap() error { return f.Cause }

// Owner is who has to act: who decides, else the owner in the table of codes.
func (f *Fault) Owner() Owner {
	if f.Decides != "" {
		return f.Decides
	}
	return f.Code.Info().Owner
}

// Of names the owner of the policy that the fault is about, and returns the fault.
func (f *Fault) Of(policy PolicyResult) *Fault {
	f.Decides = policy.Owner
	return f.With("policy", policy.Policy)
}

// Class is how the interpreter treats the fault, from the table of codes.
func (f *Fault) Class() Class { return f.Code.Info().Class }

// Retry says whether running the same step again may succeed without anybody
// acting, from the table of codes.
func (f *Fault) Retry() bool { return f.Code.Info().Retry }

// WayOut is the fault's own hint, else the code's.
func (f *Fault) WayOut() string {
	if f.Hint != "" {
		return f.Hint
	}
	return f.Code.Info().Hint
}

// EvidenceLines lists the evidence as "key: value", sorted by key.
func (f *Fault) EvidenceLines() []string {
	lines := make([]string, 0, len(f.Evidence))
	for k, v := range f.Evidence {
		lines = append(lines, k+": "+strings.TrimSpace(v))
	}
	sort.Strings(lines)
	return lines
}

// AsFault finds the fault in an error's chain; any other error becomes an
// INTERNAL fault, so that nothing reaches a person unclassified.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return NewFault(CodeInternal, "unclassified error").Because(err)
}

type faultJSON struct {
	Code     Code              `json:"code"`
	Class    Class             `json:"class"`
	Owner    Owner             `json:"owner"`
	Retry    bool              `json:"retry"`
	Summary  string            `json:"summary"`
	Hint     string            `json:"hint"`
	Evidence map[string]string `json:"evidence,omitempty"`
	Cause    string            `json:"cause,omitempty"`
}

// form is the fault with what its code implies.
func (f *Fault) form() *faultJSON {
	out := &faultJSON{Code: f.Code, Class: f.Class(), Owner: f.Owner(), Retry: f.Retry(), Summary: f.Summary, Hint: f.WayOut(), Evidence: f.Evidence}
	if f.Cause != nil {
		out.Cause = f.Cause.Error()
	}
	return out
}

// MarshalJSON writes the fault as the plan file has it.
func (f *Fault) MarshalJSON() ([]byte, error) { return json.Marshal(f.form()) }

// UnmarshalJSON reads what MarshalJSON wrote; the cause comes back as text.
func (f *Fault) UnmarshalJSON(b []byte) error {
	var in faultJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*f = Fault{Code: in.Code, Summary: in.Summary, Hint: in.Hint, Evidence: in.Evidence}
	if in.Owner != f.Owner() {
		f.Decides = in.Owner
	}
	if in.Cause != "" {
		f.Cause = errors.New(in.Cause)
	}
	return nil
}
