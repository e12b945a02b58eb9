package ironic

import (
	"strings"
)

// What a site may leave out of the comparison of names (verification block).
const (
	ignoreCase         = "case"
	ignoreSpaces       = "spaces"
	ignoreAbbreviation = "abbreviation"
	ignoreLeadingZeros = "leading_zeros"
	ignoreDomain       = "domain"
)

// sameName compares two names letter for letter, and then without what ignore
// names. used is what had to be ignored for them to be equal.
func sameName(want, seen string, ignore []string) (same bool, used []string) {
	if want == seen {
		return true, nil
	}
	if seen == "" || want == "" {
		return false, nil
	}
	abbreviated := false
	for _, rule := range ignore {
		before := [2]string{want, seen}
		switch rule {
		case ignoreCase:
			want, seen = strings.ToLower(want), strings.ToLower(seen)
		case ignoreSpaces:
			want, seen = withoutSpaces(want), withoutSpaces(seen)
		case ignoreLeadingZeros:
			want, seen = withoutZeros(want), withoutZeros(seen)
		case ignoreDomain:
			want, seen = host(want), host(seen)
		case ignoreAbbreviation:
			abbreviated = true
		}
		if before != [2]string{want, seen} {
			used = append(used, rule)
		}
	}
	switch {
	case want == seen:
		return true, used
	case abbreviated && abbreviates(want, seen):
		return true, append(used, ignoreAbbreviation)
	}
	return false, nil
}

func withoutSpaces(s string) string { return strings.Join(strings.Fields(s), "") }

// withoutZeros takes the zeros before every number away: swp01 is swp1, Eth1/00 is
// Eth1/0.
func withoutZeros(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		follows := i > 0 && isDigit(s[i-1])
		if s[i] == '0' && !follows && i+1 < len(s) && isDigit(s[i+1]) {
			for i+1 < len(s) && s[i] == '0' && isDigit(s[i+1]) {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// host is a name without its domain. An address is no name with a domain.
func host(s string) string {
	first, rest, _ := strings.Cut(s, ".")
	if rest == "" || strings.Trim(first, "0123456789") == "" {
		return s
	}
	return first
}

// abbreviates reports whether one name is the other with a shorter word before
// the first digit: Eth1/1 and Ethernet1/1. One letter is too little to go by.
func abbreviates(a, b string) bool {
	wordA, restA := leadingWord(a)
	wordB, restB := leadingWord(b)
	if restA != restB || restA == "" || len(wordA) < 2 || len(wordB) < 2 {
		return false
	}
	return strings.HasPrefix(wordA, wordB) || strings.HasPrefix(wordB, wordA)
}

func leadingWord(s string) (word, rest string) {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}
