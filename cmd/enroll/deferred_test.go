package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// moveAway takes the address from the BMC of a host, as a lost entry on the DHCP
// server does: what is planned of it now is planned from the record alone.
func (e *estate) moveAway(device string) {
	e.t.Helper()
	name := "/etc/dnsmasq.d/enroll-hosts/" + device + "-bmc"
	content, ok := e.lab.DHCP.ReadFile(name)
	if !ok {
		e.t.Fatalf("there is no %s", name)
	}
	e.lab.DHCP.PutFile(name, strings.ReplaceAll(content, "198.18.0.2", "198.18.0.77"), 0o644)
	if !e.lab.DHCP.Restart() {
		e.t.Fatal("the DHCP server does not start")
	}
	e.lab.BMCOf(device).SetReachable(false)
}

// deferred plans a device whose BMC nobody can see yet. It gives the plan's file and
// the kinds of its steps whose value is unknown until then.
func (e *estate) deferred(file string) (kinds []string) {
	e.t.Helper()
	if r := e.run("plan", "gpu-001", "--out", file); r.code != exitDone {
		e.t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	p, err := readPlan(file)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.BeforeUnknown && s.Blocked == nil {
			kinds = append(kinds, s.Address.KindName())
		}
	}
	return kinds
}

// atBMC are the requests that changed something at a BMC.
func (e *estate) atBMC() []string {
	var out []string
	for _, r := range e.lab.Recorder.Records() {
		if r.System == "bmc" && r.Mutating {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}

// enrolledAndGone is a machine of a family with everything that a site can want of
// its BMC, enrolled, whose BMC has no address any more.
func enrolledAndGone(t *testing.T, f family) *estate {
	t.Helper()
	e := newEstateOf(t, 1, func(m *bmctest.Machine) { m.StaticIP = true }, f)
	e.furnish(world{monitored: true})
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	e.moveAway("gpu-001")
	return e
}

// Every kind that is planned before its BMC can be seen is read when it can be: what
// is right by then is not written, and no kind but those whose value differs sends
// anything.
func TestDeferredPartsAreNarrowed(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	t.Run("families", func(t *testing.T) {
		for _, f := range families() {
			t.Run(f.vendor, func(t *testing.T) {
				t.Parallel()
				kinds := narrowed(t, f)
				mu.Lock()
				defer mu.Unlock()
				for _, k := range kinds {
					seen[k] = true
				}
			})
		}
	})
	for _, kind := range []string{
		"bmc.credential", "bmc.hostname", "bmc.network", "bmc.ntp", "bmc.syslog", "bmc.virtual_media", "bmc.bios", "bmc.boot_order", "bmc.ipmi_user", "bmc.ipmi_lan", "bmc.security",
	} {
		if !seen[kind] {
			t.Errorf("no plan has a deferred %s", kind)
		}
	}
}

// narrowed gives the kinds that were deferred.
func narrowed(t *testing.T, f family) []string {
	t.Helper()
	e := enrolledAndGone(t, f)
	file := filepath.Join(e.dir, "deferred.plan")
	kinds := e.deferred(file)
	e.lab.Recorder.Reset()
	r := e.apply(file)
	if r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	for _, s := range r.report.Steps {
		// What this family does not have shows at the same moment, and is blocked.
		if s.Address.System == "bmc" && s.Action.Mutates() && s.State != plan.StepAlready && s.State != plan.StepBlocked {
			t.Errorf("%s is right and is %s", s.Address, s.State)
		}
	}
	if sent := e.atBMC(); len(sent) > 0 {
		t.Errorf("everything is right and was written: %v", sent)
	}

	// The same, and one setting was changed behind the plan's back.
	e.moveAway("gpu-001")
	again := filepath.Join(e.dir, "again.plan")
	e.deferred(again)
	e.lab.BMCOf("gpu-001").SetHostname("by-hand")
	e.lab.Recorder.Reset()
	r = e.apply(again)
	if r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	for _, s := range r.report.Steps {
		want := plan.StepAlready
		if s.Address.KindName() == "bmc.hostname" {
			want = plan.StepDone
		}
		if s.Address.System == "bmc" && s.Action.Mutates() && s.State != want && s.State != plan.StepBlocked {
			t.Errorf("%s is %s, want %s", s.Address, s.State, want)
		}
	}
	if sent := e.atBMC(); len(sent) != 1 {
		t.Errorf("one setting differs and %d requests were sent: %v", len(sent), sent)
	}
	return kinds
}

// What shows when a deferred part can be read, and the plan does not cover, stops the
// device: nothing of it is written, it is said why, and a new plan is proposed.
func TestBeyondWhatWasDeferred(t *testing.T) {
	const device = "gpu-001"
	for _, c := range []struct {
		name   string
		family int
		then   func(*estate)
		step   string // that fails
		code   plan.Code
	}{
		{"somebody else's BIOS settings wait for a boot", 0, func(e *estate) {
			e.lab.BMCOf(device).SetBIOS("SriovGlobalEnable", "Disabled")
			e.lab.BMCOf(device).StageJob(map[string]any{"LogicalProc": "Disabled"})
		}, "bmc.bios", plan.CodePlanStale},
		{"another password", 1, func(e *estate) {
			e.lab.BMCOf(device).Change(func(m *bmctest.Machine) { m.Password = "set-by-somebody-else" })
		}, "bmc.credential", plan.CodeBMCCredential},
		{"another machine", 3, func(e *estate) {
			e.lab.BMCOf(device).Change(func(m *bmctest.Machine) { m.Serial = "ANOTHER1" })
		}, "bmc.credential", plan.CodeBMCIdentity},
		{"a claim", 4, func(e *estate) {
			e.lab.BMCOf(device).SetHostname("by-hand")
			e.lab.Ironic.Set(device, "instance_uuid", "5f1ff2a1-7f0e-4f0c-9e53-6a6f6a3f6f01")
			e.lab.Ironic.Set(device, "provision_state", "active")
		}, "bmc.hostname", plan.CodeNodeOwned},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := enrolledAndGone(t, families()[c.family])
			file := filepath.Join(e.dir, "deferred.plan")
			e.deferred(file)
			e.lab.Recorder.Reset()
			did := false
			e.lab.Recorder.Before(func(r exchange.Record) {
				if r.System == "bmc" && !did { // it can be read now
					did = true
					c.then(e)
				}
			})
			r := e.apply(file)
			if !did || r.code == exitDone {
				t.Fatalf("exit %d, it happened: %v\n%s", r.code, did, r.text)
			}
			failed := ""
			for _, s := range r.report.Steps {
				switch {
				case s.State == plan.StepFailed:
					failed += fmt.Sprintf("%s %s ", s.Address.KindName(), s.Fault.Code)
				case s.State == plan.StepDone && s.Address.System == "bmc" && s.Action.Mutates():
					t.Errorf("%s was written", s.Address)
				}
			}
			if want := fmt.Sprintf("%s %s ", c.step, c.code); failed != want {
				t.Errorf("failed: %s, want %s\n%s", failed, want, r.text)
			}
			if sent := e.atBMC(); len(sent) > 0 {
				t.Errorf("sent: %v", sent)
			}
			if !strings.Contains(r.text, "Next    enroll plan "+device) {
				t.Errorf("no new plan is proposed:\n%s", r.text)
			}
		})
	}
}

