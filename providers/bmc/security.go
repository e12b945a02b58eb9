package bmc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// securityRow says where a family keeps one setting of the security block.
type securityRow struct {
	setting string // as the wanted value names it
	place   place
	keys    []string
	// words translate; none: the value is written as it is. A firmware may write
	// the same thing as a boolean or as a word: those of the type that it shows are
	// taken.
	words []secWord
	// otherwise is what the family has without the property; nil: it lacks the
	// setting.
	otherwise any
	last      bool // written after all others
}

type secWord struct{ means, wire any }

// place is a resource that holds settings.
type place string

// The places of security settings.
const (
	placeProtocol   place = "network protocol"
	placeManager    place = "manager"
	placeAccounts   place = "account service"
	placeAttributes place = "attributes"
	placeXCC        place = "security service" // Lenovo's
	placeLockdown   place = "system lockdown"  // Supermicro's
)

func securityFacet() facet {
	return facet{kind: securityKind(), read: readSecurity, set: setSecurity, more: true}
}

func securityKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.security", Phase: plan.PhaseBMC, Last: true, // it may lock down what the others change
		Doc: "What the BMC offers to the network and to the host.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) {
				return nil
			}
			want := wantedSecurity(t.Site.BMC)
			if len(want) == 0 {
				return nil
			}
			return []plan.Resource{{Address: t.Address("bmc", "security", ""), Want: plan.Obj(want), From: from(securityPlaces(t.Site.Set)...)}}
		},
		Decide: decideSecurity,
	}
}

func securityPlaces(set map[string]string) []string {
	var out []string
	for _, key := range sortedKeys(set) {
		block, attribute := key[:strings.LastIndexByte(key, '.')+1], key[strings.LastIndexByte(key, '.')+1:]
		if block == "bmc.security." || slices.Contains([]string{"bmc.idrac.", "bmc.xcc.", "bmc.supermicro."}, block) && attribute != "restrict_boot" {
			out = append(out, set[key])
		}
	}
	return out
}

// wantedSecurity is one object: what any family may have at the top, what only
// one has below its name.
func wantedSecurity(s *plan.BMCSettings) map[string]plan.Value {
	want := map[string]plan.Value{}
	flag := func(into map[string]plan.Value, name string, v *bool) {
		if v != nil {
			into[name] = plan.Bool(*v)
		}
	}
	if sec := s.Security; sec != nil {
		flag(want, "HTTP", sec.HTTP)
		flag(want, "SSH", sec.SSH)
		flag(want, "Telnet", sec.Telnet)
		flag(want, "VNC", sec.VNC)
		flag(want, "SSDP", sec.SSDP)
		flag(want, "HostInterface", sec.HostInterface)
		if sec.SNMP != "" {
			want["SNMP"] = plan.Str(sec.SNMP)
		}
		if sec.MinTLSVersion != "" {
			want["MinTLSVersion"] = plan.Str(sec.MinTLSVersion)
		}
		if sec.LockoutAttempts != nil {
			want["LockoutAttempts"] = plan.Int(*sec.LockoutAttempts)
		}
		if sec.LockoutDuration > 0 {
			want["LockoutSeconds"] = plan.Int(int(sec.LockoutDuration / time.Second))
		}
	}
	if v := s.IDRAC; v != nil {
		of := map[string]plan.Value{}
		flag(of, "IPBlocking", v.IPBlocking)
		flag(of, "Lockdown", v.Lockdown)
		for name, value := range v.Attributes {
			of[name] = scalar(value)
		}
		if len(of) > 0 {
			want["idrac"] = plan.Obj(of)
		}
	}
	if v := s.XCC; v != nil {
		of := map[string]plan.Value{}
		flag(of, "KCS", v.KCS)
		flag(of, "FirmwareRollback", v.FirmwareRollback)
		if len(of) > 0 {
			want["xcc"] = plan.Obj(of)
		}
	}
	if v := s.Supermicro; v != nil && v.Lockdown != nil {
		want["supermicro"] = plan.Obj(map[string]plan.Value{"Lockdown": plan.Bool(*v.Lockdown)})
	}
	return want
}

