package secrets_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

const reader = "s.reader-of-lon14"

func newVault(t *testing.T) *secretstest.Server {
	t.Helper()
	s := secretstest.New(secretstest.Options{Tokens: []secretstest.Token{{Value: secretstest.DefaultToken}, {Value: reader, Read: []string{"secret/data/lon14/"}}}})
	t.Cleanup(s.Close)
	return s
}

func settings(url string) plan.SecretsSettings {
	return plan.SecretsSettings{Backend: "vault", URL: url, Mount: "secret", Prefix: "lon14", TokenEnv: "LAB_TOKEN"}
}

func open(t *testing.T, s plan.SecretsSettings, token string) *secrets.Backend {
	t.Helper()
	b, err := secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"LAB_TOKEN": token}), Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVaultRead wants one request for each item, however many of its fields are
// asked for, and the vault's version with every value.
func TestVaultRead(t *testing.T) {
	v := newVault(t)
	var refs []plan.SecretRef
	const items = 40
	for i := range items {
		name := fmt.Sprintf("bmc/gpu-%03d", i)
		v.Put("lon14/"+name, map[string]string{"username": "admin", "password": "old"})
		v.Put("lon14/"+name, map[string]string{"username": "admin", "password": fmt.Sprintf("pw-%d \"ä", i)})
		refs = append(refs, plan.SecretRef{Item: name, Field: "username"}, plan.SecretRef{Item: name, Field: "password"}, plan.SecretRef{Item: name, Field: "password"})
	}
	v.Put("lon14/with blank", map[string]string{"f": "value"})
	refs = append(refs, plan.SecretRef{Item: "with blank", Field: "f"})
	b := open(t, settings(v.URL), reader+"\n")
	values, err := b.Read(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(v.Recorder.Records()); n != items+1 || b.Requests() != n {
		t.Errorf("%d requests at the vault, %d counted, want %d", n, b.Requests(), items+1)
	}
	if len(values) != 2*items+1 {
		t.Errorf("%d values", len(values))
	}
	s := values[plan.SecretRef{Item: "bmc/gpu-007", Field: "password"}]
	if s.Reveal() != "pw-7 \"ä" || s.Version != "2" {
		t.Errorf("version %q of a value of %d bytes", s.Version, len(s.Reveal()))
	}
}

// TestVaultOneVersion: what is read of an item at different times is of one
// version.
func TestVaultOneVersion(t *testing.T) {
	v := newVault(t)
	v.Put("lon14/bmc", map[string]string{"username": "old", "password": "old one"})
	b := open(t, settings(v.URL), reader)
	user, password := plan.SecretRef{Item: "bmc", Field: "username"}, plan.SecretRef{Item: "bmc", Field: "password"}
	if _, err := b.Read(t.Context(), []plan.SecretRef{user}); err != nil {
		t.Fatal(err)
	}
	v.Put("lon14/bmc", map[string]string{"username": "new", "password": "new one"})
	values, err := b.Read(t.Context(), []plan.SecretRef{password})
	if s := values[password]; err != nil || s.Reveal() != "old one" || s.Version != "1" || b.Requests() != 1 {
		t.Errorf("version %q after %d requests, %v", s.Version, b.Requests(), err)
	}
}

// TestVaultFaults wants each refusal in its class, with what to do.
func TestVaultFaults(t *testing.T) {
	ref := plan.SecretRef{Item: "bmc/gpu-001", Field: "password"}
	for _, c := range []struct {
		name   string
		set    func(*secretstest.Server, *plan.SecretsSettings)
		token  string
		ref    plan.SecretRef
		code   plan.Code
		says   []string
		faults *exchange.Fault
	}{
		{name: "missing item", ref: plan.SecretRef{Item: "none", Field: "f"}, code: plan.CodeSecretMissing, says: []string{"none", "secret/data/lon14/none", "404"}},
		{name: "missing field", ref: plan.SecretRef{Item: "bmc/gpu-001", Field: "pasword"}, code: plan.CodeSecretMissing, says: []string{"bmc/gpu-001", "pasword"}},
		{name: "empty field", ref: plan.SecretRef{Item: "bmc/gpu-001", Field: "empty"}, code: plan.CodeSecretInvalid, says: []string{"empty"}},
		{name: "wrong token", token: "s.wrong-token", code: plan.CodeSecretLogin, says: []string{"permission denied", "403"}},
		{name: "no right", set: func(_ *secretstest.Server, s *plan.SecretsSettings) { s.Prefix = "other" }, code: plan.CodeSecretDenied, says: []string{"secret/data/other/bmc/gpu-001"}},
		{name: "no mount", token: secretstest.DefaultToken, set: func(_ *secretstest.Server, s *plan.SecretsSettings) { s.Mount = "kv" }, code: plan.CodeConfigInvalid, says: []string{`"kv"`, "no handler for route"}},
		{name: "sealed", set: func(v *secretstest.Server, _ *plan.SecretsSettings) { v.Seal() }, code: plan.CodeSecretUnreachable, says: []string{"sealed", "503"}},
		{name: "quota", faults: &exchange.Fault{Kind: exchange.Status, Status: 429, Header: map[string]string{"Retry-After": "7"}}, code: plan.CodeSecretBusy, says: []string{"429", "retry after: 7"}},
		{name: "server error", faults: &exchange.Fault{Kind: exchange.Status, Status: 502, Body: "<html>"}, code: plan.CodeSecretUnreachable, says: []string{"502"}},
		{name: "page instead of an answer", faults: &exchange.Fault{Kind: exchange.Garbage}, code: plan.CodeSecretInvalid, says: []string{"KV engine of version 2"}},
		{name: "answer of version 1", faults: &exchange.Fault{Kind: exchange.Status, Status: 200, Body: `{"data":{"password":"v1-password"}}`}, code: plan.CodeSecretInvalid, says: []string{"version 2"}},
		{name: "number instead of a text", faults: &exchange.Fault{Kind: exchange.Status, Status: 200, Body: `{"data":{"data":{"password":12345678},"metadata":{"version":3}}}`}, code: plan.CodeSecretInvalid, says: []string{"no text"}},
		{name: "null instead of a text", faults: &exchange.Fault{Kind: exchange.Status, Status: 200, Body: `{"data":{"data":{"password":null},"metadata":{"version":3}}}`}, code: plan.CodeSecretInvalid, says: []string{"no text"}},
		{name: "redirect", faults: &exchange.Fault{Kind: exchange.Status, Status: 307, Header: map[string]string{"Location": "http://192.0.2.1/v1/x"}}, code: plan.CodeConfigInvalid, says: []string{"http://192.0.2.1"}},
		{name: "half an answer", faults: &exchange.Fault{Kind: exchange.HalfBody}, code: plan.CodeSecretUnreachable},
		{name: "reset", faults: &exchange.Fault{Kind: exchange.Reset}, code: plan.CodeSecretUnreachable},
		{name: "no answer", faults: &exchange.Fault{Kind: exchange.Stall}, code: plan.CodeSecretTimeout, says: []string{"200ms"}},
		{name: "nobody listens", set: func(_ *secretstest.Server, s *plan.SecretsSettings) { s.URL = nobody(t) }, code: plan.CodeSecretUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVault(t)
			v.Put("lon14/bmc/gpu-001", map[string]string{"username": "admin", "password": "correct horse", "empty": ""})
			s := settings(v.URL)
			if c.set != nil {
				c.set(v, &s)
			}
			if c.faults != nil {
				v.Recorder.Inject(c.faults)
			}
			if c.token == "" {
				c.token = reader
			}
			if c.ref.IsZero() {
				c.ref = ref
			}
			b, err := secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"LAB_TOKEN": c.token}), Timeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			values, err := b.Read(t.Context(), []plan.SecretRef{c.ref})
			f := faultOf(t, err, c.code, c.says...)
			if len(values) != 0 {
				t.Error("a value beside the fault")
			}
			said := fmt.Sprintf("%v %+v %v", f, f, f.EvidenceLines())
			for _, secret := range []string{c.token, "correct horse", "v1-password", "12345678"} {
				if strings.Contains(said, secret) {
					t.Errorf("the fault says a secret: %s", said)
				}
			}
		})
	}
}

