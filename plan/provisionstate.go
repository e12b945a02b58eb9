package plan

// ProvisionState is a provision state of Ironic, in its own words.
type ProvisionState string

// The provision states of API 1.115.
const (
	StateEnroll         ProvisionState = "enroll"
	StateVerifying      ProvisionState = "verifying"
	StateManageable     ProvisionState = "manageable"
	StateAvailable      ProvisionState = "available"
	StateActive         ProvisionState = "active"
	StateInspecting     ProvisionState = "inspecting"
	StateInspectWait    ProvisionState = "inspect wait"
	StateInspectFailed  ProvisionState = "inspect failed"
	StateCleaning       ProvisionState = "cleaning"
	StateCleanWait      ProvisionState = "clean wait"
	StateCleanFailed    ProvisionState = "clean failed"
	StateCleanHold      ProvisionState = "clean hold"
	StateDeploying      ProvisionState = "deploying"
	StateWaitCallback   ProvisionState = "wait call-back"
	StateDeployFailed   ProvisionState = "deploy failed"
	StateDeployHold     ProvisionState = "deploy hold"
	StateDeleting       ProvisionState = "deleting"
	StateError          ProvisionState = "error"
	StateAdopting       ProvisionState = "adopting"
	StateAdoptFailed    ProvisionState = "adopt failed"
	StateRescuing       ProvisionState = "rescuing"
	StateRescueWait     ProvisionState = "rescue wait"
	StateRescue         ProvisionState = "rescue"
	StateRescueFailed   ProvisionState = "rescue failed"
	StateUnrescuing     ProvisionState = "unrescuing"
	StateUnrescueFailed ProvisionState = "unrescue failed"
	StateServicing      ProvisionState = "servicing"
	StateServiceWait    ProvisionState = "service wait"
	StateServiceFailed  ProvisionState = "service failed"
	StateServiceHold    ProvisionState = "service hold"
)

// notOwned lists the states in which a node without an instance belongs to
// enrolment. Everything else is a deploy, rescue, delete or service state, or
// one that this version does not know: those are owned, because a wrong guess
// here costs somebody's disks.
func (s ProvisionState) notOwned() bool {
	switch s { //nolint:exhaustive // the closed list of the safe ones; all others are owned
	case StateEnroll, StateVerifying, StateManageable, StateAvailable,
		StateInspecting, StateInspectWait, StateInspectFailed,
		StateCleaning, StateCleanWait, StateCleanFailed, StateCleanHold,
		StateAdoptFailed, StateDeployFailed, StateError:
		return true
	}
	return false
}

// Own decides who holds a node (design section 7 and the Nova guard of the
// reference workflow): set instance_uuid, whatever the state, or a state that
// is not enrolment's own.
func Own(node string, state ProvisionState, instanceUUID string, maintenance bool) Ownership {
	o := Ownership{Node: node, State: state, InstanceUUID: instanceUUID, Maintenance: maintenance}
	switch {
	case instanceUUID != "":
		o.Owned = true
		o.Reason = "instance_uuid " + instanceUUID + " is set (provision state " + string(state) + ")"
	case !state.notOwned():
		o.Owned = true
		o.Reason = "provision state is " + string(state)
	}
	switch {
	case state == StateActive, state == StateAvailable, state == StateManageable && instanceUUID != "":
		o.Satisfied = true
	case state == StateDeployFailed, state == StateError:
		o.NeedsHuman = true
	}
	return o
}
