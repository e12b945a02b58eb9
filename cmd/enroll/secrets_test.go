package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// invoke runs a command line in this process, against a lab's environment.
func invoke(t testing.TB, l *lab.Lab, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return invokeWith(t, l, dir, make(chan os.Signal), args...)
}

// invokeWith is invoke with signals.
func invokeWith(t testing.TB, l *lab.Lab, dir string, signals <-chan os.Signal, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return invokeIn(t, map[string]string{"ENROLL_SITE": filepath.Join(dir, "site"), "VAULT_TOKEN": l.Vault.Token, "XDG_STATE_HOME": filepath.Join(dir, "state")}, signals, args...)
}

// invokeIn runs a command line in this process, with a given environment.
func invokeIn(t testing.TB, env map[string]string, signals <-chan os.Signal, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(context.Background(), args, inProcess(env, signals, &out, &errOut))
	return code, out.String(), errOut.String()
}

// inProcess is an operating system with nothing but this environment.
func inProcess(env map[string]string, signals <-chan os.Signal, out, errOut io.Writer) *sys {
	s := system()
	s.signals = func() (<-chan os.Signal, func()) { return signals, func() {} }
	s.stdin, s.stdout, s.stderr = strings.NewReader(""), out, errOut
	s.lookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	s.environ = func() []string { return nil }
	s.terminal = false
	return s
}

// unusual are texts that are made to be broken by whatever quotes, escapes or
// cuts up: 4 to 64 characters, each with one of the marks, which stand nowhere
// else in the program's output.
const marks = "äß€漢😀ж"

func unusual() *rapid.Generator[string] {
	alphabet := []rune(`"'&\<>%+/=?#@: $` + "`\n\t!{}[]|;,abcXYZ019" + marks)
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(4, 64).Draw(t, "length")
		text := rapid.SliceOfN(rapid.SampledFrom(alphabet), n, n).Draw(t, "text")
		// A line end at the end would be taken off, and a mark makes it unlike
		// everything that is printed anyway. One for each line, and one is enough to
		// see that a part of it is out.
		text[rapid.IntRange(0, n-1).Draw(t, "place")] = rapid.SampledFrom([]rune(marks)).Draw(t, "mark")
		text[n-1] = rapid.SampledFrom([]rune(marks)).Draw(t, "last")
		return string(text)
	})
}

// traces are the forms of the marks: none may stand in anything that was written.
// They find parts of secrets, and forms that the redactor does not know.
func traces() []string {
	var out []string
	for _, r := range marks {
		s := string(r)
		out = append(out, s, url.QueryEscape(s), strings.ToLower(url.QueryEscape(s)), strings.Trim(strconv.QuoteToASCII(s), `"`),
			fmt.Sprintf("&#%d;", r), fmt.Sprintf(`\x%x`, s[0]), fmt.Sprintf(`\u{%x}`, r))
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			out = append(out, fmt.Sprintf(`\u%04x\u%04x`, high, low))
		}
	}
	return out
}

