package ironic

import (
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

const fromDisks = "inventory.disks"

func diskCount(want int, inv *inventory) finding {
	if inv.Hardware.Disks == nil {
		return unreported(fromDisks, "disks")
	}
	return equal(fromDisks, "disks", want, len(inv.Hardware.Disks))
}

// diskModels wants every disk to be of one of the models, letter for letter but
// for the blanks that drives pad their model with.
func diskModels(want []string, inv *inventory) finding {
	const from = fromDisks + "[].model"
	if inv.Hardware.Disks == nil {
		return unreported(fromDisks, "disks")
	}
	found := tally{}
	var wrong, silent []string
	for _, d := range inv.Hardware.Disks {
		model := said(d.Model)
		found[model]++
		switch {
		case model == "":
			silent = append(silent, said(d.Name))
		case !slices.Contains(want, model):
			wrong = append(wrong, said(d.Name)+" ("+model+")")
		}
	}
	switch {
	case len(wrong) > 0:
		return mismatch(from, found.String(), "another model: "+named(wrong))
	case len(silent) > 0:
		return finding{verdict: plan.CheckUnknown, observed: found.String(), text: "no model was reported for " + named(silent), from: []string{from}}
	}
	return matched(from, found.String())
}
