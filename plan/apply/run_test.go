package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// world is a set of systems in memory: values by address, and a script of
// answers for runners.
type world struct {
	t      *testing.T
	mu     sync.Mutex
	live   map[plan.Address]plan.Live
	owners map[string]plan.Ownership
	// run overrides what the runner does for an address; nth counts from 1.
	run    map[plan.Address]func(nth int, memo plan.Memo) plan.Result
	calls  map[plan.Address]int
	order  []string
	active map[string]int
	most   int
	pause  time.Duration // of one exchange
	onRead func()        // called with the lock held
	permit func(ask func() *plan.Fault) *plan.Fault
}

func newWorld(t *testing.T) *world {
	return &world{t: t, live: map[plan.Address]plan.Live{}, owners: map[string]plan.Ownership{}, run: map[plan.Address]func(int, plan.Memo) plan.Result{}, calls: map[plan.Address]int{}, active: map[string]int{}}
}

func (w *world) Read(_ context.Context, _ *plan.Scope, resources []plan.Resource) plan.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onRead != nil {
		w.onRead()
	}
	out := plan.Snapshot{}
	for _, r := range resources {
		l, ok := w.live[r.Address]
		if !ok {
			l = plan.LiveAbsent()
		}
		out[r.Address] = l
	}
	return out
}

func (w *world) Ownership(_ context.Context, sc *plan.Scope) map[string]plan.Ownership {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]plan.Ownership{}
	for _, t := range sc.Targets {
		out[t.Name()] = w.owners[t.Name()]
	}
	return out
}

func (w *world) Run(ctx context.Context, _ *plan.Scope, s *plan.Step, memo plan.Memo) plan.Result {
	w.mu.Lock()
	w.calls[s.Address]++
	nth := w.calls[s.Address]
	w.order = append(w.order, s.ID)
	w.active[s.Address.Device]++
	if w.active[s.Address.Device] > 1 {
		w.t.Errorf("two exchanges at once for %q", s.Address.Device)
	}
	total := 0
	for _, n := range w.active {
		total += n
	}
	w.most = max(w.most, total)
	f := w.run[s.Address]
	w.mu.Unlock()
	if w.pause > 0 {
		select {
		case <-time.After(w.pause):
		case <-ctx.Done():
		}
	}
	defer func() {
		w.mu.Lock()
		w.active[s.Address.Device]--
		w.mu.Unlock()
	}()
	if ctx.Err() != nil {
		return plan.Failed(plan.NewFault(plan.CodeInterrupted, "cancelled"))
	}
	if w.permit != nil {
		if fault := w.permit(func() *plan.Fault { return plan.Permit(ctx) }); fault != nil {
			return plan.Failed(fault)
		}
	}
	if f != nil {
		return f(nth, memo)
	}
	w.set(s.Address, s.After)
	return plan.Done()
}

func (w *world) set(a plan.Address, v plan.Value) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[a] = plan.LiveValue(v)
}

func addr(device, kind string) plan.Address {
	return plan.Address{Site: "s", Device: device, System: "x", Kind: kind}
}

var wanted = plan.Obj(map[string]plan.Value{"v": plan.Str("new")})

func step(id, device, kind string, needs ...string) *plan.Step {
	return &plan.Step{ID: id, Address: addr(device, kind), Action: plan.ActionCreate, Before: plan.Null, Guard: plan.Fingerprint(plan.Null), After: wanted, Needs: needs}
}

func scope(devices ...string) *plan.Scope {
	sc := &plan.Scope{Site: &plan.Site{Name: "s"}}
	for _, d := range devices {
		sc.Targets = append(sc.Targets, &plan.Target{Site: sc.Site, Intent: &plan.Intent{Name: d}})
	}
	return sc
}

type setup struct {
	world  *world
	in     Input
	o      Options
	dir    string
	events []plan.Event
	stop   chan struct{}

	restorer interface {
		Restore(ctx context.Context, sc *plan.Scope, o plan.Obligation) plan.Result
	}
	locked func(string) *plan.Fault
}

