package secrets

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// answering gives every request the same answer.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

// FuzzAnswers: whatever a vault or a Connect server answers, every reference has a
// value that is not empty, or is named by a fault.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"data":{"data":{"f":"value"},"metadata":{"version":3}}}`, `{"errors":["permission denied"]}`, `{"errors":null,"data":{"metadata":{"deletion_time":"x"}}}`,
		`[{"id":"aaaaaaaaaaaaaaaaaaaaaaaaaa","title":"x","name":"lon14"}]`, `{"id":"x","fields":[null,{"label":"f","value":"v"},{"label":"f","section":{"id":"s"}}],"sections":[null]}`,
		`{"auth":{"client_token":"t"}}`, `null`, ``, `[`, "{\"data\":{\"data\":{\"f\":\"\\ud800\\n\"},\"metadata\":{\"version\":1}}}",
	} {
		for _, status := range []int{200, 307, 400, 401, 403, 404, 429, 503} {
			f.Add(status, []byte(body))
		}
	}
	ref := plan.SecretRef{Item: "x", Field: "f"}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 599 {
			t.Skip()
		}
		for _, s := range []plan.SecretsSettings{
			{Backend: "vault", URL: "http://vault.example.net"},
			{Backend: "vault", URL: "http://vault.example.net", AppRole: &plan.VaultAppRole{RoleID: "r"}},
			{Backend: "onepassword", URL: "http://connect.example.net", Vault: "lon14"},
			{Backend: "onepassword", URL: "http://connect.example.net", Vault: "aaaaaaaaaaaaaaaaaaaaaaaaaa"},
		} {
			b, err := New(s, Options{Getenv: func(string) (string, bool) { return "token", true }, Timeout: time.Second, Transport: answering{status, body}})
			if err != nil {
				t.Fatal(err)
			}
			values, err := b.Read(context.Background(), []plan.SecretRef{ref})
			outcome(t, values[ref], err)
		}
	})
}

// FuzzPrinted: the same for what a program prints.
func FuzzPrinted(f *testing.F) {
	for _, text := range []string{`{"f":"value"}`, `{"fields":[{"label":"f","value":"v"}]}`, `{"fields":[{"label":"f"},{"label":"f"}]}`, `{"fields":{}}`, `{"fields":[1]}`, `{"f":null}`, `[]`, ``} {
		f.Add([]byte(text))
	}
	ref := plan.SecretRef{Item: "x", Field: "f"}
	f.Fuzz(func(t *testing.T, text []byte) {
		e := printedEntry("x", text)
		if e == nil {
			return
		}
		found := newResult(func(string) {})
		e.field(ref, nil, found)
		outcome(t, found.values[ref], found.fault())
	})
}

func outcome(t *testing.T, s plan.Secret, err error) {
	t.Helper()
	var fault *plan.Fault
	if err != nil && !errors.As(err, &fault) {
		t.Fatalf("no fault but %v", err)
	}
	if (s.Reveal() != "") == (err != nil) {
		t.Fatalf("a value of %d bytes beside %v", len(s.Reveal()), err)
	}
}
