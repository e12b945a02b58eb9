package schema

import (
	"bytes"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/enroll-dev/enroll/plan"
)

// span is a piece of a file, in bytes.
type span struct{ from, to int }

const hiddenText = "(hidden)"

// hideTokens finds the texts that no snippet may show: whatever is written where
// a secret belongs and is no reference, and addresses with a password in them.
// It works on tokens, so that it also holds where the file does not parse.
func hideTokens(tokens hclsyntax.Tokens) []span {
	var spans []span
	for i, t := range tokens {
		if t.Type == hclsyntax.TokenQuotedLit || t.Type == hclsyntax.TokenStringLit {
			if userinfo.Match(t.Bytes) {
				spans = append(spans, span{t.Range.Start.Byte, t.Range.End.Byte})
			}
			continue
		}
		if isLineStart(tokens, i) && t.Type == hclsyntax.TokenIdent {
			spans = append(spans, hideLine(tokens, i)...)
		}
	}
	assignments(tokens, func(name string, expr hclsyntax.Tokens) {
		switch {
		case isSensitiveName(name):
			spans = append(spans, hideExpression(expr)...)
		case saysWhere(name):
			spans = append(spans, hidePlace(name, expr)...)
		}
	})
	return spans
}

// isLineStart reports whether a token is the first of its line or block.
func isLineStart(tokens hclsyntax.Tokens, i int) bool {
	if i == 0 {
		return true
	}
	switch tokens[i-1].Type {
	case hclsyntax.TokenNewline, hclsyntax.TokenOBrace:
		return true
	case hclsyntax.TokenComment:
		return bytes.HasSuffix(tokens[i-1].Bytes, []byte("\n"))
	default:
	}
	return false
}

// hideLine hides what stands behind a name at the beginning of a line where
// something else than "=" follows it: a sensitive attribute that is written like
// a block or with a wrong sign, and the default of a variable that sounds like a
// secret.
func hideLine(tokens hclsyntax.Tokens, i int) []span {
	if i+1 >= len(tokens) {
		return nil
	}
	name, next := string(tokens[i].Bytes), tokens[i+1].Type
	if name == "variable" && next == hclsyntax.TokenOQuote && i+2 < len(tokens) && isSensitiveName(string(tokens[i+2].Bytes)) {
		return hideDefault(tokens[i+2:])
	}
	if next == hclsyntax.TokenEqual || next == hclsyntax.TokenColon || next == hclsyntax.TokenNewline || next == hclsyntax.TokenEOF || !isSensitiveName(name) && !saysWhere(name) || isBlockName(name) {
		return nil
	}
	return hideExpression(tokens[i+1:])
}

// hideDefault hides the default in the block whose label tokens begin with.
func hideDefault(tokens hclsyntax.Tokens) []span {
	depth := 0
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace:
			depth++
		case hclsyntax.TokenCBrace:
			if depth--; depth <= 0 {
				return nil
			}
		case hclsyntax.TokenEqual:
			if depth == 1 && i > 0 && string(tokens[i-1].Bytes) == "default" {
				return hideExpression(tokens[i+1:])
			}
		default:
		}
	}
	return nil
}

// blockNames are the types of blocks that the language has.
var blockNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	var walk func(b *block)
	walk = func(b *block) {
		for _, child := range b.blocks {
			names[child.name] = true
			walk(child)
		}
	}
	walk(language())
	return names
})

func isBlockName(name string) bool { return blockNames()[name] }

var userinfo = regexp.MustCompile(`://[^/\s]*@`)

// hideExpression hides everything of the expression at the beginning of tokens
// but calls of secret and references.
func hideExpression(tokens hclsyntax.Tokens) []span {
	var spans []span
	eachPart(tokens, func(i int) {
		switch t := tokens[i]; {
		case t.Type == hclsyntax.TokenComment:
			spans = append(spans, span{t.Range.Start.Byte, t.Range.Start.Byte + len(bytes.TrimRight(t.Bytes, "\r\n"))})
		case !isReferencePart(tokens, i):
			spans = append(spans, span{t.Range.Start.Byte, t.Range.End.Byte})
		}
	})
	return spans
}

// eachPart visits the tokens of the expression that tokens begin with, but for
// brackets, separators and what stands in calls of secret.
func eachPart(tokens hclsyntax.Tokens, visit func(i int)) {
	depth := 0
	commas := 0       // inside it: it has an item and a field
	secretDepth := -1 // the bracket depth of the secret( call that we are in
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			if t.Type == hclsyntax.TokenOParen && secretDepth < 0 && i > 0 && string(tokens[i-1].Bytes) == "secret" && isPair(tokens[i:]) {
				secretDepth, commas = depth, 0
			}
			depth++
			continue
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if depth--; depth < 0 {
				return
			}
			if depth == secretDepth {
				secretDepth = -1
			}
			continue
		case hclsyntax.TokenNewline, hclsyntax.TokenComma:
			if depth == 0 && i == 0 && t.Type == hclsyntax.TokenNewline {
				continue // the value was put on the next line
			}
			if depth == 0 {
				return
			}
			if t.Type == hclsyntax.TokenComma && depth == secretDepth+1 {
				commas++
			}
			continue
		case hclsyntax.TokenEOF, hclsyntax.TokenEqual:
			continue
		case hclsyntax.TokenComment:
			visit(i)
			if depth == 0 && bytes.HasSuffix(t.Bytes, []byte("\n")) {
				return
			}
			continue
		default:
		}
		if secretDepth < 0 || commas >= 2 {
			visit(i)
		}
	}
}

