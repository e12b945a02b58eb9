package schema

import (
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/enroll-dev/enroll/plan"
)

// evaluateBlock gives every attribute below a block its Go value. Attributes
// that may use device.* are evaluated with a device of which nothing but the
// shape is known.
func (r *reporter) evaluateBlock(b *rawBlock, sc *scope) {
	for _, a := range b.attrs {
		if a.spec.perDevice {
			r.evaluateAttr(a, sc.with("device", unknownDevice()))
			continue
		}
		if a.spec.typ == conditionType {
			if c, ok := r.condition(a, sc); ok {
				a.value = c
			}
			continue
		}
		r.evaluateAttr(a, sc)
	}
	for _, child := range b.blocks {
		r.evaluateBlock(child, sc)
	}
}

// evaluateAttr sets a.value: string, bool, int, time.Duration, [2]time.Duration,
// []string or plan.SecretRef. It stays nil when the value is wrong or not known.
func (r *reporter) evaluateAttr(a *rawAttr, sc *scope) {
	a.value, _ = r.goValue(a, sc)
}

// goValue gives an attribute's Go value. Nil and true mean that nothing is wrong
// but the value depends on what is not known yet.
func (r *reporter) goValue(a *rawAttr, sc *scope) (any, bool) {
	before := len(r.diags)
	value, ok := r.attributeValue(a, sc)
	if a.spec.typ != secretType && !saysWhere(a.name) {
		r.addValues(before, a.expr, sc)
	}
	return value, ok
}

func (r *reporter) attributeValue(a *rawAttr, sc *scope) (any, bool) {
	if a.looked == nil {
		looked := r.look(a.expr, sc.functions)
		a.looked = &looked
	}
	v, ok := r.valueOf(a.expr, *a.looked, sc)
	if !ok {
		return nil, false
	}
	if v.IsKnown() && v.IsNull() {
		r.error(a.expr.Range(), "Value missing", "%s must not be null. Write: %s = %s, or leave the attribute out.", quote(a.name), a.name, a.spec.example)
		return nil, false
	}
	c := &conversion{r: r, attr: a, at: a.expr.Range()}
	switch a.spec.typ {
	case textType:
		text, ok := c.text(a.expr, v)
		if s, isText := text.(string); isText && a.spec.path {
			return r.pathFrom(a.expr.Range().Filename, s), ok
		}
		return text, ok
	case boolType:
		return c.bool(v)
	case intType:
		return c.int(v)
	case durationType:
		return c.duration(a.expr, v)
	case secretType:
		return c.secret(v)
	case textListType:
		return c.texts(v)
	case durationPairType:
		return c.durations(v)
	case scalarMapType:
		return c.scalars(v)
	case constraintType, anyType, conditionType: // of variables and policies, which read them themselves
	}
	return nil, true
}

// pathFrom lets a relative path begin at the folder of the file that sets it.
func (r *reporter) pathFrom(file, name string) string {
	if src := r.sources[file]; src != nil && name != "" && !filepath.IsAbs(name) {
		return filepath.Join(src.folder, name)
	}
	return name
}

// value evaluates an expression. It reports unknown names, misplaced secrets and
// whatever the evaluator says.
func (r *reporter) value(expr hclsyntax.Expression, sc *scope) (cty.Value, bool) {
	return r.valueOf(expr, r.look(expr, sc.functions), sc)
}

// valueOf is value for an expression that was looked at before.
func (r *reporter) valueOf(expr hclsyntax.Expression, looked seen, sc *scope) (cty.Value, bool) {
	ok := looked.ok
	for _, ref := range looked.refs {
		ok = r.checkReference(ref, sc) && ok
	}
	if !ok {
		return cty.NilVal, false
	}
	ctx := sc.context()
	if src := r.sources[expr.Range().Filename]; src != nil {
		ctx = sc.contextIn(src.folder)
	}
	if !r.fits(expr, looked, ctx) {
		return cty.NilVal, false
	}
	v, diags := expr.Value(ctx)
	if len(diags) > 0 {
		r.fromHCL(r.withoutValues(diags, looked.refs, ctx))
	}
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	if !v.IsWhollyKnown() && !dependsOnUnknown(looked.refs, sc) {
		r.error(expr.Range(), "Secret inside an expression", "The value depends on what a secret is, or on whether two secrets are the same. Decide by something else, for example by a variable.")
		return cty.NilVal, false
	}
	return v, true
}

