package plan

import (
	"sort"
	"strings"
	"time"
)

// Input is the whole world that a plan is made from.
type Input struct {
	Scope *Scope
	Kinds []Kind
	World Snapshot
	// Owners says who holds each device's node. A device without an entry has no
	// Ironic that could own it.
	Owners    map[string]Ownership
	Selection Selection // keeps a part of the steps
	// Failed are faults of devices that have no intent at all (not found), and of
	// whole systems; an empty device name belongs to the run.
	Failed []Diagnostic
	// Now is when the plan is made, for policies and tolerations.
	Now        time.Time
	Tool       Tool
	Statistics map[string]int
}

// Desired lists the resources of every device that may be looked at, and what
// the site's devices share. A device whose intent has faults has none: it is
// reported, not read.
func Desired(sc *Scope, kinds []Kind) []Resource {
	var out []Resource
	for _, k := range ordered(kinds) {
		if k.WantShared != nil {
			out = append(out, k.WantShared(sc)...)
		}
		if k.Want == nil {
			continue
		}
		for _, t := range sc.Targets {
			if len(t.Intent.Faults) == 0 {
				out = append(out, k.Want(t)...)
			}
		}
	}
	return out
}

// ordered sorts kinds by their place in the workflow; equal places keep the
// order of the table.
func ordered(kinds []Kind) []Kind {
	out := append([]Kind(nil), kinds...)
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].Phase != out[j].Phase {
			return out[i].Phase < out[j].Phase
		}
		return out[i].rank() < out[j].rank()
	})
	return out
}

// rank is the place of a kind within its phase.
func (k Kind) rank() int {
	switch {
	case k.First:
		return 0
	case k.Second:
		return 1
	case k.Last:
		return 3
	}
	return 2
}

// builder carries the state of one Build.
type builder struct {
	in      Input
	plan    *Plan
	devices map[string]*deviceState
	names   []string
	shared  []*Step
	alone   []*Step         // of shared, those that serve no device
	seen    map[string]bool // diagnostics already reported
	// tolerable are the resources that were judged, where the site tolerates anything.
	tolerable []Resource
}

type deviceState struct {
	target   *Target
	owner    Ownership
	head     *DevicePlan
	steps    []*Step
	frontier []*Step // what the next group of steps has to wait for
	failed   *Fault
}

// Build makes the plan of a world. It is pure: equal inputs give equal plans,
// whatever the order in which systems answered. The caller seals it with an id
// and times.
func Build(in Input) *Plan {
	b := &builder{in: in, devices: map[string]*deviceState{}, seen: map[string]bool{}, plan: &Plan{
		FormatVersion: FormatVersion,
		Tool:          in.Tool,
		Statistics:    in.Statistics,
		SiteDir:       in.Scope.Site.Dir,
		Scope:         ScopeRecord{Site: in.Scope.Site.Name},
	}}
	b.start()
	b.expiredTolerations()
	for _, group := range groups(ordered(in.Kinds)) {
		b.group(group)
	}
	b.idleTolerations()
	b.blockFailed()
	b.number()
	b.heads()
	b.plan.narrow(b.in.Selection)
	b.police()
	b.plan.link()
	b.plan.judgeDevices()
	b.record()
	b.plan.Recount()
	b.plan.takeHash()
	return b.plan
}

// groups cuts ordered kinds into runs of the same place; the steps of a group
// do not wait for each other.
func groups(kinds []Kind) [][]Kind {
	var out [][]Kind
	for i, k := range kinds {
		if i == 0 || k.Phase != kinds[i-1].Phase || k.rank() != kinds[i-1].rank() {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], k)
	}
	return out
}

