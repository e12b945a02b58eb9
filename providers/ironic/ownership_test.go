package ironic_test

import (
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// Every provision state, with and without an instance, read one by one and as
// a fleet.
func TestOwnership(t *testing.T) {
	type row struct {
		state             plan.ProvisionState
		owned, satisfied  bool // without an instance
		human             bool
		satisfiedInstance bool // with one; owned is always true then
	}
	rows := []row{
		{state: plan.StateEnroll}, {state: plan.StateVerifying}, {state: plan.StateManageable, satisfiedInstance: true},
		{state: plan.StateInspecting}, {state: plan.StateInspectWait}, {state: plan.StateInspectFailed},
		{state: plan.StateCleaning}, {state: plan.StateCleanWait}, {state: plan.StateCleanFailed}, {state: plan.StateCleanHold},
		{state: plan.StateAvailable, satisfied: true, satisfiedInstance: true},
		{state: plan.StateActive, owned: true, satisfied: true, satisfiedInstance: true},
		{state: plan.StateDeploying, owned: true}, {state: plan.StateWaitCallback, owned: true}, {state: plan.StateDeployHold, owned: true},
		{state: plan.StateDeployFailed, human: true}, {state: plan.StateError, human: true}, {state: plan.StateAdoptFailed},
		{state: plan.StateDeleting, owned: true}, {state: plan.StateAdopting, owned: true},
		{state: plan.StateRescuing, owned: true}, {state: plan.StateRescueWait, owned: true}, {state: plan.StateRescue, owned: true}, {state: plan.StateRescueFailed, owned: true},
		{state: plan.StateUnrescuing, owned: true}, {state: plan.StateUnrescueFailed, owned: true},
		{state: plan.StateServicing, owned: true}, {state: plan.StateServiceWait, owned: true}, {state: plan.StateServiceFailed, owned: true}, {state: plan.StateServiceHold, owned: true},
		{state: "unheard of", owned: true},
	}
	const instance = "11111111-1111-1111-1111-111111111111"
	l := newLab(t, 2*len(rows)+1)
	for n, target := range l.scope.Targets {
		if n == 2*len(rows) {
			break // the last has no node
		}
		fields := map[string]any{}
		if n%2 == 1 {
			fields["instance_uuid"] = instance
		}
		l.sim.AddNode(ironictest.Node{Name: target.Name(), State: rows[n/2].state, Fields: fields})
	}
	fleet := l.client.Ownership(t.Context(), l.scope)
	if n := l.client.Requests(); n != 2 {
		t.Errorf("%d requests for the fleet, want a list of nodes and one of ports", n)
	}
	for n, target := range l.scope.Targets {
		one := &plan.Scope{Site: l.scope.Site, Targets: []*plan.Target{target}}
		got := l.client.Ownership(t.Context(), one)[target.Name()]
		if got != fleet[target.Name()] {
			t.Errorf("alone %+v, in the fleet %+v", got, fleet[target.Name()])
		}
		if n == 2*len(rows) {
			if got != (plan.Ownership{}) {
				t.Errorf("no node: %+v", got)
			}
			break
		}
		want, instanced := rows[n/2], n%2 == 1
		satisfied := want.satisfied
		if instanced {
			satisfied = want.satisfiedInstance
		}
		if got.Node != target.Name() || got.State != want.state || got.Owned != (want.owned || instanced) || got.Satisfied != satisfied || got.NeedsHuman != want.human || (got.Reason == "") == got.Owned {
			t.Errorf("%s, instance %v: %+v", want.state, instanced, got)
		}
	}
}

func TestOwnershipUnknown(t *testing.T) {
	l := newLab(t, 2)
	l.sim.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Status: 403, Body: `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Access was denied to the following resource: baremetal:node:list\", \"debuginfo\": null}"}`})
	for device, o := range l.client.Ownership(t.Context(), l.scope) {
		if o.Unknown == nil || o.Unknown.Code != plan.CodeIronicDenied || o.Unknown.Evidence["words"] != "Access was denied to the following resource: baremetal:node:list" {
			t.Errorf("%s: %+v", device, o)
		}
	}
	if p := l.plan(); p.HasWork() || len(p.Errors()) == 0 {
		t.Errorf("a plan in the dark: %v", shown(p))
	}
}

