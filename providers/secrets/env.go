package secrets

import (
	"context"
	"strings"
	"sync"

	"github.com/enroll-dev/enroll/plan"
)

// defaultPrefix of the variables.
const defaultPrefix = "ENROLL_SECRET"

// environment reads the variable PREFIX_ITEM_FIELD.
type environment struct {
	prefix string
	getenv func(string) (string, bool)

	mu    sync.Mutex
	taken map[string]plan.SecretRef // which reference a variable was read for
}

// Variable is the name of the environment variable of a reference: upper case,
// everything but letters and digits replaced by "_".
func Variable(prefix string, ref plan.SecretRef) string {
	if prefix == "" {
		prefix = defaultPrefix
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, prefix+"_"+ref.Item+"_"+ref.Field)
}

func (e *environment) requests() int { return 0 }

func (e *environment) read(_ context.Context, refs []plan.SecretRef, found *result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range refs {
		name := Variable(e.prefix, ref)
		if other, taken := e.taken[name]; taken && other != ref {
			found.fail(ref, plan.NewFault(plan.CodeConfigInvalid, "%s and %s would both be read from the environment variable %s", other, ref, name).
				WithHint("Give one of the two items another name, or use secrets \"vault\"."))
			continue
		}
		e.taken[name] = ref
		value, set := e.getenv(name)
		switch {
		case !set:
			found.fail(ref, plan.NewFault(plan.CodeSecretMissing, "item %q has no field %q: the environment variable %s is not set", ref.Item, ref.Field, name).
				WithHint("Set %s, or correct the reference in the site file.", name))
		case value == "":
			found.fail(ref, plan.NewFault(plan.CodeSecretInvalid, "field %q of item %q is empty: the environment variable %s is set to nothing", ref.Field, ref.Item, name).
				WithHint("Set %s to the secret.", name))
		default:
			found.put(ref, value, "")
		}
	}
}
