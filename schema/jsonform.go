package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Site files may be written in JSON by programs (the ending is .hcl.json): a block
// is an object below its type and labels, texts are templates, "//" is a comment.
// hcl's own reader of that form hides its expressions, and everything here works
// on those of the native form; so the objects are laid over the table and become
// bodies of the native form with the places of the JSON text.

// jsonNode is one JSON value with its place.
type jsonNode struct {
	kind  byte // one of { [ " 0 t n: object, list, text, number, boolean, null
	text  string
	items []jsonNode
	props []jsonProperty
	at    hcl.Range
}

type jsonProperty struct {
	name  string
	at    hcl.Range
	value jsonNode
}

// parseJSON sets a source's body. False: it was not even tried.
func (r *reporter) parseJSON(src *source) bool {
	text := bytes.TrimPrefix(src.bytes, []byte("\ufeff"))
	reader := &jsonReader{file: src.name, text: src.bytes, pos: hcl.Pos{Line: 1, Column: 1, Byte: len(src.bytes) - len(text)}}
	var anything any
	if err := json.Unmarshal(text, &anything); err != nil {
		r.broken = true
		tokens, _ := hclsyntax.LexConfig(src.bytes, src.name, hcl.InitialPos) // nearly those of JSON
		src.tokens, src.broken, src.hidden = tokens, true, append(hideTokens(tokens), hideLines(src.bytes, isSensitiveName)...)
		at := reader.pos
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			reader.advance(max(0, min(int(syntax.Offset)-1, len(text))))
			at = reader.pos
		}
		r.error(hcl.Range{Filename: src.name, Start: at, End: at}, "File cannot be read", "The file is no JSON text here: %s.", strings.TrimPrefix(err.Error(), "json: "))
		return false
	}
	root, err := reader.value(0)
	if err != nil {
		r.broken = true
		r.error(reader.here(), "File is nested too deeply", "%s.", err)
		return false
	}
	if root.kind != '{' {
		r.broken = true
		r.error(root.at, "File cannot be read", "A site file in JSON is one object: { \"site\": { … } }.")
		return false
	}
	src.json, src.hidden = &root, hideJSON(root, false, nil)
	src.body = r.jsonBody(language(), root)
	return true
}

// onlyReferenceJSON is a text that is nothing but a reference.
var onlyReferenceJSON = regexp.MustCompile(`^\$\{ *(?:secret\([^(),]*,[^(),]*\)|(?:var|local|device)\.[A-Za-z0-9_.-]*) *\}$`)

// hideJSON finds the texts that no snippet may show, as hideTokens does.
func hideJSON(n jsonNode, sensitive bool, out []span) []span {
	secret := sensitive && (n.kind == '0' || n.kind == '"' && !onlyReferenceJSON.MatchString(n.text))
	if secret || n.kind == '"' && userinfo.MatchString(n.text) {
		return append(out, span{n.at.Start.Byte, n.at.End.Byte})
	}
	for _, item := range n.items {
		out = hideJSON(item, sensitive, out)
	}
	for _, p := range n.props {
		noPlace := saysWhere(p.name) && p.value.kind == '"' && !isPlace(p.name, p.value.text)
		out = hideJSON(p.value, sensitive || noPlace || isSensitiveName(p.name), out)
	}
	return out
}

// jsonBody makes a body of the native form. spec tells blocks from attributes; nil
// means that nothing is known.
func (r *reporter) jsonBody(spec *block, n jsonNode) *hclsyntax.Body {
	body := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: n.at, EndRange: endOf(n.at)}
	for _, p := range n.props {
		if p.name == "//" {
			continue
		}
		if rows := spec.named(p.name); len(rows) > 0 {
			body.Blocks = append(body.Blocks, r.jsonBlocks(rows, p)...)
			continue
		}
		if before := body.Attributes[p.name]; before != nil {
			r.error(p.at, "Duplicate attribute", "%s already stands at %s. Remove one.", quote(p.name), place(before.NameRange))
			continue
		}
		expr, ok := r.jsonExpression(spec.attribute(p.name), p.value)
		if ok {
			body.Attributes[p.name] = &hclsyntax.Attribute{Name: p.name, Expr: expr, SrcRange: hcl.RangeBetween(p.at, p.value.at), NameRange: p.at, EqualsRange: endOf(p.at)}
		}
	}
	return body
}

// jsonBlocks takes a body, a list of bodies, or, for blocks with a label, objects
// by the label.
func (r *reporter) jsonBlocks(rows []*block, p jsonProperty) []*hclsyntax.Block {
	var out []*hclsyntax.Block
	for _, n := range p.value.each() {
		if n.kind != '{' {
			r.error(n.at, "Unsupported block", "%s is a block. In JSON that is an object: \"%s\": { … }", quote(p.name), p.name)
			continue
		}
		if rows[0].label == nil {
			out = append(out, r.jsonBlock(rows[0], p, nil, n))
			continue
		}
		for i := range n.props {
			label := &n.props[i]
			if label.name == "//" {
				continue
			}
			row := rows[0]
			for _, candidate := range rows {
				if candidate.variant == label.name {
					row = candidate
				}
			}
			for _, inner := range label.value.each() {
				if inner.kind != '{' {
					r.error(inner.at, "Unsupported block", "The block %s has a label, so in JSON it is an object by the label: \"%s\": { \"%s\": { … } }", quote(p.name), p.name, row.label.example)
					continue
				}
				out = append(out, r.jsonBlock(row, p, label, inner))
			}
		}
	}
	return out
}