// nobody is an address where nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// TestVaultDown wants a vault that does not answer to be asked a few times only,
// and every reference to be named.
func TestVaultDown(t *testing.T) {
	v := newVault(t)
	v.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Status: 503, Body: `{"errors":["Vault is sealed"]}`})
	var refs []plan.SecretRef
	for i := range 200 {
		refs = append(refs, plan.SecretRef{Item: fmt.Sprintf("bmc/gpu-%03d", i), Field: "password"})
	}
	b := open(t, settings(v.URL), reader)
	_, err := b.Read(t.Context(), refs)
	f := faultOf(t, err, plan.CodeSecretUnreachable, "200 secrets")
	if f.Evidence[`secret("bmc/gpu-199", "password")`] == "" {
		t.Error("the last reference is not named")
	}
	if n := len(v.Recorder.Records()); n > 16 {
		t.Errorf("%d requests to a sealed vault", n)
	}
}

func TestVaultDeleted(t *testing.T) {
	v := newVault(t)
	v.Put("lon14/x", map[string]string{"f": "value"})
	req, _ := http.NewRequest(http.MethodDelete, v.URL+"/v1/secret/data/lon14/x", nil)
	req.Header.Set("X-Vault-Token", v.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	_, err = open(t, settings(v.URL), reader).Read(t.Context(), []plan.SecretRef{{Item: "x", Field: "f"}})
	wantFault(t, err, plan.CodeSecretMissing, "newest version", "deleted")
}

func TestVaultInterrupted(t *testing.T) {
	v := newVault(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := open(t, settings(v.URL), reader).Read(ctx, []plan.SecretRef{{Item: "x", Field: "f"}})
	wantFault(t, err, plan.CodeInterrupted)
}

// TestRedirectKeepsToken wants the token never to reach a host that the vault
// points to.
func TestRedirectKeepsToken(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	v := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer v.Close()
	_, err := open(t, settings(v.URL), reader).Read(t.Context(), []plan.SecretRef{{Item: "x", Field: "f"}})
	wantFault(t, err, plan.CodeConfigInvalid)
	if asked {
		t.Error("the redirect was followed")
	}
}

func TestVaultToken(t *testing.T) {
	for _, c := range []struct {
		token string
		code  plan.Code
	}{{"", plan.CodeSecretMissing}, {" \n", plan.CodeSecretMissing}, {"two words", plan.CodeSecretInvalid}, {"line\r\nInjected: x", plan.CodeSecretInvalid}} {
		_, err := secrets.New(settings("http://vault.example.net"), secrets.Options{Getenv: variables(map[string]string{"LAB_TOKEN": c.token})})
		f := faultOf(t, err, c.code, "LAB_TOKEN")
		if strings.Contains(f.Error(), "words") || strings.Contains(f.Error(), "Injected") {
			t.Errorf("the fault says the token: %v", f)
		}
	}
}

func TestVaultTLS(t *testing.T) {
	cert, caFile := certificate(t)
	v := secretstest.New(secretstest.Options{TLS: &cert})
	defer v.Close()
	v.Put("lon14/x", map[string]string{"f": "value over TLS"})
	ref := plan.SecretRef{Item: "x", Field: "f"}

	s := settings(v.URL)
	s.CAFile = caFile
	values, err := open(t, s, v.Token).Read(t.Context(), []plan.SecretRef{ref})
	if got := values[ref]; err != nil || got.Reveal() != "value over TLS" {
		t.Errorf("with ca_file: %v", err)
	}
	_, err = open(t, settings(v.URL), v.Token).Read(t.Context(), []plan.SecretRef{ref})
	wantFault(t, err, plan.CodeSecretUnreachable, "certificate", "ca_file")

	s.CAFile = filepath.Join(t.TempDir(), "none.pem")
	_, err = secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"LAB_TOKEN": v.Token})})
	wantFault(t, err, plan.CodeConfigInvalid, "none.pem")
	if err := os.WriteFile(s.CAFile, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"LAB_TOKEN": v.Token})})
	wantFault(t, err, plan.CodeConfigInvalid, "none.pem")
}

// certificate makes one for 127.0.0.1 and a file with itself as its CA.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}
