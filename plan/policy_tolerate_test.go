package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// bios wants two settings and a list.
var bios = Kind{Name: "bmc.bios", Phase: PhaseBMC, Want: func(t *Target) []Resource {
	return []Resource{{Address: t.Address("bmc", "bios", ""), Want: Obj(map[string]Value{
		"Attributes": Obj(map[string]Value{"SerialRedirect": Str("On"), "Group.1.Mode": Str("Uefi")}), "NTPServers": Strs("a", "b"),
	})}}
}}

func tolerant(t *testing.T, live Value, now time.Time, tolerations ...Toleration) *Plan {
	t.Helper()
	sc := testScope("gpu-001")
	sc.Site.Tolerations = tolerations
	w := Snapshot{addr(t, "lon14/gpu-001/bmc.bios"): LiveValue(live)}
	return Build(Input{Scope: sc, Kinds: []Kind{bios}, World: w, Now: now})
}

func liveBIOS(serial, mode string, ntp ...string) Value {
	return Obj(map[string]Value{"Attributes": Obj(map[string]Value{"SerialRedirect": Str(serial), "Group.1.Mode": Str(mode), "Other": Str("x")}), "NTPServers": Strs(ntp...)})
}

func serialRedirect() Toleration {
	return Toleration{Name: "serial", Address: "*/bmc.bios", Path: "Attributes.SerialRedirect", Reason: "the vendor resets it", Until: noon.Add(time.Hour), Last: "2026-12-01", From: "site.hcl:9"}
}

func TestToleratedDifferenceIsObserved(t *testing.T) {
	p := tolerant(t, liveBIOS("Off", "Uefi", "a", "b"), noon, serialRedirect())
	if len(p.Steps) != 0 || len(p.Observed) != 1 {
		t.Fatalf("steps %v, observed %v", lines(p), p.Observed)
	}
	o := p.Observed[0]
	if o.Rule != RuleTolerated || o.Text != `the vendor resets it (tolerate "serial", until 2026-12-01)` {
		t.Errorf("%+v", o)
	}
	if d := cmp.Diff(`{"Attributes":{"SerialRedirect":"On"}} {"Attributes":{"SerialRedirect":"Off"}}`, string(ToJSON(o.Want))+" "+string(ToJSON(o.Live))); d != "" {
		t.Error(d)
	}
	if p.Devices[0].Unchanged != 0 || p.Devices[0].Verdict != VerdictClean {
		t.Errorf("%+v", p.Devices[0])
	}
}

// What is not tolerated is mended, and the tolerated part is neither changed nor
// a reason.
func TestToleratedDifferenceBesideAnother(t *testing.T) {
	p := tolerant(t, liveBIOS("Off", "Bios", "a", "b"), noon, serialRedirect())
	if len(p.Steps) != 1 || len(p.Observed) != 1 {
		t.Fatalf("steps %v, observed %v", lines(p), p.Observed)
	}
	s := p.Steps[0]
	if d := cmp.Diff([]string{"Attributes.Group.1.Mode"}, s.Because); d != "" {
		t.Error(d)
	}
	if got := Text(Attr(s.After, "Attributes"), "SerialRedirect"); got != "Off" {
		t.Errorf("the step would set SerialRedirect to %q", got)
	}
}

func TestToleratedPathsAreWholeNames(t *testing.T) {
	for path, steps := range map[string]int{
		"Attributes": 0, "Attributes.Serial": 1, "SerialRedirect": 1, "Attributes.SerialRedirect": 0, "Attributes.SerialRedirect.x": 1,
	} {
		tol := serialRedirect()
		tol.Path = path
		if p := tolerant(t, liveBIOS("Off", "Uefi", "a", "b"), noon, tol); len(p.Steps) != steps {
			t.Errorf("path %q: %d steps, want %d", path, len(p.Steps), steps)
		}
	}
	// A list of the same length can be tolerated by element, and as a whole.
	for path, want := range map[string]string{"NTPServers[1]": `["a","x"]`, "NTPServers": `["a","x"]`} {
		tol := serialRedirect()
		tol.Path = path
		p := tolerant(t, liveBIOS("On", "Bios", "a", "x"), noon, tol)
		if len(p.Steps) != 1 || string(ToJSON(Attr(p.Steps[0].After, "NTPServers"))) != want {
			t.Errorf("path %q: %v", path, lines(p))
		}
	}
}

