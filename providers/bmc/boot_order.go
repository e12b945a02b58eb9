package bmc

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// bootWay is how a family changes what its host boots from.
type bootWay string

// The ways.
const (
	bootNone     bootWay = ""         // enroll does not
	bootPlain    bootWay = "plain"    // the order alone, by Redfish's own properties
	bootRestrict bootWay = "restrict" // options of other NICs are switched off
	bootJob      bootWay = "job"      // the same, committed by a job of the iDRAC
	bootClasses  bootWay = "classes"  // options are classes of devices; NICs have an order of their own (XCC)
)

const bootBudget = 90 * time.Minute

func bootOrderFacet() facet {
	return facet{kind: bootOrderKind(), read: readBootOrder, set: setBootOrder, more: true}
}

// bootOrderKind lets the host boot from its provisioning NIC first, and from no
// other NIC where the family can say so. Disks, media and shells stay as they
// are, behind it.
func bootOrderKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.boot_order", Phase: plan.PhaseBMC,
		Doc: "The host boots from its provisioning NIC first, and over no other NIC.",
		Want: func(t *plan.Target) []plan.Resource {
			nic, ok := t.Intent.ProvisioningNIC()
			if !configured(t) || !ok || nic.MAC.IsZero() {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "boot_order", ""),
				Want: plan.Obj(map[string]plan.Value{
					"First":     plan.Obj(map[string]plan.Value{"MACAddress": plan.Str(nic.MAC.String())}),
					"OtherNICs": plan.Strs(), // boot options of other NICs that are on
				}),
				From:    from(nic.URL, t.Site.Set["bmc.restrict_boot"]),
				Effects: []plan.Effect{plan.EffectReboot},
				Budget:  plan.Duration(bootBudget),
			}}
		},
		Decide: decideBootOrder,
	}
}

func decideBootOrder(d plan.Decision) plan.Verdict {
	nic, _ := d.Target.Intent.ProvisioningNIC()
	switch {
	case d.Live.Presence == plan.Unsupported:
		return unsupported(d)
	case d.Live.Presence != plan.Present:
		return plan.Compare(d)
	case d.Live.Evidence["unidentified"] != "":
		return plan.Verdict{Fault: unidentified(d.Resource.Address.Device, nic, d.Live.Evidence["unidentified"])}
	}
	v := plan.Compare(d)
	if v.Step != nil && d.Live.Evidence["staged"] != "" {
		v.Step.Reason = plan.ReasonPending
	}
	return v
}

// unidentified is why nothing is switched off: a host without the right option
// would boot from nothing, or from somebody else's network.
func unidentified(device string, nic plan.FrontendNIC, options string) *plan.Fault {
	return plan.NewFault(plan.CodeBMCBootNIC, "no boot option of %s is surely that of its provisioning NIC %s (%s); nothing was changed", device, nic.Name, nic.MAC).
		With("options", options)
}

// bootOption is one option with the NIC that it boots over.
type bootOption struct {
	document
	reference string
	enabled   bool
	switched  bool // it says whether it is on
	network   bool
	mac       plan.MAC // of a network option; zero: not known
}

// words name an option for people.
func (o bootOption) words() string {
	s := o.reference
	if display := o.text("DisplayName"); display != "" {
		s += " (" + display + ")"
	}
	if !o.mac.IsZero() {
		s += " " + o.mac.String()
	}
	return s
}

// boot is what a host boots from, and what waits for its next boot.
type boot struct {
	order   []string // references
	options []bootOption
	staged  []string // the order that waits; nil: none
	at      string   // where the order is written
	etag    string
	system  document
	jobs    []job
	network []string // XCC: NICs in their order
	nextNIC []string // XCC: the order that waits
	netAt   document // XCC: where that stands; no path: it has none
}

