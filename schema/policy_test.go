package schema

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/enroll-dev/enroll/plan"
)

// policy loads one policy and gives it.
func policy(t *testing.T, inside string) plan.Policy {
	t.Helper()
	file, ds := load(minimal("locals {\n  late = \"18:00\"\n}\n", "  policy \"p\" {\n"+inside+"\n  }\n"), Options{Version: "0.1.0"})
	if ds.HasErrors() {
		t.Fatal(text(t, ds))
	}
	return file.Site().Policies[0]
}

func aStep(t *testing.T, address string, effects ...plan.Effect) *plan.Step {
	t.Helper()
	a, err := plan.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Step{Address: a, Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Effects: effects, Because: []string{"NTPServers"}, Phase: "bmc",
		Before: plan.Null, After: plan.Obj(map[string]plan.Value{"NTPServers": plan.Strs("a"), "Later": plan.Unknown})}
}

func TestPolicyDecoded(t *testing.T) {
	got := policy(t, "    require_approval = (has_effect(\"reboot\") &&\n      device.gpu)\n    owner = \"ONSITE\"\n    message = \"ask\"")
	want := plan.Policy{Name: "p", Action: plan.PolicyApproval, Subject: plan.SubjectDevice, UsesDevice: true, Owner: plan.OwnerOnsite, Message: "ask",
		Text: `(has_effect("reboot") && device.gpu)`, From: "site.hcl:18"}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(plan.Policy{}, "When")); d != "" {
		t.Error(d)
	}
}

func TestPolicySubjects(t *testing.T) {
	for expr, want := range map[string]plan.PolicySubject{
		`has_effect("reboot")`: plan.SubjectPlan, `device.gpu && has_effect("reboot")`: plan.SubjectDevice,
		`step.kind == "bmc.ntp"`: plan.SubjectStep, `step.kind == "bmc.ntp" && device.gpu`: plan.SubjectStep, `true`: plan.SubjectPlan,
	} {
		if got := policy(t, "    deny = "+expr); got.Subject != want || got.UsesDevice != strings.Contains(expr, "device.") {
			t.Errorf("%s: %s, uses device: %t", expr, got.Subject, got.UsesDevice)
		}
	}
}

// Devices are counted in the plan as a whole: a count of one would never be more
// than a limit, and the policy would pass in silence.
func TestPolicyCountsDevices(t *testing.T) {
	for expr, want := range map[string]string{
		`count_effect("reboot") > 10`:                                                "",
		`device.rack == "r1" && count_effect("reboot") > 1`:                          "A condition with device.* is asked about every device by itself",
		`step.kind == "bmc.ntp" && count_effect("reboot") > 1`:                       "A condition with step.* is asked about every step by itself",
		`device.gpu ? count_effect("reboot") > 1 : false`:                            "one device to count at most",
		`length([for n in [1] : n if count_effect("reboot") > n]) > 1 && device.gpu`: "one device to count at most",
	} {
		_, ds := load(minimal("", "  policy \"p\" {\n    deny = "+expr+"\n  }\n"), Options{})
		said := strings.Join(strings.Fields(text(t, ds)), " ")
		if (want == "") != (len(ds) == 0) || !strings.Contains(said, want) {
			t.Errorf("%s: %s", expr, said)
		}
	}
}

// What a file holds reaches a policy through a local only, as the page says.
func TestPolicyReadsNoFile(t *testing.T) {
	for above, deny := range map[string]string{"": `file("racks.txt") == "r1"`, "#\n": `templatefile("racks.txt", {}) == "r1"`, "locals {\n  racks = file(\"racks.txt\")\n}\n": `local.racks == "r1" && has_effect("reboot")`} {
		_, ds := Load("", Options{Files: fstest.MapFS{"racks.txt": {Data: []byte("r1")}, "site.hcl": {Data: []byte(minimal(above, "  policy \"p\" {\n    deny = "+deny+"\n  }\n"))}}})
		said := strings.Join(strings.Fields(text(t, ds)), " ")
		if byLocal := strings.HasPrefix(above, "locals"); byLocal && len(ds) > 0 || !byLocal && !strings.Contains(said, "put the text into a local") {
			t.Errorf("%s: %s", deny, said)
		}
	}
}

