// Package secrets reads what secret(ITEM, FIELD) stands for, and keeps the
// values out of everything that is printed. The backends are environment
// variables, Vault or OpenBao, 1Password Connect, a file encrypted with age, and
// a program.
//
// Whatever the backend: all references of a batch are resolved at once, an item
// is read once however many of its fields are asked for, values stand in memory
// only, and one fault names every reference that could not be read.
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
	// Timeout of one request or run where the site sets none; zero means 30 seconds.
	Timeout time.Duration
	// Transport carries the requests to a vault; nil means one that trusts the
	// site's ca_file.
	Transport http.RoundTripper
	// UserAgent is sent to a vault.
	UserAgent string
	// Learn is told every credential that the backend itself uses (tokens,
	// identities) before it is used, so that it can be kept out of output. Nil for
	// nobody. It may be called from many goroutines.
	Learn func(plan.Secret)
	// Warn is told, as one sentence, what is not as it should be and does no harm.
	// Nil for nobody. It may be called from many goroutines.
	Warn func(sentence string)
}

// store is what a backend does; the rules that are the same for all stand in
// Backend.
type store interface {
	// read puts each reference's value or fault into found.
	read(ctx context.Context, refs []plan.SecretRef, found *result)
	// requests is the number of exchanges so far: HTTP requests, runs of a program.
	requests() int
}

// Backend resolves references at one site's secrets backend. It may be used from
// many goroutines.
type Backend struct {
	store store
	warn  func(string)
}

// New makes the backend that a site asks for. It sends nothing and runs nothing.
func New(s plan.SecretsSettings, o Options) (*Backend, error) {
	if o.Learn == nil {
		o.Learn = func(plan.Secret) {}
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if s.Timeout > 0 {
		o.Timeout = s.Timeout
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	made, err := newStore(s, o)
	if err != nil {
		return nil, err
	}
	return &Backend{store: made, warn: o.Warn}, nil
}

func newStore(s plan.SecretsSettings, o Options) (store, error) {
	switch s.Backend {
	case "env":
		return &environment{prefix: s.Prefix, getenv: o.Getenv, taken: map[string]plan.SecretRef{}}, nil
	case "vault":
		return newVault(s, o)
	case "onepassword":
		return newConnect(s, o)
	case "age":
		return newAgeFile(s, o)
	case "command":
		return newCommand(s, o)
	}
	return nil, plan.NewFault(plan.CodeConfigInvalid, "there is no secrets backend %q", s.Backend)
}

// Read resolves all references in one batch. What could be read is returned also
// beside an error. The error is one *plan.Fault: it names every reference that
// could not be read, and has the code of the gravest reason.
func (b *Backend) Read(ctx context.Context, refs []plan.SecretRef) (map[plan.SecretRef]plan.Secret, error) {
	found := newResult(b.warn)
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
	if len(good) > 0 {
		b.store.read(ctx, good, found)
	}
	return found.values, found.fault()
}

// Requests counts the exchanges with the vault so far: HTTP requests, or runs of
// a program.
func (b *Backend) Requests() int { return b.store.requests() }

// Close lets go of connections that nothing is asked on any more. What is asked
// later opens new ones.
func (b *Backend) Close(context.Context) error {
	if c, ok := b.store.(interface{ close() }); ok {
		c.close()
	}
	return nil
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
	warn   func(string)
	mu     sync.Mutex
	values map[plan.SecretRef]plan.Secret
	faults map[plan.SecretRef]*plan.Fault
}

func newResult(warn func(string)) *result {
	return &result{warn: warn, values: map[plan.SecretRef]plan.Secret{}, faults: map[plan.SecretRef]*plan.Fault{}}
}

func (r *result) fail(ref plan.SecretRef, f *plan.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[ref] = f
}

// put takes the text that stands in the vault. One line end after a single line
// is what editors and `echo` leave: it is no part of the secret, and a login
// with it fails. A text of several lines (a key, known_hosts) keeps its last
// line end, which belongs to its form. An empty text is never a secret.
func (r *result) put(ref plan.SecretRef, text, version string) {
	line := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	trimmed := line != text && !strings.ContainsAny(line, "\r\n")
	if trimmed {
		text = line
	}
	if text == "" {
		what := "is empty"
		if trimmed {
			what = "holds nothing but a line end"
		}
		r.fail(ref, plan.NewFault(plan.CodeSecretInvalid, "field %q of item %q %s", ref.Field, ref.Item, what).With("version", version))
		return
	}
	if trimmed {
		r.warn(ref.String() + " ends with a line end, which was taken off; store it without")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[ref] = plan.NewSecret(text, version)
}

// gravity orders codes: what stops everything comes first.
func gravity(c plan.Code) int {
	for i, code := range []plan.Code{
		plan.CodeInterrupted, plan.CodeConfigInvalid, plan.CodeSecretUnreachable, plan.CodeSecretTimeout,
		plan.CodeSecretBusy, plan.CodeSecretLogin, plan.CodeSecretDenied, plan.CodeSecretMissing,
	} {
		if c == code {
			return i
		}
	}
	return 8
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
