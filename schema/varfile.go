package schema

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/enroll-dev/enroll/plan"
)

// given is a value for a variable from outside of the site's folder.
type given struct {
	text  string    // of the command line or the environment
	value cty.Value // of a file; NilVal: text counts
	at    hcl.Range // in that file; zero: none
	from  string    // "--var", "the environment variable ENROLL_VAR_x", "prod.vars:3"
}

// givenValues collects what is given: the environment, over it the files, over
// them the command line.
func (r *reporter) givenValues(opts Options) map[string]given {
	values := map[string]given{}
	for name, text := range opts.Env {
		values[name] = given{text: text, from: "the environment variable ENROLL_VAR_" + name}
	}
	for _, name := range opts.VarFiles {
		r.varFile(name, opts.Files, values)
	}
	for name, text := range opts.Vars {
		values[name] = given{text: text, from: "--var"}
	}
	return values
}

// varFile reads one file of values.
func (r *reporter) varFile(name string, files fs.FS, values map[string]given) {
	file := filepath.Base(name)
	if files == nil {
		files = os.DirFS(filepath.Dir(name))
	} else {
		file = filepath.ToSlash(name)
	}
	text, err := readFile(files, file)
	if err != nil {
		r.broken = true
		r.add(Error, inFile(name), "File cannot be read", "The file of variables cannot be read: "+reason(err)+". Name an existing file with --var-file.")
		return
	}
	src := &source{name: name, bytes: text, folder: filepath.Dir(name)}
	if !r.readable(src) {
		r.broken = true
		return
	}
	r.sources[name] = src
	if strings.HasSuffix(name, ".json") {
		r.varFileJSON(src, values)
		return
	}
	r.parse(src)
	if src.body == nil {
		return
	}
	for _, b := range src.body.Blocks {
		r.error(b.TypeRange, "Unsupported block", "A file of variables holds lines NAME = VALUE only. Write blocks into the site's folder.")
	}
	for _, a := range src.body.Attributes {
		at := a.Expr.Range()
		if !r.look(a.Expr, functionMap()).ok {
			continue
		}
		if calls(a.Expr) {
			r.error(at, "Value expected", "A file of variables holds values only: no references and no functions.")
			continue
		}
		v, diags := a.Expr.Value(nil)
		r.fromHCL(diags)
		if !diags.HasErrors() {
			values[a.Name] = given{value: v, at: at, from: place(a.NameRange)}
		}
	}
}

// calls reports whether an expression uses a name or a function.
func calls(expr hclsyntax.Expression) bool {
	found := len(expr.Variables()) > 0
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics { // it reports nothing
		if _, call := n.(*hclsyntax.FunctionCallExpr); call {
			found = true
		}
		return nil
	})
	return found
}

// varFileJSON reads one object.
func (r *reporter) varFileJSON(src *source, values map[string]given) {
	src.hidden = append(src.hidden, hideLines(src.bytes, func(name string) bool { return isSensitiveName(name) || r.flowing[name] })...)
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(src.bytes, []byte("\ufeff"))))
	decoder.UseNumber()
	err := decoder.Decode(&object)
	if err == nil && decoder.More() {
		err = errMoreJSON
	}
	if err != nil || object == nil {
		r.broken = true
		r.add(Error, inFile(src.name), "File cannot be read", "The file of variables must be one JSON object of names and values: { \"netbox_url\": \"https://netbox.example.net\" }.")
		return
	}
	for name, v := range object {
		values[name] = given{value: jsonValue(v), at: inFile(src.name), from: src.name}
	}
}

// convert reads a given value as a variable's type.
func (g given) convert(typ cty.Type) (cty.Value, bool) {
	if g.value == cty.NilVal {
		return givenValue(g.text, typ)
	}
	v, err := convert.Convert(g.value, typ)
	if err != nil || !v.IsWhollyKnown() || v.IsNull() {
		return cty.NilVal, false
	}
	return v, true
}

// unknownGiven warns about values for variables that do not exist.
func (r *reporter) unknownGiven(values map[string]given, vars map[string]cty.Value) {
	if r.broken {
		return
	}
	var names []string
	for name := range values {
		if _, declared := vars[name]; !declared {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		r.hide(values[name].at) // it may be a secret whose name was misspelt
		d := r.warn(values[name].at, "Value for an unknown variable", "A value is given for the variable %s (%s), but the folder has no variable block of that name. It is not used.", quote(name), values[name].from)
		d.Suggestion = plan.Suggest(name, sortedNames(vars))
		d.Detail += didYouMean(d.Suggestion)
	}
}
