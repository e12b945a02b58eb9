package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
)

func (a *app) diffCommand() *cobra.Command {
	var format string
	var full bool
	cmd := &cobra.Command{
		Use: "diff PLANFILE PLANFILE", Short: "Say what changed from one plan to another",
		Long: "Compares two plan files, the earlier first: inputs, policies, devices, steps with their values and effects,\n" +
			"checks, faults. Ids and times do not count. Exit 0 when both have the same content, 2 when they differ.",
		Example: "  enroll diff monday.plan tuesday.plan\n  enroll diff approved.plan gpu-017.plan --format json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("%s wants two plan files", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usageError{fmt.Errorf("--format is text or json, not %q", format)}
			}
			var plans [2]*plan.Plan
			for i, path := range args {
				var err error
				if plans[i], err = readPlan(path); err != nil {
					return err
				}
			}
			c, err := plan.ComparePlans(plans[0], plans[1])
			if err != nil {
				return err
			}
			if err := a.printComparison(c, format, full); err != nil {
				return err
			}
			if !c.Same {
				return exitStatus(exitChanges)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	cmd.Flags().BoolVar(&full, "full", false, "show long values whole, and every NetBox object")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (a *app) printComparison(c plan.Comparison, format string, full bool) error {
	if format == "text" {
		return view.Comparison(a.sys.stdout, c, view.TextOptions{Color: a.sys.color(), Full: full, Width: a.sys.width})
	}
	return view.JSON(a.sys.stdout, c)
}
