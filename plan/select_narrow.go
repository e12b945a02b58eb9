package plan

import "slices"

// narrowing is the state of narrowing one plan.
type narrowing struct {
	sel   Selection
	steps []*Step
	byID  map[string]*Step
	// live are the shared steps that make a step live, by its address.
	live map[string][]*Step
	// of are what a shared step needs, by device; "" is what devices share.
	of   map[*Step]map[string][]*Step
	out  map[*Step]Drawn // left out by the excludes
	keep map[*Step]Drawn // kept; a zero By: of itself
	// serves are the devices for which a shared step is kept.
	serves map[*Step]map[string]bool
}

// narrow drops the steps that the selection leaves out, records what it took
// along or left out beside, and numbers what stays anew. The steps must be
// numbered; they are changed.
func (p *Plan) narrow(sel Selection) {
	if sel.None() {
		return
	}
	n := &narrowing{sel: sel, steps: p.Steps, byID: map[string]*Step{}, live: map[string][]*Step{}, of: map[*Step]map[string][]*Step{}, out: map[*Step]Drawn{}, keep: map[*Step]Drawn{}, serves: map[*Step]map[string]bool{}}
	for _, s := range p.Steps {
		n.byID[s.ID] = s
		if s.Address.Shared() && s.Blocked == nil {
			for _, made := range s.Because {
				n.live[made] = append(n.live[made], s)
			}
		}
	}
	for _, s := range p.Steps {
		if !s.Address.Shared() {
			continue
		}
		n.of[s] = map[string][]*Step{}
		for _, id := range s.Needs {
			need := n.byID[id]
			n.of[s][need.Address.Device] = append(n.of[s][need.Address.Device], need)
		}
	}
	n.exclude()
	n.choose()
	n.record(p)
	p.Steps = n.renumber()
}

// exclude finds the steps that are left out: those that fit, and what needs them,
// until nothing changes.
func (n *narrowing) exclude() {
	for _, s := range n.steps {
		if pattern, ok := s.fitting(n.sel.Excludes); ok {
			n.out[s] = Drawn{Address: s.Address, Pattern: pattern}
		}
	}
	for changed := len(n.out) > 0; changed; {
		changed = false
		for _, s := range n.steps {
			if _, gone := n.out[s]; gone {
				continue
			}
			if by := n.missing(s); by != nil {
				n.out[s], changed = Drawn{Address: s.Address, By: by.Address}, true
			}
		}
	}
}

// missing gives the step without which a step cannot be: one that it needs, or the
// shared one that would make live what it writes. A shared step can be as long
// as a device is left that it serves.
func (n *narrowing) missing(s *Step) *Step {
	if s.Alone() {
		return n.untold(s)
	}
	if s.Address.Shared() {
		by, due := n.missingAlone(s)
		if due {
			return nil
		}
		for _, device := range s.Serves {
			if by = n.cutOff(s, device); by == nil {
				return nil
			}
		}
		if s.Reason == ReasonPending {
			return nil // it is due whoever is served
		}
		return by
	}
	for _, id := range s.Needs {
		if by := n.cutOff(n.byID[id], s.Address.Device); by != nil {
			return by
		}
	}
	return n.untold(s)
}

// untold gives a shared step that would make live what a step writes, and that is
// left out.
func (n *narrowing) untold(s *Step) *Step {
	for _, shared := range n.live[s.Address.String()] {
		if _, gone := n.out[shared]; gone && s.Blocked == nil {
			return shared
		}
	}
	return nil
}

// missingAlone looks at what a shared step needs beside what its devices have: due
// when a part of that stays, else a part that is left out.
func (n *narrowing) missingAlone(s *Step) (by *Step, due bool) {
	for _, need := range n.of[s][""] {
		if !need.Alone() {
			continue
		}
		if _, gone := n.out[need]; !gone {
			return nil, true
		}
		by = need
	}
	return by, false
}

// cutOff gives what is left out of a step as far as a device is concerned: the
// step itself, or what a shared step needs of that device.
func (n *narrowing) cutOff(s *Step, device string) *Step {
	if _, gone := n.out[s]; gone {
		return s
	}
	for _, need := range n.of[s][device] {
		if _, gone := n.out[need]; gone {
			return need
		}
	}
	return nil
}

// choose keeps what fits a target, and what that needs.
func (n *narrowing) choose() {
	var direct []*Step
	for _, s := range n.steps {
		if _, gone := n.out[s]; gone {
			continue
		}
		if _, fits := s.fitting(n.sel.Targets); fits || len(n.sel.Targets) == 0 {
			n.keep[s] = Drawn{}
			direct = append(direct, s)
		}
	}
	for _, s := range direct {
		if !s.Address.Shared() {
			n.follow(s)
			continue
		}
		if s.Alone() {
			n.follow(s)
		}
		for _, need := range n.of[s][""] {
			if _, gone := n.out[need]; need.Alone() && !gone {
				n.draw(need, s)
			}
		}
		for _, device := range s.Serves {
			if n.cutOff(s, device) == nil {
				n.keepFor(s, device, s)
			}
		}
	}
}

