//go:build lab

package ironic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic"
)

// The failure states of a real Ironic and their recoveries, and other people at the
// same node. Nodes are of fake hardware; the lab's ramdisk plays theirs where
// cleaning is real.

// other is a second client of the lab's Ironic: somebody else.
func (l *lab) other(method, path string, body any) (int, map[string]any) {
	l.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		l.t.Fatal(err)
	}
	status, answer, err := noauth(l.t).send(context.WithoutCancel(l.t.Context()), "1.82", method, path, raw)
	if err != nil {
		l.t.Fatal(err)
	}
	out := map[string]any{}
	_ = json.Unmarshal(answer, &out) // empty answers
	return status, out
}

// see reads the node as somebody else does.
func (l *lab) see() map[string]any {
	l.t.Helper()
	_, n := l.other(http.MethodGet, "/v1/nodes/"+l.name(), nil)
	return n
}

func (l *lab) name() string { return l.scope.Targets[0].Name() }

// until waits for a state with the lock free.
func (l *lab) until(state plan.ProvisionState) {
	l.t.Helper()
	var n map[string]any
	for range 300 {
		if n = l.see(); n["provision_state"] == string(state) && n["reservation"] == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.t.Fatalf("the node is %v, not %s: %v", n["provision_state"], state, n["last_error"])
}

// tell tells the lab's ramdisk how this node's cleaning goes.
func (l *lab) tell(cleaning string) {
	l.t.Helper()
	file := filepath.Join(os.Getenv("ENROLL_LAB_INVENTORY_DIR"), l.name()+".clean.json")
	if err := os.WriteFile(file, []byte(cleaning), 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = os.Remove(file) })
}

// patient runs a step again while somebody holds the lock, as the interpreter does.
func (l *lab) patient(s *plan.Step) (f *plan.Fault, busy int) {
	l.t.Helper()
	for range 200 {
		if f = l.step(s); f == nil || f.Code != plan.CodeIronicLocked {
			return f, busy
		}
		busy++
		time.Sleep(100 * time.Millisecond)
	}
	return f, busy
}

// walk applies a plan with patience.
func (l *lab) walk(p *plan.Plan) (*plan.Fault, int) {
	l.t.Helper()
	all := 0
	for _, s := range p.Steps {
		if s.Blocked != nil {
			continue
		}
		f, busy := l.patient(s)
		all += busy
		if f != nil {
			return f, all
		}
	}
	return nil, all
}

// booted is a device whose ramdisk is played for inspection while the test runs.
func booted(t *testing.T, change ...func(*plan.Target)) *lab {
	t.Helper()
	l, at, view := realLab(t, "fake-hardware")
	for _, c := range change {
		c(l.scope.Targets[0])
	}
	inventory, _ := l.inventory(view)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.ramdisk(ctx, at, l.name(), inventory)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return l
}

func TestInspectFailedIsRecoveredLab(t *testing.T) {
	l, _, _ := realLab(t, "fake-hardware")
	l.scope.Parameters.MaxAttempts = 1
	s := l.reachLab("ironic.provision[inspect]")
	go func() {
		l.until(plan.StateInspectWait)
		l.other(http.MethodPut, "/v1/nodes/"+l.name()+"/states/provision", map[string]any{"target": "abort"})
	}()
	f, _ := l.patient(s)
	if f == nil || f.Code != plan.CodeIronicUnexpected || !strings.Contains(f.Summary, `went to "inspect failed" after inspect instead of "manageable": Inspection was aborted by request.`) {
		t.Fatalf("%v", f)
	}
	l.until(plan.StateInspectFailed)
	p := l.plan()
	if got := shown(p); len(got) < 2 || got[0] != "transition ironic.provision[manage]" || got[1] != "transition ironic.provision[inspect]" {
		t.Fatalf("plan %v", got)
	}
	if f, _ := l.patient(p.Steps[0]); f != nil {
		t.Fatal(f)
	}
	l.until(plan.StateManageable)
}

// reachLab applies a plan's steps before the one with the address, with patience.
func (l *lab) reachLab(local string) *plan.Step {
	l.t.Helper()
	for _, s := range l.plan().Steps {
		if s.Address.Local() == local {
			return s
		}
		if f, _ := l.patient(s); f != nil {
			l.t.Fatal(f)
		}
	}
	l.t.Fatalf("the plan has no %s", local)
	return nil
}

