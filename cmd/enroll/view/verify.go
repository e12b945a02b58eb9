package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/cabling"
)

// Verified is what the evidence at hand says about one device.
type Verified struct {
	Device    string              `json:"device"`
	State     plan.ProvisionState `json:"provision_state"`
	Inspected string              `json:"inspection_finished_at"`
	Checks    []plan.Check        `json:"checks"`
	Fault     *plan.Fault         `json:"fault,omitempty"`
}

// count gives the number of checks with a verdict.
func (v Verified) count(verdict plan.CheckVerdict) int {
	n := 0
	for _, c := range v.Checks {
		if c.Verdict == verdict {
			n++
		}
	}
	return n
}

// word sums a device up.
func (v Verified) word() string {
	switch {
	case v.Fault != nil:
		return "unreadable"
	case v.count(plan.CheckFail) > 0:
		return "failed"
	case v.count(plan.CheckUnknown) > 0:
		return "not proven"
	}
	return "proven"
}

// Verification is the whole of `enroll verify`.
type Verification struct {
	Site     string            `json:"site"`
	Devices  []Verified        `json:"devices"`
	Findings []cabling.Finding `json:"findings"` // what happened to wrong cables
	Summary  VerifySummary     `json:"summary"`
}

// VerifySummary counts devices by what became of them, and checks by verdict.
type VerifySummary struct {
	Devices    int `json:"devices"`
	Proven     int `json:"proven"`
	Failed     int `json:"failed"`
	NotProven  int `json:"not_proven"`
	Unreadable int `json:"unreadable"`
	Pass       int `json:"checks_passed"`
	Fail       int `json:"checks_failed"`
	Unknown    int `json:"checks_unknown"`
	Skipped    int `json:"checks_skipped"`
}

// NewVerification puts a verification together and counts.
func NewVerification(site string, devices []Verified, findings []cabling.Finding) *Verification {
	v := &Verification{Site: site, Devices: devices, Findings: findings}
	if v.Findings == nil {
		v.Findings = []cabling.Finding{}
	}
	s := &v.Summary
	s.Devices = len(devices)
	for i := range devices {
		d := &devices[i]
		if d.Checks == nil {
			d.Checks = []plan.Check{}
		}
		s.Pass += d.count(plan.CheckPass)
		s.Fail += d.count(plan.CheckFail)
		s.Unknown += d.count(plan.CheckUnknown)
		s.Skipped += d.count(plan.CheckSkipped)
		switch d.word() {
		case "unreadable":
			s.Unreadable++
		case "failed":
			s.Failed++
		case "not proven":
			s.NotProven++
		default:
			s.Proven++
		}
	}
	return v
}

// String is the last line of the text form; zeros are written.
func (s VerifySummary) String() string {
	return fmt.Sprintf("Verify: %s, %d proven, %d failed, %d not proven, %d unreadable; %d checks passed, %d failed, %d unknown, %d skipped.",
		plural(s.Devices, "device"), s.Proven, s.Failed, s.NotProven, s.Unreadable, s.Pass, s.Fail, s.Unknown, s.Skipped)
}

