package ironic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// refuse lets Ironic refuse one request with its own words.
func (l *lab) refuse(method, path string, status int, words string) {
	l.sim.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: method, Path: path, Status: status, Times: 1,
		Body: fmt.Sprintf(`{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"%s\", \"debuginfo\": null}"}`, words)})
}

// node puts in a finished node that a test then changes.
func (l *lab) node(state plan.ProvisionState, change func(*ironictest.Node)) {
	spec := available(l.scope.Targets[0], l)
	spec.State = state
	if change != nil {
		change(&spec)
	}
	l.sim.AddNode(spec)
}

// TestFieldBugs are mistakes that other tools made in the field with Ironic, by
// the place where they were reported. Placeholders in NetBox's records (understack
// #1615, #1481) are refused by the netbox provider, in the site file by the schema;
// a controller without volumes (LP#2151881) is Ironic's to skip, enroll names none.
func TestFieldBugs(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, l *lab){
		"baremetal-operator #101 #1112 #930: not every 409 is a lock": func(t *testing.T, l *lab) {
			for words, want := range map[string]plan.Code{
				"Node x is locked by host conductor-3, please retry after the current operation is completed.": plan.CodeIronicLocked,
				"A port with MAC address 02:00:5e:00:01:01 already exists.":                                    plan.CodeIronicConflict,
				"A node with name gpu-001 already exists.":                                                     plan.CodeIronicConflict,
				"Node x can not be updated while a state transition is in progress.":                           plan.CodeIronicRefused,
				"Node x is associated with instance y.":                                                        plan.CodeIronicRefused,
			} {
				l.refuse(http.MethodPost, "/v1/nodes", http.StatusConflict, words)
				f := l.step(l.plan().Steps[0])
				if f == nil || f.Code != want || (f.Class() == plan.ClassBusy) != (want == plan.CodeIronicLocked) {
					t.Errorf("%s: %v", words, f)
				}
			}
		},
		"baremetal-operator #2879: verifying says since when": func(t *testing.T, l *lab) {
			s := l.reach("ironic.provision[manage]")
			r := l.client.Run(t.Context(), l.scope, s, nil)
			if r = l.client.Run(t.Context(), l.scope, s, r.Memo); !strings.HasPrefix(r.Observed, "provision state verifying since 2026-11-30T09:00:") || !strings.Contains(r.Observed, "locked by localhost") {
				t.Errorf("%q", r.Observed)
			}
		},
		"baremetal-operator #780: a port of another node": func(t *testing.T, l *lab) {
			l.node(plan.StateManageable, func(n *ironictest.Node) { n.Ports = n.Ports[:1] })
			l.sim.AddNode(ironictest.Node{Name: "gpu-099", Ports: []ironictest.Port{{MAC: l.scope.Targets[0].Intent.Frontend[1].MAC.String()}}})
			p := l.plan()
			if e := p.Errors(); len(e) != 1 || e[0].Fault.Code != plan.CodeIronicConflict || !strings.Contains(e[0].Fault.Summary, "a port of node gpu-099") || p.HasWork() {
				t.Errorf("%v, %v", p.Diagnostics, shown(p))
			}
		},
		"baremetal-operator #3210: a known node without its ports": func(t *testing.T, l *lab) {
			for _, state := range []plan.ProvisionState{plan.StateEnroll, plan.StateManageable, plan.StateInspectFailed, plan.StateCleanFailed} {
				l := newLab(t, 1)
				l.node(state, func(n *ironictest.Node) { n.Ports = nil })
				if got := shown(l.plan()); !slices.Contains(got, "create ironic.port[eth0]") || !slices.Contains(got, "create ironic.port[eth1]") {
					t.Errorf("%s: %v", state, got)
				}
			}
		},
		"baremetal-operator #2576, osism, openstack.cloud: a masked password is no difference, and never written": func(t *testing.T, l *lab) {
			l.node(plan.StateManageable, nil)
			if got := shown(l.plan()); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "credential") }) {
				t.Errorf("%v", got)
			}
			l.scope.Parameters.RewriteCredentials = true
			if faults := l.apply(l.plan()); len(faults) != 0 {
				t.Fatal(faults)
			}
			if n, _ := l.sim.Node("gpu-001"); n.DriverInfo["redfish_password"] != password {
				t.Errorf("the password is %v", n.DriverInfo["redfish_password"])
			}
		},
		"baremetal-operator #3468: attempts end": func(t *testing.T, l *lab) {
			s := l.reach("ironic.provision[provide]")
			l.sim.FailCleaning("gpu-001", brokenDisk)
			f := l.step(s)
			cleans := 0
			for _, v := range l.sim.Verbs("gpu-001") {
				if v == "provide" {
					cleans++
				}
			}
			if f == nil || cleans != 3 {
				t.Errorf("%d cleanings, %v", cleans, f)
			}
			// A run that was killed in its second attempt has one left.
			l.sim.FailCleaning("gpu-001", brokenDisk)
			s = l.reach("ironic.provision[provide]")
			memo, more := plan.Memo{plan.MemoAttempt: "2"}, 0
			for range 500 {
				r := l.client.Run(t.Context(), l.scope, s, memo)
				if r.Outcome != plan.OutcomeWait {
					break
				}
				l.clock.Advance(r.After)
				memo = r.Memo
			}
			for _, v := range l.sim.Verbs("gpu-001") {
				if v == "provide" {
					more++
				}
			}
			if more-cleans != 2 {
				t.Errorf("%d more cleanings after an attempt that was spent", more-cleans)
			}
		},
		"baremetal-operator #1154: available with an instance": func(t *testing.T, l *lab) {
			l.node(plan.StateAvailable, func(n *ironictest.Node) {
				n.Fields["instance_uuid"], n.Fields["power_state"], n.Ports[1].Link = instance, "power off", nil
			})
			if o := l.client.Ownership(t.Context(), l.scope)["gpu-001"]; !o.Owned || !o.Satisfied {
				t.Errorf("%+v", o)
			}
			if p := l.plan(); p.HasWork() {
				t.Errorf("%v", shown(p))
			}
		},
		"LP#2119618: an administrator's maintenance": func(t *testing.T, l *lab) {
			l.node(plan.StateCleanFailed, func(n *ironictest.Node) {
				n.Fields["maintenance"], n.Fields["maintenance_reason"] = true, "waiting for a DIMM"
			})
			p := l.plan()
			if p.HasWork() || !strings.Contains(p.Steps[0].Blocked.Text, "waiting for a DIMM") {
				t.Errorf("%v", shown(p))
			}
		},
		"LP#2132936, osism c:b5ed3c0f: MAX stays MAX, and a target that alone differs is set": func(t *testing.T, l *lab) {
			i := &l.scope.Targets[0].Intent.Ironic
			i.Interfaces["raid_interface"] = "agent"
			i.TargetRAIDConfig = map[string]any{"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1"}}}
			l.node(plan.StateManageable, func(n *ironictest.Node) {
				n.Fields["raid_interface"], n.Fields["target_raid_config"] = "agent", map[string]any{"logical_disks": []any{map[string]any{"size_gb": 100, "raid_level": "1"}}}
			})
			p := l.plan()
			if p.Steps[0].Address.Local() != "ironic.raid_config" || !strings.Contains(string(plan.ToJSON(p.Steps[0].After)), `"size_gb":"MAX"`) {
				t.Fatalf("%v", shown(p))
			}
			if f := l.step(p.Steps[0]); f != nil {
				t.Error(f)
			}
		},
		"understack #1985: a step that timed out is named": func(t *testing.T, l *lab) {
			l.scope.Parameters.MaxAttempts = 1
			s := l.reach("ironic.provision[provide]")
			const words = "Node failed step {'interface': 'raid', 'step': 'delete_configuration'}: RAID job JID_123 at 1 %, timeout after 500 s"
			l.sim.FailCleaning("gpu-001", words)
			if f := l.step(s); f == nil || f.Evidence["last_error"] != words || f.Evidence["attempts"] != "1" {
				t.Errorf("%v %v", f, f.EvidenceLines())
			}
		},
		"understack #1988: Ironic's words about the clock are told": func(t *testing.T, l *lab) {
			// That both are on shows nowhere before: Ironic does not give its configuration away.
			const words = "Failed verify step verify_bmc_clock: the clock is set by NTP"
			l.verify = errors.New(words)
			if f := l.apply(l.plan())["gpu-001"]; f == nil || f.Code != plan.CodeIronicUnexpected || !strings.Contains(f.Summary, words) || !strings.Contains(f.Evidence["last_error"], words) {
				t.Errorf("%v", f)
			}
		},
		"osism #1929: nothing is deleted for being absent": func(t *testing.T, l *lab) {
			l.node(plan.StateManageable, nil)
			l.scope.Targets = nil // a filter that nothing passes
			if p := l.plan(); len(p.Steps) != 0 || len(l.sim.Recorder().Records()) != 0 {
				t.Errorf("%v, %d requests", shown(p), len(l.sim.Recorder().Records()))
			}
			for _, r := range ironic.AccessRules() {
				if r.Method == http.MethodDelete && r.Path != "/v1/nodes/*/maintenance" {
					t.Errorf("there is a rule for %s %s", r.Method, r.Path)
				}
			}
		},
		"understack #2063: a trait that is neither custom nor known": func(t *testing.T, l *lab) {
			l.scope.Site.Ironics[0].SchedulerTrait = "MY_TRAIT"
			if f := l.apply(l.plan())["gpu-001"]; f == nil || f.Code != plan.CodeIronicRefused || !strings.Contains(f.Summary, "^CUSTOM_[A-Z0-9_]+$") {
				t.Errorf("%v", f)
			}
		},
		"understack #1594 #1514: other traits stay": func(t *testing.T, l *lab) {
			l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
			l.node(plan.StateManageable, func(n *ironictest.Node) { n.Fields["traits"] = []any{"CUSTOM_A"} })
			if faults := l.apply(l.plan()); len(faults) != 0 {
				t.Fatal(faults)
			}
			if n, _ := l.sim.Node("gpu-001"); fmt.Sprint(n.Traits) != "[CUSTOM_A HW_ARCH_X86_64]" {
				t.Errorf("%v", n.Traits)
			}
		},
		"LP#2143675: PXE in a portgroup without standalone ports": func(t *testing.T, l *lab) {
			l.scope.Targets[0].Intent.Ironic.Bond = &plan.Bond{Mode: "802.3ad"}
			l.node(plan.StateManageable, func(n *ironictest.Node) {
				n.Ports, n.Portgroups = nil, []ironictest.Portgroup{{Name: "bond", MAC: "02:00:5e:00:01:01", Mode: "802.3ad", NoStandalone: true}}
			})
			p := l.plan()
			if got := shown(p); !slices.Contains(got, "[create ironic.port[eth0]: unsupported]") && !slices.Contains(got, "[create ironic.port[eth0]: not_supported]") {
				t.Errorf("%v", got)
			}
		},
		"LP#2127079: null where a value was expected": func(t *testing.T, l *lab) {
			l.node(plan.StateManageable, func(n *ironictest.Node) {
				for _, k := range []string{"properties", "extra", "traits", "target_raid_config", "resource_class", "power_state", "raid_interface"} {
					n.Fields[k] = nil
				}
			})
			if e := l.plan().Errors(); len(e) != 0 {
				t.Errorf("%v", e[0].Fault)
			}
		},
		"gophercloud c:364b4bcaf #2960: literals and lists of fields are the server's": func(t *testing.T, l *lab) {
			if plan.StateServiceFailed != "service failed" || plan.StateWaitCallback != "wait call-back" || plan.StateInspectWait != "inspect wait" {
				t.Error("a state is misspelt")
			}
			l.plan()
			for _, r := range l.sim.Recorder().Records() {
				if strings.Count(r.Path, "fields=") > 1 || r.Status >= 400 && r.Status != 404 {
					t.Errorf("%s: %d", r.Path, r.Status)
				}
			}
		},
		"kayobe LP#2154810: twenty registrations at once": func(t *testing.T, _ *lab) {
			l := newLab(t, 20)
			steps := map[string]*plan.Step{}
			for _, s := range l.plan().Steps {
				if s.Address.Kind == "node" {
					steps[s.Address.Device] = s
				}
			}
			var wg sync.WaitGroup
			for device, s := range steps {
				c := l.connect()
				wg.Go(func() {
					if r := c.Run(context.Background(), l.scope, s, nil); r.Outcome != plan.OutcomeDone {
						t.Errorf("%s: %v", device, r.Fault)
					}
				})
			}
			wg.Wait()
			if n := len(l.sim.Nodes()); n != 20 {
				t.Errorf("%d nodes", n)
			}
		},
		"baremetal-operator #3048: a lock that comes and goes": func(t *testing.T, l *lab) {
			p := l.plan()
			for _, s := range p.Steps {
				if s.Address.Kind != "node" {
					l.sim.Lock("gpu-001", "conductor-2", 5*time.Second)
				}
				f := l.step(s)
				for n := 0; n < 20 && f != nil && f.Class() == plan.ClassBusy; n++ {
					l.clock.Advance(time.Second)
					f = l.step(s)
				}
				if f != nil {
					t.Fatalf("%s: %v", s.Address, f)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, newLab(t, 1)) })
	}
}
