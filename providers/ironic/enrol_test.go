package ironic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// The main job: a device without a node becomes available, and then there is
// nothing left to do.
func TestEnrolFreshDevice(t *testing.T) {
	l := newLab(t, 1)
	p := l.plan()
	want := []string{
		"create ironic.node", "create ironic.port[eth0]", "create ironic.port[eth1]", "transition ironic.provision[manage]", "transition ironic.provision[inspect]",
		"verify check.inspection[carrier]", "verify check.inspection[pxe_port]", "verify check.lldp[eth0]", "verify check.lldp[eth1]", "transition ironic.provision[provide]", "update ironic.power",
	}
	if diff := cmp.Diff(want, shown(p)); diff != "" {
		t.Fatalf("plan (-want +got):\n%s\n%v", diff, p.Diagnostics)
	}
	if l.mutating() != 0 {
		t.Errorf("planning wrote %d times", l.mutating())
	}
	if faults := l.apply(p); len(faults) != 0 {
		t.Fatalf("apply: %v", faults)
	}
	n, _ := l.sim.Node("gpu-001")
	if n.ProvisionState != plan.StateAvailable || n.PowerState != "power on" || n.Reservation != "" {
		t.Errorf("the node is %+v", n)
	}
	if n.DriverInfo["redfish_username"] != "enroll" || n.DriverInfo["redfish_password"] != password || n.DriverInfo["redfish_address"] != "https://192.0.2.1" {
		t.Errorf("driver_info is %v", n.DriverInfo)
	}
	written := l.mutating()
	before := l.client.Requests()
	again := l.plan()
	if len(again.Steps) != 0 || len(again.Errors()) != 0 || len(again.Observed) != 0 {
		t.Errorf("second plan: %v, %v, %v", shown(again), again.Diagnostics, again.Observed)
	}
	for _, c := range again.Checks {
		if c.Verdict != plan.CheckPass {
			t.Errorf("second plan: %+v", c)
		}
	}
	if l.mutating() != written {
		t.Errorf("the second plan wrote")
	}
	// Ownership, node, ports, inventory.
	if n := l.client.Requests() - before; n != 4 {
		t.Errorf("the second plan took %d requests, want 4", n)
	}
}

// Planning many devices costs two node lists, two lists of ports (one when every
// device has its node) and one inventory for each node that has one.
func TestRequestsOfManyDevices(t *testing.T) {
	l := newLab(t, 40)
	for n, target := range l.scope.Targets {
		if n%2 == 0 {
			l.sim.AddNode(available(target, l))
		}
	}
	before := l.client.Requests()
	p := l.plan()
	if n := l.client.Requests() - before; n != 4+20 {
		t.Errorf("%d requests, want 24", n)
	}
	if len(p.Errors()) != 0 {
		t.Error(p.Diagnostics)
	}
}

// available is a node as a finished enrolment leaves it.
func available(target *plan.Target, l *lab) ironictest.Node {
	spec := ironictest.Node{
		Name: target.Name(), Driver: "redfish", State: plan.StateAvailable,
		Fields: map[string]any{
			"power_state": "power on", "resource_class": "gpu-large", "owner": "proj-enrol", "lessee": "proj-enrol", "network_interface": "noop", "raid_interface": "no-raid", "inspect_interface": "agent",
			"properties":  map[string]any{"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"},
			"extra":       map[string]any{"enroll": map[string]any{"credential": map[string]any{"item": "bmc-" + target.Name(), "field": "password", "version": "1", "written": "2026-11-01T00:00:00Z"}}},
			"driver_info": map[string]any{"redfish_address": "https://" + target.Intent.OOB.String(), "redfish_username": "enroll", "redfish_password": password},
		},
	}
	view := ironictest.NodeView{}
	for n, nic := range target.Intent.Frontend {
		port := ironictest.Port{MAC: nic.MAC.String(), PXEEnabled: n == 0}
		if nic.Peer != nil {
			port.Link = map[string]any{"switch_id": "00:00:00:00:00:00", "switch_info": nic.Peer.Device, "port_id": nic.Peer.Port}
		}
		spec.Ports = append(spec.Ports, port)
		view.MACs = append(view.MACs, port.MAC)
	}
	spec.Inventory, _ = l.inventory(view)
	return spec
}

