package main

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// Values that the program knows redact themselves. This is the second wall, for
// secrets that come back from outside: a BMC that repeats a password in its
// refusal, a proxy that shows a header. What systems say passes here before the
// planner, the interpreter and their journal see it; what is printed passes the
// redactor's writers (see run); and a plan that still has a secret is not written.

// redactedSystem is a provider whose words are cleaned.
type redactedSystem struct {
	systemProvider
	redactor *secrets.Redactor
}

// Read cleans faults and evidence. Live values stay as they are: apply compares
// and writes them, and a changed one would be a wrong one. checkNoSecret looks at
// them before they are written to a file.
func (s redactedSystem) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	snap := s.systemProvider.Read(ctx, sc, resources)
	for address, live := range snap {
		live.Fault = cleanFault(s.redactor, live.Fault)
		live.Evidence = cleanMap(s.redactor, live.Evidence)
		snap[address] = live
	}
	return snap
}

// Run cleans what a step says, not its memo, which goes back to the provider.
func (s redactedSystem) Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result {
	return s.clean(s.systemProvider.Run(ctx, sc, step, memo))
}

// Restore cleans what putting something back says.
func (s redactedSystem) Restore(ctx context.Context, sc *plan.Scope, o plan.Obligation) plan.Result {
	p, ok := s.systemProvider.(providers.Restorer)
	if !ok {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "nobody puts back what %s left open", o.Address))
	}
	return s.clean(p.Restore(ctx, sc, o))
}

func (s redactedSystem) clean(r plan.Result) plan.Result {
	r.Observed = s.redactor.Text(r.Observed)
	r.Fault = cleanFault(s.redactor, r.Fault)
	for i := range r.Checks {
		c := &r.Checks[i]
		c.Expected, c.Observed, c.Text = s.redactor.Text(c.Expected), s.redactor.Text(c.Observed), s.redactor.Text(c.Text)
	}
	if r.Opens != nil { // it goes to disk
		o := *r.Opens
		o.Text, o.Memo = s.redactor.Text(o.Text), cleanMap(s.redactor, o.Memo)
		r.Opens = &o
	}
	return r
}

// redactedOwner cleans what is said about who holds a node.
type redactedOwner struct {
	providers.Owner
	redactor *secrets.Redactor
}

func (o redactedOwner) Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership {
	owners := o.Owner.Ownership(ctx, sc)
	for name, own := range owners {
		own.Reason = o.redactor.Text(own.Reason)
		own.Unknown = cleanFault(o.redactor, own.Unknown)
		owners[name] = own
	}
	return owners
}

// cleanFault gives a fault without secrets; one that has none is given back as
// it is. The cause keeps its text only when that is clean.
func cleanFault(r *secrets.Redactor, f *plan.Fault) *plan.Fault {
	if f == nil {
		return nil
	}
	c := *f
	c.Summary, c.Hint, c.Evidence = r.Text(f.Summary), r.Text(f.Hint), cleanMap(r, f.Evidence)
	if f.Cause != nil && r.Holds(f.Cause.Error()) {
		c.Cause = errors.New(r.Text(f.Cause.Error()))
	}
	return &c
}

func cleanMap(r *secrets.Redactor, m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[r.Text(k)] = r.Text(v)
	}
	return out
}

// digest is what the program computes itself: ids and hashes, in which a short
// secret may stand by chance.
var digest = regexp.MustCompile(`^(?:sha256:)?[0-9a-f]{8,64}$`)

// checkNoSecret refuses to write a plan in which a secret stands. Taking it out
// would change what apply compares and writes.
func (a *app) checkNoSecret(raw []byte) error {
	if !a.suspicious(raw) {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return plan.NewFault(plan.CodeInternal, "the plan is no JSON").Because(err)
	}
	if path, found := a.findSecret("", v); found {
		return plan.NewFault(plan.CodeSecretInvalid, "a secret of this run stands in the plan, at %s; the plan was not written", a.redactor.Text(path)).
			WithHint("Either a system shows a password in a plain field, or the password is an ordinary word. Change it in the vault and where it is used.")
	}
	return nil
}

// suspicious looks at every text of a JSON document, without building it up.
func (a *app) suspicious(raw []byte) bool {
	seen := map[string]bool{} // names of members, mostly
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		begin, escaped := i, false
		for i++; i < len(raw) && raw[i] != '"'; i++ {
			if raw[i] == '\\' {
				escaped = true
				i++
			}
		}
		if !escaped && seen[string(raw[begin+1:min(i, len(raw))])] {
			continue
		}
		text := string(raw[begin+1 : min(i, len(raw))])
		if !escaped {
			seen[text] = true
		}
		if escaped && json.Unmarshal(raw[begin:min(i+1, len(raw))], &text) != nil {
			return true
		}
		if a.redactor.Holds(text) {
			return true
		}
	}
	return false
}

func (a *app) findSecret(path string, v any) (string, bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			at := path + "." + k
			if a.redactor.Holds(k) {
				return at, true
			}
			if found, ok := a.findSecret(at, inner); ok {
				return found, true
			}
		}
	case []any:
		for _, inner := range v {
			if found, ok := a.findSecret(path+"[]", inner); ok {
				return found, true
			}
		}
	case string:
		return path, !digest.MatchString(v) && a.redactor.Holds(v)
	}
	return "", false
}
