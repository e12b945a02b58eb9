package ironic_test

import (
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// The table of access rules has every request that is sent, and no other: a
// device goes through everything there is, and each rule is used.
func TestAccessRules(t *testing.T) {
	l := newLab(t, 1, func(target *plan.Target) {
		i := &target.Intent.Ironic
		i.Bond = &plan.Bond{Mode: "802.3ad"}
		i.Interfaces["raid_interface"] = "agent"
		i.TargetRAIDConfig = map[string]any{"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1"}}}
	})
	l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
	l.scope.Site.Ironics[0].SwitchToIPMI = true
	l.scope.Parameters.MaxAttempts = 1
	s := l.reach("ironic.provision[provide]")
	l.sim.FailCleaning("gpu-001", brokenDisk)
	if f := l.step(s); f == nil {
		t.Fatal("cleaning did not fail")
	}
	l.sim.Set("gpu-001", "last_error", nil) // as the power sync does: the history is asked
	l.sim.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodPut, Path: "/v1/nodes/", Status: http.StatusBadRequest, Body: "no", Times: 1})
	if f := l.step(l.plan().Steps[0]); f == nil { // maintenance is put back
		t.Fatal("manage was not refused")
	}
	l.sim.FailCleaning("gpu-001", "")
	if faults := l.apply(l.plan()); len(faults) != 0 {
		t.Fatal(faults)
	}
	l.repairLink(t)
	l.verify = errText("refused")
	l.stray(t)
	used := map[ironic.AccessRule]bool{}
	for _, r := range l.sim.Recorder().Records() {
		at, _, _ := strings.Cut(r.Path, "?")
		found := false
		for _, rule := range ironic.AccessRules() {
			if ok, err := path.Match(rule.Path, at); err == nil && ok && rule.Method == r.Method {
				used[rule], found = true, true
			}
		}
		if !found {
			t.Errorf("no rule for %s %s", r.Method, at)
		}
	}
	for _, rule := range ironic.AccessRules() {
		if !used[rule] {
			t.Errorf("%s %s is never sent", rule.Method, rule.Path)
		}
	}
}

// repairLink adds the link that a port of another device lacks.
func (l *lab) repairLink(t *testing.T) {
	t.Helper()
	target := device(l.scope.Site, 2)
	spec := available(target, l)
	spec.State = plan.StateManageable
	spec.Ports[1].Link = nil
	l.sim.AddNode(spec)
	l.scope.Targets = []*plan.Target{target}
	for _, s := range l.plan().Steps {
		if s.Address.Kind == "port" {
			if f := l.step(s); f != nil {
				t.Fatal(f)
			}
		}
	}
}

// stray lets a node's verification fail without a last_error to quote.
func (l *lab) stray(t *testing.T) {
	t.Helper()
	l.scope.Targets = []*plan.Target{device(l.scope.Site, 3)}
	s := l.reach("ironic.provision[manage]")
	r := l.client.Run(t.Context(), l.scope, s, nil)
	for range 5 {
		l.clock.Advance(r.After)
		l.sim.Set("gpu-003", "last_error", nil)
		if r = l.client.Run(t.Context(), l.scope, s, r.Memo); r.Outcome == plan.OutcomeFailed {
			return
		}
	}
	t.Fatalf("%+v", r)
}

// A credential that lacks one rule: whatever the run asks for that needs it fails
// with a fault that names exactly the rule to add. The middleware that enforces the
// rules is played: it answers 401 in Keystone's words, as the real one does.
func TestOneAccessRuleIsMissing(t *testing.T) {
	for _, missing := range ironic.AccessRules() {
		t.Run(missing.Method+" "+missing.Path, func(t *testing.T) {
			l := newLab(t, 1, func(target *plan.Target) {
				i := &target.Intent.Ironic
				i.Bond = &plan.Bond{Mode: "802.3ad"}
				i.Interfaces["raid_interface"] = "agent"
				i.TargetRAIDConfig = map[string]any{"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1"}}}
			})
			l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
			l.scope.Site.Ironics[0].SwitchToIPMI = true
			l.scope.Parameters.ClearMaintenance = true
			if missing.Path == "/v1/ports/*" || missing.Path == "/v1/nodes/*/maintenance" {
				// A node that is there already, in maintenance and with a port that lacks its link.
				l.node(plan.StateManageable, func(n *ironictest.Node) {
					n.Ports[1].Link, n.Fields["maintenance"], n.Fields["maintenance_reason"] = nil, true, "x"
				})
			}
			l.without = func(r *http.Request) bool {
				ok, err := path.Match(missing.Path, r.URL.Path)
				return err == nil && ok && r.Method == missing.Method
			}
			var f *plan.Fault
			p := l.plan()
			if errs := p.Errors(); len(errs) > 0 {
				f = errs[0].Fault
			} else {
				f = l.apply(p)["gpu-001"]
			}
			switch missing.Method + " " + missing.Path {
			case "GET /v1/nodes/*/history", "PUT /v1/nodes/*/maintenance":
				return // asked after another fault only, which stays the one that is told
			}
			if f == nil || f.Code != plan.CodeIronicDenied || f.Evidence["access rule"] != missing.Method+" "+missing.Path || !strings.Contains(f.WayOut(), "--access-rules") {
				t.Errorf("%v, %v", f, f.EvidenceLines())
			}
		})
	}
}

// Planning costs a handful of lists, whatever the number of nodes, beside the
// inventories that the checks rest on: for 1,000 nodes at most 12.
func TestRequestBudget(t *testing.T) {
	const nodes, budget = 1000, 12
	l := fleet(t, nodes)
	p := l.plan()
	lists := l.sim.Recorder().Count(func(r exchange.Record) bool { return !strings.HasSuffix(r.Path, "/inventory") })
	inventories := len(l.sim.Recorder().Records()) - lists
	if lists > budget || inventories != nodes {
		t.Errorf("%d requests beside %d inventories; at most %d, and one for each node", lists, inventories, budget)
	}
	if len(p.Devices) != nodes || l.mutating() != 0 {
		t.Errorf("%d devices, %d writes", len(p.Devices), l.mutating())
	}
	t.Logf("%d requests beside the inventories", lists)
}

// fleet is a lab of many devices whose nodes are available.
func fleet(t testing.TB, nodes int) *lab {
	t.Helper()
	l := newLab(t, 0)
	for n := 1; n <= nodes; n++ {
		target := device(l.scope.Site, n)
		target.Intent.Name = "gpu-" + string(rune('a'+n/100)) + target.Intent.Name
		for k := range target.Intent.Frontend {
			target.Intent.Frontend[k].MAC = plan.MAC{2, 0, byte(n >> 8), byte(n), 0, byte(k + 1)}
		}
		target.Settings.BMCPassword = credentials{}.Ref(target.Intent.Name)
		l.scope.Targets = append(l.scope.Targets, target)
		l.sim.AddNode(available(target, l))
	}
	return l
}
