//go:build lab

package secrets_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// TestVaultLab: log in with an AppRole at the real vault, read, rotate in two
// phases, and be refused by its own check-and-set.
func TestVaultLab(t *testing.T) {
	url, root := os.Getenv("ENROLL_LAB_VAULT_URL"), os.Getenv("ENROLL_LAB_VAULT_TOKEN")
	if url == "" || root == "" {
		t.Fatal("ENROLL_LAB_VAULT_URL or ENROLL_LAB_VAULT_TOKEN is not set; run make lab-test")
	}
	admin := func(method, path string, body any) map[string]any {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest(method, url+"/v1/"+path, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Vault-Token", root)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var out struct{ Data map[string]any }
		_ = json.NewDecoder(resp.Body).Decode(&out) // 204 has no body
		return out.Data
	}
	folder := fmt.Sprintf("rotation-%d", time.Now().UnixNano())
	admin("PUT", "sys/policies/acl/"+folder, map[string]any{"policy": `path "secret/data/` + folder + `/*" { capabilities = ["read", "update"] }`})
	admin("POST", "sys/auth/approle", map[string]any{"type": "approle"})
	admin("POST", "auth/approle/role/"+folder, map[string]any{"token_policies": folder})
	admin("POST", "secret/data/"+folder+"/bmc/gpu-001", map[string]any{"data": map[string]any{"username": "admin", "password": "old one"}})

	s := plan.SecretsSettings{Backend: "vault", URL: url, Prefix: folder, AppRole: &plan.VaultAppRole{RoleID: admin("GET", "auth/approle/role/"+folder+"/role-id", nil)["role_id"].(string)}}
	id := admin("POST", "auth/approle/role/"+folder+"/secret-id", nil)["secret_id"].(string)
	b, err := secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"VAULT_SECRET_ID": id})})
	if err != nil {
		t.Fatal(err)
	}
	ref := plan.SecretRef{Item: "bmc/gpu-001", Field: "password"}
	want := func(text, version string) {
		t.Helper()
		values, err := b.Read(t.Context(), []plan.SecretRef{ref})
		if got := values[ref]; err != nil || got.Reveal() != text || got.Version != version {
			t.Fatalf("version %q, %v", got.Version, err)
		}
	}
	want("old one", "1")
	if !b.Writable(t.Context(), ref) || b.Writable(t.Context(), plan.SecretRef{Item: "../elsewhere", Field: "f"}) {
		t.Error("not writable, or too much is")
	}
	admin("PUT", "sys/policies/acl/"+folder, map[string]any{"policy": `path "secret/data/` + folder + `/*" { capabilities = ["read"] }`})
	if b.Writable(t.Context(), ref) {
		t.Error("what the policy lets be read only is writable")
	}
	admin("PUT", "sys/policies/acl/"+folder, map[string]any{"policy": `path "secret/data/` + folder + `/*" { capabilities = ["read", "update"] }`})
	staged, err := b.Stage(t.Context(), ref, plan.NewSecret(`n<&>"w ä`, ""))
	if err != nil {
		t.Fatal(err)
	}
	want("old one", "2")
	version, err := b.Publish(t.Context(), staged)
	if err != nil || version != "3" {
		t.Fatal(version, err)
	}
	want(`n<&>"w ä`, "3")

	staged, err = b.Stage(t.Context(), ref, plan.NewSecret("third", ""))
	if err != nil {
		t.Fatal(err)
	}
	admin("POST", "secret/data/"+folder+"/bmc/gpu-001", map[string]any{"data": map[string]any{"username": "admin", "password": "by hand"}})
	_, err = b.Publish(t.Context(), staged)
	wantFault(t, err, plan.CodeSecretConflict)
	want("by hand", "5")

	_, err = b.Read(t.Context(), []plan.SecretRef{{Item: "none", Field: "f"}})
	wantFault(t, err, plan.CodeSecretMissing, folder+"/none")
	s.Prefix = "elsewhere"
	b, err = secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"VAULT_SECRET_ID": id})})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Read(t.Context(), []plan.SecretRef{ref})
	wantFault(t, err, plan.CodeSecretDenied, "elsewhere")
	b, err = secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"VAULT_SECRET_ID": "wrong"})})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Read(t.Context(), []plan.SecretRef{ref})
	wantFault(t, err, plan.CodeSecretLogin, "invalid role or secret ID")
}