// withoutValues takes the evaluator's words away where an expression uses what
// sounds like a secret: functions quote what they were given.
func (r *reporter) withoutValues(diags hcl.Diagnostics, refs []reference, ctx *hcl.EvalContext) hcl.Diagnostics {
	for _, ref := range refs {
		name, sensitive := traversalText(ref.steps)
		if v, unknown := ref.steps.TraverseAbs(ctx); !sensitive && !r.secretive(ref) || !unknown.HasErrors() && holdsSecret(v) {
			continue // a reference to a secret has no value to quote
		}
		for _, d := range diags {
			d.Detail = "The expression cannot be evaluated. The reason is not shown, because it may quote the value of " + name + "."
		}
	}
	return diags
}

// dependsOnUnknown reports whether a reference stands for something that is not
// known: a device before there is one, or a value that was reported already.
func dependsOnUnknown(refs []reference, sc *scope) bool {
	for _, ref := range refs {
		v, diags := ref.steps.TraverseAbs(sc.context())
		if diags.HasErrors() || !v.IsWhollyKnown() {
			return true
		}
	}
	return false
}

// addValues tells, for every mistake found in an expression, what its references
// stand for.
func (r *reporter) addValues(before int, expr hclsyntax.Expression, sc *scope) {
	if src := r.sources[expr.Range().Filename]; len(r.diags) == before || src != nil && src.hides(expr.Range()) {
		return
	}
	var refs []reference
	for _, t := range expr.Variables() {
		refs = append(refs, reference{steps: t})
	}
	refs = slices.DeleteFunc(refs, r.secretive)
	values := valuesOf(refs, sc)
	for i := before; i < len(r.diags); i++ {
		if r.diags[i].values == nil {
			r.diags[i].values = values
		}
	}
}

const (
	maxValues    = 8
	maxValueText = 80 // bytes of a text that is shown
)

// valuesOf says what references stand for, as far as it is known. Secrets, what
// sounds like one, and addresses with a password in them are left out.
func valuesOf(refs []reference, sc *scope) []ReferenceValue {
	var out []ReferenceValue
	seen := map[string]bool{}
	for _, ref := range refs {
		name, sensitive := traversalText(ref.steps)
		if seen[name] || sensitive || len(ref.steps) < 2 || len(out) == maxValues {
			continue
		}
		seen[name] = true
		v, diags := ref.steps.TraverseAbs(sc.context())
		if diags.HasErrors() || !v.IsWhollyKnown() || holdsSecret(v) {
			continue
		}
		said := statement(v)
		if userinfo.MatchString(said) {
			continue
		}
		out = append(out, ReferenceValue{Traversal: name, Statement: said})
	}
	return out
}

// traversalText writes a reference as it stands in a file.
func traversalText(steps hcl.Traversal) (text string, sensitive bool) {
	text = steps.RootName()
	for _, step := range steps[1:] {
		switch step := step.(type) {
		case hcl.TraverseAttr:
			text += "." + step.Name
			sensitive = sensitive || isSensitiveName(step.Name)
		case hcl.TraverseIndex:
			key, err := convert.Convert(step.Key, cty.String)
			if err != nil || key.IsNull() || !key.IsKnown() {
				return text, true
			}
			if step.Key.Type() == cty.String {
				text += "[" + quote(key.AsString()) + "]"
				sensitive = sensitive || isSensitiveName(key.AsString())
				continue
			}
			text += "[" + key.AsString() + "]"
		}
	}
	return text, sensitive
}

