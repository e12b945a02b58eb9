package plan

import "slices"

// Underived lists the steps of a plan file that this site's kinds would not make,
// whatever the systems answer: hashes prove that a file is whole, not who wrote it. What
// does not depend on a live value is derived again here, from the records and site
// files that the plan is applied with: that there is such a resource, its place in
// the order, its effects, that a value written is a wanted one, and what may
// run without a guard or on a machine that somebody holds. Blocked steps never run, and
// nothing of the held devices does, whose record moved since.
func (p *Plan) Underived(sc *Scope, kinds []Kind, held map[string]*Fault) []Stray {
	d := deriver{scope: *sc, byID: map[string]*Step{}, rules: map[Address]rule{}, before: map[string]map[string]bool{}, devices: map[string]bool{}}
	for _, name := range p.Scope.Devices {
		d.devices[name] = true
	}
	d.scope.Stale = nil
	for _, s := range p.Steps {
		d.byID[s.ID] = s
		if s.Alone() { // the server was asked which there are; each has its own guard
			d.scope.Stale = append(d.scope.Stale, s.Address.Key)
		}
	}
	for place, group := range groups(ordered(kinds)) {
		for _, k := range group {
			for _, r := range Desired(&d.scope, []Kind{k}) {
				d.rules[r.Address] = rule{k, r, place}
			}
		}
	}
	var out []Stray
	for _, s := range p.Steps {
		if s.Blocked != nil || held[s.Address.Device] != nil && s.Address.Site == sc.Site.Name {
			continue
		}
		if why := d.stray(p, s); why != "" {
			out = append(out, Stray{s, why})
		}
	}
	return out
}

// rule is what makes the steps of one address.
type rule struct {
	kind     Kind
	resource Resource
	place    int
}

type deriver struct {
	scope   Scope
	devices map[string]bool // of the plan
	byID    map[string]*Step
	rules   map[Address]rule
	before  map[string]map[string]bool // ids of the steps before one, by its id
}

// stray says why a step is none of the kinds', "" when it is one.
func (d *deriver) stray(p *Plan, s *Step) string {
	r, known := d.rules[s.Address]
	if !known {
		return "is about nothing that this site wants"
	}
	looks := !s.Action.Mutates()
	switch {
	case looks && !slices.Contains(r.kind.Looks, s.Action):
		return "would " + string(s.Action) + ", which is nothing that its kind does"
	case s.Phase != r.kind.Phase.String():
		return "is in the phase " + s.Phase + ", its kind is in " + r.kind.Phase.String()
	case !looks && !sameWords(s.Effects, r.resource.Effects), looks && len(s.Effects) > 0:
		return "has other effects than its kind"
	case r.resource.Sensitive && !s.Sensitive:
		return "is not as sensitive as its kind"
	case s.OnOwned && !r.kind.OnOwned && !d.scope.Site.OwnedNodes.Releases(s):
		return "may not run on a machine that somebody holds"
	case (s.Action == ActionCreate || s.Action == ActionUpdate) && !inWanted(s.After, r.resource.Want, r.kind.Lived):
		return "would write another value than is wanted"
	case s.Address.Shared() && !s.Alone() && len(s.Serves) == 0 && !d.afterAlone(s):
		return "serves no device"
	}
	for _, name := range s.Serves {
		if !d.devices[name] {
			return "serves " + name + ", which the plan does not name"
		}
	}
	return d.disorder(p, s, r)
}

// inWanted reports whether a value is a part of what is wanted, wherever that is known,
// but for attributes that live values give.
func inWanted(v, want Value, lived []string) bool {
	switch {
	case !want.IsKnown():
		return true
	case isObject(v) && isObject(want):
		return !slices.ContainsFunc(attributeNames(v), func(name string) bool {
			return !slices.Contains(lived, name) && (!HasAttr(want, name) || !inWanted(attribute(v, name), attribute(want, name), nil))
		})
	}
	return v.IsKnown() && Satisfies(v, want)
}

func sameWords(a, b []Effect) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(e Effect) bool { return !slices.Contains(b, e) })
}

// afterAlone is Step.afterAlone for steps whose needs are numbered.
func (d *deriver) afterAlone(s *Step) bool {
	return slices.ContainsFunc(s.Needs, func(id string) bool { n := d.byID[id]; return n != nil && n.Alone() })
}

// disorder names a step of the same device that comes before in the workflow, and
// for which the step does not wait.
func (d *deriver) disorder(p *Plan, s *Step, r rule) string {
	if s.Address.Shared() {
		return ""
	}
	waits := d.waits(s)
	for _, other := range p.Steps {
		if other.Blocked != nil || other.Address.Device != s.Address.Device || waits[other.ID] {
			continue
		}
		if o, known := d.rules[other.Address]; known && o.place < r.place {
			return "does not wait for " + other.Address.Local() + ", which comes before it"
		}
	}
	return ""
}

// waits are the ids of all steps that come before a step. Needs have no cycle: that
// is proved when a file is read.
func (d *deriver) waits(s *Step) map[string]bool {
	if done := d.before[s.ID]; done != nil {
		return done
	}
	all := map[string]bool{}
	d.before[s.ID] = all
	for _, id := range s.Needs {
		all[id] = true
		if n := d.byID[id]; n != nil {
			for before := range d.waits(n) {
				all[before] = true
			}
		}
	}
	return all
}
