package plan

// Phase is the place of a kind of resource in the order of the reference
// workflow. Within a device every step of a phase needs the steps of the
// phases before it.
type Phase int

// The phases, in order.
const (
	PhaseRecord   Phase = iota // NetBox fields that gate the rest (platform class)
	PhaseDHCP                  // reservation, index
	PhaseService               // the DHCP service of the site
	PhaseBMC                   // login first, then settings
	PhaseActivate              // NetBox status
	PhaseNode                  // Ironic node
	PhasePorts                 // Ironic portgroup and ports
	PhaseManage                // enroll → manageable
	PhaseInspect               // inspection
	PhaseVerify                // checks on the inventory
	PhaseClean                 // manageable → available
	PhaseFinish                // power, tags
)

var phaseNames = [...]string{"record", "dhcp", "dhcp service", "bmc", "activate", "node", "ports", "manage", "inspect", "verify", "clean", "finish"} //nolint:gochecknoglobals // a constant table

func (p Phase) String() string { return phaseNames[p] }

// Kind is the rule of one kind of resource. All its functions are pure.
type Kind struct {
	Name  string // SYSTEM.KIND
	Phase Phase
	// First puts the kind before the others of its phase (a login before the settings).
	First bool
	// Second puts it right after the first ones, before the rest (a restart).
	Second bool
	// Last puts the kind behind the others of its phase (what locks the system
	// that they change).
	Last bool
	// OnOwned kinds may be written although Nova owns the node. Only the NetBox
	// tag is one (reference: satisfied nodes are re-tagged).
	OnOwned bool
	// Looks are those of the actions verify and wait that steps of the kind may have:
	// such a step runs without a guard, and its runner must write nothing then.
	Looks []Action
	// Lived are the attributes of after that Want does not have: live values give them.
	Lived []string
	// Want derives the device's resources of this kind from settings and intent.
	// Nil for kinds that are shared by a site.
	Want func(t *Target) []Resource
	// WantShared derives the site's shared resource; nil for kinds of devices.
	WantShared func(sc *Scope) []Resource
	// Decide judges one resource; nil means Compare. It may look at other live
	// values of the device and at the steps that were decided before it.
	Decide func(d Decision) Verdict
	// Alone kinds are about what no device has: their steps serve none, and none
	// waits for them. What the site shares of the same system comes after them.
	Alone bool
	// Doc says in one line what the kind is, for explain and generated pages.
	Doc string
	// Key is that of the kind's only resource, where several kinds share a name.
	Key string
}

// Resource is one thing with a wanted value in one system.
type Resource struct {
	Address Address
	Want    Value
	// From says where the wanted value comes from: NetBox URLs, HCL file:line.
	From []string
	// Effects that applying a difference has.
	Effects []Effect
	// Budget for the step including all its waits; zero means the default of apply.
	Budget Duration
	// CreateOnly resources are never reconciled: a difference is observed.
	CreateOnly bool
	// Sensitive resources are written with a secret: the plan shows the reference only.
	Sensitive bool
}

// Decision is what a kind decides on.
type Decision struct {
	Scope    *Scope
	Target   *Target // nil for shared resources
	Resource Resource
	Live     Live
	World    Snapshot // all live values of this run; read siblings through it
	Steps    []*Step  // steps decided so far (earlier phases, and earlier in this one): of the device, or of the site for shared kinds
	// Deferred is true when the system cannot be seen yet because an earlier
	// step of this plan makes it reachable.
	Deferred bool
	Owner    Ownership
}

// Sibling is the live value of another resource of the same device.
func (d Decision) Sibling(local string) (Live, bool) {
	a, err := ParseAddress(d.Resource.Address.Site + "/" + d.Resource.Address.Device + "/" + local)
	if err != nil {
		return Live{}, false
	}
	l, ok := d.World[a]
	return l, ok
}

// Planned finds an earlier step by its local address (SYSTEM.KIND[KEY]) or its
// kind name; nil when there is none. Blocked steps do not count.
func (d Decision) Planned(local string) *Step {
	for _, s := range d.Steps {
		if s.Blocked == nil && (s.Address.Local() == local || s.Address.KindName() == local) {
			return s
		}
	}
	return nil
}

// Verdict is a kind's judgement of one resource: at most one step, or a
// blocked one, checks, observations, or a fault that fails the device.
type Verdict struct {
	Step     *Step // address, effects, resource data are filled in by the builder where empty
	Checks   []Check
	Observed []Observation
	Warnings []*Fault
	Fault    *Fault
	// Unreadable marks Fault as "could not be read" instead of "failed".
	Unreadable bool
}

// Nothing is the verdict of a resource that is as wanted.
func Nothing() Verdict { return Verdict{} }

// Compare is the judgement of most kinds: create what is absent, update what
// differs, leave what satisfies; observe instead of reconcile for create-only.
func Compare(d Decision) Verdict {
	r := d.Resource
	switch d.Live.Presence {
	case Absent:
		return Verdict{Step: &Step{Action: ActionCreate, Reason: ReasonAbsent, Before: Null, After: r.Want}}
	case Present:
		if Satisfies(r.Want, d.Live.Value) {
			return Nothing()
		}
		before := Restrict(d.Live.Value, r.Want)
		if r.CreateOnly {
			return Verdict{Observed: []Observation{{Address: r.Address, Rule: "create_only", Text: "applied only when created; the difference is left alone", Want: r.Want, Live: before}}}
		}
		return Verdict{Step: &Step{Action: ActionUpdate, Reason: ReasonDiffers, Before: before, After: r.Want, Because: DiffPaths(before, r.Want)}}
	case Unreachable, Unreadable:
		if d.Deferred {
			return Verdict{Step: &Step{Action: ActionUpdate, Reason: ReasonDeferred, Before: Unknown, BeforeUnknown: true, After: r.Want}}
		}
		return Verdict{Fault: d.Live.Fault, Unreadable: true}
	case Unsupported:
		return Verdict{Step: &Step{Action: ActionUpdate, Reason: ReasonDiffers, Before: Null, After: r.Want, Blocked: &Block{Rule: RuleUnsupported, Text: d.Live.Fault.Summary}}}
	}
	return Verdict{Fault: NewFault(CodeInternal, "%s: unknown presence %q", r.Address, d.Live.Presence)}
}
