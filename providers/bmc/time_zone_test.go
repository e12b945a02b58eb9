package bmc_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// What a BMC can have of a zone: a name, an offset, or words of its own. What it
// cannot have is shown with the reason, and nothing is written.
func TestTimeZones(t *testing.T) {
	offset := func(b *bmctest.BMC) any { return b.Value("offset") }
	name := func(b *bmctest.BMC) any { return b.Value("zone") }
	attribute := func(b *bmctest.BMC) any { return b.Attribute("Time.1.Timezone") }
	saving := func(b *bmctest.BMC) { b.SetValue("saving", true) }
	for _, tc := range []struct {
		vendor, zone string
		prepare      func(*bmctest.Profile)
		seed         func(*bmctest.BMC)
		has          func(*bmctest.BMC) any
		want         any    // nil: it has it already, or cannot have it
		lacks        string // why it cannot
	}{
		{bmctest.IDRAC, "UTC", nil, nil, attribute, "UTC", ""},
		{bmctest.IDRAC, "Europe/London", nil, nil, attribute, "Europe/London", ""},
		{bmctest.IDRAC, "CST6CDT", nil, nil, attribute, nil, ""},
		{bmctest.IDRAC, "Etc/UTC", nil, func(b *bmctest.BMC) { b.SetAttribute("Time.1.Timezone", "UTC") }, attribute, nil, ""},
		{bmctest.XCC, "UTC", nil, nil, offset, "+00:00", ""},
		{bmctest.XCC, "Asia/Kathmandu", nil, nil, offset, "+05:45", ""},
		{bmctest.XCC, "Etc/GMT+5", nil, nil, offset, nil, ""},
		{bmctest.XCC, "Etc/GMT+5", nil, saving, offset, "-05:00", ""},
		{bmctest.XCC, "UTC", nil, func(b *bmctest.BMC) { b.SetValue("offset", "Z") }, offset, nil, ""},
		{bmctest.XCC, "Europe/London", nil, nil, offset, nil, "Europe/London changes with daylight saving"},
		{bmctest.AMI, "Asia/Kolkata", nil, nil, offset, "+05:30", ""},
		{bmctest.AMI, "America/New_York", nil, nil, offset, nil, "America/New_York changes with daylight saving"},
		{bmctest.Supermicro, "Etc/UTC", nil, nil, name, "(UTC+00:00) Coordinated Universal Time", ""},
		{bmctest.Supermicro, "America/Chicago", nil, nil, name, nil, "only those of UTC are known"},
		{bmctest.Supermicro, "Asia/Tokyo", func(p *bmctest.Profile) { p.NoZoneName = true }, nil, offset, "+09:00", ""},
		{bmctest.Generic, "Africa/Lagos", nil, nil, offset, "+01:00", ""},
		{bmctest.Generic, "Europe/London", func(p *bmctest.Profile) { p.ZoneName = true }, func(b *bmctest.BMC) { b.SetValue("zone", "America/Chicago") }, name, "Europe/London", ""},
		{bmctest.Generic, "UTC", func(p *bmctest.Profile) { p.NoTimeZone = true }, nil, offset, nil, "no time zone"},
	} {
		t.Run(tc.vendor+" "+tc.zone, func(t *testing.T) {
			m := machine(tc.vendor)
			if tc.prepare != nil {
				tc.prepare(&m.Profile)
			}
			w := newWorld(t, m)
			b := w.bmcs[0]
			if tc.seed != nil {
				tc.seed(b)
			}
			w.scope.Site.BMC.TimeZone = tc.zone
			w.connect()
			before := tc.has(b)
			p := w.build(w.read())
			step := stepOf(p, "time_zone")
			shown := slices.ContainsFunc(p.Observed, func(o plan.Observation) bool {
				return o.Address.Kind == "time_zone" && o.Rule == "unsupported" && strings.Contains(o.Text, tc.lacks)
			})
			if (step != nil) != (tc.want != nil) || shown != (tc.lacks != "") {
				t.Fatalf("%s %+v %+v", steps(p), p.Observed, p.Diagnostics)
			}
			if step == nil {
				tc.want = before
			} else if r := w.apply(step); r.Outcome != plan.OutcomeDone {
				t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
			}
			if got := tc.has(b); got != tc.want || tc.vendor == bmctest.XCC && step != nil && b.Value("saving") != false {
				t.Errorf("%v, want %v", got, tc.want)
			}
			if p := w.build(w.read()); stepOf(p, "time_zone") != nil {
				t.Errorf("again: %s", steps(p))
			}
			w.close()
		})
	}
}
