package bmc_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

func TestConverge(t *testing.T) {
	profiles := map[string]bmctest.Profile{
		"plain":               {},
		"if-match demanded":   {RequireIfMatch: true},
		"no etag":             {NoETag: true},
		"etag demanded, none": {NoETag: true, RequireIfMatch: true},
		"tasks":               {Tasks: true},
		"trailing slashes":    {TrailingSlash: true},
		"relative links":      {RelativeLinks: true},
		"wrong content type":  {WrongType: true},
		"absolute location":   {AbsoluteLocation: true},
		"no location":         {NoLocation: true},
		"no sessions":         {NoSessions: true},
		"no basic":            {NoBasic: true},
		"no related item":     {NoRelatedItem: true},
		"settings object":     {SettingsObject: true},
		"name on protocol":    {HostnameOnProtocol: true},
	}
	for _, vendor := range makers {
		for name, profile := range profiles {
			t.Run(vendor+" "+name, func(t *testing.T) {
				m := machine(vendor)
				m.Profile, m.FirstNIC = profile, 1
				w := newWorld(t, m)
				w.bootsRight()
				p := w.build(w.read())
				if got, want := steps(p), "update bmc.hostname differs\nupdate bmc.ntp differs"; got != want {
					t.Fatalf("steps:\n%s\nwant:\n%s\ndiagnostics: %+v", got, want, p.Diagnostics)
				}
				for _, s := range p.Steps {
					if plan.Satisfies(s.After, s.Before) {
						t.Errorf("%s: wanted already", s.Address)
					}
					if r := w.apply(s); r.Outcome != plan.OutcomeDone {
						t.Fatalf("%s: %s %v", s.Address, r.Outcome, faultText(r.Fault))
					}
				}
				if got := w.bmcs[0].Hostname(); got != "gpu-001-bmc" {
					t.Errorf("host name %q", got)
				}
				if on, servers := w.bmcs[0].NTP(); !on || !slices.Equal(servers, []string{"ntp1.example.org", "ntp2.example.org"}) {
					t.Errorf("NTP %v %v", on, servers)
				}
				// The same client and a new one both find nothing to do, without writing.
				writes := mutating(w)
				for range 2 {
					again := w.build(w.read())
					if again.Devices[0].Verdict != plan.VerdictClean || len(again.Steps) != 0 || len(again.Observed) > map[string]int{bmctest.Supermicro: 1}[vendor] {
						t.Errorf("afterwards: %s %s %+v", again.Devices[0].Verdict, steps(again), again.Diagnostics)
					}
					w.close()
					w.connect()
				}
				if got := mutating(w); got != writes {
					t.Errorf("%d writes by planning", got-writes)
				}
			})
		}
	}
}

func mutating(w *world) int {
	return w.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Mutating })
}

// Only what differs is sent, and a step that has nothing to do sends nothing.
func TestWritesAreMinimal(t *testing.T) {
	for _, vendor := range makers {
		m := machine(vendor)
		m.NTPEnabled, m.NTPServers = true, []string{"ntp1.example.org"}
		w := newWorld(t, m)
		p := w.build(w.read())
		var ntp *plan.Step
		for _, s := range p.Steps {
			if s.Address.Kind == "ntp" {
				ntp = s
			}
		}
		if ntp == nil || !slices.Equal(ntp.Because, []string{"NTPServers"}) {
			t.Fatalf("%s: %s", vendor, steps(p))
		}
		if r := w.apply(ntp); r.Outcome != plan.OutcomeDone {
			t.Fatalf("%s: %v", vendor, faultText(r.Fault))
		}
		before := mutating(w)
		if before != 1 {
			t.Errorf("%s: %d writes", vendor, before)
		}
		if r := w.apply(ntp); r.Outcome != plan.OutcomeAlready || mutating(w) != before {
			t.Errorf("%s: second run: %s", vendor, r.Outcome)
		}
		w.close()
	}
}

// A change that shows late is accepted; the reading shows the old value until
// then, and never anything in between.
func TestLateEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(bmctest.Generic)
		m.Profile.Late = time.Second
		w := newBubble(t, m)
		p := w.build(w.read())
		if r := w.apply(p.Steps[0]); r.Outcome != plan.OutcomeDone {
			t.Fatal(faultText(r.Fault))
		}
		if plan.Satisfies(p.Steps[0].After, w.live(w.read(), "hostname").Value) {
			t.Error("the simulator applied at once")
		}
		time.Sleep(2 * time.Second)
		if !plan.Satisfies(p.Steps[0].After, w.live(w.read(), "hostname").Value) {
			t.Error("not applied")
		}
		w.close()
	})
}