func (b *builder) start() {
	for _, t := range b.in.Scope.Targets {
		i := t.Intent
		owner := b.in.Owners[i.Name]
		d := &deviceState{target: t, owner: owner, head: &DevicePlan{
			Name: i.Name, URL: i.URL, Class: i.Class, Rack: i.Rack,
			Vendor:      strings.TrimSpace(i.Manufacturer + " " + i.Model),
			IronicState: owner.State, IronicNode: owner.NodeUUID, Owned: owner.Owned, OwnedReason: owner.Reason, Maintenance: owner.Maintenance,
		}}
		b.devices[i.Name] = d
		b.names = append(b.names, i.Name)
		for _, w := range i.Warnings {
			b.diagnose(SeverityWarning, i.Name, w)
		}
		for _, f := range i.Faults {
			b.fail(d, f, VerdictFailed)
		}
		if owner.Unknown != nil {
			b.fail(d, owner.Unknown, VerdictUnreadable)
		}
		if owner.Owned && !owner.Satisfied {
			b.fail(d, NewFault(CodeNodeOwned, "%s is held: %s", i.Name, owner.Reason).With("node", owner.Node), VerdictFailed)
		}
	}
	sort.Strings(b.names)
	for _, f := range b.in.Failed {
		b.diagnose(f.Severity, f.Device, f.Fault)
		if f.Device != "" && b.devices[f.Device] == nil {
			b.plan.Devices = append(b.plan.Devices, DevicePlan{Name: f.Device, Verdict: VerdictFailed})
		}
	}
}

func (b *builder) fail(d *deviceState, f *Fault, verdict DeviceVerdict) {
	if d.failed == nil {
		d.failed = f
		d.head.Verdict = verdict
	}
	b.diagnose(SeverityError, d.target.Intent.Name, f)
}

// diagnose reports a fault once: a BMC that does not answer would otherwise be
// reported by each of its resources.
func (b *builder) diagnose(sev Severity, device string, f *Fault) {
	key := string(sev) + "\x00" + device + "\x00" + f.Error()
	if b.seen[key] {
		return
	}
	b.seen[key] = true
	b.plan.Diagnostics = append(b.plan.Diagnostics, Diagnostic{Severity: sev, Device: device, Fault: f})
}

// group decides all resources of the kinds of one place in the order, then
// moves the frontier behind them.
func (b *builder) group(kinds []Kind) {
	added := map[string][]*Step{}
	for _, k := range kinds {
		if k.WantShared != nil {
			for _, r := range k.WantShared(b.in.Scope) {
				b.decideShared(k, r)
			}
		}
		if k.Want == nil {
			continue
		}
		for _, name := range b.names {
			d := b.devices[name]
			if len(d.target.Intent.Faults) > 0 {
				continue
			}
			for _, r := range k.Want(d.target) {
				if s := b.decide(k, d, r); s != nil && s.Blocked == nil {
					s.needs = append([]*Step(nil), d.frontier...)
					added[name] = append(added[name], s)
				}
			}
		}
	}
	for name, steps := range added {
		b.devices[name].frontier = steps
	}
}

// decide judges one resource of a device and gives its step, if there is one.
func (b *builder) decide(k Kind, d *deviceState, r Resource) *Step {
	live := b.in.World.Get(r.Address)
	r, accepted := b.tolerated(r, live)
	dec := Decision{Scope: b.in.Scope, Target: d.target, Resource: r, Live: live, World: b.in.World, Steps: d.steps, Owner: d.owner}
	dec.Deferred = b.deferred(d, r.Address, dec.Live)
	v := judge(k, dec)
	v.Observed = append(v.Observed, accepted...)
	b.collect(d, v)
	if v.Fault != nil {
		verdict := VerdictFailed
		if v.Unreadable {
			verdict = VerdictUnreadable
		}
		b.fail(d, v.Fault, verdict)
		d.head.Unread++
		return nil
	}
	if v.Step == nil {
		if len(v.Observed) == 0 && len(v.Checks) == 0 {
			d.head.Unchanged++
		}
		return nil
	}
	s := finish(v.Step, k, r)
	if s.BeforeUnknown {
		d.head.UpTo = true
	}
	switch {
	case !d.owner.Owned || k.OnOwned || s.Blocked != nil:
	case b.in.Scope.Site.OwnedNodes.Releases(s):
		s.OnOwned = true
	default:
		s.Blocked = &Block{Rule: RuleOwned, Text: d.owner.Reason}
	}
	d.steps = append(d.steps, s)
	return s
}

