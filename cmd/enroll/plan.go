package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
)

type planFlags struct {
	shape
	selectFlags
	all      bool
	out      string
	detailed bool
	life     time.Duration
}

// selectFlags narrow a plan.
type selectFlags struct {
	targets  []string
	excludes []string
}

func (f *selectFlags) register(cmd *cobra.Command, target string) {
	cmd.Flags().StringArrayVar(&f.targets, target, nil, "only the steps that fit, and what they need: a glob over addresses (gpu-017/bmc.*, dhcp.reservation), kind:GLOB, action:GLOB or effect:GLOB")
	cmd.Flags().StringArrayVar(&f.excludes, "exclude", nil, "without the steps that fit, and without what comes after them; globs as for --"+target)
	for _, name := range []string{target, "exclude"} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeSelection) // the flag exists
	}
}

func (f *selectFlags) selection() plan.Selection {
	return plan.Selection{Targets: f.targets, Excludes: f.excludes}
}

func (f *selectFlags) check() error {
	if err := f.selection().Check(); err != nil {
		return usageError{err}
	}
	return nil
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use: "plan DEVICE…", Short: "Show what would be done to devices, and write nothing",
		Example: "  enroll plan gpu-017\n  enroll plan --all --format markdown\n  enroll plan gpu-017 --out gpu-017.plan",
		RunE: func(cmd *cobra.Command, names []string) error {
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
			a.remember(p)
			if f.out != "" {
				if err := a.checkNoSecret(p); err != nil {
					return err
				}
				if err := writePlan(f.out, p); err != nil {
					return err
				}
			}
			if err := a.print(p, f.shape); err != nil {
				return err
			}
			if code := planExit(p, f.detailed); code != exitDone {
				return exitStatus(code)
			}
			return nil
		},
	}
	cmd.ValidArgsFunction = a.completeDevices
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "all devices of the site's device classes")
	cmd.Flags().StringVar(&f.out, "out", "", "also write the plan to this file, for enroll apply")
	f.register(cmd, "target")
	cmd.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit 2 when there is something to do")
	cmd.Flags().DurationVar(&f.life, "expires", plan.DefaultLife, "how long the plan may be applied")
	return cmd
}

func (f *planFlags) check(names []string) error {
	if err := f.shape.check(); err != nil {
		return err
	}
	for _, n := range names {
		if strings.TrimSpace(n) == "" {
			return usageError{fmt.Errorf("the name of a device is empty")}
		}
	}
	if f.all == (len(names) > 0) {
		return usageError{fmt.Errorf("name the devices, or say --all; not both, not neither")}
	}
	if f.life <= 0 {
		return usageError{fmt.Errorf("--expires must be longer than zero")}
	}
	return f.selectFlags.check()
}

// plan reads the world and builds the sealed plan. It returns the session also
// with an error, so that it can be closed.
func (a *app) plan(ctx context.Context, f planFlags, names []string) (*plan.Plan, *session, error) {
	id, err := newID()
	if err != nil {
		return nil, nil, err
	}
	s, err := a.open(ctx, a.siteDir, selection{names: names, all: f.all}, id)
	if err != nil {
		return nil, s, err
	}
	created := a.sys.now().UTC().Truncate(time.Second)
	p, err := s.build(ctx, f.selection(), created)
	if err != nil {
		return nil, s, err
	}
	p.PlanID = id
	p.Created = created
	p.Expires = p.Created.Add(f.life)
	return p, s, nil
}

// live is what planning is handed: it reads, and has nothing that could write.
type live interface {
	Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot
	Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership // by device name
}

// build reads all systems and judges them.
func (s *session) build(ctx context.Context, sel plan.Selection, now time.Time) (*plan.Plan, error) {
	in, err := survey(ctx, s.router, plan.Input{
		Scope: s.scope, Kinds: s.kinds, Selection: sel, Failed: s.failed, Now: now, Tool: plan.Tool{Name: "enroll", Version: version},
	})
	if err != nil {
		return nil, err
	}
	in.Statistics = s.statistics()
	p := plan.Build(in)
	if err := p.CheckSelection(); err != nil {
		return nil, usageError{err}
	}
	return p, nil
}

// survey reads what a plan is made of. Ownership comes first.
func survey(ctx context.Context, l live, in plan.Input) (plan.Input, error) {
	in.Owners = l.Ownership(ctx, in.Scope)
	desired := plan.Desired(in.Scope, in.Kinds)
	if err := fitSelection(in.Selection, desired); err != nil {
		return in, err
	}
	in.World = l.Read(ctx, in.Scope, desired)
	if err := ctx.Err(); err != nil {
		return in, plan.NewFault(plan.CodeInterrupted, "planning was interrupted").Because(err)
	}
	return in, nil
}

// fitSelection refuses a glob over addresses that fits nothing: a mistyped target
// would read as "nothing to do", a mistyped exclude would leave nothing out.
func fitSelection(sel plan.Selection, resources []plan.Resource) error {
	if len(resources) == 0 {
		return nil // every device has a fault, which is reported instead
	}
	for flag, patterns := range map[string][]string{"target": sel.Targets, "exclude": sel.Excludes} {
		for _, p := range patterns {
			if !plan.IsAddressPattern(p) || slices.ContainsFunc(resources, func(r plan.Resource) bool {
				ok, err := r.Address.Match(p)
				return err == nil && ok
			}) {
				continue
			}
			examples := make([]string, 0, 4)
			for _, r := range resources[:min(4, len(resources))] {
				examples = append(examples, r.Address.String())
			}
			return usageError{fmt.Errorf("--%s %q fits no address of these devices; addresses look like %s", flag, p, strings.Join(examples, ", "))}
		}
	}
	return nil
}

// newID makes a plan id: unique, and short enough to be said aloud.
func newID() (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}

// warn tells about a failure that does not change the outcome.
func (a *app) warn(err error) {
	if err != nil {
		fmt.Fprintf(a.sys.stderr, "enroll: warning: %v\n", err)
	}
}
