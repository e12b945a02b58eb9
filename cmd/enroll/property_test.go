package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// drift is a difference that a person makes, and the step that mends it.
type drift struct {
	kind  string // SYSTEM.KIND of the step
	does  func(*lab.Lab)
	there func(*lab.Lab) bool
}

func drifts() []drift {
	const device, entry = "gpu-001", "/etc/dnsmasq.d/enroll-hosts/gpu-001-bmc"
	return []drift{
		{"bmc.hostname", func(l *lab.Lab) { l.BMCOf(device).SetHostname("by-hand") }, func(l *lab.Lab) bool { return l.BMCOf(device).Hostname() == "by-hand" }},
		{"bmc.ntp", func(l *lab.Lab) { l.BMCOf(device).SetNTP(true, "time.example.com") }, func(l *lab.Lab) bool {
			_, servers := l.BMCOf(device).NTP()
			return slices.Equal(servers, []string{"time.example.com"})
		}},
		{"bmc.bios", func(l *lab.Lab) { l.BMCOf(device).SetBIOS("SriovGlobalEnable", "Disabled") }, func(l *lab.Lab) bool { return l.BMCOf(device).BIOS("SriovGlobalEnable") == "Disabled" }},
		{"dhcp.reservation", func(l *lab.Lab) {
			content, _ := l.DHCP.ReadFile(entry)
			l.DHCP.PutFile(entry, strings.ReplaceAll(content, "198.18.0.2", "198.18.0.77"), 0o644)
		}, func(l *lab.Lab) bool {
			content, _ := l.DHCP.ReadFile(entry)
			return strings.Contains(content, "198.18.0.77")
		}},
		{"netbox.status", func(l *lab.Lab) { l.NetBox.SetStatus(device, "staged") }, func(l *lab.Lab) bool {
			d, _ := l.NetBox.Device(device)
			return d.Status == "staged"
		}},
		{"netbox.tag", func(l *lab.Lab) {
			l.NetBox.Update(device, func(d *netboxtest.Device) { d.Tags = nil })
		}, func(l *lab.Lab) bool {
			d, _ := l.NetBox.Device(device)
			return !slices.Contains(d.Tags, "ironic")
		}},
		{"ironic.power", func(l *lab.Lab) { l.Ironic.Set(device, "power_state", "power off") }, func(l *lab.Lab) bool {
			n, _ := l.Ironic.Node(device)
			return n.PowerState == "power off"
		}},
	}
}

// Whatever differs and whatever is aimed at: apply mends exactly what its plan has
// a step for, a narrowed plan is a part of the whole one, the whole one then mends
// the rest, and the plan after it is clean.
func TestAppliedIsWhatWasPlanned(t *testing.T) {
	e := newEstate(t, 1, families()[0])
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	clean := e.world()
	all := drifts()
	some := rapid.SliceOfNDistinct(rapid.IntRange(0, len(all)-1), 1, len(all), rapid.ID[int])
	for seed := range 5 {
		made, aimed := some.Example(seed), some.Example(seed+1000)
		for _, i := range made {
			all[i].does(e.lab)
		}
		whole := filepath.Join(e.dir, "whole.plan")
		narrow := filepath.Join(e.dir, "narrow.plan")
		args := []string{"plan", "gpu-001", "--out", narrow}
		for _, i := range aimed {
			args = append(args, "--target", "kind:"+all[i].kind)
		}
		_, _ = os.Remove(whole), os.Remove(narrow) // of the case before
		if r := e.run("plan", "gpu-001", "--out", whole); r.code != exitDone {
			t.Fatalf("case %d: exit %d\n%s", seed, r.code, r.text)
		}
		r := e.run(args...)
		if r.code != exitDone {
			t.Fatalf("case %d: exit %d\n%s", seed, r.code, r.text)
		}
		steps := stepsOf(t, narrow)
		for kind := range steps {
			if !stepsOf(t, whole)[kind] {
				t.Errorf("case %d: the narrowed plan has %s, which the whole one has not", seed, kind)
			}
		}
		if len(steps) > 0 {
			if r = e.apply(narrow); r.code != exitDone {
				t.Fatalf("case %d: exit %d\n%s", seed, r.code, r.text)
			}
		}
		for i, d := range all {
			if there := d.there(e.lab); there != (slices.Contains(made, i) && !steps[d.kind]) {
				t.Errorf("case %d: %s is there: %v; made %v, the plan has steps for %v", seed, d.kind, there, made, steps)
			}
		}
		last := e.apply("gpu-001")
		if last.code != exitDone {
			t.Fatalf("case %d: exit %d\n%s", seed, last.code, last.text)
		}
		if d := differences(clean, e.world()); d != "" {
			t.Errorf("case %d: the world is another one:\n%s", seed, d)
		}
		if r := e.run("plan", "gpu-001", "--detailed-exitcode"); r.code != exitDone {
			t.Errorf("case %d: the plan after it: exit %d\n%s", seed, r.code, r.text)
		}
		if s := e.secrets(r.text + last.text); s != "" {
			t.Errorf("case %d: %s", seed, s)
		}
	}
	for _, text := range filesOf(t, e.dir) {
		if s := e.secrets(text); s != "" {
			name, _, _ := strings.Cut(text, "\n")
			t.Errorf("%s: %s", name, s)
		}
	}
}

// stepsOf are the kinds of the steps of a plan file that may run.
func stepsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Steps []struct {
			Address   string `json:"address"`
			BlockedBy any    `json:"blocked_by"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, s := range p.Steps {
		kind := s.Address[strings.LastIndex(s.Address, "/")+1:]
		kind, _, _ = strings.Cut(kind, "[")
		if s.BlockedBy == nil {
			out[kind] = true
		}
	}
	return out
}

// One device at once or fifty: the same world.
func TestOrderDoesNotMatter(t *testing.T) {
	var worlds []string
	for _, atOnce := range []string{"1", "50"} {
		e := newEstate(t, 5, families()...)
		if r := e.apply("--all", "--devices-at-once", atOnce); r.code != exitDone {
			t.Fatalf("%s at once: exit %d\n%s", atOnce, r.code, r.text)
		}
		worlds = append(worlds, e.world())
	}
	if d := differences(worlds[0], worlds[1]); d != "" {
		t.Errorf("other worlds:\n%s", d)
	}
}
