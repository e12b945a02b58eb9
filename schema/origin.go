package schema

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/enroll-dev/enroll/plan"
)

// Origin says which value an attribute has and why: the line that sets it, and
// the lines of included folders that this one stands over.
type Origin struct {
	Path  string // below the site block: "ironic.baremetal.attempts"
	Value string // as it would be written; a secret is a reference
	// PerDevice: Value is an expression that is evaluated for each device.
	PerDevice  bool
	Default    bool // nothing sets it: Value is the table's default, or what it depends on
	Setting    Setting
	Overridden []Setting // the nearest first
	Doc        string
	Effect     string
	// Unused: the value is checked and not used by this version.
	Unused bool
}

// Setting is a line that sets an attribute.
type Setting struct {
	Place string // file:line; empty for a default
	Text  string // the expression as it stands there; "(hidden)" where a secret could be read
}

// Origins gives all attributes of the site with their origins, defaults
// included, ordered by path. Blocks that the site does not have are left out.
func (f *File) Origins() []Origin {
	var out []Origin
	for _, b := range f.root.named("site") {
		out = f.origins(b, nil, out)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// Origin finds attributes by a path, with or without "site." before it. The
// label of a block may be left out ("ironic.attempts" is that of every Ironic).
// It gives nothing for a path that no attribute has; Suggest helps then.
func (f *File) Origin(path string) []Origin {
	var out []Origin
	want := strings.Split(strings.TrimPrefix(path, "site."), ".")
	for _, b := range f.root.named("site") {
		out = f.origins(b, want, out)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// Suggest gives the path that was probably meant, or nothing.
func (f *File) Suggest(path string) string {
	var paths []string
	for _, o := range f.Origins() {
		paths = append(paths, o.Path)
	}
	return suggest(strings.TrimPrefix(path, "site."), paths)
}

// Unused lists the paths of what the site sets and this version does not use.
func (f *File) Unused() []string {
	var out []string
	for _, o := range f.Origins() {
		if o.Unused && !o.Default {
			out = append(out, o.Path)
		}
	}
	return out
}

// origins collects below a block. want is what is left of the path; nil means
// all.
func (f *File) origins(b *rawBlock, want []string, out []Origin) []Origin {
	if want == nil || len(want) == 1 {
		for i := range b.spec.attrs {
			if a := &b.spec.attrs[i]; !a.later && (want == nil || want[0] == a.name) {
				out = append(out, f.origin(b, a))
			}
		}
	}
	for _, child := range b.blocks {
		if want == nil {
			out = f.origins(child, nil, out)
			continue
		}
		if want[0] != child.spec.name {
			continue
		}
		rest := want[1:]
		if child.label != "" && len(rest) > 1 && rest[0] == child.label {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			out = f.origins(child, rest, out)
		}
	}
	return out
}

func (f *File) origin(b *rawBlock, spec *attribute) Origin {
	o := Origin{Path: joinPath(b.path, spec.name), PerDevice: spec.perDevice, Doc: spec.text(), Effect: spec.effect, Unused: spec.unused || b.spec.unused}
	a := b.attr(spec.name)
	if a == nil {
		o.Default, o.Value = true, spec.defaultText()
		return o
	}
	o.Setting = f.setting(a)
	o.Value = valueText(a.value)
	if o.Value == "" {
		o.Value = o.Setting.Text
	}
	for _, old := range a.overridden {
		o.Overridden = append(o.Overridden, f.setting(old))
	}
	return o
}

func (f *File) setting(a *rawAttr) Setting {
	return Setting{Place: place(a.at), Text: f.expressionText(a.expr.Range())}
}

// expressionText is a piece of a file without what may be a secret.
func (f *File) expressionText(at hcl.Range) string {
	src := f.sources[at.Filename]
	if src == nil || at.End.Byte > len(src.bytes) {
		return ""
	}
	if src.hides(at) {
		return hiddenText
	}
	return string(at.SliceBytes(src.bytes))
}

// defaultText is a default as it would be written.
func (a *attribute) defaultText() string {
	switch {
	case a.fallback == "":
		return a.fallbackDoc
	case a.typ == durationPairType:
		first, second, _ := strings.Cut(a.fallback, ", ")
		return valueText([]string{first, second})
	case a.typ == textType || a.typ == durationType:
		return quote(a.fallback)
	}
	return a.fallback
}

// valueText writes a Go value as HCL. Per-device expressions have none.
func valueText(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case plan.SecretRef:
		return "secret(" + quote(v.Item) + ", " + quote(v.Field) + ")"
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case time.Duration:
		return quote(shortDuration(v))
	case [2]time.Duration:
		return "[" + quote(shortDuration(v[0])) + ", " + quote(shortDuration(v[1])) + "]"
	case map[string]any:
		items := make([]string, 0, len(v))
		for _, name := range sortedNames(v) {
			text := fmt.Sprint(v[name])
			if s, isText := v[name].(string); isText {
				text = quote(s)
			}
			if identifierForm.MatchString(name) {
				items = append(items, name+" = "+text)
			} else {
				items = append(items, quote(name)+" = "+text)
			}
		}
		return "{ " + strings.Join(items, ", ") + " }"
	}
	return ""
}
