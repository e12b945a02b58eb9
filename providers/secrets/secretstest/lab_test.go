//go:build lab

package secretstest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// realVault is the lab's OpenBao, with a token that may do everything.
type realVault struct{ url, token string }

func openVault(t *testing.T) realVault {
	t.Helper()
	v := realVault{os.Getenv("ENROLL_LAB_VAULT_URL"), os.Getenv("ENROLL_LAB_VAULT_TOKEN")}
	if v.url == "" || v.token == "" {
		t.Fatal("ENROLL_LAB_VAULT_URL or ENROLL_LAB_VAULT_TOKEN is not set; run make lab-test")
	}
	return v
}

// admin sends a request as an administrator would; 400 is passed over where what
// is made may be there already.
func (v realVault) admin(t *testing.T, namespace, method, path string, body any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, v.url+"/v1/"+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Vault-Token", v.token)
	if namespace != "" {
		req.Header.Set("X-Vault-Namespace", namespace)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= 300 && !strings.Contains(string(text), "already in use") {
		t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	var out map[string]any
	_ = json.Unmarshal(text, &out) // 204 has no body
	return out
}

// TestConformanceLab runs the table against the real vault, with roles, and a
// judge of service account tokens in the place of a Kubernetes.
func TestConformanceLab(t *testing.T) {
	v := openVault(t)
	u := vaultUnderTest{url: v.url, token: v.token, paths: fmt.Sprintf("conformance-%d", time.Now().UnixNano()), role: "conformance"}
	v.admin(t, "", "PUT", "sys/policies/acl/"+u.paths, map[string]any{"policy": `path "secret/data/` + u.paths + `/*" { capabilities = ["read"] }`})

	v.admin(t, "", "POST", "sys/auth/approle", map[string]any{"type": "approle"})
	v.admin(t, "", "POST", "auth/approle/role/conformance", map[string]any{"token_policies": u.paths, "secret_id_num_uses": 1})
	u.roleID = data(v.admin(t, "", "GET", "auth/approle/role/conformance/role-id", nil))["role_id"].(string)
	u.secretID = data(v.admin(t, "", "POST", "auth/approle/role/conformance/secret-id", nil))["secret_id"].(string)

	u.goodJWT, u.otherJWT = jwt("good"), jwt("other")
	judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Spec struct{ Token string }
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		status := map[string]any{"authenticated": false, "error": "invalid bearer token"}
		if in.Spec.Token == u.goodJWT {
			status = map[string]any{"authenticated": true, "user": map[string]any{"username": "system:serviceaccount:infra:enroll", "uid": "u1", "groups": []string{"system:serviceaccounts"}}}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})
	}))
	defer judge.Close()
	v.admin(t, "", "POST", "sys/auth/kubernetes", map[string]any{"type": "kubernetes"})
	v.admin(t, "", "POST", "auth/kubernetes/config", map[string]any{"kubernetes_host": judge.URL, "disable_local_ca_jwt": true, "token_reviewer_jwt": "reviewer", "kubernetes_ca_cert": authority(t)})
	v.admin(t, "", "POST", "auth/kubernetes/role/conformance", map[string]any{"bound_service_account_names": "enroll", "bound_service_account_namespaces": "infra", "token_policies": u.paths})
	conformance(t, u)
}

func TestNamespaceConformanceLab(t *testing.T) {
	v := openVault(t)
	u := vaultUnderTest{url: v.url, paths: "lon14", namespace: fmt.Sprintf("conformance-%d", time.Now().UnixNano())}
	v.admin(t, "", "POST", "sys/namespaces/"+u.namespace, map[string]any{})
	v.admin(t, u.namespace, "POST", "sys/mounts/secret", map[string]any{"type": "kv", "options": map[string]string{"version": "2"}})
	v.admin(t, u.namespace, "PUT", "sys/policies/acl/all", map[string]any{"policy": `path "*" { capabilities = ["create", "read", "update", "delete", "list"] }`})
	auth := v.admin(t, u.namespace, "POST", "auth/token/create", map[string]any{"policies": []string{"all"}})["auth"].(map[string]any)
	u.namespaceToken = auth["client_token"].(string)
	time.Sleep(time.Second) // the engine upgrades itself to version 2 in the background
	namespaceConformance(t, u)
	v.admin(t, "", "DELETE", "sys/namespaces/"+u.namespace, nil)
}

func data(answer map[string]any) map[string]any { return answer["data"].(map[string]any) }

// jwt is the token of a service account with a made-up signature.
func jwt(signature string) string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	return part(map[string]any{"alg": "RS256"}) + "." + part(map[string]any{
		"iss":           "kubernetes/serviceaccount",
		"kubernetes.io": map[string]any{"namespace": "infra", "serviceaccount": map[string]any{"name": "enroll", "uid": "u1"}},
	}) + "." + base64.RawURLEncoding.EncodeToString([]byte(signature))
}

// authority is a certificate that the vault wants and never uses: its judge
// speaks HTTP.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
