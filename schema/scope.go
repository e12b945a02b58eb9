package schema

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// scope is what expressions can refer to: roots ("var", "local", "device") with
// their values. What failed is there with an unknown value, so that its users
// are not reported too.
type scope struct {
	values    map[string]cty.Value
	functions map[string]function.Function
	// folders have functions of their own: what file reads depends on where the
	// expression stands.
	folders map[string]map[string]function.Function
}

func (sc *scope) with(root string, value cty.Value) *scope {
	values := map[string]cty.Value{root: value}
	for n, v := range sc.values {
		if n != root {
			values[n] = v
		}
	}
	return &scope{values: values, functions: sc.functions, folders: sc.folders}
}

func (sc *scope) context() *hcl.EvalContext {
	return &hcl.EvalContext{Variables: sc.values, Functions: sc.functions}
}

// contextIn is context for an expression that stands in a folder.
func (sc *scope) contextIn(folder string) *hcl.EvalContext {
	if own := sc.folders[folder]; own != nil {
		return &hcl.EvalContext{Variables: sc.values, Functions: own}
	}
	return sc.context()
}

// newScope evaluates variables, then locals.
func (r *reporter) newScope(root *rawBlock, opts Options) *scope {
	sc := &scope{values: map[string]cty.Value{}, functions: functionMap(), folders: map[string]map[string]function.Function{}}
	for dir, files := range r.files {
		sc.folders[dir] = files.functions(sc.functions)
	}
	values := r.givenValues(opts)
	vars := map[string]cty.Value{}
	for _, b := range root.named("variable") {
		vars[b.label] = r.variable(b, sc, values)
	}
	r.unknownGiven(values, vars)
	sc = sc.with("var", cty.ObjectVal(vars))
	for _, b := range root.named("variable") {
		if vars[b.label].IsWhollyKnown() {
			r.validate(b, sc, values[b.label])
		}
	}
	return r.locals(root, sc)
}

// variable gives the value of a variable: the given one, else the default.
func (r *reporter) variable(b *rawBlock, sc *scope, values map[string]given) cty.Value {
	unknown := cty.DynamicVal
	typ := cty.DynamicPseudoType
	if a := b.attr("type"); a != nil {
		t, diags := typeexpr.TypeConstraint(a.expr)
		if diags.HasErrors() {
			r.error(a.expr.Range(), "Unsuitable type", "The type of variable %s is none. Write: string, number, bool, list(string) or map(string).", quote(b.label))
			return unknown
		}
		typ = t
	}
	if a := b.attr("description"); a != nil {
		r.evaluateAttr(a, &scope{values: map[string]cty.Value{}, functions: sc.functions})
	}
	fallback, hasDefault := unknown, false
	if a := b.attr("default"); a != nil {
		hasDefault = true
		v, ok := r.value(a.expr, sc)
		if ok {
			var err error
			if v, err = convert.Convert(v, typ); err != nil {
				r.error(a.expr.Range(), "Unsuitable default", "The default of variable %s must be of the type %s.", quote(b.label), typeexpr.TypeString(typ))
				v = unknown
			}
			fallback = v
		}
	}
	g, isGiven := values[b.label]
	switch {
	case isGiven:
		v, ok := g.convert(typ)
		if !ok {
			at := g.at
			if at.Filename == "" || at.Start.Line == 0 {
				at = b.at
			}
			r.error(at, "Unsuitable value", "The value given for variable %s (%s) must be of the type %s.", quote(b.label), g.from, typeexpr.TypeString(typ))
			return unknown
		}
		return v
	case hasDefault:
		return fallback
	}
	detail := ""
	if a := b.attr("description"); a != nil && a.value != nil {
		detail = " It is described as: " + a.value.(string)
	}
	r.error(b.at, "Value missing", "The variable %s has no default, and no value is given. Give one: --var %s=VALUE, a line in a file for --var-file, or the environment variable ENROLL_VAR_%s.%s", quote(b.label), b.label, b.label, detail)
	return unknown
}

// validate checks a variable's value against its validation blocks. They may
// use variables only.
func (r *reporter) validate(b *rawBlock, sc *scope, g given) {
	for _, rule := range b.named("validation") {
		condition, message := rule.attr("condition"), rule.attr("error_message")
		if condition == nil || message == nil {
			continue // it was reported
		}
		if !r.usesVariable(condition, b.label) {
			continue
		}
		said, _ := r.goValue(message, sc)
		holds, ok := r.goValue(condition, sc)
		if !ok || holds != false {
			continue
		}
		text, _ := said.(string)
		for _, t := range message.expr.Variables() {
			if name, sensitive := traversalText(t); sensitive || r.secretive(reference{steps: t}) {
				text = "error_message is not shown, because it quotes " + name + "."
			}
		}
		from := "its default"
		if g.from != "" {
			from = "given by " + g.from
		}
		d := r.error(condition.expr.Range(), "Value refused", "The value of variable %s (%s) is refused: %s", quote(b.label), from, text)
		if !isSensitiveName(b.label) && !r.flowing[b.label] {
			d.values = valuesOf([]reference{{steps: hcl.Traversal{hcl.TraverseRoot{Name: "var"}, hcl.TraverseAttr{Name: b.label}}}}, sc)
		}
	}
}

