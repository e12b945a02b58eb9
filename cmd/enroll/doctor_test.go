package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/bmc"
)

// Locks are shown with their holder, and broken only by who says so.
func TestDoctorBreaksLocks(t *testing.T) {
	l, dir := startLab(t, 1)
	want := func(code int, words string, args ...string) {
		t.Helper()
		got, out, errOut := invoke(t, l, dir, append([]string{"doctor"}, args...)...)
		if got != code || !strings.Contains(out+errOut, words) {
			t.Errorf("doctor %s: exit %d, want %d with %q:\n%s%s", strings.Join(args, " "), got, code, words, out, errOut)
		}
	}
	held := func() bool { return slices.Contains(l.DHCP.Files(), ".enroll-lock") }
	l.DHCP.PutOld(".enroll-lock", `{"owner":"anna","host":"ops1","pid":7,"since":"2026-01-05T08:00:00Z","lease":"5m0s","token":"aa"}`+"\n", time.Now().Add(-time.Minute))
	want(exitDone, "held by anna@ops1")
	want(exitUsage, "Held by anna@ops1 (process 7", "--break-dhcp-lock")
	if !held() {
		t.Error("the lock is gone, and nobody was asked")
	}
	want(exitDone, "is broken", "--break-dhcp-lock", "--yes")
	if held() {
		t.Error("the lock is still there")
	}
	want(exitDone, "Nobody holds the lock", "--break-dhcp-lock", "--yes")

	locks, err := apply.LockDevices(filepath.Join(dir, "state", "enroll", "locks"), "demo", []string{"gpu-001"}, apply.Holder{User: "anna", Host: "ops1", PID: 7, PlanID: "p1", Started: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Release() }()
	want(exitDone, "Lock on demo/gpu-001; held by anna on ops1, process 7")
	want(exitDone, "it hangs, with no sign of life for 1h0m")
	locks.Alive(time.Now())
	want(exitDone, "; last sign of life ")
	want(exitUsage, "Held by anna on ops1", "--break-lock", "gpu-001")
	if f := locks.Lost("gpu-001"); f != nil {
		t.Errorf("the lock was broken, and nobody was asked: %v", f)
	}
	want(exitDone, "is broken", "--break-lock", "gpu-001", "--yes")
	if locks.Lost("gpu-001") == nil {
		t.Error("the lock is still its holder's")
	}
	want(exitDone, "Nobody on this machine holds a lock on demo/gpu-001", "--break-lock", "gpu-001")
}

// What earlier runs remember of BMCs is there to be seen, and where it is kept.
func TestDoctorShowsWhatRunsRemember(t *testing.T) {
	l, dir := startLab(t, 1)
	state := filepath.Join(dir, "state", "enroll")
	refused := newRefusals(filepath.Join(state, "refusals"), func(err error) { t.Error(err) })
	at := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	const address = "https://198.18.0.2:8443"
	refused.Update(address, func([]bmc.Refusal) []bmc.Refusal {
		return []bmc.Refusal{
			{Account: "root", Secret: plan.SecretRef{Item: "gpu-001", Field: "password"}, At: at, Count: 2},
			{Account: "monitor", IPMI: true, Secret: plan.SecretRef{Item: "exporter", Field: "password"}, At: at, Count: 1},
		}
	})
	due := &restarts{site: "demo", notes: notes[bmc.Restart]{dir: filepath.Join(state, "restarts"), warn: func(err error) { t.Error(err) }}}
	due.Keep("gpu-001", bmc.Restart{Since: at})
	due.Keep("gpu-002", bmc.Restart{Since: at, Asked: at.Add(time.Minute)})
	code, out, errOut := invoke(t, l, dir, "doctor")
	if code != exitDone {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	for _, words := range []string{"Refused login at " + address + "; account root with secret(\"gpu-001\"", "2 times, last at 2026-11-30 10:00:00 UTC", refused.Place(address),
		"account monitor over IPMI with secret(\"exporter\"", "1 time, last", "Restart of the BMC of demo/gpu-001; its password was changed 2026-11-30 10:00:00 UTC; the next apply restarts it",
		"demo/gpu-002; told to restart 2026-11-30 10:01:00 UTC; the next apply waits"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q is missing in\n%s", words, out)
		}
	}

	bad := filepath.Join(state, "restarts", "demo,gpu-003.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := invoke(t, l, dir, "doctor"); code == exitDone || !strings.Contains(out+errOut, bad) {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}
