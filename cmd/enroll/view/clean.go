// Package view turns plans, reports and events into what people and programs
// read: text for a terminal, Markdown for a merge request, JSON. It decides
// nothing and reads nothing but its arguments.
package view

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// Clean makes foreign text safe for one line of output: control characters,
// terminal escapes, line breaks and marks that turn the direction of writing
// are shown as escapes instead of being obeyed.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + hex2(s[0]))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case plan.Invisible(r):
			b.WriteString(`\u{` + hexRune(r) + `}`)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

func isClean(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || r == '\n' || r == '\t' || plan.Invisible(r) {
			return false
		}
	}
	return true
}

const hexDigits = "0123456789abcdef"

func hex2(b byte) string { return string([]byte{hexDigits[b>>4], hexDigits[b&15]}) }

func hexRune(r rune) string { return strconv.FormatInt(int64(r), 16) }

// cut shortens a value to about n characters and says how many are missing; 0
// leaves it.
func cut(s string, n int) string {
	runes := []rune(s)
	if n <= 0 || len(runes) <= n {
		return s
	}
	keep := max(n-markRoom, 1)
	return string(runes[:keep]) + missing(len(runes)-keep)
}

// markRoom is what the mark of a missing part takes.
const markRoom = 7

// missing marks the place where characters were left out.
func missing(n int) string { return cutMark + itoa(n) + ")" }

const cutMark = "…(+"

// cutPair shortens two values that are shown beside each other, each to half of n
// characters, so that the place where they begin to differ is seen.
func cutPair(a, b string, n int) (string, string) {
	x, y := []rune(a), []rune(b)
	half := n / 2
	if n <= 0 || len(x) <= half && len(y) <= half || len(x)+len(y) <= n {
		return a, b
	}
	same := 0
	for same < len(x) && same < len(y) && x[same] == y[same] {
		same++
	}
	const lead = 4 // characters before the difference
	if same < half-markRoom {
		return cut(a, half), cut(b, half)
	}
	skip := same - lead
	return missing(skip) + cut(string(x[skip:]), half-markRoom), missing(skip) + cut(string(y[skip:]), half-markRoom)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return itoa(n) + " " + noun + "s"
}
