package view

import (
	"fmt"
	"io"

	"github.com/enroll-dev/enroll/plan"
)

// Drift writes what differs, and nothing about what does not. Its last line is
// fixed, always printed, and zeros are written.
func Drift(w io.Writer, p *plan.Plan, o TextOptions) error {
	t := &textWriter{o: o}
	g := group(p)
	d := p.Drift()
	t.f("Drift at site %s, seen %s\n", Clean(p.Scope.Site), p.Created.UTC().Format("2006-01-02 15:04 UTC"))
	for _, line := range narrowed(p, o.Full) {
		t.f("%s\n", line)
	}
	g.tidy(o.Full)
	if d.Has("") || len(g.faults[""]) > 0 {
		t.site(g)
	}
	for _, dev := range p.Devices {
		if d.Has(dev.Name) || len(g.faults[dev.Name]) > 0 {
			t.device(dev, g)
		}
	}
	t.f("\n%s\n", driftLine(d))
	_, err := io.WriteString(w, t.b.String())
	return err
}

// tidy leaves out what is no difference: passed checks, and what the site
// tolerates, which is counted.
func (g byDevice) tidy(full bool) {
	if full {
		return
	}
	for name, checks := range g.checks {
		var kept []plan.Check
		for _, c := range checks {
			if c.Verdict == plan.CheckFail {
				kept = append(kept, c)
			}
		}
		g.checks[name] = kept
	}
	for name, list := range g.observed {
		var kept []plan.Observation
		for _, o := range list {
			if o.Rule != plan.RuleTolerated {
				kept = append(kept, o)
			}
		}
		g.observed[name] = kept
	}
}

func driftLine(d plan.Drift) string {
	return fmt.Sprintf("Drift: %d devices, %d drifted, %d differences, %d of them blocked; %d tolerated, %d unread.",
		d.Devices, d.Drifted, d.Differences, d.Blocked, d.Tolerated, d.Unread)
}