func TestTaskThatFails(t *testing.T) {
	m := machine(bmctest.Generic)
	m.Profile.Tasks, m.Profile.TaskFails = true, true
	w := newWorld(t, m)
	p := w.build(w.read())
	r := w.apply(p.Steps[1])
	if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCRefused || !strings.Contains(faultText(r.Fault), "PropertyValueFormatError") {
		t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
	}
	w.close()
}

// What a BMC does not have, or does not let be changed, is Unsupported and
// costs no write.
func TestUnsupported(t *testing.T) {
	for _, tc := range []struct {
		name    string
		vendor  string
		profile bmctest.Profile
		kinds   string
	}{
		{"read-only", bmctest.Generic, bmctest.Profile{ReadOnly: true}, "hostname ntp"},
		{"no host name", bmctest.Generic, bmctest.Profile{NoHostname: true}, "hostname"},
		{"no host name", bmctest.IDRAC, bmctest.Profile{NoHostname: true}, "hostname"},
		{"no network protocol", bmctest.Generic, bmctest.Profile{NoNetworkProtocol: true}, "ntp"},
		{"no boot options", bmctest.Generic, bmctest.Profile{NoBootOptions: true}, "boot_order"},
		{"no boot options", bmctest.IDRAC, bmctest.Profile{NoBootOptions: true}, "boot_order"},
	} {
		t.Run(tc.vendor+" "+tc.name, func(t *testing.T) {
			m := machine(tc.vendor)
			m.Profile, m.FirstNIC = tc.profile, 1
			w := newWorld(t, m)
			snap := w.read()
			var got []string
			for _, kind := range []string{"hostname", "ntp", "boot_order"} {
				live := w.live(snap, kind)
				if live.Presence != plan.Present {
					got = append(got, kind)
					if live.Presence != plan.Unsupported || live.Fault.Code != plan.CodeBMCUnsupported {
						t.Errorf("%s: %s %s", kind, live.Presence, faultText(live.Fault))
					}
				}
			}
			if strings.Join(got, " ") != tc.kinds {
				t.Errorf("unsupported: %v, want %s", got, tc.kinds)
			}
			w.close()
		})
	}
}

// A machine whose only gap is what its BMC does not have is clean, unless the
// site file asks for it by name.
func TestUnsupportedIsClean(t *testing.T) {
	m := machine(bmctest.Generic)
	m.Profile = bmctest.Profile{NoBootOptions: true, NoHostname: true}
	m.NTPEnabled, m.NTPServers = true, []string{"ntp1.example.org", "ntp2.example.org"}
	w := newWorld(t, m)
	p := w.build(w.read())
	if p.Devices[0].Verdict != plan.VerdictClean || len(p.Observed) != 2 {
		t.Errorf("%s, observed %+v, steps %s", p.Devices[0].Verdict, p.Observed, steps(p))
	}
	w.scope.Targets[0].Settings.Set["bmc.hostname"] = "sites/demo/site.hcl:7"
	if got := steps(w.build(w.read())); got != "update bmc.hostname differs blocked unsupported" {
		t.Errorf("asked for by name: %s", got)
	}
	w.close()
}

// Nothing is wanted of BMCs that the site does not keep.
func TestNotConfigured(t *testing.T) {
	w := newWorld(t, machine(bmctest.Generic))
	w.scope.Site.ConfigureBMC = false
	if n := len(w.read()); n != 0 {
		t.Errorf("%d resources", n)
	}
	w.scope.Site.ConfigureBMC = true
	w.scope.Targets[0].Intent.Frontend = nil
	w.scope.Targets[0].Settings.NTPServers = nil
	if n := len(w.read()); n != 3 {
		t.Errorf("%d resources, want login, restart and host name", n)
	}
	w.close()
}

func TestTooManyTimeServers(t *testing.T) {
	w := newWorld(t, machine(bmctest.IDRAC))
	w.scope.Targets[0].Settings.NTPServers = []string{"a.example.org", "b.example.org", "c.example.org", "d.example.org"}
	if live := w.live(w.read(), "ntp"); live.Presence != plan.Unsupported {
		t.Errorf("%s %s", live.Presence, faultText(live.Fault))
	}
	w.close()
}
