package schema

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Bounds of what hcl's parser and evaluator are given. Both recurse: with
// brackets, with templates, and with a chain of operators, and a stack that
// overflows ends the process.
const (
	maxNesting = 64
	maxChain   = 2000 // tokens of one expression between two commas
)

// tooDeep looks at the tokens of a file before anything recursive does. It gives
// the place and a sentence, or "".
func tooDeep(tokens hclsyntax.Tokens) (hcl.Range, string) {
	type level struct {
		newlineEnds bool // a newline ends an expression here
		chain       int
	}
	stack := []level{{newlineEnds: true}}
	conditions := 0 // open %{ if } and %{ for }
	for i, t := range tokens {
		top := &stack[len(stack)-1]
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			top.chain++ // a call, an index or a template is a link of the chain around it
			stack = append(stack, level{newlineEnds: t.Type == hclsyntax.TokenOBrace})
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case hclsyntax.TokenComma:
			top.chain = 0
		case hclsyntax.TokenNewline:
			if top.newlineEnds {
				top.chain = 0
			}
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenComment:
			// The parts of a long text stand side by side, not inside each other.
		default:
			top.chain++
		}
		if t.Type == hclsyntax.TokenIdent && i > 0 && tokens[i-1].Type == hclsyntax.TokenTemplateControl {
			switch string(t.Bytes) {
			case "if", "for":
				conditions++
			case "endif", "endfor":
				conditions--
			}
		}
		if depth := len(stack) + max(conditions, 0); depth > maxNesting {
			return t.Range, fmt.Sprintf("Brackets and templates may be nested %d deep.", maxNesting)
		}
		if stack[len(stack)-1].chain > maxChain {
			return t.Range, fmt.Sprintf("One expression may have %d parts.", maxChain)
		}
	}
	return hcl.Range{}, ""
}