func newSetup(t *testing.T, devices []string, steps ...*plan.Step) *setup {
	return &setup{world: newWorld(t), in: Input{Scope: scope(devices...), Steps: steps, PlanID: "p1"}, o: DefaultOptions(), dir: t.TempDir(), stop: make(chan struct{})}
}

func (s *setup) run(t *testing.T, ctx context.Context) *Report { //nolint:revive // t first, as in the whole file
	t.Helper()
	j, err := OpenJournal(s.dir, s.in.PlanID, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	rep, err := Run(ctx, s.in, Deps{Reader: s.world, Runner: s.world, Owner: s.world, Clock: RealClock{}, Journal: j, Stop: s.stop, Restorer: s.restorer, Locked: s.locked,
		Events: func(e plan.Event) { s.events = append(s.events, e) }}, s.o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func states(r *Report) string {
	var out []string
	for _, s := range r.Steps {
		out = append(out, s.Step.ID+" "+string(s.State))
	}
	return strings.Join(out, ", ")
}

func want(t *testing.T, r *Report, text string) {
	t.Helper()
	if got := states(r); got != text {
		t.Errorf("got  %s\nwant %s", got, text)
		for _, s := range r.Steps {
			if s.Fault != nil {
				t.Logf("%s: %v %v", s.Step.ID, s.Fault, s.Fault.Evidence)
			}
		}
	}
}

func TestOrderFollowsNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"), step("s3", "a", "three", "s2"))
		r := s.run(t, t.Context())
		want(t, r, "s1 done, s2 done, s3 done")
		if got := strings.Join(s.world.order, " "); got != "s1 s2 s3" {
			t.Errorf("order %s", got)
		}
		if len(r.Failed()) != 0 || r.Interrupted {
			t.Errorf("failed %v, interrupted %v", r.Failed(), r.Interrupted)
		}
	})
}

func TestWhatIsRightAlreadyIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"))
		s.world.set(addr("a", "one"), wanted)
		want(t, s.run(t, t.Context()), "s1 already, s2 done")
		if n := s.world.calls[addr("a", "one")]; n != 0 {
			t.Errorf("%d exchanges for a value that was right", n)
		}
	})
}

func TestAMovedValueStopsTheDeviceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"), step("s3", "a", "free"), step("s4", "b", "one"))
		s.world.set(addr("a", "one"), plan.Obj(map[string]plan.Value{"v": plan.Str("somebody's")}))
		r := s.run(t, t.Context())
		want(t, r, "s1 failed, s2 skipped, s3 skipped, s4 done")
		f := r.Steps[0].Fault
		if !errors.Is(f, plan.CodePlanStale) || !strings.Contains(f.Evidence["now"], "somebody's") || f.Evidence["planned on"] != "absent" {
			t.Errorf("fault %v %v", f, f.Evidence)
		}
		if n := s.world.calls[addr("a", "one")]; n != 0 {
			t.Errorf("%d exchanges on a stale value", n)
		}
	})
}

func TestANodeClaimedOnTheWayIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tag := step("s3", "a", "tag", "s1")
		tag.OnOwned = true
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"), tag)
		s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result {
			s.world.set(addr("a", "one"), wanted)
			s.world.mu.Lock()
			s.world.owners["a"] = plan.Own("node", plan.StateAvailable, "11111111-2222", false)
			s.world.mu.Unlock()
			return plan.Done()
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 done, s2 failed, s3 skipped")
		if !errors.Is(r.Steps[1].Fault, plan.CodeNodeOwned) || s.world.calls[addr("a", "two")] != 0 {
			t.Errorf("fault %v, %d exchanges", r.Steps[1].Fault, s.world.calls[addr("a", "two")])
		}
	})
}

func TestUnknownOwnershipForbidsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.world.owners["a"] = plan.Ownership{Unknown: plan.NewFault(plan.CodeIronicUnreachable, "no answer")}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		if s.world.calls[addr("a", "one")] != 0 {
			t.Error("written although nobody knows who holds the node")
		}
		if r.Steps[0].RetrySpent != 3 || r.Spent != 14*time.Second {
			t.Errorf("%d retries in %s, want 3 in 14s", r.Steps[0].RetrySpent, r.Spent)
		}
	})
}

func TestAcceptedButNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result { return plan.Done() }
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		if f := r.Steps[0].Fault; !errors.Is(f, plan.CodeNotApplied) || f.Evidence["now"] != "absent" {
			t.Errorf("fault %v", f)
		}
		if n := s.world.calls[addr("a", "one")]; n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestAWriteThatShowsLateIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result {
			time.AfterFunc(1500*time.Millisecond, func() { s.world.set(addr("a", "one"), wanted) })
			return plan.Done()
		}
		want(t, s.run(t, t.Context()), "s1 done")
	})
}

func TestWaitingHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []*plan.Step
		var names []string
		for i := range 40 {
			d := fmt.Sprintf("d%d", i)
			names = append(names, d)
			steps = append(steps, step(fmt.Sprintf("s%d", i), d, "slow"))
		}
		s := newSetup(t, names, steps...)
		s.o.Devices = 4
		s.world.pause = time.Second
		for _, d := range names {
			s.world.run[addr(d, "slow")] = func(nth int, memo plan.Memo) plan.Result {
				if nth == 1 {
					return plan.Wait(10*time.Minute, "inspecting", plan.Memo{"sent": "1"})
				}
				if memo["sent"] != "1" {
					t.Errorf("memo %v was lost", memo)
				}
				s.world.set(addr(d, "slow"), wanted)
				return plan.Done()
			}
		}
		r := s.run(t, t.Context())
		if len(r.Failed()) != 0 {
			t.Fatal(states(r))
		}
		// 40 devices, 4 at once, 1 s each: 10 s to start all; the ten minutes run side by side.
		if r.Spent > 11*time.Minute {
			t.Errorf("took %s: waits held slots", r.Spent)
		}
		if s.world.most != 4 {
			t.Errorf("%d exchanges at once, want 4", s.world.most)
		}
	})
}

func TestBudgetEndsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := step("s1", "a", "slow")
		slow.Budget = plan.Duration(time.Minute)
		s := newSetup(t, []string{"a"}, slow)
		s.world.run[addr("a", "slow")] = func(int, plan.Memo) plan.Result { return plan.Wait(7*time.Second, "cleaning", plan.Memo{"x": "1"}) }
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		f := r.Steps[0].Fault
		if !errors.Is(f, plan.CodeTimeout) || f.Evidence["last observed"] != "cleaning" || r.Spent != time.Minute {
			t.Errorf("%v %v after %s", f, f.Evidence, r.Spent)
		}
	})
}

func TestBusyHasItsOwnLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := step("s1", "a", "locked")
		short.Budget = plan.Duration(5 * time.Second)
		s := newSetup(t, []string{"a"}, short)
		s.world.run[addr("a", "locked")] = func(nth int, _ plan.Memo) plan.Result {
			if nth < 6 {
				return plan.Failed(plan.NewFault(plan.CodeIronicLocked, "locked by host c1"))
			}
			s.world.set(addr("a", "locked"), wanted)
			return plan.Done()
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 done")
		if r.Steps[0].BusySpent != (10+20+40+60+60)*time.Second {
			t.Errorf("busy for %s", r.Steps[0].BusySpent)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "locked"))
		s.world.run[addr("a", "locked")] = func(int, plan.Memo) plan.Result {
			return plan.Failed(plan.NewFault(plan.CodeIronicLocked, "locked by host c1"))
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		if !errors.Is(r.Steps[0].Fault, plan.CodeIronicLocked) || r.Spent < 15*time.Minute || r.Spent > 17*time.Minute {
			t.Errorf("%v after %s", r.Steps[0].Fault, r.Spent)
		}
	})
}

