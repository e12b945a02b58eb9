package apply

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

func lockedFault() plan.Result {
	return plan.Failed(plan.NewFault(plan.CodeIronicLocked, "locked by host c1"))
}

// What a run that was stopped had spent, and its attempt, are what the next run
// begins with; the fault at the end tells what each ledger spent and has left.
func TestLedgersOutliveARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := step("s1", "a", "clean")
		slow.Action, slow.Budget = plan.ActionTransition, plan.Duration(20*time.Minute)
		s := newSetup(t, []string{"a"}, slow)
		second := plan.Memo{plan.MemoAttempt: "2"}
		s.world.run[addr("a", "clean")] = func(nth int, memo plan.Memo) plan.Result {
			switch nth {
			case 1:
				return plan.Wait(4*time.Minute, "cleaning", plan.Memo{"sent": "1"})
			case 2:
				return plan.Wait(0, "attempt 2 of 3 follows", second)
			case 3, 4:
				return lockedFault()
			}
			if memo.Attempt() != 2 {
				t.Errorf("exchange %d: %v", nth, memo)
			}
			r := plan.Wait(5*time.Minute, "cleaning", plan.Memo{"sent": "1", plan.MemoAttempt: "2"})
			r.Evidence = map[string]string{"provision_state": "clean wait"}
			return r
		}
		time.AfterFunc(6*time.Minute, func() { close(s.stop) })
		want(t, s.run(t, t.Context()), "s1 left")

		past, err := ReadJournal(s.dir, "p1")
		if err != nil {
			t.Fatal(err)
		}
		// 4 min, and then 1 min 30 s after two pauses of 10 and 20 s.
		if l := past.Ledgers["s1"]; l != (Ledger{Attempt: 2, Spent: 5*time.Minute + 30*time.Second, Busy: 30 * time.Second}) {
			t.Fatalf("%+v", l)
		}
		s.in.Begun, s.in.Ledgers, s.stop = past.Begun, past.Ledgers, make(chan struct{})
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		f := r.Steps[0].Fault
		if !errors.Is(f, plan.CodeTimeout) || r.Spent != 14*time.Minute+30*time.Second {
			t.Errorf("%v after %s", f, r.Spent)
		}
		for k, v := range map[string]string{"spent": "20m0s", "left": "0s", "spent on busy": "30s", "left for busy": "14m30s", "provision_state": "clean wait"} {
			if f.Evidence[k] != v {
				t.Errorf("%s is %q, want %q", k, f.Evidence[k], v)
			}
		}
	})
}

// Every attempt may wait for the lock as long as the first one, and none of that
// is billed to the step's own budget.
func TestEachAttemptHasItsOwnWaitForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := step("s1", "a", "inspect")
		short.Budget = plan.Duration(time.Minute)
		s := newSetup(t, []string{"a"}, short)
		s.o.BusyBudget = time.Minute
		s.world.run[addr("a", "inspect")] = func(nth int, memo plan.Memo) plan.Result {
			switch {
			case nth%4 != 0:
				return lockedFault() // 10, 20 and 40 s
			case memo.Attempt() < 3:
				return plan.Wait(time.Second, "next", plan.Memo{plan.MemoAttempt: string(rune('1' + memo.Attempt()))})
			}
			s.world.set(addr("a", "inspect"), wanted)
			return plan.Done()
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 done")
		if r.Steps[0].BusySpent != 3*70*time.Second {
			t.Errorf("busy for %s", r.Steps[0].BusySpent)
		}
	})
}

// Each device's lock is waited for as its own Ironic says, and before a cleaning no
// longer than the cleaning may take. What is no node's lock keeps the run's limits.
func TestTheLockIsWaitedForAsTheDevicesIronicSays(t *testing.T) {
	hours := func(n int) plan.Duration { return plan.Duration(n) * plan.Duration(time.Hour) }
	for _, c := range []struct {
		name, system string
		maxWait      time.Duration // of the block
		busy         time.Duration // what was spent when the step was given up
		budget       plan.Duration
		effects      []plan.Effect
	}{
		{name: "of its own block", system: "ironic", maxWait: 4 * time.Minute, budget: hours(1), busy: 4 * time.Minute},
		{name: "no block", system: "ironic", budget: hours(1), busy: 16 * time.Minute},
		{name: "a BMC", system: "bmc", maxWait: 4 * time.Minute, budget: hours(1), busy: 16 * time.Minute},
		{name: "longer than an inspection", system: "ironic", maxWait: 4 * time.Minute, budget: plan.Duration(time.Minute), busy: 4 * time.Minute, effects: []plan.Effect{plan.EffectReboot}},
		{name: "before a cleaning that has time", system: "ironic", maxWait: 4 * time.Minute, budget: hours(3), busy: 4 * time.Minute, effects: []plan.Effect{plan.EffectErase}},
		{name: "clamped to the cleaning", system: "ironic", maxWait: 4 * time.Minute, budget: plan.Duration(2 * time.Minute), busy: 2 * time.Minute, effects: []plan.Effect{plan.EffectErase}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := step("s1", "a", "x")
				x.Address.System, x.Budget, x.Effects = c.system, c.budget, c.effects
				s := newSetup(t, []string{"a"}, x)
				s.o.BusyMin, s.o.BusyMax, s.o.BusyBudget = 4*time.Minute, 4*time.Minute, 15*time.Minute
				s.in.Scope.Targets[0].Ironic = &plan.IronicSettings{Name: "i", LockMaxWait: c.maxWait, LockBackoffMin: time.Minute, LockBackoffMax: time.Minute}
				s.world.run[x.Address] = func(int, plan.Memo) plan.Result { return lockedFault() }
				r := s.run(t, t.Context())
				want(t, r, "s1 failed")
				if r.Steps[0].BusySpent != c.busy || !errors.Is(r.Steps[0].Fault, plan.CodeIronicLocked) || r.Steps[0].Fault.Evidence["left for busy"] != "0s" {
					t.Errorf("busy for %s: %v", r.Steps[0].BusySpent, r.Steps[0].Fault.EvidenceLines())
				}
			})
		})
	}
}
