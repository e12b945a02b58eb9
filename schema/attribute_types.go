package schema

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/enroll-dev/enroll/plan"
)

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
