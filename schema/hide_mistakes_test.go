package schema

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// What was typed where a secret belongs is never shown, however wrong the line is.
func TestNoLiteralWhereASecretBelongs(t *testing.T) {
	const literal = "hunter2"
	for _, line := range []string{
		`token "hunter2"`, `token { v = "hunter2" }`, `token += "hunter2"`, `token -> "hunter2"`, `token = secret("hunter2")`, `token = secret(hunter2)`,
		"token =\nhunter2", "token = secret(\n \"hunter2\n )", `token hunter2`, `tokn "hunter2"`, `token "a" "hunter2"`, "token # hunter2", `token = secret("a", "b", "hunter2")`,
		`token = secret("x", hunter2)`,
	} {
		text := strings.Replace(minimal("", ""), `token = secret("netbox", "token")`, line, 1)
		if !strings.Contains(text, literal) {
			t.Fatalf("%q is not in the file", line)
		}
		shownNowhere(t, line, text, nil, literal)
	}
	for _, block := range []string{
		"variable \"netbox_token\" {\n  type = number\n  default = \"hunter2\"\n}\n",
		"variable \"netbox_token\" {\n  default = \"hunter2\"\n  nonsense = 1\n}\nlocals { n = tonumber(var.netbox_token) }\n",
	} {
		shownNowhere(t, block, minimal(block, ""), nil, literal)
	}
	shownNowhere(t, "a message", minimal("variable \"netbox_token\" {\n  validation {\n    condition = var.netbox_token == \"\"\n    error_message = \"bad ${var.netbox_token}\"\n  }\n}\n", ""), map[string]string{"netbox_token": literal}, literal)
	shownNowhere(t, "given", minimal("variable \"netbox_token\" {}\nlocals { n = parseint(var.netbox_token, 10) }\n", ""), map[string]string{"netbox_token": literal}, literal)
}

// The same holds for what gives a variable or a local its value that stands where
// a secret belongs, in whatever line the mistake is.
func TestNoLiteralThatFlowsToASecret(t *testing.T) {
	const token = `token = secret("netbox", "token")`
	for _, c := range []struct{ name, token, above string }{
		{"elsewhere", "token = local.x\n    timeout = local.x", "locals {\n  x = \"hunter2\"\n}\n"},
		{"wrong function", "token = local.x", "locals {\n  x = upperr(\"hunter2\")\n}\n"},
		{"wrong argument", "token = local.x", "locals {\n  x = tonumber(\"hunter2\")\n}\n"},
		{"too many arguments", "token = local.x", "locals {\n  x = upper(\"hunter2\", 2)\n}\n"},
		{"wrong name", "token = local.x", "locals {\n  x = \"hunter2${var.nothing}\"\n}\n"},
		{"no line", "token = local.x", "locals {\n  x = \"hunter2\" \"more\"\n}\n"},
		{"not closed", "token = local.x", "locals {\n  x = \"hunter2\n}\n"},
		{"twice", "token = local.x", "locals {\n  x = \"hunter2\"\n}\nlocals {\n  x = \"hunter2\"\n}\n"},
		{"over another", "token = local.x", "locals {\n  x = tonumber(local.y)\n  y = lower(\"hunter2\")\n}\n"},
		{"wrong other", "token = local.x", "locals {\n  x = local.y\n  y = lowr(\"hunter2\")\n}\n"},
		{"in a map", "token = local.x.y", "locals {\n  x = { y = lowr(\"hunter2\") }\n}\n"},
		{"by a choice", "token = var.prod ? secret(\"a\", \"b\") : try(local.x, local.y)", "variable \"prod\" {\n  default = false\n}\nlocals {\n  x = lowr(\"hunter2\")\n  y = \"\"\n}\n"},
		{"default", "token = var.x", "variable \"x\" {\n  type = number\n  default = \"hunter2\"\n}\n"},
		{"message", "token = var.x", "variable \"x\" {\n  default = \"hunter2\"\n  validation {\n    condition = var.x == \"\"\n    error_message = \"bad ${var.x}\"\n  }\n}\n"},
	} {
		shownNowhere(t, c.name, strings.Replace(minimal(c.above, ""), token, c.token, 1), nil, "hunter2")
	}
	asJSON := `{"locals": {"x": "${upperr(\"hunter2\")}"}, "site": {"x": {"netbox": {"token": "${local.x}"}}}}`
	for _, text := range []string{asJSON, strings.TrimSuffix(asJSON, "}")} {
		_, ds := Load("", Options{Files: fstest.MapFS{"site.hcl.json": {Data: []byte(text)}}})
		saysNothing(t, "JSON", ds, "hunter2")
	}
	for _, line := range []string{"x = upper(\"hunter2\")", "x = \"hunter2\" y", "x = [\"hunter2\"]"} {
		_, ds := Load("", Options{VarFiles: []string{"x.vars"}, Files: fstest.MapFS{"x.vars": {Data: []byte(line + "\n")},
			"site.hcl": {Data: []byte(strings.Replace(minimal("variable \"x\" {\n  type = string\n}\n", ""), token, "token = var.x", 1))}}})
		saysNothing(t, "a line of a file of variables: "+line, ds, "hunter2")
	}
	// An item's name is no secret.
	_, ds := load(strings.Replace(minimal("locals {\n  item = upperr(\"visible\")\n}\n", ""), token, `token = secret(local.item, "token")`, 1), Options{})
	if said := text(t, ds); !strings.Contains(said, "visible") {
		t.Error(said)
	}
}

