package secrets

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unit is one character that the bytes at a place may stand for.
type unit struct {
	r rune
	n int // bytes
}

// maxBackslashes is how many in a row are looked at: each nesting of quotes
// doubles them.
const maxBackslashes = 64

// unitsAt gives all that the beginning of text may stand for, in whatever a text is
// escaped: JSON, Go, C and a shell by backslashes, URLs by percent signs, HTML by
// entities, each in itself and in the others. open: with more bytes it could be
// something else.
func unitsAt(text []byte) (units []unit, open bool) {
	switch text[0] {
	case '\\', '%':
		return escapedUnits(text)
	case '&':
		return entity(text, 1, []unit{{'&', 1}})
	}
	r, n := utf8.DecodeRune(text)
	return add(nil, r, n), !utf8.FullRune(text)
}

// itself gives the character that text begins with where it can stand for nothing
// else, as nearly all do.
func itself(text []byte) (u unit, ok bool) {
	switch c := text[0]; {
	case c == '\\' || c == '%' || c == '&' || c == '+':
		return unit{}, false
	case c < utf8.RuneSelf:
		return unit{rune(c), 1}, true
	}
	r, n := utf8.DecodeRune(text)
	return unit{r, n}, r != utf8.RuneError
}

// add appends a character; a plus sign may stand for a blank of a query.
func add(out []unit, r rune, n int) []unit {
	if r == '+' {
		out = append(out, unit{' ', n})
	}
	return append(out, unit{r, n})
}

// escapedUnits is what begins with a backslash or a percent sign, which may be an
// encoded backslash.
func escapedUnits(text []byte) (out []unit, open bool) {
	if text[0] == '%' {
		at := 1
		out = add(out, '%', at)
		for bytes.HasPrefix(text[at:], []byte("25")) { // it was encoded again
			at += 2
			out = add(out, '%', at)
		}
		r, n, more := encodedRune(text, percent)
		open = more || len(text) < at+2
		if n > 0 {
			out = add(out, r, n)
		}
		if n > 0 && r == '&' {
			out, more = entity(text, n, out)
			open = open || more
		}
	}
	run := 0
	for range maxBackslashes {
		n := backslash(text[run:])
		if n == 0 {
			break
		}
		run += n
	}
	if run == 0 {
		return out, open
	}
	out = add(out, '\\', run)
	rest := text[run:]
	if len(rest) == 0 {
		return out, true
	}
	r, n := utf8.DecodeRune(rest)
	out = add(out, r, run+n)
	open = open || !utf8.FullRune(rest)
	switch c := rest[0]; c {
	case 'n', 'r', 't', 'b', 'f', 'v', 'a', 'e':
		const letters, meant = "nrtbfvae", "\n\r\t\b\f\v\a\x1b"
		out = add(out, rune(meant[strings.IndexByte(letters, c)]), run+1)
	case 'u', 'U':
		return numbered(text, run, out, open)
	case 'x', '0', '1', '2', '3':
		r, n, more := encodedRune(text, backslashed)
		if n > 0 {
			out = add(out, r, n)
		}
		open = open || more
	case '%', '&':
		inner, more := unitsAt(rest)
		for _, u := range inner {
			out = add(out, u.r, run+u.n)
		}
		open = open || more
	}
	return out, open
}

// backslash gives the bytes of one, plain or percent-encoded any number of times.
func backslash(text []byte) int {
	switch {
	case len(text) == 0:
		return 0
	case text[0] == '\\':
		return 1
	case text[0] != '%':
		return 0
	}
	at := 1
	for bytes.HasPrefix(text[at:], []byte("25")) {
		at += 2
	}
	if len(text) >= at+2 && text[at] == '5' && text[at+1]|0x20 == 'c' {
		return at + 2
	}
	return 0
}