// Text writes the verification for a terminal: of what passes the number, unless
// full.
func (v *Verification) Text(w io.Writer, o TextOptions) error {
	t := &textWriter{o: o}
	for _, d := range v.Devices {
		t.f("%s  %s\n", Clean(d.Device), t.color(wordColor(d), d.word()+" ("+node(d)+")"))
		if d.Fault != nil {
			Fault(&t.b, d.Fault, "  ", o.Color)
		}
		for _, c := range d.Checks {
			if c.Verdict == plan.CheckFail || c.Verdict == plan.CheckUnknown || o.Full {
				t.proof(c)
			}
		}
		if n := d.count(plan.CheckPass); n > 0 && !o.Full {
			t.f("  %s %s as recorded\n", t.verdict(plan.CheckPass), plural(n, "check"))
		}
		if n := d.count(plan.CheckSkipped); n > 0 && !o.Full {
			t.f("  %s %s skipped, as the record says\n", t.verdict(plan.CheckSkipped), plural(n, "check"))
		}
		t.f("\n")
	}
	if len(v.Findings) > 0 {
		t.f("Cables\n")
		for _, f := range v.Findings {
			t.f("  %s\n", Clean(sentence(f.Sentence)))
			for n, m := range f.Moves {
				t.f("    %d. %s\n", n+1, Clean(m.Text))
			}
		}
		t.f("\n")
	}
	t.f("%s\n", v.Summary)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// proof writes a check in full.
func (t *textWriter) proof(c plan.Check) {
	t.f("  %s %-30s %s\n", t.verdict(c.Verdict), c.Address.Local(), c.Verdict)
	t.f("      expected  %s\n", Clean(orNone(c.Expected)))
	t.f("      observed  %s\n", Clean(orNone(c.Observed)))
	if c.Text != "" {
		t.f("      %s\n", Clean(c.Text))
	}
	if t.o.Full && len(c.From) > 0 {
		t.f("      from      %s\n", Clean(strings.Join(c.From, ", ")))
	}
}

func wordColor(d Verified) string {
	switch d.word() {
	case "proven":
		return green
	case "not proven":
		return yellow
	}
	return red
}

// node says what Ironic has of a device.
func node(d Verified) string {
	switch {
	case d.Fault != nil && d.State == "":
		return "not looked at"
	case d.State == "":
		return "no node in Ironic"
	case d.Inspected == "":
		return string(d.State) + ", no inventory of a finished inspection"
	}
	at := d.Inspected
	if when, err := time.Parse(time.RFC3339, at); err == nil {
		at = when.UTC().Format("2006-01-02 15:04 UTC")
	}
	return string(d.State) + ", inspected " + at
}

// sentence ends a clause as a sentence.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// Markdown writes the verification as a comment of a merge request, at most
// maxBytes long: what is wrong with cables first, with a drawing of each, then a
// row for each device that is not proven.
func (v *Verification) Markdown(w io.Writer, maxBytes int) error {
	head := fmt.Sprintf("### enroll verify for site %s\n\n**%s**\n\n", inline(v.Site), v.Summary)
	var drawings []string
	for _, f := range v.Findings {
		var b strings.Builder
		fmt.Fprintf(&b, "- **%s**\n", inline(sentence(f.Sentence)))
		for n, m := range f.Moves {
			fmt.Fprintf(&b, "  %d. %s\n", n+1, inline(m.Text))
		}
		b.WriteString("\n" + fence(drawing(f)) + "\n")
		drawings = append(drawings, b.String())
	}
	var rows []string
	for _, d := range v.Devices {
		if d.word() == "proven" {
			continue
		}
		if len(rows) == 0 {
			rows = append(rows, "| device | verdict | check | expected | observed | |\n|---|---|---|---|---|---|\n")
		}
		if d.Fault != nil {
			rows = append(rows, fmt.Sprintf("| %s | %s | | | | %s: %s |\n", inline(d.Device), d.word(), d.Fault.Code, inline(d.Fault.Summary)))
		}
		for _, c := range d.Checks {
			if c.Verdict == plan.CheckFail || c.Verdict == plan.CheckUnknown {
				rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", inline(d.Device), c.Verdict, code(c.Address.Local()), inline(c.Expected), inline(c.Observed), inline(c.Text)))
			}
		}
	}
	f := fitter{room: maxBytes - len(head), where: "the JSON form"}
	f.take("mistakes", drawings)
	f.take("rows", rows)
	_, err := io.WriteString(w, head+f.b.String())
	return err
}

// code is a text in a table's cell as it stands; one that could end it is escaped
// instead.
func code(s string) string {
	if s = Clean(s); strings.ContainsAny(s, "`|") {
		return inline(s)
	}
	return "`" + s + "`"
}

// drawing shows the cables of a finding as lines of text: recorded dashed, seen
// drawn through.
func drawing(f cabling.Finding) string {
	width := 0
	for _, c := range f.Cables {
		width = max(width, len([]rune(Clean(c.Device+" "+c.NIC))))
	}
	var b strings.Builder
	for n, c := range f.Cables {
		if n == drawn {
			fmt.Fprintf(&b, "… and %d more\n", len(f.Cables)-n)
			break
		}
		fmt.Fprintf(&b, "%-*s ┄┄ recorded ┄┄▷ %s\n", width, Clean(c.Device+" "+c.NIC), Clean(orNone(c.Recorded.String())))
		fmt.Fprintf(&b, "%-*s ━━ seen ━━━━━━▶ %s\n", width, "", Clean(orNone(c.Seen.String())))
	}
	return b.String()
}

// drawn is how many cables of one mistake are drawn.
const drawn = 16
