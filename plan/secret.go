package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// SecretRef points at a secret: the item and field of the site's vault. It is
// what plans, journals and errors may hold; the value never is.
type SecretRef struct {
	Item  string `json:"item"`
	Field string `json:"field"`
}

// IsZero reports whether no secret is configured.
func (r SecretRef) IsZero() bool { return r == SecretRef{} }

// String is the form of the site language. It names the secret and has nothing of
// its value.
func (r SecretRef) String() string { return fmt.Sprintf("secret(%q, %q)", r.Item, r.Field) }

// StagedSecret is a new value that is in the vault and not yet in use. It holds
// no value, so that it may be kept in a journal.
type StagedSecret struct {
	Ref     SecretRef `json:"ref"`
	Staged  SecretRef `json:"staged"`  // where the new value is read until it is published
	Version string    `json:"version"` // of the item that holds both
}

// Secret is a secret's value with the version that the vault gave it. It
// redacts itself in every form of output; only Reveal gives the text.
type Secret struct {
	// text is a pointer, because fmt does not call the methods of a value that
	// stands in an unexported field: it would print a string, and prints an address.
	text    *string
	Version string // the vault's own version of the item, empty where it has none
}

// NewSecret wraps a value read from a vault.
func NewSecret(text, version string) Secret { return Secret{text: &text, Version: version} }

// Reveal gives the text. Call it only where the value is handed to the system
// that needs it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

const redacted = "(secret)"

func (s Secret) String() string { return redacted }

// Format redacts under every verb, %#v and %+v included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON redacts.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalText redacts, for encoders that do not know JSON's method.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue redacts.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