// numbered reads \uXXXX, pairs of them, \UXXXXXXXX and \u{X}, behind some
// backslashes.
func numbered(text []byte, run int, out []unit, open bool) ([]unit, bool) {
	digits := 4
	if text[run] == 'U' {
		digits = 8
	}
	at := run + 1
	l := letters{text: text, at: at}
	if c := l.next(); c == '{' || l.short {
		digits, _ := l.until('}')
		if v, ok := hexadecimal([]byte(digits)); ok {
			out = add(out, rune(v), l.at)
		}
		return out, open || l.short
	}
	if len(text) < at+digits {
		return out, true
	}
	v, ok := hexadecimal(text[at : at+digits])
	if !ok {
		return out, open
	}
	at += digits
	if v == '&' {
		out, more := entity(text, at, append(out, unit{'&', at}))
		return out, open || more
	}
	if !utf16.IsSurrogate(rune(v)) {
		return add(out, rune(v), at), open
	}
	second := 0
	for n := backslash(text[at:]); n > 0 && second < maxBackslashes; n = backslash(text[at+second:]) {
		second += n
	}
	from := at + second + 1
	switch {
	case len(text) < from+4:
		return out, true
	case second > 0 && text[from-1] == 'u':
		if low, ok := hexadecimal(text[from : from+4]); ok {
			out = add(out, utf16.DecodeRune(rune(v), rune(low)), from+4)
		}
	}
	return out, open
}

// letters reads what an escape is made of, which in an address may itself be
// encoded: &#34; is &%2334%3B there.
type letters struct {
	text  []byte
	at    int
	short bool // the text ended
}

func (l *letters) next() byte {
	if l.at >= len(l.text) {
		l.short = true
		return 0
	}
	if b, n, more := percent(l.text[l.at:]); n > 0 {
		l.at += n
		return b
	} else if more {
		l.short = true
	}
	l.at++
	return l.text[l.at-1]
}

// until reads up to an end, which is none of the letters.
func (l *letters) until(end byte) (string, bool) {
	const longest = 9 // "#x10ffff"
	var b strings.Builder
	for range longest + 1 {
		c := l.next()
		if l.short {
			return "", false
		}
		if c == end {
			return b.String(), true
		}
		b.WriteByte(c)
	}
	return "", false
}

// entity reads what stands behind an ampersand that ends before at.
func entity(text []byte, at int, out []unit) ([]unit, bool) {
	l := letters{text: text, at: at}
	for {
		name, ok := l.until(';')
		if !ok {
			return out, l.short
		}
		r := namedEntity(name)
		if len(name) > 1 && name[0] == '#' {
			number, base := name[1:], 10
			if number[0]|0x20 == 'x' {
				number, base = number[1:], 16
			}
			if v, err := strconv.ParseInt(number, base, 32); err == nil {
				r = rune(v)
			}
		}
		if r != 0 {
			out = add(out, r, l.at)
		}
		if r != '&' { // else it may have been encoded again
			return out, false
		}
	}
}

func namedEntity(name string) rune {
	switch name {
	case "amp":
		return '&'
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "quot":
		return '"'
	case "apos":
		return '\''
	case "nbsp":
		return ' '
	}
	return 0
}

// percent and backslashed read one byte at the beginning of a text: %41, \x41 or
// \101, encoded any number of times. more: the text ends too early.
func percent(text []byte) (b byte, n int, more bool) {
	if len(text) == 0 || text[0] != '%' {
		return 0, 0, len(text) == 0
	}
	at := 1
	for bytes.HasPrefix(text[at:], []byte("25")) {
		at += 2
	}
	if len(text) < at+2 {
		return 0, 0, true
	}
	v, ok := hexadecimal(text[at : at+2])
	if !ok {
		return 0, 0, false
	}
	return byte(v), at + 2, false
}

func backslashed(text []byte) (b byte, n int, more bool) {
	at := 0
	for range maxBackslashes {
		size := backslash(text[at:])
		if size == 0 {
			break
		}
		at += size
	}
	switch {
	case len(text) < at+3:
		return 0, 0, true
	case at == 0:
		return 0, 0, false
	case text[at] == 'x':
		v, ok := hexadecimal(text[at+1 : at+3])
		if !ok {
			return 0, 0, false
		}
		return byte(v), at + 3, false
	}
	v, err := strconv.ParseUint(string(text[at:at+3]), 8, 8)
	if err != nil {
		return 0, 0, false
	}
	return byte(v), at + 3, false
}

// encodedRune reads a character whose bytes are encoded one by one.
func encodedRune(text []byte, one func([]byte) (byte, int, bool)) (r rune, n int, more bool) {
	var raw []byte
	for len(raw) < utf8.UTFMax {
		b, size, short := one(text[n:])
		if size == 0 {
			return 0, 0, short
		}
		raw, n = append(raw, b), n+size
		if utf8.FullRune(raw) {
			r, _ = utf8.DecodeRune(raw)
			return r, n, false
		}
	}
	return 0, 0, false
}

func hexadecimal(digits []byte) (uint64, bool) {
	v, err := strconv.ParseUint(string(digits), 16, 32)
	return v, err == nil
}
