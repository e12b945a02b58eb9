package dhcp

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/enroll-dev/enroll/plan"
)

// indexKind is the file that lists the reservations' files, for servers that
// cannot read a folder. Its value is {"path", "complete"}: complete is true when
// it lists every file of enroll and nothing that is not there.
//
// It is not compared by content, because what it has to list is decided by what
// really stands in the folder when its turn comes: a listed file that is missing
// keeps Kea and dhcpd from starting, and an upload of another device may have failed.
func indexKind() plan.Kind {
	return plan.Kind{
		Name:       "dhcp." + kindIndex,
		Phase:      plan.PhaseDHCP,
		WantShared: wantIndex,
		Decide:     decideIndex,
		Doc:        "the list of the reservations' files (Kea, ISC): written once after all uploads, and before the service is told",
	}
}

func indexValue(at string, complete bool) plan.Value {
	return plan.Obj(map[string]plan.Value{"path": plan.Str(at), "complete": plan.Bool(complete)})
}

func wantIndex(sc *plan.Scope) []plan.Resource {
	if !enabled(sc.Site) {
		return nil
	}
	at, _ := RenderIndex(*sc.Site.DHCP, nil)
	if at == "" {
		return nil
	}
	r := plan.Resource{Address: plan.Address{Site: sc.Site.Name, System: "dhcp", Kind: kindIndex}, Want: indexValue(at, true)}
	if from := sc.Site.Set["dhcp.directory"]; from != "" {
		r.From = []string{from}
	}
	return []plan.Resource{r}
}

// decideIndex writes the list anew after uploads of this plan that change which
// files there are, and when an earlier run left it incomplete.
func decideIndex(d plan.Decision) plan.Verdict {
	if d.Live.Presence != plan.Present {
		return plan.Verdict{Fault: d.Live.Fault, Unreadable: true}
	}
	step := &plan.Step{Action: plan.ActionUpdate, Before: indexValue(plan.Text(d.Resource.Want, "path"), false), After: d.Resource.Want}
	if serve(d, step, func(u *plan.Step) bool {
		return plan.Text(u.Before, "path") != plan.Text(u.After, "path")
	}) {
		step.Reason = plan.ReasonChanged
		return plan.Verdict{Step: step}
	}
	if !plan.Satisfies(d.Resource.Want, d.Live.Value) {
		step.Reason, step.Because = plan.ReasonPending, []string{"complete"}
		return plan.Verdict{Step: step}
	}
	return plan.Nothing()
}

// serve notes the devices whose reservations this plan changes, as far as they
// count, and the addresses of those steps; for the service also those of entries
// that are removed.
func serve(d plan.Decision, step *plan.Step, counts func(*plan.Step) bool) bool {
	devices := map[string]bool{}
	for _, u := range d.Steps {
		if u.Address.KindName() == "dhcp."+kindReservation && u.Blocked == nil && u.Action.Mutates() && counts(u) {
			step.Because = append(step.Because, u.Address.String())
			devices[u.Address.Device] = true
		}
	}
	if step.Action == plan.ActionRun { // the service; the index is rewritten by the removal itself
		for _, u := range d.Steps {
			if u.Address.KindName() == "dhcp."+kindStale && u.Blocked == nil {
				step.Because = append(step.Because, u.Address.String())
			}
		}
	}
	for name := range devices {
		step.Serves = append(step.Serves, name)
	}
	sort.Strings(step.Serves)
	sort.Strings(step.Because)
	return len(step.Because) > 0
}

// indexed lists the files that the index has to list: those that it lists and
// that are there, and those of enroll, but for files under a former name.
// Files of enroll that have another name than their reservation are copies that
// somebody made: they are not added.
func (fo *folder) indexed(formers []string) ([]string, *plan.Fault) {
	var names []string
	index := fo.files[fo.fl.index]
	if index != nil {
		if index.dir {
			return nil, plan.NewFault(plan.CodeDHCPForeignFile, "%s is a folder", fo.at(fo.fl.index))
		}
		listed, err := fo.fl.parseIndex(fo.dir, index.text)
		if err != nil {
			return nil, plan.NewFault(plan.CodeDHCPForeignFile, "%s is not an index that enroll writes: %v", fo.at(fo.fl.index), err).
				With("content", excerpt(index.text)).
				WithHint("Put what does not belong there into a file of its own that the server's main configuration includes.")
		}
		for _, name := range listed {
			if f := fo.files[name]; f != nil && !f.dir {
				names = append(names, name)
			}
		}
	}
	for name, f := range fo.files {
		if f.dir || !fo.fl.reads(name) {
			continue
		}
		if _, ours := fo.fl.owner(f.text); !ours {
			continue
		}
		if e, err := fo.fl.fields(f.text); err == nil && e.Name+fo.fl.extension == name {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return slices.Contains(formers, name) })
	return names, nil
}

