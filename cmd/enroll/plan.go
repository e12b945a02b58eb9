package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
)

type planFlags struct {
	shape
	all      bool
	out      string
	targets  []string
	detailed bool
	life     time.Duration
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
	cmd.Flags().StringArrayVar(&f.targets, "target", nil, "only steps whose address fits this glob (gpu-017/bmc.*, dhcp.reservation), and what they need")
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
	return checkTargets(f.targets)
}

func checkTargets(patterns []string) error {
	for _, p := range patterns {
		if _, err := (plan.Address{Site: "s", Device: "d", System: "x", Kind: "k"}).Match(p); err != nil {
			return usageError{err}
		}
	}
	return nil
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
	p, err := s.build(ctx, f.targets, created)
	if err != nil {
		return nil, s, err
	}
	p.PlanID = id
	p.Created = created
	p.Expires = p.Created.Add(f.life)
	return p, s, nil
}

// build reads all systems and judges them. Ownership comes first; nothing here
// is handed anything that could write.
func (s *session) build(ctx context.Context, targets []string, now time.Time) (*plan.Plan, error) {
	owners := s.router.Ownership(ctx, s.scope)
	desired := plan.Desired(s.scope, s.kinds)
	if err := fitTargets(targets, desired); err != nil {
		return nil, err
	}
	world := s.router.Read(ctx, s.scope, desired)
	if err := ctx.Err(); err != nil {
		return nil, plan.NewFault(plan.CodeInterrupted, "planning was interrupted").Because(err)
	}
	return plan.Build(plan.Input{
		Scope: s.scope, Kinds: s.kinds, World: world, Owners: owners, Targets: targets,
		Failed: s.failed, Now: now, Tool: plan.Tool{Name: "enroll", Version: version}, Statistics: s.statistics(),
	}), nil
}

// fitTargets refuses a glob that fits nothing: silence would read as "nothing to
// do".
func fitTargets(patterns []string, resources []plan.Resource) error {
	for _, p := range patterns {
		found := len(resources) == 0 // every device has a fault, which is reported instead
		for _, r := range resources {
			if ok, err := r.Address.Match(p); err != nil {
				return usageError{err}
			} else if ok {
				found = true
				break
			}
		}
		if !found {
			examples := make([]string, 0, 4)
			for _, r := range resources[:min(4, len(resources))] {
				examples = append(examples, r.Address.String())
			}
			return usageError{fmt.Errorf("--target %q fits no address of these devices; addresses look like %s", p, strings.Join(examples, ", "))}
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
