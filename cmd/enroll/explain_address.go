package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/netbox"
)

// isAddress tells an address, or a glob over some, from the names of the language.
func isAddress(name string) bool {
	whole, _, _ := strings.Cut(name, "[")
	return strings.Contains(whole, "/")
}

// explainAddress tells what is known of the addresses that fit, by a plan file or
// by asking the systems.
func (a *app) explainAddress(ctx context.Context, name, file string, full bool) error {
	if _, err := (plan.Address{Site: "s", Device: "d", System: "x", Kind: "k"}).Match(name); err != nil {
		return usageError{err}
	}
	var found []view.Explanation
	var err error
	if file != "" {
		found, err = explainFromFile(name, file)
	} else {
		found, err = a.explainLive(ctx, name)
	}
	if err != nil {
		return err
	}
	for i, e := range found {
		if i > 0 {
			fmt.Fprintln(a.sys.stdout)
		}
		if err := view.Explain(a.sys.stdout, e, view.TextOptions{Color: a.sys.color(), Full: full, Width: a.sys.width}); err != nil {
			return err
		}
	}
	return nil
}

// explainFromFile knows of what the plan speaks about. What is as wanted is only
// counted in a plan, so nothing can be told about it.
func explainFromFile(name, file string) ([]view.Explanation, error) {
	p, err := readPlan(file)
	if err != nil {
		return nil, err
	}
	var all []plan.Address
	for _, s := range p.Steps {
		all = append(all, s.Address)
	}
	for _, c := range p.Checks {
		all = append(all, c.Address)
	}
	for _, o := range p.Observed {
		all = append(all, o.Address)
	}
	for _, d := range p.Scope.Excluded {
		all = append(all, d.Address)
	}
	addresses := fitting(name, all)
	if len(addresses) == 0 {
		for _, d := range p.Errors() {
			if d.Device != "" && strings.Contains("/"+name, "/"+d.Device+"/") {
				return nil, d.Fault
			}
		}
		return nil, usageError{fmt.Errorf("the plan says nothing about %q: what is as wanted is only counted in a plan, and what it leaves out is not in it; without --plan the systems are asked. It speaks about %s", name, some(name, all))}
	}
	var out []view.Explanation
	for _, at := range addresses {
		e := fromPlan(p, at)
		switch {
		case e.Step != nil:
			e.Want, e.From, e.Planned = e.Step.After, e.Step.From, true
			e.Live = plan.LiveValue(e.Step.Before)
			if e.Step.BeforeUnknown {
				e.Live = plan.Live{Presence: plan.Unreachable, Value: plan.Null}
			} else if e.Step.Before.IsNull() {
				e.Live = plan.LiveAbsent()
			}
		case len(e.Observed) > 0:
			e.Want, e.Live = e.Observed[0].Want, plan.LiveValue(e.Observed[0].Live)
		case len(e.Checks) > 0:
			e.Want, e.From = plan.Null, e.Checks[0].From
		}
		out = append(out, e)
	}
	return out, nil
}

// explainLive reads the site, NetBox and the systems, as a plan does.
func (a *app) explainLive(ctx context.Context, name string) ([]view.Explanation, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	names, err := a.devicesOf(name)
	if err != nil {
		return nil, err
	}
	s, err := a.open(ctx, a.siteDir, selection{names: names, all: len(names) == 0}, id)
	if s != nil {
		defer func() { a.warn(s.close(ctx)) }()
	}
	if err != nil {
		return nil, err
	}
	desired := plan.Desired(s.scope, s.kinds)
	var all []plan.Address
	for _, r := range desired {
		all = append(all, r.Address)
	}
	addresses := fitting(name, all)
	if len(addresses) == 0 {
		if err := s.unplanned(); err != nil {
			return nil, err
		}
		return nil, usageError{fmt.Errorf("nothing has the address %q; addresses look like %s", name, some(name, all))}
	}
	in, err := s.look(ctx, plan.Selection{}, desired, a.sys.now())
	if err != nil {
		return nil, err
	}
	p := plan.Build(in)
	var out []view.Explanation
	for _, r := range desired {
		if !slices.Contains(addresses, r.Address) {
			continue
		}
		e := fromPlan(p, r.Address)
		e.Want, e.Live, e.From = r.Want, in.World.Get(r.Address), r.From
		if t := s.scope.Target(r.Address.Device); t != nil {
			e.Intent = t.Intent
		}
		if e.Live.Fault != nil && len(e.Faults) == 0 {
			e.Faults = append(e.Faults, plan.Diagnostic{Severity: plan.SeverityWarning, Fault: e.Live.Fault})
		}
		out = append(out, e)
	}
	return out, nil
}

