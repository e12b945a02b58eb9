package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
)

// invoke runs a command line in this process, against a lab's environment.
func invoke(t testing.TB, l *lab.Lab, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return invokeWith(t, l, dir, make(chan os.Signal), args...)
}

// invokeWith is invoke with signals.
func invokeWith(t testing.TB, l *lab.Lab, dir string, signals <-chan os.Signal, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	s := system()
	s.signals = func() (<-chan os.Signal, func()) { return signals, func() {} }
	env := map[string]string{"ENROLL_SITE": filepath.Join(dir, "site"), "VAULT_TOKEN": l.Vault.Token, "XDG_STATE_HOME": filepath.Join(dir, "state")}
	s.stdin, s.stdout, s.stderr = strings.NewReader(""), &out, &errOut
	s.lookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	s.terminal = false
	code = run(context.Background(), args, s)
	return code, out.String(), errOut.String()
}

func startLab(t testing.TB, devices int) (*lab.Lab, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := lab.Start(lab.Options{Dir: dir, Devices: devices, Seed: 7, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, dir
}

// Every secret of the lab is looked for in everything that enroll wrote: plans,
// journals, output of success and of failure.
func TestNoSecretAnywhere(t *testing.T) {
	l, dir := startLab(t, 2)
	secrets := l.Secrets()
	if len(secrets) < 6 {
		t.Fatalf("the lab names only %d secrets", len(secrets))
	}
	var texts []string
	note := func(what string, want int, args ...string) {
		t.Helper()
		code, out, errOut := invoke(t, l, dir, args...)
		if code != want {
			t.Errorf("%s: exit %d, want %d\n%s%s", what, code, want, out, errOut)
		}
		texts = append(texts, what+"\n"+out+errOut)
	}
	note("plan", 0, "plan", "--all", "--out", filepath.Join(dir, "all.plan"))
	note("json", 0, "show", filepath.Join(dir, "all.plan"), "--format", "json")
	note("markdown", 0, "show", filepath.Join(dir, "all.plan"), "--format", "markdown")
	note("apply", 0, "apply", filepath.Join(dir, "all.plan"), "--auto-approve", "--journal", filepath.Join(dir, "journal"))
	note("rerun", 0, "plan", "--all")
	// A vault whose password the BMC does not take.
	l.Vault.Put("bmc-gpu-001", map[string]string{"username": "root", "password": "another-" + secrets[0]})
	secrets = append(secrets, "another-"+secrets[0])
	note("wrong password", 14, "plan", "--all")

	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "env" {
			return err // env is what the person would have in the shell
		}
		raw, err := os.ReadFile(path)
		texts = append(texts, path+"\n"+string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 9 {
		t.Errorf("only %d texts were looked at", len(texts))
	}
	for _, text := range texts {
		for i, s := range secrets {
			if strings.Contains(text, s) {
				name, _, _ := strings.Cut(text, "\n")
				t.Errorf("%s holds secret number %d", name, i)
			}
		}
	}
}
