package secrets_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

const (
	roleID   = "59d6d1ca-47bb-4e7e-a40b-8be3bc5a0ba8"
	secretID = "0c3a9b70-secret-id-of-enroll"
	podToken = "eyJhbGciOiJSUzI1NiJ9.pod.signature"
)

func loginVault(t *testing.T, namespace string) *secretstest.Server {
	t.Helper()
	s := secretstest.New(secretstest.Options{Namespace: namespace, Login: []secretstest.Role{
		{ID: roleID, SecretID: secretID, Uses: 1, Read: []string{"secret/data/lon14/"}},
		{Name: "enroll", JWT: podToken, Read: []string{"secret/data/lon14/"}},
	}})
	t.Cleanup(s.Close)
	for i := range 20 {
		s.Put(fmt.Sprintf("lon14/x%d", i), map[string]string{"f": "correct horse"})
	}
	return s
}

// TestVaultLogin: one login per run, from the first read of many, and the token
// is told before it is used.
func TestVaultLogin(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*plan.SecretsSettings)
	}{
		{"AppRole, from a variable", func(s *plan.SecretsSettings) { s.AppRole = &plan.VaultAppRole{RoleID: roleID} }},
		{"AppRole, from a file", func(s *plan.SecretsSettings) {
			s.AppRole = &plan.VaultAppRole{Mount: "approle", RoleID: roleID, SecretIDFile: writeTemp(t, secretID+"\n")}
		}},
		{"Kubernetes", func(s *plan.SecretsSettings) {
			s.Kubernetes = &plan.VaultKubernetes{Role: "enroll", TokenFile: writeTemp(t, podToken)}
		}},
	} {
		for _, namespace := range []string{"", "infra/lon14"} {
			t.Run(c.name+" in namespace "+namespace, func(t *testing.T) {
				v := loginVault(t, namespace)
				s := settings(v.URL)
				s.Namespace = namespace
				c.set(&s)
				var mu sync.Mutex
				learnt := map[string]bool{}
				b, err := secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"VAULT_SECRET_ID": secretID}), Timeout: 2 * time.Second, Learn: func(s plan.Secret) {
					mu.Lock()
					defer mu.Unlock()
					learnt[s.Reveal()] = true
				}})
				if err != nil {
					t.Fatal(err)
				}
				var refs []plan.SecretRef
				for i := range 20 {
					refs = append(refs, plan.SecretRef{Item: fmt.Sprintf("x%d", i), Field: "f"})
				}
				for range 2 {
					if _, err := b.Read(t.Context(), refs); err != nil {
						t.Fatal(err)
					}
				}
				if b.Requests() != 21 || len(v.Issued()) != 1 {
					t.Errorf("%d requests, %d tokens", b.Requests(), len(v.Issued()))
				}
				if !learnt[v.Issued()[0]] || len(learnt) != 2 {
					t.Errorf("%d credentials are kept out of output, want the given one and the token", len(learnt))
				}
			})
		}
	}
}

