package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSelectionCheck(t *testing.T) {
	for pattern, part := range map[string]string{
		"gpu-001/bmc.*": "", "kind:bmc.*": "", "effect:reboot": "", "effect:*": "", "action:transition": "", "ironic.port[aa:bb]": "",
		`bmc.ntp\`:       `"bmc.ntp\\" is no glob`,
		"kind:[":         `"kind:[" is no glob`,
		"effect:restart": "there are erase, reboot, power",
		"action:delete":  "there are create, update",
		"kind:bmc.time":  "there are bmc.",
	} {
		err := Selection{Excludes: []string{pattern}}.Check()
		if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q in it", pattern, err, part)
		}
	}
}

// What is drawn along or left out, on two fresh devices whose BMCs wait for DHCP.
func TestSelectClosures(t *testing.T) {
	for _, tc := range []struct {
		name           string
		sel            Selection
		steps          []string
		also, excluded []string
	}{
		{
			"a target draws what it needs, of its device alone", Selection{Targets: []string{"gpu-002/bmc.credential"}},
			[]string{"dhcp.service for gpu-002", "gpu-002/dhcp.reservation", "gpu-002/bmc.credential"},
			[]string{"dhcp.service by gpu-002/bmc.credential", "gpu-002/dhcp.reservation by dhcp.service"}, nil,
		},
		{
			"what is written is made live", Selection{Targets: []string{"gpu-001/dhcp.reservation"}},
			[]string{"dhcp.service for gpu-001", "gpu-001/dhcp.reservation"},
			[]string{"dhcp.service by gpu-001/dhcp.reservation"}, nil,
		},
		{
			"a shared target draws every device", Selection{Targets: []string{"effect:service_restart"}},
			[]string{"dhcp.service for gpu-001 gpu-002", "gpu-001/dhcp.reservation", "gpu-002/dhcp.reservation"},
			[]string{"gpu-001/dhcp.reservation by dhcp.service", "gpu-002/dhcp.reservation by dhcp.service"}, nil,
		},
		{
			"what comes after an excluded step is left out with it", Selection{Excludes: []string{"gpu-001/bmc.ntp"}},
			[]string{
				"dhcp.service for gpu-001 gpu-002", "gpu-001/dhcp.reservation", "gpu-001/bmc.credential",
				"gpu-002/dhcp.reservation", "gpu-002/bmc.credential", "gpu-002/bmc.ntp", "gpu-002/ironic.node", "gpu-002/netbox.tag[ironic]",
			}, nil,
			[]string{"gpu-001/bmc.ntp by gpu-001/bmc.ntp", "gpu-001/ironic.node by gpu-001/bmc.ntp", "gpu-001/netbox.tag[ironic] by gpu-001/ironic.node"},
		},
		{
			"a device that is cut off is not served, the other one is", Selection{Excludes: []string{"gpu-001/dhcp.*"}},
			[]string{"dhcp.service for gpu-002", "gpu-002/dhcp.reservation", "gpu-002/bmc.credential", "gpu-002/bmc.ntp", "gpu-002/ironic.node", "gpu-002/netbox.tag[ironic]"}, nil,
			[]string{
				"gpu-001/dhcp.reservation by gpu-001/dhcp.*", "gpu-001/bmc.credential by gpu-001/dhcp.reservation", "gpu-001/bmc.ntp by gpu-001/bmc.credential",
				"gpu-001/ironic.node by gpu-001/bmc.ntp", "gpu-001/netbox.tag[ironic] by gpu-001/ironic.node",
			},
		},
		{
			"what would not be made live is not written", Selection{Targets: []string{"gpu-001/*"}, Excludes: []string{"effect:service_restart", "effect:credential"}},
			nil, nil,
			[]string{
				"dhcp.service by effect:service_restart", "gpu-001/dhcp.reservation by dhcp.service", "gpu-001/bmc.credential by dhcp.service",
				"gpu-001/bmc.ntp by gpu-001/bmc.credential", "gpu-001/ironic.node by effect:credential", "gpu-001/netbox.tag[ironic] by gpu-001/ironic.node",
				"gpu-002/dhcp.reservation by dhcp.service", "gpu-002/bmc.credential by dhcp.service", "gpu-002/bmc.ntp by gpu-002/bmc.credential",
				"gpu-002/ironic.node by effect:credential", "gpu-002/netbox.tag[ironic] by gpu-002/ironic.node",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc := testScope("gpu-001", "gpu-002")
			p := Build(Input{Scope: sc, Kinds: testKinds, World: fresh(sc), Selection: tc.sel})
			var steps []string
			for _, s := range p.Steps {
				line := short(s.Address.String())
				if s.Address.Shared() {
					line += " for " + strings.Join(s.Serves, " ")
				}
				steps = append(steps, line)
			}
			if d := cmp.Diff(tc.steps, steps); d != "" {
				t.Errorf("steps -want +got:\n%s", d)
			}
			if d := cmp.Diff(tc.also, drawn(p.Scope.Also)); d != "" {
				t.Errorf("also selected -want +got:\n%s", d)
			}
			if d := cmp.Diff(tc.excluded, drawn(p.Scope.Excluded)); d != "" {
				t.Errorf("excluded -want +got:\n%s", d)
			}
			if err := checkNeeds(p.Steps); err != nil {
				t.Error(err)
			}
			if unmet := p.CheckSelection() != nil; unmet != (tc.steps == nil) {
				t.Errorf("%d steps, and the selection contradicts itself: %v", len(steps), unmet)
			}
		})
	}
}

// A service that an earlier run left unfinished is due whoever is left out.
func TestSelectKeepsWhatIsPending(t *testing.T) {
	sc := testScope("gpu-001")
	kinds := slices.Clone(testKinds)
	for i := range kinds {
		if kinds[i].Name == "dhcp.service" {
			kinds[i].Decide = func(d Decision) Verdict {
				return Verdict{Step: &Step{Action: ActionRun, Reason: ReasonPending, Because: []string{"pending"}, Before: Null, After: d.Resource.Want}}
			}
		}
	}
	p := Build(Input{Scope: sc, Kinds: kinds, World: world(sc, LiveAbsent()), Selection: Selection{Excludes: []string{"gpu-001/*"}}})
	if len(p.Steps) != 1 || p.Steps[0].Address.KindName() != "dhcp.service" || !slices.Equal(p.Steps[0].Because, []string{"pending"}) {
		t.Errorf("%v", lines(p))
	}
}

// A derived plan has what the policies said about what is left in it: it stays
// denied where it was, and says nothing about what it has not.
func TestSelectKeepsWhatPoliciesSaid(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002")
	about := func(name string, action PolicyAction) Policy {
		return Policy{Name: string(action), Action: action, Subject: SubjectDevice, UsesDevice: true, When: asks(func(c PolicyCase) (bool, error) { return c.Target.Name() == name, nil })}
	}
	sc.Site.Policies = []Policy{about("gpu-001", PolicyDeny), about("gpu-001", PolicyWarn), about("gpu-002", PolicyApproval)}
	whole := Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent()), Now: noon})
	for target, want := range map[string]struct {
		denied             bool
		approvals, warning int
	}{"gpu-001/*": {true, 0, 1}, "gpu-002/*": {false, 1, 0}} {
		p, err := whole.Select(Selection{Targets: []string{target}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Denied() != want.denied || len(p.ApprovalsWanted()) != want.approvals || len(p.Diagnostics) != want.warning {
			t.Errorf("%s: denied %v, %d approvals, %d warnings; want %+v", target, p.Denied(), len(p.ApprovalsWanted()), len(p.Diagnostics), want)
		}
	}
	if !whole.Denied() || len(whole.ApprovalsWanted()) != 1 || len(whole.Diagnostics) != 1 {
		t.Error("selecting changed the plan that it selected from")
	}
}

// Of a device that the selection is not about, nothing is said.
func TestSelectDropsWhatItIsNotAbout(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002", "gpu-003")
	sc.Targets[1].Intent.Faults = []*Fault{NewFault(CodeDeviceNotPlaced, "in no rack")}
	w := fresh(sc)
	w[Address{Site: "lon14", Device: "gpu-003", System: "ironic", Kind: "node"}] = LiveFault(Unreadable, NewFault(CodeIronicUnreachable, "no answer"))
	in := Input{Scope: sc, Kinds: testKinds, World: w, Failed: []Diagnostic{{Severity: SeverityError, Device: "gpu-004", Fault: NewFault(CodeDeviceNotFound, "not there")}}}
	for _, tc := range []struct {
		sel     Selection
		devices string
		faults  int
	}{
		{Selection{}, "gpu-001 gpu-002 gpu-003 gpu-004", 3},
		{Selection{Targets: []string{"gpu-001/bmc.*"}}, "gpu-001", 0},
		{Selection{Targets: []string{"lon14/gpu-002/*", "gpu-001/bmc.*"}}, "gpu-001 gpu-002", 1},
		{Selection{Targets: []string{"bmc.ntp"}}, "gpu-001 gpu-002 gpu-003 gpu-004", 3},
		{Selection{Targets: []string{"kind:bmc.*"}, Excludes: []string{"gpu-003/*", "lon14/gpu-004/*"}}, "gpu-001 gpu-002", 1},
		{Selection{Excludes: []string{"gpu-003/bmc.*"}}, "gpu-001 gpu-002 gpu-003 gpu-004", 3},
	} {
		in.Selection = tc.sel
		p := Build(in)
		var names []string
		for _, d := range p.Devices {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); got != tc.devices || len(p.Errors()) != tc.faults || p.Scope.DevicesLeftOut != 4-len(names) || !slices.Equal(p.Scope.Devices, names) {
			t.Errorf("%+v: devices %s (%d left out, scope %v), %d faults", tc.sel, got, p.Scope.DevicesLeftOut, p.Scope.Devices, len(p.Errors()))
		}
	}
}

// A further exclude leaves of what the targets asked for what it is: what only the
// excluded steps needed goes with them, and a target without a step is refused.
func TestExcludeFromAPlanWithTargets(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002")
	narrowed := Build(Input{Scope: sc, Kinds: testKinds, World: fresh(sc), Selection: Selection{Targets: []string{"gpu-001/ironic.node", "gpu-002/bmc.ntp"}}})
	if _, err := narrowed.Select(Selection{Excludes: []string{"gpu-001/ironic.node"}}); err == nil || !strings.Contains(err.Error(), "gpu-001/ironic.node without gpu-001/ironic.node leaves nothing") {
		t.Errorf("got %v", err)
	}
	if _, err := narrowed.Select(Selection{Targets: []string{"gpu-001/*"}}); err == nil {
		t.Error("two sets of targets were taken")
	}

	whole := Build(Input{Scope: sc, Kinds: testKinds, World: fresh(sc), Selection: Selection{Targets: []string{"*/ironic.node"}}})
	part, err := whole.Select(Selection{Excludes: []string{"gpu-002/ironic.node"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Build(Input{Scope: sc, Kinds: testKinds, World: fresh(sc), Selection: Selection{Targets: []string{"*/ironic.node"}, Excludes: []string{"gpu-002/ironic.node"}}})
	if d := cmp.Diff(addressesOf(want), addressesOf(part)); d != "" {
		t.Errorf("-planned so +derived\n%s", d)
	}
	if d := cmp.Diff(drawn(want.Scope.Also), drawn(part.Scope.Also)); d != "" {
		t.Errorf("also selected: -planned so +derived\n%s", d)
	}
}

func addressesOf(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Address.String()+" for "+strings.Join(s.Serves, " "))
	}
	return out
}

func BenchmarkSelect(b *testing.B) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("gpu-%03d", i))
	}
	sc := testScope(names...)
	p := Build(Input{Scope: sc, Kinds: testKinds, World: fresh(sc)})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Select(Selection{Targets: []string{"kind:bmc.*"}, Excludes: []string{"gpu-00?/*"}}); err != nil {
			b.Fatal(err)
		}
	}
}

func fresh(sc *Scope) Snapshot {
	w := world(sc, LiveAbsent())
	for a := range w {
		if a.System == "bmc" {
			w[a] = LiveFault(Unreachable, NewFault(CodeBMCUnreachable, "no answer"))
		}
	}
	return w
}

func short(at string) string { return strings.TrimPrefix(at, "lon14/") }

func drawn(list []Drawn) []string {
	var out []string
	for _, d := range list {
		by := d.Pattern
		if by == "" {
			by = short(d.By.String())
		}
		out = append(out, short(d.Address.String())+" by "+by)
	}
	return out
}

// Whatever is selected of whatever world: the smaller plan is a part of the whole
// one, is closed under what its steps need, holds nothing that was excluded,
// and is the same whether it was planned so or derived from the whole plan.
func TestSelectedIsPartOfTheWhole(t *testing.T) {
	patterns := []string{
		"*/dhcp.*", "gpu-001/*", "gpu-002/bmc.ntp", "dhcp.service", "netbox.tag[ironic]", "*/ironic.node", "kind:bmc.*", "kind:netbox.tag",
		"action:verify", "action:create", "effect:service_restart", "effect:credential", "effect:reboot", "nothing.at.all",
	}
	rapid.Check(t, func(t *rapid.T) {
		sc := testScope([]string{"gpu-001", "gpu-002", "gpu-003"}[:rapid.IntRange(1, 3).Draw(t, "devices")]...)
		w := Snapshot{}
		for _, r := range Desired(sc, testKinds) {
			w[r.Address] = rapid.SampledFrom([]Live{
				LiveAbsent(), LiveValue(r.Want), LiveValue(Obj(map[string]Value{"v": Str("old")})), LiveFault(Unreachable, NewFault(CodeBMCUnreachable, "no answer")),
			}).Draw(t, r.Address.String())
		}
		owners := map[string]Ownership{}
		if rapid.Bool().Draw(t, "owned") {
			owners["gpu-001"] = Own("n", StateActive, "u-1", false)
		}
		sel := Selection{Targets: rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 3).Draw(t, "targets"), Excludes: rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 2).Draw(t, "excludes")}
		in := Input{Scope: sc, Kinds: testKinds, World: w, Owners: owners, Now: noon}
		whole := Build(in)
		in.Selection = sel
		part := Build(in)

		partOf(t, part, whole, sel)
		if len(part.Steps)+part.Scope.LeftOut != len(whole.Steps) {
			t.Fatalf("%d steps kept, %d left out, %d in all", len(part.Steps), part.Scope.LeftOut, len(whole.Steps))
		}
		if err := checkNeeds(part.Steps); err != nil {
			t.Fatal(err)
		}
		raw, err := Encode(sealed(whole))
		if err != nil {
			t.Fatal(err)
		}
		read, err := Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		derived, err := read.Select(sel)
		switch {
		case err != nil:
			if len(part.Scope.Unmet) == 0 {
				t.Fatalf("planned so, but not derived: %v", err)
			}
		case derived.ContentHash != part.ContentHash:
			t.Fatalf("planned and derived differ:\n%s", cmp.Diff(fileOf(t, part), fileOf(t, derived)))
		}
		if again, _ := Encode(sealed(whole)); string(again) != string(raw) {
			t.Fatal("selecting changed the plan that it selected from")
		}
	})
}

func sealed(p *Plan) *Plan {
	c := *p
	c.PlanID = "0123456789ab"
	return &c
}

func fileOf(t *rapid.T, p *Plan) string {
	raw, err := Encode(sealed(p))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func partOf(t *rapid.T, part, whole *Plan, sel Selection) {
	full := map[string]*Step{}
	ids := map[string]string{} // of the whole plan → address
	for _, s := range whole.Steps {
		full[s.Address.String()], ids[s.ID] = s, s.Address.String()
	}
	kept, partIDs := map[string]*Step{}, map[string]string{}
	for _, s := range part.Steps {
		kept[s.Address.String()], partIDs[s.ID] = s, s.Address.String()
	}
	for at, s := range kept {
		f := full[at]
		if f == nil {
			t.Fatalf("%s is in no whole plan", at)
		}
		if _, fits := s.fitting(sel.Excludes); fits {
			t.Fatalf("%s was excluded", at)
		}
		a, b := *s, *f
		a.ID, a.Needs, a.Serves, a.Because, a.needs = b.ID, b.Needs, b.Serves, b.Because, nil
		b.needs = nil
		same := cmp.Comparer(func(x, y Value) bool { return string(ToJSON(x)) == string(ToJSON(y)) })
		if d := cmp.Diff(b, a, same, cmp.AllowUnexported(Step{})); d != "" {
			t.Fatalf("%s is another step:\n%s", at, d)
		}
		for _, name := range s.Serves {
			if !slices.Contains(f.Serves, name) {
				t.Fatalf("%s serves %s now", at, name)
			}
		}
		var needs []string
		for _, id := range s.Needs {
			needs = append(needs, partIDs[id])
		}
		for _, id := range f.Needs {
			need := full[ids[id]]
			if s.Address.Shared() && !slices.Contains(s.Serves, need.Address.Device) {
				continue // a device that it does not serve any more
			}
			if !slices.Contains(needs, ids[id]) {
				t.Fatalf("%s runs without %s, which it needs", at, ids[id])
			}
		}
		for _, shared := range whole.Steps {
			if s.Blocked == nil && slices.Contains(shared.Because, at) && shared.Blocked == nil && kept[shared.Address.String()] == nil {
				t.Fatalf("%s would be written and not made live", at)
			}
		}
	}
}
