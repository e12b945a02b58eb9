package main

import (
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
)

// What is not part of the approved plan stops the whole run before anything is
// done, not only the device that it is about.
func TestExpectRefusesTheWholeRun(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(l *lab.Lab)
		part   string
	}{
		"another value than the one that was reviewed": {func(l *lab.Lab) { l.BMCOf("gpu-001").SetNTP(true, "other.example.com") }, "demo/gpu-001/bmc.ntp: starts from another value"},
		"a step more":       {func(l *lab.Lab) { l.Ironic.Set("gpu-001", "power_state", "power off") }, "demo/gpu-001/ironic.power: is not in the approved plan"},
		"less to do":        {func(l *lab.Lab) { l.BMCOf("gpu-001").SetHostname("gpu-001") }, ""},
		"nothing in effect": {func(*lab.Lab) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, dir, file := drifted(t)
			p, err := readPlan(file)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(l)
			code, out, errOut := invoke(t, l, dir, "apply", file, "--expect", p.ContentHash)
			if tc.part == "" {
				if code != exitDone || mutating(l) == 0 {
					t.Errorf("exit %d, %d writes\n%s%s", code, mutating(l), out, errOut)
				}
				return
			}
			if code != exitStale || mutating(l) != 0 || !strings.Contains(errOut, tc.part) {
				t.Errorf("exit %d, %d writes, want %q\n%s%s", code, mutating(l), tc.part, out, errOut)
			}
			code, out, errOut = invoke(t, l, dir, "apply", "gpu-001", "--expect", p.ContentHash)
			if code != exitStale || mutating(l) != 0 || !strings.Contains(errOut, "PLAN_STALE") {
				t.Errorf("planned again: exit %d, %d writes\n%s%s", code, mutating(l), out, errOut)
			}
		})
	}
}

// The same world gives the same content, whoever plans it and when.
func TestExpectTakesAPlanMadeAgain(t *testing.T) {
	l, dir, file := drifted(t)
	p, err := readPlan(file)
	if err != nil {
		t.Fatal(err)
	}
	code, out, errOut := invoke(t, l, dir, "apply", "gpu-001", "--expect", p.ContentHash)
	if code != exitDone || !strings.Contains(out, "Approved by --expect "+p.ContentHash) {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}