// An owned node is left alone, and what differs is shown.
func TestOwnedNode(t *testing.T) {
	l := newLab(t, 1)
	spec := available(l.scope.Targets[0], l)
	spec.State, spec.Fields["instance_uuid"], spec.Fields["resource_class"] = plan.StateActive, "11111111-1111-1111-1111-111111111111", "other"
	spec.Fields["power_state"] = "power off"
	spec.Ports = spec.Ports[:1]
	l.sim.AddNode(spec)
	p := l.plan()
	if p.HasWork() || len(p.Observed) != 2 {
		t.Errorf("work %v, observed %+v", shown(p), p.Observed)
	}
	for _, c := range p.Checks {
		if c.Verdict == plan.CheckUnknown && c.Address.Kind == "carrier" {
			t.Errorf("the cached inventory was not judged: %+v", c)
		}
	}
}

// A node that is claimed between plan and write is not touched.
func TestClaimedMeanwhile(t *testing.T) {
	l := newLab(t, 1)
	p := l.plan()
	for _, s := range p.Steps {
		if f := l.step(s); f != nil {
			if f.Code != plan.CodeNodeOwned {
				t.Fatal(f)
			}
			if s.Address.Local() != "ironic.provision[provide]" {
				t.Errorf("stopped at %s", s.Address)
			}
			if f := l.client.Run(t.Context(), l.scope, s, nil).Fault; f == nil || f.Code != plan.CodeNodeOwned {
				t.Errorf("the runner itself: %v", f)
			}
			return
		}
		if s.Address.Local() == "check.lldp[eth1]" {
			l.sim.Set("gpu-001", "instance_uuid", "11111111-1111-1111-1111-111111111111")
		}
	}
	t.Error("the claimed node went on")
}

// A device that Ironic knows under another name must not get a second node.
func TestMACOnAnotherNode(t *testing.T) {
	for _, devices := range []int{1, 3} {
		l := newLab(t, devices)
		l.sim.AddNode(ironictest.Node{Name: "old-name", State: plan.StateActive, Ports: []ironictest.Port{{MAC: l.scope.Targets[0].Intent.Frontend[1].MAC.String()}}})
		for _, targets := range [][]*plan.Target{l.scope.Targets, l.scope.Targets[:1]} {
			o := l.client.Ownership(t.Context(), &plan.Scope{Site: l.scope.Site, Targets: targets})["gpu-001"]
			if o.Unknown == nil || o.Unknown.Code != plan.CodeIronicConflict {
				t.Errorf("ownership of a device whose MAC is on another node: %+v", o)
			}
		}
		p := l.plan()
		errors := p.Errors()
		if len(errors) == 0 || errors[0].Fault.Code != plan.CodeIronicConflict || errors[0].Device != "gpu-001" {
			t.Fatalf("diagnostics %v", p.Diagnostics)
		}
		if want := "MAC address 02:00:5e:00:01:02 of eth1 (gpu-001) is already a port of node old-name in Ironic"; errors[0].Fault.Summary != want {
			t.Errorf("%q, want %q", errors[0].Fault.Summary, want)
		}
		for _, s := range p.Steps {
			if s.Address.Device == "gpu-001" && (s.Blocked == nil || s.Address.Kind == "node") {
				t.Errorf("%s would run", s.Address)
			}
		}
	}
}

func TestMaintenanceAndMissingLink(t *testing.T) {
	l := newLab(t, 1)
	spec := available(l.scope.Targets[0], l)
	spec.State, spec.Fields["maintenance"] = plan.StateManageable, true
	spec.Ports[1].Link = nil
	l.sim.AddNode(spec)
	p := l.plan()
	if got := shown(p); len(got) != 3 || got[0] != "update ironic.port[eth1]" || got[1] != "[update ironic.maintenance: foreign]" || got[2] != "[transition ironic.provision[provide]: foreign]" {
		t.Fatalf("plan %v", got)
	}
	if f := l.step(p.Steps[0]); f != nil {
		t.Error(f)
	}
	l.sim.Set("gpu-001", "maintenance", false)
	if got := shown(l.plan()); len(got) != 2 || got[0] != "transition ironic.provision[provide]" {
		t.Errorf("then %v", got)
	}
}

