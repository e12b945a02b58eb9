package bmc

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// biosRule is how a family takes BIOS settings.
type biosRule struct {
	// jobs: changes are committed by a job of the Lifecycle Controller, and the
	// settings object holds nothing but what is pending. Others keep a full copy.
	jobs bool
	// fallback is the last part of the settings object's path where the BIOS does
	// not name it; "" where only one that is named counts.
	fallback string
	// itself: the settings object of some firmware can only be read; changes for the
	// next boot are taken at the BIOS itself.
	itself bool
}

// A server with much memory boots for half an hour, and may do so twice.
const (
	slowBoot   = 35 * time.Minute
	biosBudget = 90 * time.Minute
)

func biosFacet() facet { return facet{kind: biosKind(), read: readBIOS, set: setBIOS, more: true} }

func biosKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.bios", Phase: plan.PhaseBMC,
		Doc: "The BIOS settings of the platform.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) {
				return nil
			}
			attributes, places := biosOf(t)
			if len(attributes) == 0 {
				return nil
			}
			want := map[string]plan.Value{}
			for name, v := range attributes {
				want[name] = scalar(v)
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "bios", ""), Want: plan.Obj(map[string]plan.Value{"Attributes": plan.Obj(want)}),
				From: from(places...), Effects: []plan.Effect{plan.EffectReboot}, Budget: plan.Duration(biosBudget),
			}}
		},
		Decide: decideBIOS,
	}
}

// biosOf collects the attributes of the target's platform: those of manufacturer
// and model, then those of the whole platform class, which go before.
func biosOf(t *plan.Target) (map[string]any, []string) {
	out := map[string]any{}
	var places []string
	for _, class := range t.Intent.PlatformNames() {
		for _, b := range t.Site.BMC.BIOS {
			if b.Class == class {
				maps.Copy(out, b.Attributes)
				places = append(places, t.Site.Set["bmc.bios."+b.Class+".attributes"])
			}
		}
	}
	return out, places
}

func decideBIOS(d plan.Decision) plan.Verdict {
	if d.Live.Presence == plan.Present {
		if wrong := d.Live.Evidence["impossible"]; wrong != "" {
			return plan.Verdict{Fault: plan.NewFault(plan.CodeConfigInvalid, "the BIOS of %s cannot be set as the site file says: %s", d.Resource.Address.Device, wrong).
				With("from", strings.Join(d.Resource.From, ", ")).With("registry", d.Live.Evidence["registry"])}
		}
	}
	v := plan.Compare(d)
	foreign := d.Live.Evidence["foreign"]
	switch {
	case foreign == "":
	case v.Step != nil && v.Step.Blocked == nil:
		v.Step.Blocked = &plan.Block{Rule: plan.RuleForeign, Text: "somebody else's BIOS settings wait for the next boot: " + foreign + "; apply or clear them first"}
	case v.Step == nil && v.Fault == nil:
		v.Observed = append(v.Observed, plan.Observation{Address: d.Resource.Address, Rule: "foreign_pending", Text: "BIOS settings of somebody else wait for the next boot: " + foreign, Want: plan.Null, Live: plan.Null})
	}
	if v.Step != nil && d.Live.Evidence["staged"] != "" {
		v.Step.Reason = plan.ReasonPending
	}
	return v
}

// bios is the BIOS of a host with what waits for a boot.
type bios struct {
	live    document
	pending document // the settings object
	path    string   // of the settings object
	full    bool     // it holds a copy of all, not only what is pending
	jobs    []job
}

func (k *conn) bios(ctx context.Context) (bios, *plan.Fault) {
	rule := k.family.bios
	link := k.tree.system.link("Bios")
	if link == "" {
		return bios{}, k.lacks(k.tree.system, "BIOS settings")
	}
	b := bios{full: !rule.jobs}
	var fault *plan.Fault
	if b.live, fault = k.get(ctx, link); fault != nil {
		return b, fault
	}
	if _, ok := b.live.top["Attributes"].(map[string]any); !ok {
		return b, k.lacks(b.live, "BIOS attributes; it may not have looked at the host yet")
	}
	b.path = b.live.link("@Redfish.Settings", "SettingsObject")
	if b.path == "" && rule.fallback != "" {
		b.path = strings.TrimSuffix(b.live.path, "/") + "/" + rule.fallback
	}
	if b.path == "" {
		return b, k.lacks(b.live, "settings object for its BIOS")
	}
	b.path = resolve(b.path)
	if b.pending, fault = k.get(ctx, b.path); fault != nil {
		return b, fault
	}
	if rule.jobs {
		b.jobs, fault = k.openJobs(ctx)
	}
	return b, fault
}