func TestPolicyConditions(t *testing.T) {
	ntp, service := aStep(t, "lon14/gpu-001/bmc.ntp", plan.EffectReboot), aStep(t, "lon14/dhcp.service", plan.EffectServiceRestart)
	target := &plan.Target{Intent: device()}
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for expr, want := range map[string]bool{
		`has_effect("reboot")`:                                   true,
		`has_effect("erase")`:                                    false,
		`count_effect("reboot") > 1`:                             false,
		`changes("*/bmc.ntp") && changes("dhcp.service")`:        true,
		`changes("*/ironic.*")`:                                  false,
		`within("08:00", local.late, "Europe/London")`:           true,
		`within("18:00", "08:00", "UTC")`:                        false,
		`device.role == "gpu-compute" && device.gpu`:             true,
		`contains(device.tags, "lab")`:                           true,
		`step.kind == "bmc.ntp" && step.action == "update"`:      true,
		`contains(step.effects, "erase")`:                        false,
		`step.key == null && step.before == null`:                true,
		`step.after.NTPServers[0] == "a"`:                        true,
		`try(device.custom_fields.no_such_field, "none") == "x"`: false,
		`length([for e in step.effects : e if e == "reboot"]) == 1 && contains(step.because, "NTPServers")`: true,
	} {
		p := policy(t, "    deny = "+expr)
		got, err := p.When.Holds(plan.PolicyCase{Steps: []*plan.Step{ntp, service}, Step: ntp, Target: target, Now: noon})
		if err != nil || got != want {
			t.Errorf("%s: %t, %v", expr, got, err)
		}
	}
}

// What cannot be decided is an error, and the plan is denied.
func TestPolicyUndecided(t *testing.T) {
	step := aStep(t, "x/gpu-001/bmc.ntp")
	for expr, says := range map[string]string{
		`device.custom_fields.no_such_field == "x"`: `no_such_field`,
		`step.after.NoSuchField == "x"`:             `NoSuchField`,
		`step.after.Later == "x"`:                   `not known`,
		`device.custom_fields.bmc_name`:             `neither true nor false`,
		`tonumber(device.name) > 1`:                 `cannot convert`,
		`within("08:00", device.name, "UTC")`:       `time of day`,
		`has_effect(device.name)`:                   `no effect`,
		`try(step.after.NTPServers[9]) == "x"`:      ``,
		`null == null ? null : true`:                ``,
	} {
		file, ds := load(minimal("", "  policy \"p\" {\n    warn = "+expr+"\n  }\n"), Options{})
		if ds.HasErrors() {
			if says != "" {
				t.Errorf("%s: %s", expr, text(t, ds))
			}
			continue
		}
		p := file.Site().Policies[0]
		holds, err := p.When.Holds(plan.PolicyCase{Steps: []*plan.Step{step}, Step: step, Target: &plan.Target{Intent: device()}})
		if err == nil || holds || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %t, %v", expr, holds, err)
		}
		sc := &plan.Scope{Site: file.Site(), Targets: []*plan.Target{{Site: file.Site(), Intent: device()}}}
		doc := &plan.Plan{Steps: []*plan.Step{step}}
		doc.Enforce(plan.JudgePolicies(doc, sc, time.Time{}))
		if step.Blocked == nil || !doc.Denied() {
			t.Errorf("%s lets the step run", expr)
		}
		step.Blocked = nil
	}
}

// A secret that a local holds cannot be asked about.
func TestPolicySeesNoSecret(t *testing.T) {
	file, ds := load(minimal("locals {\n  s = secret(\"a\", \"b\")\n}\n", "  policy \"p\" {\n    deny = local.s == local.s\n  }\n"), Options{})
	if ds.HasErrors() {
		return
	}
	if _, err := file.Site().Policies[0].When.Holds(plan.PolicyCase{}); err == nil {
		t.Error("two secrets are compared")
	}
}

// A policy that means something else, by a variable, makes another site.
func TestPolicyIsPartOfTheSite(t *testing.T) {
	src := minimal("variable \"late\" {\n  default = \"18:00\"\n}\nlocals {\n  l = { a = [var.late] }\n}\n", "  policy \"p\" {\n    deny = within(\"08:00\", local.l.a[0], \"UTC\")\n  }\n")
	hash := func(late string) string {
		file, ds := load(src, Options{Vars: map[string]string{"late": late}})
		if ds.HasErrors() {
			t.Fatal(text(t, ds))
		}
		return file.Site().Hash()
	}
	first, again, other := hash("18:00"), hash("18:00"), hash("19:00")
	if first != again || first == other || first == "" {
		t.Error("the site's hash does not follow its policies")
	}
}

func TestTolerations(t *testing.T) {
	src := minimal("", "  tolerate \"serial\" {\n    address = \"*/bmc.bios\"\n    path = \"SerialRedirect\"\n    reason = \"the vendor resets it\"\n    until = \"2027-01-31\"\n  }\n")
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	file, ds := load(src, Options{Now: end.Add(-time.Second)})
	if len(ds) > 0 {
		t.Fatal(text(t, ds))
	}
	want := []plan.Toleration{{Name: "serial", Address: "*/bmc.bios", Path: "SerialRedirect", Reason: "the vendor resets it", Until: end, Last: "2027-01-31", From: "site.hcl:14"}}
	if d := cmp.Diff(want, file.Site().Tolerations); d != "" {
		t.Error(d)
	}
	if _, ds = load(src, Options{Now: end}); len(ds) != 1 || ds[0].Severity != Warning || ds[0].Summary != "Toleration ended" {
		t.Errorf("%v", ds)
	}
}

