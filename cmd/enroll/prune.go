package main

import (
	"context"
	"fmt"
	"net/netip"
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

// findOwnerless fills in which entries on the DHCP server are of devices that NetBox
// does not have, for a run that is not for all devices and so has to ask about every
// other entry. One with another address may be that device's own to mend.
func (s *session) findOwnerless(ctx context.Context, world plan.Snapshot) error {
	marks := dhcp.Strangers(s.scope, world)
	if len(marks) == 0 {
		return nil
	}
	recorded, err := s.recorded(ctx, marks)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if _, exists := recorded[m.DeviceID]; !exists {
			s.scope.Ownerless = append(s.scope.Ownerless, m.File)
		}
	}
	return nil
}

// recorded asks NetBox about the devices of entries.
func (s *session) recorded(ctx context.Context, marks []dhcp.Mark) (map[int64]netip.Addr, error) {
	var ids []int64
	for _, m := range marks {
		ids = append(ids, m.DeviceID)
	}
	return s.netbox.Recorded(ctx, ids)
}

// unclaimed gives the entries that NetBox gives to nobody.
func (s *session) unclaimed(ctx context.Context, marks []dhcp.Mark) ([]dhcp.Mark, error) {
	recorded, err := s.recorded(ctx, marks)
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