func TestALostAnswerIsLookedAtBeforeItIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result {
			s.world.set(addr("a", "one"), wanted) // it arrived
			return plan.Failed(plan.NewFault(plan.CodeNetBoxUnreachable, "connection reset"))
		}
		want(t, s.run(t, t.Context()), "s1 already")
		if n := s.world.calls[addr("a", "one")]; n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestAStateBetweenIsTheRunnersAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		move := step("s1", "a", "state")
		move.Action, move.Before = plan.ActionTransition, plan.Obj(map[string]plan.Value{"v": plan.Str("old")})
		move.Guard = plan.Fingerprint(move.Before)
		s := newSetup(t, []string{"a"}, move)
		s.world.set(move.Address, move.Before)
		s.world.run[move.Address] = func(nth int, _ plan.Memo) plan.Result {
			if nth == 1 {
				s.world.set(move.Address, plan.Obj(map[string]plan.Value{"v": plan.Str("between")}))
				return plan.Failed(plan.NewFault(plan.CodeIronicUnreachable, "connection reset"))
			}
			s.world.set(move.Address, wanted)
			return plan.Done()
		}
		want(t, s.run(t, t.Context()), "s1 done")
	})
}

func TestRefusedEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result {
			return plan.Failed(plan.NewFault(plan.CodeNetBoxRefused, "no"))
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		if s.world.calls[addr("a", "one")] != 1 || r.Spent != 0 {
			t.Error("a refusal was tried again")
		}
	})
}

func TestAValueThatAppearsOnTheWayNarrowsThePlan(t *testing.T) {
	for _, right := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			later := step("s1", "a", "late")
			later.Before, later.BeforeUnknown, later.Guard = plan.Unknown, true, ""
			s := newSetup(t, []string{"a"}, later)
			s.world.live[later.Address] = plan.LiveFault(plan.Unreachable, plan.NewFault(plan.CodeBMCUnreachable, "no answer"))
			time.AfterFunc(90*time.Second, func() {
				v := wanted
				if !right {
					v = plan.Obj(map[string]plan.Value{"v": plan.Str("factory")})
				}
				s.world.set(later.Address, v)
			})
			if right {
				want(t, s.run(t, t.Context()), "s1 already")
			} else {
				want(t, s.run(t, t.Context()), "s1 done")
			}
		})
	}
}

func TestChecksThatFailStopWhatNeedsThemButNotEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v1, v2 := step("s1", "a", "lldp0"), step("s2", "a", "lldp1")
		v1.Action, v2.Action = plan.ActionVerify, plan.ActionVerify
		s := newSetup(t, []string{"a"}, v1, v2, step("s3", "a", "provide", "s1", "s2"))
		s.world.run[v1.Address] = func(int, plan.Memo) plan.Result {
			return plan.Verified(plan.Check{Address: v1.Address, Verdict: plan.CheckFail, Expected: "leaf-1 Ethernet1/1", Observed: "leaf-1 Ethernet1/2"})
		}
		s.world.run[v2.Address] = func(int, plan.Memo) plan.Result {
			return plan.Verified(plan.Check{Address: v2.Address, Verdict: plan.CheckUnknown, Text: "the switch sent no LLDP"})
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed, s2 failed, s3 skipped")
		if len(r.Checks()) != 2 || !strings.Contains(r.Steps[0].Fault.Summary, "Ethernet1/2") || !strings.Contains(r.Steps[1].Fault.Summary, "not proven") {
			t.Errorf("checks %v, faults %v / %v", r.Checks(), r.Steps[0].Fault, r.Steps[1].Fault)
		}
	})
}

func TestASharedStepServesWhoIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := step("s3", "", "service", "s1", "s2")
		shared.Serves = []string{"a", "b"}
		s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "b", "one"), shared, step("s4", "a", "next", "s3"), step("s5", "b", "next", "s3"))
		s.world.set(addr("b", "one"), plan.Obj(map[string]plan.Value{"v": plan.Str("moved")}))
		want(t, s.run(t, t.Context()), "s1 done, s2 failed, s3 done, s4 done, s5 skipped")
	})
	synctest.Test(t, func(t *testing.T) {
		shared := step("s3", "", "service", "s1", "s2")
		shared.Serves = []string{"a", "b"}
		s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "b", "one"), shared)
		for _, d := range []string{"a", "b"} {
			s.world.set(addr(d, "one"), plan.Obj(map[string]plan.Value{"v": plan.Str("moved")}))
		}
		want(t, s.run(t, t.Context()), "s1 failed, s2 failed, s3 skipped")
	})
}

func TestAPanicFailsOneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "b", "one"))
		s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result { panic("boom") }
		r := s.run(t, t.Context())
		want(t, r, "s1 failed, s2 done")
		if f := r.Steps[0].Fault; !errors.Is(f, plan.CodeInternal) || f.Evidence["panic"] != "boom" {
			t.Errorf("%v", f)
		}
	})
}

func TestStopFinishesWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a", "b", "c"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"), step("s3", "b", "slow"), step("s4", "b", "next", "s3"))
		s.world.pause = 10 * time.Second
		s.world.run[addr("b", "slow")] = func(int, plan.Memo) plan.Result {
			return plan.Wait(time.Hour, "cleaning", plan.Memo{"sent": "1"})
		}
		time.AfterFunc(15*time.Second, func() { close(s.stop) })
		r := s.run(t, t.Context())
		want(t, r, "s1 done, s2 done, s3 left, s4 not run")
		if !r.Interrupted || r.Spent != 20*time.Second {
			t.Errorf("interrupted %v after %s", r.Interrupted, r.Spent)
		}
		past, err := ReadJournal(s.dir, "p1")
		if err != nil || past.Ended || !past.Begun["s3"] || past.Begun["s1"] {
			t.Errorf("past %+v, %v", past, err)
		}
	})
}

func TestCancelNamesTheStepsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"))
		s.world.pause = 10 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		r := s.run(t, ctx)
		want(t, r, "s1 in doubt, s2 not run")
		if !r.Interrupted || r.Spent != 3*time.Second {
			t.Errorf("interrupted %v after %s", r.Interrupted, r.Spent)
		}
	})
}

// A request that does not hear of the cancelling is given up after the grace, and
// named; what was stopped in good order before that is no different.
func TestWhatDoesNotComeBackIsInDoubt(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "b", "one"))
			hang := make(chan struct{})
			defer close(hang)
			s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result {
				<-hang
				return plan.Done()
			}
			ctx, cancel := context.WithCancel(t.Context())
			if stopped {
				time.AfterFunc(time.Second, func() { close(s.stop) })
			}
			time.AfterFunc(3*time.Second, cancel)
			r := s.run(t, ctx)
			want(t, r, "s1 in doubt, s2 done")
			if !r.Interrupted || r.Spent != 3*time.Second+s.o.CancelGrace {
				t.Errorf("interrupted %v after %s", r.Interrupted, r.Spent)
			}
			past, err := ReadJournal(s.dir, "p1")
			if err != nil || past.Ended || !past.Begun["s1"] {
				t.Errorf("past %+v, %v", past, err)
			}
		})
	}
}

func TestBlockedStepsAreNeverRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := step("s1", "a", "one")
		no.Blocked = &plan.Block{Rule: plan.RuleOwned, Text: "held"}
		s := newSetup(t, []string{"a"}, no, step("s2", "a", "two"))
		r := s.run(t, t.Context())
		want(t, r, "s1 blocked, s2 done")
		if s.world.calls[no.Address] != 0 || len(r.Failed()) != 0 {
			t.Error("a blocked step ran, or failed its device")
		}
	})
}

func TestAPlanIsAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.run(t, t.Context())
		if _, err := OpenJournal(s.dir, "p1", time.Now); !errors.Is(err, plan.CodePlanApplied) {
			t.Errorf("second opening: %v", err)
		}
	})
}

func TestJournalIsHeldByOneProcess(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir, "p1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(dir, "p1", time.Now); !errors.Is(err, plan.CodeLockHeld) {
		t.Errorf("second opening: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(j.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestWithoutAJournalNothingStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"))
		j, err := OpenJournal(s.dir, "p1", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.world.run[addr("a", "one")] = func(int, plan.Memo) plan.Result {
			s.world.set(addr("a", "one"), wanted)
			if err := j.Close(); err != nil { // the disk goes away
				t.Error(err)
			}
			return plan.Done()
		}
		rep, err := Run(t.Context(), s.in, Deps{Reader: s.world, Runner: s.world, Owner: s.world, Clock: RealClock{}, Journal: j}, s.o)
		if !errors.Is(err, plan.CodeJournal) {
			t.Fatalf("error %v", err)
		}
		want(t, rep, "s1 done, s2 not run")
		if s.world.calls[addr("a", "two")] != 0 {
			t.Error("a step was started without a journal")
		}
	})
}

// A fault at every exchange of a chain must end in a report, never in a hang or
// a second writing of what was accepted.
func TestFaultAtEveryExchange(t *testing.T) {
	codes := []plan.Code{plan.CodeIronicUnreachable, plan.CodeIronicLocked, plan.CodeIronicRefused, plan.CodeIronicProtocol, plan.CodeInternal}
	for at := 1; at <= 5; at++ {
		for _, code := range codes {
			for _, arrived := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					var steps []*plan.Step
					for i := 1; i <= 5; i++ {
						st := step(fmt.Sprintf("s%d", i), "a", fmt.Sprintf("k%d", i))
						if i > 1 {
							st.Needs = []string{fmt.Sprintf("s%d", i-1)}
						}
						steps = append(steps, st)
					}
					s := newSetup(t, []string{"a"}, steps...)
					a := addr("a", fmt.Sprintf("k%d", at))
					writes := 0
					s.world.run[a] = func(nth int, _ plan.Memo) plan.Result {
						if nth > 1 || arrived {
							s.world.set(a, wanted)
							writes++
						}
						if nth == 1 {
							return plan.Failed(plan.NewFault(code, "injected"))
						}
						return plan.Done()
					}
					r := s.run(t, t.Context())
					passes := code.Info().Class == plan.ClassUnreachable || code.Info().Class == plan.ClassBusy
					if ok := len(r.Failed()) == 0; ok != passes {
						t.Errorf("%s at %d (arrived %v): %s", code, at, arrived, states(r))
					}
					if writes > 1 {
						t.Errorf("%s at %d (arrived %v): written %d times", code, at, arrived, writes)
					}
				})
			}
		}
	}
}