// scalar is a text, number or truth value of a site file.
func scalar(v any) plan.Value {
	switch v := v.(type) {
	case bool:
		return plan.Bool(v)
	case int:
		return plan.Int(v)
	case int64:
		return cty.NumberIntVal(v)
	case float64:
		return cty.NumberFloatVal(v)
	}
	return plan.Str(fmt.Sprint(v))
}

// decideSecurity shows what the family lacks and compares the rest.
func decideSecurity(d plan.Decision) plan.Verdict {
	if d.Live.Presence == plan.Unsupported {
		return unsupported(d)
	}
	var lacking []plan.Observation
	for _, why := range []struct{ evidence, text string }{
		{"lacking", "the BMC of %s has no %s that enroll can set"},
		{"untaken", "the BMC of %s does not take what is wanted of %s"},
	} {
		list := d.Live.Evidence[why.evidence]
		if d.Live.Presence != plan.Present || list == "" {
			continue
		}
		missing := map[string]bool{}
		for _, name := range strings.Split(list, ", ") {
			missing[name] = true
		}
		lacking = append(lacking, plan.Observation{
			Address: d.Resource.Address, Rule: string(plan.RuleUnsupported), Want: pick(d.Resource.Want, missing, true), Live: plan.Null,
			Text: fmt.Sprintf(why.text, d.Resource.Address.Device, list),
		})
		d.Resource.Want = pick(d.Resource.Want, missing, false)
	}
	v := plan.Compare(d)
	v.Observed = append(v.Observed, lacking...)
	if v.Step == nil && v.Fault == nil && d.Live.Evidence["locked_down"] != "" {
		for _, s := range d.Steps {
			if s.Address.System == "bmc" && s.Blocked == nil && s.Action.Mutates() {
				// The others lift the lockdown for their changes: it has to come back.
				v.Step = &plan.Step{Action: plan.ActionUpdate, Reason: plan.ReasonChanged, Because: []string{s.Address.Local()}, Before: plan.Unknown, BeforeUnknown: true, After: d.Resource.Want}
				break
			}
		}
	}
	return v
}

// pick keeps the attributes of an object that are, or are not, in a set.
func pick(v plan.Value, set map[string]bool, in bool) plan.Value {
	out := map[string]plan.Value{}
	for name, value := range v.AsValueMap() {
		if set[name] == in {
			out[name] = value
		}
	}
	return plan.Obj(out)
}

// readSecurity gives every wanted setting as the BMC has it. One that the family
// lacks, that does not take the value, or that is of another family, has the wanted
// value and is named in the evidence: nothing is to be written for it.
func readSecurity(ctx context.Context, k *conn, _ *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault) {
	if len(k.family.security) == 0 {
		return plan.Null, nil, k.familyLacks("security settings")
	}
	s, fault := k.security(ctx, want)
	if fault != nil {
		return plan.Null, nil, fault
	}
	out := map[string]plan.Value{}
	var lacking, untaken []string
	for _, name := range sortedKeys(want.AsValueMap()) {
		value := plan.Attr(want, name)
		switch {
		case value.Type().IsObjectType() && name != k.family.name:
			out[name] = value
		case value.Type().IsObjectType():
			inner := map[string]plan.Value{}
			for _, key := range sortedKeys(value.AsValueMap()) {
				if c, ok := s.cells[key]; ok {
					inner[key] = c.live
					continue
				}
				inner[key] = plan.Attr(value, key)
				lacking = append(lacking, name+"."+key)
			}
			out[name] = plan.Obj(inner)
		default:
			c, ok := s.cells[name]
			switch {
			case ok && c.takes(value):
				out[name] = c.live
			case ok:
				out[name] = value
				untaken = append(untaken, name)
			default:
				out[name] = value
				lacking = append(lacking, name)
			}
		}
	}
	seen := evidence{"url": k.base, "lacking": strings.Join(lacking, ", "), "untaken": strings.Join(untaken, ", ")}
	for name, c := range s.cells {
		if c.row.last && plan.Satisfies(plan.Bool(true), c.live) {
			seen["locked_down"] = name
		}
	}
	return plan.Obj(out), seen, nil
}

