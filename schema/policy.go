package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

func policyBlock() *block {
	return &block{
		name: "policy", many: true, since: version01,
		label: &label{name: "NAME", doc: "the name under which plans and `--approve` know the policy", example: "no_reboot_in_business_hours", check: isIdentifier},
		doc: "A rule over plans. Exactly one of `deny`, `warn` and `require_approval` is set; its expression is asked when a plan is made and again when it is applied. " +
			"`count_effect` counts in the plan as a whole only. An expression that uses `step` is asked about every step, one that uses `device` alone about every device, any other about the plan as a whole; the functions look at that step, at the steps of that device, or at all steps. " +
			"What is blocked already is not looked at. An expression that cannot be decided denies, whatever the policy would do.",
		attrs: []attribute{
			{name: "deny", typ: conditionType, fallbackDoc: "one of the three is set", example: `has_effect("reboot") && within("08:00", "18:00", "Europe/London")`, since: version01,
				doc: "When it is true, the step, the device's steps or all steps are blocked, and with them what would come after.", effect: "steps are blocked, exit 13"},
			{name: "warn", typ: conditionType, fallbackDoc: "one of the three is set", example: `count_effect("reboot") > 10`, since: version01,
				doc: "When it is true, the plan carries a warning.", effect: "a warning in the plan"},
			{name: "require_approval", typ: conditionType, fallbackDoc: "one of the three is set", example: `has_effect("erase") && device.rack == "r01"`, since: version01,
				doc: "When it is true, apply asks, also with `--auto-approve`, unless `--approve NAME` is given.", effect: "apply asks for the policy by its name"},
			{name: "owner", typ: textType, fallback: string(plan.OwnerInfra), enum: ownerNames(), example: `"INFRA_ENG"`, since: version01,
				doc: "Who decides about exceptions.", effect: "shown with the policy"},
			{name: "message", typ: textType, fallbackDoc: "the expression itself", example: `"Hosts are rebooted in the evening only."`, since: version01,
				doc: "One sentence for the person who meets the policy.", effect: "shown with the policy"},
		},
	}
}

func tolerateBlock() *block {
	return &block{
		name: "tolerate", many: true, since: version01,
		label: &label{name: "NAME", doc: "a name for messages", example: "serial_redirect", check: isIdentifier},
		doc:   "A difference that is accepted until a date: it is observed, not mended. Later it is mended again, and every run warns about the block until it is removed.",
		attrs: []attribute{
			{name: "address", typ: textType, required: true, check: isAddressPattern, example: `"*/bmc.bios"`, since: version01,
				doc: "Whose difference: a pattern over addresses, `SITE/DEVICE/SYSTEM.KIND[KEY]`. The site may be left out, `*` does not cross a slash; kinds with a key want it, as in `*/ironic.port[*]`.", effect: "which resources are meant"},
			{name: "path", typ: textType, required: true, check: isValuePath, example: `"SerialRedirect"`, since: version01,
				doc: "Which part of the value, as plans name it; what lies below it is meant too.", effect: "which difference is accepted"},
			{name: "reason", typ: textType, required: true, example: `"the vendor resets it at every boot"`, since: version01,
				doc: "Why.", effect: "shown with the difference"},
			{name: "until", typ: textType, required: true, check: isDay, example: `"2027-01-31"`, unit: "day", since: version01,
				doc: "The last day, in UTC.", effect: "when the difference is mended again"},
		},
	}
}

func isAddressPattern(s string) error {
	if err := plan.CheckPattern(s); err != nil {
		return fmt.Errorf("must be a pattern over addresses, and it %w", err)
	}
	return nil
}

func ownerNames() []string {
	return []string{string(plan.OwnerInfra), string(plan.OwnerOnsite), string(plan.OwnerNetBox), string(plan.OwnerFleet), string(plan.OwnerOpenStack)}
}

const dayForm = "2006-01-02"

func isDay(s string) error {
	if _, err := time.Parse(dayForm, s); err != nil {
		return errors.New("must be a day: year, month and day, for example \"2027-01-31\"")
	}
	return nil
}

