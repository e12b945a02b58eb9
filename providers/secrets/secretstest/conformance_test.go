package secretstest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// vaultUnderTest is a vault that the table runs against: the simulator, or a
// real one.
type vaultUnderTest struct {
	url   string
	token string // may do everything
	paths string // a folder of its own below the mount "secret"
}

// exchangeCase is one exchange and what must be observed: the status, and the
// values at some paths of the answer ("data.metadata.version").
type exchangeCase struct {
	name   string
	method string
	path   string // %P stands for the folder
	body   string
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
	{name: "health", method: "GET", path: "sys/health", token: "-", status: 200, want: map[string]any{"sealed": false, "initialized": true}},
}

func conformance(t *testing.T, v vaultUnderTest) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { run(t, v, c) })
	}
}

func run(t *testing.T, v vaultUnderTest, c exchangeCase) {
	t.Helper()
	path := strings.ReplaceAll(c.path, "%P", v.paths)
	req, err := http.NewRequest(c.method, v.url+"/v1/"+path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	switch c.token {
	case "":
		req.Header.Set("X-Vault-Token", v.token)
	case "-":
	default:
		req.Header.Set("X-Vault-Token", c.token)
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
		t.Errorf("status %d, want %d: %s", resp.StatusCode, c.status, body)
	}
	if c.status == 204 {
		return
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	check(t, c, body)
}

func check(t *testing.T, c exchangeCase, body []byte) {
	t.Helper()
	var answer map[string]any
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for path, want := range c.want {
		var at any = answer
		for _, part := range strings.Split(path, ".") {
			m, _ := at.(map[string]any)
			at = m[part]
		}
		if at != want {
			t.Errorf("%s is %v, want %v: %s", path, at, want, body)
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