// secCell is one setting as it was found.
type secCell struct {
	row  securityRow
	on   document
	wire any
	live plan.Value
}

// takes tells that the BMC has the value or can be given it.
func (c secCell) takes(want plan.Value) bool {
	if plan.Satisfies(want, c.live) {
		return true
	}
	_, ok := c.row.wireOf(want, c.wire)
	return ok && c.wire != nil
}

type secState struct{ cells map[string]secCell }

// security reads the places of the wanted settings.
func (k *conn) security(ctx context.Context, want plan.Value) (secState, *plan.Fault) {
	s := secState{cells: map[string]secCell{}}
	wanted := want.AsValueMap()
	own := plan.Attr(want, k.family.name)
	rows := k.family.security
	if !own.IsNull() {
		for name, value := range own.AsValueMap() {
			wanted[name] = value
			if strings.Contains(name, ".") { // an attribute by its own name
				rows = append(rows[:len(rows):len(rows)], securityRow{setting: name, place: placeAttributes, keys: []string{"Attributes", name}})
			}
		}
	}
	places := map[place]document{}
	for _, row := range rows {
		if _, ok := wanted[row.setting]; !ok {
			continue
		}
		d, read := places[row.place]
		if !read {
			var fault *plan.Fault
			if d, fault = k.placeOf(ctx, row.place); fault != nil && !isCode(fault, plan.CodeBMCUnsupported) {
				return s, fault
			}
			places[row.place] = d
		}
		wire, ok := d.at(row.keys...)
		if _, taken := s.cells[row.setting]; taken && (!ok || wire == nil) {
			continue
		}
		switch {
		case ok && wire != nil:
			s.cells[row.setting] = secCell{row, d, wire, row.meaning(wire)}
		case row.otherwise != nil:
			s.cells[row.setting] = secCell{row: row, live: scalar(row.otherwise)}
		}
	}
	return s, nil
}

func (k *conn) placeOf(ctx context.Context, p place) (document, *plan.Fault) {
	switch p {
	case placeProtocol:
		return k.ofManager(ctx, "NetworkProtocol")
	case placeManager:
		return k.freshManager(ctx)
	case placeAttributes:
		return k.attributes(ctx)
	case placeXCC:
		return k.ofManagerOem(ctx, "Lenovo", "Security")
	case placeLockdown:
		return k.ofManagerOem(ctx, "Supermicro", "SysLockdown")
	case placeAccounts:
		path := k.tree.root.link("AccountService")
		if path == "" {
			return document{}, k.lacks(k.tree.root, "account service")
		}
		return k.get(ctx, path)
	}
	return document{}, plan.NewFault(plan.CodeInternal, "no place is called %q", p)
}

// meaning is a wire value in the words of the site file.
func (r securityRow) meaning(wire any) plan.Value {
	for _, w := range r.words {
		if w.wire == wire {
			return scalar(w.means)
		}
	}
	if n, ok := wire.(float64); ok {
		return cty.NumberFloatVal(n)
	}
	return scalar(wire)
}

// wireOf is the value that is sent for a wanted one; ok is false where the
// family cannot say it.
func (r securityRow) wireOf(want plan.Value, shown any) (any, bool) {
	if len(r.words) == 0 {
		switch {
		case want.Type() == cty.Bool:
			return want.True(), true
		case want.Type() == cty.Number:
			f, _ := want.AsBigFloat().Float64()
			return f, true
		}
		return want.AsString(), true
	}
	for _, w := range r.words {
		if fmt.Sprintf("%T", w.wire) == fmt.Sprintf("%T", shown) && plan.Satisfies(want, scalar(w.means)) {
			return w.wire, true
		}
	}
	return nil, false
}

