package plan

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Invisible finds the characters that a terminal would obey, or that a reader's
// eye would not see: controls, format characters such as marks that turn the
// direction of writing, separators of lines, private use.
func Invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// VisibleJSON spells the invisible characters in the texts of a JSON document as
// escapes. The blanks between its members stay.
func VisibleJSON(raw []byte) []byte { return appendVisible(make([]byte, 0, len(raw)), raw) }

// appendVisible appends JSON with its invisible characters as escapes. Outside of
// texts JSON has none but blanks, and inside of them none below a space.
func appendVisible(out, text []byte) []byte {
	for at := 0; at < len(text); {
		if text[at] < 0x7f {
			begin := at
			for at < len(text) && text[at] < 0x7f {
				at++
			}
			out = append(out, text[begin:at]...)
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		switch high, low := utf16.EncodeRune(r); {
		case r == utf8.RuneError || !Invisible(r):
			out = append(out, text[at:at+size]...)
		case high != unicode.ReplacementChar:
			out = appendEscape(appendEscape(out, high), low)
		default:
			out = appendEscape(out, r)
		}
		at += size
	}
	return out
}

// appendEscape writes one unit of UTF-16 as JSON spells it.
func appendEscape(out []byte, unit rune) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}
