package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOutside(t *testing.T) {
	step := func(change func(*Step)) *Step {
		s := &Step{
			ID: "s1", Address: addr(t, "lon14/gpu-001/bmc.bios"), Action: ActionUpdate, Effects: []Effect{EffectReboot},
			Before: Obj(map[string]Value{"a": Str("1"), "b": Str("2")}), After: Obj(map[string]Value{"a": Str("3"), "b": Unknown}),
		}
		change(s)
		return s
	}
	same := func(*Step) {}
	for name, tc := range map[string]struct {
		approved, now func(*Step)
		want          string
	}{
		"the same":               {same, same, ""},
		"now blocked":            {same, func(s *Step) { s.Blocked = &Block{Rule: RulePolicy} }, ""},
		"blocked when approved":  {func(s *Step) { s.Blocked = &Block{Rule: RulePolicy} }, same, "is blocked in the approved plan (policy)"},
		"elsewhere":              {same, func(s *Step) { s.Address.Device = "gpu-002" }, "is not in the approved plan"},
		"another action":         {same, func(s *Step) { s.Action = ActionCreate }, "would create, the approved one would update"},
		"another beginning":      {same, func(s *Step) { s.Before = Obj(map[string]Value{"a": Str("1"), "b": Str("x")}) }, "starts from another value than the approved one"},
		"a beginning turned up":  {func(s *Step) { s.Before, s.BeforeUnknown = Unknown, true }, same, ""},
		"a beginning got lost":   {same, func(s *Step) { s.Before, s.BeforeUnknown = Unknown, true }, "starts from a value that cannot be seen any more"},
		"what was unknown":       {same, func(s *Step) { s.After = Obj(map[string]Value{"a": Str("3"), "b": Str("4")}) }, ""},
		"another end":            {same, func(s *Step) { s.After = Obj(map[string]Value{"a": Str("4"), "b": Unknown}) }, "would write another value than the approved one"},
		"more is written":        {same, func(s *Step) { s.After = Obj(map[string]Value{"a": Str("3"), "b": Unknown, "c": Str("5")}) }, "would write another value than the approved one"},
		"unknown now":            {same, func(s *Step) { s.After = Obj(map[string]Value{"a": Unknown, "b": Unknown}) }, "would write another value than the approved one"},
		"fewer effects":          {same, func(s *Step) { s.Effects = nil }, ""},
		"more effects":           {same, func(s *Step) { s.Effects = append(s.Effects, EffectErase) }, "has the effect erase, the approved one has not"},
		"a secret":               {same, func(s *Step) { s.Sensitive = true }, "would write a secret, the approved one would not"},
		"serves more":            {func(s *Step) { s.Serves = []string{"a"} }, func(s *Step) { s.Serves = []string{"a", "b"} }, "would serve b as well"},
		"serves less":            {func(s *Step) { s.Serves = []string{"a", "b"} }, func(s *Step) { s.Serves = []string{"b"} }, ""},
		"null is no empty value": {func(s *Step) { s.Before = Null }, func(s *Step) { s.Before = Obj(map[string]Value{}) }, "starts from another value than the approved one"},
	} {
		t.Run(name, func(t *testing.T) {
			now := &Plan{Steps: []*Step{step(tc.now)}}
			got := ""
			for _, stray := range now.Outside(&Plan{Steps: []*Step{step(tc.approved)}}) {
				got = stray.Why
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A plan covers itself and each of its parts, also after it was a file; and a
// world in which something became right in the meantime.
func TestAPlanCoversItsParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := testScope("gpu-001", "gpu-002")
		w, later := Snapshot{}, Snapshot{}
		for _, r := range Desired(sc, testKinds) {
			w[r.Address] = rapid.SampledFrom([]Live{LiveAbsent(), LiveValue(r.Want), LiveValue(Obj(map[string]Value{"v": Str("old")}))}).Draw(t, r.Address.String())
			later[r.Address] = w[r.Address]
			if rapid.Bool().Draw(t, "right later "+r.Address.String()) {
				later[r.Address] = LiveValue(r.Want)
			}
		}
		whole := Build(Input{Scope: sc, Kinds: testKinds, World: w, Now: noon})
		raw, err := Encode(sealed(whole))
		if err != nil {
			t.Fatal(err)
		}
		file, err := Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		part := Build(Input{Scope: sc, Kinds: testKinds, World: w, Now: noon, Selection: Selection{Excludes: []string{rapid.SampledFrom([]string{"gpu-001/*", "kind:bmc.*", "effect:credential"}).Draw(t, "exclude")}}})
		rest := Build(Input{Scope: sc, Kinds: testKinds, World: later, Now: noon})
		for name, p := range map[string]*Plan{"itself": whole, "a part": part, "what is left": rest} {
			if strays := p.Outside(file); len(strays) > 0 {
				t.Fatalf("%s: %s %s\n%s", name, strays[0].Step.Address, strays[0].Why, cmp.Diff(lines(file), lines(p)))
			}
		}
		if len(part.Steps) > 0 && len(part.Steps) < len(whole.Steps) {
			if len(whole.Outside(part)) == 0 {
				t.Fatal("a part covers the whole")
			}
		}
	})
}
