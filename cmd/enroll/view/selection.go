package view

import (
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// drawnLimit is how many steps of a closure are named before the rest is counted.
const drawnLimit = 8

// narrowed says how a plan was narrowed: by which patterns, what came along
// because others need it, and what was left out of the devices that it is about. Nil
// for a whole plan.
func narrowed(p *plan.Plan, full bool) []string {
	sc := p.Scope
	if len(sc.Targets)+len(sc.Excludes) == 0 {
		return nil
	}
	var by []string
	for _, pattern := range sc.Targets {
		by = append(by, "--target "+Clean(pattern))
	}
	for _, pattern := range sc.Excludes {
		by = append(by, "--exclude "+Clean(pattern))
	}
	lead := "Narrowed by " + strings.Join(by, " ") + ": " + plural(sc.LeftOut, "further step") + " not shown and not run"
	if sc.DevicesLeftOut > 0 {
		lead += ", and nothing is said of " + plural(sc.DevicesLeftOut, "further device")
	}
	out := []string{lead}
	told := map[string]bool{"": true}
	for _, d := range p.Devices {
		told[d.Name] = true
	}
	var after []string
	for _, d := range sc.Excluded {
		if d.Pattern == "" && told[d.Address.Device] {
			after = append(after, Clean(d.Address.String())+", which comes after "+Clean(beside(d.By, d.Address)))
		}
	}
	var also []string
	for _, d := range sc.Also {
		also = append(also, Clean(d.Address.String())+", needed by "+Clean(beside(d.By, d.Address)))
	}
	return append(append(out, bounded("also selected: ", also, full)...), bounded("also left out: ", after, full)...)
}

// beside is an address as it is named next to another one of the same device.
func beside(a, of plan.Address) string {
	if a.Device == of.Device {
		return a.Local()
	}
	return a.String()
}

func bounded(lead string, items []string, full bool) []string {
	var out []string
	for i, item := range items {
		if i == drawnLimit && !full && len(items) > drawnLimit+1 {
			return append(out, "  "+lead+itoa(len(items)-i)+" more; --full names them all")
		}
		out = append(out, "  "+lead+item)
	}
	return out
}
