package netbox

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// compareNatural orders names as people count: eth2 before eth10. NetBox's own
// order depends on its version and collation, and the first frontend interface
// is the one that a host boots from, so the rule has to be enroll's own.
// Digits compare as numbers, everything else byte by byte; names that differ
// only in leading zeros compare as text.
func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx > 0 && dy > 0 {
			nx, ny := strings.TrimLeft(x[:dx], "0"), strings.TrimLeft(y[:dy], "0")
			if c := cmp.Or(cmp.Compare(len(nx), len(ny)), strings.Compare(nx, ny)); c != 0 {
				return c
			}
			x, y = x[dx:], y[dy:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

func compareIDs(a, b int64) int { return cmp.Compare(a, b) }

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// sortedMACs orders a set of addresses and leaves out the zero one.
func sortedMACs(set map[plan.MAC]bool) []plan.MAC {
	out := make([]plan.MAC, 0, len(set))
	for m := range set {
		if !m.IsZero() {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b plan.MAC) int { return bytes.Compare(a[:], b[:]) })
	return out
}