// follow keeps what a kept step of a device needs, and what makes it live.
func (n *narrowing) follow(s *Step) {
	for _, id := range s.Needs {
		if need := n.byID[id]; need.Address.Shared() {
			n.keepFor(need, s.Address.Device, s)
		} else {
			n.draw(need, s)
		}
	}
	if s.Blocked != nil {
		return
	}
	for _, shared := range n.live[s.Address.String()] {
		n.keepFor(shared, s.Address.Device, s)
	}
}

func (n *narrowing) draw(s, by *Step) {
	if _, kept := n.keep[s]; kept {
		return
	}
	n.keep[s] = Drawn{Address: s.Address, By: by.Address}
	n.follow(s)
}

// keepFor keeps a shared step for one device, with what it needs of that device:
// what the others wait for is not drawn along.
func (n *narrowing) keepFor(s *Step, device string, by *Step) {
	if n.serves[s][device] {
		return
	}
	if n.serves[s] == nil {
		n.serves[s] = map[string]bool{}
	}
	n.serves[s][device] = true
	if _, kept := n.keep[s]; !kept {
		n.keep[s] = Drawn{Address: s.Address, By: by.Address}
	}
	if device == "" {
		return // for a step that serves none
	}
	for _, need := range n.of[s][""] {
		if !need.Alone() { // it is nothing of the device's
			n.keepFor(need, device, s)
		}
	}
	for _, need := range n.of[s][device] {
		n.draw(need, s)
	}
}

// record says in the plan's scope what the selection did.
func (n *narrowing) record(p *Plan) {
	sc := &p.Scope
	sc.Targets = n.sel.Targets
	sc.Excludes = append(slices.Clone(sc.Excludes), n.sel.Excludes...)
	sc.Also, sc.Excluded = nil, slices.Clone(sc.Excluded)
	met, asked := map[string]bool{}, map[string]bool{}
	left := map[string]int{}
	for _, s := range n.steps {
		d, kept := n.keep[s]
		for _, target := range n.sel.Targets {
			if s.Fits(target) {
				asked[target], met[target] = true, met[target] || kept
			}
		}
		if kept {
			if d.By != (Address{}) {
				sc.Also = append(sc.Also, d)
			}
			continue
		}
		if gone, ok := n.out[s]; ok {
			sc.Excluded = append(sc.Excluded, gone)
		}
		left[s.Address.Device]++
		sc.LeftOut++
	}
	sc.Unmet = nil
	for _, target := range n.sel.Targets {
		if asked[target] && !met[target] {
			sc.Unmet = append(sc.Unmet, target)
		}
	}
	for i := range p.Devices {
		p.Devices[i].LeftOut += left[p.Devices[i].Name]
	}
	n.drop(p)
}

// drop takes the devices out of the plan that the selection is not about, with
// everything that is said of them: those without a kept step that no target may
// mean, and those that an exclude takes out as a whole.
func (n *narrowing) drop(p *Plan) {
	stays := map[string]bool{"": true}
	for s := range n.keep {
		stays[s.Address.Device] = true
		for _, name := range s.Serves {
			stays[name] = stays[name] || n.serves[s][name]
		}
	}
	gone := map[string]bool{}
	for _, d := range p.Devices {
		gone[d.Name] = !stays[d.Name] && !n.sel.about(p.Scope.Site, d.Name)
	}
	p.Devices = slices.DeleteFunc(p.Devices, func(d DevicePlan) bool { return gone[d.Name] })
	p.Scope.Devices = slices.DeleteFunc(slices.Clone(p.Scope.Devices), func(name string) bool { return gone[name] })
	p.Checks = slices.DeleteFunc(p.Checks, func(c Check) bool { return gone[c.Address.Device] })
	p.Observed = slices.DeleteFunc(slices.Clone(p.Observed), func(o Observation) bool { return gone[o.Address.Device] })
	p.Diagnostics = slices.DeleteFunc(slices.Clone(p.Diagnostics), func(d Diagnostic) bool { return gone[d.Device] })
	for _, g := range gone {
		if g {
			p.Scope.DevicesLeftOut++
		}
	}
}

// renumber gives the kept steps, cut down to what is kept, with ids without gaps.
func (n *narrowing) renumber() []*Step {
	var kept []*Step
	ids, addresses := map[string]string{}, map[string]bool{}
	for _, s := range n.steps {
		if _, ok := n.keep[s]; ok {
			kept = append(kept, s)
			ids[s.ID], addresses[s.Address.String()] = stepID(len(kept)), true
		}
	}
	for _, s := range kept {
		if s.Address.Shared() && s.Blocked == nil && s.Reason != ReasonPending {
			s.Serves = without(s.Serves, func(name string) bool { return !n.serves[s][name] })
			s.Because = without(s.Because, func(at string) bool {
				a, err := ParseAddress(at)
				return err == nil && !addresses[a.String()]
			})
		}
		s.ID = ids[s.ID]
		var needs []string
		for _, id := range s.Needs {
			if ids[id] != "" {
				needs = append(needs, ids[id])
			}
		}
		s.Needs = needs
	}
	return kept
}
