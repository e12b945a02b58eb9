package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
	"github.com/enroll-dev/enroll/providers/secrets"
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

// processorTime is what this process has used so far, collecting garbage included.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPlanRecorded goes from site files and recorded answers of all systems
// for 500 devices to the written plan: what enroll itself costs, without the
// simulators and the network. The answers are recorded as the providers give them,
// decoded.
func BenchmarkPlanRecorded(b *testing.B) {
	collectLess() // as the program does
	l, dir := startLab(b, 500)
	sys := system()
	env := map[string]string{"VAULT_TOKEN": l.Vault.Token}
	sys.lookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	a := &app{sys: sys, redactor: secrets.NewRedactor(), siteDir: filepath.Join(dir, "site")}
	s, err := a.open(b.Context(), a.siteDir, selection{all: true}, "0123456789ab")
	if err != nil {
		b.Fatal(err)
	}
	now := sys.now()
	recorded, err := s.look(b.Context(), plan.Selection{}, plan.Desired(s.scope, s.kinds), now)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.close(b.Context()); err != nil {
		b.Fatal(err)
	}
	intents := make([]*plan.Intent, len(s.scope.Targets))
	for i, t := range s.scope.Targets {
		intents[i] = t.Intent
	}
	// Everything, and the eight or so resources of a device outside Ironic.
	outside := slices.DeleteFunc(slices.Clone(recorded.Kinds), func(k plan.Kind) bool {
		return strings.HasPrefix(k.Name, "ironic.") || strings.HasPrefix(k.Name, "check.")
	})
	for name, kinds := range map[string][]plan.Kind{"everything": recorded.Kinds, "outside-ironic": outside} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			runtime.GC()
			began := processorTime(b)
			for b.Loop() {
				file, diags := a.load(a.siteDir)
				if diags.HasErrors() {
					b.Fatal(diags)
				}
				again := &session{app: a, file: file, site: file.Site(), scope: &plan.Scope{Site: file.Site()}}
				for _, intent := range intents {
					again.aim(intent)
				}
				in := recorded
				in.Kinds = kinds
				in.Scope = again.scope
				plan.Desired(in.Scope, in.Kinds)
				p := plan.Build(in)
				p.PlanID, p.Created = "0123456789ab", now
				if err := writePlan(filepath.Join(dir, "a.plan"), p, a.checkNoSecret); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(p.Steps)), "steps")
			}
			b.ReportMetric(float64((processorTime(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/1e6, "MB-sys")
		})
	}
}

// BenchmarkInterrupt is the time from the interrupt to the prompt while a node
// inspects itself and nothing is in flight: sessions are closed, the report is
// written.
func BenchmarkInterrupt(b *testing.B) {
	var worst time.Duration
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		l, err := lab.Start(lab.Options{Dir: dir, Devices: 1, Seed: 7, Now: time.Now, Durations: ironictest.Durations{Inspect: time.Hour}})
		if err != nil {
			b.Fatal(err)
		}
		signals := make(chan os.Signal, 1)
		at := make(chan time.Time, 1)
		go func() {
			for {
				if n, ok := l.Ironic.Node("gpu-001"); ok && n.ProvisionState == plan.StateInspecting {
					break
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second) // its first looks are over
			b.StartTimer()
			at <- time.Now()
			signals <- os.Interrupt
		}()
		code, out, errOut := invokeWith(b, l, dir, signals, "apply", "gpu-001", "--auto-approve")
		worst = max(worst, time.Since(<-at))
		b.StopTimer()
		if code != exitInterrupted {
			b.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		l.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
}
