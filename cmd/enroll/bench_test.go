package main

import (
	"runtime"
	"testing"
)

// BenchmarkPlanFleet reads and plans 500 fresh devices over real HTTP, TLS and
// SSH, simulators included.
func BenchmarkPlanFleet(b *testing.B) {
	l, dir := startLab(b, 500)
	for b.Loop() {
		l.Recorder.Reset()
		if code, out, errOut := invoke(b, l, dir, "plan", "--all"); code != exitDone {
			b.Fatalf("exit %d\n%s%s", code, out[max(0, len(out)-2000):], errOut)
		}
	}
	perSystem := map[string]int{}
	for _, r := range l.Recorder.Records() {
		perSystem[r.System]++
	}
	for system, n := range perSystem {
		b.ReportMetric(float64(n), system+"-requests")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/1e6, "MB-sys")
}
