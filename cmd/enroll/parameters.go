package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
)

// parameterFlags are what an operator asks of a run; they are recorded in the
// plan.
type parameterFlags struct {
	runInspection bool
	params        plan.Parameters

	given func(flag string) bool // on the command line; nil where the flags are not registered
}

func (f *parameterFlags) register(cmd *cobra.Command) {
	f.given = cmd.Flags().Changed
	cmd.Flags().BoolVar(&f.runInspection, "run-inspection", true, "=false: no inspection, and no verification of the hardware before cleaning")
	cmd.Flags().BoolVar(&f.params.ForceInspection, "force-inspection", false, "inspect again although Ironic has an inventory")
	cmd.Flags().IntVar(&f.params.MaxAttempts, "max-attempts", 0, "attempts at inspection and at cleaning (default: attempts of the ironic block)")
	cmd.Flags().BoolVar(&f.params.ForceBMCRestart, "force-bmc-restart", false, "restart the BMC before anything is set on it")
	cmd.Flags().BoolVar(&f.params.ClearMaintenance, "clear-maintenance", false, "clear maintenance that somebody else set on the node")
	cmd.Flags().BoolVar(&f.params.PruneDHCP, "prune-dhcp", false, "remove entries of enroll on the DHCP server whose device NetBox does not have any more, or has with another address; with --all only")
	cmd.Flags().BoolVar(&f.params.RewriteCredentials, "rewrite-credentials", false, "write the BMC's credential into Ironic again, whatever version is recorded there")
}

func (f *parameterFlags) parameters() plan.Parameters {
	p := f.params
	p.SkipInspection = !f.runInspection
	return p
}

func (f *parameterFlags) check() error {
	switch {
	case f.params.MaxAttempts < 0 || f.params.MaxAttempts > 20 || f.params.MaxAttempts == 0 && f.given != nil && f.given("max-attempts"):
		return usageError{errors.New("--max-attempts is a number from 1 to 20")}
	case !f.runInspection && f.params.ForceInspection:
		return usageError{errors.New("--force-inspection and --run-inspection=false contradict each other")}
	}
	return nil
}

// none reports whether nothing is asked for.
func (f *parameterFlags) none() bool { return f.parameters() == plan.Parameters{} }
