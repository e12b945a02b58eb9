package ironic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// legalStates are the states in which the table is held against an Ironic.
func legalStates() []plan.ProvisionState {
	return []plan.ProvisionState{
		plan.StateEnroll, plan.StateManageable, plan.StateAvailable, plan.StateInspectWait, plan.StateInspectFailed, plan.StateCleanWait, plan.StateCleanFailed,
	}
}

// rival is a client beside enroll's own: it sends what a test says.
type rival struct {
	endpoint string
	t        testing.TB
}

// send gives the status and the decoded answer; version 0 sends the newest.
func (r rival) send(version int, method, path string, body any) (int, map[string]any) {
	r.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.t.Context()), method, r.endpoint+path, bytes.NewReader(raw))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-OpenStack-Ironic-API-Version", "latest")
	if version != 0 {
		req.Header.Set("X-OpenStack-Ironic-API-Version", fmt.Sprintf("1.%d", version))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := map[string]any{}
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		r.t.Fatal(err)
	}
	if json.Unmarshal(text.Bytes(), &out) != nil || resp.StatusCode >= 400 {
		out["words"] = words(text.Bytes())
	}
	return resp.StatusCode, out
}

// unlocked sends again while the lock is held: Ironic takes it for a moment now
// and then, also in states in which nothing goes on.
func (r rival) unlocked(version int, method, path string, body any) (int, map[string]any) {
	r.t.Helper()
	for n := 0; ; n++ {
		status, answer := r.send(version, method, path, body)
		if text, _ := answer["words"].(string); n == 20 || !strings.Contains(text, "is locked by host") {
			return status, answer
		}
	}
}

// change is a request that really changes a field of a node or port: nth makes the
// value another one each time.
func (f field) change(node, port string, nth int) (method, path string, body any) {
	patch := func(path string, value any) []map[string]any {
		return []map[string]any{{"op": "add", "path": path, "value": value}}
	}
	at := "/v1/nodes/" + node
	switch f {
	case fieldDriverInfo:
		return http.MethodPatch, at, patch("/driver_info/note", nth)
	case fieldInterface:
		return http.MethodPatch, at, patch("/raid_interface", []string{"fake", "agent"}[nth%2])
	case fieldTraits:
		return http.MethodPut, fmt.Sprintf("%s/traits/CUSTOM_N%d", at, nth), nil
	case fieldRAID:
		return http.MethodPut, at + "/states/raid", map[string]any{"logical_disks": []any{map[string]any{"size_gb": 100 + nth, "raid_level": "1"}}}
	case fieldDriver:
		return http.MethodPatch, at + "?reset_interfaces=True", patch("/driver", "redfish")
	case fieldLink:
		return http.MethodPatch, "/v1/ports/" + port, patch("/local_link_connection", map[string]any{"switch_id": placeholderSwitchID, "port_id": fmt.Sprintf("swp%d", nth)})
	case fieldPort:
		return http.MethodPost, "/v1/ports", map[string]any{"node_uuid": node, "address": "", "pxe_enabled": false, "local_link_connection": map[string]any{"switch_id": placeholderSwitchID, "port_id": "swp1"}}
	}
	panic("no request for " + string(f))
}

// holdsAgainst sends each change in each state, and one version too early, and
// compares with the table. bring makes a node in a state, with one port.
func holdsAgainst(t *testing.T, r rival, bring func(t *testing.T, s plan.ProvisionState) (node, port string), mac func() string, version int) {
	t.Helper()
	fields := make([]field, 0, len(rules()))
	for f := range rules() {
		fields = append(fields, f)
	}
	slices.Sort(fields) // driver is not the first
	fields = append(slices.DeleteFunc(fields, func(f field) bool { return f == fieldDriver }), fieldDriver)
	for _, s := range legalStates() {
		t.Run(string(s), func(t *testing.T) {
			node, port := bring(t, s)
			for n, f := range fields {
				want := slices.Contains(rules()[f].ironic, s)
				var status int
				var answer map[string]any
				for range 5 {
					method, path, body := f.change(node, port, 2*n+1)
					if f == fieldPort {
						body.(map[string]any)["address"] = mac()
					}
					status, answer = r.unlocked(version, method, path, body)
					if _, now := r.send(82, http.MethodGet, "/v1/nodes/"+node+"?fields=provision_state", nil); now["provision_state"] == string(s) {
						break
					}
					node, port = bring(t, s) // it timed out there, and the answer is about another state
				}
				if (status < 300) != want {
					t.Errorf("%s: %d %v, and the table says %v", f, status, answer["words"], want)
				}
				if status >= 300 && status != http.StatusConflict && want == (status < 300) {
					t.Errorf("%s: refused with %d %v, want 409", f, status, answer["words"])
				}
				if legal(f, s) && !want {
					t.Errorf("%s: enroll would send what Ironic refuses", f)
				}
			}
		})
	}
	t.Run("a version too early", func(t *testing.T) {
		node, port := bring(t, plan.StateManageable)
		for n, f := range fields {
			if rules()[f].since == 1 {
				continue
			}
			method, path, body := f.change(node, port, 2*n+1)
			if f == fieldPort {
				body.(map[string]any)["address"] = mac()
			}
			if status, answer := r.send(rules()[f].since-1, method, path, body); status < 400 || status >= 500 {
				t.Errorf("%s at 1.%d: %d %v", f, rules()[f].since-1, status, answer["words"])
			} else {
				t.Logf("%s at 1.%d: %d %v", f, rules()[f].since-1, status, answer["words"])
			}
			if status, answer := r.unlocked(rules()[f].since, method, path, body); status >= 300 {
				t.Errorf("%s at 1.%d: %d %v", f, rules()[f].since, status, answer["words"])
			}
		}
	})
}

// The legality table is that of the simulator.
func TestLegality(t *testing.T) {
	sim := ironictest.New(ironictest.Options{})
	t.Cleanup(sim.Close)
	nodes := 0
	mac := func() string { nodes++; return fmt.Sprintf("02:00:00:00:%02x:%02x", nodes/256, nodes%256) }
	bring := func(t *testing.T, s plan.ProvisionState) (string, string) {
		t.Helper()
		name := fmt.Sprintf("node-%d", nodes)
		fields := map[string]any{"raid_interface": "fake"}
		switch s { //nolint:exhaustive // the others are on the way to nothing
		case plan.StateInspectWait, plan.StateInspectFailed:
			fields["target_provision_state"] = "manageable"
		case plan.StateCleanWait, plan.StateCleanFailed:
			fields["target_provision_state"] = "available"
		}
		uuid := sim.AddNode(ironictest.Node{Name: name, State: s, Fields: fields, Ports: []ironictest.Port{{MAC: mac()}}})
		_, answer := rival{sim.URL, t}.send(82, http.MethodGet, "/v1/ports?node="+uuid, nil)
		return uuid, answer["ports"].([]any)[0].(map[string]any)["uuid"].(string)
	}
	holdsAgainst(t, rival{sim.URL, t}, bring, mac, 82)
}

// The oldest version that a request may carry has all that is written.
func TestOldestVersionHasEveryField(t *testing.T) {
	for f, r := range rules() {
		if r.since > oldestMinor {
			t.Errorf("%s needs 1.%d", f, r.since)
		}
	}
}
