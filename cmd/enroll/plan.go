package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/netbox"
)

type planFlags struct {
	shape
	deviceFlags
	selectFlags
	parameterFlags
	out      string
	detailed bool
	drift    bool // it is enroll drift
	life     time.Duration
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use: "plan DEVICE…", Short: "Show what would be done to devices, and write nothing",
		Example: "  enroll plan gpu-017\n  enroll plan --rack r01 --status staged --format markdown\n  enroll plan --all --target 'kind:bmc.*' --exclude effect:reboot\n  enroll plan gpu-017 --out gpu-017.plan",
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
				if err := writePlan(f.out, p, a.checkNoSecret); err != nil {
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
	f.deviceFlags.register(cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "also write the plan to this file, for enroll apply")
	f.selectFlags.register(cmd, "target")
	f.parameterFlags.register(cmd)
	cmd.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit 2 when there is something to do")
	cmd.Flags().DurationVar(&f.life, "expires", plan.DefaultLife, "how long the plan may be applied")
	return cmd
}

func (f *planFlags) check(names []string) error {
	if err := f.shape.check(); err != nil {
		return err
	}
	if err := f.deviceFlags.check(names); err != nil {
		return err
	}
	if f.life <= 0 {
		return usageError{fmt.Errorf("--expires must be longer than zero")}
	}
	if err := f.parameterFlags.check(); err != nil {
		return err
	}
	if f.params.PruneDHCP && (!f.all || f.filtered()) {
		return usageError{errors.New("--prune-dhcp needs the whole site, --all without filters: a run for some devices cannot tell whose the other entries are")}
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
	s, err := a.open(ctx, a.siteDir, f.of(names), id)
	if err != nil {
		return nil, s, err
	}
	s.scope.Parameters, s.asksOwners = f.parameters(), f.drift
	if err := s.mayPrune(); err != nil {
		return nil, s, err
	}
	created := a.sys.now().UTC().Truncate(time.Second)
	desired := plan.Desired(s.scope, s.kinds)
	pruning := s.scope.Parameters.PruneDHCP
	switch {
	case s.unplanned() != nil: // a glob may mean what a fault hides
		err = f.fitDevices(s)
	case !pruning:
		err = f.fitDesired(desired)
	}
	if err != nil {
		return nil, s, err
	}
	p, err := s.build(ctx, f.selection(), desired, created)
	if err == nil && s.unplanned() == nil && pruning { // what is stale is known now
		err = f.fitDesired(append(desired, dhcp.StaleResources(s.scope)...))
	}
	if err != nil {
		return nil, s, err
	}
	p.PlanID = id
	p.Created = created
	p.Expires = p.Created.Add(f.life)
	return p, s, nil
}

// build reads all systems and judges them.
func (s *session) build(ctx context.Context, sel plan.Selection, desired []plan.Resource, now time.Time) (*plan.Plan, error) {
	in, err := s.look(ctx, sel, desired, now)
	if err != nil {
		return nil, err
	}
	p := plan.Build(in)
	if err := p.CheckSelection(); err != nil {
		return nil, usageError{err}
	}
	return p, nil
}

// look reads all systems.
func (s *session) look(ctx context.Context, sel plan.Selection, desired []plan.Resource, now time.Time) (plan.Input, error) {
	in := plan.Input{
		Scope: s.scope, Kinds: s.kinds, Selection: sel, Failed: s.failed, Now: now, Tool: plan.Tool{Name: "enroll", Version: version},
	}
	var err error
	in.Owners, in.World, err = survey(netbox.SameReading(ctx), s.router, s.scope, desired)
	if err == nil && s.scope.Parameters.PruneDHCP && s.scope.Whole {
		err = s.findStale(ctx, in.World)
	}
	if err == nil && s.asksOwners {
		err = s.findOwnerless(ctx, in.World)
	}
	in.Statistics = s.statistics()
	return in, err
}

// live is what planning is handed: it reads, and has nothing that could write.
type live interface {
	Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot
	Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership // by device name
}

// survey reads what is: who holds the nodes first, then all resources.
func survey(ctx context.Context, l live, sc *plan.Scope, resources []plan.Resource) (map[string]plan.Ownership, plan.Snapshot, error) {
	owners := l.Ownership(ctx, sc)
	world := l.Read(ctx, sc, resources)
	if err := ctx.Err(); err != nil {
		return nil, nil, plan.NewFault(plan.CodeInterrupted, "planning was interrupted").Because(err)
	}
	return owners, world, nil
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