func statement(v cty.Value) string {
	t := v.Type()
	switch {
	case v.IsNull():
		return "is null"
	case t == cty.String && (len(v.AsString()) > maxValueText || strings.Contains(v.AsString(), "\n")):
		return fmt.Sprintf("is a text of %d bytes", len(v.AsString())) // perhaps a whole file
	case t == cty.String:
		return "is " + quote(v.AsString())
	case t == cty.Number || t == cty.Bool:
		s, err := convert.Convert(v, cty.String)
		if err != nil {
			return "is a number"
		}
		return "is " + s.AsString()
	case v.CanIterateElements():
		return "is " + typeName(v) + " of " + counted(v.LengthInt(), "element")
	}
	return "is " + typeName(v)
}

func (r *reporter) checkReference(ref reference, sc *scope) bool {
	root, name := ref.names()
	at := ref.steps.SourceRange()
	value, known := sc.values[root]
	switch {
	case !known && (root == "var" || root == "local"):
		r.error(at, "Reference not possible here", "Variables and locals cannot be used here. Write the value itself.")
		return false
	case !known && root == "device":
		r.error(at, "Reference not possible here", "device is known only in the attributes of the bmc block that are evaluated for each device: %s. Write a value that is the same for all devices, or use a variable.", listed(perDeviceNames(), "and"))
		return false
	case !known:
		roots := append(sortedNames(sc.values), "var", "local")
		r.suggested(at, plan.Suggest(root, roots), "Unknown reference", "There is no %s. References begin with var, local or device; a text stands in quotes.", r.shown(at, root))
		return false
	case name == "" && len(ref.steps) == 1:
		r.error(at, "Incomplete reference", "%s needs a name after a dot: it has %s.", quote(root), referable(value))
		return false
	}
	return r.checkPath(ref, value)
}

func referable(v cty.Value) string {
	if !v.Type().IsObjectType() {
		return "nothing"
	}
	return shownNames(sortedNames(v.Type().AttributeTypes()))
}

func perDeviceNames() []string {
	var names []string
	language().walkAttributes(func(b *block, a *attribute) {
		switch {
		case !a.perDevice:
		case b.name == "bmc":
			names = append(names, a.name)
		default:
			names = append(names, b.name+"."+a.name)
		}
	})
	return names
}

// conversion turns the value of one attribute into Go. Nothing is converted that
// was not written in the right form.
type conversion struct {
	r    *reporter
	attr *rawAttr
	at   hcl.Range
}

func (c *conversion) fail(at hcl.Range, summary, what string) (any, bool) {
	c.r.error(at, summary, "%s %s", quote(c.attr.name), what)
	return nil, false
}

func (c *conversion) wrongType(at hcl.Range, v cty.Value, want string) (any, bool) {
	if holdsSecret(v) {
		return c.fail(at, "Secret in a plain attribute", "takes no secret: it would be shown in plans and messages. Write "+want+": "+c.attr.name+" = "+c.attr.spec.example)
	}
	return c.fail(at, "Unsuitable value", "must be "+want+", not "+typeName(v)+". Write: "+c.attr.name+" = "+c.attr.spec.example)
}

func typeName(v cty.Value) string {
	t := v.Type()
	switch {
	case t == cty.String:
		return "a text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "a list"
	case t.IsObjectType() || t.IsMapType():
		return "a map"
	}
	return "this"
}

// asText takes texts, and what stands in quotes: "${var.number}" is a number for
// hcl.
func asText(expr hclsyntax.Expression, v cty.Value) cty.Value {
	if _, quoted := expr.(*hclsyntax.TemplateWrapExpr); quoted {
		if s, err := convert.Convert(v, cty.String); err == nil {
			return s
		}
	}
	return v
}

func undecided(v cty.Value, t cty.Type) bool {
	return !v.IsKnown() && (v.Type() == cty.DynamicPseudoType || v.Type() == t)
}

