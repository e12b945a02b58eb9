package plan

import (
	"errors"
	"strings"
	"testing"
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
	for name, raw := range map[string]string{
		"empty":         "",
		"not JSON":      "hello",
		"cut off":       good[:len(good)/2],
		"null":          "null",
		"list":          "[]",
		"newer major":   strings.Replace(good, `"format_version": "1.0"`, `"format_version": "2.0"`, 1),
		"edited value":  strings.Replace(good, `"v": "new"`, `"v": "old"`, 1),
		"edited reason": strings.Replace(good, `"reason": "absent"`, `"reason": "differs"`, 1),
		"duplicate id":  rehash(func(p *Plan) { p.Steps[1].ID = p.Steps[0].ID }),
		"cycle":         rehash(func(p *Plan) { p.Steps[1].Needs = []string{p.Steps[0].ID} }),
		"missing need":  rehash(func(p *Plan) { p.Steps[1].Needs = []string{"s99"} }),
		"path as id":    rehash(func(p *Plan) { p.PlanID = "../../etc" }),
		"null step":     rehash(func(p *Plan) { p.Steps = append(p.Steps, nil) }),
		"null fault":    rehash(func(p *Plan) { p.Diagnostics = append(p.Diagnostics, Diagnostic{Severity: SeverityError}) }),
		"no id":         rehash(func(p *Plan) { p.Steps[1].ID = "" }),
		"bad address":   strings.Replace(good, `"address": "lon14/gpu-001/ironic.node"`, `"address": "lon14"`, 1),
		"other id":      strings.Replace(good, `"plan_id": "0123456789ab"`, `"plan_id": "0123456789ac"`, 1),
		"longer life":   strings.Replace(good, `"expires": "0001`, `"expires": "2001`, 1),
		"wrong type":    strings.Replace(good, `"steps": [`, `"steps": "x", "was": [`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode([]byte(raw)); !errors.Is(err, CodePlanInvalid) {
				t.Errorf("got %v, want PLAN_FILE_INVALID", err)
			}
		})
	}
	if _, err := Decode([]byte(good)); err != nil {
		t.Errorf("the plan as it was written: %v", err)
	}
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
