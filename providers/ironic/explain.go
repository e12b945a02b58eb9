package ironic

import "github.com/enroll-dev/enroll/plan"

// WalkRow is what enroll does with a node in one provision state.
type WalkRow struct {
	State                    plan.ProvisionState // "" is a node that does not exist
	Manage, Inspect, Provide string
	Why                      string
}

// WalkTable is the state table of the walk to available, for people: every
// provision state of API 1.115, in the order of a node's life.
func WalkTable() []WalkRow {
	legs := walks()
	var out []WalkRow
	for _, s := range walkStates() {
		out = append(out, WalkRow{
			State: s, Why: why(s),
			Manage: legs[keyManage].in(s).words(keyManage), Inspect: legs[keyInspect].in(s).words(keyInspect), Provide: legs[keyProvide].in(s).words(keyProvide),
		})
	}
	return out
}

// walkStates are the states of walks, in the order of a node's life.
func walkStates() []plan.ProvisionState {
	return append([]plan.ProvisionState{
		absent, plan.StateEnroll, plan.StateVerifying, plan.StateManageable, plan.StateInspecting, plan.StateInspectWait, plan.StateInspectFailed,
		plan.StateCleaning, plan.StateCleanWait, plan.StateCleanHold, plan.StateCleanFailed, plan.StateAvailable,
		plan.StateAdoptFailed, plan.StateDeployFailed, plan.StateError,
	}, ownedStates()...)
}

// words says what a move is.
func (m move) words(verb string) string {
	switch m {
	case send:
		return "send " + verb
	case await:
		return "wait"
	case refuse:
		return "blocked"
	case human:
		return "fault"
	case missing:
		return "later"
	case stay:
	}
	return "-"
}

// why is the reason of a row.
func why(s plan.ProvisionState) string {
	switch s { //nolint:exhaustive // the others are owned
	case absent:
		return "The node and its ports are created first."
	case plan.StateEnroll:
		return "Ironic checks the BMC; a refusal ends in enroll again, with last_error."
	case plan.StateVerifying:
		return "Locked until the BMC answered: up to 160 s where it refuses connections."
	case plan.StateManageable:
		return "Inspected when there is no inventory, or --force-inspection asks; cleaned when every check passed."
	case plan.StateInspecting, plan.StateInspectWait:
		return "The ramdisk boots, its frontend links are watched for 5 minutes from power-on; a failure is recovered and tried again, within attempts."
	case plan.StateInspectFailed:
		return "Recovered by manage; what an earlier inspection left proves nothing."
	case plan.StateCleaning, plan.StateCleanWait:
		return "Until cleaning_deadline, the links watched as in inspection; a failure is recovered and tried again, within attempts."
	case plan.StateCleanHold:
		return "Somebody holds the node in a hold step: baremetal node unhold when they agree."
	case plan.StateCleanFailed:
		return "Maintenance that cleaning set is cleared, then manage; put back when manage does not succeed."
	case plan.StateAvailable:
		return "Enrolled. Only its power and NetBox's tag are touched."
	case plan.StateAdoptFailed, plan.StateDeployFailed, plan.StateError:
		return "Never recovered by enroll: a person has to look first."
	case plan.StateActive:
		return "Owned, and enrolled: nothing is touched but NetBox's tag."
	}
	return "Owned: nothing is touched, and the device fails."
}
