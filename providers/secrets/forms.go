package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A printer may indent or cut up a secret text of several lines, so its lines are
// secrets of their own: of a key those that are long, which no ordinary line is
// by chance, of something as short as a password all that count at all.
const (
	minimumLine = 20
	shortText   = 64 // characters
)

// formsOf gives the forms in which a secret may turn up in output.
func formsOf(text string) []string {
	if len(text) < minimum {
		return nil
	}
	var forms []string
	seen := map[string]bool{}
	for _, variant := range []string{text, strings.TrimSpace(text), strings.Map(asBlank, text), strings.Map(dropped, text), strings.Join(strings.Fields(text), " ")} {
		if !seen[variant] && len(variant) >= minimum {
			seen[variant] = true
			forms = append(forms, encodings(variant)...)
		}
	}
	if lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		for _, l := range lines {
			switch l = strings.TrimSpace(l); {
			case utf8.RuneCountInString(text) <= shortText && len(l) >= minimum:
				forms = append(forms, encodings(l)...)
			case len(l) >= minimumLine:
				forms = append(forms, l)
			}
		}
	}
	return forms
}

// What makes one line of a text turns control characters into blanks, leaves them
// out, or leaves one blank of several.
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

func encodings(text string) []string {
	forms := []string{text, shown(text), html.EscapeString(text)}
	forms = append(forms, inURL(text)...)
	forms = append(forms, inJSON(text)...)
	forms = append(forms, inShell(text)...)
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(text)))
		forms = append(forms, inBase64(enc, text)...)
	}
	return forms
}

// inURL gives what stands in a query, a path and before the host.
func inURL(text string) []string {
	forms := []string{url.QueryEscape(text), url.PathEscape(text), strings.ReplaceAll(url.QueryEscape(text), "+", "%20"), strings.TrimPrefix(url.UserPassword("", text).String(), ":")}
	var all strings.Builder // everything but letters, digits and -_.~, as other languages do
	for _, b := range []byte(text) {
		if unreserved(b) {
			all.WriteByte(b)
		} else {
			fmt.Fprintf(&all, "%%%02x", b)
		}
	}
	return append(forms, all.String())
}

func unreserved(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-_.~", b) >= 0
}

// inJSON gives a JSON text in Go's forms and in ASCII, also as a text inside a
// JSON text, such as the body of an answer in the evidence of a fault.
func inJSON(text string) []string {
	quoted := unquoted(strconv.Quote(text))
	forms := []string{quoted, unquoted(strconv.QuoteToASCII(text)), jsonText(quoted, true), jsonText(quoted, false)}
	for _, once := range []string{jsonText(text, true), jsonText(text, false), jsonASCII(text)} {
		forms = append(forms, once, jsonText(once, true), jsonText(once, false), strings.ReplaceAll(once, "/", `\/`))
	}
	return forms
}

// jsonASCII escapes everything beyond ASCII, as Python does.
func jsonASCII(text string) string {
	var b strings.Builder
	for _, r := range jsonText(text, false) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// inShell gives what stands inside single quotes, inside double quotes, and
// escaped by backslashes.
func inShell(text string) []string {
	var double, bare strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\"\\$`", r) {
			double.WriteByte('\\')
		}
		if r < 0x80 && !unreserved(byte(r)) && r > 0x20 || r == ' ' {
			bare.WriteByte('\\')
		}
		double.WriteRune(r)
		bare.WriteRune(r)
	}
	return []string{strings.ReplaceAll(text, "'", `'\''`), strings.ReplaceAll(text, "'", `'"'"'`), double.String(), bare.String()}
}

// shown is how the program's own text views print what a terminal would obey.
func shown(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unquoted(s string) string { return s[1 : len(s)-1] }

func jsonText(s string, escapeHTML bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	if err := enc.Encode(s); err != nil {
		return s
	}
	return unquoted(strings.TrimSuffix(b.String(), "\n"))
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
