package plan

import (
	"slices"
)

// Stray is a step that an approved plan does not cover.
type Stray struct {
	Step *Step
	Why  string // completes the sentence "the step …"
}

// Outside lists the steps of a plan that an approved plan does not cover. A step
// is covered by the approved step of its address when that is not blocked, does
// the same to the same value, and has all its effects. What the approved plan
// could not know yet (before_unknown, after_unknown) covers whatever it turned
// out to be. A plan with fewer steps is covered; a plan covers every part of
// itself.
func (p *Plan) Outside(approved *Plan) []Stray {
	known := map[Address]*Step{}
	for _, s := range approved.Steps {
		known[s.Address] = s
	}
	var out []Stray
	for _, s := range p.Steps {
		if s.Blocked != nil {
			continue
		}
		if why := uncovered(s, known[s.Address]); why != "" {
			out = append(out, Stray{s, why})
		}
	}
	return out
}

// uncovered says why a step is not covered by another one, "" when it is.
func uncovered(s, by *Step) string {
	switch {
	case by == nil:
		return "is not in the approved plan"
	case by.Blocked != nil:
		return "is blocked in the approved plan (" + string(by.Blocked.Rule) + ")"
	case s.Action != by.Action:
		return "would " + string(s.Action) + ", the approved one would " + string(by.Action)
	case !by.BeforeUnknown && s.BeforeUnknown:
		return "starts from a value that cannot be seen any more"
	case !by.BeforeUnknown && !covers(by.Before, s.Before):
		return "starts from another value than the approved one"
	case !covers(by.After, s.After):
		return "would write another value than the approved one"
	case s.Sensitive && !by.Sensitive:
		return "would write a secret, the approved one would not"
	}
	for _, e := range s.Effects {
		if !slices.Contains(by.Effects, e) {
			return "has the effect " + string(e) + ", the approved one has not"
		}
	}
	for _, name := range s.Serves {
		if !slices.Contains(by.Serves, name) {
			return "would serve " + name + " as well"
		}
	}
	return ""
}

// covers reports whether a value is the approved one, wherever that is known.
func covers(approved, v Value) bool {
	if approved == (Value{}) || v == (Value{}) { // nothing was set
		return approved == v || approved == (Value{}) && v.IsNull() || v == (Value{}) && approved.IsNull()
	}
	switch {
	case !approved.IsKnown():
		return true
	case isObject(approved) && isObject(v):
		names := attributeNames(approved)
		if !slices.Equal(names, attributeNames(v)) {
			return false
		}
		return !slices.ContainsFunc(names, func(name string) bool { return !covers(attribute(approved, name), attribute(v, name)) })
	case isList(approved) && isList(v):
		return slices.EqualFunc(approved.AsValueSlice(), v.AsValueSlice(), covers)
	}
	return v.IsKnown() && string(ToJSON(approved)) == string(ToJSON(v))
}
