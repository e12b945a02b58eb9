package main

import (
	"bytes"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// situations are the worlds whose plans stand in testdata/plans for reviewers: the
// scenario of the lab, the number of devices, and how plan ends.
var situations = []struct {
	name     string
	scenario string
	devices  int
	exit     int
}{
	{"fresh", "fresh", 1, exitChanges},
	{"halfway", "halfway", 1, exitChanges},
	{"clean", "clean", 2, exitDone},
	{"drifted", "drifted", 2, exitChanges},
	{"owned", "owned", 2, exitDenied},
	{"denied", "denied", 1, exitDenied},
	{"unreachable", "unreachable", 2, exitPartial},
	{"tolerated", "tolerated", 1, exitChanges},
	{"gaps", "gaps", 1, exitError},
	{"forty", "mixed", 40, exitDenied},
}

// inSituation starts a lab and lets it go through a scenario.
func inSituation(t testing.TB, scenario string, devices int) (*lab.Lab, string) {
	t.Helper()
	l, dir := startLab(t, devices)
	s, ok := lab.FindScenario(scenario)
	if !ok {
		t.Fatalf("no scenario %s", scenario)
	}
	a := &app{sys: system()}
	if err := a.happen(t.Context(), l, dir, s); err != nil {
		t.Fatal(err)
	}
	l.Recorder.Reset()
	return l, dir
}

// passing is what differs from one run of a lab to the next.
var passing = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:8443"},
	{regexp.MustCompile(`"sha256": "[0-9a-f]{64}"`), `"sha256": "0000"`},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:0000"},
	{regexp.MustCompile(`(?s)"statistics": \{.*?\}`), `"statistics": {}`}, // held by TestRequestBudget
	{regexp.MustCompile(`"plan_id": "[0-9a-f]{12}"`), `"plan_id": "000000000000"`},
	{regexp.MustCompile(`"ironic_node": "[0-9a-f-]{36}"`), `"ironic_node": "00000000-0000-4000-8000-000000000000"`},
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-12-01T10:00:00Z"},
	{regexp.MustCompile(`valid until 20\d\d-\d\d-\d\d \d\d:\d\d UTC`), "valid until 2026-12-01 10:00 UTC"},
}

// TestGeneratedPlans holds the three forms of the plans of all situations against
// the files in testdata/plans; make docs writes them anew. One look at the world
// gives all three: they are shown from the plan file.
func TestGeneratedPlans(t *testing.T) {
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			l, dir := inSituation(t, s.scenario, s.devices)
			file := filepath.Join(dir, "a.plan")
			if code, out, errOut := invoke(t, l, dir, "plan", "--all", "--detailed-exitcode", "--out", file); code != s.exit {
				t.Fatalf("exit %d, want %d\n%s%s", code, s.exit, out, errOut)
			}
			for format, ext := range map[string]string{"text": "txt", "json": "json", "markdown": "md"} {
				code, out, errOut := invoke(t, l, dir, "show", file, "--format", format)
				if code != exitDone {
					t.Fatalf("exit %d\n%s", code, errOut)
				}
				got := bytes.ReplaceAll([]byte(out), []byte(dir), []byte("/lab"))
				for _, p := range passing {
					got = p.pattern.ReplaceAll(got, []byte(p.word))
				}
				golden(t, filepath.Join("..", "..", "testdata", "plans", s.name+"."+ext), got)
			}
			honest(t, file)
			described(t, file)
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // public pages
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (make docs writes it anew): -want +got:\n%s", path, d)
	}
}

// honest holds a plan against the rules of what a plan must not keep quiet.
func honest(t *testing.T, file string) {
	t.Helper()
	p, err := readPlan(file)
	if err != nil {
		t.Fatal(err)
	}
	unreadable, unknown := map[string]bool{}, false
	for _, d := range p.Devices {
		unreadable[d.Name] = d.Verdict == plan.VerdictUnreadable || d.Verdict == plan.VerdictFailed
	}
	for _, s := range p.Steps {
		unknown = unknown || s.BeforeUnknown && s.Blocked == nil
		switch {
		case len(s.Effects) > 0 && len(s.Because) == 0:
			t.Errorf("%s has effects and does not say why", s.Address)
		case s.Blocked != nil && (s.Blocked.Rule == "" || s.Blocked.Text == ""):
			t.Errorf("%s is blocked without a rule", s.Address)
		case s.Blocked == nil && unreadable[s.Address.Device]:
			t.Errorf("%s would run although its device has a fault", s.Address)
		case s.Action.Mutates() && s.Blocked == nil && !s.BeforeUnknown && s.Guard == "":
			t.Errorf("%s writes without a guard", s.Address)
		}
	}
	for _, o := range p.Observed {
		if o.Rule == "" || o.Text == "" {
			t.Errorf("%s is observed without a reason", o.Address)
		}
	}
	if unknown != p.Summary.UpTo {
		t.Errorf("the summary says up to: %v; a step cannot be seen: %v", p.Summary.UpTo, unknown)
	}
	for name, bad := range unreadable {
		if bad && len(p.Errors()) == 0 {
			t.Errorf("%s failed without a fault", name)
		}
	}
}