// TestUnusualSecrets runs every command over a world of unusual secrets, also one
// in which the systems repeat in their refusals what they were sent, and looks at
// everything that was written and at every address that was called.
func TestUnusualSecrets(t *testing.T) {
	const devices = 12
	seed := 17935225 // one that found a leak; others are for those who look for more
	if again := os.Getenv("ENROLL_TEST_SEED"); again != "" {
		var err error
		if seed, err = strconv.Atoi(again); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d; ENROLL_TEST_SEED=%d repeats it", seed, seed)
	passwords := map[string]string{}
	dir := t.TempDir()
	l, err := lab.Start(lab.Options{Dir: dir, Devices: devices, Seed: 7, Now: time.Now, VaultToken: `s."vault'&token<%41>+/=` + "`$(id)`", Password: func(device string) string {
		passwords[device] = unusual().Example(seed + len(passwords))
		return passwords[device]
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	var texts []string
	ran := map[string]bool{} // by command
	note := func(what string, want int, args ...string) {
		t.Helper()
		ran[args[0]] = true
		code, out, errOut := invoke(t, l, dir, args...)
		if code != want {
			t.Errorf("%s: exit %d, want %d\n%.400s\n%.2000s", what, code, want, out, errOut)
		}
		texts = append(texts, what+"\n"+out+errOut)
	}
	file, narrow := filepath.Join(dir, "all.plan"), filepath.Join(dir, "narrow.plan")
	note("version", 0, "version")
	note("validate", 0, "validate")
	note("validate as JSON", 0, "validate", "--format", "json")
	note("scenarios", 0, "lab", "scenarios")
	note("explain", 0, "explain", "BMC_CREDENTIAL_REJECTED")
	note("plan", 0, "plan", "--all", "--out", file)
	note("plan in detail", 2, "plan", "--all", "--detailed-exitcode", "--format", "json")
	note("show", 0, "show", file)
	note("show as JSON", 0, "show", file, "--format", "json")
	note("show as Markdown", 0, "show", file, "--format", "markdown")
	note("show as HTML", 0, "show", file, "--format", "html")
	note("a smaller plan", 0, "show", file, "--select", "kind:dhcp.*", "--out", narrow)
	note("diff", exitChanges, "diff", file, narrow)
	note("graph", 0, "graph", file)
	note("graph for Mermaid", 0, "graph", file, "--format", "mermaid")
	note("explain an address", 0, "explain", "--plan", file, "gpu-001/*.*")
	note("drift", exitChanges, "drift", "--all")
	note("validate --live", 0, "validate", "--live")
	note("doctor", 0, "doctor")
	note("backfill", 0, "backfill", "platform-class")
	note("record", exitUsage, "record", "bmc", "gpu-001")
	note("fmt", 0, "fmt", "--diff", filepath.Join(dir, "site"))
	note("schema", 0, "schema")
	note("completion", 0, "completion", "bash")
	note("help", 0, "help")
	note("apply", 0, "apply", file, "--auto-approve", "--journal", filepath.Join(dir, "journal"))
	note("apply again", exitStale, "apply", file, "--auto-approve", "--journal", filepath.Join(dir, "journal"))
	note("rerun", 0, "plan", "--all")
	note("no such device", 1, "plan", "gpu-999")
	note("status", 0, "status", "--journal", filepath.Join(dir, "journal"))
	note("verify", 0, "verify", "--all", "--full")
	note("explain live", 0, "explain", "gpu-001/*.*")
	a := &app{sys: system(), redactor: secrets.NewRedactor()}
	for _, c := range a.root().Commands() {
		if !ran[c.Name()] {
			t.Errorf("the command %s was not run", c.Name())
		}
	}

	// Every system repeats what it was sent.
	var addresses strings.Builder
	repeat := func(system, method string, status int, text string) {
		for _, r := range l.Recorder.Records() {
			fmt.Fprintf(&addresses, "%s %s\n", r.Method, r.Path)
		}
		l.Recorder.Reset()
		raw, err := json.Marshal(map[string]any{
			"error":  map[string]any{"code": "Base.1.0.GeneralError", "message": "not: " + text, "@Message.ExtendedInfo": []any{map[string]any{"MessageId": "Base.1.0.GeneralError", "Message": text}}},
			"detail": text, "errors": []string{text}, "error_message": text,
		})
		if err != nil {
			t.Fatal(err)
		}
		l.Recorder.Inject(&exchange.Fault{System: system, Method: method, Kind: exchange.Status, Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: string(raw)})
	}
	first, all := passwords["gpu-001"], ""
	for _, device := range slices.Sorted(maps.Keys(passwords)) {
		all += " " + passwords[device] + " " + url.QueryEscape(passwords[device])
	}
	long := strings.Repeat("x", 280) + first // providers cut what they quote
	for system, words := range map[string][]string{
		"bmc":    {first, all, long, base64.StdEncoding.EncodeToString([]byte("root:" + first)), fmt.Sprintf("%q", first)},
		"ironic": {first, all, long, fmt.Sprintf("%q", first)},
		"netbox": {"Token " + l.NetBox.Token, url.QueryEscape(l.NetBox.Token)},
		"vault":  {l.Vault.Token, url.QueryEscape(l.Vault.Token), fmt.Sprintf("%q", l.Vault.Token)},
	} {
		for i, said := range words {
			repeat(system, "", http.StatusInternalServerError, said)
			out := filepath.Join(dir, fmt.Sprintf("%s-%d.plan", system, i))
			code, stdout, stderr := invoke(t, l, dir, "plan", "--all", "--out", out)
			if code == 0 {
				t.Errorf("%s repeats secrets: exit 0", system)
			}
			texts = append(texts, fmt.Sprintf("%s repeats %d\n%s%s", system, i, stdout, stderr))
			if isFile(out) {
				note(fmt.Sprintf("%s repeats %d, shown", system, i), 0, "show", out, "--format", "json")
			}
		}
	}

	// A write that is refused with the passwords in the words of the refusal.
	for _, h := range l.Hosts {
		l.BMCOf(h.Name).SetHostname("by-hand")
	}
	repeat("bmc", "PATCH", http.StatusBadRequest, all) // a 5xx would be a BMC that is busy, and waited for
	note("refused writes", 1, "apply", "--all", "--auto-approve", "--journal", filepath.Join(dir, "refused"))
	repeat("none", "", http.StatusBadRequest, "")

	// The vault has other passwords than the BMCs.
	for i, h := range l.Hosts {
		other := unusual().Example(seed + 1000 + i)
		l.Vault.Put("bmc-"+h.Name, map[string]string{"username": "root", "password": other})
		passwords[h.Name+" later"] = other
	}
	note("wrong passwords", 1, "plan", "--all", "--out", filepath.Join(dir, "wrong.plan"))

	texts = append(texts, filesOf(t, dir)...)
	for _, r := range l.Recorder.Records() {
		fmt.Fprintf(&addresses, "%s %s\n", r.Method, r.Path)
	}
	texts = append(texts, "addresses\n"+addresses.String())
	if len(texts) < 40 || addresses.Len() < 10000 {
		t.Errorf("only %d texts and %d bytes of addresses were looked at", len(texts), addresses.Len())
	}
	for _, text := range texts {
		name, _, _ := strings.Cut(text, "\n")
		for _, trace := range traces() {
			if i := strings.Index(text, trace); i >= 0 {
				t.Errorf("%s has a part of a secret as %q: …%q…", name, trace, text[max(0, i-60):min(len(text), i+60)])
				break
			}
		}
		for device, p := range passwords {
			for _, form := range []string{p, url.QueryEscape(p), url.PathEscape(p), base64.StdEncoding.EncodeToString([]byte(p)), strings.Trim(strconv.Quote(p), `"`)} {
				if strings.Contains(text, form) {
					t.Errorf("%s has the password of %s", name, device)
				}
			}
		}
		if strings.Contains(text, l.Vault.Token) || strings.Contains(text, url.QueryEscape(l.Vault.Token)) {
			t.Errorf("%s has the vault's token", name)
		}
	}
}

// filesOf are the files below a folder with their names, but for those that the
// person who runs the lab would have in the shell.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var texts []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "env" {
			return err
		}
		raw, err := os.ReadFile(path)
		texts = append(texts, path+"\n"+string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func startLab(t testing.TB, devices int) (*lab.Lab, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := lab.Start(lab.Options{Dir: dir, Devices: devices, Seed: 7, Now: time.Now, HostKeys: hostKeys()})
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

	texts = append(texts, filesOf(t, dir)...)
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

// TestEnvWarns: secrets in the environment are warned about on standard error
// only, and not in a laboratory.
func TestEnvWarns(t *testing.T) {
	l, dir := startLab(t, 1)
	env := map[string]string{
		"ENROLL_SITE": filepath.Join(dir, "site"), "XDG_STATE_HOME": filepath.Join(dir, "state"),
		"ENROLL_SECRET_NETBOX_ENROLL_CREDENTIAL": l.NetBox.Token + "\n", "ENROLL_SECRET_SSH_CONFIG_DHCP_PRIVATE_KEY": string(l.DHCP.IdentityPEM),
		"ENROLL_SECRET_SSH_CONFIG_DHCP_KNOWN_HOSTS": string(l.DHCP.KnownHosts), "ENROLL_SECRET_BMC_GPU_001_USERNAME": "root",
		"ENROLL_SECRET_BMC_GPU_001_PASSWORD": l.Hosts[0].Password,
	}
	path := filepath.Join(dir, "site", "site.hcl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), `secrets "vault" {`)
	_, after, _ := strings.Cut(rest, "}")
	if err := os.WriteFile(path, []byte(before+`secrets "env" {}`+after), 0o600); err != nil {
		t.Fatal(err)
	}
	code, plain, warned := invokeIn(t, env, make(chan os.Signal), "plan", "gpu-001")
	if code != 0 || strings.Count(warned, `secrets "env" is for laboratories`) != 1 || !strings.Contains(warned, "warning") || strings.Contains(plain, "warning") {
		t.Errorf("exit %d, on standard error: %s", code, warned)
	}
	if n := strings.Count(warned, "line end"); n != 1 || !strings.Contains(warned, `secret("netbox-enroll", "credential")`) {
		t.Errorf("a line end was taken off, and is told %d times: %s", n, warned)
	}
	env[labVariable], env["ENROLL_SECRET_NETBOX_ENROLL_CREDENTIAL"] = "embedded", l.NetBox.Token
	code, inLab, quiet := invokeIn(t, env, make(chan os.Signal), "plan", "gpu-001")
	if code != 0 || quiet != "" {
		t.Errorf("in a lab: exit %d, %s", code, quiet)
	}
	if lastLine(inLab) != lastLine(plain) {
		t.Errorf("the plan differs: %s", inLab)
	}
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// TestSecretInThePlan: a system shows a password in a plain field. The plan is not
// written, and the message says where it stands and not what it is.
func TestSecretInThePlan(t *testing.T) {
	l, dir := startLab(t, 2)
	l.BMCOf("gpu-001").SetReachable(true)
	l.BMCOf("gpu-001").SetHostname(l.Hosts[1].Password)
	file := filepath.Join(dir, "x.plan")
	code, out, errOut := invoke(t, l, dir, "plan", "--all", "--out", file)
	if code == 0 || isFile(file) {
		t.Errorf("exit %d, and the plan was written", code)
	}
	if !strings.Contains(errOut, "SECRET_INVALID") || !strings.Contains(errOut, ".steps[]") {
		t.Errorf("%s", errOut)
	}
	if strings.Contains(out+errOut, l.Hosts[1].Password) {
		t.Error("the message shows the secret")
	}
	// Without a file the plan is shown, and the secret is not.
	_, out, errOut = invoke(t, l, dir, "plan", "--all")
	if strings.Contains(out+errOut, l.Hosts[1].Password) || !strings.Contains(out, "(secret)") {
		t.Errorf("%s%s", out, errOut)
	}
}

// TestCloudsFromTheVault: the texts of clouds.yaml and secure.yaml are read from
// the vault, and their password is kept out of what is printed although a
// Keystone repeats it.
func TestCloudsFromTheVault(t *testing.T) {
	l, dir := startLab(t, 1)
	const password = `k"ey&stöne`
	asked := make(chan string, 9)
	keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		asked <- string(raw)
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": 401, "title": "Unauthorized", "message": "not " + password}})
	}))
	defer keystone.Close()
	secure, err := json.Marshal(password)
	if err != nil {
		t.Fatal(err)
	}
	l.Vault.Put("openstack", map[string]string{
		"clouds": "clouds:\n  lon14:\n    auth:\n      auth_url: " + keystone.URL + "/v3\n      username: enroll\n      project_name: baremetal\n      user_domain_name: Default\n      project_domain_name: Default\n",
		"secure": "clouds:\n  lon14:\n    auth:\n      password: " + string(secure) + "\n",
	})
	path := filepath.Join(dir, "site", "site.hcl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `endpoint       = "`+l.Ironic.URL+`"`, "cloud  = \"lon14\"\n    clouds = secret(\"openstack\", \"clouds\")\n    secure = secret(\"openstack\", \"secure\")", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := invoke(t, l, dir, "plan", "gpu-001")
	if code == 0 || !strings.Contains(out, "IRONIC_DENIED") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
	if strings.Contains(out+errOut, password) || strings.Contains(out+errOut, "stöne") {
		t.Error("the password is printed")
	}
	if !strings.Contains(out, "(secret)") || !strings.Contains(out, "of cloud lon14") {
		t.Errorf("the password's place and what is no secret should be shown: %s%s", out, errOut)
	}
	select {
	case body := <-asked:
		if !strings.Contains(body, `k\"ey`) || !strings.Contains(body, "baremetal") {
			t.Errorf("Keystone was asked %s", body)
		}
	default:
		t.Error("Keystone was not asked")
	}
}