// usesVariable refuses a condition that does not look at its own variable: it
// would judge something else.
func (r *reporter) usesVariable(a *rawAttr, name string) bool {
	for _, t := range a.expr.Variables() {
		if root, second := (reference{steps: t}).names(); root == "var" && second == name {
			return true
		}
	}
	r.error(a.expr.Range(), "Unsuitable condition", "The condition must look at the variable that it belongs to: var.%s.", name)
	return false
}

// givenValue reads a value of the command line or the environment. Texts are
// taken as they are; other types are written as in a site file.
func givenValue(text string, typ cty.Type) (cty.Value, bool) {
	if typ == cty.DynamicPseudoType || typ == cty.String {
		return cty.StringVal(text), true
	}
	v := cty.StringVal(text)
	if !typ.IsPrimitiveType() {
		start := hcl.Pos{Line: 1, Column: 1}
		tokens, _ := hclsyntax.LexExpression([]byte(text), "", start) // the parser reports the same again
		if _, problem := tooDeep(tokens); problem != "" {
			return cty.NilVal, false
		}
		expr, diags := hclsyntax.ParseExpression([]byte(text), "", start)
		if diags.HasErrors() {
			return cty.NilVal, false
		}
		if v, diags = expr.Value(nil); diags.HasErrors() {
			return cty.NilVal, false
		}
	}
	v, err := convert.Convert(v, typ)
	return v, err == nil && v.IsWhollyKnown() && !v.IsNull()
}

// localWalk evaluates locals in the order in which they need each other.
type localWalk struct {
	r      *reporter
	sc     *scope // with var
	attrs  map[string]*rawAttr
	values map[string]cty.Value
	active []string
}

func (r *reporter) locals(root *rawBlock, sc *scope) *scope {
	w := &localWalk{r: r, sc: sc, attrs: map[string]*rawAttr{}, values: map[string]cty.Value{}}
	for _, b := range root.named("locals") {
		for _, a := range b.attrs {
			if first, twice := w.attrs[a.name]; twice {
				r.error(a.at, "Duplicate local", "The local %s already stands at %s. Remove one, or rename it.", quote(a.name), place(first.at))
				continue
			}
			w.attrs[a.name] = a
		}
	}
	for _, name := range sortedNames(w.attrs) {
		w.visit(name)
	}
	return sc.with("local", cty.ObjectVal(w.values))
}

func (w *localWalk) visit(name string) {
	if _, done := w.values[name]; done {
		return
	}
	a := w.attrs[name]
	for i, n := range w.active {
		if n == name {
			var path []string
			for _, n := range circle(w.active[i:]) {
				path = append(path, "local."+n+" ("+place(w.attrs[n].at)+")")
			}
			w.r.error(a.at, "Locals need each other", "These locals need each other in a circle: %s. Take one of them out of it.", strings.Join(path, " → "))
			w.values[name] = cty.DynamicVal
			return
		}
	}
	w.active = append(w.active, name)
	for _, t := range a.expr.Variables() {
		if root, other := (reference{steps: t}).names(); root == "local" && w.attrs[other] != nil {
			w.visit(other)
		}
	}
	w.active = w.active[:len(w.active)-1]
	if _, circular := w.values[name]; circular {
		return
	}
	v, ok := w.r.value(a.expr, w.sc.with("local", cty.ObjectVal(w.visible(a))))
	if !ok {
		v = cty.DynamicVal
	}
	w.values[name] = v
}

// visible are the locals that an expression uses; all of them when it uses one
// that does not exist, so that the message can name them.
func (w *localWalk) visible(a *rawAttr) map[string]cty.Value {
	seen := map[string]cty.Value{}
	for _, t := range a.expr.Variables() {
		root, name := (reference{steps: t}).names()
		if root != "local" {
			continue
		}
		if _, exists := w.attrs[name]; !exists {
			for n := range w.attrs {
				seen[n] = cty.DynamicVal
			}
			return seen
		}
		v, done := w.values[name]
		if !done {
			v = cty.DynamicVal
		}
		seen[name] = v
	}
	return seen
}
