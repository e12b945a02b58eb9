package bmc

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// The rules by which BIOS attributes depend on each other: Dependencies of DMTF's
// AttributeRegistry, as makers fill them in. Conditions are always on CurrentValue.
//
//   - iDRAC: ReadOnly, Hidden, CurrentValue; MapTerms are left out. ReadOnly of a row
//     is how it is at the moment, with its rules applied.
//   - XCC: GrayOut, Hidden; MapTerms stand before the next condition.
//   - HPE, Supermicro, AMI: MapTerms stand at the later condition; some say "AND,OR",
//     some "true" for true.
//
// What is written in a way that cannot be understood says nothing: the BMC has its
// say then.

// truth is what can be said of a condition: and is the smaller, or the greater.
type truth int8

const (
	no truth = iota
	maybe
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// condition is one entry of MapFrom.
type condition struct {
	attribute string
	operator  string // "" where it cannot be understood
	value     any    // string, float64 or bool
	join      string // AND or OR with what stands before, "" where that is not told
}

// dependency is one rule: while it holds, a property of an attribute has a value.
type dependency struct {
	from     []condition
	to       string
	property string
	value    any
}

// restrictions are the properties that keep an attribute from being set. GrayOut and
// Hidden are about what people see of it in menus: of 140 attributes that one HPE has
// grayed out, 119 had effect. What a firmware makes of such a value shows when it is
// read back.
var restrictions = []string{"ReadOnly", "Immutable"}

const (
	toValue = "CurrentValue"
	toLower = "LowerBound"
	toUpper = "UpperBound"
)

// parseDependencies reads the rules of a registry and leaves out what is none.
func parseDependencies(d document) []dependency {
	entries, _ := d.at("RegistryEntries", "Dependencies")
	list, _ := entries.([]any)
	var out []dependency
	for _, item := range list {
		entry, _ := item.(map[string]any)
		rule, _ := entry["Dependency"].(map[string]any)
		kind, _ := entry["Type"].(string)
		to, _ := rule["MapToAttribute"].(string)
		from, ok := parseConditions(rule["MapFrom"])
		property, value := mapsTo(rule)
		if ok && to != "" && property != "" && (kind == "" || kind == "Map") {
			out = append(out, dependency{from: from, to: to, property: property, value: value})
		}
	}
	return out
}

// mapsTo gives property and value of a rule, "" for one that is not looked at.
func mapsTo(rule map[string]any) (string, any) {
	property, _ := rule["MapToProperty"].(string)
	value := rule["MapToValue"]
	switch property {
	case toValue:
		if !isScalar(value) {
			return "", nil
		}
		return property, value
	case toLower, toUpper:
		_, isNumber := value.(float64)
		if !isNumber {
			return "", nil
		}
		return property, value
	}
	for _, r := range restrictions {
		if strings.EqualFold(property, r) {
			on, err := strconv.ParseBool(plainText(wireValue(value)))
			if !isScalar(value) || err != nil {
				return "", nil
			}
			return r, on
		}
	}
	return "", nil
}

func isScalar(v any) bool {
	switch v.(type) {
	case string, float64, bool:
		return true
	}
	return false
}

func parseConditions(v any) ([]condition, bool) {
	list, _ := v.([]any)
	var out []condition
	var terms []string
	for _, item := range list {
		m, ok := item.(map[string]any)
		c := condition{value: m["MapFromValue"]}
		c.attribute, _ = m["MapFromAttribute"].(string)
		c.operator, _ = m["MapFromCondition"].(string)
		if property, told := m["MapFromProperty"]; told && property != toValue || !isScalar(c.value) {
			c.operator = ""
		}
		if !ok || c.attribute == "" {
			return nil, false
		}
		term, _ := m["MapTerms"].(string)
		out, terms = append(out, c), append(terms, term)
	}
	for i := 1; i < len(out); i++ {
		term := terms[i]
		if terms[0] != "" { // they stand before the next condition
			term = terms[i-1]
		}
		alternatives := out[i-1].attribute == out[i].attribute && out[i-1].operator == "EQU" && out[i].operator == "EQU"
		switch {
		case term == "AND" || term == "OR":
			out[i].join = term
		case term == "" && alternatives: // one attribute has one value
			out[i].join = "OR"
		}
	}
	return out, len(out) > 0
}

// values gives an attribute's value; ok is false where it is not known.
type values func(attribute string) (v any, ok bool)

// holds tells whether a rule applies.
func (r registry) holds(d dependency, at values) truth {
	out := r.meets(d.from[0], at)
	for _, c := range d.from[1:] {
		t := r.meets(c, at)
		both, either := min(out, t), max(out, t)
		switch {
		case c.join == "AND":
			out = both
		case c.join == "OR" || both == either:
			out = either
		default:
			out = maybe
		}
	}
	return out
}

// mostValues bounds what is compared for each rule: longer lists are no BIOS's.
const mostValues = 1000

func (r registry) meets(c condition, at values) truth {
	have, ok := at(c.attribute)
	if list, _ := r.rows[c.attribute]["Value"].([]any); !ok || have == nil || len(list) > mostValues {
		return maybe
	}
	wanted := wireValue(c.value)
	switch c.operator {
	case "EQU":
		return truthOf(r.equal(c.attribute, wanted, have))
	case "NEQ":
		return truthOf(!r.equal(c.attribute, wanted, have))
	}
	limit, err := strconv.ParseFloat(plainText(wanted), 64)
	n, err2 := strconv.ParseFloat(plainText(wireValue(have)), 64)
	if err != nil || err2 != nil {
		return maybe
	}
	switch c.operator {
	case "GTR":
		return truthOf(n > limit)
	case "GEQ":
		return truthOf(n >= limit)
	case "LSS":
		return truthOf(n < limit)
	case "LEQ":
		return truthOf(n <= limit)
	}
	return maybe
}

// outlook is what the BIOS will be after a change.
type outlook struct {
	reg     registry
	live    values
	wanted  map[string]plan.Value
	changed map[string]any  // what is written
	unsure  map[string]bool // what rules may change along with it
	rules   map[string][]dependency
}

// outlook is what the BIOS will be with the wanted attributes in place.
func (r registry) outlook(live values, wanted map[string]plan.Value) outlook {
	o := outlook{reg: r, live: live, wanted: wanted, changed: map[string]any{}, unsure: map[string]bool{}, rules: map[string][]dependency{}}
	for name, w := range wanted {
		if v, known := o.live(name); known && !r.equal(name, w, v) {
			o.changed[name] = r.wire(name, w, v)
		}
	}
	for _, d := range r.dependencies {
		o.rules[d.to] = append(o.rules[d.to], d)
	}
	return o
}

// conflicts says of wanted attributes why the rules of the registry do not let them
// have their values, with what else is wanted in place. Each rule is looked at a
// bounded number of times, whatever depends on what.
func (r registry) conflicts(live values, wanted map[string]plan.Value) map[string]string {
	o := r.outlook(live, wanted)
	if len(o.changed) == 0 {
		return nil
	}
	o.spread()
	out := map[string]string{}
	for name := range wanted {
		if why := o.against(name); why != "" {
			out[name] = why
		}
	}
	return out
}

// explain adds the way out to a refusal of attributes that can be set only because
// others are in the same request: not every firmware looks at it so.
func (r registry) explain(fault *plan.Fault, live values, wanted map[string]plan.Value) *plan.Fault {
	if !isCode(fault, plan.CodeBMCUnsupported) {
		return fault
	}
	o := r.outlook(live, wanted)
	var lifted []string
	for _, name := range sortedKeys(o.changed) {
		if property, _ := o.restricted(name, o.live); property != "" {
			lifted = append(lifted, name)
		}
	}
	if len(lifted) == 0 {
		return fault
	}
	return fault.WithHint("This BMC does not take them together with what makes them writable: leave %s out of the site file for one run, and set them in the next.", strings.Join(lifted, ", "))
}

// after is an attribute's value after the change.
func (o outlook) after(name string) (any, bool) {
	if v, ok := o.changed[name]; ok {
		return v, true
	}
	if o.unsure[name] {
		return nil, false
	}
	return o.live(name)
}

// spread finds the attributes that rules may give another value along with the
// change. What comes of them is not worked out: rules may go round in circles.
func (o outlook) spread() {
	follows := map[string][]string{}
	var next []string
	for _, d := range o.reg.dependencies {
		if _, isWanted := o.wanted[d.to]; isWanted || d.property != toValue {
			continue
		}
		for _, c := range d.from {
			follows[c.attribute] = append(follows[c.attribute], d.to)
		}
		if v, known := o.live(d.to); o.touches(d) && o.reg.holds(d, o.after) != no && (!known || !o.reg.equal(d.to, wireValue(d.value), v)) {
			next = append(next, d.to)
		}
	}
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		if !o.unsure[name] {
			o.unsure[name] = true
			next = append(next, follows[name]...)
		}
	}
}

