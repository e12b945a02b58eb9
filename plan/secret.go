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
	text    string
	Version string // the vault's own version of the item, empty where it has none
}

// NewSecret wraps a value read from a vault.
func NewSecret(text, version string) Secret { return Secret{text: text, Version: version} }

// Reveal gives the text. Call it only where the value is handed to the system
// that needs it.
func (s Secret) Reveal() string { return s.text }

const redacted = "(secret)"

func (s Secret) String() string { return redacted }

// Format redacts under every verb, %#v and %+v included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON redacts.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// LogValue redacts.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
