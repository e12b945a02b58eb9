package schema

import (
	"regexp"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// What is written where a secret belongs may be a variable or a local: then its
// value is shown in no other place either, and the text that gives it its value is
// hidden like one that stands there itself. It is found in tokens, so that it also
// holds where a file does not parse.

// flow hides what gives variables and locals their values that stand where a
// secret belongs, in all files that were read, and notes their names.
func (r *reporter) flow() {
	r.flowing = map[string]bool{}
	for again := true; again; {
		again = false
		for _, src := range r.sources {
			for _, name := range src.flows(r.flowing) {
				again = again || !r.flowing[name]
				r.flowing[name] = true
			}
		}
	}
	if len(r.flowing) == 0 {
		return
	}
	for _, src := range r.sources {
		src.hideNamed(r.flowing)
	}
}

// secretive reports whether a reference stands for something that is not shown.
func (r *reporter) secretive(ref reference) bool {
	root, name := ref.names()
	return isSensitiveName(name) || (root == "var" || root == "local") && r.flowing[name]
}

// flows lists the variables and locals that a file uses where a secret belongs, or
// to give a value to one of the names.
func (s *source) flows(names map[string]bool) []string {
	var out []string
	assignments(s.tokens, func(name string, expr hclsyntax.Tokens) {
		if !names[name] && !isSensitiveName(name) && !saysWhere(name) {
			return
		}
		eachPart(expr, func(i int) {
			if i+2 < len(expr) && isRoot(expr, i) && expr[i+1].Type == hclsyntax.TokenDot && expr[i+2].Type == hclsyntax.TokenIdent {
				out = append(out, string(expr[i+2].Bytes))
			}
		})
	})
	if s.json != nil {
		out = s.json.flows(names, false, out)
	}
	if s.broken {
		eachLine(s.bytes, func(name string, from, to int) {
			if names[name] || isSensitiveName(name) || saysWhere(name) {
				out = flowsOf(string(s.bytes[from:to]), out)
			}
		})
	}
	return out
}

// isRoot reports whether a token begins a reference to a variable or a local.
func isRoot(tokens hclsyntax.Tokens, i int) bool {
	word := string(tokens[i].Bytes)
	return tokens[i].Type == hclsyntax.TokenIdent && (word == "var" || word == "local") && (i == 0 || tokens[i-1].Type != hclsyntax.TokenDot)
}

// hideNamed hides the texts that give the names their values.
func (s *source) hideNamed(names map[string]bool) {
	assignments(s.tokens, func(name string, expr hclsyntax.Tokens) {
		if names[name] {
			s.hidden = append(s.hidden, hideExpression(expr)...)
		}
	})
	for i, t := range s.tokens {
		if string(t.Bytes) == "variable" && i+2 < len(s.tokens) && names[string(s.tokens[i+2].Bytes)] {
			s.hidden = append(s.hidden, hideDefault(s.tokens[i+2:])...)
		}
	}
	if s.json != nil {
		s.hidden = s.json.hideNamed(names, s.hidden)
	}
	if s.broken {
		s.hidden = append(s.hidden, hideLines(s.bytes, func(name string) bool { return names[name] })...)
	}
	s.ordered = false
}

// assignments visits what is written behind equals signs, with the name before it.
func assignments(tokens hclsyntax.Tokens, visit func(name string, expr hclsyntax.Tokens)) {
	for i, t := range tokens {
		if t.Type != hclsyntax.TokenEqual && t.Type != hclsyntax.TokenColon || i == 0 {
			continue
		}
		name := string(tokens[i-1].Bytes)
		if tokens[i-1].Type == hclsyntax.TokenCQuote && i > 1 {
			name = string(tokens[i-2].Bytes) // { "password" = … }
		}
		visit(name, tokens[i+1:])
	}
}

var (
	insideTemplate = regexp.MustCompile(`\$\{[^}]*\}`)
	pairInTemplate = regexp.MustCompile(`secret\([^(),]*,[^(),]*\)`)
	rootInTemplate = regexp.MustCompile(`\b(?:var|local)\.([A-Za-z0-9_-]+)`)
)

func flowsOf(expr string, out []string) []string {
	for _, m := range rootInTemplate.FindAllStringSubmatch(pairInTemplate.ReplaceAllString(expr, ""), -1) {
		out = append(out, m[1])
	}
	return out
}

// flows is the same for the JSON form.
func (n *jsonNode) flows(names map[string]bool, wanted bool, out []string) []string {
	if wanted && n.kind == '"' {
		for _, expr := range insideTemplate.FindAllString(n.text, -1) {
			out = flowsOf(expr, out)
		}
	}
	for i := range n.items {
		out = n.items[i].flows(names, wanted, out)
	}
	for i := range n.props {
		p := &n.props[i]
		out = p.value.flows(names, wanted || names[p.name] || isSensitiveName(p.name) || saysWhere(p.name), out)
	}
	return out
}

func (n *jsonNode) hideNamed(names map[string]bool, out []span) []span {
	for i := range n.items {
		out = n.items[i].hideNamed(names, out)
	}
	for i := range n.props {
		p := &n.props[i]
		if names[p.name] {
			out = hideJSON(p.value, true, out)
			continue
		}
		out = p.value.hideNamed(names, out)
	}
	return out
}
