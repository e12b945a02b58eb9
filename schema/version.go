package schema

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var (
	constraintForm = regexp.MustCompile(`^\s*(=|!=|>|>=|<|<=|~>)?\s*([0-9]+(?:\.[0-9]+){0,2})\s*$`)
	versionForm    = regexp.MustCompile(`^v?([0-9]+(?:\.[0-9]+){0,2})(?:[-+].*)?$`)
)

// isVersionConstraint takes comparisons joined by commas.
func isVersionConstraint(s string) error {
	for _, part := range strings.Split(s, ",") {
		if !constraintForm.MatchString(part) {
			return errors.New("must be comparisons of versions joined by commas, for example \">= 0.1\" or \">= 0.1, < 2.0\"")
		}
	}
	return nil
}

// versionFits reports whether a version fulfils a constraint that
// isVersionConstraint took. A version that is none ("dev", as of a build without
// a tag) fits everything.
func versionFits(constraint, version string) bool {
	m := versionForm.FindStringSubmatch(version)
	if m == nil {
		return true
	}
	have := numbers(m[1])
	for _, part := range strings.Split(constraint, ",") {
		c := constraintForm.FindStringSubmatch(part)
		if c == nil || !comparisonHolds(c[1], have, c[2]) {
			return false
		}
	}
	return true
}

func comparisonHolds(operator string, have [3]int, text string) bool {
	want := numbers(text)
	order := compareNumbers(have, want)
	switch operator {
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case "!=":
		return order != 0
	case "~>":
		// Only the last number that is written may grow: ~> 0.1 is below 1.0,
		// ~> 0.1.2 is below 0.2.
		last := strings.Count(text, ".")
		for i := range last {
			if have[i] != want[i] {
				return false
			}
		}
		return order >= 0
	}
	return order == 0
}

// numbers takes what the forms above matched. A number too large for an int
// counts as the largest int.
func numbers(s string) [3]int {
	var out [3]int
	for i, part := range strings.Split(s, ".") {
		out[i], _ = strconv.Atoi(part)
	}
	return out
}

func compareNumbers(a, b [3]int) int {
	for i := range a {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}
