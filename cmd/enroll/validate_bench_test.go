package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkValidateProcess validates the three sites that look like real ones, as a
// process: at most 60 ms.
func BenchmarkValidateProcess(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "enroll")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil { //nolint:gosec // our own path
		b.Fatalf("%v\n%s", err, out)
	}
	sites := filepath.Join("..", "..", "sites")
	for b.Loop() {
		cmd := exec.CommandContext(context.Background(), binary, "validate", filepath.Join(sites, "lon14"), filepath.Join(sites, "fra7"), filepath.Join(sites, "osl2")) //nolint:gosec // built above
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		b.ReportMetric(float64(cmd.ProcessState.UserTime().Microseconds()+cmd.ProcessState.SystemTime().Microseconds())/1e3, "cpu-ms")
	}
}
