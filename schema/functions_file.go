package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/enroll-dev/enroll/plan"
)

// folderFiles are the files that file and templatefile read in one folder. They
// are read while the folder is loaded and never later, so that what a plan was
// made from is known: reading stops with seal.
type folderFiles struct {
	dir, rel string
	given    fs.FS // nil: the operating system's

	mu     sync.Mutex
	texts  map[string][]byte
	total  int
	sealed bool
}

const maxFileTotal = 8 << 20 // of one folder

var (
	errSealed   = errors.New("the name depends on the device; a file is read when the site is, so its name must be the same for all devices")
	errFileName = errors.New("must be the path of a file in the folder of the site file, without \"..\"")
	errNotText  = errors.New("is no UTF-8 text")
	errTooMuch  = errors.New("the files of the folder are too large together")
)

// read gives a file's text.
func (f *folderFiles) read(name string) ([]byte, error) {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) || clean == "." || strings.Contains(name, "\\") {
		return nil, function.NewArgError(0, errFileName)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.texts[clean]; ok {
		return text, nil
	}
	if f.sealed {
		return nil, function.NewArgError(0, errSealed)
	}
	text, err := f.readNew(clean)
	switch {
	case err != nil && leadsOut(err):
		return nil, function.NewArgErrorf(0, "names a symbolic link that leads out of the folder")
	case err != nil:
		return nil, function.NewArgErrorf(0, "names a file that cannot be read: %s", reason(err))
	case !utf8.Valid(text):
		return nil, function.NewArgError(0, errNotText)
	}
	if f.total += len(text); f.total > maxFileTotal {
		return nil, errTooMuch
	}
	f.texts[clean] = text
	return text, nil
}

func (f *folderFiles) readNew(name string) ([]byte, error) {
	files := f.given
	if files == nil {
		root, err := os.OpenRoot(f.dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // nothing was written
		files = root.FS()
	}
	return readFile(files, name)
}

// sources are the files that were read, for the plan's inputs.
func (f *folderFiles) sources() []plan.SourceFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sealed = true
	var out []plan.SourceFile
	for _, name := range sortedNames(f.texts) {
		sum := sha256.Sum256(f.texts[name])
		out = append(out, plan.SourceFile{Name: path.Join(f.rel, name), SHA256: hex.EncodeToString(sum[:])})
	}
	return out
}

// functions are those of the table with file and templatefile of this folder.
func (f *folderFiles) functions(table map[string]function.Function) map[string]function.Function {
	own := maps.Clone(table)
	own["file"] = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := f.read(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(string(bytes.TrimPrefix(text, []byte("\ufeff")))), nil
		},
	})
	inner := maps.Clone(table)
	delete(inner, "file")
	delete(inner, "templatefile")
	own["templatefile"] = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}, {Name: "values", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if t := args[1].Type(); t != cty.DynamicPseudoType && !t.IsObjectType() && !t.IsMapType() {
				return cty.NilType, function.NewArgErrorf(1, "must be a map of values")
			}
			return cty.String, nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := f.read(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			if !args[1].IsKnown() { // the file is read in any case: later it cannot be
				return cty.UnknownVal(cty.String), nil
			}
			return renderTemplate(args[0].AsString(), string(bytes.TrimPrefix(text, []byte("\ufeff"))), args[1], inner)
		},
	})
	return own
}

// renderTemplate evaluates a template over values. Its errors name the line.
func renderTemplate(name, text string, values cty.Value, functions map[string]function.Function) (cty.Value, error) {
	start := hcl.Pos{Line: 1, Column: 1}
	tokens, _ := hclsyntax.LexTemplate([]byte(text), name, start) // the parser reports the same again
	if at, problem := tooDeep(tokens); problem != "" {
		return cty.NilVal, templateError(at, problem)
	}
	expr, diags := hclsyntax.ParseTemplate([]byte(text), name, start)
	if diags.HasErrors() {
		return cty.NilVal, hclError(diags)
	}
	sc := &scope{values: values.AsValueMap(), functions: functions}
	if sc.values == nil {
		sc.values = map[string]cty.Value{}
	}
	r := newReporter()
	looked := r.look(expr, functions)
	for _, ref := range looked.refs {
		root := ref.steps.RootName()
		if _, given := sc.values[root]; !given && looked.ok {
			return cty.NilVal, templateError(ref.steps.SourceRange(), "There is no value "+quote(root)+"; it is given "+shownNames(sortedNames(sc.values))+"."+didYouMean(plan.Suggest(root, sortedNames(sc.values))))
		}
	}
	if !looked.ok || !r.fits(expr, looked, sc.context()) {
		return cty.NilVal, errors.New(r.diags[0].Range.String() + ": " + strings.TrimSuffix(r.diags[0].Detail, "."))
	}
	v, diags := expr.Value(sc.context())
	if diags.HasErrors() {
		return cty.NilVal, hclError(diags)
	}
	out, err := convert.Convert(v, cty.String)
	if err != nil || out.IsNull() {
		return cty.NilVal, errors.New("the template gives no text")
	}
	if out.IsKnown() && len(out.AsString()) > maxText {
		return cty.NilVal, errTooLong
	}
	return out, nil
}

func templateError(at hcl.Range, detail string) error {
	return errors.New(place(at) + ": " + strings.TrimSuffix(detail, "."))
}

func hclError(diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			var at hcl.Range
			if d.Subject != nil {
				at = *d.Subject
			}
			return templateError(at, d.Summary+": "+d.Detail)
		}
	}
	return diags
}

// filesElsewhere and templatesElsewhere stand in the table; each folder has its
// own in their place.
var (
	filesElsewhere = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}},
		Type:   func([]cty.Value) (cty.Type, error) { return cty.NilType, errNoFolder },
	})
	templatesElsewhere = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}, {Name: "values", Type: cty.DynamicPseudoType}},
		Type:   func([]cty.Value) (cty.Type, error) { return cty.NilType, errNoFolder },
	})
)

var errNoFolder = errors.New("files are not read in conditions of policies and in defaults of variables; put the text into a local and use that")
