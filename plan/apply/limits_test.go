package apply

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// rebooting makes a world of hosts in racks that all reboot, each for a while.
func rebooting(t *testing.T, racks, each int, lasts time.Duration) (*setup, func() (site, rack int)) {
	t.Helper()
	var steps []*plan.Step
	var names []string
	for r := range racks {
		for i := range each {
			d := fmt.Sprintf("r%d-%d", r, i)
			names = append(names, d)
			st := step("s"+d, d, "bios")
			st.Effects = []plan.Effect{plan.EffectReboot}
			st.Budget = plan.Duration(24 * time.Hour)
			steps = append(steps, st)
		}
	}
	s := newSetup(t, names, steps...)
	for _, target := range s.in.Scope.Targets {
		target.Intent.Rack, _, _ = strings.Cut(target.Name(), "-")
	}
	var mu sync.Mutex
	now, mostSite, mostRack := map[string]int{}, 0, 0
	for _, st := range steps {
		rack, _, _ := strings.Cut(st.Address.Device, "-")
		s.world.run[st.Address] = func(nth int, _ plan.Memo) plan.Result {
			mu.Lock()
			defer mu.Unlock()
			if nth == 1 {
				now[rack]++
				total := 0
				for _, n := range now {
					total += n
				}
				mostSite, mostRack = max(mostSite, total), max(mostRack, now[rack])
				return plan.Wait(lasts, "booting", plan.Memo{"sent": "1"})
			}
			now[rack]--
			s.world.set(st.Address, wanted)
			return plan.Done()
		}
	}
	return s, func() (int, int) { return mostSite, mostRack }
}

func TestHostsRebootAFewAtATime(t *testing.T) {
	for _, c := range []struct{ site, rack, mostSite, mostRack int }{
		{5, 2, 5, 2}, {0, 1, 4, 1}, {3, 0, 3, 3}, {0, 0, 24, 6},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, most := rebooting(t, 4, 6, 5*time.Minute)
			s.o.Devices, s.o.Reboots, s.o.RebootsPerRack = 100, c.site, c.rack
			r := s.run(t, t.Context())
			if len(r.Failed()) > 0 {
				t.Fatal(states(r))
			}
			if site, rack := most(); site != c.mostSite || rack != c.mostRack {
				t.Errorf("limits %d and %d: %d at once in the site, %d in a rack", c.site, c.rack, site, rack)
			}
		})
	}
}

// A host that cleans itself for hours has long booted: others may start.
func TestAPlaceLastsAsLongAsAHostBoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := rebooting(t, 2, 4, 3*time.Hour)
		s.o.Reboots, s.o.RebootsPerRack = 2, 1
		r := s.run(t, t.Context())
		if len(r.Failed()) > 0 {
			t.Fatal(states(r))
		}
		if least := 3*time.Hour + 30*time.Minute; r.Spent != least {
			t.Errorf("took %s, want four rounds ten minutes apart and three hours, %s", r.Spent, least)
		}
		holds := 0
		for _, e := range s.events {
			if e.Kind == plan.EventHold {
				holds++
			}
		}
		if holds != 6 {
			t.Errorf("told %d times that a host waits for a place, want 6", holds)
		}
	})
}

func TestADeviceThatStoppedTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := rebooting(t, 1, 3, time.Minute)
		s.o.Reboots, s.o.RebootsPerRack = 1, 1
		bad := step("bad", "r0-1", "one")
		s.in.Steps = append(s.in.Steps, bad)
		s.world.run[bad.Address] = func(int, plan.Memo) plan.Result {
			return plan.Failed(plan.NewFault(plan.CodeNetBoxRefused, "no"))
		}
		want(t, s.run(t, t.Context()), "sr0-0 done, sr0-1 skipped, sr0-2 done, bad failed")
	})
}

func TestStopWhileHostsWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := rebooting(t, 1, 3, time.Hour)
		s.o.Reboots, s.o.RebootWindow = 1, 2*time.Hour
		time.AfterFunc(time.Minute, func() { close(s.stop) })
		r := s.run(t, t.Context())
		want(t, r, "sr0-0 left, sr0-1 not run, sr0-2 not run")
		if r.Spent != time.Minute {
			t.Errorf("ended after %s", r.Spent)
		}
	})
}

func TestASharedSystemInTroubleIsAskedLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []*plan.Step
		var names []string
		for i := range 64 {
			d := fmt.Sprintf("d%d", i)
			names = append(names, d)
			steps = append(steps, step("s"+d, d, "one"))
		}
		s := newSetup(t, names, steps...)
		s.o.Devices, s.o.Retries = 64, 20
		s.world.pause = time.Second
		refused, served := 0, 0
		s.world.run = map[plan.Address]func(int, plan.Memo) plan.Result{}
		for _, st := range steps {
			s.world.run[st.Address] = func(int, plan.Memo) plan.Result {
				s.world.mu.Lock()
				active := 0
				for _, n := range s.world.active {
					active += n
				}
				full := active > 8
				if full {
					refused++
				} else {
					served++
				}
				s.world.mu.Unlock()
				if full {
					return plan.Failed(plan.NewFault(plan.CodeIronicUnreachable, "answered 503"))
				}
				s.world.set(st.Address, wanted)
				return plan.Done()
			}
		}
		r := s.run(t, t.Context())
		if len(r.Failed()) > 0 || served != 64 {
			t.Fatalf("%d served, %s", served, states(r))
		}
		if refused > 2*64 {
			t.Errorf("%d requests were refused before 64 were served", refused)
		}
	})
}

func TestALostLockStopsTheDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "b", "one"))
		s.locked = func(device string) *plan.Fault {
			if device == "a" {
				return plan.NewFault(plan.CodeLockLost, "broken")
			}
			return nil
		}
		r := s.run(t, t.Context())
		want(t, r, "s1 failed, s2 done")
		if !errors.Is(r.Steps[0].Fault, plan.CodeLockLost) || s.world.calls[addr("a", "one")] != 0 {
			t.Errorf("%v, %d exchanges", r.Steps[0].Fault, s.world.calls[addr("a", "one")])
		}
	})
}

func TestTheTimeLimitStopsInGoodOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t, []string{"a"}, step("s1", "a", "slow"), step("s2", "a", "next", "s1"))
		s.o.Limit = 12 * time.Minute
		s.world.run[addr("a", "slow")] = func(int, plan.Memo) plan.Result { return plan.Wait(time.Hour, "cleaning", plan.Memo{"x": "1"}) }
		r := s.run(t, t.Context())
		want(t, r, "s1 left, s2 not run")
		if !r.Interrupted || r.Spent != 12*time.Minute {
			t.Errorf("interrupted %v after %s", r.Interrupted, r.Spent)
		}
		alive := 0
		for _, e := range s.events {
			if e.Kind == plan.EventAlive {
				alive++
				if e.Text != "steps under way: 1, waiting for a place: 0, over: 0 of 2" {
					t.Error(e.Text)
				}
			}
		}
		if alive != 2 {
			t.Errorf("%d signs of life in 12 minutes, want 2", alive)
		}
	})
}

// A provider that gathers steps sees all of them at once, whatever the other
// systems may have in flight.
func TestBatchedStepsHaveRoomOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []*plan.Step
		var names []string
		for i := range 30 {
			d := fmt.Sprintf("d%d", i)
			names = append(names, d)
			first := step("a"+d, d, "entry")
			first.Address.System = "dhcp"
			steps = append(steps, first, step("b"+d, d, "other", "a"+d))
		}
		s := newSetup(t, names, steps...)
		s.o.Devices, s.o.Batches = 2, map[string]int{"dhcp": 20}
		s.world.pause = time.Second
		r := s.run(t, t.Context())
		if len(r.Failed()) > 0 {
			t.Fatal(states(r))
		}
		// Twenty entries in the first second and ten in the next; thirty others two at a time.
		if s.world.most != 20+0 && s.world.most != 20+2 && s.world.most != 10+2 {
			t.Errorf("%d exchanges at once", s.world.most)
		}
		if r.Spent != 16*time.Second {
			t.Errorf("took %s, want 16s", r.Spent)
		}
	})
}