// boot reads order and options. The order is Boot.BootOrder and nothing else; a
// collection has another.
func (k *conn) boot(ctx context.Context) (boot, *plan.Fault) {
	way := k.family.boot
	if way == bootNone {
		return boot{}, k.familyLacks("boot order")
	}
	b := boot{system: k.tree.system, at: k.tree.system.path, etag: k.tree.system.etag}
	b.order = b.system.list("Boot", "BootOrder")
	options := b.system.link("Boot", "BootOptions")
	if len(b.order) == 0 || options == "" {
		return b, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: b.system.path}, "the BMC of %s shows no boot order", k.device)
	}
	_, members, fault := k.members(ctx, options)
	if fault != nil {
		return b, fault
	}
	for _, d := range members {
		if d.unread != nil {
			return b, d.unread // an option that is not seen could be another NIC's
		}
		o := decodeBootOption(d)
		if o.reference == "" {
			continue // no order can name it
		}
		o.network = k.isNetwork(o)
		b.options = append(b.options, o)
	}
	if settings := b.system.link("@Redfish.Settings", "SettingsObject"); settings != "" {
		s, fault := k.get(ctx, settings)
		switch {
		case isCode(fault, plan.CodeBMCUnsupported):
		case fault != nil:
			return b, fault
		default:
			b.at, b.etag = s.path, s.etag
			if order := s.list("Boot", "BootOrder"); len(order) > 0 && !slices.Equal(order, b.order) {
				b.staged = order
			}
		}
	}
	if way == bootJob {
		b.jobs, fault = k.openJobs(ctx)
	}
	if way == bootClasses && fault == nil {
		fault = k.networkOrder(ctx, &b)
	}
	return b, fault
}

// option finds one by its reference.
func (b *boot) option(reference string) *bootOption {
	for i := range b.options {
		if b.options[i].reference == reference {
			return &b.options[i]
		}
	}
	return nil
}

// readBootOrder tells which NIC is booted from first and which options of other
// NICs are on.
func readBootOrder(ctx context.Context, k *conn, t *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault) {
	if _, fault := k.freshSystem(ctx); fault != nil {
		return plan.Null, nil, fault
	}
	b, fault := k.boot(ctx)
	if fault != nil {
		return plan.Null, nil, fault
	}
	wanted := parseMAC(plan.Text(plan.Attr(want, "First"), "MACAddress"))
	seen := evidence{"url": k.base + b.system.path}
	if !k.restricts(t) && k.family.boot == bootRestrict {
		seen["left_alone"] = "restrict_boot is off, and the family has nothing less" // the reference: AMI skips then
		return echoBoot(want), seen, nil
	}
	first, others, fault := k.bootState(ctx, t, &b, wanted)
	if fault != nil {
		return plan.Null, nil, fault
	}
	if k.family.boot != bootClasses && k.restricts(t) {
		found, fault := k.optionsOf(ctx, &b, wanted)
		if fault != nil {
			return plan.Null, nil, fault
		}
		if len(found) == 0 {
			var words []string
			for _, o := range b.options {
				words = append(words, o.words())
			}
			seen["unidentified"] = cut("the BMC shows "+strings.Join(words, ", "), 600)
		}
	}
	if b.staged != nil || len(b.jobs) > 0 || !slices.Equal(b.nextNIC, b.network) {
		seen["staged"] = "a change waits for the next boot"
	}
	return plan.Obj(map[string]plan.Value{"First": first, "OtherNICs": plan.Strs(others...)}), seen, nil
}

func echoBoot(want plan.Value) plan.Value { return want }

// restricts tells whether the options of other NICs are to be switched off.
func (k *conn) restricts(t *plan.Target) bool {
	way := k.family.boot
	if way != bootRestrict && way != bootJob {
		return way == bootPlain && t.Site.BMC.RestrictBoot // the NIC has to be known, and comes first
	}
	if v := k.family.settings(t.Site.BMC); v != nil && v.RestrictBoot != nil {
		return *v.RestrictBoot
	}
	return t.Site.BMC.RestrictBoot
}

