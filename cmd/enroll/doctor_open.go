package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers"
)

// leftOpen are the obligations of all devices, also of those that no run is about
// any more.
func (a *app) leftOpen(f doctorFlags) []providers.Finding {
	open, err := apply.AllObligations(a.journalDir(applyFlags{journal: f.journal}))
	if err != nil {
		return []providers.Finding{{What: "What runs left open", Fault: plan.AsFault(err)}}
	}
	if len(open) == 0 {
		return []providers.Finding{{What: "What runs left open", Note: "nothing"}}
	}
	var found []providers.Finding
	for _, o := range open {
		at := o.Address.Site + "/" + o.Address.Device
		found = append(found, providers.Finding{What: "Left open on " + at, Note: o.Text + "; enroll apply " + o.Address.Device + " puts it back; where that cannot be any more: enroll doctor --drop-open " + o.Address.Device})
	}
	return found
}

// dropOpen shows what runs left open on a device, asks, and forgets it. It is for
// what no run can put back: a device that the site does not have any more, or whose
// node is gone. A run that is at work on the device has open ones of its own.
func (a *app) dropOpen(ctx context.Context, f doctorFlags) error {
	site, err := a.site()
	if err != nil {
		return err
	}
	locks, err := apply.LockDevices(a.lockDir(), site.Name, []string{f.dropOpen}, a.holder(""))
	if err != nil {
		return err
	}
	defer func() { a.warn(locks.Release()) }()
	dir := a.journalDir(applyFlags{journal: f.journal})
	open, err := apply.OpenObligations(dir, site.Name, []string{f.dropOpen})
	if err != nil {
		return err
	}
	if len(open) == 0 {
		_, err := fmt.Fprintf(a.sys.stdout, "Runs from here left nothing open on %s/%s.\n", site.Name, view.Clean(f.dropOpen))
		return err
	}
	for _, o := range open {
		fmt.Fprintf(a.sys.stdout, "Left open by plan %s: %s\n", view.Clean(o.ID), view.Clean(o.Text))
	}
	switch {
	case f.yes:
	case !a.sys.terminal:
		return usageError{errors.New("nobody can be asked here: stdin or stdout is no terminal; make sure that nothing of it is to be put back and say --yes")}
	default:
		fmt.Fprint(a.sys.stdout, "No run will put this back. Type yes if nothing of it is to be put back, or you have done it: ")
		if err := a.answered(ctx, "yes"); err != nil {
			return err
		}
	}
	for _, o := range open {
		if err := apply.DropObligation(dir, o, a.sys.now()); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.sys.stdout, "Forgotten: nothing is open on %s/%s any more.\n", site.Name, view.Clean(f.dropOpen))
	return err
}