// value is an attribute's live value.
func (b bios) value(attribute string) (any, bool) { return b.live.at("Attributes", attribute) }

// waits tells whether a value of an attribute waits for a boot, and which. A full
// copy shows one only where it differs from the live value; some that hold only
// what is pending show it as live already.
func (b bios) waits(attribute string) (any, bool) {
	v, ok := b.pending.at("Attributes", attribute)
	if live, _ := b.live.at("Attributes", attribute); !ok || b.full && sameValue(v, live) {
		return nil, false
	}
	return v, true
}

// foreign lists the pending values that are not wanted.
func (b bios) foreign(want map[string]plan.Value, reg registry) []string {
	pending, _ := b.pending.at("Attributes")
	all, _ := pending.(map[string]any)
	var out []string
	for _, name := range sortedKeys(all) {
		v, waits := b.waits(name)
		if w, ok := want[name]; waits && (!ok || !reg.equal(name, w, v)) {
			out = append(out, name+" = "+string(plan.ToJSON(wireValue(v))))
		}
	}
	return out
}

func wireValue(v any) plan.Value {
	switch v := v.(type) {
	case nil:
		return plan.Null
	case float64:
		return cty.NumberFloatVal(v)
	}
	return scalar(v)
}

// readBIOS gives the wanted attributes as they are. What is equal by the
// registry's types has the wanted spelling.
func readBIOS(ctx context.Context, k *conn, _ *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault) {
	if _, fault := k.freshSystem(ctx); fault != nil {
		return plan.Null, nil, fault
	}
	b, fault := k.bios(ctx)
	if fault != nil {
		return plan.Null, nil, fault
	}
	wanted := plan.Attr(want, "Attributes").AsValueMap()
	seen := evidence{"url": k.base + b.live.path}
	reg := registry{}
	if !b.allEqual(wanted, reg) {
		if reg, fault = k.registry(ctx, b.live); fault != nil {
			return plan.Null, nil, fault
		}
		seen["registry"] = reg.path
	}
	out := map[string]plan.Value{}
	conflicts := reg.conflicts(b.value, wanted)
	var wrong, staged []string
	for _, name := range sortedKeys(wanted) {
		live, known := b.live.at("Attributes", name)
		out[name] = wireValue(live)
		switch {
		case !known:
			wrong = append(wrong, "it has no attribute "+name+b.meant(name))
		case reg.equal(name, wanted[name], live):
			out[name] = wanted[name]
			if conflicts[name] != "" {
				wrong = append(wrong, conflicts[name])
			}
		default:
			if problem := cmp.Or(reg.refuses(name, wanted[name]), conflicts[name]); problem != "" {
				wrong = append(wrong, problem)
			}
		}
		if v, waits := b.waits(name); waits && reg.equal(name, wanted[name], v) {
			staged = append(staged, name)
			if !b.full {
				out[name] = plan.Null // what is shown as live may be an echo of what is pending
			}
		}
	}
	seen["impossible"], seen["staged"] = strings.Join(wrong, "; "), strings.Join(staged, ", ")
	seen["foreign"] = strings.Join(b.foreign(wanted, reg), ", ")
	if seen["foreign"] == "" && len(b.jobs) > 0 && len(staged) == 0 {
		seen["foreign"] = "job " + b.jobs[0].id() + " is " + b.jobs[0].state()
	}
	return plan.Obj(map[string]plan.Value{"Attributes": plan.Obj(out)}), seen, nil
}

// meant is a hint at the attribute that was probably meant. Supermicro appends a
// number to its names (QuietBoot_002E, QuietBoot#002E).
func (b bios) meant(attribute string) string {
	attributes, _ := b.live.at("Attributes")
	all, _ := attributes.(map[string]any)
	names := sortedKeys(all)
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, attribute); ok && (rest[0] == '_' || rest[0] == '#') {
			return "; it has " + name
		}
	}
	if name := plan.Suggest(attribute, names); name != "" {
		return "; it has " + name
	}
	return ""
}

