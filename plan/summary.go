package plan

import (
	"fmt"
	"sort"
)

// Tally counts steps, and for each effect the steps that have it. Blocked steps
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
	case ActionCreate, ActionUpdate:
		t.Change++
	case ActionRun, ActionTransition, ActionWait:
		t.Run++
	case ActionVerify:
		t.Verify++
	}
	for _, e := range s.Effects {
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

// String is the last line of a plan's text form. It is an interface: its words
// are fixed, always printed, and zeros are written.
func (s Summary) String() string {
	return fmt.Sprintf("Plan: %d devices, %d to change, %d to run, %d to verify, %d blocked; %d host reboots, %d disk erase, %d service restart.",
		s.Devices, s.Change, s.Run, s.Verify, s.Blocked, s.HostReboots, s.DiskErases, s.ServiceRestarts)
}
