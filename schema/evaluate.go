package schema

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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