// A clean step that fails for real leaves maintenance, the fault and its text; the
// next run clears the flag with the recovery and cleans again.
func TestCleanFailedIsRecoveredLab(t *testing.T) {
	l := booted(t, func(target *plan.Target) { target.Intent.Ironic.Interfaces["deploy_interface"] = "direct" })
	l.scope.Parameters.MaxAttempts = 1
	l.tell(`{"fail": {"erase_devices_metadata": "nvme3n1: I/O error"}}`)
	s := l.reachLab("ironic.provision[provide]")
	f, _ := l.patient(s)
	if f == nil || f.Code != plan.CodeIronicUnexpected || !strings.Contains(f.Summary, "nvme3n1: I/O error") || f.Evidence["maintenance"] != "true" {
		t.Fatalf("%v %v", f, f.EvidenceLines())
	}
	if n := l.see(); n["provision_state"] != "clean failed" || n["fault"] != "clean failure" || n["maintenance"] != true {
		t.Fatalf("the node is %v, fault %v, maintenance %v", n["provision_state"], n["fault"], n["maintenance"])
	}
	l.tell(`{}`)
	p := l.plan()
	if got := shown(p); len(got) != 3 || got[0] != "transition ironic.provision[manage]" || got[1] != "transition ironic.provision[provide]" {
		t.Fatalf("plan %v", got)
	}
	if f, _ := l.walk(p); f != nil {
		t.Fatal(f)
	}
	if n := l.see(); n["provision_state"] != "available" || n["maintenance"] != false || n["power_state"] != "power on" {
		t.Errorf("the node is %v, maintenance %v, %v", n["provision_state"], n["maintenance"], n["power_state"])
	}
	// Within one run: the first clean fails, the second one comes through.
	l.other(http.MethodPut, "/v1/nodes/"+l.name()+"/states/provision", map[string]any{"target": "manage"})
	l.until(plan.StateManageable)
	l.scope.Parameters.MaxAttempts = 3
	l.tell(`{"fail": {"erase_devices_metadata": "once"}}`)
	failed := false
	l.wait = func(d time.Duration) {
		time.Sleep(d)
		if n := l.see(); n["provision_state"] == "clean failed" && !failed {
			failed = true
			l.tell(`{}`)
		}
	}
	if f, _ := l.walk(l.plan()); f != nil || !failed {
		t.Errorf("failed %v, %v", failed, f)
	}
}

