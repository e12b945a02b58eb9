package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// most is how many requests planning one clean device may take, over all systems and the vault.
const most = 30

// TestGeneratedRequestBudget counts the requests of a plan for one clean device,
// per endpoint, and holds them against the committed budget; make docs writes it
// anew. None of them writes. The session at
// the BMC is no change of the device.
func TestGeneratedRequestBudget(t *testing.T) {
	l, dir := inSituation(t, "clean", 2)
	if code, out, errOut := invoke(t, l, dir, "plan", "gpu-001", "--detailed-exitcode"); code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	name := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d+`) // of one thing among many
	counts, total := map[string]int{}, 0
	for _, r := range l.Recorder.Records() {
		path, _, _ := strings.Cut(r.Path, "?")
		switch {
		case r.System == "vault":
			path = "/v1/secret/…"
		case r.Method == "ssh.exec":
			path = "a script"
		}
		if r.Mutating {
			t.Errorf("planning writes: %s %s", r.Method, r.Path)
		}
		counts[fmt.Sprintf("%-8s %-8s %s", r.System, r.Method, name.ReplaceAllString(path, "N"))]++
		total++
	}
	var lines []string
	for endpoint, n := range counts {
		lines = append(lines, fmt.Sprintf("%3d  %s\n", n, endpoint))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[5:], b[5:]) })
	golden(t, filepath.Join("..", "..", "testdata", "plans", "requests.txt"), []byte(strings.Join(lines, "")))
	if total > most {
		t.Errorf("%d requests for one clean device; at most %d:\n%s", total, most, strings.Join(lines, ""))
	}
}
