package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
)

// Tally counts steps, and for each effect the steps that bring it about. Blocked steps
// count as blocked only.
type Tally struct {
	Change  int            `json:"change"`
	Run     int            `json:"run"`
	Verify  int            `json:"verify"`
	Blocked int            `json:"blocked"`
	Effects map[Effect]int `json:"effects"`
}

// add counts one step.
func (t *Tally) add(s *Step) {
	if t.Effects == nil {
		t.Effects = map[Effect]int{}
	}
	if s.Blocked != nil {
		t.Blocked++
		return
	}
	switch s.Action {
	case ActionCreate, ActionUpdate, ActionRemove:
		t.Change++
	case ActionRun, ActionTransition, ActionWait:
		t.Run++
	case ActionVerify:
		t.Verify++
	}
	for _, e := range s.Effects {
		if s.Alone() && e == EffectServiceRestart {
			continue // the one restart that all of them lead to is counted at the service's step
		}
		t.Effects[e]++
	}
}

// RackPlan sums up the devices of one rack: what shares its power and its switches.
type RackPlan struct {
	Name    string `json:"name"`
	Devices int    `json:"devices"`
	Tally
	// HostReboots counts the rack's hosts that reboot.
	HostReboots int `json:"host_reboots"`
}

// Summary counts what the plan would do. The three last counts but one are of
// hosts, not of steps: one that reboots twice counts once.
type Summary struct {
	Devices int `json:"devices"`
	Tally
	HostReboots     int `json:"host_reboots"`
	DiskErases      int `json:"disk_erases"`
	ServiceRestarts int `json:"service_restarts"` // steps
	// UpTo: something could not be seen yet, the counts are an upper bound.
	UpTo bool `json:"up_to"`
}

// Recount counts a plan's steps and effects: of each device, of each rack and as a
// whole.
func (p *Plan) Recount() {
	p.content = nil // whoever counts has changed something
	p.Summary = Summary{Devices: len(p.Devices), Tally: Tally{Effects: map[Effect]int{}}}
	devices, racks := map[string]*DevicePlan{}, map[string]*RackPlan{}
	for i := range p.Devices {
		d := &p.Devices[i]
		d.Tally = Tally{Effects: map[Effect]int{}}
		devices[d.Name] = d
		if d.Rack == "" {
			continue
		}
		if racks[d.Rack] == nil {
			racks[d.Rack] = &RackPlan{Name: d.Rack, Tally: Tally{Effects: map[Effect]int{}}}
		}
		racks[d.Rack].Devices++
	}
	for _, s := range p.Steps {
		p.Summary.add(s)
		p.Summary.UpTo = p.Summary.UpTo || s.BeforeUnknown && s.Blocked == nil
		if d := devices[s.Address.Device]; d != nil {
			d.add(s)
			if r := racks[d.Rack]; r != nil {
				r.add(s)
			}
		}
	}
	p.Summary.ServiceRestarts = p.Summary.Effects[EffectServiceRestart]
	for _, d := range devices {
		if d.Effects[EffectErase] > 0 {
			p.Summary.DiskErases++
		}
		if d.Effects[EffectReboot] > 0 {
			p.Summary.HostReboots++
			if r := racks[d.Rack]; r != nil {
				r.HostReboots++
			}
		}
	}
	p.Racks = make([]RackPlan, 0, len(racks))
	for _, r := range racks {
		p.Racks = append(p.Racks, *r)
	}
	sort.Slice(p.Racks, func(i, j int) bool { return NaturalLess(p.Racks[i].Name, p.Racks[j].Name) })
}

// checkCounts holds what a plan says of itself against its steps: people approve
// by the counts, and apply asks by them.
func checkCounts(p *Plan) error {
	devices, seen := map[string]bool{}, map[Address]bool{}
	for _, d := range p.Devices {
		if devices[d.Name] {
			return fmt.Errorf("device %q is in it twice", d.Name)
		}
		devices[d.Name] = true
	}
	for _, s := range p.Steps {
		switch {
		case seen[s.Address]:
			return fmt.Errorf("two steps have the address %s", s.Address)
		case s.Address.Site != p.Scope.Site || !s.Address.Shared() && !devices[s.Address.Device]:
			return fmt.Errorf("step %s (%s) is of no device of the plan", s.ID, s.Address)
		}
		seen[s.Address] = true
	}
	counted := *p
	counted.Devices = slices.Clone(p.Devices)
	counted.Recount()
	if !p.Summary.equal(counted.Summary) {
		return fmt.Errorf("the file says %q, its steps come to %q", p.Summary, counted.Summary)
	}
	for i, d := range counted.Devices {
		if !p.Devices[i].equal(d.Tally) {
			return fmt.Errorf("the counts of device %q are not those of its steps", d.Name)
		}
	}
	if !slices.EqualFunc(p.Racks, counted.Racks, RackPlan.equal) {
		return errors.New("the counts of the racks are not those of their steps")
	}
	return nil
}

func (t Tally) equal(u Tally) bool {
	return t.Change == u.Change && t.Run == u.Run && t.Verify == u.Verify && t.Blocked == u.Blocked && maps.Equal(t.Effects, u.Effects)
}

func (r RackPlan) equal(o RackPlan) bool {
	return r.Name == o.Name && r.Devices == o.Devices && r.HostReboots == o.HostReboots && r.Tally.equal(o.Tally)
}

func (s Summary) equal(o Summary) bool {
	return s.Devices == o.Devices && s.HostReboots == o.HostReboots && s.DiskErases == o.DiskErases &&
		s.ServiceRestarts == o.ServiceRestarts && s.UpTo == o.UpTo && s.Tally.equal(o.Tally)
}

// String is the last line of a plan's text form. It is an interface: its words
// are fixed, always printed, and zeros are written.
func (s Summary) String() string {
	return fmt.Sprintf("Plan: %d devices, %d to change, %d to run, %d to verify, %d blocked; %d host reboots, %d disk erase, %d service restart.",
		s.Devices, s.Change, s.Run, s.Verify, s.Blocked, s.HostReboots, s.DiskErases, s.ServiceRestarts)
}
