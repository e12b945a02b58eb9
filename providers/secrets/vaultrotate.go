package secrets

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// stagedSuffix ends the name of the field that holds a new value until it is
// published. It stands in the same item, so that one policy covers both and
// check-and-set guards both.
const stagedSuffix = ".staged"

// Staged is where the new value of a reference stands between Stage and Publish.
// A run that was interrupted in between finds it there.
func Staged(ref plan.SecretRef) plan.SecretRef {
	return plan.SecretRef{Item: ref.Item, Field: ref.Field + stagedSuffix}
}

// rotator is a store that can be written.
type rotator interface {
	// may tells that the caller has the right to write the item, as far as is known.
	may(ctx context.Context, item string) bool
	stage(ctx context.Context, ref plan.SecretRef, value plan.Secret) (version string, fault *plan.Fault)
	publish(ctx context.Context, staged plan.StagedSecret) (version string, fault *plan.Fault)
}

// Stage stores a new value beside the current one, as providers.Rotator says. A
// backend that is only read refuses with CONFIG_INVALID.
func (b *Backend) Stage(ctx context.Context, ref plan.SecretRef, value plan.Secret) (plan.StagedSecret, error) {
	w, err := b.writer(ref)
	if err != nil {
		return plan.StagedSecret{}, err
	}
	if value.Reveal() == "" {
		return plan.StagedSecret{}, plan.NewFault(plan.CodeSecretInvalid, "an empty value cannot replace %s", ref)
	}
	if !utf8.ValidString(value.Reveal()) {
		return plan.StagedSecret{}, plan.NewFault(plan.CodeSecretInvalid, "the new value for %s is no UTF-8 text, which a vault cannot keep", ref)
	}
	version, f := w.stage(ctx, ref, value)
	if f != nil {
		return plan.StagedSecret{}, f
	}
	return plan.StagedSecret{Ref: ref, Staged: Staged(ref), Version: version}, nil
}

// Publish makes a staged value the current one, as providers.Rotator says.
func (b *Backend) Publish(ctx context.Context, staged plan.StagedSecret) (string, error) {
	w, err := b.writer(staged.Ref)
	if err != nil {
		return "", err
	}
	version, f := w.publish(ctx, staged)
	if f != nil {
		return "", f
	}
	return version, nil
}

// Writable tells whether the backend keeps new values of a reference: Stage and
// Publish of one that does not refuse. A vault is asked what its policy grants; one
// that does not say so counts as writable, and Stage finds out.
func (b *Backend) Writable(ctx context.Context, ref plan.SecretRef) bool {
	w, ok := b.store.(rotator)
	return ok && checkRef(ref) == nil && w.may(ctx, ref.Item)
}

func (b *Backend) writer(ref plan.SecretRef) (rotator, error) {
	if f := checkRef(ref); f != nil {
		return nil, f
	}
	w, ok := b.store.(rotator)
	if !ok {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "the secrets backend of this site is only read; %s cannot be rotated", ref).
			WithHint("Rotate it by hand, or keep it in secrets \"vault\".")
	}
	return w, nil
}

func (v *vault) stage(ctx context.Context, ref plan.SecretRef, value plan.Secret) (string, *plan.Fault) {
	item, f := v.item(ctx, ref.Item)
	if f != nil {
		return "", f
	}
	to := Staged(ref).Field
	switch {
	case item.fields[ref.Field] == nil:
		return "", plan.NewFault(plan.CodeSecretMissing, "item %q has no field %q that could be rotated", ref.Item, ref.Field).With("version", item.version)
	case item.fields[to] != nil:
		return "", plan.NewFault(plan.CodeSecretConflict, "field %q of item %q holds the value of a rotation that was not finished", to, ref.Item).
			WithHint("Find out which of the two passwords the system takes; then move or delete the field by hand.").With("version", item.version)
	}
	item.fields[to], _ = json.Marshal(value.Reveal()) // a text always becomes JSON
	return v.write(ctx, ref.Item, item)
}

func (v *vault) publish(ctx context.Context, staged plan.StagedSecret) (string, *plan.Fault) {
	item, f := v.item(ctx, staged.Ref.Item)
	if f != nil {
		return "", f
	}
	from := staged.Staged.Field
	switch {
	case item.version != staged.Version:
		return "", plan.NewFault(plan.CodeSecretConflict, "item %q was changed since the new value of %q was staged", staged.Ref.Item, staged.Ref.Field).
			With("staged in version", staged.Version).With("version", item.version)
	case item.fields[from] == nil:
		return "", plan.NewFault(plan.CodeSecretConflict, "item %q has no staged value %q", staged.Ref.Item, from).With("version", item.version)
	}
	item.fields[staged.Ref.Field] = item.fields[from]
	delete(item.fields, from)
	return v.write(ctx, staged.Ref.Item, item)
}

// write stores a new version, if nobody else has written since item was read.
func (v *vault) write(ctx context.Context, name string, item *entry) (string, *plan.Fault) {
	read, err := strconv.Atoi(item.version)
	if err != nil {
		return "", plan.NewFault(plan.CodeInternal, "version %q of item %q is no number", item.version, name)
	}
	token, f := v.login.token(ctx)
	if f != nil {
		return "", f
	}
	defer v.memory.forget(name)
	a, f := v.call(ctx, http.MethodPost, v.path(name), v.header(token), map[string]any{
		"data": item.fields, "options": map[string]any{"cas": read},
	})
	if f != nil {
		return "", f
	}
	if a.status != http.StatusOK {
		return "", v.refusal(name, a, "update")
	}
	var body struct {
		Data struct {
			Version int `json:"version"`
		} `json:"data"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil || body.Data.Version == 0 {
		return "", v.evidence(plan.NewFault(plan.CodeSecretInvalid, "the vault did not say which version of item %q it wrote", name), a, "")
	}
	return strconv.Itoa(body.Data.Version), nil
}

// may asks what the policies of the token grant on an item.
func (v *vault) may(ctx context.Context, name string) bool {
	token, f := v.login.token(ctx)
	if f != nil {
		return true
	}
	path := strings.TrimPrefix(v.path(name), "/v1/")
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain // in a body it is no URL
	}
	a, f := v.call(ctx, http.MethodPost, "/v1/sys/capabilities-self", v.header(token), map[string]any{"paths": []string{path}})
	if f != nil || a.status != http.StatusOK {
		return true
	}
	var body struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	var granted []string
	if json.Unmarshal(a.body, &body) != nil || json.Unmarshal(body.Data[path], &granted) != nil || len(granted) == 0 {
		return true
	}
	return slices.Contains(granted, "update") || slices.Contains(granted, "root")
}