// A path that names nothing that is wanted is told with its line, and what is there.
func TestTolerationOfNothing(t *testing.T) {
	for _, tc := range []struct {
		address, path, warns string
		whole                bool
	}{
		{"*/bmc.bios", "Attributes.SerialRedirect", "", true},
		{"*/bmc.bios", "Attributes", "", true},
		{"*/bmc.bios", "NTPServers[1]", "", true},
		{"*/bmc.bios", "SerialRedirect", `tolerate "serial" (site.hcl:9) tolerates nothing: */bmc.bios has no SerialRedirect`, true},
		{"*/bmc.bios", "Attributes.Serial", "has no Attributes.Serial", true},
		{"*/bmc.bios", "Attributes.Serial", "", false}, // another platform may have it
		{"*/bmc.ntp", "NTP", "has no NTP", false},
		{"*/ironic.node", "nothing", "", true}, // no such resource here
	} {
		sc := testScope("gpu-001")
		sc.Whole = tc.whole
		tol := serialRedirect()
		tol.Address, tol.Path = tc.address, tc.path
		sc.Site.Tolerations = []Toleration{tol}
		ntp := kind("bmc.ntp", PhaseBMC)
		p := Build(Input{Scope: sc, Kinds: []Kind{bios, ntp}, World: Snapshot{}, Now: noon})
		var texts []string
		for _, d := range p.Diagnostics {
			if d.Fault.Code == CodeTolerationIdle {
				texts = append(texts, d.Fault.Summary+" "+d.Fault.Evidence["paths there"])
			}
		}
		if got := strings.Join(texts, "\n"); (got == "") != (tc.warns == "") || !strings.Contains(got, tc.warns) {
			t.Errorf("%s %s: %q, want %q", tc.address, tc.path, got, tc.warns)
		}
	}
}

func TestTolerationEnds(t *testing.T) {
	tol := serialRedirect()
	for now, steps := range map[time.Time]int{tol.Until.Add(-time.Second): 0, tol.Until: 1, tol.Until.Add(time.Hour): 1} {
		p := tolerant(t, liveBIOS("Off", "Uefi", "a", "b"), now, tol)
		if len(p.Steps) != steps {
			t.Errorf("at %s: %d steps, want %d", now, len(p.Steps), steps)
		}
		if warned := len(p.Diagnostics) == 1 && p.Diagnostics[0].Fault.Code == CodeTolerationExpired; warned != (steps == 1) {
			t.Errorf("at %s: %v", now, p.Diagnostics)
		}
	}
}

func TestAbsentIsNotTolerated(t *testing.T) {
	sc := testScope("gpu-001")
	sc.Site.Tolerations = []Toleration{{Name: "all", Address: "*/bmc.bios", Path: "Attributes", Until: noon.Add(time.Hour)}}
	w := Snapshot{addr(t, "lon14/gpu-001/bmc.bios"): LiveAbsent()}
	if p := Build(Input{Scope: sc, Kinds: []Kind{bios}, World: w, Now: noon}); len(p.Steps) != 1 {
		t.Errorf("%v", lines(p))
	}
	w = Snapshot{addr(t, "lon14/gpu-001/bmc.bios"): LiveValue(cty.UnknownVal(cty.DynamicPseudoType))}
	if p := Build(Input{Scope: sc, Kinds: []Kind{bios}, World: w, Now: noon}); len(p.Observed) != 0 {
		t.Errorf("an unknown value is tolerated: %v", p.Observed)
	}
}
