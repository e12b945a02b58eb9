package schema

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/enroll-dev/enroll/plan"
)

// reference is a name that an expression uses.
type reference struct {
	steps   hcl.Traversal
	guarded bool // inside try(…) or can(…): what lies below its first two names may be missing
}

// names gives the first two: "var", "netbox_url".
func (ref reference) names() (root, name string) {
	root = ref.steps.RootName()
	if len(ref.steps) > 1 {
		switch step := ref.steps[1].(type) {
		case hcl.TraverseAttr:
			name = step.Name
		case hcl.TraverseIndex:
			if step.Key.Type() == cty.String {
				name = step.Key.AsString()
			}
		}
	}
	return root, name
}

// expressionWalk looks at an expression without evaluating it: which names it
// uses, whether its functions exist, whether it puts a secret where it must not
// be, and whether its loops are bounded.
type expressionWalk struct {
	r         *reporter
	functions map[string]function.Function
	refs      []reference
	ok        bool

	frames []frame
	scopes []map[string]struct{}
	loops  int
	looped bool // there is a for expression
}

// seen is what a look at an expression found. It holds for every evaluation.
type seen struct {
	refs   []reference
	looped bool
	ok     bool
}

type frame struct {
	node     hclsyntax.Node
	secretOK bool
	guarded  bool
}

func (r *reporter) walk(expr hclsyntax.Expression, functions map[string]function.Function) ([]reference, bool) {
	looked := r.look(expr, functions)
	return looked.refs, looked.ok
}

func (r *reporter) look(expr hclsyntax.Expression, functions map[string]function.Function) seen {
	w := &expressionWalk{r: r, functions: functions, ok: true}
	_ = hclsyntax.Walk(expr, w) // it reports through r
	return seen{w.refs, w.looped, w.ok}
}

// Enter implements hclsyntax.Walker.
func (w *expressionWalk) Enter(node hclsyntax.Node) hcl.Diagnostics {
	f := frame{node: node, secretOK: true}
	if n := len(w.frames); n > 0 {
		parent := w.frames[n-1]
		f.secretOK, f.guarded = parent.secretOK && carriesSecret(parent.node, node), parent.guarded
	}
	switch n := node.(type) {
	case *hclsyntax.FunctionCallExpr:
		w.call(n, f.secretOK)
		f.guarded = f.guarded || n.Name == "try" || n.Name == "can"
	case *hclsyntax.ScopeTraversalExpr:
		if !w.scoped(n.Traversal.RootName()) {
			w.refs = append(w.refs, reference{n.Traversal, f.guarded})
		}
	case *hclsyntax.ForExpr:
		w.looped = true
		if w.loops++; w.loops > 1 {
			w.fail(n.OpenRange, "Nested loop", "A for expression inside another one is not supported. Put the inner one into a local.")
		}
	case hclsyntax.ChildScope:
		w.scopes = append(w.scopes, n.LocalNames)
	}
	w.frames = append(w.frames, f)
	return nil
}

// Exit implements hclsyntax.Walker.
func (w *expressionWalk) Exit(node hclsyntax.Node) hcl.Diagnostics {
	w.frames = w.frames[:len(w.frames)-1]
	switch node.(type) {
	case *hclsyntax.ForExpr:
		w.loops--
	case hclsyntax.ChildScope:
		w.scopes = w.scopes[:len(w.scopes)-1]
	}
	return nil
}

func (w *expressionWalk) scoped(name string) bool {
	for _, names := range w.scopes {
		if _, local := names[name]; local {
			return true
		}
	}
	return false
}

func (w *expressionWalk) call(n *hclsyntax.FunctionCallExpr, secretOK bool) {
	if _, known := w.functions[n.Name]; !known {
		suggestion := plan.Suggest(n.Name, sortedNames(w.functions))
		w.ok = false
		said := "There is no function " + quote(n.Name) + "."
		if w.r.hidden(n.NameRange) {
			said = "There is no such function."
		}
		w.r.suggested(n.NameRange, suggestion, "Unknown function", "%s", said)
		return
	}
	if n.Name == "secret" && !secretOK {
		w.fail(n.NameRange, "Secret inside an expression",
			secretAlone)
	}
}

func (w *expressionWalk) fail(at hcl.Range, summary, detail string) {
	w.ok = false
	w.r.error(at, summary, "%s", detail)
}

// carriesSecret reports whether parent passes the value of child on unchanged.
func carriesSecret(parent, child hclsyntax.Node) bool {
	switch p := parent.(type) {
	case *hclsyntax.ConditionalExpr:
		return child != hclsyntax.Node(p.Condition)
	case *hclsyntax.FunctionCallExpr:
		return p.Name == "try"
	case *hclsyntax.ParenthesesExpr, *hclsyntax.ObjectConsExpr, *hclsyntax.TupleConsExpr, *hclsyntax.IndexExpr, *hclsyntax.RelativeTraversalExpr:
		return true
	}
	return false
}

// checkPath follows the names of a reference through the value of its root, as
// far as that is known, and reports the one that does not exist.
func (r *reporter) checkPath(ref reference, value cty.Value) bool {
	said := ref.steps.RootName()
	for i, step := range ref.steps[1:] {
		attr, ok := step.(hcl.TraverseAttr)
		if !ok || !value.IsKnown() || value.IsNull() {
			return true // evaluation says what is wrong with an index or a null
		}
		ty := value.Type()
		switch {
		case ty.IsObjectType() && !ty.HasAttribute(attr.Name):
			if ref.guarded && i > 0 {
				return true
			}
			names := sortedNames(ty.AttributeTypes())
			r.suggested(attr.SrcRange, plan.Suggest(attr.Name, names), "Unknown reference", "%s has no %s; it has %s.", said, r.shown(attr.SrcRange, attr.Name), shownNames(names))
			return false
		case ty.IsObjectType():
			value = value.GetAttr(attr.Name)
		case ty.IsMapType() && value.HasIndex(cty.StringVal(attr.Name)).False():
			if ref.guarded && i > 0 {
				return true
			}
			names := sortedNames(value.AsValueMap())
			r.suggested(attr.SrcRange, plan.Suggest(attr.Name, names), "Unknown reference", "%s has no %s; it has %s.", said, r.shown(attr.SrcRange, attr.Name), shownNames(names))
			return false
		case ty.IsMapType():
			value = value.Index(cty.StringVal(attr.Name))
		default:
			return true
		}
		said += "." + attr.Name
	}
	return true
}

// shownNames lists names for a message, not too many.
func shownNames(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "nothing"
	}
	if len(names) > most {
		return listed(names[:most], "and") + " and more"
	}
	return listed(names, "and")
}
