package apply

import (
	"context"
	"fmt"
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
