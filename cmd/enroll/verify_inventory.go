package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/cabling"
)

type inventoryFlags struct {
	full     bool
	maxBytes int
	strict   bool
}

func (f *inventoryFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.full, "full", false, "show the checks that pass too, and where each value was seen")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "exit 15 also when a check has no evidence")
	cmd.Flags().IntVar(&f.maxBytes, "max-bytes", view.MaxMarkdown, "largest size of the Markdown form")
}

// verifyInventories judges devices on the inventories that Ironic keeps.
func (a *app) verifyInventories(ctx context.Context, f verifyFlags, names []string) error {
	if err := f.check(names); err != nil {
		return err
	}
	switch f.format {
	case "text", "json", "markdown", "svg":
	default:
		return usageError{fmt.Errorf("--format is text, json, markdown or svg, not %q", f.format)}
	}
	s, err := a.openIntents(ctx, f.of(names))
	if s != nil {
		defer func() { a.warn(s.close(ctx)) }()
	}
	if err != nil {
		return err
	}
	if len(s.site.Ironics) == 0 {
		return plan.NewFault(plan.CodeConfigInvalid, "site %s has no ironic block, so there are no inventories to verify", s.site.Name)
	}
	if err := s.vault.load(ctx, s.cloudRefs()); err != nil {
		return err
	}
	if err := s.connectIronic(); err != nil {
		return err
	}
	v := s.verify(ctx)
	if err := ctx.Err(); err != nil {
		return plan.NewFault(plan.CodeInterrupted, "verifying was interrupted").Because(err)
	}
	if err := a.printVerification(v, f); err != nil {
		return err
	}
	if code := verifyExit(v.Summary, f.strict); code != exitDone {
		return exitStatus(code)
	}
	return nil
}

// verify reads and judges; devices without an intent come last.
func (s *session) verify(ctx context.Context) *view.Verification {
	var devices []view.Verified
	var cables []cabling.Cable
	for _, v := range s.ironic.Verify(ctx, s.scope) {
		devices = append(devices, view.Verified{Device: v.Device, State: v.State, Inspected: v.Inspected, Checks: v.Checks, Fault: cleanFault(s.app.redactor, v.Fault)})
		cables = append(cables, v.Cables...)
	}
	for _, d := range s.failed {
		if d.Device != "" {
			devices = append(devices, view.Verified{Device: d.Device, Fault: d.Fault})
		}
	}
	return view.NewVerification(s.site.Name, devices, cabling.Detect(cables))
}

func (a *app) printVerification(v *view.Verification, f verifyFlags) error {
	switch f.format {
	case "json":
		return view.JSON(a.sys.stdout, v)
	case "markdown":
		return v.Markdown(a.sys.stdout, f.maxBytes)
	case "svg":
		return v.SVG(a.sys.stdout)
	}
	return v.Text(a.sys.stdout, view.TextOptions{Color: a.sys.color(), Full: f.full})
}

// verifyExit: a check that failed counts before a device that could not be read.
func verifyExit(s view.VerifySummary, strict bool) int {
	switch {
	case s.Fail > 0, strict && s.Unknown > 0:
		return exitVerify
	case s.Unreadable > 0 && s.Unreadable < s.Devices:
		return exitPartial
	case s.Unreadable > 0:
		return exitError
	}
	return exitDone
}
