package schema

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// decides refuses comparisons in a condition that can only come out one way: of
// values of different types, which are never equal, and with words that a closed
// list does not have. A policy that can never hold would pass in silence.
func (r *reporter) decides(expr hclsyntax.Expression, ctx *hcl.EvalContext) bool {
	before := len(r.diags)
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.BinaryOpExpr:
			if n.Op == hclsyntax.OpEqual || n.Op == hclsyntax.OpNotEqual {
				r.comparable(n, ctx)
				r.closed(n.LHS, n.RHS)
				r.closed(n.RHS, n.LHS)
			}
		case *hclsyntax.FunctionCallExpr:
			if n.Name == "contains" && len(n.Args) == 2 {
				r.closed(n.Args[0], n.Args[1])
			}
		}
		return nil
	})
	return len(r.diags) == before
}

// comparable reports two sides whose types differ.
func (r *reporter) comparable(n *hclsyntax.BinaryOpExpr, ctx *hcl.EvalContext) {
	left, leftDiags := n.LHS.Value(ctx)
	right, rightDiags := n.RHS.Value(ctx)
	if leftDiags.HasErrors() || rightDiags.HasErrors() || anyNull(left) || anyNull(right) {
		return // the name of a loop, or a question whether something is there
	}
	lt, rt := left.Type(), right.Type()
	if lt == cty.DynamicPseudoType || rt == cty.DynamicPseudoType || lt.Equals(rt) || lt.HasDynamicTypes() || rt.HasDynamicTypes() {
		return
	}
	r.error(n.Range(), "Comparison that is never true", "The left side is %s and the right side is %s: they are never equal. Convert one of them, for example with tostring, tonumber or tolist.", lt.FriendlyName(), rt.FriendlyName())
}

func anyNull(v cty.Value) bool { return v.IsKnown() && v.IsNull() }

// closed reports a word that the list of a step's attribute does not have.
func (r *reporter) closed(attribute, word hclsyntax.Expression) {
	t, ok := attribute.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 2 || t.Traversal.RootName() != "step" {
		return
	}
	name, ok := t.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return
	}
	var words []string
	switch name.Name {
	case "action":
		for _, a := range plan.Actions() {
			words = append(words, string(a))
		}
	case "effects":
		for _, e := range plan.Effects() {
			words = append(words, string(e))
		}
	case "kind":
		words = plan.KindNames()
	default:
		return
	}
	v, diags := word.Value(nil)
	if diags.HasErrors() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String || slices.Contains(words, v.AsString()) {
		return // not a word that stands there, or a good one
	}
	r.error(word.Range(), "Unknown word", "step.%s is never %s; it is one of %s.", name.Name, quote(v.AsString()), strings.Join(words, ", "))
}