func (c *conversion) text(expr hclsyntax.Expression, v cty.Value) (any, bool) {
	v = asText(expr, v)
	if undecided(v, cty.String) {
		return nil, true
	}
	if v.Type() != cty.String {
		return c.wrongType(c.at, v, "a text in quotes")
	}
	return c.checkedText(c.at, v.AsString())
}

func (c *conversion) checkedText(at hcl.Range, s string) (any, bool) {
	spec := c.attr.spec
	switch {
	case s == "" && spec.mayBeEmpty:
		return s, true
	case s == "":
		return c.fail(at, "Unsuitable value", "must not be empty. Write: "+c.attr.name+" = "+spec.example)
	case strings.TrimSpace(s) != s:
		return c.fail(at, "Unsuitable value", "must not begin or end with a blank")
	case strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return c.fail(at, "Unsuitable value", "must not hold control characters or line ends")
	}
	if len(spec.enum) > 0 {
		for _, e := range spec.enum {
			if s == e {
				return s, true
			}
		}
		c.r.suggested(at, plan.Suggest(s, spec.enum), "Unsuitable value", "%s must be %s.", quote(c.attr.name), listed(spec.enum, "or"))
		return nil, false
	}
	if saysWhere(spec.name) && looksLikeCredential(s) {
		what := "the path of the file that holds it"
		if spec.check("-") != nil {
			what = "the name of the environment variable that holds it"
		}
		c.r.hide(at)
		return c.fail(at, "Secret in the site file", "looks like the credential itself, and a site file holds none: only "+what+". Write: "+c.attr.name+" = "+spec.example)
	}
	if spec.check != nil {
		if err := spec.check(s); err != nil {
			return c.fail(at, "Unsuitable value", err.Error()+".")
		}
	}
	return s, true
}

func (c *conversion) bool(v cty.Value) (any, bool) {
	if v.Type() != cty.Bool || !v.IsKnown() {
		if undecided(v, cty.Bool) {
			return nil, true
		}
		return c.wrongType(c.at, v, "true or false, without quotes")
	}
	return v.True(), true
}

func (c *conversion) int(v cty.Value) (any, bool) {
	if undecided(v, cty.Number) {
		return nil, true
	}
	if v.Type() != cty.Number {
		return c.wrongType(c.at, v, "a whole number, without quotes")
	}
	low, _ := strconv.Atoi(c.attr.spec.min)
	high, _ := strconv.Atoi(c.attr.spec.max)
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact || n < int64(low) || n > int64(high) {
		return c.fail(c.at, "Unsuitable value", "must be a whole number from "+c.attr.spec.min+" to "+c.attr.spec.max+".")
	}
	return int(n), true
}

func (c *conversion) duration(expr hclsyntax.Expression, v cty.Value) (any, bool) {
	v = asText(expr, v)
	if undecided(v, cty.String) {
		return nil, true
	}
	if v.Type() != cty.String {
		return c.wrongType(c.at, v, "a duration in quotes with its unit (ms, s, m, h)")
	}
	d, ok := c.oneDuration(c.at, v.AsString())
	if !ok {
		return nil, false
	}
	return d, true
}

func (c *conversion) oneDuration(at hcl.Range, text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	low, high := bound(c.attr.spec.min), bound(c.attr.spec.max)
	switch {
	case err != nil:
		c.fail(at, "Unsuitable value", "must be a duration: a number with a unit (ms, s, m, h), for example \"30s\" or \"1h30m\".")
		return 0, false
	case d < low || d > high:
		c.fail(at, "Unsuitable value", "must be a duration from "+c.attr.spec.min+" to "+c.attr.spec.max+".")
		return 0, false
	}
	return d, true
}

// bound reads a duration of the table; a test keeps them readable.
func bound(s string) time.Duration {
	d, _ := time.ParseDuration(s)
	return d
}

