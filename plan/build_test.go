package plan

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kind makes a simple kind whose resources want {"v": "new"}.
func kind(name string, phase Phase, effects ...Effect) Kind {
	return Kind{Name: name, Phase: phase, Want: func(t *Target) []Resource {
		system, k, _ := strings.Cut(name, ".")
		return []Resource{{Address: t.Address(system, k, ""), Want: Obj(map[string]Value{"v": Str("new")}), Effects: effects}}
	}}
}

var testKinds = []Kind{
	kind("ironic.node", PhaseNode, EffectCredential),
	kind("bmc.ntp", PhaseBMC),
	{Name: "bmc.credential", Phase: PhaseBMC, First: true, Want: func(t *Target) []Resource {
		return []Resource{{Address: t.Address("bmc", "credential", ""), Want: Obj(map[string]Value{"login": Str("ok")})}}
	}, Decide: func(d Decision) Verdict {
		if d.Deferred {
			return Verdict{Step: &Step{Action: ActionVerify, Reason: ReasonDeferred, BeforeUnknown: true, Before: Unknown, After: d.Resource.Want}}
		}
		return Compare(d)
	}},
	kind("dhcp.reservation", PhaseDHCP),
	{Name: "dhcp.service", Phase: PhaseService, WantShared: func(sc *Scope) []Resource {
		return []Resource{{Address: Address{Site: sc.Site.Name, System: "dhcp", Kind: "service"}, Want: Obj(map[string]Value{"pending": Bool(false)}), Effects: []Effect{EffectServiceRestart}}}
	}, Decide: func(d Decision) Verdict {
		var serves, because []string
		for _, s := range d.Steps {
			if s.Address.KindName() == "dhcp.reservation" && s.Blocked == nil {
				serves = append(serves, s.Address.Device)
				because = append(because, s.Address.String())
			}
		}
		if len(serves) == 0 {
			return Nothing()
		}
		return Verdict{Step: &Step{Action: ActionRun, Reason: ReasonChanged, Before: Obj(map[string]Value{}), After: d.Resource.Want, Serves: serves, Because: because}}
	}},
	{Name: "netbox.tag", Phase: PhaseFinish, OnOwned: true, Want: func(t *Target) []Resource {
		return []Resource{{Address: t.Address("netbox", "tag", "ironic"), Want: Obj(map[string]Value{"present": Bool(true)})}}
	}},
}

func testScope(names ...string) *Scope {
	site := &Site{Name: "lon14", ConfigureDHCP: true, ConfigureBMC: true, IronicEnrol: true}
	sc := &Scope{Site: site}
	for _, n := range names {
		sc.Targets = append(sc.Targets, &Target{Site: site, Intent: &Intent{Name: n, Class: "COMPUTE_GPU", Hash: "h-" + n}})
	}
	return sc
}

func addr(t *testing.T, s string) Address {
	t.Helper()
	a, err := ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// world answers every desired resource with the given live value.
func world(sc *Scope, live Live) Snapshot {
	w := Snapshot{}
	for _, r := range Desired(sc, testKinds) {
		w[r.Address] = live
	}
	return w
}

// want is a live value that satisfies everything.
func satisfied(sc *Scope) Snapshot {
	w := Snapshot{}
	for _, r := range Desired(sc, testKinds) {
		w[r.Address] = LiveValue(r.Want)
	}
	return w
}

func lines(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		line := fmt.Sprintf("%s %s %s %s needs %v", s.ID, s.Address, s.Action, s.Reason, s.Needs)
		if s.Blocked != nil {
			line += " blocked " + string(s.Blocked.Rule)
		}
		out = append(out, line)
	}
	return out
}

