package view

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// leftOutPlan is of five devices: one with a step, one as wanted, one owned and two
// of which a selection leaves out all.
func leftOutPlan() *plan.Plan {
	at := func(device, system, kind string) plan.Address {
		return plan.Address{Site: "s", Device: device, System: system, Kind: kind}
	}
	effects := []plan.Effect{plan.EffectErase, plan.EffectReboot, plan.EffectPower, plan.EffectCredential}
	p := &plan.Plan{
		Scope: plan.ScopeRecord{Site: "s", Targets: []string{"gpu-001/*"}, LeftOut: 32},
		Devices: []plan.DevicePlan{
			{Name: "gpu-001", Rack: "r1", Verdict: plan.VerdictChanges},
			{Name: "gpu-002", Rack: "r1", Verdict: plan.VerdictClean, Unchanged: 3},
			{Name: "gpu-003", Rack: "r2", Verdict: plan.VerdictClean, Owned: true, OwnedReason: strings.Repeat("held by an instance ", 8), LeftOut: 2},
			{Name: "gpu-004", Rack: "r2", Verdict: plan.VerdictClean, Unchanged: 3, LeftOut: 15},
			{Name: "gpu-005", Rack: "r2", Verdict: plan.VerdictClean, Unchanged: 3, LeftOut: 15},
		},
		Diagnostics: []plan.Diagnostic{{Severity: plan.SeverityError, Device: "gpu-001", Fault: plan.NewFault(plan.CodeBMCUnreachable, "%s", strings.Repeat("nothing answers there ", 8))}},
	}
	for i, system := range []string{"netbox", "dhcp", "bmc", "ironic"} {
		p.Steps = append(p.Steps, &plan.Step{
			ID: "s" + itoa(i+1), Address: at("gpu-001", system, "thing"), Action: plan.ActionUpdate, Reason: plan.ReasonDeferred, BeforeUnknown: true,
			Effects: effects[i : i+1], After: plan.Obj(obj{"v": plan.Str("x")}),
		})
	}
	p.Recount()
	return p
}

// A device of which the selection leaves something out is not called as wanted.
func TestLeftOutIsNotAsWanted(t *testing.T) {
	forms := map[string]func(*strings.Builder) error{
		"text":     func(b *strings.Builder) error { return Text(b, leftOutPlan(), TextOptions{}) },
		"markdown": func(b *strings.Builder) error { return Markdown(b, leftOutPlan(), MaxMarkdown) },
		"html":     func(b *strings.Builder) error { return HTML(b, leftOutPlan()) },
	}
	for form, shows := range map[string][]string{
		"text":     {"\n= 1 device as wanted: gpu-002\n", "\n- 2 devices with all steps left out by the selection: gpu-004, gpu-005\n"},
		"markdown": {"\n1 device as wanted.\n", "\n2 devices with all steps left out by the selection.\n", "| gpu-003 | left out, owned |"},
		"html":     {"<td>left out</td><td>r2</td>", ">gpu-005: left out</summary>", "<td>clean</td><td>r1</td>"},
	} {
		var b strings.Builder
		if err := forms[form](&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range shows {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", form, want, b.String())
			}
		}
	}

	p := leftOutPlan()
	p.Steps, p.Diagnostics = nil, nil
	p.Recount()
	if got, want := idle(p), "Nothing to do: the selection leaves out all 32 steps."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is made of words fits into a terminal; the hash and the last line, which
// scripts read, stay whole.
func TestTextFitsTheTerminal(t *testing.T) {
	for _, width := range []int{80, 100, 160} {
		var b strings.Builder
		if err := Text(&b, leftOutPlan(), TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > width && !strings.HasPrefix(line, "Plan: ") && !strings.HasPrefix(line, "Content ") {
				t.Errorf("width %d: %d characters: %s", width, n, line)
			}
		}
	}
}

// What was not run has not come to its end.
func TestStatusCounts(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	past := apply.Past{PlanID: "p", Site: "s", Total: 9, Stopped: true, Began: now, Last: now}
	for _, state := range []plan.StepState{plan.StepDone, plan.StepAlready, plan.StepFailed, plan.StepInDoubt, plan.StepNotRun, plan.StepSkipped, plan.StepBlocked, plan.StepLeft, ""} {
		past.Steps = append(past.Steps, apply.PastStep{Address: "s/d/bmc.ntp", State: state, Began: now})
	}
	var b strings.Builder
	if err := Status(&b, past, nil, now, false); err != nil {
		t.Fatal(err)
	}
	if want := "\n2 of 9 steps done, 2 failed, 2 not run, 1 blocked; begun 0s ago, last heard of 0s ago\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}
