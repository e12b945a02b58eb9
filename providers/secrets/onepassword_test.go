package secrets_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

func newConnect(t *testing.T) *secretstest.Connect {
	t.Helper()
	c := secretstest.NewConnect(secretstest.ConnectOptions{
		Vaults: []string{"lon14", "other", "twice", "twice"},
		Tokens: []secretstest.ConnectToken{{Value: secretstest.DefaultConnectToken}, {Value: "reader-of-lon14", Vaults: []string{"lon14"}}},
	})
	t.Cleanup(c.Close)
	return c
}

func connectSettings(url string) plan.SecretsSettings {
	return plan.SecretsSettings{Backend: "onepassword", URL: url, Vault: "lon14", TokenEnv: "LAB_TOKEN"}
}

// TestConnectRead wants one request for the vault, one for its list, and one for
// each item.
func TestConnectRead(t *testing.T) {
	c := newConnect(t)
	var refs []plan.SecretRef
	const items = 30
	for i := range items {
		name := fmt.Sprintf("bmc-gpu-%03d", i)
		c.Put("lon14", name, map[string]string{"username": "admin", "password": "old"})
		c.Put("lon14", name, map[string]string{"password": fmt.Sprintf("pw-%d \"&ä", i)})
		refs = append(refs, plan.SecretRef{Item: name, Field: "username"}, plan.SecretRef{Item: name, Field: "password"})
	}
	b := open(t, connectSettings(c.URL), "reader-of-lon14")
	values, err := b.Read(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Recorder.Records()); n != items+2 || b.Requests() != n {
		t.Errorf("%d requests, %d counted, want %d", n, b.Requests(), items+2)
	}
	s := values[plan.SecretRef{Item: "bmc-gpu-007", Field: "password"}]
	if s.Reveal() != "pw-7 \"&ä" || s.Version != "2" || len(values) != 2*items {
		t.Errorf("version %q, %d values", s.Version, len(values))
	}
	// The vault is found once, and an item is read once.
	if _, err := b.Read(t.Context(), refs[:1]); err != nil || b.Requests() != items+2 {
		t.Errorf("%v, %d requests", err, b.Requests())
	}
	c.Put("lon14", "late", map[string]string{"f": "value"})
	if _, err := b.Read(t.Context(), []plan.SecretRef{refs[0], {Item: "late", Field: "f"}}); err != nil || b.Requests() != items+4 {
		t.Errorf("%v, %d requests", err, b.Requests())
	}
}

