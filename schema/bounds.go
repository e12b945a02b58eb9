package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Bounds of what evaluation may make. Without them forty locals that each put the
// one before into a text twice would fill the memory of any machine.
const (
	maxText     = 1 << 20 // bytes that one function call may make
	maxMaterial = 4 << 20 // bytes that the references of one expression may stand for
	maxProduct  = 4 << 20 // the same times the rounds of its loop
	maxPattern  = 1 << 16 // bytes that a regular expression is applied to
	maxYAML     = 1 << 17 // bytes of a YAML text
	elementSize = 32      // bytes that a value counts beside its text
)

// fits reports whether evaluating an expression stays within the bounds, judged
// by the sizes of what it refers to.
func (r *reporter) fits(expr hclsyntax.Expression, looked seen, ctx *hcl.EvalContext) bool {
	total := 0
	for _, ref := range looked.refs {
		if total += referenceSize(ref.steps, ctx, maxMaterial-total); total >= maxMaterial {
			r.error(expr.Range(), "Value too large", "What this expression refers to is larger than %d MiB together. Split it, or use less of it.", maxMaterial>>20)
			return false
		}
	}
	if looked.looped && loopMakes(expr, total, ctx) > maxProduct {
		r.error(expr.Range(), "Value too large", "The loop of this expression would make more than %d MiB. Split it, or use less of it.", maxProduct>>20)
		return false
	}
	return true
}

func referenceSize(steps hcl.Traversal, ctx *hcl.EvalContext, limit int) int {
	v, diags := steps.TraverseAbs(ctx)
	if diags.HasErrors() {
		return 0
	}
	return valueSize(v, limit)
}

// loopMakes bounds what for expressions copy from outside of themselves: they
// cannot run more often than their references have bytes, or range has numbers.
func loopMakes(expr hclsyntax.Expression, total int, ctx *hcl.EvalContext) int {
	made := 0
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics { // it reports nothing
		loop, ok := n.(*hclsyntax.ForExpr)
		if !ok {
			return nil
		}
		rounds := max(total, 1024)
		if written, isList := loop.CollExpr.(*hclsyntax.TupleConsExpr); isList {
			rounds = max(rounds, len(written.Exprs))
		}
		for _, part := range []hclsyntax.Expression{loop.KeyExpr, loop.ValExpr, loop.CondExpr} {
			if part == nil {
				continue
			}
			for _, steps := range part.Variables() {
				if name := steps.RootName(); name != loop.KeyVar && name != loop.ValVar {
					made += rounds * referenceSize(steps, ctx, maxProduct)
				}
			}
		}
		return nil
	})
	return made
}

// valueSize adds up the texts and elements of a value, and stops at a limit.
func valueSize(v cty.Value, limit int) int {
	if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		return min(elementSize+len(v.AsString()), limit) // the usual case
	}
	size := 0
	errEnough := errors.New("enough")
	err := cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		size += elementSize
		if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			size += len(v.AsString())
		}
		if size >= limit {
			return false, errEnough
		}
		return true, nil
	})
	if err != nil {
		return limit
	}
	return size
}

// bounded refuses calls whose result would be out of proportion, before they
// are made. fits sees known, non-null arguments only.
func bounded(fn function.Function, fits func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Params: fn.Params(), VarParam: fn.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if known(args) { // some functions do their work for the type already
				if err := fits(args); err != nil {
					return cty.NilType, err
				}
			}
			return fn.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if known(args) {
				if err := fits(args); err != nil {
					return cty.NilVal, err
				}
			}
			return fn.Call(args)
		},
	})
}

func known(args []cty.Value) bool {
	for _, a := range args {
		if !a.IsWhollyKnown() || a.IsNull() {
			return false
		}
	}
	return true
}

var wideVerb = regexp.MustCompile(`%[^a-zA-Z%]*[0-9]{4,}`)

// formatFits looks at the pattern only: each verb takes one argument.
func formatFits(args []cty.Value) error {
	if wideVerb.MatchString(args[0].AsString()) {
		return function.NewArgErrorf(0, "widths of more than 999 characters are not served")
	}
	return nil
}