func TestBuildFreshDevice(t *testing.T) {
	sc := testScope("gpu-001")
	w := world(sc, LiveAbsent())
	for a := range w {
		if a.System == "bmc" {
			w[a] = LiveFault(Unreachable, NewFault(CodeBMCUnreachable, "no answer"))
		}
	}
	p := Build(Input{Scope: sc, Kinds: testKinds, World: w})
	want := []string{
		"s1 lon14/dhcp.service run dependency needs [s2]",
		"s2 lon14/gpu-001/dhcp.reservation create absent needs []",
		"s3 lon14/gpu-001/bmc.credential verify not_reachable needs [s1]",
		"s4 lon14/gpu-001/bmc.ntp update not_reachable needs [s3]",
		"s5 lon14/gpu-001/ironic.node create absent needs [s4]",
		"s6 lon14/gpu-001/netbox.tag[ironic] create absent needs [s5]",
	}
	if d := cmp.Diff(want, lines(p)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if got, want := p.Summary.String(), "Plan: 1 devices, 4 to change, 1 to run, 1 to verify, 0 blocked; 0 host reboots, 0 disk erase, 1 service restart."; got != want {
		t.Errorf("summary\n got %s\nwant %s", got, want)
	}
	if !p.Devices[0].UpTo || p.Devices[0].Verdict != VerdictChanges {
		t.Errorf("device %+v: want an upper bound with changes", p.Devices[0])
	}
}

func TestBuildClean(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002")
	p := Build(Input{Scope: sc, Kinds: testKinds, World: satisfied(sc)})
	if len(p.Steps) != 0 || p.HasWork() || p.Devices[1].Verdict != VerdictClean || p.Devices[0].Unchanged == 0 {
		t.Errorf("a clean world gave steps %v, devices %+v", lines(p), p.Devices)
	}
}

// A BMC that should answer and does not is a fault; nothing of the device runs,
// and the plan still shows what was found.
func TestBuildUnreadable(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002")
	w := satisfied(sc)
	down := LiveFault(Unreachable, NewFault(CodeBMCUnreachable, "no answer"))
	w[addr(t, "lon14/gpu-001/bmc.credential")] = down
	w[addr(t, "lon14/gpu-001/bmc.ntp")] = down
	w[addr(t, "lon14/gpu-001/ironic.node")] = LiveAbsent()
	w[addr(t, "lon14/gpu-002/ironic.node")] = LiveAbsent()
	p := Build(Input{Scope: sc, Kinds: testKinds, World: w})
	want := []string{
		"s1 lon14/gpu-001/ironic.node create absent needs [] blocked device_failed",
		"s2 lon14/gpu-002/ironic.node create absent needs []",
	}
	if d := cmp.Diff(want, lines(p)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if p.Devices[0].Verdict != VerdictUnreadable || len(p.Errors()) != 1 {
		t.Errorf("verdict %s, errors %d: want unreadable and one fault", p.Devices[0].Verdict, len(p.Errors()))
	}
}

// On a node that Nova holds, every difference is shown and blocked; only the
// NetBox tag may be written.
func TestBuildOwned(t *testing.T) {
	for _, tc := range []struct {
		name     string
		owner    Ownership
		want     []string
		verdict  DeviceVerdict
		fails    bool
		runnable int
	}{
		{"active", Own("n", StateActive, "", false), []string{"bmc.ntp owned", "ironic.node owned", "netbox.tag[ironic]"}, VerdictChanges, false, 1},
		{"manageable with instance", Own("n", StateManageable, "u-1", false), []string{"bmc.ntp owned", "ironic.node owned", "netbox.tag[ironic]"}, VerdictChanges, false, 1},
		{"inspect failed with instance", Own("n", StateInspectFailed, "u-1", false), []string{"bmc.ntp owned", "ironic.node owned", "netbox.tag[ironic] owned"}, VerdictFailed, true, 0},
		{"unknown future state", Own("n", "teleporting", "", false), []string{"bmc.ntp owned", "ironic.node owned", "netbox.tag[ironic] owned"}, VerdictFailed, true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc := testScope("gpu-001")
			w := satisfied(sc)
			w[addr(t, "lon14/gpu-001/bmc.ntp")] = LiveValue(Obj(map[string]Value{"v": Str("old")}))
			w[addr(t, "lon14/gpu-001/ironic.node")] = LiveAbsent()
			w[addr(t, "lon14/gpu-001/netbox.tag[ironic]")] = LiveAbsent()
			p := Build(Input{Scope: sc, Kinds: testKinds, World: w, Owners: map[string]Ownership{"gpu-001": tc.owner}})
			var got []string
			for _, s := range p.Steps {
				line := s.Address.Local()
				if s.Blocked != nil {
					line += " " + string(s.Blocked.Rule)
				}
				got = append(got, line)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if p.Devices[0].Verdict != tc.verdict || !p.Denied() || (len(p.Errors()) > 0) != tc.fails {
				t.Errorf("verdict %s denied %v errors %v", p.Devices[0].Verdict, p.Denied(), p.Errors())
			}
		})
	}
}

func TestBuildIntentFaultIsNeverRead(t *testing.T) {
	sc := testScope("gpu-001")
	sc.Targets[0].Intent.Faults = []*Fault{NewFault(CodeIntentIncomplete, "no oob_ip"), NewFault(CodeIntentIncomplete, "no serial")}
	for _, r := range Desired(sc, testKinds) {
		if r.Address.Device != "" {
			t.Errorf("%s would be read", r.Address)
		}
	}
	p := Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent())})
	if len(p.Steps) != 0 || len(p.Errors()) != 2 || p.Devices[0].Verdict != VerdictFailed {
		t.Errorf("steps %v errors %v", lines(p), p.Errors())
	}
}

