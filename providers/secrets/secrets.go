// Package secrets reads what secret(ITEM, FIELD) stands for, from environment
// variables or from a vault, and keeps the values out of everything that is
// printed.
package secrets

import (
	"context"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Options are what a backend depends on beside the site's settings.
type Options struct {
	// Getenv gives an environment variable and whether it is set, as os.LookupEnv.
	Getenv func(name string) (string, bool)
	// Timeout of one request to a vault; zero means 30 seconds.
	Timeout time.Duration
	// Transport carries the requests to a vault; nil means one that trusts the
	// site's ca_file.
	Transport http.RoundTripper
	// UserAgent is sent to a vault.
	UserAgent string
}

// Backend resolves references at one site's secrets backend. It may be used from
// many goroutines.
type Backend struct {
	env   *environment // one of the two is set
	vault *vault
}

// New makes the backend that a site asks for. It sends nothing.
func New(s plan.SecretsSettings, o Options) (*Backend, error) {
	switch s.Backend {
	case "env":
		return &Backend{env: &environment{prefix: s.Prefix, getenv: o.Getenv, taken: map[string]plan.SecretRef{}}}, nil
	case "vault":
		v, err := newVault(s, o)
		if err != nil {
			return nil, err
		}
		return &Backend{vault: v}, nil
	}
	return nil, plan.NewFault(plan.CodeConfigInvalid, "there is no secrets backend %q; this version has env and vault", s.Backend)
}

// Read resolves all references in one batch. What could be read is returned also
// beside an error. The error is one *plan.Fault: it names every reference that
// could not be read, and has the code of the gravest reason.
func (b *Backend) Read(ctx context.Context, refs []plan.SecretRef) (map[plan.SecretRef]plan.Secret, error) {
	found := newResult()
	var good []plan.SecretRef
	seen := map[plan.SecretRef]bool{}
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		if f := checkRef(ref); f != nil {
			found.fail(ref, f)
			continue
		}
		good = append(good, ref)
	}
	if b.env != nil {
		b.env.read(good, found)
	} else {
		b.vault.read(ctx, good, found)
	}
	return found.values, found.fault()
}

// Requests counts the requests to the vault so far.
func (b *Backend) Requests() int {
	if b.vault == nil {
		return 0
	}
	return int(b.vault.requests.Load())
}

// checkRef refuses references that would address something else than an item:
// their names may be made of what NetBox says.
func checkRef(ref plan.SecretRef) *plan.Fault {
	for _, part := range strings.Split(ref.Item, "/") {
		if part == "" || part == "." || part == ".." {
			return plan.NewFault(plan.CodeConfigInvalid, "%s names no item: an item is a name or a plain path", ref)
		}
	}
	control := func(r rune) bool { return r < 0x20 || r == 0x7f }
	if ref.Field == "" || strings.ContainsFunc(ref.Item+ref.Field, control) {
		return plan.NewFault(plan.CodeConfigInvalid, "%s names no field of an item", ref)
	}
	return nil
}

// result collects values and faults of one batch.
type result struct {
	mu     sync.Mutex
	values map[plan.SecretRef]plan.Secret
	faults map[plan.SecretRef]*plan.Fault
}

func newResult() *result {
	return &result{values: map[plan.SecretRef]plan.Secret{}, faults: map[plan.SecretRef]*plan.Fault{}}
}

func (r *result) fail(ref plan.SecretRef, f *plan.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[ref] = f
}

func (r *result) put(ref plan.SecretRef, s plan.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[ref] = s
}

// gravity orders codes: what stops everything comes first.
func gravity(c plan.Code) int {
	for i, code := range []plan.Code{plan.CodeInterrupted, plan.CodeConfigInvalid, plan.CodeSecretUnreachable, plan.CodeSecretDenied, plan.CodeSecretMissing} {
		if c == code {
			return i
		}
	}
	return 5
}

// fault makes one fault of all. A single one is returned as it is.
func (r *result) fault() error {
	if len(r.faults) == 0 {
		return nil
	}
	refs := make([]plan.SecretRef, 0, len(r.faults))
	for ref := range r.faults {
		refs = append(refs, ref)
	}
	sort.Slice(refs, func(i, j int) bool {
		a, b := gravity(r.faults[refs[i]].Code), gravity(r.faults[refs[j]].Code)
		if a != b {
			return a < b
		}
		return refs[i].String() < refs[j].String()
	})
	first := r.faults[refs[0]]
	if len(refs) == 1 {
		return first
	}
	all := plan.NewFault(first.Code, "%d secrets cannot be read; the first: %s", len(refs), first.Summary)
	all.Hint, all.Cause = first.Hint, first.Cause
	for k, v := range first.Evidence {
		all = all.With(k, v)
	}
	for _, ref := range refs {
		all = all.With(ref.String(), string(r.faults[ref].Code)+": "+r.faults[ref].Summary)
	}
	return all
}
