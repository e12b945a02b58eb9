package schema

import (
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/enroll-dev/enroll/plan"
)

// rawBlock is a block laid over its row of the table: expressions with ranges,
// nothing evaluated.
type rawBlock struct {
	spec   *block
	path   string // below the site block: "dhcp.timeouts", "ironic.baremetal"
	label  string
	at     hcl.Range // type and labels
	attrs  []*rawAttr
	blocks []*rawBlock
	// meant are the names that misspelt ones probably stand for: they do not count
	// as missing, the misspelling is reported already.
	meant map[string]bool
	// first are the places of the blocks inside, by type and label.
	first map[string]hcl.Range
	// replaced are blocks of another kind that included folders have in its place.
	replaced []*rawBlock
}

func (b *rawBlock) misspelt(suggestion string) {
	if b.meant == nil {
		b.meant = map[string]bool{}
	}
	b.meant[suggestion] = true
}

// rawAttr is an attribute as it is written.
type rawAttr struct {
	spec *attribute // nil in locals
	path string     // "dhcp.host"
	name string
	at   hcl.Range // the name
	expr hclsyntax.Expression
	// value is the Go value, set by evaluateAttr; nil: wrong, or not known before
	// there is a device.
	value  any
	looked *seen // set when it is evaluated the first time, while loading
	// overridden are the attributes of included folders that this one stands over,
	// the nearest first.
	overridden []*rawAttr
}

func (b *rawBlock) attr(name string) *rawAttr {
	for _, a := range b.attrs {
		if a.name == name {
			return a
		}
	}
	return nil
}

func (b *rawBlock) named(name string) []*rawBlock {
	var out []*rawBlock
	for _, child := range b.blocks {
		if child.spec.name == name {
			out = append(out, child)
		}
	}
	return out
}

// decode lays all files of a folder over the table as one body.
func (r *reporter) decode(names []string) *rawBlock {
	root := &rawBlock{spec: language()}
	if len(names) > 0 {
		root.at = hcl.Range{Filename: names[0], Start: hcl.Pos{Line: 1, Column: 1}, End: hcl.Pos{Line: 1, Column: 1}}
	}
	var bodies []*hclsyntax.Body
	for _, name := range names {
		if src := r.sources[name]; src != nil && src.body != nil {
			bodies = append(bodies, src.body)
		}
	}
	r.decodeBodies(root, bodies)
	return root
}

func (r *reporter) decodeBodies(b *rawBlock, bodies []*hclsyntax.Body) {
	if b.first == nil {
		b.first = map[string]hcl.Range{} // equal blocks in two files are accepted by hcl
	}
	for _, body := range bodies {
		r.decodeAttributes(b, body)
		for _, blk := range body.Blocks {
			r.decodeBlock(b, blk)
		}
	}
}

func (r *reporter) decodeAttributes(b *rawBlock, body *hclsyntax.Body) {
	written := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		written = append(written, a)
	}
	sort.Slice(written, func(i, j int) bool { return written[i].NameRange.Start.Byte < written[j].NameRange.Start.Byte })
	for _, a := range written {
		raw := &rawAttr{name: a.Name, path: joinPath(b.path, a.Name), at: a.NameRange, expr: a.Expr}
		if b.spec.free {
			b.attrs = append(b.attrs, raw)
			continue
		}
		raw.spec = b.spec.attribute(a.Name)
		switch {
		case raw.spec == nil:
			meant := r.unknownAttribute(b.spec, a)
			b.misspelt(meant)
			if known := b.spec.attribute(meant); known == nil || known.typ == secretType {
				r.hide(a.Expr.Range()) // nobody knows what it is, so it may be a secret
			}
		case raw.spec.later:
			r.hide(a.Expr.Range())
			r.notYet(a.NameRange, "attribute", a.Name, raw.spec.doc, "")
		case b.attr(a.Name) != nil:
			r.error(a.NameRange, "Duplicate attribute", "%s already stands at %s. Remove one.", quote(a.Name), place(b.attr(a.Name).at))
		default:
			b.attrs = append(b.attrs, raw)
		}
	}
}