// indexLive judges the index of a folder.
func (fo *folder) indexLive(sc *plan.Scope) plan.Live {
	formers := fo.formers(sc)
	names, f := fo.indexed(formers)
	if f != nil {
		return plan.LiveFault(plan.Unreadable, f)
	}
	index := fo.files[fo.fl.index]
	complete := index != nil && index.text == fo.fl.renderIndex(fo.dir, names) && len(formers) == 0
	live := plan.LiveValue(indexValue(fo.at(fo.fl.index), complete))
	live.Evidence = map[string]string{"files": fmt.Sprint(len(names))}
	if index != nil {
		live.Evidence["sha256"] = index.sum
	}
	return live
}

// formers lists the files under former names of the scope's devices whose file
// stands under its new name too: they are superseded.
func (fo *folder) formers(sc *plan.Scope) []string {
	var out []string
	for _, t := range sc.Targets {
		e, _, f := entryFor(t)
		if f != nil || fo.files[e.Name+fo.fl.extension] == nil {
			continue
		}
		if former := fo.former(e); former != "" {
			out = append(out, former)
		}
	}
	sort.Strings(out)
	return slices.Compact(out)
}

// runIndex writes the list of what stands in the folder now, then removes files
// under former names, which nothing lists any more.
func (p *Provider) runIndex(ctx context.Context, l *link, sc *plan.Scope, memo plan.Memo) (plan.Result, *plan.Fault) {
	failed := func(f *plan.Fault) (plan.Result, *plan.Fault) { return plan.Result{}, f }
	if r, f := p.locked(ctx, l, memo); f != nil || r != nil {
		return orZero(r), f
	}
	fo, had, f := p.survey(ctx, l)
	if f != nil {
		return failed(f)
	}
	formers := fo.formers(sc)
	names, f := fo.indexed(formers)
	if f != nil {
		return failed(f)
	}
	index := &upload{at: fo.at(fo.fl.index), content: fo.fl.renderIndex(fo.dir, names)}
	if f := p.before(ctx, l, fo, []*upload{index}); f != nil {
		return failed(f)
	}
	if index.err != nil {
		return failed(p.unreadable(index.at, index.err))
	}
	if f := p.writeIndex(ctx, l, fo, index, formers, had); f != nil {
		return failed(f)
	}
	return plan.Done(), nil
}

func orZero(r *plan.Result) plan.Result {
	if r == nil {
		return plan.Result{}
	}
	return *r
}

func (p *Provider) writeIndex(ctx context.Context, l *link, fo *folder, index *upload, formers []string, had changes) *plan.Fault {
	var uploads []*upload
	more := changes{replaced: formers}
	if !index.old.existed || index.old.content != index.content {
		uploads = []*upload{index}
		if index.old.existed {
			more.replaced = append(more.replaced[:len(formers):len(formers)], index.name())
		} else {
			more.created = []string{index.name()}
		}
	}
	f := p.name(uploads)
	if f != nil {
		return f
	}
	var t trial
	if len(uploads) > 0 {
		if t, f = p.candidate(fo, nil, index); f != nil {
			return f
		}
	}
	temps := append(uploads[:len(uploads):len(uploads)], t.temps...)
	if f = p.prepare(ctx, l, temps, had, more); f == nil {
		f = p.proved(ctx, l, uploads, t)
	}
	if f == nil {
		f = p.publish(ctx, l, uploads, t.temps)
	}
	if f != nil {
		p.discard(ctx, l, temps)
		return f
	}
	return p.removeKept(ctx, l, formers)
}