// Between us and the real Ironic stands a proxy that refuses one manage: what was
// cleared is put back, with its reason.
func TestMaintenanceIsPutBackLab(t *testing.T) {
	l := booted(t, func(target *plan.Target) { target.Intent.Ironic.Interfaces["deploy_interface"] = "direct" })
	l.scope.Parameters.MaxAttempts = 1
	l.tell(`{"fail": {"erase_devices_metadata": "nvme3n1: I/O error"}}`)
	if f, _ := l.patient(l.reachLab("ironic.provision[provide]")); f == nil {
		t.Fatal("cleaning did not fail")
	}
	reason, _ := l.see()["maintenance_reason"].(string)

	real, err := url.Parse(os.Getenv("ENROLL_LAB_IRONIC_URL"))
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(real) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/states/provision") && refused.Add(1) == 1 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error_message": "{\"faultstring\": \"no\"}"}`))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	l.scope.Site.Ironics[0].Endpoint = front.URL
	if l.client, err = ironic.New(l.scope.Site.Ironics, credentials{}, ironic.Options{}); err != nil {
		t.Fatal(err)
	}
	f, _ := l.patient(l.plan().Steps[0])
	if f == nil || f.Code != plan.CodeIronicRefused || refused.Load() != 1 {
		t.Fatalf("%v after %d", f, refused.Load())
	}
	n := l.see()
	if now, _ := n["maintenance_reason"].(string); n["maintenance"] != true || !strings.Contains(now, reason) || reason == "" || n["provision_state"] != "clean failed" {
		t.Errorf("maintenance %v, reason %q, was %q", n["maintenance"], now, reason)
	}
	l.tell(`{}`)
	if f, _ := l.walk(l.plan()); f != nil { // known as not a person's, and cleared again
		t.Error(f)
	}
}

// A MAC address of ours is a port of another node: nothing is written, and the
// fault names it.
func TestPortOfAnotherNodeLab(t *testing.T) {
	l, _, _ := realLab(t, "fake-hardware")
	mac := l.scope.Targets[0].Intent.Frontend[1].MAC.String()
	rival := "conf-rival-" + strings.ReplaceAll(mac, ":", "")
	_, n := l.other(http.MethodPost, "/v1/nodes", map[string]any{"name": rival, "driver": "fake-hardware"})
	t.Cleanup(func() { l.other(http.MethodDelete, "/v1/nodes/"+rival, nil) })
	if status, answer := l.other(http.MethodPost, "/v1/ports", map[string]any{"node_uuid": n["uuid"], "address": mac}); status != http.StatusCreated {
		t.Fatalf("%d %v", status, answer)
	}
	p := l.plan()
	if errs := p.Errors(); p.HasWork() || len(errs) != 1 || errs[0].Fault.Code != plan.CodeIronicConflict || !strings.Contains(errs[0].Fault.Summary, rival) {
		t.Errorf("%v, work %v", p.Diagnostics, shown(p))
	}
	if n := l.see(); n["uuid"] != nil {
		t.Error("a node was made")
	}
}

// The same for the MAC address of the bond, which is another node's portgroup.
func TestPortgroupOfAnotherNodeLab(t *testing.T) {
	l, _, _ := realLab(t, "fake-hardware")
	mac := l.scope.Targets[0].Intent.Frontend[0].MAC.String()
	rival := "conf-rival-" + strings.ReplaceAll(mac, ":", "")
	_, n := l.other(http.MethodPost, "/v1/nodes", map[string]any{"name": rival, "driver": "fake-hardware"})
	t.Cleanup(func() { l.other(http.MethodDelete, "/v1/nodes/"+rival, nil) })
	if status, answer := l.other(http.MethodPost, "/v1/portgroups", map[string]any{"node_uuid": n["uuid"], "address": mac}); status != http.StatusCreated {
		t.Fatalf("%d %v", status, answer)
	}
	p := l.plan()
	if errs := p.Errors(); p.HasWork() || len(errs) != 1 || errs[0].Fault.Code != plan.CodeIronicConflict || !strings.Contains(errs[0].Fault.Summary, "a portgroup of node "+rival) {
		t.Errorf("%v, work %v", p.Diagnostics, shown(p))
	}
}

// An allocation claims an available node: Ironic shows it as the instance, the node
// is owned from then on, and a difference is no work.
func TestAllocationLab(t *testing.T) {
	l, _, _ := realLab(t, "fake-hardware")
	l.scope.Parameters.SkipInspection = true
	if f, _ := l.walk(l.plan()); f != nil {
		t.Fatal(f)
	}
	_, made := l.other(http.MethodPost, "/v1/allocations", map[string]any{"resource_class": l.scope.Targets[0].Intent.Ironic.ResourceClass, "candidate_nodes": []any{l.see()["uuid"]}})
	allocation, _ := made["uuid"].(string)
	if allocation == "" {
		t.Fatal(made)
	}
	t.Cleanup(func() { l.other(http.MethodDelete, "/v1/allocations/"+allocation, nil) })
	for range 100 {
		if _, made = l.other(http.MethodGet, "/v1/allocations/"+allocation, nil); made["state"] != "allocating" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	n := l.see()
	if made["state"] != "active" || n["instance_uuid"] != allocation || n["allocation_uuid"] != allocation {
		t.Fatalf("the allocation is %v, the node's %v", made, n["allocation_uuid"])
	}
	if o := l.client.Ownership(t.Context(), l.scope)[l.name()]; !o.Owned || !strings.Contains(o.Reason, allocation) {
		t.Errorf("%+v", o)
	}
	l.other(http.MethodPut, "/v1/nodes/"+l.name()+"/states/power", map[string]any{"target": "power off"})
	l.until(plan.StateAvailable)
	if p := l.plan(); p.HasWork() {
		t.Errorf("%v", shown(p))
	}
	// Who clears the instance clears the allocation too.
	if status, answer := l.other(http.MethodPatch, "/v1/nodes/"+l.name(), []map[string]any{{"op": "remove", "path": "/instance_uuid"}}); status != http.StatusOK {
		t.Errorf("%d %v", status, answer)
	}
	if n := l.see(); n["allocation_uuid"] != nil || n["instance_uuid"] != nil {
		t.Errorf("allocation %v, instance %v", n["allocation_uuid"], n["instance_uuid"])
	}
}

// The inventory is what a ramdisk with planted faults posts: each of them is a
// verdict of its own, all are reported, and nothing is cleaned.
func TestPlantedFaultsLab(t *testing.T) {
	l, at, view := realLab(t, "fake-hardware")
	i := l.scope.Targets[0].Intent
	i.Inspection = map[string]any{"gpus": 8.0, "gpu_devices": []any{"10de:2330"}, "disks": map[string]any{"count": 2.0}, "memory": map[string]any{"total_gib": 2048.0}, "cpu": map[string]any{"architecture": "aarch64"}}
	first, second := i.Frontend[0].MAC.String(), i.Frontend[1].MAC.String()
	l.cabling[first], l.dark = "leaf-9 Ethernet1/1", map[string]bool{second: true}
	inventory, _ := l.inventory(view)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.ramdisk(ctx, at, l.name(), inventory) }()
	defer func() { cancel(); <-done }()
	if f, _ := l.patient(l.reachLab("ironic.provision[inspect]")); f != nil {
		t.Fatal(f)
	}
	p := l.plan()
	verdicts := map[string]plan.CheckVerdict{}
	for _, c := range p.Checks {
		verdicts[c.Address.Local()] = c.Verdict
	}
	for check, want := range map[string]plan.CheckVerdict{
		"check.lldp[eth0]": plan.CheckFail, "check.lldp[eth1]": plan.CheckPass, "check.inspection[carrier]": plan.CheckFail, "check.inspection[gpu_count]": plan.CheckUnknown,
		"check.inspection[disk_count]": plan.CheckFail, "check.inspection[memory_total]": plan.CheckFail, "check.inspection[cpu_architecture]": plan.CheckFail, "check.inspection[pxe_port]": plan.CheckPass,
	} {
		if verdicts[check] != want {
			t.Errorf("%s is %q, want %q", check, verdicts[check], want)
		}
	}
	if p.HasWork() {
		t.Errorf("there is work: %v", shown(p))
	}
}

// 500 nodes are one page, and planning one device among them costs no more.
func TestManyNodesLab(t *testing.T) {
	l, _, _ := realLab(t, "fake-hardware")
	const many = 500
	base := strings.Replace(l.name(), "conf-", "conf-many-", 1)
	var group sync.WaitGroup
	todo := make(chan string, many)
	for n := range many {
		todo <- fmt.Sprintf("%s-%d", base, n)
	}
	close(todo)
	var names []string
	var mu sync.Mutex
	for range 8 {
		group.Go(func() {
			for name := range todo {
				for range 50 {
					if status, _ := l.other(http.MethodPost, "/v1/nodes", map[string]any{"name": name, "driver": "fake-hardware"}); status == http.StatusCreated {
						mu.Lock()
						names = append(names, name)
						mu.Unlock()
						break
					}
				}
			}
		})
	}
	group.Wait()
	t.Cleanup(func() {
		again := make(chan string, many)
		for _, name := range names {
			again <- name
		}
		close(again)
		for range 8 {
			group.Go(func() {
				for name := range again {
					l.other(http.MethodDelete, "/v1/nodes/"+name, nil)
				}
			})
		}
		group.Wait()
	})
	if len(names) != many {
		t.Fatalf("%d nodes were made", len(names))
	}
	// Two devices: the whole site is listed.
	for n := range 2 {
		target := device(l.scope.Site, 2+n)
		target.Intent.Name = names[n]
		target.Settings.BMCPassword = credentials{}.Ref(names[n])
		l.scope.Targets = append(l.scope.Targets, target)
	}
	before, began := l.client.Requests(), time.Now()
	owners := l.client.Ownership(t.Context(), l.scope)
	for n := range 2 {
		if o := owners[names[n]]; o.State != plan.StateEnroll || o.Unknown != nil {
			t.Errorf("%s: %+v", names[n], o)
		}
	}
	if n := l.client.Requests() - before; n > 2 {
		t.Errorf("%d requests", n)
	}
	t.Logf("%d nodes listed in %s with %d requests", many, time.Since(began).Round(time.Millisecond), l.client.Requests()-before)
}

// A node of the redfish driver becomes one of ipmi, with the credential of the new
// driver and the interfaces that both can have.
func TestDriverSwitchLab(t *testing.T) {
	l, _, _ := realLab(t, "fake-hardware")
	if f, _ := l.patient(l.reachLab("ironic.provision[manage]")); f != nil {
		t.Fatal(f)
	}
	// Nobody verifies a BMC when the driver is changed: this one does not exist.
	at := "/v1/nodes/" + l.name()
	change := []map[string]any{
		{"op": "replace", "path": "/driver", "value": "redfish"}, {"op": "add", "path": "/driver_info/redfish_address", "value": "https://192.0.2.1"},
		{"op": "replace", "path": "/inspect_interface", "value": "agent"}, {"op": "replace", "path": "/raid_interface", "value": "agent"},
	}
	if status, answer := l.other(http.MethodPatch, at+"?reset_interfaces=True", change); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	l.scope.Site.Ironics[0].SwitchToIPMI = true
	l.scope.Targets[0].Intent.Ironic.Driver = "redfish"
	l.scope.Parameters.SkipInspection = true
	s := l.reachLab("ironic.driver")
	if f, _ := l.patient(s); f != nil {
		t.Fatal(f)
	}
	n := l.see()
	info, _ := n["driver_info"].(map[string]any)
	if n["driver"] != "ipmi" || n["power_interface"] != "ipmitool" || n["inspect_interface"] != "agent" || info["ipmi_address"] != "192.0.2.1" || info["ipmi_username"] != "enroll" || info["ipmi_password"] != "******" {
		t.Errorf("driver %v, power %v, inspect %v, %v", n["driver"], n["power_interface"], n["inspect_interface"], info)
	}
}