// bootState is the live value. Where boot is not restricted, any network option
// first is as wanted.
func (k *conn) bootState(ctx context.Context, t *plan.Target, b *boot, wanted plan.MAC) (first plan.Value, others []string, fault *plan.Fault) {
	shown := map[string]plan.Value{"BootOptionReference": plan.Str(b.order[0]), "DisplayName": plan.Null, "MACAddress": plan.Null}
	if k.family.boot == bootClasses {
		return k.classState(b, wanted, shown), nil, nil
	}
	for _, reference := range b.order { // one that is off is passed over
		o := b.option(reference)
		if o != nil && o.switched && !o.enabled {
			continue
		}
		shown["BootOptionReference"] = plan.Str(reference)
		if o == nil {
			break
		}
		shown["DisplayName"] = textOrNull(o.document, "DisplayName")
		if fault := k.identifyOption(ctx, b, o); fault != nil {
			return plan.Null, nil, fault
		}
		switch {
		case !k.restricts(t) && o.network:
			shown["MACAddress"] = plan.Str(wanted.String()) // any will do
		case !o.mac.IsZero():
			shown["MACAddress"] = plan.Str(o.mac.String())
		}
		break
	}
	if !k.restricts(t) || k.family.boot == bootPlain {
		return plan.Obj(shown), nil, nil
	}
	for i := range b.options {
		o := &b.options[i]
		if !o.network || !o.enabled {
			continue
		}
		if fault := k.identifyOption(ctx, b, o); fault != nil {
			return plan.Null, nil, fault
		}
		if o.mac != wanted {
			others = append(others, o.reference)
		}
	}
	return plan.Obj(shown), others, nil
}

// optionsOf are the options of a NIC, in the order in which they are booted, those
// that the order lacks last.
func (k *conn) optionsOf(ctx context.Context, b *boot, mac plan.MAC) ([]*bootOption, *plan.Fault) {
	var out []*bootOption
	for i := range b.options {
		o := &b.options[i]
		if !o.network {
			continue
		}
		if len(out) > 0 && !o.enabled && o.switched && o.mac.IsZero() {
			continue // one is known, and this one is off: it need not be
		}
		if fault := k.identifyOption(ctx, b, o); fault != nil {
			return nil, fault
		}
		if o.mac == mac {
			out = append(out, o)
		}
	}
	place := func(o *bootOption) int {
		if i := slices.Index(b.order, o.reference); i >= 0 {
			return i
		}
		return len(b.order)
	}
	slices.SortStableFunc(out, func(x, y *bootOption) int { return place(x) - place(y) })
	return out, nil
}

