package secretstest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// vaultUnderTest is a vault that the table runs against: the simulator, or a
// real one.
type vaultUnderTest struct {
	url   string
	token string // may do everything
	paths string // a folder of its own below the mount "secret"

	// AppRole at auth/approle, whose secret id may be used once, and Kubernetes at
	// auth/kubernetes; the role of both reads the folder.
	roleID, secretID        string
	role, goodJWT, otherJWT string

	// A namespace with a KV engine at "secret" and a token of it. The names in it
	// are the same as in the root.
	namespace, namespaceToken string
}

// exchangeCase is one exchange and what must be observed: the status, and the
// values at some paths of the answer ("data.metadata.version").
type exchangeCase struct {
	name   string
	method string
	path   string // %P stands for the folder
	// body; %R, %S, %K, %J and %O stand for role id, secret id, Kubernetes role, its
	// JWT and another one
	body   string
	header string // X-Vault-Namespace; %N stands for the namespace
	token  string // "" is the one that may do everything, "-" none
	status int
	want   map[string]any
	errors []string // nil: not looked at
}

var cases = []exchangeCase{
	{name: "missing item", method: "GET", path: "secret/data/%P/none", status: 404, errors: []string{}},
	{name: "write", method: "POST", path: "secret/data/%P/bmc/gpu-001", body: `{"data":{"username":"admin","password":"one","n":5}}`, status: 200,
		want: map[string]any{"data.version": 1.0, "data.destroyed": false, "data.deletion_time": ""}},
	{name: "read", method: "GET", path: "secret/data/%P/bmc/gpu-001", status: 200,
		want: map[string]any{"data.data.username": "admin", "data.data.password": "one", "data.data.n": 5.0, "data.metadata.version": 1.0, "lease_id": "", "warnings": nil}},
	{name: "write again", method: "PUT", path: "secret/data/%P/bmc/gpu-001", body: `{"data":{"password":"two"}}`, status: 200,
		want: map[string]any{"data.version": 2.0}},
	{name: "read the newest", method: "GET", path: "secret/data/%P/bmc/gpu-001", status: 200,
		want: map[string]any{"data.data.password": "two", "data.data.username": nil, "data.metadata.version": 2.0}},
	{name: "read an older version", method: "GET", path: "secret/data/%P/bmc/gpu-001?version=1", status: 200,
		want: map[string]any{"data.data.password": "one", "data.metadata.version": 1.0}},
	{name: "read a version that is not there yet", method: "GET", path: "secret/data/%P/bmc/gpu-001?version=9", status: 404, errors: []string{}},
	{name: "check-and-set", method: "POST", path: "secret/data/%P/bmc/gpu-001", body: `{"data":{"password":"x"},"options":{"cas":1}}`, status: 400,
		errors: []string{"check-and-set parameter did not match the current version"}},
	{name: "delete", method: "DELETE", path: "secret/data/%P/bmc/gpu-001", status: 204},
	{name: "read what is deleted", method: "GET", path: "secret/data/%P/bmc/gpu-001", status: 404,
		want: map[string]any{"data.data": nil, "data.metadata.version": 2.0, "data.metadata.destroyed": false}},
	{name: "escaped name", method: "POST", path: "secret/data/%P/with%20blank", body: `{"data":{"a":"b"}}`, status: 200},
	{name: "read the escaped name", method: "GET", path: "secret/data/%P/with%20blank", status: 200, want: map[string]any{"data.data.a": "b"}},
	{name: "wrong token", method: "GET", path: "secret/data/%P/none", token: "wrong", status: 403, errors: []string{"permission denied"}},
	{name: "no token", method: "GET", path: "secret/data/%P/none", token: "-", status: 403, errors: []string{"permission denied"}},
	{name: "mount that is not there", method: "GET", path: "nothing/data/x", status: 404,
		errors: []string{`no handler for route "nothing/data/x". route entry not found.`}},
	{name: "path of version 1", method: "GET", path: "secret/%P/none", status: 404, want: map[string]any{"data": nil}},
	{name: "what a token may do", method: "POST", path: "sys/capabilities-self", body: `{"paths":["secret/data/%P/none"]}`, status: 200, want: map[string]any{"data.capabilities.0": "root", "data.capabilities.1": nil}},
	{name: "what a token may do, of nothing", method: "POST", path: "sys/capabilities-self", body: `{}`, status: 400},
	{name: "health", method: "GET", path: "sys/health", token: "-", status: 200, want: map[string]any{"sealed": false, "initialized": true}},
}