// devicesOf finds the device in an address, whose site may be left out; none for
// what devices share, of which a plan for all of them decides.
func (a *app) devicesOf(name string) ([]string, error) {
	file, diags := a.load(a.siteDir)
	if diags.HasErrors() {
		if err := a.printDiagnostics(diags, "text"); err != nil {
			return nil, err
		}
		return nil, exitStatus(exitConfig)
	}
	whole, _, _ := strings.Cut(name, "[")
	parts := strings.Split(whole, "/")
	device := parts[len(parts)-2]
	switch {
	case len(parts) > 3:
		return nil, usageError{fmt.Errorf("%q has more parts than an address, which is SITE/DEVICE/SYSTEM.KIND[KEY]", name)}
	case len(parts) == 2 && device == file.Site().Name:
		return nil, nil
	case device == "" || strings.ContainsAny(device, `*?\`):
		return nil, usageError{errors.New("name the device; globs are for what comes after it, as in gpu-017/bmc.*")}
	}
	return []string{device}, nil
}

// unplanned is why a device has no addresses: NetBox does not have it, or its
// record has faults.
func (s *session) unplanned() error {
	for _, d := range s.failed {
		if d.Severity == plan.SeverityError {
			return d.Fault
		}
	}
	for _, t := range s.scope.Targets {
		if len(t.Intent.Faults) > 0 {
			return t.Intent.Faults[0]
		}
	}
	return nil
}

// fromPlan gathers what a plan says about an address.
func fromPlan(p *plan.Plan, at plan.Address) view.Explanation {
	e := view.Explanation{Address: at, Doc: kindDoc(at), Want: plan.Null, Live: plan.LiveAbsent()}
	for i := range p.Devices {
		if p.Devices[i].Name == at.Device {
			e.Device = &p.Devices[i]
		}
	}
	for _, s := range p.Steps {
		if s.Address == at {
			e.Step = s
		}
	}
	for _, s := range p.Steps {
		if e.Step != nil && slices.Contains(e.Step.Needs, s.ID) {
			e.Needs = append(e.Needs, s)
		}
	}
	for _, c := range p.Checks {
		if c.Address == at {
			e.Checks = append(e.Checks, c)
		}
	}
	for _, o := range p.Observed {
		if o.Address == at {
			e.Observed = append(e.Observed, o)
		}
	}
	for _, d := range p.Scope.Excluded {
		e.LeftOut = e.LeftOut || d.Address == at
	}
	subjects := []string{at.Site, at.String()}
	if !at.Shared() {
		subjects = append(subjects, at.Site+"/"+at.Device)
	}
	for _, r := range p.Policies {
		if slices.ContainsFunc(subjects, func(s string) bool { return slices.Contains(r.Holds, s) || slices.Contains(r.Failed, s) }) {
			e.Policies = append(e.Policies, r)
		}
	}
	for _, d := range p.Diagnostics {
		if d.Severity == plan.SeverityError && d.Device == at.Device {
			e.Faults = append(e.Faults, d)
		}
	}
	return e
}

// kindDoc says what a kind is.
func kindDoc(at plan.Address) string {
	for _, kinds := range [][]plan.Kind{netbox.Kinds(), dhcp.Kinds(), bmc.Kinds(), ironic.Kinds()} {
		for _, k := range kinds {
			if k.Name == at.Local() || k.Name == at.KindName() && (k.Key == "" || k.Key == at.Key) {
				return k.Doc
			}
		}
	}
	return ""
}

// fitting gives the addresses that fit, each once, in order.
func fitting(pattern string, all []plan.Address) []plan.Address {
	var out []plan.Address
	for _, at := range all {
		if ok, err := at.Match(pattern); err == nil && ok && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// some names the first few addresses: those of the kind that the pattern has, or of
// its system, where there are any.
func some(pattern string, all []plan.Address) string {
	local := pattern[strings.LastIndexByte(pattern, '/')+1:]
	system, kind, _ := strings.Cut(local, ".")
	kind, _, _ = strings.Cut(kind, "[")
	for _, like := range []func(plan.Address) bool{
		func(at plan.Address) bool { return at.System == system && at.Kind == kind },
		func(at plan.Address) bool { return at.System == system },
	} {
		if near := slices.DeleteFunc(slices.Clone(all), func(at plan.Address) bool { return !like(at) }); len(near) > 0 {
			all = near
			break
		}
	}
	var out []string
	for _, at := range all[:min(6, len(all))] {
		out = append(out, at.String())
	}
	return orNone(out)
}
