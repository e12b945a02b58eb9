package apply

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// still is a world that answers at once, or after a pause, and remembers only
// what was written: the cost that is left is the interpreter's.
type still struct{ pause time.Duration }

func (still) Read(_ context.Context, _ *plan.Scope, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	for _, r := range resources {
		out[r.Address] = plan.LiveAbsent()
	}
	return out
}

func (w still) Run(ctx context.Context, _ *plan.Scope, _ *plan.Step, memo plan.Memo) plan.Result {
	if w.pause > 0 {
		time.Sleep(w.pause) //nolint:forbidigo // the latency that is simulated
	}
	return plan.Verified()
}

func (still) Ownership(context.Context, *plan.Scope) map[string]plan.Ownership {
	return map[string]plan.Ownership{}
}

// fleet is a plan of verify steps, each device's in a chain.
func fleet(devices, each int) Input {
	in := Input{PlanID: "p"}
	var names []string
	for d := range devices {
		name := fmt.Sprintf("gpu-%03d", d)
		names = append(names, name)
		for k := range each {
			st := step(fmt.Sprintf("s%d-%d", d, k), name, fmt.Sprintf("k%d", k))
			st.Action = plan.ActionVerify
			if k > 0 {
				st.Needs = []string{fmt.Sprintf("s%d-%d", d, k-1)}
			}
			in.Steps = append(in.Steps, st)
		}
	}
	in.Scope = scope(names...)
	return in
}

func benchmarkFleet(b *testing.B, devices, each int, w still, o Options) {
	b.Helper()
	in := fleet(devices, each)
	began := used(b)
	for i := 0; b.Loop(); i++ {
		j, err := OpenJournal(b.TempDir(), fmt.Sprintf("p%d", i), time.Now)
		if err != nil {
			b.Fatal(err)
		}
		rep, err := Run(b.Context(), in, Deps{Reader: w, Runner: w, Owner: w, Clock: RealClock{}, Journal: j}, o)
		if err != nil || len(rep.Failed()) > 0 {
			b.Fatal(err, len(rep.Failed()))
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(devices*each)*1e6, "µs/step")
	b.ReportMetric((used(b)-began).Seconds()/float64(b.N)/float64(devices*each)*1e6, "cpu-µs/step")
}

// Bookkeeping of 4,000 empty steps: at most 1 s, and no more per step than 80 need.
func BenchmarkBookkeeping(b *testing.B) {
	for _, devices := range []int{8, 40, 400} {
		b.Run(fmt.Sprintf("steps=%d", devices*10), func(b *testing.B) {
			benchmarkFleet(b, devices, 10, still{}, DefaultOptions())
		})
	}
}

// 500 devices × 40 exchanges of 20 ms: the critical path is 0.8 s.
func BenchmarkLatency(b *testing.B) {
	o := DefaultOptions()
	o.Devices = 500
	benchmarkFleet(b, 500, 40, still{pause: 20 * time.Millisecond}, o)
}

func BenchmarkJournal(b *testing.B) {
	j, err := OpenJournal(b.TempDir(), "p", time.Now)
	if err != nil {
		b.Fatal(err)
	}
	s := step("s1", "gpu-017", "one")
	for b.Loop() {
		if f := j.end(s, plan.StepDone, "", nil); f != nil {
			b.Fatal(f)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}

// Begins that come together share one fsync.
func BenchmarkJournalCommit(b *testing.B) {
	for _, atOnce := range []int{1, 64} {
		b.Run(fmt.Sprintf("at once=%d", atOnce), func(b *testing.B) {
			j, err := OpenJournal(b.TempDir(), "p", time.Now)
			if err != nil {
				b.Fatal(err)
			}
			s := step("s1", "gpu-017", "one")
			b.SetParallelism(max(atOnce/runtime.GOMAXPROCS(0), 1))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if f := j.begin(s); f != nil {
						b.Error(f)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// patient is a world in which every step waits for its system.
type patient struct{ still }

func (patient) Run(_ context.Context, _ *plan.Scope, _ *plan.Step, _ plan.Memo) plan.Result {
	return plan.Wait(10*time.Second, "cleaning", plan.Memo{"sent": "1"})
}

// 500 devices wait, each asked every ten seconds: the share of a processor that
// this takes, and how long a stop takes then.
func BenchmarkWaiting(b *testing.B) {
	in := fleet(500, 1)
	for i := 0; b.Loop(); i++ {
		j, err := OpenJournal(b.TempDir(), fmt.Sprintf("p%d", i), time.Now)
		if err != nil {
			b.Fatal(err)
		}
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if _, err := Run(b.Context(), in, Deps{Reader: patient{}, Runner: patient{}, Owner: patient{}, Clock: RealClock{}, Journal: j, Stop: stop}, DefaultOptions()); err != nil {
				b.Error(err)
			}
		}()
		time.Sleep(time.Second) //nolint:forbidigo // until all have begun
		before := used(b)
		const span = 20 * time.Second
		time.Sleep(span) //nolint:forbidigo // what is measured
		b.ReportMetric(100*(used(b)-before).Seconds()/span.Seconds(), "%cpu")
		at := time.Now() //nolint:forbidigo // what is measured
		close(stop)
		<-ended
		b.ReportMetric(float64(time.Since(at).Milliseconds()), "ms-to-stop") //nolint:forbidigo // what is measured
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// used is the processor time of this process so far.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