// touches tells that the change reaches what a rule depends on.
func (o outlook) touches(d dependency) bool {
	return slices.ContainsFunc(d.from, func(c condition) bool { _, ok := o.changed[c.attribute]; return ok || o.unsure[c.attribute] })
}

// against is the rule that keeps an attribute from having the wanted value.
func (o outlook) against(name string) string {
	if _, differs := o.changed[name]; differs {
		if property, by := o.restricted(name, o.after); property != "" {
			if by == nil {
				return name + " can only be read"
			}
			free := func(at values) bool { still, _ := o.restricted(name, at); return still == "" }
			return name + " is " + property + o.because(*by) + o.wayOut(*by, free)
		}
	}
	for _, d := range o.rules[name] {
		if o.reg.holds(d, o.after) != yes {
			continue
		}
		// A value is given when the rule begins to hold, and can be changed later
		// where the attribute is not read-only as well.
		begins := o.reg.holds(d, o.live) != yes
		says := ""
		n, isNumber := new(big.Float).SetString(plainText(o.wanted[name]))
		limit, isBound := bound(d.value)
		switch {
		case d.property == toValue && begins && !o.reg.equal(name, o.wanted[name], d.value):
			says = name + " becomes " + shownAs(d.value)
		case d.property == toLower && isNumber && isBound && n.Cmp(limit) < 0:
			says = name + " takes at least " + limit.Text('f', -1)
		case d.property == toUpper && isNumber && isBound && n.Cmp(limit) > 0:
			says = name + " takes at most " + limit.Text('f', -1)
		default:
			continue
		}
		return says + o.because(d) + o.wayOut(d, func(at values) bool { return o.reg.holds(d, at) == no })
	}
	return ""
}

