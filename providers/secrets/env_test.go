package secrets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/secrets"
)

var _ providers.Secrets = (*secrets.Backend)(nil)

func variables(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestVariable(t *testing.T) {
	for _, c := range []struct{ prefix, item, field, want string }{
		{"", "netbox", "token", "ENROLL_SECRET_NETBOX_TOKEN"},
		{"ENROLL_SECRET", "bmc-gpu-001", "password", "ENROLL_SECRET_BMC_GPU_001_PASSWORD"},
		{"lab", "bmc/gpu.1", "Ünit", "LAB_BMC_GPU_1__NIT"},
	} {
		if got := secrets.Variable(c.prefix, plan.SecretRef{Item: c.item, Field: c.field}); got != c.want {
			t.Errorf("%s", got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	b, err := secrets.New(plan.SecretsSettings{Backend: "env"}, secrets.Options{Getenv: variables(map[string]string{
		"ENROLL_SECRET_NETBOX_TOKEN": "nb-token-1", "ENROLL_SECRET_EMPTY_FIELD": "", "ENROLL_SECRET_A_B_C": "x-value",
	})})
	if err != nil {
		t.Fatal(err)
	}
	token := plan.SecretRef{Item: "netbox", Field: "token"}
	values, err := b.Read(t.Context(), []plan.SecretRef{token, token})
	if err != nil {
		t.Fatal(err)
	}
	if s := values[token]; s.Reveal() != "nb-token-1" || s.Version != "" || len(values) != 1 {
		t.Errorf("%d values", len(values))
	}

	for _, c := range []struct {
		name string
		refs []plan.SecretRef
		code plan.Code
		says []string
	}{
		{"missing", []plan.SecretRef{{Item: "bmc-gpu-001", Field: "password"}}, plan.CodeSecretMissing, []string{"bmc-gpu-001", "password", "ENROLL_SECRET_BMC_GPU_001_PASSWORD"}},
		{"empty", []plan.SecretRef{{Item: "empty", Field: "field"}}, plan.CodeSecretInvalid, []string{"empty", "ENROLL_SECRET_EMPTY_FIELD"}},
		{"two references, one variable", []plan.SecretRef{{Item: "a-b", Field: "c"}, {Item: "a", Field: "b-c"}}, plan.CodeConfigInvalid, []string{`secret("a-b", "c")`, `secret("a", "b-c")`, "ENROLL_SECRET_A_B_C"}},
		{"outside of the folder", []plan.SecretRef{{Item: "../x", Field: "c"}}, plan.CodeConfigInvalid, []string{`secret("../x", "c")`}},
		{"no field", []plan.SecretRef{{Item: "x"}}, plan.CodeConfigInvalid, []string{`secret("x", "")`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := b.Read(t.Context(), c.refs)
			wantFault(t, err, c.code, c.says...)
		})
	}
}

// TestAllAtOnce wants every reference that cannot be read to be named, and those
// that can to be returned.
func TestAllAtOnce(t *testing.T) {
	b, err := secrets.New(plan.SecretsSettings{Backend: "env", Prefix: "P"}, secrets.Options{Getenv: variables(map[string]string{"P_GOOD_F": "good value", "P_EMPTY_F": ""})})
	if err != nil {
		t.Fatal(err)
	}
	good := plan.SecretRef{Item: "good", Field: "f"}
	values, err := b.Read(t.Context(), []plan.SecretRef{{Item: "empty", Field: "f"}, good, {Item: "none", Field: "f"}, {Item: "none", Field: "g"}})
	if s := values[good]; s.Reveal() != "good value" {
		t.Error("the good one is missing")
	}
	f := faultOf(t, err, plan.CodeSecretMissing, "3 secrets")
	for _, key := range []string{`secret("empty", "f")`, `secret("none", "f")`, `secret("none", "g")`} {
		if f.Evidence[key] == "" {
			t.Errorf("evidence lacks %s: %v", key, f.Evidence)
		}
	}
}

func TestUnknownBackend(t *testing.T) {
	_, err := secrets.New(plan.SecretsSettings{Backend: "keyring"}, secrets.Options{})
	wantFault(t, err, plan.CodeConfigInvalid, "keyring")
}

// wantFault wants a code and some words in the fault's summary or way out.
func wantFault(t *testing.T, err error, code plan.Code, says ...string) {
	t.Helper()
	_ = faultOf(t, err, code, says...) // already checked
}

func faultOf(t *testing.T, err error, code plan.Code, says ...string) *plan.Fault {
	t.Helper()
	var f *plan.Fault
	if !errors.As(err, &f) {
		t.Fatalf("no fault but %v", err)
	}
	if f.Code != code {
		t.Fatalf("code %s, want %s: %v", f.Code, code, f)
	}
	for _, s := range says {
		if !strings.Contains(f.Error()+" "+f.WayOut()+" "+strings.Join(f.EvidenceLines(), " "), s) {
			t.Errorf("%q does not say %q", f.Error()+" "+f.WayOut(), s)
		}
	}
	return f
}
