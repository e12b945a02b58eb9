package secretstest_test

import (
	"testing"

	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

func TestConformance(t *testing.T) {
	s := secretstest.New(secretstest.Options{Login: []secretstest.Role{{ID: "role-id", SecretID: "secret-id", Uses: 1, Read: []string{"secret/data/lon14/"}}, {Name: "enroll", JWT: "a.b.c"}}})
	defer s.Close()
	conformance(t, vaultUnderTest{url: s.URL, token: s.Token, paths: "lon14", roleID: "role-id", secretID: "secret-id", role: "enroll", goodJWT: "a.b.c", otherJWT: "a.b.d"})
}

func TestNamespaceConformance(t *testing.T) {
	s := secretstest.New(secretstest.Options{Namespace: "infra"})
	defer s.Close()
	namespaceConformance(t, vaultUnderTest{url: s.URL, paths: "lon14", namespace: "infra", namespaceToken: s.Token})
}

// TestSealed: what a sealed OpenBao 2.7.2 answers, whoever asks.
func TestSealed(t *testing.T) {
	s := secretstest.New(secretstest.Options{})
	defer s.Close()
	s.Put("x", map[string]string{"f": "value"})
	s.Seal()
	for _, c := range []exchangeCase{
		{name: "sealed", method: "GET", path: "secret/data/x", status: 503, errors: []string{"Vault is sealed"}},
		{name: "wrong token", method: "GET", path: "secret/data/x", token: "wrong", status: 503, errors: []string{"Vault is sealed"}},
		{name: "health", method: "GET", path: "sys/health", token: "-", status: 503, want: map[string]any{"sealed": true}},
	} {
		t.Run(c.name, func(t *testing.T) { run(t, vaultUnderTest{url: s.URL, token: s.Token}, c) })
	}
	s.Unseal()
	run(t, vaultUnderTest{url: s.URL, token: s.Token}, exchangeCase{method: "GET", path: "secret/data/x", status: 200, want: map[string]any{"data.data.f": "value"}})
}

// TestPolicy: a token with a policy reads what that grants, and writes nothing.
func TestPolicy(t *testing.T) {
	s := secretstest.New(secretstest.Options{Tokens: []secretstest.Token{{Value: "s.root"}, {Value: "s.reader", Read: []string{"secret/data/lon14/"}}}})
	defer s.Close()
	s.Put("lon14/x", map[string]string{"f": "value"})
	denied := []string{"1 error occurred:\n\t* permission denied\n\n"}
	for _, c := range []exchangeCase{
		{name: "granted", method: "GET", path: "secret/data/lon14/x", token: "s.reader", status: 200, want: map[string]any{"data.data.f": "value"}},
		{name: "other item", method: "GET", path: "secret/data/other", token: "s.reader", status: 403, errors: denied},
		{name: "write", method: "POST", path: "secret/data/lon14/x", body: `{"data":{}}`, token: "s.reader", status: 403, errors: denied},
		{name: "mount that is not there", method: "GET", path: "nothing/data/x", token: "s.reader", status: 403, errors: denied},
	} {
		t.Run(c.name, func(t *testing.T) { run(t, vaultUnderTest{url: s.URL}, c) })
	}
	if n := s.Recorder.Count(func(r exchange.Record) bool { return r.System == "vault" && r.Mutating }); n != 1 {
		t.Errorf("%d mutating requests recorded", n)
	}
}
