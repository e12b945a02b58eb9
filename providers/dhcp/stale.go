package dhcp

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/enroll-dev/enroll/plan"
)

// An entry of enroll whose device is gone from NetBox still gives its address
// away. It is shown, and nobody removes it: the device may have moved to another
// site, or its record may be about to come back.

// marked lists the files with enroll's mark: the name and the device's id.
func (fo *folder) marked() []string {
	var out []string
	for name, f := range fo.files {
		if f.dir || !fo.fl.reads(name) {
			continue
		}
		if id, ours := fo.fl.owner(f.text); ours {
			out = append(out, name+" "+strconv.FormatInt(id, 10))
		}
	}
	slices.Sort(out)
	return out
}

// stale observes the entries of devices that the site does not have. Only a run
// for all of the site's devices can tell.
func stale(d plan.Decision) []plan.Observation {
	entries := plan.Attr(d.Live.Value, attrMarked)
	if !d.Scope.Whole || !entries.IsKnown() || entries.IsNull() || entries.LengthInt() == 0 {
		return nil
	}
	known := map[int64]bool{}
	for _, t := range d.Scope.Targets {
		known[t.Intent.ID] = true
	}
	var out []plan.Observation
	for _, v := range entries.AsValueSlice() {
		var name string
		var id int64
		if _, err := fmt.Sscanf(v.AsString(), "%s %d", &name, &id); err != nil || known[id] {
			continue
		}
		out = append(out, plan.Observation{
			Address: d.Resource.Address, Rule: "stale", Want: plan.Null, Live: plan.Str(name),
			Text: fmt.Sprintf("%s/%s is the entry of NetBox device %d, which is none of this site's devices; it is left alone", d.Scope.Site.DHCP.Directory, name, id),
		})
	}
	return out
}

// attrMarked is where the service's live value lists the files with enroll's
// mark, when the folder was looked at. Nothing wants it, so nothing compares it.
const attrMarked = "entries"

// withMarked adds them to the live value.
func withMarked(live plan.Live, fo *folder) plan.Live {
	if live.Presence != plan.Present {
		return live
	}
	state := plan.Text(live.Value, "state")
	pending := plan.Satisfies(plan.Bool(true), plan.Attr(live.Value, "pending"))
	live.Value = plan.Obj(map[string]plan.Value{"state": plan.Str(state), "pending": plan.Bool(pending), attrMarked: plan.Strs(fo.marked()...)})
	return live
}
