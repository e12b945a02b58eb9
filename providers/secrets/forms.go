package secrets

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// minimumLine is the length from which on the lines of a secret text, such as a
// private key, are secrets of their own: a printer may indent them.
const minimumLine = 20

// formsOf gives the forms in which a secret may turn up in output.
func formsOf(text string) []string {
	if len(text) < minimum {
		return nil
	}
	forms := encodings(text)
	if trimmed := strings.TrimSpace(text); trimmed != text && len(trimmed) >= minimum {
		forms = append(forms, encodings(trimmed)...)
	}
	if lines := strings.Split(text, "\n"); len(lines) > 1 {
		for _, l := range lines {
			if l = strings.TrimSpace(l); len(l) >= minimumLine {
				forms = append(forms, l)
			}
		}
	}
	return forms
}

func encodings(text string) []string {
	forms := []string{
		text,
		url.QueryEscape(text), url.PathEscape(text), strings.ReplaceAll(url.QueryEscape(text), "+", "%20"),
		unquoted(strconv.Quote(text)), jsonText(text, true), jsonText(text, false),
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(text)))
		forms = append(forms, inBase64(enc, text)...)
	}
	return forms
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