// TestConnectFields: label, section and label, id; what is not clear is refused.
func TestConnectFields(t *testing.T) {
	c := newConnect(t)
	id := c.Add("lon14", "login", secretstest.ConnectField{ID: "password", Label: "Passwort", Value: "by-id"},
		secretstest.ConnectField{Label: "pin", Section: "front", Value: "1111-front"}, secretstest.ConnectField{Label: "pin", Section: "back", Value: "2222-back"},
		secretstest.ConnectField{Label: "empty"}, secretstest.ConnectField{Label: "line", Value: "ends so\n"})
	c.Add("lon14", "twin")
	c.Add("lon14", "twin")
	b := open(t, connectSettings(c.URL), c.Token)
	for _, want := range []struct{ item, field, value string }{
		{"login", "Passwort", "by-id"}, {"login", "password", "by-id"}, {"login", "front.pin", "1111-front"}, {"login", "back.pin", "2222-back"},
		{id, "Passwort", "by-id"}, {"login", "line", "ends so"},
	} {
		ref := plan.SecretRef{Item: want.item, Field: want.field}
		values, err := b.Read(t.Context(), []plan.SecretRef{ref})
		if s := values[ref]; err != nil || s.Reveal() != want.value {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, c := range []struct {
		item, field string
		code        plan.Code
		says        []string
	}{
		{"login", "pin", plan.CodeSecretInvalid, []string{"2 fields", "SECTION.FIELD"}},
		{"login", "empty", plan.CodeSecretInvalid, []string{"empty"}},
		{"login", "pasword", plan.CodeSecretMissing, []string{"login", "pasword", `"Passwort"`, `"front.pin"`}},
		{"Login", "pin", plan.CodeSecretMissing, []string{`"lon14"`, `"Login"`, "upper and lower case"}},
		{"twin", "password", plan.CodeSecretInvalid, []string{"2 items", "twin"}},
	} {
		_, err := b.Read(t.Context(), []plan.SecretRef{{Item: c.item, Field: c.field}})
		wantFault(t, err, c.code, c.says...)
		if strings.Contains(fmt.Sprintf("%+v", plan.AsFault(err)), "1111-front") {
			t.Error("the fault says a secret")
		}
	}
}

// TestConnectFaults wants each refusal in its class.
func TestConnectFaults(t *testing.T) {
	list := "/v1/vaults/" // prefix of all but the search for the vault
	for _, c := range []struct {
		name   string
		set    func(*plan.SecretsSettings)
		token  string
		faults *exchange.Fault
		code   plan.Code
		says   []string
		most   int // requests
	}{
		{name: "401", token: "wrong-token", code: plan.CodeSecretLogin, says: []string{"401", "Invalid token signature"}, most: 1},
		{name: "403", token: "reader-of-lon14", set: func(s *plan.SecretsSettings) { s.Vault = "" }, code: plan.CodeSecretDenied, says: []string{"403", "does not have access"}, most: 1},
		{name: "vault that is not shown", token: "reader-of-lon14", set: func(s *plan.SecretsSettings) { s.Vault = "other" }, code: plan.CodeSecretMissing, says: []string{`"other"`}, most: 1},
		{name: "two vaults", set: func(s *plan.SecretsSettings) { s.Vault = "twice" }, code: plan.CodeSecretInvalid, says: []string{"2 vaults", "id"}, most: 1},
		{name: "404 of an item that was listed", faults: &exchange.Fault{Path: list, Kind: exchange.Status, Status: 404, Body: `{"status":404,"message":"Item not found"}`}, code: plan.CodeSecretMissing, says: []string{"404"}},
		{name: "429", faults: &exchange.Fault{Kind: exchange.Status, Status: 429, Header: map[string]string{"Retry-After": "12"}}, code: plan.CodeSecretBusy, says: []string{"429", "12"}, most: 1},
		{name: "500", faults: &exchange.Fault{Path: list, Kind: exchange.Status, Status: 500, Body: `{"status":500,"message":"failed to sync"}`}, code: plan.CodeSecretUnreachable, says: []string{"500", "failed to sync"}},
		{name: "504", faults: &exchange.Fault{Kind: exchange.Status, Status: 504}, code: plan.CodeSecretTimeout, says: []string{"504"}},
		{name: "status that the words belie", faults: &exchange.Fault{Kind: exchange.Status, Status: 403, Body: `{"message":"no"}`}, code: plan.CodeSecretDenied},
		{name: "time-out", faults: &exchange.Fault{Kind: exchange.Stall}, code: plan.CodeSecretTimeout, says: []string{"200ms"}, most: 1},
		{name: "reset", faults: &exchange.Fault{Kind: exchange.Reset}, code: plan.CodeSecretUnreachable},
		{name: "half a list", faults: &exchange.Fault{Path: list, Kind: exchange.HalfBody}, code: plan.CodeSecretUnreachable},
		{name: "page instead of an answer", faults: &exchange.Fault{Kind: exchange.Garbage}, code: plan.CodeSecretInvalid, says: []string{"not that of a 1Password Connect server", "/v1"}},
		{name: "redirect", faults: &exchange.Fault{Kind: exchange.Status, Status: 302, Header: map[string]string{"Location": "http://192.0.2.1/"}}, code: plan.CodeConfigInvalid, says: []string{"http://192.0.2.1/"}},
		{name: "nobody listens", set: func(s *plan.SecretsSettings) { s.URL = nobody(t) }, code: plan.CodeSecretUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newConnect(t)
			server.Put("lon14", "netbox", map[string]string{"credential": "correct horse"})
			s := connectSettings(server.URL)
			if c.set != nil {
				c.set(&s)
			}
			if s.Vault == "" {
				s.Vault = server.ID("other") // an id is not searched for, so the refusal is seen
			}
			if c.faults != nil {
				server.Recorder.Inject(c.faults)
			}
			if c.token == "" {
				c.token = server.Token
			}
			b, err := secrets.New(s, secrets.Options{Getenv: variables(map[string]string{"LAB_TOKEN": c.token}), Timeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Read(t.Context(), []plan.SecretRef{{Item: "netbox", Field: "credential"}})
			f := faultOf(t, err, c.code, c.says...)
			if c.most > 0 && b.Requests() > c.most {
				t.Errorf("%d requests", b.Requests())
			}
			said := fmt.Sprintf("%v %+v %v", f, f, f.EvidenceLines())
			for _, secret := range []string{c.token, "correct horse"} {
				if strings.Contains(said, secret) {
					t.Errorf("the fault says a secret: %s", said)
				}
			}
		})
	}
}

// TestConnectToken: from a file, and what the redactor must know.
func TestConnectToken(t *testing.T) {
	c := newConnect(t)
	c.Put("lon14", "x", map[string]string{"f": "value"})
	s := connectSettings(c.URL)
	s.TokenEnv, s.TokenFile = "", writeTemp(t, c.Token+"\n")
	var learnt []string
	b, err := secrets.New(s, secrets.Options{Learn: func(s plan.Secret) { learnt = append(learnt, s.Reveal()) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(t.Context(), []plan.SecretRef{{Item: "x", Field: "f"}}); err != nil {
		t.Error(err)
	}
	if len(learnt) != 1 || learnt[0] != c.Token {
		t.Errorf("%d learnt", len(learnt))
	}
	s.TokenFile += ".missing"
	_, err = secrets.New(s, secrets.Options{})
	wantFault(t, err, plan.CodeSecretMissing, "file", "token")
	s.TokenFile = ""
	_, err = secrets.New(s, secrets.Options{Getenv: variables(nil)})
	wantFault(t, err, plan.CodeSecretMissing, "OP_CONNECT_TOKEN")
	for _, r := range c.Recorder.Records() {
		if strings.Contains(r.Path, c.Token) || r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
}
