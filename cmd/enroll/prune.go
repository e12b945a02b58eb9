package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

// mayPrune refuses --prune-dhcp where staleness cannot be known.
func (s *session) mayPrune() error {
	switch {
	case !s.scope.Parameters.PruneDHCP:
	case s.dhcp == nil:
		return usageError{fmt.Errorf("--prune-dhcp: site %s configures no DHCP server (dhcp block, configure_dhcp)", s.site.Name)}
	case !s.scope.Whole:
		return usageError{fmt.Errorf("--prune-dhcp needs all devices of site %s, and not all of them could be read from NetBox: %w", s.site.Name, s.failed[0].Fault)}
	}
	return nil
}

// findStale fills in which entries on the DHCP server are to be removed: those
// that are none of the site's, and that NetBox gives to no device elsewhere, or of
// another status. They are read like everything that is judged.
func (s *session) findStale(ctx context.Context, world plan.Snapshot) error {
	marks := dhcp.Stale(s.scope, world)
	if len(marks) == 0 {
		return nil
	}
	unclaimed, err := s.unclaimed(ctx, marks)
	if err != nil {
		return err
	}
	for _, m := range unclaimed {
		s.scope.Stale = append(s.scope.Stale, m.File)
	}
	world.Merge(s.router.Read(ctx, s.scope, dhcp.StaleResources(s.scope)))
	return nil
}

// unclaimed asks NetBox about the devices of entries.
func (s *session) unclaimed(ctx context.Context, marks []dhcp.Mark) ([]dhcp.Mark, error) {
	var ids []int64
	for _, m := range marks {
		ids = append(ids, m.DeviceID)
	}
	recorded, err := s.netbox.Recorded(ctx, ids)
	if err != nil {
		return nil, err
	}
	var out []dhcp.Mark
	for _, m := range marks {
		if m.Unclaimed(recorded) {
			out = append(out, m)
		}
	}
	return out, nil
}

// stillStale refuses a plan of which an entry that it removes has an owner in
// NetBox again.
func (s *session) stillStale(ctx context.Context, p *plan.Plan) error {
	var marks []dhcp.Mark
	for _, step := range p.Steps {
		if !step.Alone() || step.Blocked != nil || step.Address.System != "dhcp" || s.site.DHCP == nil {
			continue
		}
		m, ok := dhcp.MarkOf(*s.site.DHCP, step.Address.Key, step.Before)
		if !ok {
			return plan.NewFault(plan.CodePlanInvalid, "%s: what is to be removed does not carry enroll's mark", step.Address)
		}
		marks = append(marks, m)
	}
	if len(marks) == 0 {
		return nil
	}
	unclaimed, err := s.unclaimed(ctx, marks)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if !slices.Contains(unclaimed, m) {
			return plan.NewFault(plan.CodePlanStale, "NetBox has device %d again, with the address of the entry %s, which the plan would remove", m.DeviceID, m.File)
		}
	}
	return nil
}
