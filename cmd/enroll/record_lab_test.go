//go:build lab

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
)

// sushy-tools, which enroll's simulators were not made after, is recorded and
// served: the plan for its settings is the same.
func TestRecordLab(t *testing.T) {
	l := openLab(t)
	const device = "gpu-002"
	file := filepath.Join(t.TempDir(), "sushy.json")
	l.enroll(t, exitDone, "record", "bmc", device, "--out", file)
	raw, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	rec, err := recording.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Family != "generic" || rec.Stopped != "" || rec.HasSessions() {
		t.Errorf("family %s, stopped %q, sessions %t", rec.Family, rec.Stopped, rec.HasSessions())
	}

	dir := t.TempDir()
	embedded, err := lab.Start(lab.Options{Dir: dir, Devices: 1, Seed: 1, Now: time.Now, Replay: rec})
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	if code, out, errOut := invoke(t, embedded, dir, "apply", "gpu-001", "--target", "dhcp.*", "--auto-approve"); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	code, out, errOut := invoke(t, embedded, dir, "plan", "gpu-001", "--target", "bmc.*", "--format", "json")
	if code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	want := bmcRows(t, l.enroll(t, exitDone, "plan", device, "--target", "bmc.*", "--format", "json"))
	// The sites want different time servers; what the BMC lacks is the same.
	got := bmcRows(t, out)
	for kind, rule := range want {
		if rule == "unsupported" && got[kind] != rule {
			t.Errorf("%s is %q of the recording, and %q of the original", kind, got[kind], rule)
		}
	}
	if want["boot_order"] != "unsupported" || want["hostname"] != "unsupported" {
		t.Errorf("the original is another one: %v", want)
	}
}

// bmcRows is what a plan says of each setting of a BMC.
func bmcRows(t *testing.T, text string) map[string]string {
	t.Helper()
	var p struct {
		Steps []struct {
			Address, Action string
			Before          any
		}
		Observed []struct{ Address, Rule string }
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out := map[string]string{}
	for _, s := range p.Steps {
		out[filepath.Ext(s.Address)[1:]] = s.Action
	}
	for _, o := range p.Observed {
		out[filepath.Ext(o.Address)[1:]] = o.Rule
	}
	return out
}