// formatListFits also counts the texts that it would make.
func formatListFits(args []cty.Value) error {
	if err := formatFits(args); err != nil {
		return err
	}
	elements, size := 1, len(args[0].AsString())
	for _, a := range args[1:] {
		size += valueSize(a, maxMaterial)
		if a.Type().IsListType() || a.Type().IsTupleType() || a.Type().IsSetType() {
			elements = max(elements, a.LengthInt())
		}
	}
	if elements*size > 4*maxText {
		return errTooLong
	}
	return nil
}

var errTooLong = fmt.Errorf("the result would be longer than %d bytes", maxText)

func joinFits(args []cty.Value) error {
	elements := 0
	for _, list := range args[1:] {
		if list.CanIterateElements() {
			elements += list.LengthInt()
		}
	}
	if len(args[0].AsString())*elements > maxText {
		return errTooLong
	}
	return nil
}

func replaceFits(args []cty.Value) error {
	text, old, replacement := args[0].AsString(), args[1].AsString(), args[2].AsString()
	if strings.Count(text, old)*len(replacement) > maxText {
		return errTooLong
	}
	return nil
}

func indentFits(args []cty.Value) error {
	n, _ := args[0].AsBigFloat().Int64()
	if n < 0 || n > 100 {
		return function.NewArgErrorf(0, "must be a number from 0 to 100")
	}
	if strings.Count(args[1].AsString(), "\n")*int(n) > maxText {
		return errTooLong
	}
	return nil
}

// patternFits bounds the text. Go's regular expressions take time in proportion
// to it, whatever the pattern.
func patternFits(text int) func([]cty.Value) error {
	return func(args []cty.Value) error {
		if len(args[text].AsString()) > maxPattern {
			return function.NewArgErrorf(text, "is longer than %d bytes", maxPattern)
		}
		return nil
	}
}

func regexReplaceFits(args []cty.Value) error {
	if err := patternFits(0)(args); err != nil {
		return err
	}
	// At most one match before each character and one at the end.
	if (utf8.RuneCountInString(args[0].AsString())+1)*len(args[2].AsString()) > maxText {
		return errTooLong
	}
	return nil
}

func numberFits(most float64) func([]cty.Value) error {
	return func(args []cty.Value) error {
		for i, a := range args {
			if f, _ := a.AsBigFloat().Float64(); f > most || f < -most {
				return function.NewArgErrorf(i, "is too large")
			}
		}
		return nil
	}
}

func jsonFits(args []cty.Value) error {
	if depth := bracketDepth(args[0].AsString()); depth > maxNesting {
		return function.NewArgErrorf(0, "brackets may be nested %d deep", maxNesting)
	}
	return nil
}

var (
	yamlAnchor = regexp.MustCompile(`(?:^|[\s\[{,:-])&[^\s,\[\]{}]`)
	yamlAlias  = regexp.MustCompile(`(?:^|[\s\[{,:-])\*[^\s,\[\]{}/]`)
	yamlDeep   = regexp.MustCompile(`(?:[-?:] +){20}`)
)

// yamlFits refuses what makes a small text large (aliases) or deep.
func yamlFits(args []cty.Value) error {
	text := args[0].AsString()
	switch {
	case len(text) > maxYAML:
		return function.NewArgErrorf(0, "is longer than %d bytes", maxYAML)
	case yamlAnchor.MatchString(text) && yamlAlias.MatchString(text):
		return function.NewArgErrorf(0, "aliases (*name) are not served; write the value out")
	case bracketDepth(text) > maxNesting || yamlDeep.MatchString(text) || indentDepth(text) > maxNesting:
		return function.NewArgErrorf(0, "values may be nested %d deep", maxNesting)
	}
	return nil
}

// bracketDepth is at least how deep brackets are nested; brackets in texts count.
func bracketDepth(text string) int {
	depth, deepest := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

// indentDepth is how many different indentations are open at once.
func indentDepth(text string) int {
	var open []int
	deepest := 0
	for _, line := range strings.Split(text, "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if indent == len(line) {
			continue
		}
		for len(open) > 0 && open[len(open)-1] >= indent {
			open = open[:len(open)-1]
		}
		open = append(open, indent)
		deepest = max(deepest, len(open))
	}
	return deepest
}
