package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// aloneKinds are an entry that serves nobody, and the service that is told of it
// and of what devices write.
func aloneKinds() []Kind {
	entry := Kind{Name: "dhcp.stale", Phase: PhaseDHCP, Alone: true, WantShared: func(sc *Scope) []Resource {
		var out []Resource
		for _, name := range sc.Stale {
			out = append(out, Resource{Address: Address{Site: sc.Site.Name, System: "dhcp", Kind: "stale", Key: name}, Want: Null, Effects: []Effect{EffectServiceRestart}})
		}
		return out
	}, Decide: func(d Decision) Verdict {
		if d.Live.Presence != Present {
			return Verdict{Fault: d.Live.Fault, Unreadable: true}
		}
		return Verdict{Step: &Step{Action: ActionRemove, Reason: ReasonForced, Because: []string{"prune_dhcp"}, Before: d.Live.Value, After: Null}}
	}}
	service := testKinds[4]
	service.Decide = func(d Decision) Verdict {
		step := &Step{Action: ActionRun, Reason: ReasonChanged, Before: Obj(map[string]Value{}), After: d.Resource.Want}
		for _, s := range d.Steps {
			if s.Address.System != "dhcp" || s.Blocked != nil {
				continue
			}
			step.Because = append(step.Because, s.Address.String())
			if s.Address.Device != "" {
				step.Serves = append(step.Serves, s.Address.Device)
			}
		}
		if len(step.Because) == 0 {
			return Nothing()
		}
		return Verdict{Step: step}
	}
	return []Kind{kind("dhcp.reservation", PhaseDHCP), entry, service}
}

// A removal that serves no device: what is told of it, what goes with it, and what
// stops it.
func TestAlone(t *testing.T) {
	denies := func(names ...string) []Policy {
		return []Policy{{Name: "keep", Action: PolicyDeny, Subject: SubjectStep, When: asks(func(c PolicyCase) (bool, error) {
			return slices.Contains(names, c.Step.Address.Key), nil
		})}}
	}
	const (
		service  = "lon14/dhcp.service run"
		a, b     = "lon14/dhcp.stale[a] remove", "lon14/dhcp.stale[b] remove"
		reserved = "lon14/gpu-001/dhcp.reservation create"
		denied   = " blocked " + string(RulePolicy)
	)
	for name, c := range map[string]struct {
		policies   []Policy
		selection  Selection
		unreadable string
		wanted     bool // the device's own entry is as wanted
		want       []string
	}{
		"all of it":                          {wanted: true, want: []string{service, a, b}},
		"beside a device's":                  {want: []string{service, a, b, reserved}},
		"one is denied":                      {policies: denies("a"), wanted: true, want: []string{service, a + denied, b}},
		"all are denied":                     {policies: denies("a", "b"), wanted: true, want: []string{service + denied, a + denied, b + denied}},
		"all are denied, a device is served": {policies: denies("a", "b"), want: []string{service, a + denied, b + denied, reserved}},
		"one is left out":                    {selection: Selection{Excludes: []string{"dhcp.stale[a]"}}, wanted: true, want: []string{service, b}},
		"all are left out":                   {selection: Selection{Excludes: []string{"dhcp.stale[*]"}}, wanted: true},
		"what is told is left out":           {selection: Selection{Excludes: []string{"dhcp.service"}}, wanted: true},
		"one is asked for":                   {selection: Selection{Targets: []string{"dhcp.stale[a]"}}, wanted: true, want: []string{service, a}},
		"one cannot be read":                 {unreadable: "a", want: []string{service, b, reserved}},
	} {
		t.Run(name, func(t *testing.T) {
			sc, kinds := testScope("gpu-001"), aloneKinds()
			sc.Stale, sc.Site.Policies = []string{"a", "b"}, c.policies
			w := Snapshot{}
			for _, r := range Desired(sc, kinds) {
				switch {
				case r.Address.Kind == "stale" && r.Address.Key == c.unreadable:
					w[r.Address] = LiveFault(Unreadable, NewFault(CodeDHCPForeignFile, "a is a folder"))
				case r.Address.Kind == "stale":
					w[r.Address] = LiveValue(Obj(map[string]Value{"content": Str("x")}))
				case c.wanted || r.Address.Device == "":
					w[r.Address] = LiveValue(r.Want)
				default:
					w[r.Address] = LiveAbsent()
				}
			}
			p := Build(Input{Scope: sc, Kinds: kinds, World: w, Selection: c.selection})
			var got []string
			for _, s := range p.Steps {
				line := s.Address.String() + " " + string(s.Action)
				if s.Blocked != nil {
					line += " blocked " + string(s.Blocked.Rule)
				}
				got = append(got, line)
			}
			slices.Sort(got)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			free := len(p.Steps) - strings.Count(strings.Join(got, " "), " blocked ")
			for _, s := range p.Steps {
				if s.Address.Kind == "service" && s.Blocked == nil && len(s.Needs) < free-1 {
					t.Errorf("%s comes after %v only: %v", s.Address, s.Needs, got)
				}
			}
			if errs := p.Errors(); c.unreadable == "" != (len(errs) == 0) || len(errs) == 1 && errs[0].Device != "" {
				t.Errorf("%+v", errs)
			}
		})
	}
}