func TestBuildTargets(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002")
	p := Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent()), Selection: Selection{Targets: []string{"gpu-002/dhcp.*", "*/dhcp.service"}}})
	want := []string{
		"s1 lon14/dhcp.service run dependency needs [s2 s3]",
		"s2 lon14/gpu-001/dhcp.reservation create absent needs []",
		"s3 lon14/gpu-002/dhcp.reservation create absent needs []",
	}
	if d := cmp.Diff(want, lines(p)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// The same world gives the same bytes, whatever order it was assembled in.
func TestBuildIsOrderIndependent(t *testing.T) {
	names := []string{"gpu-001", "gpu-002", "gpu-003", "gpu-010"}
	var first string
	for i := range 50 {
		r := rand.New(rand.NewSource(int64(i)))
		sc := testScope(names...)
		r.Shuffle(len(sc.Targets), func(a, b int) { sc.Targets[a], sc.Targets[b] = sc.Targets[b], sc.Targets[a] })
		p := Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent())})
		raw, err := Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(raw)
		} else if d := cmp.Diff(first, string(raw)); d != "" {
			t.Fatalf("shuffle %d gave another plan:\n%s", i, d)
		}
	}
}

// A step with effects says because of which paths, whatever made it.
func TestEffectsSayWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		step Step
		want []string
	}{
		"what differs":         {Step{Before: Obj(map[string]Value{"a": Int(1), "b": Int(2)}), After: Obj(map[string]Value{"a": Int(1), "b": Int(3)})}, []string{"b"}},
		"what is made":         {Step{Before: Null, After: Obj(map[string]Value{"a": Obj(map[string]Value{"b": Strs("x")}), "c": Null})}, []string{"a.b", "c"}},
		"what cannot be seen":  {Step{Before: Unknown, After: Obj(map[string]Value{"a": Int(1)})}, []string{"a"}},
		"the secret":           {Step{Before: Null, After: Obj(map[string]Value{"a": Int(1)}), From: []string{"https://netbox", `x.password: secret("i", "f")`}}, []string{"x.password"}},
		"what the kind says":   {Step{Before: Null, After: Null, Because: []string{"state is enroll"}}, []string{"state is enroll"}},
		"the same value again": {Step{Before: Str("a"), After: Str("a")}, []string{""}},
	} {
		s := finish(&tc.step, Kind{Phase: PhaseNode}, Resource{Effects: []Effect{EffectCredential}})
		tc.step.Action = ActionUpdate
		s = finish(s, Kind{Phase: PhaseNode}, Resource{Effects: []Effect{EffectCredential}})
		if d := cmp.Diff(tc.want, s.Because); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}

// Effects are summed up for each device, each rack and the plan; hosts count once,
// blocked steps not at all.
func TestRecount(t *testing.T) {
	step := func(device string, action Action, blocked bool, effects ...Effect) *Step {
		s := &Step{Address: Address{Site: "s", Device: device, System: "x", Kind: "y"}, Action: action, Effects: effects}
		if blocked {
			s.Blocked = &Block{Rule: RulePolicy}
		}
		return s
	}
	p := &Plan{
		Devices: []DevicePlan{{Name: "a", Rack: "r2"}, {Name: "b", Rack: "r2"}, {Name: "c", Rack: "r10"}, {Name: "d"}},
		Steps: []*Step{
			step("", ActionRun, false, EffectServiceRestart),
			step("a", ActionTransition, false, EffectReboot), step("a", ActionTransition, false, EffectErase, EffectReboot), step("a", ActionVerify, false),
			step("b", ActionUpdate, true, EffectReboot), step("c", ActionCreate, false, EffectCredential), step("d", ActionUpdate, false, EffectReboot),
		},
	}
	p.Recount()
	type sum = map[Effect]int
	want := Summary{Devices: 4, Tally: Tally{2, 3, 1, 1, sum{EffectServiceRestart: 1, EffectReboot: 3, EffectErase: 1, EffectCredential: 1}}, HostReboots: 2, DiskErases: 1, ServiceRestarts: 1}
	if d := cmp.Diff(want, p.Summary); d != "" {
		t.Errorf("plan: -want +got:\n%s", d)
	}
	if d := cmp.Diff([]RackPlan{
		{"r2", 2, Tally{0, 2, 1, 1, sum{EffectReboot: 2, EffectErase: 1}}, 1},
		{"r10", 1, Tally{1, 0, 0, 0, sum{EffectCredential: 1}}, 0},
	}, p.Racks); d != "" {
		t.Errorf("racks: -want +got:\n%s", d)
	}
	if d := cmp.Diff(Tally{0, 2, 1, 0, sum{EffectReboot: 2, EffectErase: 1}}, p.Devices[0].Tally); d != "" {
		t.Errorf("device: -want +got:\n%s", d)
	}
}