func (r *reporter) jsonBlock(row *block, p jsonProperty, label *jsonProperty, n jsonNode) *hclsyntax.Block {
	b := &hclsyntax.Block{Type: p.name, TypeRange: p.at, Body: r.jsonBody(row, n), CloseBraceRange: endOf(n.at)}
	b.OpenBraceRange = hcl.Range{Filename: n.at.Filename, Start: n.at.Start, End: n.at.Start}
	if label != nil {
		b.Labels, b.LabelRanges = []string{label.name}, []hcl.Range{label.at}
	}
	return b
}

// each gives the elements of a list, and anything else as one.
func (n jsonNode) each() []jsonNode {
	if n.kind == '[' {
		return n.items
	}
	return []jsonNode{n}
}

func endOf(at hcl.Range) hcl.Range {
	return hcl.Range{Filename: at.Filename, Start: at.End, End: at.End}
}

// jsonExpression makes an expression; texts are templates.
func (r *reporter) jsonExpression(spec *attribute, n jsonNode) (hclsyntax.Expression, bool) {
	literal := func(v cty.Value) (hclsyntax.Expression, bool) {
		return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: n.at}, true
	}
	switch n.kind {
	case '"':
		return r.jsonText(spec, n)
	case '0':
		v, err := cty.ParseNumberVal(n.text)
		if err != nil {
			r.error(n.at, "Unsuitable value", "The number cannot be read.")
			return nil, false
		}
		return literal(v)
	case 't':
		return literal(cty.BoolVal(n.text == "true"))
	case '[':
		list := &hclsyntax.TupleConsExpr{SrcRange: n.at, OpenRange: n.at}
		for _, item := range n.items {
			e, ok := r.jsonExpression(spec, item)
			if !ok {
				return nil, false
			}
			list.Exprs = append(list.Exprs, e)
		}
		return list, true
	case '{':
		object := &hclsyntax.ObjectConsExpr{SrcRange: n.at, OpenRange: n.at}
		for _, p := range n.props {
			e, ok := r.jsonExpression(spec, p.value)
			if !ok {
				return nil, false
			}
			key := &hclsyntax.ObjectConsKeyExpr{Wrapped: &hclsyntax.LiteralValueExpr{Val: cty.StringVal(p.name), SrcRange: p.at}}
			object.Items = append(object.Items, hclsyntax.ObjectConsItem{KeyExpr: key, ValueExpr: e})
		}
		return object, true
	}
	return literal(cty.NullVal(cty.DynamicPseudoType))
}

// escapedText is a text of the JSON form in which bytes were escaped: expressions
// in it count those of the text, not of the file.
type escapedText struct {
	at   hcl.Range // with its quotes
	text string
	// places are where each byte of the text stands in the file, and its end.
	places []hcl.Pos
}

// escapedAt finds the text that a range was counted in; nil: in none.
func (s *source) escapedAt(at hcl.Range) *escapedText {
	for i := range s.escaped {
		if e := &s.escaped[i]; e.at.Start.Byte < at.Start.Byte && at.Start.Byte <= at.End.Byte && at.End.Byte < e.at.End.Byte {
			return e
		}
	}
	return nil
}

// inFile gives the place of a range in the file.
func (s *source) inFile(at hcl.Range) hcl.Range {
	if e := s.escapedAt(at); e != nil {
		begin := e.at.Start.Byte + 1
		at.Start, at.End = e.place(at.Start.Byte-begin), e.place(at.End.Byte-begin)
	}
	return at
}

func (e *escapedText) place(n int) hcl.Pos { return e.places[min(n, len(e.places)-1)] }

// places finds where the bytes of a text stand.
func places(file []byte, n jsonNode) []hcl.Pos {
	j := &jsonReader{file: n.at.Filename, text: file, pos: n.at.Start}
	j.advance(1)
	var out []hcl.Pos
	for j.pos.Byte < n.at.End.Byte-1 {
		at := j.pos
		var raw int
		switch {
		case file[at.Byte] != '\\':
			_, raw = utf8.DecodeRune(file[at.Byte:])
		case file[at.Byte+1] != 'u':
			raw = 2
		case bytes.HasPrefix(bytes.ToLower(file[at.Byte:]), []byte(`\ud8`)), bytes.HasPrefix(bytes.ToLower(file[at.Byte:]), []byte(`\ud9`)),
			bytes.HasPrefix(bytes.ToLower(file[at.Byte:]), []byte(`\uda`)), bytes.HasPrefix(bytes.ToLower(file[at.Byte:]), []byte(`\udb`)):
			raw = 12 // a pair
		default:
			raw = 6
		}
		raw = min(raw, n.at.End.Byte-1-at.Byte)
		var s string
		_ = json.Unmarshal(append(append([]byte{'"'}, file[at.Byte:at.Byte+raw]...), '"'), &s) // it was found valid
		for range len(s) {
			out = append(out, at)
		}
		j.advance(raw)
	}
	return append(out, j.pos)
}