func TestEnrolTwoDevicesAndBond(t *testing.T) {
	l := newLab(t, 2, func(target *plan.Target) {
		target.Intent.Ironic.Bond = &plan.Bond{Mode: "802.3ad", Miimon: 100, XmitHashPolicy: "layer3+4"}
		for n := range target.Intent.Frontend {
			target.Intent.Frontend[n].Peer.LAG = "bond7"
		}
	})
	p := l.plan()
	if faults := l.apply(p); len(faults) != 0 {
		t.Fatalf("apply: %v", faults)
	}
	again := l.plan()
	if len(again.Steps) != 0 || len(again.Observed) != 0 {
		t.Errorf("second plan: %v %v", shown(again), again.Observed)
	}
	for _, s := range p.Steps {
		if s.Address.Local() == "ironic.port[eth0]" && plan.Text(plan.Attr(s.After, "local_link_connection"), "port_id") != "bond7" {
			t.Errorf("the link of a LAG is %s", plan.ToJSON(s.After))
		}
	}
}

// A wrong cable is found after the inspection, and nothing is erased.
func TestWrongCable(t *testing.T) {
	l := newLab(t, 1)
	mac := l.scope.Targets[0].Intent.Frontend[1].MAC.String()
	l.cabling[mac] = "leaf-9 Ethernet1/9"
	f := l.apply(l.plan())["gpu-001"]
	if f == nil || f.Code != plan.CodeInspectionMismatch || !strings.Contains(f.Summary, "expected leaf-2 Ethernet1/1, observed leaf-9 Ethernet1/9") {
		t.Fatalf("apply: %v", f)
	}
	// The next plan judges the evidence at hand and keeps cleaning from running.
	p := l.plan()
	if diff := cmp.Diff([]string{"[transition ironic.provision[provide]: device_failed]"}, shown(p)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if len(p.FailedChecks()) != 1 || p.HasWork() || len(p.Errors()) != 0 {
		t.Errorf("checks %v, diagnostics %v", p.Checks, p.Diagnostics)
	}
	// NetBox is corrected: the inventory at hand is used again, without a reboot.
	l.scope.Targets[0].Intent.Frontend[1].Peer = &plan.Peer{Device: "leaf-9", Port: "Ethernet1/9"}
	p = l.plan()
	if diff := cmp.Diff([]string{"transition ironic.provision[provide]", "update ironic.power"}, shown(p)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if faults := l.apply(p); len(faults) != 0 {
		t.Errorf("apply: %v", faults)
	}
}

func TestEvidenceThatIsMissing(t *testing.T) {
	cases := []struct {
		name   string
		change func(l *lab, mac string)
		want   string // of the fault, "" for none
	}{
		{"no carrier", func(l *lab, mac string) { l.dark[mac] = true }, "check.inspection[carrier]: expected link on eth0, eth1, observed link on eth1; no link on eth0"},
		{"carrier not reported", func(l *lab, mac string) { l.unreported[mac] = true }, ""},
		{"no LLDP", func(l *lab, mac string) { l.silent[mac] = true }, "check.lldp[eth0] is not proven"},
		{"no LLDP, excused", func(l *lab, mac string) {
			l.silent[mac] = true
			l.scope.Targets[0].Intent.Ironic.SkipCableVerification = true
		}, ""},
		{"BMC refuses the password", func(l *lab, _ string) { l.verify = errText("HTTP 401") }, `went to "enroll" after manage instead of "manageable": Failed to get power state`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1)
			c.change(l, l.scope.Targets[0].Intent.Frontend[0].MAC.String())
			f := l.apply(l.plan())["gpu-001"]
			switch {
			case c.want == "" && f != nil:
				t.Error(f)
			case c.want != "" && (f == nil || !strings.Contains(f.Error(), c.want)):
				t.Errorf("fault %v, want %q", f, c.want)
			}
		})
	}
}

type errText string

func (e errText) Error() string { return string(e) }

