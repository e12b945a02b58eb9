package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// What a run that was killed left open is seen to by the next one also when its plan
// has nothing to do. A node that has come to its end meanwhile is left as it is.
func TestAnObligationOutlivesAllWork(t *testing.T) {
	e := newEstate(t, 1, families()[3])
	if r := e.apply("gpu-001"); r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	path := filepath.Join(e.state(), "enroll", "journal", "obligations.jsonl")
	line := `{"what":"open","plan_id":"0123456789ab","obligation":{"id":"0123456789ab/s7","address":"demo/gpu-001/ironic.provision[manage]","text":"maintenance of node gpu-001: on","memo":{"reason":"the disk is broken"}}}` + "\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	e.lab.Recorder.Reset()
	r := e.apply("gpu-001")
	if r.code != exitDone || !strings.Contains(r.text, "An earlier run left open, and this one sees to it: maintenance of node gpu-001: on") {
		t.Errorf("exit %d\n%s", r.code, r.text)
	}
	if n := e.lab.Recorder.Count(func(r exchange.Record) bool { return r.Mutating && r.System == "ironic" }); n > 0 {
		t.Errorf("%d requests that write", n)
	}
	if n, _ := e.lab.Ironic.Node("gpu-001"); n.Maintenance {
		t.Error("a node that is available was put into maintenance")
	}
	if raw, err := os.ReadFile(path); err != nil || !strings.Contains(string(raw), `"what":"closed"`) {
		t.Errorf("%v\n%s", err, raw)
	}
	if r := e.apply("gpu-001"); r.code != exitDone || strings.Contains(r.text, "left open") {
		t.Errorf("once more: exit %d\n%s", r.code, r.text)
	}

	// One that cannot be put back is told, and is no success.
	e.lab.Ironic.Set("gpu-001", "provision_state", "clean failed")
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	e.lab.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, System: "ironic", Method: "PUT", Status: 403, Body: `{"error_message":"no"}`})
	r = e.apply("gpu-001", "--target", "kind:netbox.tag")
	if r.code != exitPartial || !strings.Contains(r.text, "OBLIGATION_OPEN") || !strings.Contains(r.text, "Next    enroll apply gpu-001") {
		t.Errorf("exit %d\n%s", r.code, r.text)
	}
}