// loginCases are run after each other: the secret id is used up by the first.
var loginCases = []exchangeCase{
	{name: "AppRole without a secret id", method: "POST", path: "auth/approle/login", body: `{"role_id":"%R"}`, token: "-", status: 400, errors: []string{"missing secret_id"}},
	{name: "AppRole without a role id", method: "POST", path: "auth/approle/login", body: `{"secret_id":"%S"}`, token: "-", status: 500, errors: []string{"missing role_id"}},
	{name: "AppRole, wrong secret id", method: "POST", path: "auth/approle/login", body: `{"role_id":"%R","secret_id":"x"}`, token: "-", status: 400, errors: []string{"invalid role or secret ID"}},
	{name: "AppRole, wrong role id", method: "POST", path: "auth/approle/login", body: `{"role_id":"x","secret_id":"%S"}`, token: "-", status: 400, errors: []string{"invalid role or secret ID"}},
	{name: "AppRole", method: "POST", path: "auth/approle/login", body: `{"role_id":"%R","secret_id":"%S"}`, token: "-", status: 200,
		want: map[string]any{"data": nil, "auth.token_type": "service", "auth.renewable": true}},
	{name: "AppRole, used up", method: "POST", path: "auth/approle/login", body: `{"role_id":"%R","secret_id":"%S"}`, token: "-", status: 400, errors: []string{"invalid role or secret ID"}},
	{name: "engine that is not mounted", method: "POST", path: "auth/nothing/login", body: `{"role_id":"%R"}`, token: "-", status: 403, errors: []string{"permission denied"}},
	{name: "Kubernetes without a role", method: "POST", path: "auth/kubernetes/login", body: `{"jwt":"%J"}`, token: "-", status: 400, errors: []string{"missing role"}},
	{name: "Kubernetes without a token", method: "POST", path: "auth/kubernetes/login", body: `{"role":"%K"}`, token: "-", status: 400, errors: []string{"missing jwt"}},
	{name: "Kubernetes, unknown role", method: "POST", path: "auth/kubernetes/login", body: `{"role":"nobody","jwt":"%J"}`, token: "-", status: 400, errors: []string{`invalid role name "nobody"`}},
	{name: "Kubernetes, other service account", method: "POST", path: "auth/kubernetes/login", body: `{"role":"%K","jwt":"%O"}`, token: "-", status: 403, errors: []string{"permission denied"}},
	{name: "Kubernetes", method: "POST", path: "auth/kubernetes/login", body: `{"role":"%K","jwt":"%J"}`, token: "-", status: 200,
		want: map[string]any{"data": nil, "auth.token_type": "service", "auth.renewable": true}},
}

var namespaceCases = []exchangeCase{
	{name: "write in the namespace", method: "POST", path: "secret/data/%P/x", body: `{"data":{"f":"in the namespace"}}`, header: "%N", token: "%N", status: 200},
	{name: "read in the namespace", method: "GET", path: "secret/data/%P/x", header: "%N", token: "%N", status: 200, want: map[string]any{"data.data.f": "in the namespace"}},
	{name: "read with a slash", method: "GET", path: "secret/data/%P/x", header: "%N/", token: "%N", status: 200},
	{name: "its token in the root", method: "GET", path: "secret/data/%P/x", token: "%N", status: 403, errors: []string{"1 error occurred:\n\t* permission denied\n\n"}},
	{name: "wrong token in the namespace", method: "GET", path: "secret/data/%P/x", header: "%N", token: "wrong", status: 403, errors: []string{"permission denied"}},
	{name: "namespace that is not there", method: "GET", path: "secret/data/%P/x", header: "nowhere", token: "%N", status: 404, errors: []string{"namespace not found"}},
	{name: "login in a namespace that is not there", method: "POST", path: "auth/approle/login", body: `{"role_id":"x","secret_id":"y"}`, header: "nowhere", token: "-", status: 404, errors: []string{"namespace not found"}},
}

func conformance(t *testing.T, v vaultUnderTest) {
	for _, c := range append(cases[:len(cases):len(cases)], loginCases...) {
		t.Run(c.name, func(t *testing.T) { run(t, v, c) })
	}
}

func namespaceConformance(t *testing.T, v vaultUnderTest) {
	for _, c := range namespaceCases {
		t.Run(c.name, func(t *testing.T) { run(t, v, c) })
	}
}

func run(t *testing.T, v vaultUnderTest, c exchangeCase) {
	t.Helper()
	path := strings.ReplaceAll(c.path, "%P", v.paths)
	req, err := http.NewRequest(c.method, v.url+"/v1/"+path, strings.NewReader(strings.NewReplacer("%R", v.roleID, "%S", v.secretID, "%K", v.role, "%J", v.goodJWT, "%O", v.otherJWT).Replace(c.body)))
	if err != nil {
		t.Fatal(err)
	}
	switch c.token {
	case "":
		req.Header.Set("X-Vault-Token", v.token)
	case "-":
	case "%N":
		req.Header.Set("X-Vault-Token", v.namespaceToken)
	default:
		req.Header.Set("X-Vault-Token", c.token)
	}
	if c.header != "" {
		req.Header.Set("X-Vault-Namespace", strings.ReplaceAll(c.header, "%N", v.namespace))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != c.status {
		t.Errorf("status %d, want %d: %.300s", resp.StatusCode, c.status, body)
	}
	if c.status == 204 {
		return
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	check(t, c, body)
}

// expect sends a request and compares the status and the values at some paths of
// the answer.
func expect(t *testing.T, req *http.Request, status int, want map[string]any) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status {
		t.Errorf("status %d, want %d: %v", resp.StatusCode, status, answer)
	}
	for path, value := range want {
		if got := at(answer, path); got != value {
			t.Errorf("%s is %v, want %v: %v", path, got, value, answer)
		}
	}
}

// at gives the value at a path of names and indexes, nil where there is none.
func at(v any, path string) any {
	for _, part := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func check(t *testing.T, c exchangeCase, body []byte) {
	t.Helper()
	var answer map[string]any
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for path, want := range c.want {
		if got := at(answer, path); got != want {
			t.Errorf("%s is %v, want %v: %s", path, got, want, body)
		}
	}
	if c.errors == nil {
		return
	}
	got, _ := json.Marshal(answer["errors"])
	want, _ := json.Marshal(c.errors)
	if !bytes.Equal(got, want) {
		t.Errorf("errors %s, want %s", got, want)
	}
}