func (r *reporter) notYet(at hcl.Range, what, name, doc, instead string) {
	if instead == "" {
		instead = "Remove it."
	}
	r.error(at, "Not supported by this version", "The %s %s is part of the language (%s) but is not supported by this version of enroll. %s", what, quote(name), strings.TrimSuffix(doc, "."), instead)
}

// unknownAttribute gives the name that was probably meant.
func (r *reporter) unknownAttribute(spec *block, a *hclsyntax.Attribute) string {
	if rows := spec.named(a.Name); len(rows) > 0 {
		r.error(a.NameRange, "Unsupported attribute", "%s is a block, not an attribute. Leave out the equals sign: %s", quote(a.Name), strings.Replace(blockExample(rows[0]), "…", insideExample(rows[0]), 1))
		return a.Name
	}
	names := append(spec.attributeNames(), spec.blockNames()...)
	suggestion := plan.Suggest(a.Name, names)
	r.suggested(a.NameRange, suggestion, "Unsupported attribute", "%s has no attribute %s; it takes %s.", blockTitle(spec), quote(a.Name), takes(spec))
	return suggestion
}

func (r *reporter) decodeBlock(parent *rawBlock, blk *hclsyntax.Block) {
	rows := parent.spec.named(blk.Type)
	if len(rows) == 0 {
		if a := parent.spec.attribute(blk.Type); a != nil {
			r.error(blk.TypeRange, "Unsupported block", "%s is an attribute, not a block. Write: %s = %s", quote(blk.Type), blk.Type, a.example)
			parent.misspelt(blk.Type)
			return
		}
		names := append(parent.spec.blockNames(), parent.spec.attributeNames()...)
		suggestion := plan.Suggest(blk.Type, names)
		parent.misspelt(suggestion)
		r.suggested(blk.TypeRange, suggestion, "Unsupported block", "%s has no block %s; it takes %s.", blockTitle(parent.spec), quote(blk.Type), takes(parent.spec))
		return
	}
	spec := r.checkLabels(rows, blk)
	if spec == nil {
		parent.misspelt(blk.Type) // it is there, if not as it should be
		return
	}
	if spec.later {
		parent.misspelt(blk.Type)
		r.notYet(blk.TypeRange, "block", strings.Join(append([]string{blk.Type}, blk.Labels...), " "), spec.doc, spec.instead)
		return
	}
	raw := &rawBlock{spec: spec, path: parent.path, at: hcl.RangeBetween(blk.TypeRange, blk.DefRange())}
	if len(blk.Labels) > 0 {
		raw.label = blk.Labels[0]
	}
	if spec.name != "site" { // paths begin below it
		raw.path = joinPath(parent.path, spec.name)
		if spec.many && spec.label != nil {
			raw.path = joinPath(raw.path, raw.label)
		}
	}
	if r.included && spec.name == "site" && raw.label == "" {
		// A shared folder may spread the site over its files: one is about BMCs,
		// another about rules.
		for _, before := range parent.named("site") {
			if before.label == "" {
				r.decodeBodies(before, []*hclsyntax.Body{blk.Body})
				return
			}
		}
	}
	if !r.once(raw, blk, parent.first) {
		return
	}
	r.decodeBodies(raw, []*hclsyntax.Body{blk.Body})
	parent.blocks = append(parent.blocks, raw)
}

// once refuses a second block of the same name, or of the same name and label.
func (r *reporter) once(raw *rawBlock, blk *hclsyntax.Block, first map[string]hcl.Range) bool {
	if raw.spec.free || raw.spec.repeats() {
		return true
	}
	key := raw.spec.name
	if raw.spec.many {
		key += " " + quote(raw.label)
	}
	before, seen := first[key]
	if !seen {
		first[key] = blk.TypeRange
		return true
	}
	place := fromHCLRange(before).String()
	if raw.spec.many {
		r.error(raw.at, "Duplicate "+raw.spec.name+" block", "%s already stands at %s. Remove one, or give it another label.", key, place)
	} else {
		r.error(raw.at, "Duplicate "+raw.spec.name+" block", "There is one %s block, and it already stands at %s. Write its attributes there.", raw.spec.name, place)
	}
	return false
}