var valuePathForm = regexp.MustCompile(`^[^\s.\[\]]+(?:\.[^\s.\[\]]+|\[[0-9]+\])*$`)

func isValuePath(s string) error {
	return form(valuePathForm, "must be a path as plans name it, for example \"SerialRedirect\" or \"Attributes.BootMode\" or \"NTPServers[0]\"")(s)
}

// policies converts the policy blocks of a site.
func (r *reporter) policies(site *rawBlock) []plan.Policy {
	var out []plan.Policy
	for _, b := range site.named("policy") {
		p := plan.Policy{Name: b.label, Owner: plan.Owner(get[string](b, "owner")), Message: get[string](b, "message")}
		var set []*rawAttr
		for _, action := range plan.PolicyActions() {
			if a := b.attr(string(action)); a != nil {
				set = append(set, a)
				p.Action, p.From = action, nearPlace(a)
			}
		}
		switch {
		case len(set) == 0 && !r.broken && !b.meant["deny"] && !b.meant["warn"] && !b.meant["require_approval"]:
			r.error(b.at, "Missing attribute", "The policy block needs one of deny, warn and require_approval. Write: deny = %s", b.spec.attribute("deny").example)
		case len(set) > 1:
			sort.Slice(set, func(i, j int) bool { return set[i].at.Start.Byte < set[j].at.Start.Byte })
			for _, a := range set[1:] {
				r.error(a.at, "Contradiction", "A policy does one thing, and this one does %s already. Write another policy block for %s.", quote(set[0].name), quote(a.name))
			}
		case len(set) == 1:
			if c, ok := set[0].value.(*condition); ok {
				c.sources = r.sources
				p.When, p.Subject, p.UsesDevice, p.Text = c, c.subject, c.usesDevice, c.text
			}
		}
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// maxToleration is how many years ahead a last day is meant as one.
const maxToleration = 3

// tolerations converts the tolerate blocks of a site. now is when the folder is
// read; the zero time means that no date is judged.
func (r *reporter) tolerations(site *rawBlock, now time.Time) []plan.Toleration {
	var out []plan.Toleration
	for _, b := range site.named("tolerate") {
		t := plan.Toleration{
			Name: b.label, Address: get[string](b, "address"), Path: get[string](b, "path"), Reason: get[string](b, "reason"), Last: get[string](b, "until"),
			From: fromHCLRange(b.at).near(),
		}
		if day, err := time.Parse(dayForm, t.Last); err == nil {
			t.Until = day.AddDate(0, 0, 1)
			a := b.attr("until")
			switch {
			case a == nil || now.IsZero():
			case t.Expired(now):
				r.warn(a.expr.Range(), "Toleration ended", "The last day of tolerate %s is past, so it tolerates nothing any more. Remove the block, or give it a later date.", quote(b.label))
			case t.Until.After(now.AddDate(maxToleration, 0, 0)):
				r.warn(a.expr.Range(), "Toleration without an end", "The last day of tolerate %s is more than %d years away, when nobody will know any more why. Write a nearer one and decide again then, or want what is there.", quote(b.label), maxToleration)
			}
		}
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func nearPlace(a *rawAttr) string { return fromHCLRange(a.at).near() }

// near is file:line without the folder: plans do not depend on where a checkout
// stands.
func (r Range) near() string {
	r.Filename = filepath.Base(r.Filename)
	return r.String()
}

// condition is the compiled expression of a policy.
type condition struct {
	attr       *rawAttr
	scope      *scope // with var and local
	subject    plan.PolicySubject
	usesDevice bool
	text       string
	sources    map[string]*source
	devices    sync.Map // device.* by *plan.Intent: NetBox's documents are large
}

// condition checks an expression over plans, of which there is none yet.
func (r *reporter) condition(a *rawAttr, sc *scope) (*condition, bool) {
	c := &condition{attr: a, scope: sc, subject: plan.SubjectPlan, text: r.conditionText(a)}
	probe := c.probe()
	refs, ok := r.walk(a.expr, probe.functions)
	for _, ref := range refs {
		ok = r.checkReference(ref, probe) && ok
		switch root, _ := ref.names(); root {
		case "step":
			c.subject = plan.SubjectStep
		case "device":
			c.usesDevice = true
		}
	}
	if c.usesDevice && c.subject == plan.SubjectPlan {
		c.subject = plan.SubjectDevice
	}
	if !ok {
		return nil, false
	}
	if c.subject != plan.SubjectPlan && !r.countsWhole(a.expr, c.subject) {
		return nil, false
	}
	v, diags := a.expr.Value(probe.context())
	r.fromHCL(diags)
	switch {
	case diags.HasErrors():
		return nil, false
	case v.IsKnown() && (v.IsNull() || v.Type() != cty.Bool), !v.IsKnown() && v.Type() != cty.DynamicPseudoType && v.Type() != cty.Bool:
		r.error(a.expr.Range(), "Unsuitable value", "%s must be a condition, which is true or false, not %s. Write: %s = %s", quote(a.name), typeName(v), a.name, a.spec.example)
		return nil, false
	}
	return c, r.decides(a.expr, probe.context())
}

// countsWhole refuses to count devices in a condition that is asked about one of
// them, or about one step: the number would never be more than one.
func (r *reporter) countsWhole(expr hclsyntax.Expression, subject plan.PolicySubject) bool {
	good := true
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics { // it reports nothing
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "count_effect" {
			good = false
			r.error(call.NameRange, "Count of one", "A condition with %[1]s.* is asked about every %[1]s by itself, where there is one device to count at most. Use has_effect, or leave %[1]s out and count in the plan as a whole.", subject)
		}
		return nil
	})
	return good
}

// conditionText is the expression in one line.
func (r *reporter) conditionText(a *rawAttr) string {
	at := a.expr.Range()
	src := r.sources[at.Filename]
	if src == nil || src.hides(at) || src.text(at) == "" {
		return hiddenText // also of an expression that does not parse, whose end is not known
	}
	return strings.Join(strings.Fields(src.text(at)), " ")
}

// probe is a scope in which there is neither a device nor a step, and whose
// functions say nothing but whether their arguments make sense.
func (c *condition) probe() *scope {
	sc := c.scope.with("device", unknownDevice()).with("step", unknownStep())
	sc.functions = policyFunctions(plan.PolicyCase{}, true)
	for name, fn := range c.scope.functions {
		sc.functions[name] = fn
	}
	return sc
}

// context is what the expression sees of one case.
func (c *condition) context(pc plan.PolicyCase) *hcl.EvalContext {
	ctx := c.scope.context().NewChild()
	ctx.Functions = policyFunctions(pc, false)
	ctx.Variables = map[string]cty.Value{}
	if pc.Target != nil {
		device, known := c.devices.Load(pc.Target.Intent)
		if !known {
			device = deviceValue(pc.Target.Intent)
			c.devices.Store(pc.Target.Intent, device)
		}
		ctx.Variables["device"] = device.(cty.Value)
	}
	if pc.Step != nil {
		ctx.Variables["step"] = stepValue(pc.Step)
	}
	return ctx
}

// MarshalJSON gives the expression with the values of the variables and locals
// that it uses: a site whose policies mean something else is another site
// (plan.Site.Hash).
func (c *condition) MarshalJSON() ([]byte, error) {
	values := map[string]json.RawMessage{}
	for _, t := range c.attr.expr.Variables() {
		root, name := (reference{steps: t}).names()
		if root != "var" && root != "local" {
			continue
		}
		v, diags := t[:min(2, len(t))].TraverseAbs(c.scope.context()) // all of it: two references may go different ways
		if diags.HasErrors() || holdsSecret(v) {
			continue // it cannot be decided by
		}
		values[root+"."+name] = plan.ToJSON(v)
	}
	return json.Marshal(map[string]any{"text": c.text, "values": values})
}

var (
	errUndecided = errors.New("it depends on something that is not known")
	errNoBool    = errors.New("it is neither true nor false")
)

// Holds implements plan.Condition. It may be called from many goroutines. A
// defect of the evaluator counts as an expression that cannot be decided.
func (c *condition) Holds(pc plan.PolicyCase) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			holds, err = false, fmt.Errorf("the expression broke down: %v", p)
		}
	}()
	r := &reporter{sources: c.sources}
	v, diags := c.attr.expr.Value(c.context(pc))
	r.fromHCL(diags)
	switch {
	case diags.HasErrors():
		return false, firstOf(r.diags)
	case !v.IsKnown():
		return false, errUndecided
	case v.IsNull() || v.Type() != cty.Bool:
		return false, errNoBool
	}
	return v.True(), nil
}

