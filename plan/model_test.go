package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseMAC(t *testing.T) {
	for in, want := range map[string]string{
		"AA:BB:CC:0D:0E:0F": "aa:bb:cc:0d:0e:0f",
		"aa-bb-cc-0d-0e-0f": "aa:bb:cc:0d:0e:0f",
		"aa:bb:cc:d:e:f":    "aa:bb:cc:0d:0e:0f",
		"AABBCC0D0E0F":      "aa:bb:cc:0d:0e:0f",
		"aabb.cc0d.0e0f":    "aa:bb:cc:0d:0e:0f",
		" 02:00:5e:10:0:1 ": "02:00:5e:10:00:01",
	} {
		if m, err := ParseMAC(in); err != nil || m.String() != want {
			t.Errorf("ParseMAC(%q) = %s, %v; want %s", in, m, err, want)
		}
	}
	for _, in := range []string{"", "21:00:F4:E9:00:11:22:33", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "zz:bb:cc:dd:ee:ff", "88e9:a4ff:ff87:42c8", "aa:bb:cc:dd:ee", "None"} {
		if m, err := ParseMAC(in); err == nil {
			t.Errorf("ParseMAC(%q) = %s, want an error", in, m)
		}
	}
}

func TestAddressRoundTrip(t *testing.T) {
	for _, s := range []string{"lon14/gpu-017/bmc.ntp", "lon14/gpu-017/ironic.port[eth0]", "lon14/dhcp.service", "s/d/check.lldp[Ethernet1/1]"} {
		a, err := ParseAddress(s)
		if err != nil || a.String() != s {
			t.Errorf("ParseAddress(%q) = %v, %v", s, a, err)
		}
	}
	for _, s := range []string{"", "x", "a/b", "a//b.c", "/b.c", "a/b/c", "a/b/c.d[", "a/b/c.d[]", "a/b/c/d.e", "a/b/.c", "a/b/c."} {
		if a, err := ParseAddress(s); err == nil {
			t.Errorf("ParseAddress(%q) = %v, want an error", s, a)
		}
	}
}

func TestAddressMatch(t *testing.T) {
	a := Address{Site: "lon14", Device: "gpu-017", System: "ironic", Kind: "port", Key: "eth0"}
	for pattern, want := range map[string]bool{
		"lon14/gpu-017/ironic.port[eth0]": true, "gpu-017/ironic.*": true, "*/ironic.port[eth0]": true, "*/*/ironic.*": true,
		"*/bmc.*": false, "gpu-018/*": false, "*": true, "ironic.port[eth0]": true, "ironic.*": true, "port*": false,
	} {
		if got, err := a.Match(pattern); err != nil || got != want {
			t.Errorf("Match(%q) = %v, %v; want %v", pattern, got, err, want)
		}
	}
}

// Ownership over every state, with and without an instance.
func TestOwn(t *testing.T) {
	type row struct{ owned, satisfied, human bool }
	free := row{}
	want := map[ProvisionState]row{
		StateEnroll: free, StateVerifying: free, StateManageable: free, StateInspecting: free, StateInspectWait: free, StateInspectFailed: free,
		StateCleaning: free, StateCleanWait: free, StateCleanFailed: free, StateCleanHold: free, StateAdoptFailed: free,
		StateAvailable:    {satisfied: true},
		StateActive:       {owned: true, satisfied: true},
		StateDeployFailed: {human: true}, StateError: {human: true},
	}
	all := []ProvisionState{StateEnroll, StateVerifying, StateManageable, StateAvailable, StateActive, StateInspecting, StateInspectWait, StateInspectFailed,
		StateCleaning, StateCleanWait, StateCleanFailed, StateCleanHold, StateDeploying, StateWaitCallback, StateDeployFailed, StateDeployHold, StateDeleting,
		StateError, StateAdopting, StateAdoptFailed, StateRescuing, StateRescueWait, StateRescue, StateRescueFailed, StateUnrescuing, StateUnrescueFailed,
		StateServicing, StateServiceWait, StateServiceFailed, StateServiceHold, "a state of the future"}
	for _, s := range all {
		w, free := want[s]
		if !free {
			w = row{owned: true} // deploy, rescue, delete, service states, and what is not known
		}
		o := Own("n", s, "", false)
		if got := (row{o.Owned, o.Satisfied, o.NeedsHuman}); got != w {
			t.Errorf("%s: %+v, want %+v", s, got, w)
		}
		if o := Own("n", s, "uuid", false); !o.Owned || o.Reason == "" {
			t.Errorf("%s with an instance is not owned", s)
		}
	}
	if o := Own("n", StateManageable, "uuid", false); !o.Satisfied {
		t.Error("manageable with an instance is satisfied (reference, Nova guard)")
	}
}

