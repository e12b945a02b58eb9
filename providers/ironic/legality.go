package ironic

import (
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

// field is a group of a node's fields that Ironic lets be changed in the same
// states.
type field string

const (
	fieldDriverInfo field = "driver_info" // and properties, extra
	fieldInterface  field = "interface"   // every *_interface, and a resource_class that is set
	fieldTraits     field = "traits"
	fieldRAID       field = "target_raid_config"
	fieldDriver     field = "driver"
	fieldLink       field = "local_link_connection" // of a port
)

// legalStates says in which states a field may be changed, so that no request is
// sent that Ironic must refuse (reference, section 3; API 1.39 to 1.115). Two
// rows are the reference workflow's, not Ironic's: the RAID target and the
// driver are changed in manageable only. States that hold the lock are in no row.
func legalStates() map[field][]plan.ProvisionState {
	quiet := []plan.ProvisionState{plan.StateEnroll, plan.StateManageable, plan.StateAvailable, plan.StateInspectWait}
	return map[field][]plan.ProvisionState{
		fieldDriverInfo: append([]plan.ProvisionState{plan.StateInspectFailed, plan.StateCleanFailed, plan.StateAdoptFailed}, quiet...),
		fieldInterface:  quiet,
		fieldTraits:     {plan.StateEnroll, plan.StateManageable, plan.StateAvailable},
		fieldRAID:       {plan.StateManageable},
		fieldDriver:     {plan.StateManageable},
		fieldLink:       {plan.StateEnroll, plan.StateManageable},
	}
}

func legal(f field, s plan.ProvisionState) bool { return slices.Contains(legalStates()[f], s) }

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
