package ironic_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

// resting is a lab whose only node is in a state, as a finished enrolment leaves
// it but for what change does to it.
func resting(t *testing.T, state plan.ProvisionState, change func(l *lab, fields map[string]any)) *lab {
	t.Helper()
	l := newLab(t, 1)
	spec := available(l.scope.Targets[0], l)
	spec.State = state
	change(l, spec.Fields)
	l.sim.AddNode(spec)
	return l
}

func recorded(version string) map[string]any {
	return map[string]any{"enroll": map[string]any{"credential": map[string]any{"item": "bmc-gpu-001", "field": "password", "version": version, "written": "2026-11-01T00:00:00Z"}}}
}

// The credential is written when another version was written last, when nobody
// knows which, and when the operator asks; by the driver that the node has; and
// not again afterwards. Nothing of the password stands in the record.
func TestCredential(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(l *lab, fields map[string]any)
		writes bool
		driver string
	}{
		{"as written last", func(*lab, map[string]any) {}, false, "redfish"},
		{"another version", func(_ *lab, f map[string]any) { f["extra"] = recorded("0") }, true, "redfish"},
		{"no record, other extras", func(_ *lab, f map[string]any) { f["extra"] = map[string]any{"rack": "r1"} }, true, "redfish"},
		{"a record of another form", func(_ *lab, f map[string]any) { f["extra"] = map[string]any{"enroll": "x"} }, true, "redfish"},
		{"asked for", func(l *lab, _ map[string]any) { l.scope.Parameters.RewriteCredentials = true }, true, "redfish"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := resting(t, plan.StateManageable, c.change)
			l.clock.Advance(time.Minute)
			p := l.plan()
			if got := p.Steps[0].Address.Local() == "ironic.credential"; got != c.writes {
				t.Fatalf("plan %v", shown(p))
			}
			if !c.writes {
				return
			}
			l.sim.Set("gpu-001", "driver_info", map[string]any{"redfish_address": "https://192.0.2.1", "redfish_password": "old"})
			if f := l.step(p.Steps[0]); f != nil {
				t.Fatal(f)
			}
			n, _ := l.sim.Node("gpu-001")
			if n.DriverInfo["redfish_password"] != password || n.DriverInfo["redfish_username"] != "enroll" {
				t.Errorf("driver_info is %v", n.DriverInfo)
			}
			if raw, _ := json.Marshal(n.Extra); !strings.Contains(string(raw), `"version":"1"`) || strings.Contains(string(raw), "s3cret") || c.name == "no record, other extras" && !strings.Contains(string(raw), `"rack":"r1"`) {
				t.Errorf("extra is %s", raw)
			}
			l.scope.Parameters.RewriteCredentials = false
			if p := l.plan(); p.Steps[0].Address.Local() == "ironic.credential" {
				t.Errorf("and again: %v", shown(p))
			}
		})
	}
}

// What may drift on a node is mended in the states in which Ironic permits it, and
// a second plan finds nothing of it.
func TestConverge(t *testing.T) {
	raid := map[string]any{"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1", "controller": "software"}}}
	hint := map[string]any{"serial": "S1"}
	all := func(l *lab) {
		l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
		i := &l.scope.Targets[0].Intent.Ironic
		i.TargetRAIDConfig, i.RootDevice = raid, hint
		i.Interfaces["raid_interface"] = "agent"
	}
	want := []string{"update ironic.trait[HW_ARCH_X86_64]", "update ironic.raid_interface", "update ironic.root_device", "update ironic.raid_config"}
	for _, c := range []struct {
		state plan.ProvisionState
		steps []string
	}{
		{plan.StateManageable, want},
		{plan.StateCleanFailed, want}, // after manage
		{plan.StateCleanWait, nil},
		{plan.StateAvailable, nil},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			l := resting(t, c.state, func(l *lab, f map[string]any) {
				all(l)
				f["traits"] = []any{"CUSTOM_A"}
			})
			p := l.plan()
			var got []string
			for _, s := range shown(p) {
				if !strings.Contains(s, "provision") && !strings.Contains(s, "power") {
					got = append(got, s)
				}
			}
			if diff := cmp.Diff(c.steps, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if c.steps == nil {
				if len(p.Observed) < 3 {
					t.Errorf("what is left alone is not observed: %v", p.Observed)
				}
				return
			}
			if faults := l.apply(p); len(faults) != 0 {
				t.Fatal(faults)
			}
			n, _ := l.sim.Node("gpu-001")
			if diff := cmp.Diff([]any{"CUSTOM_A", "HW_ARCH_X86_64"}, n.Traits); diff != "" {
				t.Errorf("traits (-want +got):\n%s", diff)
			}
			if p := l.plan(); len(p.Steps) != 0 {
				t.Errorf("then %v", shown(p))
			}
		})
	}
	// A fresh node has them in the end, too.
	l := newLab(t, 1)
	all(l)
	if faults := l.apply(l.plan()); len(faults) != 0 {
		t.Fatal(faults)
	}
	if p := l.plan(); len(p.Steps) != 0 || len(p.Observed) != 0 {
		t.Errorf("then %v %v", shown(p), p.Observed)
	}
}

