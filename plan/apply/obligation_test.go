package apply

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// recovery is a step that clears a flag, sends a verb and waits, as the recovery
// of a node that is clean failed does. How the verb ends is the case's.
type recovery struct {
	*setup
	step     *plan.Step
	flag     bool // Ironic's maintenance
	restores int
	restore  func(nth int) plan.Result // nil: puts the flag back
	verb     func() plan.Result
}

func newRecovery(t *testing.T) *recovery {
	t.Helper()
	c := &recovery{step: step("s1", "a", "provision"), flag: true}
	c.step.Action = plan.ActionTransition
	c.setup = newSetup(t, []string{"a"}, c.step)
	c.restorer = c
	c.verb = func() plan.Result { return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "manage failed")) }
	c.world.run[c.step.Address] = func(_ int, memo plan.Memo) plan.Result {
		switch memo["at"] {
		case "":
			return plan.Wait(0, "about to clear maintenance", plan.Memo{"at": "clear"}).Opening(plan.Obligation{Text: "maintenance: on", Memo: plan.Memo{"reason": "by hand"}})
		case "clear":
			open, err := OpenObligations(c.dir, "s", []string{"a"})
			if err != nil || len(open) != 1 || open[0].Memo["reason"] != "by hand" || open[0].ID != "p1/s1" {
				t.Errorf("on disk before the flag is cleared: %+v, %v", open, err)
			}
			c.flag = false
			return plan.Wait(time.Second, "cleared", plan.Memo{"at": "manage"})
		}
		return c.verb()
	}
	return c
}

func (c *recovery) Restore(_ context.Context, _ *plan.Scope, o plan.Obligation) plan.Result {
	c.restores++
	if c.restore != nil {
		return c.restore(c.restores)
	}
	if o.Memo["reason"] != "by hand" {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "memo %v", o.Memo))
	}
	c.flag = true
	return plan.Done()
}

func (c *recovery) openNow(t *testing.T) int {
	t.Helper()
	open, err := OpenObligations(c.dir, "s", []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func TestAnObligation(t *testing.T) {
	busy := func(nth int) plan.Result {
		return plan.Failed(plan.NewFault(plan.CodeIronicLocked, "locked, look %d", nth))
	}
	for name, c := range map[string]struct {
		change   func(*recovery)
		states   string
		flag     bool
		restores int
		open     int
	}{
		"the verb fails: put back": {func(*recovery) {}, "s1 failed", true, 1, 0},
		"the verb works: nothing to put back": {func(c *recovery) {
			c.verb = func() plan.Result { c.world.set(c.step.Address, wanted); return plan.Done() }
		}, "s1 done", false, 0, 0},
		"closed early, then failed: left as is": {func(c *recovery) {
			c.verb = func() plan.Result { return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "later")).Closing() }
		}, "s1 failed", false, 0, 0},
		"accepted and not applied: put back":  {func(c *recovery) { c.verb = plan.Done }, "s1 failed", true, 1, 0},
		"a runner that breaks down: put back": {func(c *recovery) { c.verb = func() plan.Result { panic("boom") } }, "s1 failed", true, 1, 0},
		"the budget ends: put back": {func(c *recovery) {
			c.verb = func() plan.Result { return plan.Wait(time.Minute, "verifying", plan.Memo{"at": "x"}) }
		}, "s1 failed", true, 1, 0},
		"busy at first: tried again": {func(c *recovery) {
			c.restore = func(nth int) plan.Result {
				if nth < 4 {
					return busy(nth)
				}
				c.flag = true
				return plan.Done()
			}
		}, "s1 failed", true, 4, 0},
		"claimed meanwhile: theirs": {func(c *recovery) {
			c.verb = func() plan.Result {
				c.world.mu.Lock()
				defer c.world.mu.Unlock()
				c.world.owners["a"] = plan.Ownership{Node: "a", Owned: true, Reason: "active"}
				return plan.Failed(plan.NewFault(plan.CodeIronicUnexpected, "active"))
			}
		}, "s1 failed", false, 0, 0},
		"claimed at the last moment: theirs": {func(c *recovery) {
			c.restore = func(int) plan.Result { return plan.Failed(plan.NewFault(plan.CodeNodeOwned, "active")) }
		}, "s1 failed", false, 1, 0},
		"refused: reported, and stays open": {func(c *recovery) {
			c.restore = func(int) plan.Result { return plan.Failed(plan.NewFault(plan.CodeIronicDenied, "no")) }
		}, "s1 failed", false, 1, 1},
		"busy for good: reported, and stays open": {func(c *recovery) { c.restore = busy }, "s1 failed", false, 61, 1},
		"stopped meanwhile: put back": {func(c *recovery) {
			c.verb = func() plan.Result { close(c.stop); return plan.Wait(time.Hour, "verifying", plan.Memo{"at": "x"}) }
		}, "s1 left", true, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecovery(t)
				c.change(r)
				rep := r.run(t, t.Context())
				want(t, rep, c.states)
				if r.flag != c.flag || r.restores != c.restores || r.openNow(t) != c.open {
					t.Errorf("flag %v, %d restores, %d open; want %v, %d, %d", r.flag, r.restores, r.openNow(t), c.flag, c.restores, c.open)
				}
				if rep.Open() != c.open {
					t.Errorf("%d reported as open, want %d", rep.Open(), c.open)
				}
				if c.open > 0 {
					if len(rep.Obligations) != 1 || !errors.Is(rep.Obligations[0].Fault, plan.CodeObligation) || !strings.Contains(rep.Obligations[0].Fault.Summary, "maintenance: on") {
						t.Errorf("reported %+v", rep.Obligations)
					}
				}
			})
		})
	}
}

func TestACancelledRunPutsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRecovery(t)
		ctx, cancel := context.WithCancel(t.Context())
		c.verb = func() plan.Result {
			cancel()
			return plan.Failed(plan.NewFault(plan.CodeIronicUnreachable, "cancelled"))
		}
		rep := c.run(t, ctx)
		want(t, rep, "s1 in doubt")
		if !c.flag || !rep.Interrupted || c.openNow(t) != 0 {
			t.Errorf("flag %v, interrupted %v, %d open", c.flag, rep.Interrupted, c.openNow(t))
		}
	})
}

// What a killed run left open is taken over by the step that opens it, or
// settled first when the plan has no such step any more: nothing of the device
// begins before, however long that takes.
func TestWhatAKilledRunLeftOpen(t *testing.T) {
	for _, again := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newRecovery(t)
			c.flag = false // the killed run had cleared it
			c.in.Owed = []plan.Obligation{{ID: "p0/s9", Address: c.step.Address, Text: "maintenance: on", Memo: plan.Memo{"reason": "by hand"}}}
			want, restores := true, 3
			if again {
				c.world.run[c.step.Address] = func(int, plan.Memo) plan.Result { c.world.set(c.step.Address, wanted); return plan.Done() }
				want, restores = false, 0
			} else {
				c.restore = func(nth int) plan.Result {
					if nth < 3 {
						return plan.Failed(plan.NewFault(plan.CodeIronicLocked, "locked, look %d", nth))
					}
					c.flag = true
					return plan.Done()
				}
				other := step("s2", "a", "other")
				c.in.Steps = []*plan.Step{other}
				c.world.run[other.Address] = func(int, plan.Memo) plan.Result {
					if !c.flag {
						t.Error("a step began before what was left open was settled")
					}
					c.world.set(other.Address, wanted)
					return plan.Done()
				}
			}
			rep := c.run(t, t.Context())
			if c.flag != want || c.restores != restores || len(rep.Failed()) > 0 {
				t.Errorf("again %v: flag %v, %d restores, %s", again, c.flag, c.restores, states(rep))
			}
		})
	}
}

// A step that took over what an earlier run left open, and opens it anew, owes one
// thing and not two, whether it is the step of that run or of another plan.
func TestWhatWasTakenOverIsOpenedAnew(t *testing.T) {
	for _, id := range []string{"p0/s9", "p1/s1"} {
		synctest.Test(t, func(t *testing.T) {
			c := newRecovery(t)
			owed := plan.Obligation{ID: id, Address: c.step.Address, Text: "maintenance: on", Memo: plan.Memo{"reason": "by hand"}}
			line, err := json.Marshal(obligationEntry{What: wroteOpen, Obligation: owed})
			if err == nil {
				err = os.WriteFile(filepath.Join(c.dir, obligationsFile), append(line, '\n'), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.in.Owed = []plan.Obligation{owed}
			rep := c.run(t, t.Context())
			want(t, rep, "s1 failed")
			if !c.flag || c.restores != 1 || c.openNow(t) != 0 {
				t.Errorf("%s: flag %v, %d restores, %d open", id, c.flag, c.restores, c.openNow(t))
			}
		})
	}
}

func TestObligationsOfOthersAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	lines := `{"what":"open","obligation":{"id":"p/1","address":"s/a/ironic.x"}}
{"what":"open","obligation":{"id":"p/2","address":"s/b/ironic.x"}}
{"what":"open","obligation":{"id":"p/3","address":"other/a/ironic.x"}}
{"what":"open","obliga
{"what":"open","obligation":{"id":"p/4","address":"s/a/ironic.y"}}
{"what":"closed","obligation":{"id":"p/1"}}
`
	if err := os.WriteFile(filepath.Join(dir, obligationsFile), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	open, err := OpenObligations(dir, "s", []string{"a"})
	if err != nil || len(open) != 1 || open[0].ID != "p/4" {
		t.Errorf("%+v, %v", open, err)
	}
}