// described holds a plan file against the published schema, and the schema against
// the file: it must know every member.
func described(t *testing.T, file string) {
	t.Helper()
	code, text, errOut := invokeIn(t, nil, nil, "schema", "--plan")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	published, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(published)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("plan.json", published); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Error(err)
	}
	document.(map[string]any)["steps"] = []any{map[string]any{"id": "s1", "action": "explode"}}
	if schema.Validate(document) == nil {
		t.Error("the schema takes a step that does not exist")
	}
}

// closeObjects forbids the members that later versions may add.
func closeObjects(v any) {
	node, ok := v.(map[string]any)
	if !ok {
		return
	}
	if node["properties"] != nil && node["type"] == "object" {
		node["additionalProperties"] = false
	}
	for _, inner := range node {
		closeObjects(inner)
	}
}

// The same world gives the same bytes whatever the order in which systems answer,
// however many requests they get at once, and wherever the checkout stands. Ids,
// times and the numbers of requests are those of a run. ENROLL_TEST_SHUFFLES takes
// another number of orders.
func TestContentHashOfOneWorld(t *testing.T) {
	l, dir := inSituation(t, "mixed", 8)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	look := func(dir string, atOnce int) (hash, text string) {
		t.Helper()
		file := filepath.Join(dir, "b.plan")
		_ = os.Remove(file)
		var out, errOut bytes.Buffer
		env := map[string]string{"ENROLL_SITE": filepath.Join(dir, "site"), "VAULT_TOKEN": l.Vault.Token, "XDG_STATE_HOME": filepath.Join(dir, "state")}
		s := inProcess(env, make(chan os.Signal), &out, &errOut)
		s.atOnce = atOnce
		if code := run(t.Context(), []string{"plan", "--all", "--out", file}, s); code != exitDenied {
			t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
		}
		p, err := readPlan(file)
		if err != nil {
			t.Fatal(err)
		}
		p.PlanID, p.Created, p.Expires, p.SiteDir, p.Statistics = "0123456789ab", time.Time{}, time.Time{}, "", nil
		raw, err := plan.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		return p.ContentHash, string(raw)
	}
	first, whole := look(dir, 0)
	other := t.TempDir()
	if err := os.CopyFS(filepath.Join(other, "site"), os.DirFS(filepath.Join(dir, "site"))); err != nil {
		t.Fatal(err)
	}
	if got, text := look(other, 0); got != first || text != whole {
		t.Errorf("another checkout gives %s, not %s\n%s", got, first, cmp.Diff(whole, text))
	}
	shuffles := 6
	if n, err := strconv.Atoi(os.Getenv("ENROLL_TEST_SHUFFLES")); err == nil {
		shuffles = n
	}
	for i := range shuffles {
		atOnce := []int{1, 64}[i%2]
		runtime.GOMAXPROCS(atOnce)
		answers := rand.New(rand.NewSource(int64(i))) //nolint:gosec // to be repeated
		for _, h := range l.Hosts {
			l.Recorder.Inject(&exchange.Fault{Kind: exchange.Delay, Device: h.Name, Delay: time.Duration(answers.Intn(12)) * time.Millisecond})
		}
		l.Recorder.Inject(&exchange.Fault{Kind: exchange.Delay, System: []string{"netbox", "ironic", "dhcp"}[i%3], Delay: 15 * time.Millisecond})
		if got, text := look(dir, atOnce); got != first || text != whole {
			t.Fatalf("with %d requests at once, run %d: %s, not %s\n%s", atOnce, i, got, first, cmp.Diff(whole, text))
		}
		l.Recorder.Reset()
	}
}