// isPair reports whether the parenthesis that tokens begin with holds an item
// and a field: two arguments, each quoted or a reference. Anything else in a call
// of secret may be the secret itself.
func isPair(tokens hclsyntax.Tokens) bool {
	depth, commas := 0, 0
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOBrace, hclsyntax.TokenTemplateInterp:
			depth++
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenTemplateSeqEnd:
			if depth--; depth == 0 {
				return commas == 1
			}
		case hclsyntax.TokenComma:
			if depth == 1 {
				commas++
			}
		case hclsyntax.TokenIdent:
			if depth == 1 && !isReferencePart(tokens, i) {
				return false
			}
		case hclsyntax.TokenEOF:
			return false
		default:
		}
	}
	return false
}

var assignment = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_-]*)"?[ \t]*[=:][ \t]*([^\r\n]*)`)
var onlyReference = regexp.MustCompile(`^(?:var|local|device)\.[A-Za-z0-9_.-]*[ \t]*$|^secret\([^(),]*,[^(),]*\)[ \t]*$`)

// eachLine visits what follows a name to the end of its line; more may stand in the
// same line.
func eachLine(text []byte, visit func(name string, from, to int)) {
	for at := 0; ; {
		m := assignment.FindSubmatchIndex(text[at:])
		if m == nil {
			return
		}
		visit(string(text[at+m[2]:at+m[3]]), at+m[4], at+m[5])
		at += m[4]
	}
}

// hideLines does the same line by line, for files in which the tokens are not
// what was meant: behind a quote that is not closed everything is a text.
func hideLines(text []byte, sensitive func(name string) bool) []span {
	var spans []span
	eachLine(text, func(name string, from, to int) {
		value := strings.Trim(strings.TrimSpace(string(text[from:to])), `",`)
		if (sensitive(name) || saysWhere(name) && !isPlace(name, value)) && !onlyReference.Match(text[from:to]) && from < to {
			spans = append(spans, span{from, to})
		}
	})
	for _, m := range userinfo.FindAllIndex(text, -1) {
		spans = append(spans, span{m[0], m[1]})
	}
	return spans
}

func isReferencePart(tokens hclsyntax.Tokens, i int) bool {
	t := tokens[i]
	switch t.Type {
	case hclsyntax.TokenDot, hclsyntax.TokenQuestion, hclsyntax.TokenColon:
		return true
	case hclsyntax.TokenIdent:
		if i > 0 && tokens[i-1].Type == hclsyntax.TokenDot {
			return i > 1 && tokens[i-2].Type == hclsyntax.TokenIdent
		}
		switch string(t.Bytes) {
		case "secret", "var", "local", "device":
			return true
		}
	default:
	}
	return false
}

// names of the table, computed once: which hold a secret and which do not.
var tableNames = sync.OnceValues(func() (secret, plain map[string]bool) {
	secret, plain = map[string]bool{}, map[string]bool{}
	language().walkAttributes(func(_ *block, a *attribute) {
		if a.typ == secretType {
			secret[a.name] = true
		} else {
			plain[a.name] = true
		}
	})
	return secret, plain
})

// isSensitiveName reports whether what is written beside a name may be a secret:
// it is one by the table, it is nearly one (misspelt), or it sounds like one.
func isSensitiveName(name string) bool {
	secret, plain := tableNames()
	lower := strings.ToLower(name)
	if secret[lower] {
		return true
	}
	if plain[lower] {
		return false
	}
	for _, word := range []string{"password", "passwd", "passphrase", "token", "secret", "credential", "apikey", "api_key", "private_key", "identity"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	for known := range secret {
		if len(lower) >= 4 && lettersOutside(lower, known) < 3 && plan.EditDistance(lower, known, 3) < 3 {
			return true
		}
	}
	return false
}

// lettersOutside counts what another word does not have: each is an edit at least.
func lettersOutside(word, other string) int {
	n := 0
	for i := range len(word) {
		if strings.IndexByte(other, word[i]) < 0 {
			n++
		}
	}
	return n
}

// hide adds a range that no snippet may show.
func (r *reporter) hide(at hcl.Range) {
	if src := r.sources[at.Filename]; src != nil {
		at = src.inFile(at)
		src.hidden = append(src.hidden, span{at.Start.Byte, at.End.Byte})
		src.ordered = false
	}
}

// shown quotes a name of the file for a message, unless it stands where nothing
// may be shown.
func (r *reporter) shown(at hcl.Range, name string) string {
	if r.hidden(at) {
		return "such name"
	}
	return quote(name)
}

// hidden reports whether a range touches something that is not shown.
func (r *reporter) hidden(at hcl.Range) bool {
	src := r.sources[at.Filename]
	return src != nil && src.hides(at)
}

// hides reports whether a range touches something hidden.
func (s *source) hides(at hcl.Range) bool {
	at = s.inFile(at)
	for _, h := range s.hidden {
		if at.Start.Byte < h.to && h.from < max(at.End.Byte, at.Start.Byte+1) {
			return true
		}
	}
	return false
}

// hiddenSpans sorts and merges.
func (s *source) hiddenSpans() []span {
	if s.ordered {
		return s.hidden
	}
	sort.Slice(s.hidden, func(i, j int) bool { return s.hidden[i].from < s.hidden[j].from })
	merged := s.hidden[:0]
	for _, h := range s.hidden {
		if n := len(merged); n > 0 && h.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, h.to)
			continue
		}
		merged = append(merged, h)
	}
	s.hidden, s.ordered = merged, true
	return merged
}