func TestPolicyTable(t *testing.T) {
	for name := range stepType() {
		if stepDocs()[name] == "" {
			t.Errorf("step.%s is not explained", name)
		}
	}
	if d := cmp.Diff(sortedNames(stepType()), sortedNames(stepValue(aStep(t, "s/d/bmc.ntp")).Type().AttributeTypes())); d != "" {
		t.Error(d)
	}
	names := map[string]bool{}
	for _, f := range policyFunctionTable() {
		names[f.name] = true
	}
	if d := cmp.Diff(sortedNames(policyFunctions(plan.PolicyCase{}, true)), sortedNames(names)); d != "" {
		t.Error(d)
	}
}

// Whatever is written as a condition: it is refused, decided, or denies.
func FuzzPolicy(f *testing.F) {
	for _, expr := range []string{
		`has_effect("reboot") && within("08:00", "18:00", "UTC")`, `count_effect("erase") > 5`, `changes("*/bmc.*") || device.gpu`, `step.after.NTPServers[0] == "a"`,
		`contains(step.effects, "erase")`, `[for e in step.because : e][0] == "x"`, `try(device.custom_fields.x, false)`, `"${step.kind}" == "bmc.ntp"`, `null`, `step.*.kind`, `step.after[*]`,
	} {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if strings.ContainsAny(expr, "\n{}#") && !strings.Contains(expr, "${") {
			return // it could end the block
		}
		file, ds := load(minimal("", "  policy \"p\" {\n    deny = "+expr+"\n  }\n"), Options{})
		if file == nil {
			if !ds.HasErrors() {
				t.Error("no file and no mistake")
			}
			return
		}
		step := &plan.Step{ID: "s1", Address: plan.Address{Site: "x", Device: "gpu-001", System: "bmc", Kind: "ntp"}, Before: plan.Null, After: plan.Obj(map[string]plan.Value{"NTPServers": plan.Strs("a"), "Later": plan.Unknown})}
		site := file.Site()
		doc := &plan.Plan{Steps: []*plan.Step{step}}
		doc.Enforce(plan.JudgePolicies(doc, &plan.Scope{Site: site, Targets: []*plan.Target{{Site: site, Intent: device()}}}, time.Unix(1800000000, 0)))
		for _, r := range doc.Policies {
			if r.Denies() != (step.Blocked != nil) || strings.Contains(r.Error, "broke down") {
				t.Errorf("%s: %+v, blocked %v", expr, r, step.Blocked)
			}
		}
	})
}

// BenchmarkPolicy asks one policy about a plan of a thousand steps.
func BenchmarkPolicy(b *testing.B) {
	file, ds := load(minimal("", "  policy \"p\" {\n    deny = step.kind == \"ironic.node\" && contains(step.effects, \"erase\")\n  }\n"), Options{})
	if ds.HasErrors() {
		b.Fatal(ds)
	}
	doc := &plan.Plan{}
	for range 1000 {
		doc.Steps = append(doc.Steps, &plan.Step{Address: plan.Address{Site: "x", Device: "d", System: "bmc", Kind: "ntp"}, Before: plan.Null, After: plan.Null, Effects: []plan.Effect{plan.EffectReboot}})
	}
	sc := &plan.Scope{Site: file.Site()}
	for b.Loop() {
		plan.JudgePolicies(doc, sc, time.Time{})
	}
}

// Conditions that can only come out one way are refused: a policy that can never
// hold would pass in silence.
func TestConditionsThatDecideNothing(t *testing.T) {
	load := func(condition string) Diagnostics {
		_, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(minimal("", "  policy \"p\" {\n    deny = "+condition+"\n    owner = \"INFRA_ENG\"\n  }\n"))}}})
		return ds
	}
	for _, bad := range []string{
		`device.position == 10`, `device.gpu == "true"`, `device.id == "1"`, `step.before_unknown == "false"`, `step.effects == ["reboot"]`,
		`step.action == "delete"`, `"update" == step.action && step.kind == "bmc.nt"`, `contains(step.effects, "rebot")`, `step.action != "create" || step.action != "creat"`,
	} {
		if ds := load(bad); !ds.HasErrors() {
			t.Errorf("%s is taken", bad)
		}
	}
	for _, good := range []string{
		`device.position == "10"`, `device.gpu == true`, `device.rack == null`, `contains(step.effects, "reboot")`, `step.action == "update" && step.kind == "bmc.ntp"`,
		`device.custom_fields.zone == "a"`, `step.effects == tolist(["reboot"])`, `length([for t in device.tags : t if t == "prod"]) > 0`,
	} {
		if ds := load(good); ds.HasErrors() {
			t.Errorf("%s is refused: %v", good, ds)
		}
	}
}
