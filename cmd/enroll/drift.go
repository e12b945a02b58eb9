package main

import (
	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
)

func (a *app) driftCommand() *cobra.Command {
	f := planFlags{drift: true, life: plan.DefaultLife, parameterFlags: parameterFlags{runInspection: true}}
	cmd := &cobra.Command{
		Use: "drift [DEVICE…]", Short: "Say where reality left the record, for cron: quiet when it did not",
		Long: "Plans devices, by default all that NetBox has as active, and prints what differs; nothing at all when nothing\n" +
			"does. It writes to no system and takes no lock. Differences on nodes that somebody holds are drift like any\n" +
			"other; what the site tolerates is counted, and no drift.\n" +
			"Exit 0 without drift, 2 with drift, 15 when all of it is failed checks, 14 or 1 when some or all devices could\n" +
			"not be read, whatever else was found.",
		Example: "  enroll drift --site sites/lon14\n  enroll drift --rack r01 --target 'kind:bmc.*' --format json",
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 && !f.all && !f.filtered() {
				f.filter.Statuses = []string{"active"}
			}
			if err := f.check(names); err != nil {
				return err
			}
			p, s, err := a.plan(cmd.Context(), f, names)
			if s != nil {
				defer func() { a.warn(s.close(cmd.Context())) }()
			}
			if err != nil {
				return err
			}
			code := driftExit(p)
			switch {
			case f.format != "text":
				err = a.print(p, f.shape)
			case code != exitDone:
				err = view.Drift(a.sys.stdout, p, view.TextOptions{Color: a.sys.color(), Full: f.full, Width: a.sys.width})
			}
			if err == nil && code != exitDone {
				err = exitStatus(code)
			}
			return err
		},
	}
	cmd.ValidArgsFunction = a.completeDevices
	f.flags(cmd)
	f.deviceFlags.register(cmd)
	f.selectFlags.register(cmd, "target")
	return cmd
}

// driftExit is the exit code of enroll drift. What could not be read comes first:
// silence about a device must not look like a good sign.
func driftExit(p *plan.Plan) int {
	d := p.Drift()
	switch {
	case d.Unread > 0 && d.Unread < d.Devices:
		return exitPartial
	case d.Unread > 0:
		return exitError
	case d.Differences > 0 && d.Differences == len(p.FailedChecks()):
		return exitVerify
	case d.Differences > 0:
		return exitChanges
	}
	return exitDone
}