func BenchmarkRun500Devices(b *testing.B) {
	for b.Loop() {
		var steps []*plan.Step
		var names []string
		for d := range 500 {
			name := fmt.Sprintf("gpu-%03d", d)
			names = append(names, name)
			for k := range 15 {
				st := step(fmt.Sprintf("s%d-%d", d, k), name, fmt.Sprintf("k%d", k))
				if k > 0 {
					st.Needs = []string{fmt.Sprintf("s%d-%d", d, k-1)}
				}
				steps = append(steps, st)
			}
		}
		w := newWorld(nil)
		j, err := OpenJournal(b.TempDir(), "p", time.Now)
		if err != nil {
			b.Fatal(err)
		}
		rep, err := Run(b.Context(), Input{Scope: scope(names...), Steps: steps, PlanID: "p"}, Deps{Reader: w, Runner: w, Owner: w, Clock: RealClock{}, Journal: j}, DefaultOptions())
		if err != nil || len(rep.Failed()) > 0 {
			b.Fatal(err, len(rep.Failed()))
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestHeldDevicesFailAndOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := step("s3", "", "service", "s1", "s2")
		shared.Serves = []string{"a", "b"}
		s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "b", "one"), shared, step("s4", "a", "next", "s3"))
		s.in.Held = map[string]*plan.Fault{"a": plan.NewFault(plan.CodePlanStale, "the record moved")}
		r := s.run(t, t.Context())
		want(t, r, "s1 skipped, s2 done, s3 done, s4 skipped")
		if len(r.Failed()) != 1 || r.Failed()[0].Name != "a" || !errors.Is(r.Failed()[0].Fault, plan.CodePlanStale) || r.Failed()[0].Done != 0 {
			t.Errorf("failed %+v", r.Failed())
		}
	})
}

func TestANodeThatVanishedIsNobodysAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "b", "one"))
		s.in.HadNode = map[string]bool{"a": true}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed, s2 done")
		if !errors.Is(r.Steps[0].Fault, plan.CodePlanStale) || s.world.calls[addr("a", "one")] != 0 {
			t.Errorf("fault %v, %d exchanges", r.Steps[0].Fault, s.world.calls[addr("a", "one")])
		}
	})
}

func TestAContinuedRunDoesNotLookBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"))
		s.world.set(addr("a", "one"), plan.Obj(map[string]plan.Value{"v": plan.Str("moved on by s2's first try")}))
		s.in.Done = map[string]bool{"s1": true}
		want(t, s.run(t, t.Context()), "s1 already, s2 done")
		if n := s.world.calls[addr("a", "one")]; n != 0 {
			t.Errorf("%d exchanges for a step that an earlier run finished", n)
		}
	})
}

// Nova takes the machine while a slow guard is read: nothing is written.
func TestOwnershipIsAskedAfterTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.world.onRead = func() {
			s.world.owners["a"] = plan.Own("a", plan.StateActive, "11111111", false)
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		if !errors.Is(r.Steps[0].Fault, plan.CodeNodeOwned) || s.world.calls[addr("a", "one")] != 0 {
			t.Errorf("fault %v, %d exchanges", r.Steps[0].Fault, s.world.calls[addr("a", "one")])
		}
	})
}

// A runner that takes long asks again before the request that counts.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		s.world.permit = func(ask func() *plan.Fault) *plan.Fault {
			if f := ask(); f != nil {
				t.Errorf("refused before the claim: %v", f)
			}
			s.world.mu.Lock()
			s.world.owners["a"] = plan.Own("a", plan.StateActive, "11111111", false)
			s.world.mu.Unlock()
			return ask()
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed")
		if !errors.Is(r.Steps[0].Fault, plan.CodeNodeOwned) {
			t.Errorf("fault %v", r.Steps[0].Fault)
		}
	})
}

// The journal breaks while a step waits: it is not visited again.
func TestAJournalThatBreaksDuringAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "one"))
		j, err := OpenJournal(s.dir, "p1", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.world.run[addr("a", "one")] = func(nth int, _ plan.Memo) plan.Result {
			if nth == 1 {
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}
			return plan.Wait(time.Minute, "cleaning", plan.Memo{"sent": "1"})
		}
		rep, err := Run(t.Context(), s.in, Deps{Reader: s.world, Runner: s.world, Owner: s.world, Clock: RealClock{}, Journal: j}, s.o)
		if rep == nil || err == nil {
			t.Fatalf("report %v, error %v", rep, err)
		}
		want(t, rep, "s1 left")
		if s.world.calls[addr("a", "one")] != 1 {
			t.Errorf("%d exchanges", s.world.calls[addr("a", "one")])
		}
	})
}
