//go:build lab

package ironic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// TestEnrolLab takes a fake-hardware node of a real Ironic from nothing to
// available and finds nothing to do afterwards. The test plays the ramdisk. The
// node is deleted at the end.
func TestEnrolLab(t *testing.T) {
	l, at, view := realLab(t, "fake-hardware")
	i := l.scope.Targets[0].Intent
	inventory, _ := l.inventory(view)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.ramdisk(ctx, at, i.Name, inventory)
	}()
	p := l.plan()
	if faults := l.apply(p); len(faults) != 0 {
		t.Fatalf("apply: %v", faults)
	}
	cancel()
	<-done
	before := l.client.Requests()
	again := l.plan()
	if len(again.Steps) != 0 || len(again.Errors()) != 0 || len(again.Observed) != 0 {
		t.Errorf("then: %v, diagnostics %v, observed %+v", shown(again), again.Diagnostics, again.Observed)
	}
	for _, c := range again.Checks {
		if c.Verdict != plan.CheckPass {
			t.Errorf("%+v", c)
		}
	}
	t.Logf("%d steps, %d requests, %d for the plan that found nothing", len(p.Steps), l.client.Requests(), l.client.Requests()-before)
}

// caller is somebody who speaks to a real Ironic beside the client under test.
type caller struct {
	endpoint string
	token    string // "" where there is no Keystone
}

// send gives the status and the answer, 0 when there was none.
func (c caller) send(ctx context.Context, version, method, path string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.endpoint+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-OpenStack-Ironic-API-Version", version)
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("X-Auth-Token", c.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// noauth is the Ironic of the lab that asks for no token.
func noauth(t testing.TB) caller {
	t.Helper()
	endpoint := os.Getenv("ENROLL_LAB_IRONIC_URL")
	if endpoint == "" {
		t.Fatal("ENROLL_LAB_IRONIC_URL is not set: start the lab with make lab-up")
	}
	return caller{endpoint: endpoint}
}

// realLab is a scope with one device of its own in a real Ironic.
func realLab(t *testing.T, driver string) (*lab, caller, ironictest.NodeView) {
	t.Helper()
	at := noauth(t)
	l, view := realScope(t, driver, plan.IronicSettings{Endpoint: at.endpoint, EnrolProject: "proj-enrol"})
	var err error
	if l.client, err = ironic.New(l.scope.Site.Ironics, credentials{}, ironic.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.remove(at, l.name()) })
	return l, at, view
}

// realScope is the scope without a client.
func realScope(t *testing.T, driver string, settings plan.IronicSettings) (*lab, ironictest.NodeView) {
	t.Helper()
	unique := rand.Uint32()
	settings.Name, settings.Timeout, settings.InspectDeadline, settings.CleaningDeadline = "baremetal", 20*time.Second, time.Minute, time.Minute
	site := &plan.Site{Name: "lab", IronicEnrol: true, BMC: &plan.BMCSettings{}, Ironics: []plan.IronicSettings{settings}}
	target := device(site, 1)
	i := target.Intent
	i.Name = fmt.Sprintf("conf-%08x", unique)
	target.Settings.BMCPassword = credentials{}.Ref(i.Name)
	i.Ironic.Driver, i.Ironic.Interfaces = driver, map[string]string{"raid_interface": "no-raid", "network_interface": "noop", "inspect_interface": "agent"}
	i.Ironic.Bond = &plan.Bond{Mode: "802.3ad", Miimon: 100}
	for n := range i.Frontend {
		i.Frontend[n].MAC = plan.MAC{2, byte(unique >> 24), byte(unique >> 16), byte(unique >> 8), byte(unique), byte(n)}
	}
	l := &lab{t: t, patience: 500, scope: &plan.Scope{Site: site, Targets: []*plan.Target{target}}, cabling: map[string]string{}, wait: time.Sleep}
	view := ironictest.NodeView{}
	for _, nic := range i.Frontend {
		view.MACs = append(view.MACs, nic.MAC.String())
		l.cabling[nic.MAC.String()] = nic.Peer.Device + " " + nic.Peer.Port
	}
	return l, view
}

// TestDeadBMCLab: a BMC that refuses connections sends the node back to enroll,
// and the fault has Ironic's words.
func TestDeadBMCLab(t *testing.T) {
	l, _, _ := realLab(t, "redfish")
	i := l.scope.Targets[0].Intent
	i.Ironic.RedfishAddress = "http://127.0.0.1:1"
	f := l.apply(l.plan())[i.Name]
	if f == nil || f.Code != plan.CodeIronicUnexpected || !strings.Contains(f.Evidence["last_error"], "127.0.0.1") {
		t.Fatalf("%v", f)
	}
	t.Log(f)
	if strings.Contains(f.Error(), "s3cret") {
		t.Error("the fault holds the password")
	}
}

// ramdisk posts the inventory until Ironic takes it, which it does in inspect
// wait only.
func (l *lab) ramdisk(ctx context.Context, at caller, name string, inventory []byte) {
	for ctx.Err() == nil {
		time.Sleep(200 * time.Millisecond)
		status, _, err := at.send(ctx, "1.84", http.MethodPost, "/v1/continue_inspection?node_uuid="+url.QueryEscape(at.uuid(ctx, name)), flat(l.t, inventory))
		if err == nil && status == http.StatusAccepted {
			return
		}
	}
}

// remove deletes the node from whatever state the test left it in.
func (l *lab) remove(at caller, name string) {
	send := func(method, path, body string) int {
		status, _, err := at.send(context.Background(), "1.82", method, "/v1/nodes/"+name+path, []byte(body))
		if err != nil {
			l.t.Error(err)
		}
		return status
	}
	for range 50 {
		if status := send(http.MethodDelete, "", ""); status == http.StatusNoContent || status == http.StatusNotFound {
			return
		}
		send(http.MethodPut, "/states/provision", `{"target": "abort"}`)
		send(http.MethodPut, "/states/provision", `{"target": "manage"}`) // a failed node cannot be deleted
		time.Sleep(100 * time.Millisecond)
	}
	l.t.Errorf("node %s is left behind", name)
}

// uuid asks for the node's UUID; "" while there is none.
func (c caller) uuid(ctx context.Context, name string) string {
	var n struct {
		UUID string `json:"uuid"`
	}
	_, answer, _ := c.send(ctx, "1.82", http.MethodGet, "/v1/nodes/"+name+"?fields=uuid", nil)
	_ = json.Unmarshal(answer, &n) // no node yet
	return n.UUID
}

// flat is what the ramdisk posts: the plugin data stands beside the inventory,
// which must have all its parts.
func flat(t testing.TB, stored []byte) []byte {
	t.Helper()
	var data struct {
		Inventory map[string]any `json:"inventory"`
		Plugin    map[string]any `json:"plugin_data"`
	}
	if err := json.Unmarshal(stored, &data); err != nil {
		t.Error(err)
	}
	for k, v := range map[string]any{
		"cpu": map[string]any{"count": 192, "architecture": "x86_64"}, "memory": map[string]any{"physical_mb": 1024, "total": 1 << 30},
		"disks": []any{}, "bmc_address": nil, "boot": map[string]any{"current_boot_mode": "uefi", "pxe_interface": nil}, "system_vendor": map[string]any{"manufacturer": "Example"},
		"hostname": "localhost",
	} {
		data.Inventory[k] = v
	}
	data.Plugin["inventory"] = data.Inventory
	data.Plugin["configuration"] = map[string]any{"collectors": []any{"default"}, "managers": []any{}}
	out, err := json.Marshal(data.Plugin)
	if err != nil {
		t.Error(err)
	}
	return out
}
