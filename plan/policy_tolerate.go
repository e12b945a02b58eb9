package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// RuleTolerated is the rule of observations that a tolerate block made.
const RuleTolerated = "tolerated"

// Toleration accepts a difference until a date.
type Toleration struct {
	Name    string
	Address string    // pattern, as Address.Match takes it
	Path    string    // of the value, as DiffPaths names it; what lies below it is meant too
	Reason  string    // why
	Until   time.Time // the first moment at which it does not hold any more
	Last    string    // the last day, as it is written
	From    string    // file:line
}

// Expired reports whether the toleration holds no more.
func (t Toleration) Expired(now time.Time) bool { return !now.Before(t.Until) }

// covers reports whether the path is the tolerated one or lies below it.
func (t Toleration) covers(path string) bool {
	return path == t.Path || strings.HasPrefix(path, t.Path+".") || strings.HasPrefix(path, t.Path+"[")
}

// expiredTolerations warns about each toleration that holds no more.
func (b *builder) expiredTolerations() {
	for _, t := range b.in.Scope.Site.Tolerations {
		if t.Expired(b.in.Now) {
			b.diagnose(SeverityWarning, "", NewFault(CodeTolerationExpired, "tolerate %q ended on %s and tolerates no more", t.Name, t.Last).
				With("address", t.Address).With("path", t.Path).With("reason", t.Reason).With("from", b.in.Scope.Site.Relative(t.From)))
		}
	}
}

// idleTolerations warns about each toleration whose path names nothing that is
// wanted at the addresses that it is about: a mistyped path tolerates nothing. The
// names of BIOS settings depend on the platform, so a part of the devices says
// nothing about these.
func (b *builder) idleTolerations() {
	for _, t := range b.in.Scope.Site.Tolerations {
		if t.Expired(b.in.Now) {
			continue
		}
		paths, meant := map[string]bool{}, false
		for _, r := range b.tolerable {
			if ok, err := r.Address.Match(t.Address); err != nil || !ok || r.Address.KindName() == "bmc.bios" && !b.in.Scope.Whole {
				continue
			}
			for _, path := range leafPaths(r.Want) {
				// A leaf that is no object may hold anything below it.
				meant = meant || t.covers(path) || Toleration{Path: path}.covers(t.Path) || path == ""
				paths[path] = true
			}
		}
		if meant || len(paths) == 0 {
			continue
		}
		names := slices.Sorted(maps.Keys(paths))
		const few = 8
		if len(names) > few {
			names = append(names[:few], fmt.Sprintf("and %d more", len(names)-few))
		}
		from := b.in.Scope.Site.Relative(t.From)
		b.diagnose(SeverityWarning, "", NewFault(CodeTolerationIdle, "tolerate %q (%s) tolerates nothing: %s has no %s", t.Name, from, t.Address, t.Path).
			With("address", t.Address).With("path", t.Path).With("paths there", strings.Join(names, ", ")).With("from", from))
	}
}

// tolerated replaces what is wanted by what is there, at the paths that somebody
// accepted, and says so. The resource is judged as if nobody wanted anything else
// there.
func (b *builder) tolerated(r Resource, l Live) (Resource, []Observation) {
	var observed []Observation
	if len(b.in.Scope.Site.Tolerations) > 0 {
		b.tolerable = append(b.tolerable, r)
	}
	if l.Presence != Present {
		return r, nil // nothing is there that could be accepted
	}
	for _, t := range b.in.Scope.Site.Tolerations {
		if ok, err := r.Address.Match(t.Address); err != nil || !ok || t.Expired(b.in.Now) {
			continue
		}
		want, asked, there, hit := accept("", r.Want, l.Value, t)
		if !hit {
			continue
		}
		r.Want = want
		observed = append(observed, Observation{
			Address: r.Address, Rule: RuleTolerated, Text: fmt.Sprintf("%s (tolerate %q, until %s)", t.Reason, t.Name, t.Last), Want: asked, Live: there,
		})
	}
	return r, observed
}

// accept gives the wanted value with the live one at the tolerated path, and the
// two values of exactly that path for display.
func accept(at string, want, live Value, t Toleration) (accepted, asked, there Value, hit bool) {
	if Satisfies(want, live) || !live.IsKnown() {
		return want, Null, Null, false
	}
	if t.covers(at) {
		return live, want, live, true
	}
	switch {
	case isObject(want) && isObject(live):
		values, askedOf, thereOf := map[string]Value{}, map[string]Value{}, map[string]Value{}
		for _, name := range attributeNames(want) {
			a, w, l, found := accept(joinPath(at, name), attribute(want, name), Attr(live, name), t)
			values[name] = a
			if found {
				hit, askedOf[name], thereOf[name] = true, w, l
			}
		}
		return Obj(values), Obj(askedOf), Obj(thereOf), hit
	case isList(want) && isList(live) && want.LengthInt() == live.LengthInt():
		values := want.AsValueSlice()
		for i, l := range live.AsValueSlice() {
			var found bool
			values[i], _, _, found = accept(fmt.Sprintf("%s[%d]", at, i), values[i], l, t)
			hit = hit || found
		}
		return tuple(values), want, live, hit
	}
	return want, Null, Null, false
}
