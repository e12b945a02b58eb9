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
	Default    bool      // nothing sets it: Value is the table's default, or what it depends on
	Written              // the line that sets it
	Overridden []Written // the nearest first
	Doc        string
	Effect     string
}

// Written is a line that sets an attribute.
type Written struct {
	Place string // file:line; empty for a default
	Text  string // the expression as it stands there; "(hidden)" where a secret could be read
}

// Origins gives all attributes of the site with their origins, defaults
// included, ordered by path. Blocks that the site does not have are left out.
func (f *File) Origins() []Origin {
	var out []Origin
	for _, b := range f.root.named("site") {
		f.eachAttribute(b, "", false, func(b *rawBlock, spec *attribute, _ string) {
			out = append(out, f.origin(b, spec))
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// Values gives what the folder says about an attribute, by its path with or
// without "site." and the labels of blocks in it: one origin, or one for each
// block that may have it. A block that is left out inside of another one has its
// defaults.
func (f *File) Values(name string) []Origin {
	wanted := canonicalName(name)
	var out []Origin
	f.eachAttribute(f.root, "", true, func(b *rawBlock, spec *attribute, path string) {
		if path == wanted {
			out = append(out, f.origin(b, spec))
		}
	})
	for _, o := range out {
		if o.Path == strings.TrimPrefix(name, "site.") { // with its label
			return []Origin{o}
		}
	}
	return out
}

// eachAttribute visits the attributes of a block and below, with their paths
// without labels.
func (f *File) eachAttribute(b *rawBlock, path string, leftOut bool, visit func(b *rawBlock, spec *attribute, path string)) {
	for i := range b.spec.attrs {
		if spec := &b.spec.attrs[i]; !spec.later {
			visit(b, spec, joinPath(path, spec.name))
		}
	}
	blocks := b.blocks
	for _, spec := range b.spec.blocks {
		if leftOut && len(b.named(spec.name)) == 0 && !spec.later && !spec.many && spec.variant == "" && b.spec.name != "site" {
			blocks = append(blocks[:len(blocks):len(blocks)], &rawBlock{spec: spec, path: joinPath(b.path, spec.name)})
		}
	}
	for _, child := range blocks {
		below := joinPath(path, child.spec.name)
		if child.spec.name == "site" {
			below = ""
		}
		f.eachAttribute(child, below, leftOut, visit)
	}
}

func (f *File) origin(b *rawBlock, spec *attribute) Origin {
	o := Origin{Path: joinPath(b.path, spec.name), PerDevice: spec.perDevice, Doc: spec.doc, Effect: spec.effect}
	a := b.attr(spec.name)
	if a == nil {
		o.Default, o.Value = true, spec.defaultText()
		return o
	}
	o.Written = f.written(a)
	o.Value = valueText(a.value)
	if o.Value == "" {
		o.Value = o.Text
	}
	for _, old := range a.overridden {
		o.Overridden = append(o.Overridden, f.written(old))
	}
	return o
}

func (f *File) written(a *rawAttr) Written {
	return Written{Place: place(a.at), Text: f.expressionText(a.expr.Range())}
}

// expressionText is a piece of a file without what may be a secret.
func (f *File) expressionText(at hcl.Range) string {
	src := f.sources[at.Filename]
	switch {
	case src == nil:
		return ""
	case src.hides(at):
		return hiddenText
	}
	return src.text(at)
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