// The hint is changed, and taken away only where the disk is made by software.
func TestRootDeviceIsKept(t *testing.T) {
	with := func(_ *lab, f map[string]any) {
		f["properties"] = map[string]any{"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi", "root_device": map[string]any{"serial": "S1"}}
	}
	l := resting(t, plan.StateManageable, with)
	p := l.plan()
	if len(p.Observed) != 1 || !strings.Contains(p.Observed[0].Text, "only pin") || p.Observed[0].Address.Kind != "root_device" {
		t.Errorf("observed %v", p.Observed)
	}
	for _, s := range p.Steps {
		if s.Address.Kind == "root_device" {
			t.Errorf("%s %s", s.Action, s.Address)
		}
	}
	l = resting(t, plan.StateManageable, func(l *lab, f map[string]any) {
		with(l, f)
		f["raid_interface"] = "agent"
		i := &l.scope.Targets[0].Intent.Ironic
		i.Interfaces["raid_interface"] = "agent"
		i.TargetRAIDConfig = map[string]any{"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1", "controller": "software"}}}
	})
	if faults := l.apply(l.plan()); len(faults) != 0 {
		t.Fatal(faults)
	}
	if n, _ := l.sim.Node("gpu-001"); n.Properties["root_device"] != nil {
		t.Errorf("properties are %v", n.Properties)
	}
}

// The driver is switched between verification and cleaning, with the credential
// of the new one; a node that was switched is not looked at again.
func TestDriverSwitch(t *testing.T) {
	whole := "B200_EXAMPLEG2_IB_01"
	for name, c := range map[string]struct {
		site      bool
		platforms []string
		class     *string
		switches  bool
	}{
		"site":        {true, nil, nil, true},
		"platform":    {false, []string{"OTHERG1", "EXAMPLEG2"}, nil, true},
		"whole class": {false, []string{whole}, &whole, true},
		"another":     {false, []string{"OTHERG1", whole}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, func(target *plan.Target) {
				target.Intent.Manufacturer, target.Intent.Model, target.Intent.PlatformClass = "Example", "G-2", c.class
			})
			l.scope.Site.Ironics[0].SwitchToIPMI, l.scope.Site.Ironics[0].SwitchPlatforms = c.site, c.platforms
			if c.switches {
				l.switchesDriver(t)
			} else if faults := l.apply(l.plan()); len(faults) != 0 {
				t.Error(faults)
			} else if n, _ := l.sim.Node("gpu-001"); n.Driver != "redfish" {
				t.Errorf("the driver is %s", n.Driver)
			}
		})
	}
}

func (l *lab) switchesDriver(t *testing.T) {
	t.Helper()
	p := l.plan()
	at := map[string]int{}
	for n, s := range p.Steps {
		at[s.Address.Local()] = n
	}
	if at["check.lldp[eth1]"] >= at["ironic.driver"] || at["ironic.driver"] >= at["ironic.provision[provide]"] {
		t.Fatalf("plan %v", shown(p))
	}
	if faults := l.apply(p); len(faults) != 0 {
		t.Fatal(faults)
	}
	n, _ := l.sim.Node("gpu-001")
	if n.Driver != "ipmi" || n.DriverInfo["ipmi_password"] != password || n.DriverInfo["ipmi_address"] != "192.0.2.1" || n.DriverInfo["ipmi_username"] != "enroll" {
		t.Errorf("the node is %+v", n)
	}
	if p := l.plan(); len(p.Steps) != 0 || len(p.Observed) != 0 {
		t.Errorf("then %v %v", shown(p), p.Observed)
	}
}
