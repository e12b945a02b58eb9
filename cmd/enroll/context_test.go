package main

import (
	"strings"
	"testing"
)

// What is wrong with a device's config context stops the device, once for each
// place; what only nobody reads is a warning.
func TestConfigContextIsChecked(t *testing.T) {
	l, dir := startLab(t, 1)
	d, _ := l.NetBox.Device("gpu-001")
	settings := d.Context["ironic_settings"].(map[string]any)
	settings["skip_cable_verifcation"] = true
	settings["cpu_arch"] = 64
	l.NetBox.SetContext("gpu-001", d.Context)
	code, out, _ := invoke(t, l, dir, "plan", "gpu-001")
	if code != exitError {
		t.Errorf("exit %d", code)
	}
	for _, part := range []string{"NETBOX_INTENT_INVALID", "ironic_settings.cpu_arch", "ironic_settings.skip_cable_verifcation", "skip_cable_verification"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in:\n%s", part, out)
		}
	}
	if n := strings.Count(out, "path: ironic_settings.cpu_arch"); n != 1 {
		t.Errorf("the wrong type is reported %d times:\n%s", n, out)
	}
}