// onOwned decides about a shared step of which every device that it serves is
// held by somebody.
func (b *builder) onOwned(s *Step) {
	reason := ""
	for _, name := range s.Serves {
		owner := b.devices[name].owner
		if !owner.Owned {
			return
		}
		reason = owner.Reason
	}
	switch {
	case reason == "" || s.Blocked != nil:
	case b.in.Scope.Site.OwnedNodes.Releases(s):
		s.OnOwned = true
	default:
		s.Blocked = &Block{Rule: RuleOwned, Text: reason}
	}
}

func (b *builder) decideShared(k Kind, r Resource) {
	var steps []*Step
	for _, name := range b.names {
		if b.devices[name].failed == nil {
			steps = append(steps, b.devices[name].steps...)
		}
	}
	steps = append(steps, b.alone...)
	live := b.in.World.Get(r.Address)
	r, accepted := b.tolerated(r, live)
	v := judge(k, Decision{Scope: b.in.Scope, Resource: r, Live: live, World: b.in.World, Steps: steps})
	v.Observed = append(v.Observed, accepted...)
	b.plan.Checks = append(b.plan.Checks, v.Checks...)
	b.plan.Observed = append(b.plan.Observed, v.Observed...)
	for _, w := range v.Warnings {
		b.diagnose(SeverityWarning, "", w)
	}
	if v.Fault != nil && k.Alone {
		b.diagnose(SeverityError, "", v.Fault)
		return
	}
	if v.Fault != nil {
		// What all devices share is broken: none of them can be served.
		for _, name := range b.names {
			b.fail(b.devices[name], v.Fault, VerdictUnreadable)
		}
		return
	}
	if v.Step == nil {
		return
	}
	s := finish(v.Step, k, r)
	b.shared = append(b.shared, s)
	if k.Alone {
		b.alone = append(b.alone, s)
		return
	}
	for _, other := range b.alone {
		if other.Address.System == r.Address.System && other.Phase != s.Phase {
			s.needs = append(s.needs, other)
		}
	}
	if len(s.Serves) == 0 && !s.afterAlone() {
		s.Serves = append([]string(nil), b.names...)
	}
	sort.Strings(s.Serves)
	b.onOwned(s)
	for _, name := range s.Serves {
		d := b.devices[name]
		if d == nil || s.Blocked != nil {
			continue
		}
		s.needs = append(s.needs, d.frontier...)
		d.frontier = []*Step{s}
	}
}

func judge(k Kind, d Decision) Verdict {
	if k.Decide != nil {
		return k.Decide(d)
	}
	return Compare(d)
}

// deferred says whether a BMC that cannot be reached may still be waiting for
// its address: its own DHCP entry is part of this plan, or an earlier run left
// the service without it.
func (b *builder) deferred(d *deviceState, a Address, l Live) bool {
	if a.System == "bmc" && l.Presence == Unreadable && l.Fault != nil && (l.Fault.Code == CodeBMCPasswordChange || l.Fault.Code == CodeBMCCredential) {
		// It shows nothing before its password was changed, which this plan does.
		for _, s := range d.steps {
			if s.Address.KindName() == "bmc.credential" && s.Blocked == nil && s.Action.Mutates() {
				return true
			}
		}
	}
	if a.System != "bmc" || l.Presence != Unreachable {
		return false
	}
	for _, s := range d.steps {
		if s.Address.System == "dhcp" && s.Blocked == nil {
			return true
		}
	}
	for _, s := range b.shared {
		if s.Address.System == "dhcp" && s.Reason == ReasonPending {
			return true
		}
	}
	return false
}