// What stands where the place of a credential belongs may be the credential.
func TestCredentialInsteadOfItsPlace(t *testing.T) {
	tokens := map[string]string{
		"vault": "hvs.CAESIJabcdefghijk", "JWT": "eyJhbGciOiJFUzI1NiJ9.e30.abc", "age": "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "id": "59d6d1ca-47bb-4e7e-a40b-8be3bc5a0ba8",
		"hexadecimal": "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3", "base64": "wJalrXUtnFEMI+K7MDENG+bPxRfiCY=", "key": "-----BEGIN OPENSSH PRIVATE KEY-----",
	}
	for kind, token := range tokens {
		for _, block := range []string{
			"secrets \"vault\" {\n url = \"https://v.example.net\"\n token_env = %q\n}", "secrets \"vault\" {\n url = \"https://v.example.net\"\n token_file = %q\n}",
			"secrets \"vault\" {\n url = \"https://v.example.net\"\n app_role {\n role_id = \"x\"\n secret_id_env = %q\n}\n}", "secrets \"onepassword\" {\n token_env = %q\n}",
			"secrets \"age\" {\n file = \"x.age\"\n identity_file = %q\n}", "secrets \"age\" {\n file = \"x.age\"\n identity_env = %q\n}", "secrets \"age\" {\n identity_env %q\n}",
			"secrets \"age\" {\n identity_envv = %q\n}", "secrets \"age\" {\n identity_env = [%q]\n}", "secrets \"age\" {\n identity_env = upperr(%q)\n}",
		} {
			shownNowhere(t, kind, strings.Replace(minimal("", ""), `secrets "env" {}`, fmt.Sprintf(block, token), 1), nil, token)
		}
		through := strings.Replace(minimal("variable \"x\" {}\n", ""), `secrets "env" {}`, "secrets \"age\" {\n file = \"x.age\"\n identity_env = var.x\n}", 1)
		shownNowhere(t, kind+" by a variable", through, map[string]string{"x": token}, token)
		_, ds := Load("", Options{Files: fstest.MapFS{"site.hcl.json": {Data: fmt.Appendf(nil, `{"site": {"x": {"secrets": {"age": {"file": "x.age", "identity_env": %q}}}}}`, token)}}})
		saysNothing(t, kind+" in JSON", ds, token)
	}
	for name, good := range map[string][]string{
		"token_env":     {"VAULT_TOKEN", "vault_token", "ENROLL_LON14_VAULT_TOKEN_2"},
		"identity_file": {"id_ed25519", "/run/secrets/f3a94a8fe5ccb19ba61c4c0873d391e9/key", "../keys/a94a8fe5ccb19ba61c4c0873d391e987", "keys/lon14-enroll-2026.pem"},
	} {
		for _, value := range good {
			if looksLikeCredential(value) {
				t.Errorf("%s = %q is refused", name, value)
			}
		}
	}
}

// shownNowhere loads a file with mistakes and looks for the literal in all that
// is said about it.
func shownNowhere(t *testing.T, what, text string, vars map[string]string, literal string) {
	t.Helper()
	_, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(text)}}, Vars: vars})
	saysNothing(t, what, ds, literal)
}

func saysNothing(t *testing.T, what string, ds Diagnostics, literal string) {
	t.Helper()
	if !ds.HasErrors() {
		t.Errorf("%q is taken", what)
	}
	var out bytes.Buffer
	if err := ds.WriteText(&out, false); err != nil {
		t.Fatal(err)
	}
	if err := ds.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), literal) {
		t.Errorf("%q is shown:\n%s", what, out.String())
	}
}
