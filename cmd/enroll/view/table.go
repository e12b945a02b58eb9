package view

import (
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// tableSystems are the columns between a device's name and its effects, in the
// order in which they are written to.
var tableSystems = []string{"netbox", "dhcp", "bmc", "ironic", "check"} //nolint:gochecknoglobals // a constant table

// marks are the symbols of a table's cells, the gravest first.
var marks = []string{"✗", "!", "+", "~", ">", "…", "?", "·", "✓", "-"} //nolint:gochecknoglobals // a constant table

// symbols counts a device's symbols by system.
func symbols(d plan.DevicePlan, g byDevice) map[string]map[string]int {
	out := map[string]map[string]int{}
	mark := func(system, mark string) {
		if out[system] == nil {
			out[system] = map[string]int{}
		}
		out[system][mark]++
	}
	checks := map[plan.Address]bool{}
	for _, c := range g.checks[d.Name] {
		checks[c.Address] = true
		mark("check", checkMark(c.Verdict))
	}
	for _, s := range g.steps[d.Name] {
		if !checks[s.Address] {
			mark(s.Address.System, symbol(s))
		}
	}
	for _, o := range g.observed[d.Name] {
		mark(o.Address.System, "·")
	}
	return out
}

func cell(counts map[string]int) string {
	var out []string
	for _, m := range marks {
		if n := counts[m]; n > 0 {
			out = append(out, m+itoa(n))
		}
	}
	return strings.Join(out, " ")
}

// table sums up a long plan: a row for each device that is not as wanted, and one
// for each rack.
func (t *textWriter) table(p *plan.Plan, g byDevice) {
	rows := [][]string{slices.Concat([]string{"device", "rack"}, tableSystems, effectHeads(), []string{""})}
	var quiet, left []string
	for _, d := range p.Devices {
		if unremarkable(d, g) {
			if d.LeftOut > 0 {
				left = append(left, Clean(d.Name))
			} else {
				quiet = append(quiet, Clean(d.Name))
			}
			continue
		}
		row := []string{Clean(d.Name), Clean(d.Rack)}
		counts := symbols(d, g)
		for _, system := range tableSystems {
			row = append(row, cell(counts[system]))
		}
		rows = append(rows, append(append(row, effectCells(d.Effects)...), says(d, g)))
	}
	if len(rows) > 1 {
		t.f("\n")
		t.rows(rows)
	}
	if len(quiet) > 0 {
		t.f("\n= %s as wanted: %s\n", plural(len(quiet), "device"), list(quiet, 6))
	}
	if len(left) > 0 {
		t.f("\n- %s with all steps left out by the selection: %s\n", plural(len(left), "device"), list(left, 6))
	}
	if racks := rackRows(p); len(p.Racks) > 1 && len(racks) > 1 {
		t.f("\n")
		t.rows(racks)
	}
}

// rackRows has a row for each rack in which anything would be done.
func rackRows(p *plan.Plan) [][]string {
	rows := [][]string{slices.Concat([]string{"rack", "devices", "change", "run", "verify", "blocked"}, effectHeads(), []string{""})}
	for _, r := range p.Racks {
		if r.Change+r.Run+r.Verify+r.Blocked == 0 {
			continue
		}
		end := ""
		if r.HostReboots > 0 {
			end = plural(r.HostReboots, "host") + " to reboot"
		}
		counts := []string{Clean(r.Name), itoa(r.Devices), count(r.Change), count(r.Run), count(r.Verify), count(r.Blocked)}
		rows = append(rows, append(append(counts, effectCells(r.Effects)...), end))
	}
	return rows
}

// count writes nothing for none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return itoa(n)
}

func effectHeads() []string {
	var out []string
	for _, e := range plan.Effects() {
		out = append(out, strings.ReplaceAll(string(e), "_", " "))
	}
	return out
}

func effectCells(sum map[plan.Effect]int) []string {
	var out []string
	for _, e := range plan.Effects() {
		out = append(out, count(sum[e]))
	}
	return out
}

// leftOut stands for "clean" where the selection leaves out all that would be done.
const leftOut = "left out"

// verdict is the word for what would be done to a device.
func verdict(d plan.DevicePlan) string {
	if d.Verdict == plan.VerdictClean && d.LeftOut > 0 {
		return leftOut
	}
	return string(d.Verdict)
}

// faultWords name the first fault of a device and count the others, "" when it has
// none.
func faultWords(d plan.DevicePlan, g byDevice) string {
	var codes []string
	for _, f := range g.faults[d.Name] {
		if f.Severity == plan.SeverityError {
			codes = append(codes, string(f.Fault.Code))
		}
	}
	return list(codes, 1)
}

// says is what a row has to say beside its counts.
func says(d plan.DevicePlan, g byDevice) string {
	if words := faultWords(d, g); words != "" {
		return Clean(words)
	}
	switch {
	case d.Owned:
		return "owned"
	case d.Verdict == plan.VerdictClean && d.LeftOut > 0:
		return leftOut
	case d.Verdict == plan.VerdictChanges && d.UpTo:
		return "up to"
	case d.Verdict == plan.VerdictChanges || d.Verdict == plan.VerdictClean:
		return ""
	}
	return string(d.Verdict)
}

// rows writes a table. Columns that are empty in all rows are left out. Where the
// terminal has little room they stand closer, and what the last one says goes
// below its row.
func (t *textWriter) rows(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows[1:] {
		for c, text := range row {
			if n := visible(text); n > 0 {
				widths[c] = max(widths[c], n, visible(rows[0][c]))
			}
		}
	}
	last, gap, full := len(widths)-1, 2, 0
	for _, n := range widths[:last] {
		if n > 0 {
			full += n + gap
		}
	}
	if t.o.Width > 0 && full-gap > t.o.Width {
		gap = 1
	}
	for i, row := range rows {
		line := ""
		for c, text := range row[:last] {
			if widths[c] > 0 {
				line += text + strings.Repeat(" ", widths[c]-visible(text)+gap)
			}
		}
		switch end := row[last]; {
		case i == 0:
			line = t.bold(strings.TrimRight(line+end, " "))
		case t.o.Width > 0 && end != "" && visible(line+end) > t.o.Width:
			line = strings.TrimRight(line, " ") + "\n" + strings.Repeat(" ", 6) + end
		default:
			line = strings.TrimRight(line+end, " ")
		}
		t.f("%s\n", line)
	}
}