// setBootOrder makes the next change that is missing: the NIC's options on, those
// of others off, the order, and then the boot that brings it.
func setBootOrder(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
	if memo == nil {
		memo = plan.Memo{}
	}
	h, fault := k.host(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	if memo[memoJob] != "" {
		if r := k.followJob(ctx, h, memo); r != nil {
			return *r
		}
		return plan.Done()
	}
	k.storing = true // until a job has it, or nothing more is to be stored
	r := k.storeBoot(ctx, t, step, h, memo)
	k.storing = r.Outcome == plan.OutcomeWait && r.Memo[memoJob] == "" && r.Memo[memoStaged] == "" && r.After < jobPause
	return r
}

func (k *conn) storeBoot(ctx context.Context, t *plan.Target, step *plan.Step, h host, memo plan.Memo) plan.Result {
	b, fault := k.boot(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	wanted := parseMAC(plan.Text(plan.Attr(step.After, "First"), "MACAddress"))
	way := k.family.boot
	switch {
	case way == bootClasses:
		return k.setClasses(ctx, h, &b, wanted, memo)
	case way == bootRestrict && !k.restricts(t):
		return plan.Already()
	case way == bootJob && len(b.jobs) > 0 && memo[memoTouched] == "":
		return k.jobInTheWay(ctx, &b, memo)
	}
	goal, fault := k.bootGoal(ctx, t, &b, wanted)
	if fault != nil {
		return plan.Failed(fault)
	}
	if memo[memoReset] == "" { // after it nothing is written any more: what did not stick is told
		if r := k.switchOptions(ctx, &b, goal, memo); r != nil {
			return *r
		}
		if r := k.storeOrder(ctx, &b, goal, memo); r != nil {
			return *r
		}
		switch {
		case way == bootJob && len(b.jobs) > 0:
			return k.jobInTheWay(ctx, &b, memo)
		case way == bootJob && (b.staged != nil || memo[memoTouched] != ""):
			return k.commitBoot(ctx, memo)
		case way == bootPlain, b.staged == nil && goal.reached(&b):
			return plan.Already() // nothing was missing, or another boot has brought it
		}
	}
	if r := k.reboot(ctx, h, memo, "the boot order is stored"); r != nil {
		return *r
	}
	return plan.Done()
}

// jobInTheWay: the queue of the iDRAC holds a job. If this step made it, it is
// followed; one of another step or person has to be over first. One that waits for
// a boot and in which there is no BIOS setting can only be of options that were
// switched, which an iDRAC does not show: a run left it that ended before the boot.
// Nobody else would ever boot the host for it.
func (k *conn) jobInTheWay(ctx context.Context, b *boot, memo plan.Memo) plan.Result {
	j := b.jobs[0]
	ours := memo[memoTouched] != "" || b.staged != nil
	if !ours && j.queued() {
		settings, fault := k.bios(ctx)
		if fault != nil && !isCode(fault, plan.CodeBMCUnsupported) {
			return plan.Failed(fault)
		}
		ours = fault == nil && len(settings.foreign(nil, registry{})) == 0
	}
	if ours {
		memo[memoJob] = j.id()
		return plan.Wait(firstPause, "job "+j.id()+" is "+j.state()+" and holds the boot order", memo)
	}
	return plan.Wait(jobPause, "job "+j.id()+" is "+j.state()+" and must be over before the boot order is changed", memo)
}

// bootGoal is what options and order shall be.
type bootGoal struct {
	on    map[string]bool // by reference; absent: left alone
	order []string
}

// reached reports whether the options are on and off as they shall be, without a
// boot that is still to come.
func (g bootGoal) reached(b *boot) bool {
	for _, o := range b.options {
		if on, ok := g.on[o.reference]; ok && on != o.enabled {
			return false
		}
	}
	return true
}

// bootGoal works out the change; it fails closed.
func (k *conn) bootGoal(ctx context.Context, t *plan.Target, b *boot, wanted plan.MAC) (bootGoal, *plan.Fault) {
	goal := bootGoal{on: map[string]bool{}}
	var front []string
	if k.restricts(t) {
		own, fault := k.optionsOf(ctx, b, wanted)
		if fault != nil {
			return goal, fault
		}
		if len(own) == 0 {
			nic, _ := t.Intent.ProvisioningNIC()
			var words []string
			for _, o := range b.options {
				words = append(words, o.words())
			}
			return goal, unidentified(k.device, nic, cut(strings.Join(words, ", "), 600))
		}
		for _, o := range own {
			front = append(front, o.reference)
			if o.switched {
				goal.on[o.reference] = true
			}
		}
		if k.family.boot != bootPlain {
			for _, o := range b.options {
				if o.network && o.switched && !slices.Contains(front, o.reference) {
					goal.on[o.reference] = false
				}
			}
		}
	} else { // by label: network options first, as they stand
		for _, reference := range b.order {
			if o := b.option(reference); o != nil && o.network {
				front = append(front, reference)
			}
		}
	}
	goal.order = slices.Clone(front)
	for _, reference := range b.order {
		if !slices.Contains(front, reference) {
			goal.order = append(goal.order, reference)
		}
	}
	return goal, nil
}

// memoSwitched are the options that this step has switched. An iDRAC shows them
// as they were until the boot.
const memoSwitched = "switched"

// memoTouched: something of this step waits for the next boot.
const memoTouched = "touched"

// switchOptions switches the next option that is not as wanted; nil when all are.
func (k *conn) switchOptions(ctx context.Context, b *boot, goal bootGoal, memo plan.Memo) *plan.Result {
	done := strings.Fields(memo[memoSwitched])
	for _, on := range []bool{true, false} { // the right one first: never all off
		for _, o := range b.options {
			want, ok := goal.on[o.reference]
			if !ok || want != on || slices.Contains(done, o.reference) {
				continue
			}
			now, at, etag, fault := k.optionNow(ctx, o)
			if fault != nil {
				return failedWith(fault)
			}
			if now == want {
				continue
			}
			ans, fault := k.patch(ctx, change{on: o.document, at: at, etagOf: etag, body: map[string]any{"BootOptionEnabled": want}, same: func(d document) bool {
				v, _ := d.yes("BootOptionEnabled")
				return v == o.enabled
			}})
			if isCode(fault, plan.CodeBMCUnsupported) && at != o.path && ans != nil && missing(ans.status) {
				ans, fault = k.patch(ctx, change{on: o.document, direct: true, body: map[string]any{"BootOptionEnabled": want}, same: func(document) bool { return true }})
			}
			if fault != nil && ans != nil && has(messages(ans.body), idsCommitted...) && len(done) > 0 {
				return failedWith(k.oneOptionPerJob(ctx, fault))
			}
			if fault != nil {
				return failedWith(fault)
			}
			memo[memoSwitched], memo[memoTouched] = strings.Join(append(done, o.reference), " "), "yes"
			word := "off"
			if want {
				word = "on"
			}
			return waiting(firstPause, o.words()+" was switched "+word, memo)
		}
	}
	return nil
}

// oneOptionPerJob: this firmware commits each option by a job of its own. Booting
// the host once for each is not what was planned; the job is taken back.
func (k *conn) oneOptionPerJob(ctx context.Context, fault *plan.Fault) *plan.Fault {
	fault = fault.WithHint("This firmware takes one boot option per job and boot. Nothing was kept. Update the iDRAC, or switch the options off by hand, or set restrict_boot = false in bmc.idrac.")
	jobs, f := k.openJobs(ctx)
	for _, j := range jobs {
		if f == nil && j.queued() {
			f = k.deleteJob(ctx, j.id())
		}
	}
	if f != nil {
		fault = fault.With("deletion", f.Error())
	}
	return fault
}

// optionNow tells how an option will be after the next boot, and where it is
// written.
func (k *conn) optionNow(ctx context.Context, o bootOption) (enabled bool, at, etag string, fault *plan.Fault) {
	if o.expanded {
		if o.document, fault = k.get(ctx, o.path); fault != nil {
			return false, "", "", fault
		}
	}
	settings := o.link("@Redfish.Settings", "SettingsObject")
	if settings == "" {
		return o.enabled, o.path, o.etag, nil
	}
	d, fault := k.get(ctx, settings)
	if isCode(fault, plan.CodeBMCUnsupported) {
		return o.enabled, o.path, o.etag, nil
	}
	if fault != nil {
		return false, "", "", fault
	}
	if v, ok := d.yes("BootOptionEnabled"); ok {
		return v, d.path, d.etag, nil
	}
	return o.enabled, d.path, d.etag, nil
}

// storeOrder writes the whole order; nil when it is so, or waits to be.
func (k *conn) storeOrder(ctx context.Context, b *boot, goal bootGoal, memo plan.Memo) *plan.Result {
	have := b.order
	if b.staged != nil {
		have = b.staged
	}
	if slices.Equal(have, goal.order) {
		return nil
	}
	body := map[string]any{"Boot": map[string]any{"BootOrder": goal.order}}
	same := func(d document) bool { return slices.Equal(d.list("Boot", "BootOrder"), b.order) }
	ans, fault := k.patch(ctx, change{on: b.system, at: b.at, etagOf: b.etag, body: body, same: same})
	if isCode(fault, plan.CodeBMCUnsupported) && b.at == b.system.path {
		// iDRAC 10 takes it at the settings object, which it may not name.
		ans, fault = k.patch(ctx, change{on: b.system, at: strings.TrimSuffix(b.system.path, "/") + "/Settings", body: body, same: same})
	}
	if k.family.boot == bootJob {
		if fault != nil && ans != nil && len(b.jobs) > 0 && has(messages(ans.body), idsCommitted...) {
			return failedWith(k.oneOptionPerJob(ctx, fault))
		}
		memo[memoTouched] = "yes"
		r := k.committed(ans, fault, memo)
		return &r
	}
	switch {
	case fault != nil:
		return failedWith(fault)
	case ans.status == http.StatusAccepted:
		r := k.accepted(ans)
		return &r
	case k.family.boot == bootPlain:
		r := plan.Done()
		return &r
	}
	memo[memoTouched] = "yes"
	return waiting(firstPause, "the boot order is stored for the next boot", memo)
}

// commitBoot makes the job for switched options where the order was right and
// made none.
func (k *conn) commitBoot(ctx context.Context, memo plan.Memo) plan.Result {
	bios := k.tree.system.link("Bios")
	path, fault := k.jobsPath(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	if bios == "" {
		return plan.Failed(k.lacks(k.tree.system, "BIOS whose job could bring the boot order"))
	}
	ans, fault := k.ask(ctx, http.MethodPost, path, map[string]any{"TargetSettingsURI": strings.TrimSuffix(resolve(bios), "/") + "/Settings"})
	return k.committed(ans, fault, memo)
}
