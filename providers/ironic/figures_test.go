package ironic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// noticed runs the cleaning of a device and gives how long after the node was
// available, its lock free, that was seen, and the pause between the last two looks.
func (l *lab) noticed(clean time.Duration) (late, pause time.Duration) {
	l.t.Helper()
	s := l.reach("ironic.provision[provide]")
	began := l.clock.Now()
	l.wait = func(d time.Duration) { pause = d; l.clock.Advance(d) }
	if f := l.step(s); f != nil {
		l.t.Fatal(f)
	}
	return l.clock.Now().Sub(began) - clean - 400*time.Millisecond, pause // the lock of the harness
}

// Available is noticed within one and a half probe intervals, however long
// cleaning takes.
func TestAvailableIsNoticedSoon(t *testing.T) {
	for _, clean := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 17 * time.Second, 3 * time.Minute, 47*time.Minute + 3*time.Second, 3*time.Hour + 7*time.Second} {
		l := newLabWith(t, 1, ironictest.Durations{Clean: clean})
		if late, pause := l.noticed(clean); late > pause*3/2 || pause > 10*time.Second {
			t.Errorf("cleaning of %s was noticed %s late, with a pause of %s", clean, late, pause)
		}
	}
}

// What is as wanted costs at most six requests to find out, and no write.
func TestCleanApplyIsCheap(t *testing.T) {
	l := newLab(t, 1, func(target *plan.Target) { target.Intent.Ironic.Bond = &plan.Bond{Mode: "802.3ad"} })
	if faults := l.apply(l.plan()); len(faults) != 0 {
		t.Fatal(faults)
	}
	l.sim.Recorder().Reset()
	if faults := l.apply(l.plan()); len(faults) != 0 {
		t.Fatal(faults)
	}
	if n := len(l.sim.Recorder().Records()); n > 6 || l.mutating() != 0 {
		t.Errorf("%d requests, %d of them write", n, l.mutating())
	}
}

// BenchmarkFigures are the figures of a run: requests to Ironic for the plan of
// 1,000 enrolled nodes (inventories apart), of a clean apply and the writes of a
// rerun, and how late available was noticed in probe intervals.
func BenchmarkFigures(b *testing.B) {
	b.Run("plan of 1000 nodes", func(b *testing.B) {
		l := fleet(b, 1000)
		for b.Loop() {
			l.sim.Recorder().Reset()
			l.plan()
		}
		b.ReportMetric(float64(l.sim.Recorder().Count(func(r exchange.Record) bool { return !strings.HasSuffix(r.Path, "/inventory") })), "requests")
	})
	b.Run("rerun of one device", func(b *testing.B) {
		l := newLab(b, 1)
		if faults := l.apply(l.plan()); len(faults) != 0 {
			b.Fatal(faults)
		}
		for b.Loop() {
			l.sim.Recorder().Reset()
			l.apply(l.plan())
		}
		b.ReportMetric(float64(len(l.sim.Recorder().Records())), "requests")
		b.ReportMetric(float64(l.mutating()), "writes")
	})
	b.Run("notice of available", func(b *testing.B) {
		worst := 0.0
		for b.Loop() {
			for n := range 20 {
				clean := 20*time.Minute + time.Duration(n)*700*time.Millisecond
				l := newLabWith(b, 1, ironictest.Durations{Clean: clean})
				late, pause := l.noticed(clean)
				worst = max(worst, float64(late)/float64(pause))
				l.sim.Close()
			}
		}
		b.ReportMetric(worst, "intervals")
	})
}