func (b *builder) collect(d *deviceState, v Verdict) {
	b.plan.Checks = append(b.plan.Checks, v.Checks...)
	b.plan.Observed = append(b.plan.Observed, v.Observed...)
	for _, w := range v.Warnings {
		b.diagnose(SeverityWarning, d.target.Intent.Name, w)
	}
}

// finish fills in what follows from the kind and the resource.
func finish(s *Step, k Kind, r Resource) *Step {
	if s.Address == (Address{}) {
		s.Address = r.Address
	}
	if s.Effects == nil && s.Action.Mutates() {
		s.Effects = r.Effects
	}
	if s.Budget == 0 {
		s.Budget = r.Budget
	}
	if s.From == nil {
		s.From = r.From
	}
	if len(s.Effects) > 0 && len(s.Because) == 0 {
		s.Because = causes(s)
	}
	s.Phase = k.Phase.String()
	s.Sensitive = s.Sensitive || r.Sensitive
	s.OnOwned = k.OnOwned
	if !s.Before.IsKnown() {
		s.BeforeUnknown = true
	}
	if !s.BeforeUnknown && s.Action.Mutates() {
		s.Guard = Fingerprint(s.Before)
	}
	return s
}

// causes are the paths for which a step has its effects: the secrets that it
// writes where that is its only one, else what it changes.
func causes(s *Step) []string {
	var secrets []string
	for _, from := range s.From {
		if path, ref, ok := strings.Cut(from, ": "); ok && strings.HasPrefix(ref, "secret(") {
			secrets = append(secrets, path)
		}
	}
	if len(s.Effects) == 1 && s.Effects[0] == EffectCredential && len(secrets) > 0 {
		return secrets
	}
	if before := s.Before; before.IsKnown() && !before.IsNull() {
		if paths := DiffPaths(before, s.After); len(paths) > 0 {
			return paths
		}
	}
	return leafPaths(s.After)
}

// blockFailed keeps the steps of a device with a fault in sight, and from
// running.
func (b *builder) blockFailed() {
	for _, name := range b.names {
		d := b.devices[name]
		if d.failed == nil {
			continue
		}
		rule := RuleFailed
		if d.failed.Code == CodeNodeOwned {
			rule = RuleOwned
		}
		for _, s := range d.steps {
			if s.Blocked == nil {
				s.Blocked = &Block{Rule: rule, Text: string(d.failed.Code) + ": " + d.failed.Summary}
			}
		}
	}
	// A shared step that serves only failed devices has nobody left to serve.
	for _, s := range b.shared {
		if s.Blocked != nil || s.Reason == ReasonPending || len(s.Serves) == 0 {
			continue
		}
		var serves []string
		for _, name := range s.Serves {
			if b.devices[name] != nil && b.devices[name].failed == nil {
				serves = append(serves, name)
			}
		}
		s.Serves = serves
		if len(serves) == 0 && !s.afterAlone() {
			s.Blocked = &Block{Rule: RuleFailed, Text: "every device that it would serve has a fault"}
		}
	}
}

// all lists the steps in the plan's order: the site's own first, then device by
// device.
func (b *builder) all() []*Step {
	out := append([]*Step(nil), b.shared...)
	for _, name := range b.names {
		out = append(out, b.devices[name].steps...)
	}
	return out
}

func (b *builder) number() {
	b.plan.Steps = b.all()
	for i, s := range b.plan.Steps {
		s.ID = stepID(i + 1)
	}
	for _, s := range b.plan.Steps {
		for _, n := range s.needs {
			if n.Blocked == nil && n.ID != "" {
				s.Needs = append(s.Needs, n.ID)
			}
		}
		sort.Slice(s.Needs, func(i, j int) bool { return idLess(s.Needs[i], s.Needs[j]) })
	}
}

