package main

import (
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// A fleet of all families is enrolled while two of a hundred exchanges go wrong.
// Each run ends; what it did not bring about it says, with a fault of somebody's;
// the runs together bring every device to its end. Nothing piles up meanwhile.
// ENROLL_TEST_SOAK is the number of devices; 500 take some minutes.
func TestSoak(t *testing.T) {
	devices := 5
	if set := os.Getenv("ENROLL_TEST_SOAK"); set != "" {
		var err error
		if devices, err = strconv.Atoi(set); err != nil {
			t.Fatal(err)
		}
	}
	e := newEstate(t, devices, families()...)
	served := runtime.NumGoroutine()
	replaceIn(t, e.site(), "  bmc {", "  limits {\n    devices = 50\n  }\n\n  bmc {")
	e.lab.Recorder.Reset()
	dice := rand.New(rand.NewPCG(7, uint64(devices))) //nolint:gosec // faults, not secrets
	kinds := mishaps()
	kinds = kinds[:len(kinds)-1] // a stall takes real time
	hit, writing := 0, false
	var turn sync.Mutex
	e.lab.Recorder.Before(func(r exchange.Record) {
		// Called from many connections, in the order in which they come.
		turn.Lock()
		defer turn.Unlock()
		writing = writing || r.Mutating // a plan that cannot read says so, and no more comes of it
		if !writing || r.System == "vault" || dice.IntN(100) >= 2 {
			return
		}
		f := kinds[dice.IntN(len(kinds))]
		if f.Kind == exchange.Status && f.Status == http.StatusUnauthorized && r.System == "bmc" && r.Method == http.MethodPost {
			return // a password that is refused is not tried again, so that no account is locked
		}
		f.At, f.Times = r.Seq, 1
		hit++
		e.lab.Recorder.Inject(&f)
	})
	var heap []uint64
	for run := 1; ; run++ {
		began := time.Now()
		writing = false
		e.lab.Recorder.Reset() // its records are all that grows
		r := e.apply("--all")
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		heap = append(heap, m.HeapAlloc>>20)
		failed := 0
		for _, d := range r.report.Devices {
			if d.OK {
				continue
			}
			failed++
			if d.Fault == nil {
				t.Errorf("run %d: %s did not come to its end, and nothing says why", run, d.Name)
			} else if d.Fault.Class() == plan.ClassInternal {
				t.Errorf("run %d: %s: %s", run, d.Name, d.Fault)
			}
		}
		t.Logf("run %d: exit %d, %d of %d devices failed, %d faults so far, %d exchanges, %d MB in use, %s", run, r.code, failed, len(r.report.Devices), hit, e.exchanges(), heap[len(heap)-1], time.Since(began).Round(time.Second))
		if s := e.secrets(r.text); s != "" {
			t.Fatal(s)
		}
		e.clock.pass(20 * time.Minute)
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
	if r := e.run("plan", "--all", "--detailed-exitcode"); r.code != exitDone {
		t.Errorf("the plan after it: exit %d\n%s", r.code, r.text[max(0, len(r.text)-6000):])
	}
	for _, left := range e.leaks() {
		// What an upload left whose connection was cut is swept by one an hour later.
		if !strings.Contains(left, ".enroll-") || strings.HasSuffix(left, ".enroll-pending") || strings.HasSuffix(left, ".enroll-lock") {
			t.Errorf("left: %s", left)
		}
	}
	for _, h := range e.lab.Hosts {
		if n, _ := e.lab.Ironic.Node(h.Name); n.ProvisionState != plan.StateAvailable || n.PowerState != "power on" {
			t.Errorf("%s is %s, %s", h.Name, n.ProvisionState, n.PowerState)
		}
	}
	// Listeners of BMCs that have an address now, and connections that end when
	// nothing was asked for a while.
	most := served + devices + 40
	for range 400 {
		if runtime.NumGoroutine() <= most {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > most {
		t.Errorf("%d goroutines, and there were %d when the lab stood", n, served)
	}
	t.Logf("%d goroutines, and there were %d when the lab stood", runtime.NumGoroutine(), served)
	if first, last := heap[0], heap[len(heap)-1]; last > 4*first+64 {
		t.Errorf("%v MB in use after the runs", heap)
	}
}