// jsonText parses a template. The places inside are counted in the text; inFile
// translates them.
func (r *reporter) jsonText(spec *attribute, n jsonNode) (hclsyntax.Expression, bool) {
	start := hcl.Pos{Line: n.at.Start.Line, Column: n.at.Start.Column + 1, Byte: n.at.Start.Byte + 1}
	text := []byte(n.text)
	lex, parse := hclsyntax.LexTemplate, hclsyntax.ParseTemplate
	if spec != nil && spec.typ == constraintType {
		lex, parse = hclsyntax.LexExpression, hclsyntax.ParseExpression
	}
	tokens, _ := lex(text, n.at.Filename, start) // the parser reports the same again
	if _, problem := tooDeep(tokens); problem != "" {
		r.broken = true
		r.error(n.at, "File is nested too deeply", "%s Split the expression with locals.", problem)
		return nil, false
	}
	if src := r.sources[n.at.Filename]; n.at.End.Byte-n.at.Start.Byte-2 != len(text) {
		src.escaped = append(src.escaped, escapedText{n.at, n.text, places(src.bytes, n)})
	}
	expr, diags := parse(text, n.at.Filename, start)
	for _, d := range diags {
		if d.Subject == nil {
			at := n.at
			d.Subject = &at
		}
	}
	r.fromHCL(firstOfEach(diags))
	r.broken = r.broken || diags.HasErrors() // the attribute is not missing
	// A secret is no text, and "${secret(…)}" is how it is written here.
	if whole, ok := expr.(*hclsyntax.TemplateWrapExpr); ok && (spec == nil || spec.typ == secretType || spec.typ == anyType || spec.typ == conditionType) {
		expr = whole.Wrapped
	}
	return expr, !diags.HasErrors()
}

// jsonReader reads a JSON text that encoding/json found valid, for its places.
type jsonReader struct {
	file string
	text []byte
	pos  hcl.Pos
}

var errJSONDeep = errors.New("objects and lists may be nested 64 deep")

func (j *jsonReader) here() hcl.Range {
	return hcl.Range{Filename: j.file, Start: j.pos, End: j.pos}
}

// advance goes on by some bytes and counts lines and columns.
func (j *jsonReader) advance(n int) {
	end := min(j.pos.Byte+n, len(j.text))
	for j.pos.Byte < end {
		c, size := utf8.DecodeRune(j.text[j.pos.Byte:])
		j.pos.Byte += size
		j.pos.Column++
		if c == '\n' {
			j.pos.Line, j.pos.Column = j.pos.Line+1, 1
		}
	}
}

func (j *jsonReader) space() {
	n := 0
	for _, c := range j.text[j.pos.Byte:] {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != ',' && c != ':' {
			break
		}
		n++
	}
	j.advance(n)
}

func (j *jsonReader) value(depth int) (jsonNode, error) {
	if depth > maxNesting {
		return jsonNode{}, errJSONDeep
	}
	j.space()
	n := jsonNode{kind: j.next(), at: j.here()}
	var err error
	switch n.kind {
	case '{', '[':
		err = j.inside(&n, depth)
	case '"':
		n.text = j.string()
	case 't', 'f':
		n.kind, n.text = 't', j.word()
	case 'n':
		j.word()
	default:
		n.kind, n.text = '0', j.word()
	}
	n.at.End = j.pos
	return n, err
}

// inside reads the elements of an object or a list, and its end.
func (j *jsonReader) inside(n *jsonNode, depth int) error {
	j.advance(1)
	for {
		j.space()
		c := j.next()
		if c == '}' || c == ']' || c == 0 {
			j.advance(1)
			return nil
		}
		var p jsonProperty
		if n.kind == '{' {
			p.at = j.here()
			p.name = j.string()
			p.at.End = j.pos
		}
		v, err := j.value(depth + 1)
		if err != nil {
			return err
		}
		if n.kind == '{' {
			p.value = v
			n.props = append(n.props, p)
			continue
		}
		n.items = append(n.items, v)
	}
}

func (j *jsonReader) next() byte {
	if j.pos.Byte < len(j.text) {
		return j.text[j.pos.Byte]
	}
	return 0
}

// string reads a text in quotes.
func (j *jsonReader) string() string {
	end := j.pos.Byte + 1
	for end < len(j.text) && j.text[end] != '"' {
		if j.text[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end+1, len(j.text))
	var s string
	_ = json.Unmarshal(j.text[j.pos.Byte:end], &s) // it was found valid
	j.advance(end - j.pos.Byte)
	return s
}

// word reads a number, true, false or null.
func (j *jsonReader) word() string {
	begin, n := j.pos.Byte, 0
	for _, c := range j.text[begin:] {
		if strings.IndexByte(" \t\r\n,:]}", c) >= 0 {
			break
		}
		n++
	}
	j.advance(max(n, 1))
	return string(j.text[begin:j.pos.Byte])
}
