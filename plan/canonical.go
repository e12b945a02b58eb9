package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// document is a JSON object in its canonical form: no blanks, the members of
// every object sorted by name, and in texts those characters as escapes that a
// terminal would obey or an eye not see. All else stays as it is spelt.
type document []member

type member struct {
	name []byte // with its quotes
	text []byte
}

// parseDocument brings a JSON object into canonical form. It refuses a name that
// an object has twice: readers differ in which of the two they take.
func parseDocument(raw []byte) (document, error) {
	if !json.Valid(raw) {
		var syntax any
		return nil, json.Unmarshal(raw, &syntax) // says where
	}
	return canonize(raw)
}

// canonize is parseDocument for what is known to be JSON.
func canonize(raw []byte) (document, error) {
	c := canonizer{src: raw, out: make([]byte, 0, len(raw))}
	c.blanks()
	if c.src[c.at] != '{' {
		return nil, fmt.Errorf("a plan is a JSON object, not %.20s", c.src[c.at:])
	}
	if err := c.value(); err != nil {
		return nil, err
	}
	return c.split(), nil
}

// without leaves members out.
func (d document) without(names ...string) document {
	return slices.DeleteFunc(slices.Clone(d), func(m member) bool {
		return slices.Contains(names, string(m.name[1:len(m.name)-1]))
	})
}

// only leaves all others out.
func (d document) only(names ...string) document {
	return slices.DeleteFunc(slices.Clone(d), func(m member) bool {
		return !slices.Contains(names, string(m.name[1:len(m.name)-1]))
	})
}

// join puts the members of two documents together, which have none in common.
func (d document) join(other document) document {
	out := append(slices.Clone(d), other...)
	slices.SortFunc(out, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	return out
}

// with sets a text member.
func (d document) with(name, value string) document {
	quoted, _ := json.Marshal(name) // a text always encodes
	text, _ := json.Marshal(value)
	return d.without(name).join(document{{quoted, text}})
}

// pieces are the bytes of the document, in order.
func (d document) pieces(write func([]byte)) {
	write([]byte{'{'})
	for i, m := range d {
		if i > 0 {
			write([]byte{','})
		}
		write(m.name)
		write([]byte{':'})
		write(m.text)
	}
	write([]byte{'}'})
}

func (d document) hash() string {
	h := sha256.New()
	d.pieces(func(b []byte) { _, _ = h.Write(b) }) // a hash takes everything
	return hashPrefix + hex.EncodeToString(h.Sum(nil))
}

// indented is the form for files: two spaces of indent, a final newline.
func (d document) indented() ([]byte, error) {
	var compact, out bytes.Buffer
	size := 0
	d.pieces(func(b []byte) { size += len(b) })
	compact.Grow(size)
	d.pieces(func(b []byte) { _, _ = compact.Write(b) })
	out.Grow(size * 2)
	if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// canonizer walks over valid JSON once.
type canonizer struct {
	src []byte
	at  int
	out []byte
	// spans of the members of the objects that are open: where they stand in out.
	spans []span
	moved []byte // scratch
}

type span struct{ from, colon, to int }

func (c *canonizer) blanks() {
	for c.at < len(c.src) && (c.src[c.at] == ' ' || c.src[c.at] == '\n' || c.src[c.at] == '\t' || c.src[c.at] == '\r') {
		c.at++
	}
}

// sign reads one of , : ] } and the blanks around it.
func (c *canonizer) sign() byte {
	c.blanks()
	s := c.src[c.at]
	c.at++
	c.blanks()
	return s
}

func (c *canonizer) value() error {
	switch c.src[c.at] {
	case '{':
		return c.object()
	case '[':
		return c.list()
	case '"':
		c.text()
	default:
		begin := c.at
		for c.at < len(c.src) && !bytes.ContainsRune([]byte(" \n\t\r,]}"), rune(c.src[c.at])) {
			c.at++
		}
		c.out = append(c.out, c.src[begin:c.at]...)
	}
	return nil
}

func (c *canonizer) text() {
	begin := c.at
	for c.at++; c.src[c.at] != '"'; c.at++ {
		if c.src[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
	c.out = appendVisible(c.out, c.src[begin:c.at])
}

func (c *canonizer) list() error {
	c.out = append(c.out, '[')
	c.at++
	c.blanks()
	if c.src[c.at] == ']' {
		c.at++
		c.out = append(c.out, ']')
		return nil
	}
	for {
		if err := c.value(); err != nil {
			return err
		}
		s := c.sign()
		c.out = append(c.out, s)
		if s == ']' {
			return nil
		}
	}
}

func (c *canonizer) object() error {
	open, first := len(c.out), len(c.spans)
	c.out = append(c.out, '{')
	c.at++
	c.blanks()
	if c.src[c.at] == '}' {
		c.at++
		c.out = append(c.out, '}')
		return nil
	}
	for s := byte(','); s == ','; {
		m := span{from: len(c.out)}
		c.text()
		m.colon = len(c.out)
		c.sign()
		c.out = append(c.out, ':')
		if err := c.value(); err != nil {
			return err
		}
		m.to = len(c.out)
		c.spans = append(c.spans, m)
		s = c.sign()
		c.out = append(c.out, s)
	}
	err := c.sort(open, c.spans[first:])
	if open > 0 { // the members of the whole are asked for later
		c.spans = c.spans[:first]
	}
	return err
}

func (c *canonizer) name(m span) []byte { return c.out[m.from:m.colon] }

// sort puts the members of the object that begins at open in order.
func (c *canonizer) sort(open int, members []span) error {
	order := func(a, b span) int { return bytes.Compare(c.name(a), c.name(b)) }
	if !slices.IsSortedFunc(members, order) {
		slices.SortStableFunc(members, order)
		c.moved = c.moved[:0]
		for i, m := range members {
			at := open + 1 + len(c.moved)
			c.moved = append(c.moved, c.out[m.from:m.to]...)
			c.moved = append(c.moved, ',')
			members[i] = span{at, at + m.colon - m.from, at + m.to - m.from}
		}
		copy(c.out[open+1:], c.moved[:len(c.moved)-1])
	}
	for i := 1; i < len(members); i++ {
		if bytes.Equal(c.name(members[i]), c.name(members[i-1])) {
			return fmt.Errorf("an object has the member %s twice", c.name(members[i]))
		}
	}
	return nil
}

// split gives the members of the whole.
func (c *canonizer) split() document {
	d := make(document, 0, len(c.spans))
	for _, m := range c.spans {
		d = append(d, member{c.out[m.from:m.colon], c.out[m.colon+1 : m.to]})
	}
	return d
}
