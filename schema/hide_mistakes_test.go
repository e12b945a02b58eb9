package schema

import (
	"bytes"
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
	shownNowhere(t, "a local", strings.Replace(minimal("locals {\n  x = \"hunter2\"\n}\n", ""), `token = secret("netbox", "token")`, "token = local.x\n    timeout = local.x", 1), nil, literal, "x = \"hunter2\"")
	shownNowhere(t, "a message", minimal("variable \"netbox_token\" {\n  validation {\n    condition = var.netbox_token == \"\"\n    error_message = \"bad ${var.netbox_token}\"\n  }\n}\n", ""), map[string]string{"netbox_token": literal}, literal)
	shownNowhere(t, "given", minimal("variable \"netbox_token\" {}\nlocals { n = parseint(var.netbox_token, 10) }\n", ""), map[string]string{"netbox_token": literal}, literal)
}

// shownNowhere loads a file with mistakes and looks for the literal in all that
// is said about it.
func shownNowhere(t *testing.T, what, text string, vars map[string]string, literal string, but ...string) {
	t.Helper()
	_, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(text)}}, Vars: vars})
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
	said := out.String()
	for _, b := range but { // a line that has nothing to do with secrets by itself
		said = strings.ReplaceAll(said, b, "")
	}
	if strings.Contains(said, literal) {
		t.Errorf("%q is shown:\n%s", what, out.String())
	}
}