func (c *conversion) secret(v cty.Value) (any, bool) {
	if undecided(v, secretCapsule) {
		return nil, true
	}
	if !v.Type().Equals(secretCapsule) {
		return c.fail(c.at, "Secret in the site file", "is a secret, and a site file holds none: only a reference to the vault. Write: "+c.attr.name+" = "+c.attr.spec.example+inAFile(c.attr.name))
	}
	return v.EncapsulatedValue().(*secretValue).ref, true
}

// inAFile adds the attribute that names a file with the same, where there is one.
func inAFile(name string) string {
	said := ""
	language().walkAttributes(func(b *block, a *attribute) {
		if a.name == name+"_file" && b.attribute(name) != nil && said == "" {
			said = ", or name a file that holds it: " + a.name + " = " + a.example
		}
	})
	return said
}

// elements gives a list's elements with the place of each, as far as it is
// written as a list.
func (c *conversion) elements(v cty.Value, want string) ([]cty.Value, []hcl.Range, bool) {
	t := v.Type()
	if !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		c.wrongType(c.at, v, want)
		return nil, nil, false
	}
	list := v.AsValueSlice()
	places := listPlaces(c.attr.expr, len(list))
	if written, ok := c.attr.expr.(*hclsyntax.TupleConsExpr); ok && len(written.Exprs) == len(list) {
		for i := range list {
			list[i] = asText(written.Exprs[i], list[i])
		}
	}
	return list, places, true
}

// listPlaces gives the place of each element, the whole list's where it is not
// written as one.
func listPlaces(expr hclsyntax.Expression, n int) []hcl.Range {
	places := make([]hcl.Range, n)
	written, ok := expr.(*hclsyntax.TupleConsExpr)
	for i := range places {
		places[i] = expr.Range()
		if ok && len(written.Exprs) == n {
			places[i] = written.Exprs[i].Range()
		}
	}
	return places
}

func (c *conversion) texts(v cty.Value) (any, bool) {
	const want = "a list of texts in brackets"
	if !v.IsKnown() {
		return nil, true
	}
	list, places, ok := c.elements(v, want)
	if !ok {
		return nil, false
	}
	if len(list) == 0 && !c.attr.spec.mayBeEmpty {
		return c.fail(c.at, "Unsuitable value", "must not be an empty list. Write: "+c.attr.name+" = "+c.attr.spec.example)
	}
	out, open := []string{}, false
	seen := map[string]bool{}
	for i, e := range list {
		switch {
		case undecided(e, cty.String):
			open = true
		case e.Type() != cty.String || e.IsNull():
			_, ok = c.wrongType(places[i], e, want)
		default:
			s, good := c.checkedText(places[i], e.AsString())
			if !good {
				ok = false
				continue
			}
			if seen[s.(string)] && !c.attr.spec.mayRepeat {
				_, ok = c.fail(places[i], "Repeated value", "has this value twice. Remove one.")
			}
			seen[s.(string)] = true
			out = append(out, s.(string))
		}
	}
	if !ok || open {
		return nil, ok
	}
	return out, true
}

