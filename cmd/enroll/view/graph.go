package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// stepGraph is a plan's step graph, ready to be written in one of the languages of
// diagrams. Names of nodes are made here, so that nothing foreign can be one.
type stepGraph struct {
	title  string
	note   string // shown where there is no step
	groups []graphGroup
	edges  [][2]string // from what is needed to what needs it
}

type graphGroup struct {
	title string // empty: shared by the site
	nodes []graphNode
}

type graphNode struct {
	id    string
	lines []string // the first is the name
	class string   // of graphClasses
}

// graphClasses are the kinds of nodes, by what a reviewer has to see first.
var graphClasses = []struct{ name, fill, line string }{
	{"erase", "#f4b6b6", "#a40000"},
	{"effect", "#fbdfb1", "#8f5902"},
	{"change", "#ffffff", "#555753"},
	{"verify", "#d7e6f5", "#204a87"},
	{"blocked", "#eeeeec", "#888a85"},
}

// drawnWidth is how many characters a node has room for.
const drawnWidth = 80

func graphOf(p *plan.Plan) stepGraph {
	d := stepGraph{title: "site " + p.Scope.Site + ", plan " + p.PlanID + "\n" + p.Summary.String(), note: idle(p)}
	if d.note == "" {
		d.note = "No steps."
	}
	ids := map[string]string{}
	for i, s := range p.Steps {
		ids[s.ID] = "n" + itoa(i+1)
	}
	heads := map[string]plan.DevicePlan{}
	for _, dev := range p.Devices {
		heads[dev.Name] = dev
	}
	at := map[string]int{}
	for _, s := range p.Steps {
		i, known := at[s.Address.Device]
		if !known {
			i = len(d.groups)
			at[s.Address.Device] = i
			d.groups = append(d.groups, graphGroup{title: deviceTitle(s.Address.Device, heads)})
		}
		d.groups[i].nodes = append(d.groups[i].nodes, graphNode{ids[s.ID], nodeLines(s), nodeClass(s)})
		for _, need := range s.Needs {
			d.edges = append(d.edges, [2]string{ids[need], ids[s.ID]})
		}
	}
	return d
}

func deviceTitle(name string, heads map[string]plan.DevicePlan) string {
	if name == "" {
		return ""
	}
	title := name
	if rack := heads[name].Rack; rack != "" {
		title += ", rack " + rack
	}
	if heads[name].Owned {
		title += ", held: " + cut(heads[name].OwnedReason, drawnWidth)
	}
	return title
}

// nodeLines say what a step is, what it does, and each of its effects.
func nodeLines(s *plan.Step) []string {
	lines := []string{symbol(s) + " " + cut(s.Address.Local(), drawnWidth)}
	switch {
	case s.Blocked != nil:
		return append(lines, string(s.Action)+", blocked: "+string(s.Blocked.Rule))
	case s.BeforeUnknown && s.Action.Mutates():
		lines = append(lines, string(s.Action)+" if it differs")
	default:
		lines = append(lines, string(s.Action))
	}
	for _, e := range s.Effects {
		lines = append(lines, effectWords[e])
	}
	return lines
}

func nodeClass(s *plan.Step) string {
	switch {
	case s.Blocked != nil:
		return "blocked"
	case effectColor(s) == red:
		return "erase"
	case len(s.Effects) > 0:
		return "effect"
	case s.Action == plan.ActionVerify:
		return "verify"
	}
	return "change"
}

// Dot writes the step graph in Graphviz's language; arrows lead from what has to be
// done before to what comes after.
func Dot(w io.Writer, p *plan.Plan) error {
	d := graphOf(p)
	var b strings.Builder
	b.WriteString("digraph plan {\n")
	fmt.Fprintf(&b, "  graph [label=%s, labelloc=t, fontname=\"sans-serif\", fontsize=12, nodesep=0.25, ranksep=0.35, newrank=true];\n", dotLines(strings.Split(d.title, "\n")))
	b.WriteString("  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=10, margin=\"0.12,0.06\"];\n  edge [color=\"#555753\", arrowsize=0.7];\n")
	if len(d.groups) == 0 {
		fmt.Fprintf(&b, "  none [label=%s, shape=plaintext, style=\"\"];\n", dotLines([]string{d.note}))
	}
	for i, g := range d.groups {
		indent := "  "
		if g.title != "" {
			indent = "    "
			fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s; labeljust=l; color=\"#babdb6\"; fontsize=11;\n", i, dotLines([]string{g.title}))
		}
		for _, n := range g.nodes {
			fmt.Fprintf(&b, "%s%s [label=%s%s];\n", indent, n.id, dotLines(n.lines), dotStyle(n.class))
		}
		if g.title != "" {
			b.WriteString("  }\n")
		}
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, "  %s -> %s;\n", e[0], e[1])
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func dotStyle(class string) string {
	for _, c := range graphClasses {
		if c.name != class {
			continue
		}
		style := fmt.Sprintf(", fillcolor=%q, color=%q", c.fill, c.line)
		if class == "blocked" {
			style += ", style=\"filled,rounded,dashed\", fontcolor=\"#555753\""
		}
		return style
	}
	return ""
}

// dotLines is a quoted text of lines. In it only the quotes and the backslash mean
// anything.
func dotLines(lines []string) string {
	escaped := make([]string, len(lines))
	for i, l := range lines {
		escaped[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(Clean(l))
	}
	return `"` + strings.Join(escaped, `\n`) + `"`
}

// Mermaid writes the step graph in the language that forges draw in Markdown.
func Mermaid(w io.Writer, p *plan.Plan) error {
	d := graphOf(p)
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	for _, l := range strings.Split(d.title, "\n") {
		fmt.Fprintf(&b, "  %%%% %s\n", mermaidText(l))
	}
	if len(d.groups) == 0 {
		fmt.Fprintf(&b, "  none[\"%s\"]\n", mermaidText(d.note))
	}
	used := map[string]bool{}
	for i, g := range d.groups {
		indent := "  "
		if g.title != "" {
			indent = "    "
			fmt.Fprintf(&b, "  subgraph g%d[\"%s\"]\n", i, mermaidText(g.title))
		}
		for _, n := range g.nodes {
			lines := make([]string, len(n.lines))
			for i, l := range n.lines {
				lines[i] = mermaidText(l)
			}
			used[n.class] = true
			fmt.Fprintf(&b, "%s%s[\"%s\"]:::%s\n", indent, n.id, strings.Join(lines, "<br/>"), n.class)
		}
		if g.title != "" {
			b.WriteString("  end\n")
		}
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, "  %s --> %s\n", e[0], e[1])
	}
	for _, c := range graphClasses {
		if used[c.name] {
			dashed := ""
			if c.name == "blocked" {
				dashed = ",stroke-dasharray:4"
			}
			fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#000%s\n", c.name, c.fill, c.line, dashed)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mermaidText writes everything but plain characters as a number: neither quotes,
// brackets, markup nor words of the language come through.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range Clean(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" .,_-/+", r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
