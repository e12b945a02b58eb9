package secrets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/secrets"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

// filled is a backend that holds given fields of the item "item".
type filled struct {
	name     string
	settings func(t *testing.T, fields map[string]string) (plan.SecretsSettings, map[string]string)
}

func allBackends() []filled {
	return []filled{
		{"env", func(_ *testing.T, fields map[string]string) (plan.SecretsSettings, map[string]string) {
			env := map[string]string{}
			for field, value := range fields {
				env[secrets.Variable("", plan.SecretRef{Item: "item", Field: field})] = value
			}
			return plan.SecretsSettings{Backend: "env"}, env
		}},
		{"vault", func(t *testing.T, fields map[string]string) (plan.SecretsSettings, map[string]string) {
			v := newVault(t)
			v.Put("lon14/item", fields)
			return settings(v.URL), map[string]string{"LAB_TOKEN": v.Token}
		}},
		{"onepassword", func(t *testing.T, fields map[string]string) (plan.SecretsSettings, map[string]string) {
			c := newConnect(t)
			var list []secretstest.ConnectField
			for label, value := range fields {
				list = append(list, secretstest.ConnectField{Label: label, Value: value})
			}
			c.Add("lon14", "item", list...)
			return connectSettings(c.URL), map[string]string{"LAB_TOKEN": c.Token}
		}},
		{"age", func(t *testing.T, fields map[string]string) (plan.SecretsSettings, map[string]string) {
			id, err := age.GenerateX25519Identity()
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(map[string]any{"item": fields})
			if err != nil {
				t.Fatal(err)
			}
			return plan.SecretsSettings{Backend: "age", File: writeTemp(t, encrypt(t, false, string(text), id.Recipient()))}, map[string]string{"ENROLL_AGE_IDENTITY": id.String()}
		}},
		{"command", func(t *testing.T, fields map[string]string) (plan.SecretsSettings, map[string]string) {
			text, err := json.Marshal(map[string]any{"item": fields})
			if err != nil {
				t.Fatal(err)
			}
			return plan.SecretsSettings{Backend: "command", Argv: []string{"cat", writeTemp(t, string(text))}}, nil
		}},
	}
}

// TestRulesOfAll: what holds for every backend.
func TestRulesOfAll(t *testing.T) {
	for _, backend := range allBackends() {
		t.Run(backend.name, func(t *testing.T) {
			s, env := backend.settings(t, map[string]string{
				"plain": "value", "line": "value\n", "dos": "value\r\n", "key": "first\nsecond\n", "two": "value\n\n", "blank": " value ",
				"odd": "\"'&<>\\ ä€😀`$(id)\t%20", "empty": "", "newline": "\n",
			})
			var mu sync.Mutex
			var warnings []string
			b, err := secrets.New(s, secrets.Options{Getenv: variables(env), Warn: func(w string) {
				mu.Lock()
				defer mu.Unlock()
				warnings = append(warnings, w)
			}})
			if err != nil {
				t.Fatal(err)
			}
			var refs []plan.SecretRef
			want := map[string]string{
				"plain": "value", "line": "value", "dos": "value", "key": "first\nsecond\n", "two": "value\n\n", "blank": " value ", "odd": "\"'&<>\\ ä€😀`$(id)\t%20",
			}
			for _, field := range []string{"plain", "line", "dos", "key", "two", "blank", "odd", "empty", "newline", "none"} {
				refs = append(refs, plan.SecretRef{Item: "item", Field: field})
			}
			values, err := b.Read(t.Context(), append(refs, refs...))
			for field, text := range want {
				if s := values[plan.SecretRef{Item: "item", Field: field}]; s.Reveal() != text {
					t.Errorf("%s: %q, want %q", field, s.Reveal(), text)
				}
			}
			f := faultOf(t, err, plan.CodeSecretMissing, "3 secrets")
			for _, field := range []string{"empty", "newline", "none"} {
				if f.Evidence[fmt.Sprintf(`secret("item", %q)`, field)] == "" {
					t.Errorf("%s is not named: %v", field, f.EvidenceLines())
				}
			}
			if len(values) != len(want) || len(warnings) != 2 {
				t.Errorf("%d values, warnings %q", len(values), warnings)
			}
		})
	}
}

// A variable that is not written as such names are may be the credential itself.
func TestVariableIsNotRepeated(t *testing.T) {
	for _, s := range []plan.SecretsSettings{
		{Backend: "vault", URL: "http://vault.example.net", TokenEnv: "hunter2"},
		{Backend: "vault", URL: "http://vault.example.net", AppRole: &plan.VaultAppRole{RoleID: "r", SecretIDEnv: "hunter2"}},
		{Backend: "onepassword", URL: "http://connect.example.net", Vault: "x", TokenEnv: "hunter2"},
		{Backend: "age", File: "x.age", IdentityEnv: "hunter2"},
	} {
		for _, value := range []string{"", "not a\x00token"} {
			b, err := secrets.New(s, secrets.Options{Getenv: func(string) (string, bool) { return value, value != "" }})
			if err == nil {
				_, err = b.Read(t.Context(), []plan.SecretRef{{Item: "x", Field: "f"}})
			}
			var f *plan.Fault
			if !errors.As(err, &f) {
				t.Fatalf("%s: %v", s.Backend, err)
			}
			if said := fmt.Sprintf("%v %s %v", f, f.Hint, f.Evidence); strings.Contains(said, "hunter2") {
				t.Errorf("%s: %s", s.Backend, said)
			}
		}
	}
}