func TestSecretRedactsItself(t *testing.T) {
	s := NewSecret("hunter22", "3")
	b, err := json.Marshal(map[string]any{"s": s})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(b), s.String(), fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s), s.LogValue().String()} {
		if cmp.Equal(text, "") || containsSecret(text) {
			t.Errorf("%q", text)
		}
	}
}

func containsSecret(s string) bool {
	for i := range s {
		if len(s)-i >= 8 && (s[i:i+8] == "hunter22" || s[i:i+8] == "68756e74") {
			return true
		}
	}
	return false
}

func TestFaultIs(t *testing.T) {
	f := fmt.Errorf("while planning: %w", NewFault(CodePlanStale, "x").Because(NewFault(CodeIronicLocked, "y")))
	if !errors.Is(f, CodePlanStale) || !errors.Is(f, CodeIronicLocked) || errors.Is(f, CodeNotApplied) {
		t.Error("errors.Is does not see the codes in the chain")
	}
	if AsFault(errors.New("x")).Code != CodeInternal || AsFault(f).Code != CodePlanStale || AsFault(nil) != nil {
		t.Error("AsFault")
	}
}

// drawValue makes values as plans hold them.
func drawValue(t *rapid.T, depth int, label string) Value {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, label) {
	case 0:
		return Null
	case 1:
		return Str(rapid.StringN(0, 6, -1).Draw(t, "s"))
	case 2:
		return Bool(rapid.Bool().Draw(t, "b"))
	case 3:
		return Int(rapid.IntRange(-5, 5).Draw(t, "n"))
	case 4:
		n := rapid.IntRange(0, 3).Draw(t, "len")
		list := make([]Value, n)
		for i := range list {
			list[i] = drawValue(t, depth-1, "el")
		}
		v, err := FromAny([]any{})
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			v = tuple(list)
		}
		return v
	default:
		attrs := map[string]Value{}
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 3, rapid.ID[string]).Draw(t, "keys") {
			attrs[k] = drawValue(t, depth-1, k)
		}
		return Obj(attrs)
	}
}

func TestValueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := drawValue(t, 3, "v"), drawValue(t, 3, "w")
		if !Satisfies(v, v) {
			t.Fatalf("%s does not satisfy itself", ToJSON(v))
		}
		if paths := DiffPaths(v, v); len(paths) != 0 {
			t.Fatalf("%s differs from itself at %v", ToJSON(v), paths)
		}
		back, err := valueJSON(ToJSON(v), nil)
		if err != nil || Fingerprint(back) != Fingerprint(v) {
			t.Fatalf("%s came back as %s (%v)", ToJSON(v), ToJSON(back), err)
		}
		// A guard over the restricted value moves exactly when a decided field does.
		if Satisfies(w, v) && len(DiffPaths(w, Restrict(v, w))) != 0 {
			t.Fatalf("%s satisfies %s but differs at %v", ToJSON(v), ToJSON(w), DiffPaths(w, Restrict(v, w)))
		}
		if (Fingerprint(v) == Fingerprint(w)) != (string(ToJSON(v)) == string(ToJSON(w))) {
			t.Fatal("fingerprint and canonical form disagree")
		}
	})
}

func TestNaturalLessIsAnOrder(t *testing.T) {
	name := rapid.StringMatching(`[a-z]{0,2}[0-9]{0,3}[a-z]?[0-9]{0,2}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if NaturalLess(a, b) && NaturalLess(b, a) {
			t.Fatalf("%q and %q are both less", a, b)
		}
		if a != b && !NaturalLess(a, b) && !NaturalLess(b, a) {
			t.Fatalf("%q and %q are neither less", a, b)
		}
		if NaturalLess(a, b) && NaturalLess(b, c) && !NaturalLess(a, c) {
			t.Fatalf("%q < %q < %q but not the ends", a, b, c)
		}
	})
	if !NaturalLess("eth2", "eth10") || NaturalLess("eth10", "eth2") {
		t.Error("eth2 comes before eth10")
	}
}

func TestBetween(t *testing.T) {
	obj := func(a, b string, list ...string) Value {
		return Obj(map[string]Value{"a": Str(a), "b": Str(b), "list": Strs(list...)})
	}
	before, after := obj("1", "1", "x", "y"), obj("2", "2")
	for _, tc := range []struct {
		name string
		live Value
		want bool
	}{
		{"as before", before, true},
		{"as after", after, true},
		{"one is written", obj("2", "1", "x", "y"), true},
		{"a list is on its way", obj("1", "1", "y"), true},
		{"somebody else's value", obj("3", "1", "x", "y"), false},
		{"somebody else's element", obj("2", "1", "z"), false},
		{"gone", Null, false},
	} {
		if got := Between(before, after, tc.live); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
