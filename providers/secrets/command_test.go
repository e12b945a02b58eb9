package secrets_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// script makes an executable file; it notes every run in the file that is given.
func script(t *testing.T, body string) (path, runs string) {
	t.Helper()
	dir := t.TempDir()
	path, runs = filepath.Join(dir, "program"), filepath.Join(dir, "runs")
	text := "#!/bin/sh\nprintf '%s\\n' \"$*\" >>'" + runs + "'\n" + body
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, runs
}

func countRuns(t *testing.T, path string) int {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

func commandBackend(t *testing.T, argv ...string) *secrets.Backend {
	t.Helper()
	b, err := secrets.New(plan.SecretsSettings{Backend: "command", Argv: argv, Timeout: 5 * time.Second}, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCommandForEachItem: one run for each item, the name as one argument
// whatever is in it, and no shell.
func TestCommandForEachItem(t *testing.T) {
	program, runs := script(t, `printf '{"username": "admin", "password": "of %s", "count": "%s"}' "$2" "$#"`+"\necho 'not a secret' >&2\n")
	b := commandBackend(t, program, "get", "{item}", "--vault=lon14")
	var refs []plan.SecretRef
	for _, item := range []string{"bmc-gpu-001", "with blank", "$(id); `id` && x"} {
		refs = append(refs, plan.SecretRef{Item: item, Field: "password"}, plan.SecretRef{Item: item, Field: "count"})
	}
	values, err := b.Read(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		want := "3"
		if ref.Field == "password" {
			want = "of " + ref.Item
		}
		if s := values[ref]; s.Reveal() != want || s.Version != "" {
			t.Errorf("%s: %q", ref, s.Reveal())
		}
	}
	if n := countRuns(t, runs); n != 3 || b.Requests() != n {
		t.Errorf("%d runs, %d counted", n, b.Requests())
	}
}

// TestCommandForAll: one run in all, as sops prints a file.
func TestCommandForAll(t *testing.T) {
	program, runs := script(t, `printf '{"netbox": {"token": "nb-token\\n"}, "bmc": {"password": "p&\\"ä"}, "sops": "ENC"}'`)
	b := commandBackend(t, program, "-d", "site.json")
	for _, ref := range []plan.SecretRef{{Item: "netbox", Field: "token"}, {Item: "bmc", Field: "password"}} {
		values, err := b.Read(t.Context(), []plan.SecretRef{ref})
		if s := values[ref]; err != nil || s.Reveal() != map[string]string{"netbox": "nb-token", "bmc": "p&\"ä"}[ref.Item] {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if n := countRuns(t, runs); n != 1 {
		t.Errorf("%d runs", n)
	}
	_, err := b.Read(t.Context(), []plan.SecretRef{{Item: "sops", Field: "x"}, {Item: "none", Field: "x"}})
	wantFault(t, err, plan.CodeSecretMissing, "2 secrets", `secret("none", "x")`)
}

// TestCommandOp: the form that `op item get --format json` prints.
func TestCommandOp(t *testing.T) {
	program, _ := script(t, `cat <<'END'
{"id":"x","title":"login","version":4,"vault":{"id":"v"},"category":"LOGIN","sections":[{"id":"s1","label":"front"}],
 "fields":[{"id":"username","type":"STRING","purpose":"USERNAME","label":"username","value":"admin"},
  {"id":"password","type":"CONCEALED","purpose":"PASSWORD","label":"password","value":"from op"},
  {"id":"a1","section":{"id":"s1","label":"front"},"type":"CONCEALED","label":"pin","value":"1234"}]}
END
`)
	b := commandBackend(t, program, "item", "get", "{item}")
	for field, want := range map[string]string{"username": "admin", "password": "from op", "front.pin": "1234"} {
		ref := plan.SecretRef{Item: "login", Field: field}
		values, err := b.Read(t.Context(), []plan.SecretRef{ref})
		if s := values[ref]; err != nil || s.Reveal() != want || s.Version != "4" {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestCommandFaults(t *testing.T) {
	for _, c := range []struct {
		name, body string
		item       string
		code       plan.Code
		says       []string
	}{
		{"fails", "echo hunter2 >&2; echo hunter2; exit 3", "", plan.CodeSecretInvalid, []string{"exit status 3", "by hand", `"x"`}},
		{"killed", "kill -9 $$", "", plan.CodeSecretInvalid, []string{"killed"}},
		{"no JSON", "echo hunter2", "", plan.CodeSecretInvalid, []string{"JSON"}},
		{"a list", `echo '["hunter2"]'`, "", plan.CodeSecretInvalid, []string{"JSON"}},
		{"nothing", ":", "", plan.CodeSecretInvalid, []string{"JSON"}},
		{"two objects", `echo '{"f":"hunter2"}{"f":"hunter2"}'`, "", plan.CodeSecretInvalid, []string{"JSON"}},
		{"no such field", `echo '{"g":"hunter2"}'`, "", plan.CodeSecretMissing, []string{`"x"`, `"f"`, `"g"`}},
		{"empty", `echo '{"f":""}'`, "", plan.CodeSecretInvalid, []string{"empty"}},
		{"too slow", "sleep 60", "", plan.CodeSecretTimeout, []string{"300ms"}},
		{"without end", `while :; do echo hunter2hunter2hunter2; done`, "", plan.CodeSecretTimeout, nil},
		{"too long", `head -c 9000000 /dev/zero`, "", plan.CodeSecretInvalid, []string{"prints more than"}},
		{"an option for an item", `echo '{"f":"hunter2"}'`, "--reveal", plan.CodeConfigInvalid, []string{"hyphen"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			program, runs := script(t, c.body+"\n")
			limit := 300 * time.Millisecond
			if c.code != plan.CodeSecretTimeout {
				limit = 20 * time.Second // the machine may be busy
			}
			b, err := secrets.New(plan.SecretsSettings{Backend: "command", Argv: []string{program, "{item}"}, Timeout: limit}, secrets.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if c.item == "" {
				c.item = "x"
			}
			_, err = b.Read(t.Context(), []plan.SecretRef{{Item: c.item, Field: "f"}})
			f := faultOf(t, err, c.code, c.says...)
			if said := fmt.Sprintf("%+v %v %s", f, f.EvidenceLines(), f.WayOut()); strings.Contains(said, "hunter2") {
				t.Errorf("the fault says a secret: %s", said)
			}
			if _, err := os.Stat(runs); err == nil && c.item == "--reveal" {
				t.Error("it was run")
			}
		})
	}
	_, err := commandBackend(t, filepath.Join(t.TempDir(), "none")).Read(t.Context(), []plan.SecretRef{{Item: "x", Field: "f"}})
	wantFault(t, err, plan.CodeConfigInvalid, "cannot be run")
	_, err = secrets.New(plan.SecretsSettings{Backend: "command"}, secrets.Options{})
	wantFault(t, err, plan.CodeConfigInvalid, "no program")
}

func TestCommandInterrupted(t *testing.T) {
	program, _ := script(t, "sleep 60\n")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stop, cancelNow := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, cancelNow)
	_, err := commandBackend(t, program).Read(stop, []plan.SecretRef{{Item: "x", Field: "f"}})
	wantFault(t, err, plan.CodeInterrupted)
}
