package dhcp

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// trial is a configuration that the server's own check is asked about before
// anything gets its name.
type trial struct {
	temps []*upload // written for the check alone
	parts []part    // the check; none where there is nothing to check
}

// candidate makes a copy of the server's configuration in which the new files
// stand for those that they replace. index is the index on its way, nil when one
// has to be made for the trial. Where the account cannot read all of the configuration,
// or it takes the index from a further file, there is no trial: then the check is asked after
// the rename, with the former content at hand.
func (p *Provider) candidate(fo *folder, uploads []*upload, index *upload) (trial, *plan.Fault) {
	if p.flavour.check == nil || fo.fl.index == "" {
		return trial{}, nil
	}
	main, readable := fo.mainText[p.settings.Config]
	live := fo.at(fo.fl.index)
	if !readable || len(fo.unread) > 0 || !strings.Contains(main, `"`+live+`"`) {
		return trial{}, nil
	}
	var t trial
	if index == nil {
		names, f := fo.indexed(nil)
		if f != nil {
			return trial{}, f
		}
		var formers []string
		for _, u := range uploads {
			if e, err := fo.fl.fields(u.content); err == nil {
				formers = append(formers, fo.former(e))
			}
			names = append(names, path.Base(u.temp))
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.Contains(formers, name) || slices.ContainsFunc(uploads, func(u *upload) bool { return u.name() == name })
		})
		slices.Sort(names)
		index = &upload{at: live, content: fo.fl.renderIndex(fo.dir, names), old: previous{mode: modeNew}, passing: true}
		if f := p.name([]*upload{index}); f != nil {
			return trial{}, f
		}
		t.temps = append(t.temps, index)
	}
	// The configuration may hold secrets: the copy is for the account alone.
	whole := &upload{
		at: fo.at("candidate" + fo.fl.extension), old: previous{mode: 0o600}, passing: true,
		content: strings.ReplaceAll(main, `"`+live+`"`, `"`+index.temp+`"`),
	}
	if f := p.name([]*upload{whole}); f != nil {
		return trial{}, f
	}
	t.temps = append(t.temps, whole)
	t.parts = []part{{"check", p.flavour.check(whole.temp)}}
	return t, nil
}

// proved hashes the temporary files on the server, asks the check about the
// trial, and sees to it that the lock is still this run's: one command.
func (p *Provider) proved(ctx context.Context, l *link, uploads []*upload, t trial) *plan.Fault {
	parts := []part{p.lockPart()}
	if len(uploads) > 0 {
		parts = append(parts, sumsPart(uploads))
	}
	a, f := p.run(ctx, l, "hashing and checking what was written", p.settings.Directory, append(parts, t.parts...))
	if f == nil {
		f = p.lost(a)
	}
	if f == nil {
		f = p.verified(ctx, l, a, uploads)
	}
	if f == nil && len(t.parts) > 0 {
		f = p.checked(a, "with the new reservations")
	}
	return f
}

// checked reads the answer of the server's own check. A check that is not there
// is no check that passed.
func (p *Provider) checked(a answer, what string) *plan.Fault {
	s := a.sections["check"]
	switch s.status {
	case 0:
		return nil
	case 126, 127:
		return plan.NewFault(plan.CodeDHCPCommand, "the check of %s cannot be run on %s (status %d)", p.flavour.title, p.address, s.status).
			With("command", p.flavour.check(p.settings.Config)).With("stderr", a.stderr)
	}
	return plan.NewFault(plan.CodeDHCPRefused, "%s refuses its configuration %s", p.flavour.title, what).
		With("command", p.flavour.check(p.settings.Config)).With("stderr", excerpt(a.stderr)).With("stdout", lastLines(s.body, 5))
}

// lastLines shortens a log for evidence.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return excerpt(strings.Join(lines[max(0, len(lines)-n):], "\n"))
}
