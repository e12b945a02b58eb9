package plan

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Whatever policies say about whatever devices: what is denied and what waits for
// it does not run, what nobody denies runs, and asking again changes nothing.
func TestEnforceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "devices")]
		sc := testScope(names...)
		w := Snapshot{}
		for _, r := range Desired(sc, testKinds) {
			w[r.Address] = LiveAbsent()
			if rapid.Bool().Draw(t, "as wanted "+r.Address.String()) {
				w[r.Address] = LiveValue(r.Want)
			}
		}
		before := Build(Input{Scope: sc, Kinds: testKinds, World: w, Now: noon})
		denied := map[string]bool{} // subjects
		for i := range rapid.IntRange(0, 3).Draw(t, "policies") {
			subject := rapid.SampledFrom([]PolicySubject{SubjectPlan, SubjectDevice, SubjectStep}).Draw(t, "subject")
			action := rapid.SampledFrom(PolicyActions()).Draw(t, "action")
			fails := rapid.Bool().Draw(t, "fails")
			device, kind := rapid.SampledFrom(names).Draw(t, "device"), rapid.SampledFrom(testKinds).Draw(t, "kind").Name
			sc.Site.Policies = append(sc.Site.Policies, Policy{Name: fmt.Sprint("p", i), Action: action, Subject: subject, When: asks(func(c PolicyCase) (bool, error) {
				hit := subject == SubjectPlan && device == "a" || c.Target != nil && c.Target.Name() == device || c.Step != nil && c.Step.Address.KindName() == kind
				if hit && (fails || action == PolicyDeny) {
					switch {
					case c.Step != nil:
						denied[c.Step.Address.String()] = true
					case c.Target != nil:
						denied["lon14/"+c.Target.Name()] = true
					default:
						denied["lon14"] = true
					}
				}
				if hit && fails {
					return false, errors.New("no idea")
				}
				return hit, nil
			})})
		}
		p := Build(Input{Scope: sc, Kinds: testKinds, World: w, Now: noon})
		if len(p.Steps) != len(before.Steps) {
			t.Fatalf("%d steps without policies, %d with", len(before.Steps), len(p.Steps))
		}
		byID := map[string]*Step{}
		for _, s := range p.Steps {
			byID[s.ID] = s
		}
		for _, s := range p.Steps {
			asked := denied["lon14"] || denied["lon14/"+s.Address.Device] || denied[s.Address.String()]
			switch {
			case asked && s.Blocked == nil:
				t.Errorf("%s is denied and runs", s.Address)
			case len(denied) == 0 && s.Blocked != nil:
				t.Errorf("%s is blocked and nobody denies anything", s.Address)
			}
			for _, id := range s.Needs {
				if n := byID[id]; s.Blocked == nil && n.Blocked != nil {
					t.Errorf("%s runs and waits for %s, which does not", s.Address, n.Address)
				}
			}
			if s.Address.Shared() && s.Blocked == nil && len(s.Serves) == 0 {
				t.Errorf("%s serves nobody and runs", s.Address)
			}
		}
		if p.Denied() != (len(denied) > 0) {
			t.Errorf("denied %v, and the plan says %t", denied, p.Denied())
		}
		blocked, said := blocks(p), p.Policies
		p.Enforce(JudgePolicies(p, sc, noon))
		if again := blocks(p); fmt.Sprint(again) != fmt.Sprint(blocked) {
			t.Errorf("asking again blocks %v, before %v", again, blocked)
		}
		for i, r := range p.Policies {
			if r.Denies() != said[i].Denies() {
				t.Errorf("asking again says %+v, before %+v", r, said[i])
			}
		}
	})
}
