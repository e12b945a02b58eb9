package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func samplePlan(t *testing.T) *Plan {
	t.Helper()
	sc := testScope("gpu-001")
	p := Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent())})
	p.PlanID = "0123456789ab"
	return p
}

func encoded(t *testing.T, p *Plan) string {
	t.Helper()
	raw, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Whatever was done to a plan file, it is refused as a whole and by name.
func TestDecodeRefuses(t *testing.T) {
	good := encoded(t, samplePlan(t))
	rehash := func(change func(p *Plan)) string {
		p := samplePlan(t)
		change(p)
		p.ContentHash = ContentHash(p)
		return encoded(t, p)
	}
	for _, tc := range []struct{ name, raw, says string }{
		{"empty", "", "no whole JSON document"},
		{"not JSON", "hello", "at byte: 1"},
		{"cut off", good[:len(good)/2], "unexpected end of JSON"},
		{"two documents", good + good, "after top-level value"},
		{"null", "null", "a plan is a JSON object"},
		{"list", "[]", "a plan is a JSON object"},
		{"very deep", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), "depth"},
		{"no format", "{}", `format version ""`},
		{"newer major", strings.Replace(good, `"format_version": "1.0"`, `"format_version": "2.0"`, 1), "this program reads 1.x"},
		{"edited value", strings.Replace(good, `"v": "new"`, `"v": "old"`, 1), "content hash"},
		{"edited reason", strings.Replace(good, `"reason": "absent"`, `"reason": "differs"`, 1), "content hash"},
		{"a member more", strings.Replace(good, `"checks": []`, `"checks": [], "approved": true`, 1), "content hash"},
		{"a member less", strings.Replace(good, `"diagnostics": [],`, ``, 1), "content hash"},
		{"a member twice", strings.Replace(good, `"steps": [`, `"steps": [], "steps": [`, 1), `the member "steps" twice`},
		{"duplicate id", rehash(func(p *Plan) { p.Steps[1].ID = p.Steps[0].ID }), "used by two steps"},
		{"cycle", rehash(func(p *Plan) { p.Steps[1].Needs = []string{p.Steps[0].ID} }), "lead back to itself"},
		{"fewer erases", rehash(func(p *Plan) { p.Summary.DiskErases, p.Summary.Change = 0, 0 }), "0 to change, "},
		{"an effect less", rehash(func(p *Plan) { p.Summary.Effects = map[Effect]int{EffectPower: 7} }), "its steps come to"},
		{"device counted short", rehash(func(p *Plan) { p.Devices[0].Change-- }), `the counts of device "gpu-001"`},
		{"rack counted short", rehash(func(p *Plan) { p.Racks = append(p.Racks, RackPlan{Name: "r99"}) }), "the counts of the racks"},
		{"device twice", rehash(func(p *Plan) { p.Devices = append(p.Devices, p.Devices[0]) }), `device "gpu-001" is in it twice`},
		{"address twice", rehash(func(p *Plan) { p.Steps[2].Address = p.Steps[1].Address }), "two steps have the address"},
		{"strange device", rehash(func(p *Plan) { p.Steps[1].Address.Device = "gpu-002" }), "is of no device of the plan"},
		{"strange site", rehash(func(p *Plan) { p.Steps[1].Address.Site = "fra7" }), "is of no device of the plan"},
		{"missing need", rehash(func(p *Plan) { p.Steps[1].Needs = []string{"s99"} }), "does not exist"},
		{"path as id", rehash(func(p *Plan) { p.PlanID = "../../etc" }), "plan id"},
		{"null step", rehash(func(p *Plan) { p.Steps = append(p.Steps, nil) }), "empty"},
		{"null fault", rehash(func(p *Plan) { p.Diagnostics = append(p.Diagnostics, Diagnostic{Severity: SeverityError}) }), "empty"},
		{"no id", rehash(func(p *Plan) { p.Steps[1].ID = "" }), "has no id"},
		{"bad address", strings.Replace(good, `"address": "lon14/gpu-001/ironic.node"`, `"address": "lon14"`, 1), "content hash"},
		{"other id", strings.Replace(good, `"plan_id": "0123456789ab"`, `"plan_id": "0123456789ac"`, 1), "seal"},
		{"longer life", strings.Replace(good, `"expires": "0001`, `"expires": "2001`, 1), "seal"},
		{"wrong type", strings.Replace(good, `"format_version": "1.0"`, `"format_version": 1`, 1), "wrong form"},
		{"unknown action", rehash(func(p *Plan) { p.Steps[1].Action = "erase" }), `the action of step s2 (lon14/gpu-001/dhcp.reservation) is "erase", and this version knows create, update`},
		{"unknown reason", rehash(func(p *Plan) { p.Steps[1].Reason = "why not" }), "the reason of step s2"},
		{"unknown phase", rehash(func(p *Plan) { p.Steps[1].Phase = "party" }), "the phase of step s2"},
		{"unknown effect", rehash(func(p *Plan) { p.Steps[1].Effects = []Effect{"melt"} }), "an effect of step s2"},
		{"unknown rule", rehash(func(p *Plan) { p.Steps[1].Blocked = &Block{Rule: "moon"} }), "the rule that blocks step s2"},
		{"unknown verdict", rehash(func(p *Plan) { p.Devices[0].Verdict = "fine" }), `the verdict of device "gpu-001"`},
		{"unknown check verdict", rehash(func(p *Plan) { p.Checks = []Check{{Address: p.Steps[0].Address, Verdict: "maybe"}} }), "the verdict of lon14/dhcp.service"},
		{"unknown severity", rehash(func(p *Plan) {
			p.Diagnostics = []Diagnostic{{Severity: "panic", Fault: NewFault(CodeInternal, "x")}}
		}), "the severity"},
		{"unknown policy action", rehash(func(p *Plan) { p.Policies = []PolicyResult{{Policy: "p", Action: "allow", Outcome: PolicyPasses}} }), "the action of policy"},
		{"unknown policy outcome", rehash(func(p *Plan) { p.Policies = []PolicyResult{{Policy: "p", Action: PolicyDeny, Outcome: "so so"}} }), "the outcome of policy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Decode([]byte(tc.raw))
			if !errors.Is(err, CodePlanInvalid) {
				t.Fatalf("got %v, want PLAN_FILE_INVALID", err)
			}
			if text := err.Error() + strings.Join(AsFault(err).EvidenceLines(), "\n"); !strings.Contains(text, tc.says) {
				t.Errorf("%s\nwant: %s", text, tc.says)
			}
		})
	}
	if _, err := Decode([]byte(good)); err != nil {
		t.Errorf("the plan as it was written: %v", err)
	}
}