func (b bios) allEqual(want map[string]plan.Value, reg registry) bool {
	for name, w := range want {
		live, ok := b.live.at("Attributes", name)
		if !ok || !reg.equal(name, w, live) {
			return false
		}
		if _, waits := b.waits(name); waits {
			return false
		}
	}
	return true
}

// setBIOS stores what differs, sees it through the reset of the host, and ends
// when the BIOS has had its say; reading back tells whether it stuck.
func setBIOS(ctx context.Context, k *conn, _ *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
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
	b, fault := k.bios(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	wanted := plan.Attr(step.After, "Attributes").AsValueMap()
	reg := registry{}
	if !b.allEqual(wanted, reg) {
		if reg, fault = k.registry(ctx, b.live); fault != nil {
			return plan.Failed(fault)
		}
	}
	if list := b.foreign(wanted, reg); len(list) > 0 && memo[memoStaged] == "" {
		return plan.Failed(k.fault(plan.CodePlanStale, request{method: "GET", path: b.path}, "somebody else's BIOS settings wait for the next boot of %s: %s", k.device, strings.Join(list, ", ")).
			WithHint("Apply or clear them first: they would come in with the same reset."))
	}
	missing, staged := map[string]any{}, 0
	for name, w := range wanted {
		live, _ := b.live.at("Attributes", name)
		v, waits := b.waits(name)
		switch {
		case waits && reg.equal(name, w, v):
			staged++
		case !reg.equal(name, w, live):
			missing[name] = reg.wire(name, w, live)
		}
	}
	var r plan.Result
	if k.family.bios.jobs {
		r = k.stageJob(ctx, b, missing, staged, memo)
	} else {
		r = k.stageSettings(ctx, h, b, missing, staged, memo)
	}
	r.Fault = reg.explain(r.Fault, b.value, wanted)
	return r
}

// sameAs tells that a newer reading still has what a change was decided on.
func (b bios) sameAs(attributes map[string]any) func(document) bool {
	return func(now document) bool {
		for name := range attributes {
			was, _ := b.live.at("Attributes", name)
			if v, _ := now.at("Attributes", name); !sameValue(v, was) {
				return false
			}
		}
		return true
	}
}

// stageJob makes or adopts the one job of an iDRAC.
func (k *conn) stageJob(ctx context.Context, b bios, missing map[string]any, staged int, memo plan.Memo) plan.Result {
	switch {
	case len(b.jobs) > 0 && len(missing) == 0 && staged > 0:
		memo[memoJob] = b.jobs[0].id() // an earlier run's, or one that a reset has carried in
		return plan.Wait(firstPause, "job "+memo[memoJob]+" is "+b.jobs[0].state()+" and holds these settings", memo)
	case len(b.jobs) > 0:
		return plan.Wait(jobPause, "job "+b.jobs[0].id()+" is "+b.jobs[0].state()+" and must be over first", memo)
	case len(missing) == 0 && staged == 0:
		return plan.Already()
	case len(missing) > 0:
		// Without an apply time they are only stored, and one job can bring them
		// together with the boot order.
		ans, fault := k.patch(ctx, change{on: b.live, at: b.path, etagOf: b.pending.etag, same: b.sameAs(missing), body: map[string]any{"Attributes": missing}})
		if fault != nil || jobOf(ans) != "" {
			return k.committed(ans, fault, memo)
		}
		return plan.Wait(gatherPause, "BIOS settings are stored; their job comes next", memo)
	case k.storing:
		return plan.Wait(firstPause, "the boot order is stored first; one job brings both", memo)
	}
	path, fault := k.jobsPath(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	ans, fault := k.ask(ctx, http.MethodPost, path, map[string]any{"TargetSettingsURI": b.path})
	return k.committed(ans, fault, memo)
}

// committed takes the answer to a change that makes a job. Without a Location the
// job is found in the queue.
func (k *conn) committed(ans *answer, fault *plan.Fault, memo plan.Memo) plan.Result {
	if fault != nil {
		if ans != nil && has(messages(ans.body), idsCommitted...) {
			return plan.Wait(jobPause, "the iDRAC has committed settings already: looking for their job", memo)
		}
		return plan.Failed(fault)
	}
	if id := jobOf(ans); id != "" {
		memo[memoJob] = id
		return plan.Wait(firstPause, "job "+id+" was made", memo)
	}
	return plan.Wait(firstPause, "the change was taken: looking for its job", memo)
}

// stageSettings stores the differences for the next boot and waits for it.
func (k *conn) stageSettings(ctx context.Context, h host, b bios, missing map[string]any, staged int, memo plan.Memo) plan.Result {
	over := memo[memoReset] != ""
	if len(missing) > 0 && !over { // after the reset nothing is written any more: what did not stick is told
		if h.booting {
			return plan.Wait(bootPause, "the host boots; its settings are not touched meanwhile", memo)
		}
		c := change{on: b.live, at: b.path, etagOf: b.pending.etag, body: map[string]any{"Attributes": missing}, same: b.sameAs(missing)}
		r := k.write(ctx, c)
		if isCode(r.Fault, plan.CodeBMCUnsupported) && k.family.bios.itself {
			c.at, c.direct = "", true
			r = k.write(ctx, c)
		}
		return next(r, "BIOS settings are stored for the next boot")
	}
	if len(missing) == 0 && staged == 0 && !over {
		return plan.Already()
	}
	if r := k.reboot(ctx, h, memo, "BIOS settings are stored"); r != nil {
		return *r
	}
	if !h.told && len(missing)+staged > 0 && k.client.opt.Now().Sub(memoTime(memo, memoReset)) < slowBoot {
		return plan.Wait(bootPause, "the BMC does not tell whether the host still boots; the settings are not live yet", memo)
	}
	return plan.Done()
}

// registry is the BIOS attribute registry; the zero value knows nothing and
// compares by the types of JSON.
type registry struct {
	path         string
	rows         map[string]map[string]any
	dependencies []dependency
	momentary    map[string]bool // rows whose ReadOnly follows from dependencies
}

// registry reads the registry that the BIOS names. A BMC without one is no fault.
func (k *conn) registry(ctx context.Context, live document) (registry, *plan.Fault) {
	reg := registry{}
	name := live.text("AttributeRegistry")
	all := k.tree.root.link("Registries")
	if name == "" || all == "" {
		return reg, nil
	}
	file, fault := k.get(ctx, strings.TrimSuffix(resolve(all), "/")+"/"+name)
	if isCode(fault, plan.CodeBMCUnsupported) {
		file, fault = k.registryFile(ctx, all, name)
	}
	if isCode(fault, plan.CodeBMCUnsupported) {
		return reg, nil
	}
	if fault != nil {
		return reg, fault
	}
	locations, _ := file.at("Location")
	list, _ := locations.([]any)
	for _, item := range list {
		at, _ := item.(map[string]any)
		uri, _ := at["Uri"].(string)
		if language, _ := at["Language"].(string); uri == "" || language != "" && !strings.HasPrefix(language, "en") {
			continue
		}
		d, fault := k.get(ctx, uri)
		if isCode(fault, plan.CodeBMCUnsupported) {
			continue
		}
		if fault != nil {
			return reg, fault
		}
		return parseRegistry(d), nil
	}
	return reg, nil
}

// registryFile finds a registry in the list of all: the BIOS may name it with its
// version and the list without, or the other way round.
func (k *conn) registryFile(ctx context.Context, all, wanted string) (document, *plan.Fault) {
	list, fault := k.get(ctx, all)
	if fault != nil {
		return list, fault
	}
	bare := func(s string) string { s, _, _ = strings.Cut(s, "."); return s }
	for _, link := range list.links("Members") {
		if strings.EqualFold(bare(name(link)), bare(wanted)) {
			return k.get(ctx, link)
		}
	}
	return list, k.lacks(list, "registry "+wanted)
}

// parseRegistry reads the rows of a registry, tolerantly.
func parseRegistry(d document) registry {
	reg := registry{path: d.path, rows: map[string]map[string]any{}, dependencies: parseDependencies(d), momentary: map[string]bool{}}
	attributes, _ := d.at("RegistryEntries", "Attributes")
	list, _ := attributes.([]any)
	for _, item := range list {
		row, _ := item.(map[string]any)
		if name, _ := row["AttributeName"].(string); name != "" {
			reg.rows[name] = row
		}
	}
	for _, dep := range reg.dependencies {
		if dep.property == "ReadOnly" && dep.value == true {
			reg.momentary[dep.to] = true
		}
	}
	return reg
}

// readOnly tells that the row of an attribute says so.
func (r registry) readOnly(attribute string) bool {
	row := r.rows[attribute]
	return row["ReadOnly"] == true || row["Readonly"] == true
}

// values are the names of an enumeration with their display names.
func (r registry) values(attribute string) [][2]string {
	list, _ := r.rows[attribute]["Value"].([]any)
	var out [][2]string
	for _, item := range list {
		v, _ := item.(map[string]any)
		name, _ := v["ValueName"].(string)
		shown, _ := v["ValueDisplayName"].(string)
		if name != "" {
			out = append(out, [2]string{name, shown})
		}
	}
	return out
}

// plainText is how a value is written as text.
func plainText(v plan.Value) string {
	switch {
	case v.IsNull() || !v.IsKnown():
		return ""
	case v.Type() == cty.String:
		return v.AsString()
	}
	return string(plan.ToJSON(v))
}

// equal compares a wanted value with one of the BMC's: numbers as numbers
// whatever their spelling, enumerations by name or display name, the rest as text.
func (r registry) equal(attribute string, want plan.Value, have any) bool {
	if have == nil {
		return false
	}
	w, h := plainText(want), plainText(wireValue(have))
	if w == h {
		return true
	}
	number, isNumber := have.(float64)
	if isNumber || r.rows[attribute]["Type"] == "Integer" {
		a, okA := new(big.Float).SetString(w)
		b, okB := new(big.Float).SetString(h)
		if !okA || !okB {
			return false
		}
		near, _ := a.Float64() // JSON numbers beyond 53 bits were rounded when they were read
		return a.Cmp(b) == 0 || isNumber && near == number
	}
	for _, v := range r.values(attribute) {
		if (v[0] == h || v[1] == h) && (v[0] == w || v[1] == w) {
			return true
		}
	}
	return false
}

// wire is a wanted value as it is sent: of the registry's type, else of the type
// that the BMC shows.
func (r registry) wire(attribute string, want plan.Value, live any) any {
	text := plainText(want)
	for _, v := range r.values(attribute) {
		if v[0] == text || v[1] == text {
			return v[0]
		}
	}
	kind, _ := r.rows[attribute]["Type"].(string)
	_, number := live.(float64)
	_, boolean := live.(bool)
	switch {
	case kind == "Integer" || kind == "" && number:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, ok := new(big.Int).SetString(text, 10); ok {
			return json.Number(n.String()) // beyond 64 bits with a sign
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	case kind == "Boolean" || kind == "" && boolean:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

// refuses says why an attribute cannot have a value, "" when it can.
func (r registry) refuses(attribute string, want plan.Value) string {
	row, ok := r.rows[attribute]
	if !ok {
		return "" // a registry may leave rows out
	}
	text := plainText(want)
	if r.readOnly(attribute) && !r.momentary[attribute] {
		return attribute + " can only be read"
	}
	values := r.values(attribute)
	if len(values) > 0 {
		var names []string
		for _, v := range values {
			if v[0] == text || v[1] == text {
				return ""
			}
			names = append(names, v[0])
		}
		return attribute + " takes " + strings.Join(names, ", ") + " and not " + strconv.Quote(text)
	}
	if row["Type"] == "Integer" {
		n, ok := new(big.Float).SetString(text)
		low, okLow := bound(row["LowerBound"])
		up, okUp := bound(row["UpperBound"])
		switch {
		case !ok || !n.IsInt():
			return attribute + " takes a whole number and not " + strconv.Quote(text)
		case okLow && okUp && low.Cmp(up) >= 0: // no bounds
		case okLow && okUp && (n.Cmp(low) < 0 || n.Cmp(up) > 0):
			return attribute + " takes " + low.Text('f', 0) + " to " + up.Text('f', 0) + " and not " + text
		case okUp && up.Sign() > 0 && n.Cmp(up) > 0:
			return attribute + " takes at most " + up.Text('f', 0) + " and not " + text
		}
	}
	return ""
}

// bound reads a bound; some are beyond 64 bits, -1 says that there is none.
func bound(v any) (*big.Float, bool) {
	f, ok := v.(float64)
	if !ok || f == -1 {
		return nil, false
	}
	return big.NewFloat(f), true
}
