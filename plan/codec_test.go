package plan

import (
	"testing"
	"time"
)

func TestPlanRoundTrip(t *testing.T) {
	p := &Plan{FormatVersion: FormatVersion, PlanID: "0123456789ab", Scope: ScopeRecord{Site: "lon14"}, Created: time.Unix(0, 0).UTC(), Devices: []DevicePlan{{Name: "gpu-001", Verdict: VerdictChanges}}}
	a, err := ParseAddress("lon14/gpu-001/ironic.port[eth0]")
	if err != nil {
		t.Fatal(err)
	}
	other := a
	other.Key = "eth1"
	p.Steps = []*Step{
		{ID: "s1", Address: a, Action: ActionCreate, Reason: ReasonAbsent, Phase: "ports", Before: Null, After: Obj(map[string]Value{"a": Unknown, "b": Strs("x", "y"), "n": Int(3)})},
		{ID: "s2", Address: other, Action: ActionUpdate, Reason: ReasonDeferred, Phase: "ports", Before: Unknown, BeforeUnknown: true, After: Str("<&>"), Needs: []string{"s1"}},
	}
	p.Observed = []Observation{{Address: a, Rule: "kept", Want: Str("a"), Live: Null}}
	p.Recount()
	p.ContentHash = ContentHash(p)
	raw, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	again, err := Encode(back)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(raw) {
		t.Errorf("second encoding differs:\n%s\n%s", raw, again)
	}
	if back.Steps[0].After.GetAttr("a").IsKnown() {
		t.Error("the unknown part came back known")
	}
}
