package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// One device of each verdict: dry first, then written, then nothing is left; a
// device whose data comes to no class does not keep the others from theirs.
func TestBackfillPlatformClass(t *testing.T) {
	l, dir := startLab(t, 4)
	kind := func(model string, gpuType any) netboxtest.Type {
		return netboxtest.Type{Manufacturer: "Lab", Model: model, CustomFields: map[string]any{"gpu_type": gpuType}}
	}
	for name, recorded := range map[string]any{"gpu-001": nil, "gpu-002": "H200_LABM1_NORDMA_01", "gpu-003": "OTHER\x1b[31m_01", "gpu-004": nil} {
		l.NetBox.Update(name, func(d *netboxtest.Device) {
			d.Type, d.CustomFields = kind("m1", "H200"), map[string]any{"platform_class": recorded}
		})
	}
	l.NetBox.Update("gpu-004", func(d *netboxtest.Device) { d.Type = kind("m2", nil) })
	writes := func() int {
		return l.Recorder.Count(func(r exchange.Record) bool { return r.Mutating })
	}
	// status code, what must be shown, how many writes there were in all.
	for _, tc := range []struct {
		args   string
		code   int
		writes int
		shows  []string
	}{
		{"", exitPartial, 0, []string{
			"+ gpu-001  set             H200_LABM1_NORDMA_01\n", "  gpu-002  kept equal      H200_LABM1_NORDMA_01\n",
			`! gpu-003  kept different  OTHER\u{1b}[31m_01 (warning: its data comes to H200_LABM1_NORDMA_01)` + "\n",
			"✗ gpu-004  unresolvable    gpu-004 has no platform class: custom field gpu_type of its device type is empty\n",
			"PLATFORM_CLASS_UNRESOLVABLE", "/dcim/device-types/", "gpu_type is filled in for 1 of 2 device types with GPUs.\n  missing: Lab m2, 1 device, http",
			"\nNothing was written; --apply records what is to be set.\nBackfill: 4 devices, 1 to set, 1 kept equal, 1 kept different, 1 unresolvable, 0 failed.\n",
		}},
		{"--device gpu-001", exitDone, 0, []string{"Backfill: 1 device, 1 to set,"}},
		{"--device gpu-001 --detailed-exitcode", exitChanges, 0, []string{"+ gpu-001"}},
		{"gpu-001 --device gpu-002", exitDone, 0, []string{"Backfill: 2 devices, 1 to set, 1 kept equal,"}},
		{"gpu-001.plan", exitUsage, 0, []string{"no plan file of that name"}},
		{"--device gpu-004", exitError, 0, []string{"1 unresolvable"}},
		{"--device gpu-404", exitError, 0, []string{"DEVICE_NOT_FOUND"}},
		{"--device gpu-001 --device gpu-404", exitPartial, 0, []string{"+ gpu-001", "DEVICE_NOT_FOUND"}},
		{"--format xml", exitUsage, 0, []string{"--format is text or json"}},
		{"--apply", exitPartial, 1, []string{"✓ gpu-001  set", "Backfill: 4 devices, 1 set, 1 kept equal, 1 kept different, 1 unresolvable, 0 failed.\n"}},
		{"--apply --device gpu-001 --device gpu-002 --device gpu-003", exitDone, 1, []string{"3 devices, 0 set, 2 kept equal, 1 kept different"}},
	} {
		code, out, errOut := invoke(t, l, dir, append([]string{"backfill", "platform-class"}, strings.Fields(tc.args)...)...)
		if code != tc.code || writes() != tc.writes {
			t.Errorf("%q: exit %d, want %d; %d writes\n%s%s", tc.args, code, tc.code, writes(), out, errOut)
		}
		for _, part := range tc.shows {
			if !strings.Contains(out+errOut, part) {
				t.Errorf("%q does not show %q:\n%s%s", tc.args, part, out, errOut)
			}
		}
		if strings.Contains(out+errOut, "\x1b") {
			t.Errorf("%q: a terminal escape came through", tc.args)
		}
	}
	if d, _ := l.NetBox.Device("gpu-001"); d.CustomFields["platform_class"] != "H200_LABM1_NORDMA_01" {
		t.Errorf("gpu-001 has %v", d.CustomFields)
	}
	if d, _ := l.NetBox.Device("gpu-003"); d.CustomFields["platform_class"] != "OTHER\x1b[31m_01" {
		t.Errorf("gpu-003 has %v", d.CustomFields)
	}
	if c := l.NetBox.Changes(); len(c) != 1 || !strings.HasPrefix(c[0].Message, "enroll backfill ") {
		t.Errorf("change log %v", c)
	}
	// Programs get the same.
	_, out, _ := invoke(t, l, dir, "backfill", "platform-class", "--format", "json")
	var got backfill
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if want := (backfillSummary{Devices: 4, KeptEqual: 2, KeptDifferent: 1, Unresolvable: 1}); got.Summary != want || len(got.Devices) != 4 || len(got.Devices[3].Faults) != 1 || len(got.Coverage) != 2 {
		t.Errorf("%+v", got)
	}
	// A correction: cleared in NetBox, then filled in by name, whatever the status
	// and the owner.
	l.NetBox.Update("gpu-003", func(d *netboxtest.Device) {
		d.CustomFields, d.Status = map[string]any{"platform_class": ""}, "offline"
	})
	if code, out, _ := invoke(t, l, dir, "backfill", "platform-class", "--device", "gpu-003", "--apply"); code != exitDone || !strings.Contains(out, "✓ gpu-003") {
		t.Errorf("exit %d\n%s", code, out)
	}
	// A write that NetBox refuses is told, and is no success.
	l.NetBox.Update("gpu-001", func(d *netboxtest.Device) { d.CustomFields = map[string]any{"platform_class": nil} })
	l.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Method: "PATCH", Status: 403, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"detail":"You do not have permission to perform this action."}`})
	if code, out, _ := invoke(t, l, dir, "backfill", "platform-class", "--device", "gpu-001", "--apply"); code != exitError || !strings.Contains(out, "PLATFORM_CLASS_RECORD_FAILED") || !strings.Contains(out, "dcim.change_device") || !strings.Contains(out, "1 failed") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