// A later minor version only adds: what it adds is covered by the hashes and
// passed over. So are blanks and the order of members, which carry nothing.
func TestDecodeTakes(t *testing.T) {
	good := encoded(t, samplePlan(t))
	d, err := parseDocument([]byte(strings.Replace(good, `"checks": []`, `"checks": [], "novelty": {"b": [1, {}], "a": "\u003c"}`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	d = d.with("format_version", "1.7")
	d = d.with("content_hash", d.without(identity...).hash())
	d = d.with("seal", d.without("seal").hash())
	added, err := d.indented()
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(good)); err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(good), &members); err != nil {
		t.Fatal(err)
	}
	turned := "{"
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(members))) {
		turned += "\n\t" + strconv.Quote(name) + " :" + string(members[name]) + ","
	}
	turned = strings.TrimSuffix(turned, ",") + "}\r\n"
	for name, raw := range map[string]string{"as it was written": good, "without blanks": compact.String(), "in another order": turned, "of a later minor version": string(added)} {
		p, err := Decode([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name != "of a later minor version" && encoded(t, p) != good {
			t.Errorf("%s: another plan came out", name)
		}
	}
}

// The canonical form is that of encoding/json with sorted maps.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[{"d":null,"c":{"z":"\"","y":[]}}]}`, `{}`, `[1]`, ` {"a" : 1e3 , "b": [ true , false ] } `, `{"a":1,"a":2}`, `{"":{}}`, `"x"`, ` `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := parseDocument(raw)
		if err != nil {
			return
		}
		var got bytes.Buffer
		d.pieces(func(b []byte) { _, _ = got.Write(b) })
		again, err := parseDocument(got.Bytes())
		if err != nil || again.hash() != d.hash() {
			t.Fatalf("%q is not canonical: %v", got.Bytes(), err)
		}
		var before, after any
		if err := json.Unmarshal(raw, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got.Bytes(), &after); err != nil {
			t.Fatalf("%q: %v", got.Bytes(), err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzDecodePlan(f *testing.F) {
	sc := testScope("gpu-001")
	raw, err := Encode(Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent())}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"format_version":"1.0","steps":[{"id":"s1","needs":["s1"]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Decode(raw)
		if err != nil {
			if !errors.Is(err, CodePlanInvalid) {
				t.Errorf("unclassified: %v", err)
			}
			return
		}
		if _, err := Encode(p); err != nil {
			t.Errorf("decoded but does not encode: %v", err)
		}
	})
}
