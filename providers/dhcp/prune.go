package dhcp

import (
	"context"
	"path"

	"github.com/enroll-dev/enroll/plan"
)

// staleKind is an entry that nobody has any use for, by the name of its file. Its
// value is that of a reservation; the one that is wanted is none.
func staleKind() plan.Kind {
	return plan.Kind{
		Name:       "dhcp." + kindStale,
		Phase:      plan.PhaseDHCP,
		Alone:      true,
		WantShared: wantStale,
		Decide:     decideStale,
		Doc:        "with --prune-dhcp: an entry of enroll on the DHCP server that is no device's any more; its file is removed, after the index stopped listing it",
	}
}

func wantStale(sc *plan.Scope) []plan.Resource {
	if !enabled(sc.Site) {
		return nil
	}
	var out []plan.Resource
	for _, file := range sc.Stale {
		out = append(out, plan.Resource{
			Address: plan.Address{Site: sc.Site.Name, System: "dhcp", Kind: kindStale, Key: file},
			Want:    plan.Null, Effects: []plan.Effect{plan.EffectServiceRestart},
		})
	}
	return out
}

// StaleResources are the stale entries of the scope, for reading them.
func StaleResources(sc *plan.Scope) []plan.Resource { return wantStale(sc) }

func decideStale(d plan.Decision) plan.Verdict {
	switch d.Live.Presence { //nolint:exhaustive // the others could not be read
	case plan.Absent:
		return plan.Nothing()
	case plan.Present:
		return plan.Verdict{Step: &plan.Step{
			Action: plan.ActionRemove, Reason: plan.ReasonForced, Because: []string{"prune_dhcp"}, Before: d.Live.Value, After: plan.Null,
		}}
	}
	return plan.Verdict{Fault: d.Live.Fault, Unreadable: true}
}

// readStale answers what was asked of stale entries, byte for byte.
func (p *Provider) readStale(ctx context.Context, l *link, fo *folder, q *ask) *plan.Fault {
	var missing []string
	for _, a := range q.stale {
		if f := fo.files[a.Key]; f != nil && !f.exact && !f.dir {
			missing = append(missing, a.Key)
		}
	}
	faults, f := p.readAll(ctx, l, fo, missing)
	if f != nil {
		return f
	}
	for _, a := range q.stale {
		switch file := fo.files[a.Key]; {
		case faults[a.Key] != nil:
			q.unreadable(a, faults[a.Key])
		case file == nil:
			q.out[a] = plan.LiveAbsent()
		case file.dir:
			q.unreadable(a, plan.NewFault(plan.CodeDHCPForeignFile, "%s is a folder", fo.at(a.Key)))
		default:
			live := plan.LiveValue(plan.Obj(map[string]plan.Value{"path": plan.Str(fo.at(a.Key)), "content": plan.Str(file.text)}))
			live.Evidence = map[string]string{"file": fo.at(a.Key), "sha256": file.sum}
			q.out[a] = live
		}
	}
	return nil
}

// runStale takes the entry out of the index, and then its file away; what stood
// there is kept until the service was proved, as with every change.
func (p *Provider) runStale(ctx context.Context, l *link, step *plan.Step, memo plan.Memo) (plan.Result, *plan.Fault) {
	failed := func(f *plan.Fault) (plan.Result, *plan.Fault) { return plan.Result{}, f }
	name, planned := step.Address.Key, plan.Text(step.Before, "content")
	at := path.Join(p.settings.Directory, name)
	if _, ours := p.flavour.owner(planned); !ours || !safeName.MatchString(name) || !p.flavour.reads(name) || plan.Text(step.Before, "path") != at {
		return failed(plan.NewFault(plan.CodePlanInvalid, "%s: the planned file %q is not one that enroll removes from %s", step.Address, plan.Text(step.Before, "path"), p.settings.Directory))
	}
	if r, f := p.locked(ctx, l, memo); f != nil || r != nil {
		return orZero(r), f
	}
	fo, had, f := p.survey(ctx, l)
	if f != nil {
		return failed(f)
	}
	file, index := &upload{at: at}, &upload{at: fo.at(fo.fl.index)}
	look := []*upload{file}
	if fo.fl.index != "" {
		look = append(look, index)
	}
	if f := p.before(ctx, l, fo, look); f != nil {
		return failed(f)
	}
	for _, u := range look {
		if u.err != nil {
			return failed(p.unreadable(u.at, u.err))
		}
	}
	switch {
	case !file.old.existed:
		return plan.Done(), nil
	case file.old.content != planned:
		return failed(plan.NewFault(plan.CodePlanStale, "%s on %s was changed since it was read; it was not removed", at, p.address).
			With("planned", planned).With("found", excerpt(file.old.content)))
	}
	if fo.fl.index == "" {
		f = p.removeAlone(ctx, l, name, had)
	} else {
		f = p.unlist(ctx, l, fo, name, index, had)
	}
	if f != nil {
		return failed(f)
	}
	return plan.Done(), nil
}

// removeAlone takes a file away where no index lists it.
func (p *Provider) removeAlone(ctx context.Context, l *link, name string, had changes) *plan.Fault {
	f := p.prepare(ctx, l, nil, had, changes{replaced: []string{name}})
	if f == nil {
		f = p.proved(ctx, l, nil, trial{})
	}
	if f != nil {
		return f
	}
	return p.removeKept(ctx, l, []string{name})
}

// unlist has the index list everything but the file, and takes the file away.
func (p *Provider) unlist(ctx context.Context, l *link, fo *folder, name string, index *upload, had changes) *plan.Fault {
	names, f := fo.indexed([]string{name})
	if f != nil {
		return f
	}
	index.content = fo.fl.renderIndex(fo.dir, names)
	return p.writeIndex(ctx, l, fo, index, []string{name}, had)
}
