package view

import (
	"strings"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// The escape sequences of the few colours in use.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
	strong = "\x1b[1m"
	reset  = "\x1b[0m"
)

func (t *textWriter) color(c, s string) string {
	if !t.o.Color || c == "" {
		return s
	}
	return c + s + reset
}

func (t *textWriter) bold(s string) string { return t.color(strong, s) }

func (t *textWriter) symbol(s *plan.Step) string {
	c := yellow
	switch {
	case s.Blocked != nil:
		c = red
	case s.Action == plan.ActionCreate:
		c = green
	case s.Action == plan.ActionVerify:
		c = blue
	}
	return t.color(c, symbol(s))
}

func (t *textWriter) verdict(v plan.CheckVerdict) string {
	switch v {
	case plan.CheckPass:
		return t.color(green, checkMark(v))
	case plan.CheckFail:
		return t.color(red, checkMark(v))
	case plan.CheckSkipped:
		return checkMark(v)
	case plan.CheckUnknown:
		return t.color(yellow, checkMark(v))
	}
	return " "
}

func effectColor(s *plan.Step) string {
	for _, e := range s.Effects {
		if e == plan.EffectErase || e == plan.EffectIrreversible {
			return red
		}
	}
	return yellow
}

func markColor(mark string) string {
	switch mark {
	case "+":
		return green
	case "-":
		return red
	}
	return ""
}

// visible is how many characters of a text are seen.
func visible(s string) int {
	for _, c := range []string{red, green, yellow, blue, strong, reset} {
		s = strings.ReplaceAll(s, c, "")
	}
	return utf8.RuneCountInString(s)
}

// Mark is ✓ or ✗.
func Mark(ok, color bool) string {
	t := &textWriter{o: TextOptions{Color: color}}
	if ok {
		return t.color(green, "✓")
	}
	return t.color(red, "✗")
}
