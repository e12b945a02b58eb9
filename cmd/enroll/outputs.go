package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// outputs are the forms of an apply that programs read.
type outputs struct {
	app     *app
	streams []*view.Stream
	junit   string
}

// outputs opens what the flags ask for, before anything is approved: a file that
// cannot be written is an error while nothing has happened. The second value
// closes the files.
func (a *app) outputs(f applyFlags) (*outputs, func() error, error) {
	o := &outputs{app: a, junit: f.junit}
	end := func() error { return nil }
	if f.format == "json" {
		o.streams = append(o.streams, view.NewStream(a.sys.stdout, a.sys.now))
	}
	if f.jsonInto != "" {
		file, err := os.OpenFile(f.jsonInto, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, end, usageError{fmt.Errorf("--json-into: %w", err)}
		}
		clean := a.redactor.Writer(file)
		o.streams = append(o.streams, view.NewStream(clean, a.sys.now))
		end = func() error { return errors.Join(clean.Flush(), file.Close()) }
	}
	if f.junit != "" {
		if info, err := os.Stat(filepath.Dir(f.junit)); err != nil || !info.IsDir() {
			return nil, end, errors.Join(usageError{fmt.Errorf("--junit: there is no folder %q", filepath.Dir(f.junit))}, end())
		}
	}
	return o, end, nil
}

func (o *outputs) plan(p *plan.Plan) error {
	var errs []error
	for _, s := range o.streams {
		errs = append(errs, s.Plan(p))
	}
	return errors.Join(errs...)
}

func (o *outputs) event(e plan.Event) {
	for _, s := range o.streams {
		s.Event(e)
	}
}

// report ends the streams and writes the file for build servers. A nil report
// means that there was nothing to do.
func (o *outputs) report(p *plan.Plan, r *apply.Report) error {
	var errs []error
	for _, s := range o.streams {
		errs = append(errs, s.Report(r))
	}
	if o.junit == "" {
		return errors.Join(errs...)
	}
	if r == nil {
		r = &apply.Report{PlanID: p.PlanID}
	}
	var page bytes.Buffer
	err := view.JUnit(&page, p.Scope.Site, r)
	if err == nil {
		err = writeFile(o.junit, []byte(o.app.redactor.Text(page.String())))
	}
	return errors.Join(append(errs, err)...)
}
