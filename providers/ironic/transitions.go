package ironic

import "github.com/enroll-dev/enroll/plan"

// move is what the walk to available asks for in a provision state.
type move int

const (
	stay    move = iota // nothing: the node is past this point, or belongs to somebody else
	send                // send the verb
	await               // the transition is under way already
	refuse              // a person has to act first; the steps are shown blocked
	human               // never recovered automatically: the device fails
	missing             // the node is not where it can be reached from: an earlier step brings it there
)

// walk is one leg: the verb, where it leads, and what each state means for it.
type walk struct {
	verb   string
	target plan.ProvisionState
	// failed is where the verb leads when it does not succeed, and from where another
	// attempt may be made; "" for manage, which falls back to enroll.
	failed plan.ProvisionState
	// from is the state that the verb is sent in when nothing failed before; the
	// state that earlier steps of a plan lead to.
	from plan.ProvisionState
	// states is total over plan's provision states; absent ("") is a node that
	// does not exist yet.
	states map[plan.ProvisionState]move
}

// absent is the state of a node that does not exist.
const absent plan.ProvisionState = ""

// walks is the whole state table of this package, one column for each leg. The
// legality of the verbs is Ironic's; that deploy failed and error are left to
// people is the reference's rule.
func walks() map[string]walk {
	manage, inspect, provide := map[plan.ProvisionState]move{}, map[plan.ProvisionState]move{}, map[plan.ProvisionState]move{}
	row := func(s plan.ProvisionState, m, i, p move) { manage[s], inspect[s], provide[s] = m, i, p }

	// The columns are manage, inspect, provide.
	row(absent, missing, missing, missing)
	row(plan.StateEnroll, send, missing, missing)
	row(plan.StateVerifying, await, missing, missing)
	row(plan.StateManageable, stay, send, send)
	row(plan.StateInspecting, stay, await, missing)
	row(plan.StateInspectWait, stay, await, missing)
	row(plan.StateInspectFailed, send, missing, missing)
	row(plan.StateCleaning, stay, stay, await)
	row(plan.StateCleanWait, stay, stay, await)
	row(plan.StateCleanFailed, send, missing, missing)
	row(plan.StateCleanHold, refuse, stay, refuse)
	row(plan.StateAvailable, stay, stay, stay)
	row(plan.StateAdoptFailed, human, human, human)
	row(plan.StateDeployFailed, human, human, human)
	row(plan.StateError, human, human, human)
	for _, s := range ownedStates() {
		row(s, stay, stay, stay)
	}
	return map[string]walk{
		keyManage:  {verb: keyManage, target: plan.StateManageable, from: plan.StateEnroll, states: manage},
		keyInspect: {verb: keyInspect, target: plan.StateManageable, failed: plan.StateInspectFailed, from: plan.StateManageable, states: inspect},
		keyProvide: {verb: keyProvide, target: plan.StateAvailable, failed: plan.StateCleanFailed, from: plan.StateManageable, states: provide},
	}
}

// ownedStates are those in which plan.Own says that somebody else holds the
// node; the builder blocks everything there before this table is asked.
func ownedStates() []plan.ProvisionState {
	return []plan.ProvisionState{
		plan.StateActive, plan.StateDeploying, plan.StateWaitCallback, plan.StateDeployHold, plan.StateDeleting,
		plan.StateAdopting, plan.StateRescuing, plan.StateRescueWait, plan.StateRescue, plan.StateRescueFailed,
		plan.StateUnrescuing, plan.StateUnrescueFailed, plan.StateServicing, plan.StateServiceWait, plan.StateServiceFailed, plan.StateServiceHold,
	}
}

// in gives what the leg asks for in a state. A state that is not in the table
// is one that this version does not know: plan.Own calls it owned.
func (w walk) in(s plan.ProvisionState) move {
	if m, ok := w.states[s]; ok {
		return m
	}
	return stay
}

// under reports whether a state is on the way of the leg once its verb was sent.
func (w walk) under(s plan.ProvisionState) bool { return w.in(s) == await }

// stuck says what a person has to do about a node that this version cannot
// bring further.
func stuck(n string, s plan.ProvisionState) string {
	switch s { //nolint:exhaustive // the states that walks refuses
	case plan.StateCleanHold:
		return "node " + n + " is held in cleaning by a hold step: baremetal node unhold " + n + " when whoever held it agrees"
	}
	return "node " + n + " is in state " + string(s)
}
