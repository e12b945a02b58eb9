package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan/apply"
)

// What runs left open is told also where no run is about the device any more, and is
// forgotten only by who says so, one device at a time, and not under a run at work.
func TestDoctorDropsWhatNobodyCanPutBack(t *testing.T) {
	l, dir := startLab(t, 1)
	state := filepath.Join(dir, "state", "enroll")
	if err := os.MkdirAll(filepath.Join(state, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(state, "journal", "obligations.jsonl")
	lines := ""
	for _, at := range []string{"demo/gone-001", "demo/gpu-001", "other/gone-001"} {
		lines += `{"what":"open","obligation":{"id":"` + at + `","address":"` + at + `/ironic.provision[manage]","text":"maintenance of ` + at + `: on"}}` + "\n"
	}
	if err := os.WriteFile(path, []byte("\x00torn\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	want := func(code int, words string, args ...string) {
		t.Helper()
		got, out, errOut := invoke(t, l, dir, append([]string{"doctor"}, args...)...)
		if got != code || !strings.Contains(out+errOut, words) {
			t.Errorf("doctor %s: exit %d, want %d with %q:\n%s%s", strings.Join(args, " "), got, code, words, out, errOut)
		}
	}
	want(exitDone, "Left open on demo/gone-001; maintenance of demo/gone-001: on")
	want(exitUsage, "say --yes", "--drop-open", "gone-001")
	want(exitDone, "left nothing open on demo/gpu-002", "--drop-open", "gpu-002")
	locks, err := apply.LockDevices(filepath.Join(state, "locks"), "demo", []string{"gone-001"}, apply.Holder{User: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	want(exitLock, "another run is applying to gone-001", "--drop-open", "gone-001", "--yes")
	if err := locks.Release(); err != nil {
		t.Fatal(err)
	}
	want(exitDone, "Forgotten: nothing is open on demo/gone-001", "--drop-open", "gone-001", "--yes")
	want(exitDone, "left nothing open on demo/gone-001", "--drop-open", "gone-001", "--yes")
	want(exitDone, "Left open on demo/gpu-001")
	want(exitDone, "Left open on other/gone-001")
	if n := mutating(l); n != 0 {
		t.Errorf("%d writes", n)
	}
}