// restricted gives the property that keeps an attribute from being set, and the rule
// behind it; without a rule the attribute can never be set.
func (o outlook) restricted(name string, at values) (string, *dependency) {
	for _, property := range restrictions {
		state, by := no, (*dependency)(nil)
		mine, explained := 0, false
		shown := property == "ReadOnly" && o.reg.readOnly(name)
		for i, d := range o.rules[name] {
			if d.property != property {
				continue
			}
			t := o.reg.holds(d, at)
			if d.value == false {
				state = min(state, yes-t)
				continue
			}
			mine++
			explained = explained || shown && o.reg.holds(d, o.live) != no
			if shown && t == maybe && !o.touches(d) {
				t = yes // nothing of the change can lift what is shown now
			}
			if t > state {
				state, by = t, &o.rules[name][i]
			}
		}
		if shown && mine > 0 && !explained {
			return property, nil
		}
		if state == yes {
			return property, by
		}
	}
	return "", nil
}

// because names what a rule depends on, as it will be.
func (o outlook) because(d dependency) string {
	var list []string
	for _, c := range d.from {
		v, known := o.after(c.attribute)
		text := c.attribute + " = " + shownAs(v)
		if !known || v == nil {
			text = "of " + c.attribute
		}
		if o.reg.meets(c, o.after) != no && !slices.Contains(list, text) {
			list = append(list, text)
		}
		if len(list) == 3 {
			break
		}
	}
	return " because " + strings.Join(list, " and ")
}

// mostTries bounds the search for a way out.
const mostTries = 16

// wayOut is one other attribute with a value that makes a rule no longer stand in
// the way.
func (o outlook) wayOut(d dependency, free func(values) bool) string {
	tries := 0 // of conditions and of values
	for _, c := range d.from {
		if tries++; tries > mostTries {
			break
		}
		if o.reg.meets(c, o.after) == no || o.reg.readOnly(c.attribute) && !o.reg.momentary[c.attribute] {
			continue
		}
		for _, v := range o.reg.others(c) {
			if tries++; tries > mostTries {
				break
			}
			with := func(name string) (any, bool) {
				if name == c.attribute {
					return v, true
				}
				return o.after(name)
			}
			if !free(with) {
				continue
			}
			if _, isWanted := o.wanted[c.attribute]; isWanted {
				return "; set " + c.attribute + " = " + shownAs(v) + " instead"
			}
			return "; also set " + c.attribute + " = " + shownAs(v)
		}
	}
	return "; no other value of one attribute changes that"
}

// others are values with which a condition is not met.
func (r registry) others(c condition) []any {
	if c.operator == "NEQ" {
		return []any{c.value}
	}
	var out []any
	for _, v := range r.values(c.attribute) {
		out = append(out, v[0])
	}
	if on, isBool := c.value.(bool); isBool {
		out = append(out, !on)
	}
	return out
}

func shownAs(v any) string { return strconv.Quote(plainText(wireValue(v))) }
