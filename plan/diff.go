package plan

import (
	"fmt"
	"sort"
)

// DiffPaths lists the paths at which two values differ, sorted: "servers[1]",
// "enabled". Equal values give none.
func DiffPaths(a, b Value) []string {
	var paths []string
	diffInto(&paths, "", a, b)
	sort.Strings(paths)
	return paths
}

func diffInto(paths *[]string, at string, a, b Value) {
	if Satisfies(a, b) && Satisfies(b, a) && a.IsKnown() == b.IsKnown() {
		return
	}
	if isObject(a) && isObject(b) {
		seen := map[string]bool{}
		for _, k := range append(attributeNames(a), attributeNames(b)...) {
			if seen[k] {
				continue
			}
			seen[k] = true
			diffInto(paths, joinPath(at, k), Attr(a, k), Attr(b, k))
		}
		return
	}
	if isList(a) && isList(b) && a.LengthInt() == b.LengthInt() {
		as, bs := a.AsValueSlice(), b.AsValueSlice()
		for i := range as {
			diffInto(paths, fmt.Sprintf("%s[%d]", at, i), as[i], bs[i])
		}
		return
	}
	*paths = append(*paths, at)
}

// leafPaths lists the paths of a value's leaves, sorted; "" is the whole. A list
// is one leaf: its order counts as a whole.
func leafPaths(v Value) []string {
	var paths []string
	leavesInto(&paths, "", v)
	return paths
}

func leavesInto(paths *[]string, at string, v Value) {
	if !isObject(v) {
		*paths = append(*paths, at)
		return
	}
	for _, k := range attributeNames(v) {
		leavesInto(paths, joinPath(at, k), attribute(v, k))
	}
}

func joinPath(at, k string) string {
	if at == "" {
		return k
	}
	return at + "." + k
}

func isObject(v Value) bool {
	return v.IsKnown() && !v.IsNull() && (v.Type().IsObjectType() || v.Type().IsMapType())
}

func isList(v Value) bool {
	return v.IsKnown() && !v.IsNull() && (v.Type().IsTupleType() || v.Type().IsListType())
}
