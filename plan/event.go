package plan

import "time"

// EventKind is what an event of a run tells.
type EventKind string

// The events of a run, in the order in which a step meets them.
const (
	EventBegin EventKind = "begin" // a step's first exchange starts
	EventWait  EventKind = "wait"  // the system is at work; asked again after Event.After
	EventRetry EventKind = "retry" // an exchange failed in a way that may pass; tried again after Event.After
	EventEnd   EventKind = "end"   // a step came to its end
	EventHold  EventKind = "hold"  // the step may begin and waits for a place (Event.Text says which)
	EventStop  EventKind = "stop"  // the run starts nothing new

	EventAlive EventKind = "alive" // nothing else was told for a while; Event.Text sums up

	EventRestore EventKind = "restore" // an obligation of the step is being put back
)

// EventKinds lists them.
func EventKinds() []EventKind {
	return []EventKind{EventBegin, EventHold, EventWait, EventRetry, EventEnd, EventAlive, EventStop, EventRestore}
}

// Event is one thing that happened while a plan was applied. Events are for
// people and logs; the journal and the report are what counts.
type Event struct {
	Time  time.Time
	Kind  EventKind
	Step  *Step         // nil for what is told of the whole run
	After time.Duration // with wait and retry
	Text  string        // with wait: what the system is doing; with end: why it was not run
	State StepState     // with end
	Fault *Fault        // with retry, and with end when the step failed
	Spent time.Duration // with end: since the step began
}

// StepState is where a step ended.
type StepState string

// The ends of a step.
const (
	StepDone    StepState = "done"
	StepAlready StepState = "already" // it was right before anything was sent
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped"  // something that it needs did not come about
	StepBlocked StepState = "blocked"  // the plan, or what became known on the way, forbids it
	StepNotRun  StepState = "not run"  // the run was stopped before it began
	StepLeft    StepState = "left"     // begun; the run was stopped while the system was at work
	StepInDoubt StepState = "in doubt" // cancelled while a request was in flight
)

// StepStates lists them.
func StepStates() []StepState {
	return []StepState{StepDone, StepAlready, StepFailed, StepSkipped, StepBlocked, StepNotRun, StepLeft, StepInDoubt}
}

// OK reports whether what needs the step may go on.
func (s StepState) OK() bool { return s == StepDone || s == StepAlready }
