package view

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/cabling"
)

// The measures of the drawing, in pixels.
const (
	svgWidth   = 960
	svgMargin  = 24
	svgRow     = 26 // a NIC or a port
	svgHead    = 28 // the name of a device or switch
	svgGap     = 14 // between boxes
	svgLine    = 20 // of text
	svgBox     = 300
	svgLetters = 118 // that fit a line of text
)

// SVG draws the wrong cables: for each mistake the devices on the left and the
// switches on the right, the recorded cables dashed, the seen ones drawn through,
// the sentence above and the moves below. It is the same bytes for the same
// findings, needs no font and no script.
func (v *Verification) SVG(w io.Writer) error {
	d := &svg{y: svgMargin}
	d.line(svgMargin, d.y+18, "title", fmt.Sprintf("Cables of site %s", v.Site))
	d.y += 34
	for _, line := range lines(v.Summary.String(), svgLetters) {
		d.line(svgMargin, d.y+12, "dim", line)
		d.y += svgLine
	}
	d.y += svgGap
	if len(v.Findings) == 0 {
		d.line(svgMargin, d.y+12, "", "No cable is known to be wrong.")
		d.y += svgLine
	} else {
		d.legend()
	}
	for _, f := range v.Findings {
		d.finding(f)
	}
	height := d.y + svgMargin
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="13">
<style>
text{white-space:pre}.title{font-size:18px;font-weight:bold}.say{font-weight:bold}.dim{fill:#57606a}.head{font-weight:bold;fill:#24292f}
.box{fill:#f6f8fa;stroke:#8c959f}.end{fill:#ffffff;stroke:#d0d7de}
.recorded{fill:none;stroke:#57606a;stroke-width:1.5;stroke-dasharray:6 4}.seen{fill:none;stroke:#cf222e;stroke-width:2.5}
</style>
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, svgWidth, height, svgWidth, height, d.b.String())
	return err
}

type svg struct {
	b strings.Builder
	y int
}

func (d *svg) f(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// escaped is foreign text for an SVG: cleaned, and without what XML means
// something by.
func escaped(s string) string { return html.EscapeString(Clean(s)) }

// text writes one line, cut off where its room ends: a nested svg clips what is
// wider. What may be wider has the whole text as tooltip.
func (d *svg) text(x, y, room int, class, text string) {
	const rise, height, widest = 14, 20, 14 // of a letter, in pixels
	title := ""
	if utf8.RuneCountInString(text)*widest > room {
		title = "<title>" + escaped(text) + "</title>"
	}
	d.f(`<svg x="%d" y="%d" width="%d" height="%d">%s<text y="%d" class="%s">%s</text></svg>`+"\n", x, y-rise, room, height, title, rise, class, escaped(text))
}

// line is a text that has the whole width of the drawing.
func (d *svg) line(x, y int, class, text string) { d.text(x, y, svgWidth-svgMargin-x, class, text) }

// lines breaks a text between words, and a word that no line has room for.
func lines(text string, letters int) []string {
	var out []string
	for _, line := range Wrap(Clean(text), letters) {
		for rest := []rune(line); len(rest) > 0; {
			n := min(len(rest), letters)
			out, rest = append(out, string(rest[:n])), rest[n:]
		}
	}
	return out
}

// label is a name in a box, of which only so much is shown as a name commonly has.
func (d *svg) label(x, y, room int, class, name string) {
	const letters = 34
	short := []rune(Clean(name))
	if len(short) <= letters {
		d.text(x, y, room, class, name)
		return
	}
	d.f("<g><title>%s</title>\n", escaped(name))
	d.text(x, y, room, class, string(short[:letters-1])+"…")
	d.f("</g>\n")
}

func (d *svg) legend() {
	x := svgMargin
	for _, l := range []struct{ class, text string }{{"recorded", "as NetBox records it"}, {"seen", "as LLDP saw it"}} {
		d.f(`<path class="%s" d="M%d %d h48"/>`+"\n", l.class, x, d.y+8)
		d.line(x+56, d.y+12, "dim", l.text)
		x += 220
	}
	d.y += svgLine + svgGap
}

// side is one side of a drawing: boxes with rows.
type side struct {
	x     int
	names []string
	rows  map[string][]string
	at    map[[2]string]int // the middle of a row
}

func newSide(x int) *side {
	return &side{x: x, rows: map[string][]string{}, at: map[[2]string]int{}}
}

func (c *side) add(name, row string) {
	if name == "" || slices.Contains(c.rows[name], row) {
		return
	}
	if c.rows[name] == nil {
		c.names = append(c.names, name)
	}
	c.rows[name] = append(c.rows[name], row)
}

func (d *svg) side(c *side, y int) int {
	less := func(a, b string) int {
		switch {
		case plan.NaturalLess(a, b):
			return -1
		case plan.NaturalLess(b, a):
			return 1
		}
		return 0
	}
	slices.SortFunc(c.names, less)
	for _, name := range c.names {
		rows := c.rows[name]
		slices.SortFunc(rows, less)
		d.f(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", c.x, y, svgBox, svgHead+len(rows)*svgRow+6)
		d.label(c.x+10, y+19, svgBox-20, "head", name)
		for n, row := range rows {
			top := y + svgHead + n*svgRow
			c.at[[2]string{name, row}] = top + svgRow/2
			d.f(`<rect class="end" x="%d" y="%d" width="%d" height="%d" rx="4"/>`+"\n", c.x+6, top+2, svgBox-12, svgRow-4)
			d.label(c.x+16, top+17, svgBox-32, "", row)
		}
		y += svgHead + len(rows)*svgRow + 6 + svgGap
	}
	return y
}

func (d *svg) finding(f cabling.Finding) {
	for _, line := range lines(sentence(f.Sentence), svgLetters-10) {
		d.line(svgMargin, d.y+14, "say", line)
		d.y += svgLine
	}
	d.y += 6
	left, right := newSide(svgMargin), newSide(svgWidth-svgMargin-svgBox)
	cables := f.Cables[:min(len(f.Cables), drawn)]
	for _, c := range cables {
		left.add(c.Device, c.NIC)
		right.add(c.Recorded.Switch, c.Recorded.Port)
		right.add(c.Seen.Switch, c.Seen.Port)
	}
	bottom := max(d.side(left, d.y), d.side(right, d.y))
	for _, c := range cables {
		d.cable("recorded", left, right, c, c.Recorded)
		d.cable("seen", left, right, c, c.Seen)
	}
	d.y = bottom
	if n := len(f.Cables) - len(cables); n > 0 {
		d.line(svgMargin, d.y+12, "dim", fmt.Sprintf("%d more cables are not drawn.", n))
		d.y += svgLine
	}
	for n, m := range f.Moves {
		for k, line := range lines(m.Text, svgLetters) {
			if k == 0 {
				line = fmt.Sprintf("%d. %s", n+1, line)
			}
			d.line(svgMargin+12, d.y+12, "", line)
			d.y += svgLine
		}
	}
	d.y += 2 * svgGap
}

func (d *svg) cable(class string, left, right *side, c cabling.Wrong, end cabling.End) {
	from, ok := left.at[[2]string{c.Device, c.NIC}]
	to, found := right.at[[2]string{end.Switch, end.Port}]
	if !ok || !found {
		return
	}
	x, z := left.x+svgBox-6, right.x+6
	d.f(`<path class="%s" d="M%d %d C%d %d %d %d %d %d"/>`+"\n", class, x, from, x+120, from, z-120, to, z, to)
}