// scalars reads a map of texts, numbers, true and false into map[string]any with
// string, int64, float64 and bool.
func (c *conversion) scalars(v cty.Value) (any, bool) {
	const want = "a map of texts, numbers, true and false, in braces"
	if !v.IsWhollyKnown() {
		return nil, true
	}
	t := v.Type()
	if !t.IsObjectType() && !t.IsMapType() {
		return c.wrongType(c.at, v, want)
	}
	if v.LengthInt() == 0 {
		return c.fail(c.at, "Unsuitable value", "must not be empty. Write: "+c.attr.name+" = "+c.attr.spec.example)
	}
	out, ok := map[string]any{}, true
	places := itemPlaces(c.attr.expr)
	for it := v.ElementIterator(); it.Next(); {
		key, e := it.Element()
		name := key.AsString()
		at, written := places[name]
		if !written {
			at = c.at
		}
		switch {
		case name == "" || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f }):
			_, ok = c.fail(at, "Unsuitable value", "has a name that is empty, or has blanks or control characters at its ends.")
		case e.IsNull():
			_, ok = c.fail(at, "Unsuitable value", "must not hold null. Leave the name out, and its value is left as it is.")
		case passwordForm.MatchString(name):
			_, ok = c.fail(at, "Secret in the site file", "has a password in it, and a site file holds none. Leave it out; accounts are set by credential and monitoring.")
			c.r.hide(at)
		case e.Type() == cty.String:
			out[name] = e.AsString()
		case e.Type() == cty.Bool:
			out[name] = e.True()
		case e.Type() == cty.Number:
			if n, accuracy := e.AsBigFloat().Int64(); accuracy == big.Exact {
				out[name] = n
				continue
			}
			out[name], _ = e.AsBigFloat().Float64()
		default:
			_, ok = c.wrongType(at, e, want)
		}
	}
	if !ok {
		return nil, false
	}
	return out, true
}

// passwordForm finds registry attributes that are passwords; rules about passwords
// (MinimumPasswordScore) are none.
var passwordForm = regexp.MustCompile(`(?i)(?:password|passphrase|secret|community|agentcommunity|privatekey)$`)

// itemPlaces gives the place of each value of a map, as far as it is written as
// one with plain names.
func itemPlaces(expr hclsyntax.Expression) map[string]hcl.Range {
	places := map[string]hcl.Range{}
	written, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return places
	}
	for _, item := range written.Items {
		if key, diags := item.KeyExpr.Value(nil); !diags.HasErrors() && key.Type() == cty.String && key.IsKnown() && !key.IsNull() {
			places[key.AsString()] = item.ValueExpr.Range()
		}
	}
	return places
}

func (c *conversion) durations(v cty.Value) (any, bool) {
	const want = "a list of two durations, the smaller one first"
	if !v.IsWhollyKnown() {
		return nil, true
	}
	list, places, ok := c.elements(v, want)
	if !ok {
		return nil, false
	}
	if len(list) != 2 {
		return c.fail(c.at, "Unsuitable value", "must be "+want+". Write: "+c.attr.name+" = "+c.attr.spec.example)
	}
	var out [2]time.Duration
	for i, e := range list {
		if e.Type() != cty.String || e.IsNull() {
			_, ok = c.wrongType(places[i], e, want)
			continue
		}
		d, good := c.oneDuration(places[i], e.AsString())
		out[i], ok = d, ok && good
	}
	if !ok {
		return nil, false
	}
	if out[0] > out[1] {
		return c.fail(c.at, "Unsuitable value", "must be "+want+".")
	}
	return out, true
}

// get reads an attribute of a block: what is written, else the table's default,
// else the zero value. It panics for a name that the table does not have.
func get[T string | bool | int | time.Duration | [2]time.Duration | []string | map[string]any | plan.SecretRef](b *rawBlock, name string) T {
	if a := b.attr(name); a != nil {
		v, _ := a.value.(T) // not set: it was reported, and the File will not exist
		return v
	}
	spec := b.spec.attribute(name)
	if spec == nil {
		panic("schema: the table has no attribute " + b.spec.name + "." + name)
	}
	v, _ := spec.defaultValue().(T)
	return v
}

// defaultValue is the fallback in Go; a test keeps them readable.
func (a *attribute) defaultValue() any {
	if a.fallback == "" {
		return nil
	}
	switch a.typ {
	case boolType:
		return a.fallback == "true"
	case intType:
		n, _ := strconv.Atoi(a.fallback)
		return n
	case durationType:
		return bound(a.fallback)
	case durationPairType:
		first, second, _ := strings.Cut(a.fallback, ", ")
		return [2]time.Duration{bound(first), bound(second)}
	case textType, secretType, textListType, scalarMapType, constraintType, anyType, conditionType:
	}
	return a.fallback
}
