package ironic

import (
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

// field is a group of fields that Ironic lets be changed in the same states.
type field string

const (
	fieldDriverInfo field = "driver_info" // and properties, extra
	fieldInterface  field = "interface"   // every *_interface, and a resource_class that is set
	fieldTraits     field = "traits"
	fieldRAID       field = "target_raid_config"
	fieldDriver     field = "driver"                // with reset_interfaces
	fieldLink       field = "local_link_connection" // of a port, and its pxe_enabled and portgroup
	fieldPort       field = "port"                  // a new one
)

// rule says when a field may be changed.
type rule struct {
	// since is the first microversion 1.N whose request can carry it. The oldest that
	// is used has them all (a test says so), so no plan has to ask.
	since int
	// ironic are the states in which Ironic takes a change, of those in which a node
	// rests or waits; the lock is free and maintenance is off.
	ironic []plan.ProvisionState
	// ours are fewer, where the reference workflow wants it so; nil: as Ironic.
	ours []plan.ProvisionState
}

// rules are the legality table: field by state by version, so that no request is
// sent that Ironic must refuse (reference, section 3). The conformance suite holds
// it against the simulator and, in the lab, against the real service. States that
// hold the lock are in no row.
func rules() map[field]rule {
	resting := []plan.ProvisionState{plan.StateEnroll, plan.StateManageable, plan.StateAvailable, plan.StateInspectWait}
	failed := []plan.ProvisionState{plan.StateInspectFailed, plan.StateCleanFailed}
	everywhere := slices.Concat(resting, failed, []plan.ProvisionState{plan.StateCleanWait})
	manageable := []plan.ProvisionState{plan.StateManageable}
	return map[field]rule{
		fieldDriverInfo: {since: 1, ironic: slices.Concat(resting, failed)},
		fieldInterface:  {since: 31, ironic: resting},
		fieldTraits:     {since: 37, ironic: everywhere, ours: []plan.ProvisionState{plan.StateEnroll, plan.StateManageable, plan.StateAvailable}},
		// Phases 5 and 6: only in manageable.
		fieldRAID:   {since: 12, ironic: everywhere, ours: manageable},
		fieldDriver: {since: 45, ironic: slices.Concat(resting, failed), ours: manageable},
		// Phase 5: a missing link is recorded while the node is enroll or manageable.
		fieldLink: {since: 19, ironic: []plan.ProvisionState{plan.StateEnroll, plan.StateManageable, plan.StateInspectWait}, ours: []plan.ProvisionState{plan.StateEnroll, plan.StateManageable}},
		fieldPort: {since: 19, ironic: everywhere},
	}
}

// legal reports whether enroll changes a field in a state.
func legal(f field, s plan.ProvisionState) bool {
	r := rules()[f]
	if r.ours != nil {
		return slices.Contains(r.ours, s)
	}
	return slices.Contains(r.ironic, s)
}

// then is the state that the node is in when the steps behind manage run.
func then(d plan.Decision) plan.ProvisionState {
	if d.Planned(manageStep) != nil {
		return plan.StateManageable
	}
	return d.Owner.State
}

// later observes a difference that the node's state keeps from being mended now.
func later(d plan.Decision, what string) plan.Verdict {
	return plan.Verdict{Observed: []plan.Observation{{
		Address: d.Resource.Address, Rule: "later", Want: d.Resource.Want, Live: plan.Restrict(d.Live.Value, d.Resource.Want),
		Text: "Ironic takes no change of " + what + " while the node is " + string(d.Owner.State) + "; plan again when it rests",
	}}}
}