// A machine whose node has another name and no ports is known by its BMC.
func TestBMCOnAnotherNode(t *testing.T) {
	for name, spec := range map[string]func(l *lab) ironictest.Node{
		"BMC": func(l *lab) ironictest.Node {
			return ironictest.Node{Name: "old-name", State: plan.StateActive, Fields: map[string]any{"driver_info": map[string]any{"redfish_address": l.scope.Targets[0].Intent.OOB.String() + "/"}}}
		},
		"letters": func(*lab) ironictest.Node { return ironictest.Node{Name: "GPU-001", State: plan.StateActive} },
		"IPMI": func(l *lab) ironictest.Node {
			return ironictest.Node{Name: "old-name", State: plan.StateActive, Fields: map[string]any{"driver_info": map[string]any{"ipmi_address": l.scope.Targets[0].Intent.OOB.String()}}}
		},
	} {
		for _, devices := range []int{1, 3} {
			l := newLab(t, devices)
			l.sim.AddNode(spec(l))
			p := l.plan()
			if errors := p.Errors(); len(errors) != 1 || errors[0].Fault.Code != plan.CodeIronicConflict || errors[0].Device != "gpu-001" {
				t.Errorf("%s, %d devices: diagnostics %v", name, devices, p.Diagnostics)
			}
			for _, s := range p.Steps {
				if s.Address.Device == "gpu-001" && s.Blocked == nil {
					t.Errorf("%s, %d devices: %s would run", name, devices, s.Address)
				}
			}
		}
	}
}

// Each device is looked for, and made, in the Ironic that manages its class; one
// that is down takes its own devices along and no others.
func TestIronicsOfOneSite(t *testing.T) {
	l := newLab(t, 2)
	other := ironictest.New(ironictest.Options{Now: l.clock.Now})
	t.Cleanup(other.Close)
	site := l.scope.Site
	site.Ironics = append(site.Ironics, other.Settings("storage", "STORAGE"))
	l.scope.Targets[0].Ironic, l.scope.Targets[1].Ironic = &site.Ironics[0], &site.Ironics[1]
	l.client = l.connect()
	for _, s := range l.plan().Steps {
		if s.Address.Kind == "node" {
			if f := l.step(s); f != nil {
				t.Fatal(f)
			}
		}
	}
	for name, sim := range map[string]*ironictest.Server{"gpu-001": l.sim, "gpu-002": other} {
		if nodes := sim.Nodes(); len(nodes) != 1 || nodes[0].Name != name {
			t.Errorf("%s: %+v", name, nodes)
		}
	}
	other.Close()
	owners := l.client.Ownership(t.Context(), l.scope)
	if o := owners["gpu-001"]; o.Unknown != nil || o.State != plan.StateEnroll {
		t.Errorf("%+v", o)
	}
	if o := owners["gpu-002"]; o.Unknown == nil || o.Unknown.Code != plan.CodeIronicUnreachable || !strings.Contains(o.Unknown.Evidence["ironic"], "storage") {
		t.Errorf("%+v", o)
	}
}

// The MAC address of a bond that is another node's portgroup is a fault with that
// node's name, before anything is made.
func TestMACOnAnotherPortgroup(t *testing.T) {
	for _, devices := range []int{1, 2} {
		for _, fresh := range []bool{true, false} {
			l := newLab(t, devices, func(target *plan.Target) { target.Intent.Ironic.Bond = &plan.Bond{Mode: "802.3ad"} })
			if !fresh {
				l.node(plan.StateEnroll, func(n *ironictest.Node) { n.Ports, n.Portgroups = nil, nil })
			}
			mac := l.scope.Targets[0].Intent.Frontend[0].MAC.String()
			l.sim.AddNode(ironictest.Node{Name: "old-name", Portgroups: []ironictest.Portgroup{{Name: "bond", MAC: mac, Mode: "802.3ad"}}})
			p := l.plan()
			want := "MAC address " + mac + " of the bond of gpu-001 is already that of a portgroup of node old-name in Ironic"
			if errs := p.Errors(); len(errs) != 1 || errs[0].Fault.Code != plan.CodeIronicConflict || errs[0].Fault.Summary != want {
				t.Errorf("%d devices, fresh %v: %v", devices, fresh, p.Diagnostics)
			}
			for _, s := range p.Steps {
				if s.Address.Device == "gpu-001" && s.Blocked == nil {
					t.Errorf("%s would run", s.Address)
				}
			}
		}
	}
}
