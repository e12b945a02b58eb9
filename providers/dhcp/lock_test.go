package dhcp_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// signOfLife is the pause between two signs of life for a lock whose lease is the
// shortest that there is.
const signOfLife = 5 * time.Minute / 4

func (b *bench) as(owner string, h *pauses) *dhcp.Provider {
	b.t.Helper()
	p, err := dhcp.New(*b.scope.Site.DHCP, b.credentials(), dhcp.Options{
		Owner: dhcp.Holder{Owner: owner, Host: "ops1", PID: 4711}, LockTimeout: 10 * time.Second, Now: b.clock.now, After: h.after,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	p.Applying("plan-"+owner, 0)
	b.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// TestLock: two runs at once. The second waits, says for whom, and gives up with
// the holder's name; it goes on when the first is through.
func TestLock(t *testing.T) {
	for _, service := range services {
		b := newBench(t, dhcptest.Options{Service: service}, device(1), device(2))
		first, second := b.as("anna", newPauses()), b.as("ben", newPauses())
		steps := b.look(first).Steps
		if f := b.step(first, steps[0]); f != nil {
			t.Fatal(f)
		}
		r := second.Run(t.Context(), b.scope, steps[1], nil)
		if r.Outcome != plan.OutcomeWait || !strings.Contains(r.Observed, "anna@ops1 (process 4711, plan plan-anna") {
			t.Fatalf("%s: %+v", service, r)
		}
		b.clock.pass(11 * time.Second)
		b.wantFault(second.Run(t.Context(), b.scope, steps[1], r.Memo).Fault, plan.CodeDHCPLockHeld, "anna@ops1", "waited: 1", "lease: 5m0s", "--break-dhcp-lock")
		if got, there := b.srv.ReadFile(plan.Text(steps[1].After, "path")); there {
			t.Errorf("%s: the second wrote %q", service, got)
		}
		for _, step := range steps[1:] {
			if f := b.step(first, step); f != nil {
				t.Fatal(f)
			}
		}
		if holder, held, f := second.LockHolder(t.Context()); f != nil || held {
			t.Errorf("%s: after the first run the lock is held by %v, %v", service, holder, f)
		}
		b.settled()
	}
}

// TestLockExpires: a holder that shows no sign of life for its lease is succeeded,
// once, and that is said.
func TestLockExpires(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	alive := newPauses()
	dead, heir := b.as("anna", alive), b.as("ben", newPauses())
	steps := b.look(dead).Steps
	if f := b.step(dead, steps[0]); f != nil {
		t.Fatal(f)
	}
	for range 3 { // it lives
		b.clock.pass(4 * time.Minute)
		if !alive.end(signOfLife) {
			t.Fatal("no sign of life is under way")
		}
	}
	if r := heir.Run(t.Context(), b.scope, steps[1], nil); !strings.Contains(r.Observed, "waits for the lock of anna") {
		t.Fatalf("%+v", r)
	}
	b.clock.pass(6 * time.Minute) // it does not
	r := heir.Run(t.Context(), b.scope, steps[1], nil)
	if r.Outcome != plan.OutcomeWait || !strings.Contains(r.Observed, "anna@ops1") || !strings.Contains(r.Observed, "taken over") {
		t.Fatalf("%+v", r)
	}
	if f := b.step(heir, steps[1]); f != nil {
		t.Fatal(f)
	}
	b.settled()
	// The dead one wakes up and finds out before it writes.
	two := device(2)
	b.scope.Targets = append(b.scope.Targets, &plan.Target{Site: b.scope.Site, Intent: two})
	pl := b.look(dead)
	b.wantFault(dead.Run(t.Context(), b.scope, pl.Steps[0], nil).Fault, plan.CodeDHCPLockHeld, "no longer this run's")
	if _, there := b.srv.ReadFile(at("gpu-002-bmc")); there {
		t.Error("it wrote without the lock")
	}
}

// TestLockRace: of many that find an expired lock one alone gets it.
func TestLockRace(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	dead := b.as("anna", newPauses())
	steps := b.look(dead).Steps
	if f := b.step(dead, steps[0]); f != nil {
		t.Fatal(f)
	}
	b.clock.pass(time.Hour)
	const n = 6
	var wait sync.WaitGroup
	var mu sync.Mutex
	heirs, said := 0, 0
	for i := range n {
		p := b.as(string(rune('b'+i)), newPauses())
		wait.Go(func() {
			r := p.Run(context.Background(), b.scope, steps[1], nil)
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(r.Observed, "taken over") {
				said++
			}
			if !strings.Contains(r.Observed, "waits for the lock") {
				heirs++
			}
			if r.Outcome != plan.OutcomeWait {
				t.Errorf("%+v", r)
			}
		})
	}
	wait.Wait()
	// One that finds it expired and moves it away may see another get it, and says so.
	if heirs != 1 || said == 0 {
		t.Errorf("%d took the lock over, %d say so", heirs, said)
	}
}

// TestLockBroken: a person gives a run's lock up; the run finds out before it writes.
func TestLockBroken(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	p := b.as("anna", newPauses())
	steps := b.look(p).Steps
	if f := b.step(p, steps[0]); f != nil {
		t.Fatal(f)
	}
	holder, held, f := b.p.LockHolder(t.Context())
	if f != nil || !held || holder.Owner != "anna" || holder.Plan != "plan-anna" {
		t.Fatalf("%+v, %v, %v", holder, held, f)
	}
	if f := b.p.BreakLock(t.Context(), holder); f != nil {
		t.Fatal(f)
	}
	b.wantFault(p.Run(t.Context(), b.scope, steps[1], nil).Fault, plan.CodeDHCPLockHeld, "no longer this run's")
}

// TestTwoRuns: two whole runs for two devices at once. Both devices are served in
// the end, whoever was first.
func TestTwoRuns(t *testing.T) {
	for _, service := range services {
		b := newBench(t, dhcptest.Options{Service: service}, device(1), device(2))
		var wait sync.WaitGroup
		together := newCrowd(b.clock, 2)
		for n, p := range []*dhcp.Provider{b.connect(), b.connect()} {
			scope := &plan.Scope{Site: b.scope.Site, Targets: b.scope.Targets[n : n+1]}
			wait.Go(func() {
				defer together.leave()
				own := &bench{t: t, clock: b.clock, wait: together.wait, srv: b.srv, scope: scope}
				for range 3 { // what moved meanwhile is planned again
					if f := own.converge(p); f == nil {
						return
					} else if f.Code != plan.CodePlanStale {
						t.Errorf("%s: %v", service, f)
						return
					}
				}
				t.Errorf("%s: a run does not end", service)
			})
		}
		wait.Wait()
		for n := 1; n <= 2; n++ {
			if got, _ := b.srv.Lease(mac(n)); got != device(n).OOB {
				t.Errorf("%s: device %d has the lease %v", service, n, got)
			}
		}
		b.settled()
		if n := b.srv.Recorder().Count(func(r exchange.Record) bool { return strings.Contains(r.Path, "taken over") }); n != 0 {
			t.Error("a living run was succeeded")
		}
	}
}