// What a plan says about a node in each state that is not owned.
func TestPlanByState(t *testing.T) {
	clean := []string{"[transition ironic.provision[manage]: not_supported]", "[transition ironic.provision[provide]: not_supported]"}
	verifies := []string{"verify check.inspection[carrier]", "verify check.inspection[pxe_port]", "verify check.lldp[eth0]", "verify check.lldp[eth1]"}
	all := func(parts ...[]string) (out []string) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	end := []string{"transition ironic.provision[provide]", "update ironic.power"}
	cases := []struct {
		state     plan.ProvisionState
		inventory bool
		want      []string
		fault     plan.Code
	}{
		{plan.StateEnroll, false, all([]string{"transition ironic.provision[manage]", "transition ironic.provision[inspect]"}, verifies, end), ""},
		{plan.StateVerifying, false, all([]string{"wait ironic.provision[manage]", "transition ironic.provision[inspect]"}, verifies, end), ""},
		{plan.StateManageable, false, all([]string{"transition ironic.provision[inspect]"}, verifies, end), ""},
		{plan.StateManageable, true, end, ""},
		{plan.StateInspecting, true, all([]string{"wait ironic.provision[inspect]"}, verifies, end), ""},
		{plan.StateInspectWait, false, all([]string{"wait ironic.provision[inspect]"}, verifies, end), ""},
		{plan.StateInspectFailed, true, all([]string{"transition ironic.provision[manage]", "transition ironic.provision[inspect]"}, verifies, end), ""},
		{plan.StateCleaning, true, []string{"wait ironic.provision[provide]", "update ironic.power"}, ""},
		{plan.StateCleanWait, true, []string{"wait ironic.provision[provide]", "update ironic.power"}, ""},
		{plan.StateCleanFailed, true, all([]string{"transition ironic.provision[manage]"}, end), ""},
		{plan.StateCleanHold, true, clean, ""},
		{plan.StateAvailable, true, nil, ""},
		{plan.StateAvailable, false, nil, ""},
		{plan.StateDeployFailed, true, nil, plan.CodeIronicNeedsHuman},
		{plan.StateError, true, nil, plan.CodeIronicNeedsHuman},
		{plan.StateAdoptFailed, true, nil, plan.CodeIronicNeedsHuman},
		{plan.StateDeploying, true, nil, plan.CodeNodeOwned},
		{plan.StateRescue, true, nil, plan.CodeNodeOwned},
		{"a state of tomorrow", true, nil, plan.CodeNodeOwned},
	}
	for _, c := range cases {
		t.Run(string(c.state), func(t *testing.T) {
			l := newLab(t, 1)
			spec := available(l.scope.Targets[0], l)
			spec.State = c.state
			if !c.inventory {
				spec.Inventory = nil
			}
			l.sim.AddNode(spec)
			if c.state == plan.StateInspecting || c.state == plan.StateInspectFailed {
				l.sim.Set("gpu-001", "inspection_finished_at", nil) // an old inventory, and a later inspection
			}
			p := l.plan()
			if c.fault == "" && len(p.Errors()) != 0 {
				t.Errorf("diagnostics %v", p.Diagnostics[0].Fault)
			}
			if c.fault != "" {
				if len(p.Errors()) == 0 || p.Errors()[0].Fault.Code != c.fault {
					t.Errorf("diagnostics %v, want %s", p.Diagnostics, c.fault)
				}
				if p.HasWork() {
					t.Errorf("there is work: %v", shown(p))
				}
				return
			}
			if diff := cmp.Diff(c.want, shown(p)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if len(p.Observed) != 0 {
				t.Errorf("observed %+v", p.Observed)
			}
		})
	}
}

// A run that was killed during any transition is taken up where the node is.
func TestResumeInTransit(t *testing.T) {
	for _, stop := range []string{"ironic.node", "ironic.port[eth0]", "ironic.provision[manage]", "ironic.provision[inspect]", "ironic.provision[provide]", "ironic.power"} {
		t.Run(stop, func(t *testing.T) {
			l := newLab(t, 1)
			for _, s := range l.plan().Steps {
				if s.Address.Local() == stop {
					l.client.Run(t.Context(), l.scope, s, nil) // the first exchange, then the end
					l.clock.Advance(20 * time.Millisecond)
					break
				}
				if f := l.step(s); f != nil {
					t.Fatal(f)
				}
			}
			l.client = l.connect()
			if faults := l.apply(l.plan()); len(faults) != 0 {
				t.Fatalf("apply: %v", faults)
			}
			if n, _ := l.sim.Node("gpu-001"); n.ProvisionState != plan.StateAvailable || n.PowerState != "power on" {
				t.Errorf("the node is %+v", n)
			}
			if p := l.plan(); len(p.Steps) != 0 {
				t.Errorf("then: %v", shown(p))
			}
		})
	}
}

// After an inspection that failed, what an earlier one left proves nothing: the
// node is inspected again.
func TestOldInventoryAfterFailedInspection(t *testing.T) {
	l := newLab(t, 1)
	spec := available(l.scope.Targets[0], l)
	spec.State = plan.StateInspectFailed
	l.sim.AddNode(spec)
	l.sim.Set("gpu-001", "inspection_finished_at", nil)
	mac := l.scope.Targets[0].Intent.Frontend[0].MAC.String()
	l.cabling[mac] = "leaf-9 Ethernet1/9" // recabled since
	f := l.apply(l.plan())["gpu-001"]
	if f == nil || f.Code != plan.CodeInspectionMismatch {
		t.Errorf("%v: the old inventory was believed", f)
	}
}
