package secretstest_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

// TestConnectConformance: what 1Password's own SDK asks for, and what it must
// get, after the description of the Connect server's API.
func TestConnectConformance(t *testing.T) {
	c := secretstest.NewConnect(secretstest.ConnectOptions{
		Vaults: []string{"lon14", "other"},
		Tokens: []secretstest.ConnectToken{{Value: "t.all"}, {Value: "t.lon14", Vaults: []string{"lon14"}}},
	})
	defer c.Close()
	id := c.Add("lon14", "bmc-gpu-001", secretstest.ConnectField{Label: "username", Value: "admin", Purpose: "USERNAME"},
		secretstest.ConnectField{Label: "password", Value: "one", Purpose: "PASSWORD"}, secretstest.ConnectField{Label: "empty"}, secretstest.ConnectField{Label: "pin", Section: "front", Value: "1234"})
	c.Put("lon14", "bmc-gpu-001", map[string]string{"password": "two"})
	lon14, other := c.ID("lon14"), c.ID("other")
	title := func(s string) string { return "?filter=" + url.QueryEscape(`title eq "`+s+`"`) }
	for _, x := range []struct {
		name, path, token string
		status            int
		want              map[string]any // by path; numbers are indexes of lists
	}{
		{"no token", "/v1/vaults", "", 401, map[string]any{"status": 401.0}},
		{"wrong token", "/v1/vaults", "t.wrong", 401, map[string]any{"status": 401.0, "message": "Authentication: Invalid token signature"}},
		{"vaults", "/v1/vaults", "t.lon14", 200, map[string]any{"0.name": "lon14", "0.id": lon14, "1": nil}},
		{"vault by title", "/v1/vaults" + title("other"), "t.all", 200, map[string]any{"0.name": "other", "0.id": other, "1": nil}},
		{"vault by a title that is not there", "/v1/vaults" + title("none"), "t.all", 200, map[string]any{"0": nil}},
		{"title with a quotation mark", "/v1/vaults" + title(`a"b`), "t.all", 400, map[string]any{"status": 400.0}},
		{"vault", "/v1/vaults/" + lon14, "t.lon14", 200, map[string]any{"name": "lon14", "items": 1.0}},
		{"vault that the token does not cover", "/v1/vaults/" + other, "t.lon14", 403, map[string]any{"status": 403.0}},
		{"items of that vault", "/v1/vaults/" + other + "/items", "t.lon14", 403, map[string]any{"status": 403.0}},
		{"vault that is not there", "/v1/vaults/aaaaaaaaaaaaaaaaaaaaaaaaaa", "t.all", 404, map[string]any{"status": 404.0}},
		{"no id of a vault", "/v1/vaults/lon14", "t.all", 400, map[string]any{"status": 400.0}},
		{"items are summaries", "/v1/vaults/" + lon14 + "/items", "t.lon14", 200, map[string]any{"0.id": id, "0.title": "bmc-gpu-001", "0.vault.id": lon14, "0.version": 2.0, "0.fields": nil}},
		{"item by title", "/v1/vaults/" + lon14 + "/items" + title("bmc-gpu-001"), "t.lon14", 200, map[string]any{"0.id": id, "0.fields": nil, "1": nil}},
		{"item", "/v1/vaults/" + lon14 + "/items/" + id, "t.lon14", 200, map[string]any{
			"id": id, "version": 2.0, "fields.0.label": "username", "fields.0.purpose": "USERNAME", "fields.1.value": "two", "fields.2.value": nil,
			"fields.3.section.label": "front", "sections.0.label": "front",
		}},
		{"item that is not there", "/v1/vaults/" + lon14 + "/items/bbbbbbbbbbbbbbbbbbbbbbbbbb", "t.lon14", 404, map[string]any{"status": 404.0}},
		{"no id of an item", "/v1/vaults/" + lon14 + "/items/bmc-gpu-001", "t.lon14", 400, map[string]any{"status": 400.0}},
		{"other path", "/v1/activity", "t.all", 404, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodGet, c.URL+x.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if x.token != "" {
				req.Header.Set("Authorization", "Bearer "+x.token)
			}
			expect(t, req, x.status, x.want)
		})
	}
}
