package schema

import (
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Attributes such as token_env and identity_file say where a credential is, and
// people write the credential itself. Then it is refused, and shown as little as
// in token.

// saysWhere reports whether an attribute names the place of a credential; also a
// misspelt one.
func saysWhere(name string) bool {
	name = strings.ToLower(name)
	return name != "ca_file" && name != "known_hosts_file" && (strings.HasSuffix(name, "_env") || strings.HasSuffix(name, "_file"))
}

var (
	usualVariable  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	credentialForm = regexp.MustCompile(`^(?:hv[sbr]\.|[sbr]\.[A-Za-z0-9]{16}|eyJ|ops_|gh[a-z]_|AGE-SECRET-KEY-|-----BEGIN|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$)`)
	longRun        = regexp.MustCompile(`[A-Za-z0-9]{20,}`)
	letter         = regexp.MustCompile(`[A-Za-z]`)
	digit          = regexp.MustCompile(`[0-9]`)
)

// looksLikeCredential finds keys and tokens by their first characters, and by
// runs of letters and digits that no name and no file has. What begins with a
// slash is a path.
func looksLikeCredential(s string) bool {
	if credentialForm.MatchString(s) {
		return true
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
		return false
	}
	run := longRun.FindString(s)
	return letter.MatchString(run) && digit.MatchString(run) || len(s) >= 20 && strings.ContainsAny(s, "+=")
}

// isPlace reports whether a text may be shown as the value of an attribute that
// saysWhere.
func isPlace(name, text string) bool {
	if strings.HasSuffix(strings.ToLower(name), "_env") {
		return usualVariable.MatchString(text) && !looksLikeCredential(text)
	}
	return !looksLikeCredential(text)
}

// hidePlace hides the texts of an expression that are no place.
func hidePlace(name string, expr hclsyntax.Tokens) []span {
	good := true
	eachPart(expr, func(i int) {
		switch t := expr[i]; t.Type {
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			good = good && isPlace(name, string(t.Bytes))
		default:
			good = good && isReferencePart(expr, i)
		}
	})
	if good {
		return nil
	}
	return hideExpression(expr)
}
