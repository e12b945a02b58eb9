package view

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// pageHead makes the page one file: its own style, no script, and nothing that a
// browser would load.
const pageHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s</title>
<style>
:root { color-scheme: light dark; --red: #a40000; --green: #3a6e06; --yellow: #8f5902; --blue: #204a87; --line: #babdb6; }
@media (prefers-color-scheme: dark) { :root { --red: #ff7b72; --green: #7ee787; --yellow: #e3b341; --blue: #79c0ff; --line: #555753; } }
body { font: 15px/1.45 sans-serif; max-width: 110em; margin: 1.5em auto; padding: 0 1em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.15em; margin-top: 1.8em; }
.sum { font-weight: bold; } .warn { border-left: 4px solid var(--red); padding: .3em .8em; }
table { border-collapse: collapse; } th, td { border-bottom: 1px solid var(--line); padding: .2em .7em; text-align: left; vertical-align: top; }
td:not(:nth-last-child(2)) { white-space: nowrap; }
dt { float: left; clear: left; width: 9em; } dd { margin-left: 9em; overflow-wrap: anywhere; }
details { border: 1px solid var(--line); border-radius: 4px; margin: .5em 0; } summary { padding: .35em .7em; cursor: pointer; }
pre { margin: 0; padding: .3em .9em .8em; overflow-x: auto; font: 13px/1.4 monospace; }
.red { color: var(--red); } .green { color: var(--green); } .yellow { color: var(--yellow); } .blue { color: var(--blue); } .strong { font-weight: bold; }
</style>
</head>
<body>
`

// HTML writes a plan as one page that stands alone: the summary, a row for each
// device, and below them each device with everything that the plan says about it,
// folded where there are many.
func HTML(w io.Writer, p *plan.Plan) error {
	g := group(p)
	t := &textWriter{o: TextOptions{Color: true, Full: true}}
	h := &page{}
	title := "enroll plan for site " + p.Scope.Site
	h.f(pageHead+"<h1>%s</h1>\n<p class=\"sum\">%s</p>\n", escape(title), escape(title), escape(p.Summary.String()))
	if n := len(p.Errors()); n > 0 {
		h.f("<p class=\"warn\">This plan is incomplete: %s. Nothing will be done to the devices concerned.</p>\n", plural(n, "fault"))
	}
	if line := idle(p); line != "" {
		h.f("<p>%s</p>\n", escape(line))
	}
	for _, line := range effectLines(p.Summary) {
		h.f("<p>%s</p>\n", escape(line))
	}
	h.f("<dl>\n")
	for _, row := range [][2]string{
		{"content", p.ContentHash}, {"plan", p.PlanID}, {"made", p.Created.UTC().Format(time.RFC3339) + " by enroll " + p.Tool.Version}, {"valid until", p.Expires.UTC().Format(time.RFC3339)},
	} {
		h.f("<dt>%s</dt><dd>%s</dd>\n", row[0], escape(row[1]))
	}
	h.f("</dl>\n")
	switch lines := narrowed(p, true); len(lines) {
	case 0:
	case 1:
		h.f("<p>%s</p>\n", escape(lines[0]))
	default:
		h.fold("", lines[0], strings.Join(lines[1:], "\n"), false)
	}
	t.policies(p.Policies)
	if text := t.taken(); text != "" {
		h.fold("policies", "Policies", text, true)
	}
	h.table(p, g)
	h.f("<h2>Steps</h2>\n")
	t.shared(g)
	if text := t.taken(); text != "" {
		h.fold("", sharedWords(g), text, true)
	}
	for i, d := range p.Devices {
		t.device(d, g)
		h.fold(anchor(i), d.Name+": "+verdict(d), t.taken(), len(p.Devices) < tableFrom && !unremarkable(d, g))
	}
	h.f("</body>\n</html>\n")
	_, err := io.WriteString(w, h.b.String())
	return err
}

// taken gives what was written so far, and begins anew.
func (t *textWriter) taken() string {
	text := strings.Trim(t.b.String(), "\n")
	t.b.Reset()
	return text
}

type page struct{ b strings.Builder }

func (h *page) f(format string, args ...any) { fmt.Fprintf(&h.b, format, args...) }

// fold hides a text of a textWriter behind a title of foreign words.
func (h *page) fold(id, title, text string, open bool) {
	attributes := ""
	if id != "" {
		attributes += " id=\"" + id + "\""
	}
	if open {
		attributes += " open"
	}
	h.f("<details%s><summary>%s</summary>\n<pre>%s</pre>\n</details>\n", attributes, escape(title), colored(text))
}

// table has a row for each device, and one for each rack.
func (h *page) table(p *plan.Plan, g byDevice) {
	h.f("<h2>Devices</h2>\n<table>\n")
	h.row("th", slices.Concat([]string{"device", "verdict", "rack"}, tableSystems, []string{"effects", ""}))
	for i, d := range p.Devices {
		name := "<a href=\"#" + anchor(i) + "\">" + escape(d.Name) + "</a>"
		if strings.HasPrefix(d.URL, "https://") || strings.HasPrefix(d.URL, "http://") {
			name += " <a href=\"" + escape(d.URL) + "\" rel=\"noreferrer\">NetBox</a>"
		}
		cells := []string{name, escape(verdict(d)), escape(d.Rack)}
		counts := symbols(d, g)
		for _, system := range tableSystems {
			cells = append(cells, escape(cell(counts[system])))
		}
		h.row("td", append(cells, escape(effectSum(d.Effects)), escape(says(d, g))))
	}
	h.f("</table>\n<p>%s</p>\n", escape(strings.Join(legendOf(p), "  ")))
	if racks := rackRows(p); len(p.Racks) > 1 && len(racks) > 1 {
		h.f("<h2>Racks</h2>\n<table>\n")
		for i, row := range racks {
			cells := make([]string, len(row))
			for j := range row {
				cells[j] = escape(row[j])
			}
			h.row(map[bool]string{true: "th", false: "td"}[i == 0], cells)
		}
		h.f("</table>\n")
	}
}

// row writes cells that are escaped already.
func (h *page) row(kind string, cells []string) {
	h.f("<tr>")
	for _, c := range cells {
		h.f("<%s>%s</%s>", kind, c, kind)
	}
	h.f("</tr>\n")
}

func anchor(i int) string { return "d" + itoa(i+1) }

// escape makes foreign text harmless between tags and in quoted attributes.
func escape(s string) string { return html.EscapeString(Clean(s)) }

// colored is a text of a textWriter with its colours as spans. Foreign words in it
// are clean, so every escape sequence is one of ours.
func colored(text string) string {
	var b strings.Builder
	open := 0
	for text != "" {
		at := strings.IndexByte(text, '\x1b')
		if at < 0 {
			at = len(text)
		}
		b.WriteString(html.EscapeString(text[:at]))
		text = text[at:]
		for sequence, class := range map[string]string{red: "red", green: "green", yellow: "yellow", blue: "blue", strong: "strong", reset: ""} {
			rest, found := strings.CutPrefix(text, sequence)
			if !found {
				continue
			}
			text = rest
			if class != "" {
				b.WriteString("<span class=\"" + class + "\">")
				open++
			} else {
				b.WriteString(strings.Repeat("</span>", open))
				open = 0
			}
			break
		}
		text = strings.TrimPrefix(text, "\x1b") // none of ours
	}
	return b.String() + strings.Repeat("</span>", open)
}