// setSecurity writes the differing settings of one resource; the next call
// writes those of the next. What locks the BMC down comes last, and is taken
// off first when something else differs.
func setSecurity(ctx context.Context, k *conn, _ *plan.Target, step *plan.Step, _ plan.Memo) plan.Result {
	s, fault := k.security(ctx, step.After)
	if fault != nil {
		return plan.Failed(fault)
	}
	wanted := step.After.AsValueMap()
	if own := plan.Attr(step.After, k.family.name); !own.IsNull() {
		for name, value := range own.AsValueMap() {
			wanted[name] = value
		}
	}
	type group struct {
		on   document
		body map[string]any
		same []secCell
	}
	locked, unlock := false, secCell{} // the BMC is locked down now, by this setting
	groups := map[string]*group{}
	var order []string
	var late []secCell
	for _, name := range sortedKeys(wanted) {
		c, ok := s.cells[name]
		if ok && c.row.last && plan.Satisfies(plan.Bool(true), c.live) {
			locked = true
			unlock = c
		}
		if !ok || plan.Satisfies(wanted[name], c.live) || !c.takes(wanted[name]) {
			continue
		}
		wire, _ := c.row.wireOf(wanted[name], c.wire)
		if c.row.last {
			c.wire = wire
			late = append(late, c)
			continue
		}
		g := groups[c.on.path]
		if g == nil {
			g = &group{on: c.on, body: map[string]any{}}
			groups[c.on.path] = g
			order = append(order, c.on.path)
		}
		put(g.body, c.row.keys, wire)
		g.same = append(g.same, c)
	}
	if len(order) == 0 && len(late) == 0 {
		return plan.Already()
	}
	if locked && len(order) > 0 {
		off, _ := unlock.row.wireOf(plan.Bool(false), unlock.wire)
		body := map[string]any{}
		put(body, unlock.row.keys, off)
		return next(k.write(ctx, change{on: unlock.on, direct: true, body: body, same: func(document) bool { return true }}), "the lockdown was taken off; it comes back last")
	}
	if len(order) == 0 {
		body := map[string]any{}
		put(body, late[0].row.keys, late[0].wire)
		return k.write(ctx, change{on: late[0].on, direct: true, body: body, same: func(document) bool { return true }})
	}
	g := groups[order[0]]
	return next(k.write(ctx, change{on: g.on, direct: k.family.attributes, body: g.body, same: func(now document) bool {
		for _, c := range g.same {
			if v, _ := now.at(c.row.keys...); !sameValue(v, c.wire) {
				return false
			}
		}
		return true
	}}), "settings of "+name(g.on.path)+" were taken; others come next")
}

// put sets a property below an object.
func put(body map[string]any, keys []string, value any) {
	for _, key := range keys[:len(keys)-1] {
		inner, ok := body[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			body[key] = inner
		}
		body = inner
	}
	body[keys[len(keys)-1]] = value
}

// Rows that families have in common.

func onOff() []secWord { return []secWord{{true, enabledWord}, {false, disabledWord}} }

func protocolRow(setting, protocol string) securityRow {
	return securityRow{setting: setting, place: placeProtocol, keys: []string{protocol, "ProtocolEnabled"}}
}

// plainSecurity is what Redfish itself has.
func plainSecurity() []securityRow {
	telnet := protocolRow("Telnet", "Telnet")
	telnet.otherwise = false // a BMC that shows none serves none
	return []securityRow{
		protocolRow("HTTP", "HTTP"), protocolRow("SSH", "SSH"), telnet, protocolRow("SSDP", "SSDP"),
		{setting: "LockoutAttempts", place: placeAccounts, keys: []string{"AccountLockoutThreshold"}},
		{setting: "LockoutSeconds", place: placeAccounts, keys: []string{"AccountLockoutDuration"}},
	}
}

func attributeRow(setting, attribute string, words ...secWord) securityRow {
	return securityRow{setting: setting, place: placeAttributes, keys: []string{"Attributes", attribute}, words: words}
}
