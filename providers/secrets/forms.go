package secrets

import (
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A printer may indent or cut up a secret text of several lines, so its lines are
// secrets of their own: of a key those that are long, which no ordinary line is
// by chance, of something as short as a password all that count at all.
const (
	minimumLine = 20
	shortText   = 64 // characters
)

// pattern is what a text is compared with, one character at a time, whatever
// escapes it is written in (units.go).
type pattern []rune

// Two things in a pattern are no characters. Both are smaller than every one, so
// that they sort before them.
const (
	// between stands for blanks and quotation marks, one at least, however many there
	// were: printers turn several blanks into one, and shells write three marks for
	// one.
	between rune = -1
	// lineBreak is the same, or nothing: control characters may be left out.
	lineBreak rune = -2
)

// patternsOf gives the patterns of a secret: itself, its lines, and what all
// base64 texts have in common that it stands in.
func patternsOf(text string) []pattern {
	if len(text) < minimum {
		return nil
	}
	out := inOneLine(text)
	if lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		for _, l := range lines {
			l = strings.TrimSpace(l)
			if len(l) >= minimumLine || len(l) >= minimum && utf8.RuneCountInString(text) <= shortText {
				out = append(out, inOneLine(l)...)
			}
		}
	}
	for _, variant := range []string{text, strings.TrimSpace(text)} {
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			for _, form := range append(inBase64(enc, variant), enc.EncodeToString([]byte(variant))) {
				if len(form) >= minimum {
					out = append(out, pattern(form))
				}
			}
		}
	}
	return out
}

// inOneLine gives the pattern of a text in which blanks may be turned into others
// and backslashes are left to those that the text is escaped with. A text that
// is hardly more than those is taken as it is, and as what makes one line of it.
func inOneLine(text string) []pattern {
	if p, solid := loosely(text); solid >= minimum {
		return []pattern{p}
	}
	var out []pattern
	for _, variant := range []string{text, strings.Map(asBlank, text), strings.Map(dropped, text), strings.Join(strings.Fields(text), " ")} {
		if len(variant) >= minimum {
			out = append(out, exactly(variant))
		}
	}
	return out
}

// loosely leaves out what stands at the ends of a secret and may be between its
// characters. solid is how many bytes the others have.
func loosely(text string) (p pattern, solid int) {
	gap := rune(0)
	for _, r := range text {
		switch {
		case r == '\\':
		case unicode.IsControl(r):
			gap = lineBreak
		case isBetween(r):
			gap = min(gap, between)
		default:
			if gap != 0 && solid > 0 {
				p = append(p, gap)
			}
			p, gap = append(p, r), 0
			solid += utf8.RuneLen(r)
		}
	}
	return p, solid
}

// exactly takes several backslashes for one: in an escaped text there are more.
func exactly(text string) pattern {
	var p pattern
	for _, r := range text {
		if r != '\\' || len(p) == 0 || p[len(p)-1] != '\\' {
			p = append(p, r)
		}
	}
	return p
}

// isBetween takes quotation marks, what printers turn into blanks, and what they
// show as an escape because a terminal would obey it.
func isBetween(r rune) bool {
	return r == '\'' || r == '"' || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// What makes one line of a text turns control characters into blanks, or leaves
// them out.
func asBlank(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func dropped(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// inBase64 gives what is common to all base64 texts that have the secret
// somewhere inside, as in the user:password of an Authorization header. It
// depends on the place modulo three; the characters that also depend on the
// neighbours are left out.
func inBase64(enc *base64.Encoding, text string) []string {
	const shortest = 6 // of a secret: less would match by chance
	if len(text) < shortest {
		return nil
	}
	var out []string
	for before := range 3 {
		whole := enc.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", before) + text))
		from := (before*8 + 5) / 6
		to := (before + len(text)) * 8 / 6
		out = append(out, whole[from:to])
	}
	return out
}
