package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// dice decide which exchange goes wrong, and how: by the seed, by what is asked of
// whom about which device, and by how often that was asked before, in whatever
// order the requests of many devices come.
type dice struct {
	seed    uint64
	percent int
	kinds   []exchange.Fault

	mu    sync.Mutex
	asked map[string]int
	hits  int
}

// chance are the parts of a path or command that no two runs share: names of nodes
// by the order in which they were made, of temporary files, marks in what a shell
// prints, a machine's time.
var chance = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16}|@[0-9.]+`) //nolint:gochecknoglobals // compiled once

// roll gives the fault of a request, nil for none.
func (d *dice) roll(r exchange.Record) *exchange.Fault {
	what := fmt.Sprintf("%s %s %s %s", r.System, r.Device, r.Method, chance.ReplaceAllString(r.Path, "*"))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[what]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", what, d.asked[what])
	draw := rand.New(rand.NewPCG(d.seed, h.Sum64())) //nolint:gosec // faults, not secrets
	if draw.IntN(100) >= d.percent {
		return nil
	}
	d.hits++
	f := d.kinds[draw.IntN(len(d.kinds))]
	f.At, f.Times = r.Seq, 1
	return &f
}

// The same requests meet the same faults, in whatever order they come.
func TestWhatGoesWrongDoesNotDependOnTheOrder(t *testing.T) {
	met := func(order []int) map[string]string {
		d := &dice{seed: 7, percent: 20, kinds: mishaps(), asked: map[string]int{}}
		out := map[string]string{}
		for seq, i := range order {
			r := exchange.Record{Seq: seq + 1, System: "ironic", Device: fmt.Sprintf("gpu-%03d", i%7), Method: "GET", Path: fmt.Sprintf("/v1/nodes/%08d-0000-4000-8000-%012d/states", seq, seq)}
			if f := d.roll(r); f != nil {
				out[fmt.Sprintf("%s, time %d", r.Device, d.asked[fmt.Sprintf("ironic %s GET /v1/nodes/*/states", r.Device)])] = nameOf(*f)
			}
		}
		return out
	}
	order := make([]int, 500)
	for i := range order {
		order[i] = i
	}
	want := met(order)
	if n := len(want); n < 60 || n > 140 {
		t.Fatalf("%d of 500 go wrong", n)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] }) //nolint:gosec // an order
	if diff := cmp.Diff(want, met(order)); diff != "" {
		t.Error(diff)
	}
}

// soak is how many devices, from ENROLL_TEST_SOAK; 500 take some minutes.
func soak(t *testing.T) int {
	t.Helper()
	set := os.Getenv("ENROLL_TEST_SOAK")
	if set == "" {
		return 5
	}
	n, err := strconv.Atoi(set)
	if err != nil || n < 1 {
		t.Fatalf("ENROLL_TEST_SOAK wants a number from 1, not %q", set)
	}
	return n
}

// A fleet of all families is enrolled while two of a hundred exchanges go wrong.
// Each run ends; what it did not bring about it says, with a fault of somebody's;
// the runs together bring every device to its end, each with the effects of one
// undisturbed enrolment. Nothing piles up meanwhile.
func TestSoak(t *testing.T) {
	devices := soak(t)
	want := map[string]map[string]int{}
	for _, f := range families() {
		want[f.vendor] = journey{of: f}.undisturbed(t).effects
	}
	e := newEstate(t, devices, families()...)
	before := runtime.NumGoroutine()
	replaceIn(t, e.site(), "  bmc {", "  limits {\n    devices = 50\n  }\n\n  bmc {")
	kinds := mishaps()
	d := &dice{seed: 7, percent: 2, kinds: kinds[:len(kinds)-1], asked: map[string]int{}} // a stall takes real time
	begun, journals := false, 0
	var turn sync.Mutex
	e.lab.Recorder.Before(func(r exchange.Record) {
		turn.Lock()
		// A plan that cannot read says so, and no more comes of it: nothing goes wrong
		// before the run has its journal.
		begun = begun || e.journals() > journals
		on := begun
		turn.Unlock()
		if !on || r.System == "vault" {
			return
		}
		if f := d.roll(r); f != nil {
			e.lab.Recorder.Inject(f)
		}
	})
	felt, told := map[string]int{}, map[string]int{}
	for run := 1; ; run++ {
		began := time.Now()
		begun, journals = false, e.journals()
		e.lab.Recorder.Reset() // its records are all that grows
		r := e.apply("--all")
		failed := 0
		for _, dev := range r.report.Devices {
			if dev.OK {
				continue
			}
			failed++
			if dev.Fault == nil {
				t.Errorf("run %d: %s did not come to its end, and nothing says why", run, dev.Name)
			} else if dev.Fault.Class() == plan.ClassInternal {
				t.Errorf("run %d: %s: %s", run, dev.Name, dev.Fault)
			}
		}
		t.Logf("run %d: exit %d, %d of %d devices failed, %d faults so far, %d exchanges, %d MB in use, %s", run, r.code, failed, len(r.report.Devices), d.hits, e.exchanges(), inUse()>>20, time.Since(began).Round(time.Second))
		if s := e.secrets(r.text); s != "" {
			t.Fatal(s)
		}
		for what, n := range e.effects() {
			if strings.HasSuffix(what, "resets") { // those the machines count
				felt[what] = n
			} else {
				felt[what] += n
			}
		}
		for _, h := range e.lab.Hosts {
			told[h.Name] += r.resetsTold(h.Name)
		}
		if failed == 0 != (r.code == exitDone) {
			t.Errorf("run %d: exit %d, and %d devices failed", run, r.code, failed)
		}
		e.clock.pass(61 * time.Minute) // a password that a BMC refused is not tried again in the first hour
		if r.code == exitDone {
			break
		}
		if run == 4 {
			e.lab.Recorder.Before(nil) // the world is well again
		}
		if run == 8 {
			t.Fatalf("never done\n%s", r.text[max(0, len(r.text)-6000):])
		}
	}
	e.lab.Recorder.Before(nil)
	for _, left := range e.leaks() {
		// What an upload left whose connection was cut is swept by one an hour later.
		if !strings.Contains(left, ".enroll-") || strings.HasSuffix(left, ".enroll-pending") || strings.HasSuffix(left, ".enroll-lock") {
			t.Errorf("left: %s", left)
		}
	}
	for _, h := range e.lab.Hosts {
		for what, n := range want[h.Family] {
			what = strings.Replace(what, "gpu-001", h.Name, 1)
			most := n
			if strings.HasSuffix(what, "host resets") {
				most = max(n, told[h.Name]) // settings of two steps may need a boot each; the runs say so
			}
			if felt[what] < n || felt[what] > most {
				t.Errorf("%s: %d and not %d", what, felt[what], n)
			}
		}
		if n, _ := e.lab.Ironic.Node(h.Name); n.ProvisionState != plan.StateAvailable || n.PowerState != "power on" {
			t.Errorf("%s is %s, %s", h.Name, n.ProvisionState, n.PowerState)
		}
	}
	// Looking again and again takes no memory and leaves nothing running, but for the
	// commands themselves: cobra keeps every flag that has a completion.
	var used []uint64
	for range 6 {
		e.lab.Recorder.Reset()
		if r := e.run("plan", "--all", "--detailed-exitcode"); r.code != exitDone {
			t.Fatalf("the plan after it: exit %d\n%s", r.code, r.text[max(0, len(r.text)-6000):])
		}
		e.lab.Recorder.Reset()
		used = append(used, inUse())
	}
	t.Logf("%d kB in use after each of the plans", kilo(used))
	if first, last := used[0], used[len(used)-1]; last > first+first/20+1<<20 {
		t.Errorf("%d kB in use after the plans", kilo(used))
	}
	// What is more now are the BMCs that have an address and listen on it.
	most := before + devices
	for range 1000 {
		if runtime.NumGoroutine() <= most {
			return
		}
		time.Sleep(10 * time.Millisecond) // both ends of a connection notice that it was closed
	}
	var where strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&where, 1) // a builder takes all
	t.Errorf("%d goroutines, and %d are the lab's own\n%s", runtime.NumGoroutine(), most, where.String())
}

// journals is how many plans were applied.
func (e *estate) journals() int {
	files, err := filepath.Glob(filepath.Join(e.state(), "enroll", "journal", "*.jsonl"))
	if err != nil {
		e.t.Fatal(err)
	}
	return len(files)
}

// inUse is the memory in use that is still reachable.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalised
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func kilo(bytes []uint64) []uint64 {
	var out []uint64
	for _, b := range bytes {
		out = append(out, b>>10)
	}
	return out
}
