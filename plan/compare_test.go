package plan

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Two worlds, one after the other.
func TestComparePlans(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002")
	w := satisfied(sc)
	w[addr(t, "lon14/gpu-001/bmc.ntp")] = LiveValue(Obj(map[string]Value{"v": Str("old")}))
	w[addr(t, "lon14/gpu-001/ironic.node")] = LiveAbsent()
	before := Build(Input{Scope: sc, Kinds: testKinds, World: w})
	w[addr(t, "lon14/gpu-001/bmc.ntp")] = LiveValue(Obj(map[string]Value{"v": Str("older")}))
	w[addr(t, "lon14/gpu-001/ironic.node")] = satisfied(sc)[addr(t, "lon14/gpu-001/ironic.node")]
	w[addr(t, "lon14/gpu-002/netbox.tag[ironic]")] = LiveAbsent()
	after := Build(Input{Scope: sc, Kinds: testKinds, World: w})

	c, err := ComparePlans(before, after)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range c.Changes {
		line := string(change.Section) + " " + change.Name + " " + string(change.Kind)
		if change.Kind == ChangeAltered {
			for _, f := range change.Fields {
				line += " " + f.Path + " " + string(f.Before) + "→" + string(f.After)
			}
		}
		got = append(got, line)
	}
	want := []string{
		"device gpu-001 changed effects.credential 1→ unchanged 3→4",
		`step lon14/gpu-001/bmc.ntp changed before.v "old"→"older"`,
		"step lon14/gpu-001/ironic.node removed",
		`device gpu-002 changed unchanged 5→4 verdict "clean"→"changes"`,
		"step lon14/gpu-002/netbox.tag[ironic] added",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if c.Same || c.Changes[4].After == nil || c.Changes[4].Before != nil {
		t.Errorf("%+v", c)
	}
}

// A comparison finds nothing exactly where the content hashes are equal, is the
// same backwards, and finds as much in a file as in the plan it was written from.
func TestComparisonAgreesWithTheHash(t *testing.T) {
	draw := func(t *rapid.T, name string) *Plan {
		sc := testScope([]string{"gpu-001", "gpu-002"}[:rapid.IntRange(1, 2).Draw(t, name+" devices")]...)
		w := Snapshot{}
		for _, r := range Desired(sc, testKinds) {
			w[r.Address] = rapid.SampledFrom([]Live{
				LiveAbsent(), LiveValue(r.Want), LiveValue(r.Want), LiveValue(r.Want), LiveValue(Obj(map[string]Value{"v": Str("old")})),
				LiveFault(Unreachable, NewFault(CodeBMCUnreachable, "no answer")),
			}).Draw(t, name+r.Address.String())
		}
		in := Input{Scope: sc, Kinds: testKinds, World: w, Owners: map[string]Ownership{}, Now: noon}
		if rapid.Bool().Draw(t, name+" owned") {
			in.Owners["gpu-001"] = Own("n", StateActive, "u-1", false)
		}
		if rapid.Bool().Draw(t, name+" narrowed") {
			in.Selection.Excludes = []string{"kind:ironic.node"}
		}
		return sealed(Build(in))
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		there, err := ComparePlans(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if there.Same != (a.ContentHash == b.ContentHash) {
			t.Fatalf("same: %v, and the hashes are %s and %s", there.Same, a.ContentHash, b.ContentHash)
		}
		back, err := ComparePlans(b, a)
		if err != nil {
			t.Fatal(err)
		}
		if len(back.Changes) != len(there.Changes) {
			t.Fatalf("%d changes, and %d backwards", len(there.Changes), len(back.Changes))
		}
		raw, err := Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ComparePlans(a, read)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := json.Marshal(there)
		y, _ := json.Marshal(again)
		if d := cmp.Diff(string(x), string(y)); d != "" {
			t.Fatalf("the file gives another comparison:\n%s", d)
		}
	})
}
