//go:build lab

package ironic

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// The legality table is that of the real service, at the pinned version and at the
// newest that it has.
func TestLegalityLab(t *testing.T) {
	endpoint := os.Getenv("ENROLL_LAB_IRONIC_URL")
	if endpoint == "" {
		t.Fatal("ENROLL_LAB_IRONIC_URL is not set: start the lab with make lab-up")
	}
	unique, count := rand.Uint32(), 0
	mac := func() string {
		count++
		return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", byte(unique>>16), byte(unique>>8), byte(unique), count/256, count%256)
	}
	for name, version := range map[string]int{"oldest": oldestMinor, "pinned": newestMinor, "newest": 0} {
		t.Run(name, func(t *testing.T) {
			r := rival{endpoint, t}
			holdsAgainst(t, r, func(t *testing.T, s plan.ProvisionState) (string, string) {
				t.Helper()
				return rival{endpoint, t}.bring(s, fmt.Sprintf("conf-%08x-%d", unique, count), mac())
			}, mac, version)
		})
	}
}

// bring makes a node in a state by the requests that lead there.
func (r rival) bring(s plan.ProvisionState, name, mac string) (node, port string) {
	r.t.Helper()
	must := func(status int, answer map[string]any) map[string]any {
		r.t.Helper()
		if status >= 300 {
			r.t.Fatalf("%s: %d %v", s, status, answer["words"])
		}
		return answer
	}
	node, _ = must(r.send(82, http.MethodPost, "/v1/nodes", map[string]any{
		"name": name, "driver": "fake-hardware", "raid_interface": "fake", "inspect_interface": "agent", "deploy_interface": "direct",
		"driver_info": map[string]any{"deploy_kernel": "http://127.0.0.1:1/k", "deploy_ramdisk": "http://127.0.0.1:1/r"},
	}))["uuid"].(string)
	r.t.Cleanup(func() { r.remove(node) })
	port, _ = must(r.send(82, http.MethodPost, "/v1/ports", map[string]any{"node_uuid": node, "address": mac}))["uuid"].(string)
	go1 := func(verb string, to plan.ProvisionState) {
		r.t.Helper()
		must(r.unlocked(82, http.MethodPut, "/v1/nodes/"+node+"/states/provision", map[string]any{"target": verb}))
		r.await(node, to)
	}
	if s == plan.StateEnroll {
		return node, port
	}
	go1("manage", plan.StateManageable)
	switch s { //nolint:exhaustive // those of legalStates
	case plan.StateAvailable:
		must(r.send(82, http.MethodPatch, "/v1/nodes/"+node, []map[string]any{{"op": "add", "path": "/automated_clean", "value": false}}))
		go1("provide", s)
	case plan.StateInspectWait:
		go1("inspect", s)
	case plan.StateInspectFailed:
		go1("inspect", plan.StateInspectWait)
		go1("abort", s)
	case plan.StateCleanWait:
		go1("provide", s)
	case plan.StateCleanFailed:
		// A step that nobody knows fails at once, without a ramdisk.
		must(r.unlocked(82, http.MethodPatch, "/v1/nodes/"+node, []map[string]any{{"op": "replace", "path": "/deploy_interface", "value": "fake"}}))
		must(r.unlocked(82, http.MethodPut, "/v1/nodes/"+node+"/states/provision", map[string]any{"target": "clean", "clean_steps": []any{map[string]any{"interface": "bios", "step": "nosuch"}}}))
		r.await(node, s)
	}
	return node, port
}

// await waits until a node has a state and its lock is free.
func (r rival) await(node string, s plan.ProvisionState) {
	r.t.Helper()
	var answer map[string]any
	for range 300 {
		_, answer = r.send(82, http.MethodGet, "/v1/nodes/"+node+"?fields=provision_state,reservation,last_error", nil)
		if answer["provision_state"] == string(s) && answer["reservation"] == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Fatalf("node %s did not come to %s: %v", node, s, answer)
}

// remove deletes a node from whatever state it is in.
func (r rival) remove(node string) {
	for range 100 {
		r.send(82, http.MethodPut, "/v1/nodes/"+node+"/maintenance", map[string]any{"reason": "the end of a test"})
		if status, _ := r.send(82, http.MethodDelete, "/v1/nodes/"+node, nil); status == http.StatusNoContent || status == http.StatusNotFound {
			return
		}
		r.send(82, http.MethodPut, "/v1/nodes/"+node+"/states/provision", map[string]any{"target": "abort"})
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Errorf("node %s is left behind", node)
}