// heads lists the devices, sorted.
func (b *builder) heads() {
	p := b.plan
	for _, name := range b.names {
		p.Devices = append(p.Devices, *b.devices[name].head)
	}
	sort.Slice(p.Devices, func(i, j int) bool { return p.Devices[i].Name < p.Devices[j].Name })
}

// police asks the site's policies, last: about what would really run.
func (b *builder) police() {
	results := JudgePolicies(b.plan, b.in.Scope, b.in.Now)
	b.plan.Enforce(results)
	for _, r := range results {
		if r.Action != PolicyWarn {
			continue
		}
		for _, name := range r.Holds {
			b.diagnose(SeverityWarning, b.deviceOf(name), NewFault(CodePolicyWarning, "%s", r.Sentence()).
				Of(r).With("concerns", name).With("from", b.in.Scope.Site.Relative(r.From)))
		}
	}
}

// deviceOf gives the device of a subject's address, "" for the site.
func (b *builder) deviceOf(subject string) string {
	for _, part := range strings.Split(subject, "/") {
		if b.devices[part] != nil {
			return part
		}
	}
	return ""
}

func (b *builder) record() {
	sc := b.in.Scope
	p := b.plan
	p.Inputs.Files = sc.Site.Files
	p.Inputs.Intents, p.Inputs.Settings, p.Inputs.Site = map[string]string{}, map[string]string{}, sc.Site.Hash()
	for _, t := range sc.Targets {
		p.Inputs.Objects = append(p.Inputs.Objects, t.Intent.Sources...)
		p.Inputs.Intents[t.Intent.Name] = t.Intent.Hash
		p.Inputs.Settings[t.Intent.Name] = t.Settings.Hash()
	}
	p.Inputs.Objects = uniqueObjects(p.Inputs.Objects)
	p.Scope.Parameters = sc.Parameters.Record()
	p.Scope.Toggles = map[string]bool{
		"configure_dhcp": sc.Site.ConfigureDHCP, "configure_bmc": sc.Site.ConfigureBMC,
		"ironic_enrol": sc.Site.IronicEnrol, "record_platform_class": sc.Site.RecordPlatformClass,
	}
	for _, d := range p.Devices {
		p.Scope.Devices = append(p.Scope.Devices, d.Name)
	}
	b.relate()
	sort.SliceStable(p.Checks, func(i, j int) bool { return addressLess(p.Checks[i].Address, p.Checks[j].Address) })
	sort.SliceStable(p.Observed, func(i, j int) bool { return addressLess(p.Observed[i].Address, p.Observed[j].Address) })
	sort.SliceStable(p.Diagnostics, func(i, j int) bool {
		a, b := p.Diagnostics[i], p.Diagnostics[j]
		if a.Device != b.Device {
			return a.Device < b.Device
		}
		return a.Severity < b.Severity // "error" sorts before "warning"
	})
}

// relate names the site's files from the site's folder on: where a checkout stands
// is no part of what people approve.
func (b *builder) relate() {
	site := b.in.Scope.Site
	relate := func(from []string) []string {
		out := append([]string(nil), from...)
		for i := range out {
			out[i] = site.Relative(out[i])
		}
		return out
	}
	for _, s := range b.plan.Steps {
		s.From = relate(s.From)
	}
	for i := range b.plan.Checks {
		b.plan.Checks[i].From = relate(b.plan.Checks[i].From)
	}
	for i := range b.plan.Policies {
		b.plan.Policies[i].From = site.Relative(b.plan.Policies[i].From)
	}
}

func uniqueObjects(objects []SourceObject) []SourceObject {
	sort.Slice(objects, func(i, j int) bool { return objects[i].URL < objects[j].URL })
	var out []SourceObject
	for i, o := range objects {
		if i == 0 || o.URL != objects[i-1].URL {
			out = append(out, o)
		}
	}
	return out
}