// checkLabels gives the row that a block belongs to, or nil when its labels do
// not fit one.
func (r *reporter) checkLabels(rows []*block, blk *hclsyntax.Block) *block {
	want := 0
	if rows[0].label != nil {
		want = 1
	}
	switch {
	case rows[0].later && rows[0].variant == "":
		return rows[0] // its labels are not our business yet
	case want == 0 && len(blk.Labels) > 0:
		r.error(blk.LabelRanges[0], "Label not expected", "The %s block has no label. Write: %s", blk.Type, blockExample(rows[0]))
		return nil
	case want == 1 && len(blk.Labels) == 0 && r.included && blk.Type == "site":
		return rows[0] // of whichever site includes the folder
	case want == 1 && len(blk.Labels) == 0:
		r.error(blk.TypeRange, "Missing label", "The %s block needs a label, %s. Write: %s", blk.Type, rows[0].label.doc, blockExample(rows[0]))
		return nil
	case len(blk.Labels) > want:
		r.error(blk.LabelRanges[want], "Label not expected", "The %s block has one label, not %d.", blk.Type, len(blk.Labels))
		return nil
	case want == 0:
		return rows[0]
	}
	label := blk.Labels[0]
	if rows[0].variant == "" {
		if check := rows[0].label.check; check != nil {
			if err := check(label); err != nil {
				r.error(blk.LabelRanges[0], "Unsuitable label", "The label of the %s block %s.", blk.Type, err)
				return nil
			}
		}
		return rows[0]
	}
	var served []string
	for _, row := range rows {
		if row.variant == label {
			return row
		}
		if !row.later {
			served = append(served, row.variant)
		}
	}
	r.suggested(blk.LabelRanges[0], plan.Suggest(label, served), "Unsupported label", "%s is no kind of %s block; write %s.", quote(label), blk.Type, listed(served, "or"))
	return nil
}

// checkRequired looks for what is missing, when all folders are merged.
func (r *reporter) checkRequired(b *rawBlock) {
	if r.broken {
		return // it may stand in what could not be read
	}
	if b.spec.name == "site" && b.label == "" {
		label := b.spec.label
		r.error(b.at, "Missing label", "The site block needs a label, %s. Write: %s", label.doc, blockExample(b.spec))
	}
	for i := range b.spec.attrs {
		if a := &b.spec.attrs[i]; a.required && b.attr(a.name) == nil && !b.meant[a.name] {
			r.error(b.at, "Missing attribute", "%s needs the attribute %s. Write: %s = %s", blockTitle(b.spec), quote(a.name), a.name, a.example)
		}
	}
	seen := map[string]bool{}
	for _, child := range b.spec.blocks {
		if !child.required || seen[child.name] || len(b.named(child.name)) > 0 || b.meant[child.name] {
			continue
		}
		seen[child.name] = true
		if b.spec.name == "" {
			r.error(b.at, "Missing "+child.name+" block", "The folder has no %s block. Write: %s", child.name, blockExample(child))
			continue
		}
		r.error(b.at, "Missing block", "%s needs a block %s. Write: %s", blockTitle(b.spec), quote(child.name), blockExample(child))
	}
	for _, child := range b.blocks {
		r.checkRequired(child)
	}
}

func joinPath(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func blockTitle(b *block) string {
	switch {
	case b.name == "":
		return "A site's folder"
	case b.variant != "":
		return "The " + b.name + " " + quote(b.variant) + " block"
	}
	return "The " + b.name + " block"
}

// takes lists what may stand in a block.
func takes(b *block) string {
	var parts []string
	if names := b.attributeNames(); len(names) > 0 {
		parts = append(parts, strings.Join(names, ", "))
	}
	if names := b.blockNames(); len(names) > 0 {
		parts = append(parts, "the blocks "+strings.Join(names, ", "))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " and ")
}

// insideExample is what may stand in a block: its first attribute, or the first
// that is required.
func insideExample(b *block) string {
	said := "…"
	for i := len(b.attrs) - 1; i >= 0; i-- {
		if a := &b.attrs[i]; i == 0 && said == "…" || a.required {
			said = a.name + " = " + a.example
		}
	}
	return said
}

// blockExample is one line that shows how a block is written.
func blockExample(b *block) string {
	text := b.name
	switch {
	case b.variant != "":
		text += " " + quote(b.variant)
	case b.label != nil:
		text += " " + quote(b.label.example)
	}
	return text + " { … }"
}