func TestVaultLoginFaults(t *testing.T) {
	good := &plan.VaultAppRole{RoleID: roleID}
	for _, c := range []struct {
		name   string
		set    func(*secretstest.Server, *plan.SecretsSettings)
		secret string
		faults *exchange.Fault
		code   plan.Code
		says   []string
	}{
		{name: "wrong secret id", secret: "another", code: plan.CodeSecretLogin, says: []string{"app_role", "invalid role or secret ID", "400"}},
		{name: "wrong role id", set: func(_ *secretstest.Server, s *plan.SecretsSettings) { s.AppRole = &plan.VaultAppRole{RoleID: "x"} }, code: plan.CodeSecretLogin, says: []string{"invalid role or secret ID"}},
		{name: "wrong service account", set: func(_ *secretstest.Server, s *plan.SecretsSettings) {
			s.AppRole, s.Kubernetes = nil, &plan.VaultKubernetes{Role: "enroll", TokenFile: writeTemp(t, "other")}
		}, code: plan.CodeSecretLogin, says: []string{"kubernetes", "403"}},
		{name: "unknown role", set: func(_ *secretstest.Server, s *plan.SecretsSettings) {
			s.AppRole, s.Kubernetes = nil, &plan.VaultKubernetes{Role: "nobody", TokenFile: writeTemp(t, podToken)}
		}, code: plan.CodeSecretLogin, says: []string{"nobody"}},
		{name: "engine that is not mounted", set: func(_ *secretstest.Server, s *plan.SecretsSettings) {
			s.AppRole = &plan.VaultAppRole{RoleID: roleID, Mount: "roles"}
		}, code: plan.CodeSecretLogin, says: []string{"auth/roles/login", "mount"}},
		{name: "namespace that is not there", set: func(_ *secretstest.Server, s *plan.SecretsSettings) { s.Namespace = "none" }, code: plan.CodeSecretLogin, says: []string{"namespace not found"}},
		{name: "sealed", set: func(v *secretstest.Server, _ *plan.SecretsSettings) { v.Seal() }, code: plan.CodeSecretUnreachable, says: []string{"sealed"}},
		{name: "429", faults: &exchange.Fault{Path: "/v1/auth/", Kind: exchange.Status, Status: 429}, code: plan.CodeSecretBusy, says: []string{"429"}},
		{name: "time-out", faults: &exchange.Fault{Path: "/v1/auth/", Kind: exchange.Stall}, code: plan.CodeSecretTimeout},
		{name: "page instead of an answer", faults: &exchange.Fault{Path: "/v1/auth/", Kind: exchange.Garbage}, code: plan.CodeSecretInvalid, says: []string{"no token"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := loginVault(t, "")
			s := settings(v.URL)
			s.AppRole = good
			if c.set != nil {
				c.set(v, &s)
			}
			if c.faults != nil {
				v.Recorder.Inject(c.faults)
			}
			if c.secret == "" {
				c.secret = secretID
			}
			b, err := secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"VAULT_SECRET_ID": c.secret}), Timeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			var refs []plan.SecretRef
			for i := range 20 {
				refs = append(refs, plan.SecretRef{Item: fmt.Sprintf("x%d", i), Field: "f"})
			}
			_, err = b.Read(t.Context(), refs)
			f := faultOf(t, err, c.code, c.says...)
			if n := b.Requests(); n != 1 {
				t.Errorf("%d requests: a login is tried once", n)
			}
			if said := fmt.Sprintf("%+v %v %s", f, f.EvidenceLines(), f.WayOut()); strings.Contains(said, secretID) || strings.Contains(said, podToken) {
				t.Errorf("the fault says a secret: %s", said)
			}
		})
	}
	s := settings("http://vault.example.net")
	s.AppRole = good
	_, err := secrets.New(s, secrets.Options{Getenv: variables(nil)})
	wantFault(t, err, plan.CodeSecretMissing, "VAULT_SECRET_ID", "secret_id_env")
	s.AppRole, s.Kubernetes = nil, &plan.VaultKubernetes{Role: "enroll", TokenFile: "/nowhere/token"}
	_, err = secrets.New(s, secrets.Options{Getenv: variables(nil)})
	wantFault(t, err, plan.CodeSecretMissing, "service account")
}

// TestVaultNamespace: a token is of its namespace.
func TestVaultNamespace(t *testing.T) {
	v := loginVault(t, "infra/lon14")
	s := settings(v.URL)
	ref := plan.SecretRef{Item: "x1", Field: "f"}
	_, err := open(t, s, v.Token).Read(t.Context(), []plan.SecretRef{ref})
	wantFault(t, err, plan.CodeSecretDenied, "namespace")
	s.Namespace = "none"
	_, err = open(t, s, v.Token).Read(t.Context(), []plan.SecretRef{ref})
	wantFault(t, err, plan.CodeConfigInvalid, `"none"`, "namespace not found")
	s.Namespace = "infra/lon14"
	if _, err = open(t, s, v.Token).Read(t.Context(), []plan.SecretRef{ref}); err != nil {
		t.Error(err)
	}
}