// A machine none of whose boot options is surely that of its provisioning NIC: that
// shows when the BMC can be asked, and nothing is switched off, nothing is booted.
func TestADeferredBootOrderWithoutItsNIC(t *testing.T) {
	e := newEstateOf(t, 1, func(m *bmctest.Machine) {
		for i := range m.NICs {
			m.NICs[i].MAC = plan.MAC{2, 0, 0x5e, 0xff, 0, byte(i)}
		}
	}, families()[2])
	r := e.apply("gpu-001")
	if r.code == exitDone || !strings.Contains(r.text, string(plan.CodeBMCBootNIC)) || !strings.Contains(r.text, "Next    enroll plan gpu-001") {
		t.Errorf("exit %d\n%s", r.code, r.text)
	}
	for _, sent := range e.atBMC() {
		if strings.Contains(sent, "BootOptions") || strings.Contains(sent, "ComputerSystem.Reset") {
			t.Errorf("sent: %s", sent)
		}
	}
}

// What an inspection finds is judged when there is something to find, and a finding
// that the record does not allow stops the device before its disks are erased.
func TestWhatAnInspectionFinds(t *testing.T) {
	for name, change := range map[string]func(*estate){
		"as recorded": func(*estate) {},
		"other cables": func(e *estate) {
			nics := e.lab.Hosts[0].NICs
			nics[0].Switch, nics[0].Port, nics[1].Switch, nics[1].Port = nics[1].Switch, nics[1].Port, nics[0].Switch, nics[0].Port
		},
		"fewer GPUs than recorded": func(e *estate) {
			e.lab.NetBox.Update("gpu-001", func(d *netboxtest.Device) {
				context := map[string]any{"inspection_validation": map[string]any{"gpus": 16}}
				for k, v := range d.Context {
					context[k] = v
				}
				d.Context = context
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEstate(t, 1, families()[3])
			change(e)
			r := e.apply("gpu-001")
			erased := e.lab.Recorder.Count(func(r exchange.Record) bool {
				return r.System == "ironic" && r.Method == http.MethodPut && strings.Contains(string(r.Body), "provide")
			})
			if name == "as recorded" {
				if r.code != exitDone || erased != 1 {
					t.Errorf("exit %d, %d cleanings\n%s", r.code, erased, r.text)
				}
				return
			}
			if r.code != exitVerify || erased != 0 {
				t.Errorf("exit %d, %d cleanings\n%s", r.code, erased, r.text)
			}
			if !strings.Contains(r.text, "Next    enroll plan gpu-001") {
				t.Errorf("no new plan is proposed:\n%s", r.text)
			}
			if left := e.leaks(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