// firstOf is the first mistake as one sentence, without its place: that stands
// beside it.
func firstOf(ds Diagnostics) error {
	for i := range ds {
		if ds[i].Severity == Error {
			return errors.New(ds[i].Summary + ": " + strings.TrimSuffix(ds[i].Detail, "."))
		}
	}
	return errUndecided
}

// stepType is the shape of step.* in policies, in the words of the plan file.
func stepType() map[string]cty.Type {
	return map[string]cty.Type{
		"address": cty.String, "site": cty.String, "device": cty.String, "system": cty.String, "kind": cty.String, "key": cty.String,
		"action": cty.String, "reason": cty.String, "because": cty.List(cty.String), "effects": cty.List(cty.String), "phase": cty.String,
		"serves": cty.List(cty.String), "sensitive": cty.Bool, "before_unknown": cty.Bool,
		"before": cty.DynamicPseudoType, "after": cty.DynamicPseudoType,
	}
}

// stepDocs explains each attribute of step.* for the reference page.
func stepDocs() map[string]string {
	return map[string]string{
		"address": "the whole address, for example `lon14/gpu-017/bmc.ntp`", "site": "its first part", "device": "name of the device; null for what devices share",
		"system": "`netbox`, `dhcp`, `bmc`, `ironic` or `check`", "kind": "SYSTEM.KIND, for example `bmc.ntp`", "key": "what stands in brackets; null without any",
		"action": "`create`, `update`, `remove`, `run`, `transition`, `wait` or `verify`", "reason": "why it is in the plan, for example `differs`",
		"because": "the paths or addresses that made it necessary", "effects": "what it does to the world, for example `reboot`", "phase": "its place in the workflow",
		"serves": "the devices that a shared step serves", "sensitive": "whether a secret is written", "before_unknown": "whether the live value cannot be seen yet",
		"before": "the live value", "after": "the wanted value; what becomes known only during apply makes an expression undecided, which denies",
	}
}

