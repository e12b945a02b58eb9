package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
)

type graphFlags struct {
	selectFlags
	format string
}

func (a *app) graphCommand() *cobra.Command {
	var f graphFlags
	cmd := &cobra.Command{
		Use: "graph PLANFILE | DEVICE…", Short: "Draw the steps of a plan and what needs what",
		Long: "Writes the steps of a plan file, or of a plan that is made for the devices now, as a graph for Graphviz or\n" +
			"Mermaid: an arrow leads from a step to the one that comes after it. Steps stand together by device; those that\n" +
			"erase disks or cannot be undone, those with another effect, those that only look and blocked ones have colours\n" +
			"and words of their own.",
		Example: "  enroll graph gpu-017.plan | dot -Tsvg > gpu-017.svg\n  enroll graph gpu-017 --format mermaid --exclude kind:ironic.port",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.format != "dot" && f.format != "mermaid" {
				return usageError{fmt.Errorf("--format is dot or mermaid, not %q", f.format)}
			}
			if err := f.check(); err != nil {
				return err
			}
			if len(args) == 1 && isFile(args[0]) {
				return a.graphFile(f, args[0])
			}
			return a.graphDevices(cmd.Context(), f, args)
		},
		ValidArgsFunction: a.completeDevices,
	}
	f.register(cmd, "select")
	cmd.Flags().StringVar(&f.format, "format", "dot", "dot or mermaid")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"dot", "mermaid"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (a *app) graphFile(f graphFlags, path string) error {
	p, err := readPlan(path)
	if err != nil {
		return err
	}
	if !f.selection().None() {
		if p, err = derive(p, f.selectFlags); err != nil {
			return err
		}
	}
	return a.draw(p, f.format)
}

// graphDevices plans and draws. A plan that is not whole is drawn, and not a
// success.
func (a *app) graphDevices(ctx context.Context, f graphFlags, names []string) error {
	if len(names) == 0 {
		return usageError{errors.New("name a plan file, or devices")}
	}
	pf := planFlags{selectFlags: f.selectFlags, life: plan.DefaultLife, parameterFlags: parameterFlags{runInspection: true}}
	if err := pf.deviceFlags.check(names); err != nil {
		return err
	}
	p, s, err := a.plan(ctx, pf, names)
	if s != nil {
		defer func() { a.warn(s.close(ctx)) }()
	}
	if err != nil {
		return err
	}
	if err := a.draw(p, f.format); err != nil {
		return err
	}
	if len(p.Errors()) == 0 {
		return nil
	}
	for _, d := range p.Errors() {
		view.Fault(a.sys.stderr, d.Fault, "", a.sys.color())
	}
	return exitStatus(planErrorExit(p))
}

func (a *app) draw(p *plan.Plan, format string) error {
	if format == "mermaid" {
		return view.Mermaid(a.sys.stdout, p)
	}
	return view.Dot(a.sys.stdout, p)
}
