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