func unknownStep() cty.Value {
	attrs := map[string]cty.Value{}
	for name, t := range stepType() {
		attrs[name] = cty.UnknownVal(t)
	}
	return cty.ObjectVal(attrs)
}

func stepValue(s *plan.Step) cty.Value {
	effects := make([]string, len(s.Effects))
	for i, e := range s.Effects {
		effects[i] = string(e)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"address": cty.StringVal(s.Address.String()), "site": cty.StringVal(s.Address.Site), "device": textOrNull(s.Address.Device),
		"system": cty.StringVal(s.Address.System), "kind": cty.StringVal(s.Address.KindName()), "key": textOrNull(s.Address.Key),
		"action": cty.StringVal(string(s.Action)), "reason": cty.StringVal(string(s.Reason)), "because": textList(s.Because), "effects": textList(effects),
		"phase": cty.StringVal(s.Phase), "serves": textList(s.Serves), "sensitive": cty.BoolVal(s.Sensitive), "before_unknown": cty.BoolVal(s.BeforeUnknown),
		"before": anyValue(s.Before), "after": anyValue(s.After),
	})
}

func textList(list []string) cty.Value {
	if len(list) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	values := make([]cty.Value, len(list))
	for i, s := range list {
		values[i] = cty.StringVal(s)
	}
	return cty.ListVal(values)
}

// anyValue makes a value that was never set a null.
func anyValue(v cty.Value) cty.Value {
	if v == cty.NilVal {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return v
}
