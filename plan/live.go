package plan

// Presence says how much is known about a live resource.
type Presence string

// The presences.
const (
	Present     Presence = "present"     // Live.Value is what the system says
	Absent      Presence = "absent"      // the system answered: there is none
	Unreachable Presence = "unreachable" // nothing answers at the address; whether that is a fault depends on the plan
	Unreadable  Presence = "unreadable"  // the system should have answered and did not, or made no sense: Live.Fault
	Unsupported Presence = "unsupported" // the system has no such resource: Live.Fault says what was looked for
)

// Live is what a system says about one resource at one moment.
type Live struct {
	Presence Presence
	Value    Value             // meaningful when Present
	Evidence map[string]string // where it was seen (URL, file), for explain and faults
	Fault    *Fault            // with Unreachable, Unreadable, Unsupported
}

// LiveValue is a present resource.
func LiveValue(v Value) Live { return Live{Presence: Present, Value: v} }

// LiveAbsent is a resource that does not exist.
func LiveAbsent() Live { return Live{Presence: Absent, Value: Null} }

// LiveFault is a resource that could not be read.
func LiveFault(p Presence, f *Fault) Live { return Live{Presence: p, Value: Null, Fault: f} }

// Snapshot holds the live values of one moment by address. An address that a
// reader was asked for and did not answer counts as Unreadable.
type Snapshot map[Address]Live

// Get gives the live value of an address; one that nobody read is Unreadable.
func (s Snapshot) Get(a Address) Live {
	if l, ok := s[a]; ok {
		return l
	}
	return LiveFault(Unreadable, NewFault(CodeInternal, "nothing read %s", a))
}

// Merge adds the values of another snapshot.
func (s Snapshot) Merge(other Snapshot) {
	for a, l := range other {
		s[a] = l
	}
}

// Ownership is what the Ironic of a device says about who may touch it
// (design section 7).
type Ownership struct {
	Node         string // the node's name or UUID, "" when there is no node
	NodeUUID     string // names move between nodes; "" when there is no node
	State        ProvisionState
	InstanceUUID string
	Maintenance  bool
	Owned        bool   // no write to any system
	Satisfied    bool   // enrolment is already achieved: only the NetBox tag may be written
	Reason       string // in one clause, for people
	Unknown      *Fault // ownership could not be read: nothing may be written
	NeedsHuman   bool   // deploy failed, error: never recovered automatically
}
