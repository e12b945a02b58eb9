package netbox_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// Runs that write different fields of one device at the same time, and rivals
// that write yet others: nothing is lost, on a NetBox with ETags and on one
// without, where a write goes over the whole row. There the second look has to
// come after the rival's write, which is what its pause is for.
func TestConcurrentWriters(t *testing.T) {
	const token = "0123456789012345678901234567890123456789"
	for _, opt := range []netboxtest.Options{{Version: "4.7"}, {Version: "4.6", NoETag: true}, {Version: "4.5"}} {
		t.Run(fmt.Sprintf("%s %t", opt.Version, opt.NoETag), func(t *testing.T) {
			t.Parallel()
			opt.Tokens = []netboxtest.Token{{Value: token}}
			s := serve(t, opt)
			for round := range 20 {
				name := fmt.Sprintf("gpu-%03d", round+1)
				d := host(round + 1)
				d.Tags = []string{"rack-checked"}
				s.AddDevice(d)
				sc := scopeOf(site(), intent(t, client(t, s.URL, token), site(), name))
				all := stepsOf(t, client(t, s.URL, token), sc)
				// The first PATCHes of all writers meet between reading and writing.
				var meet sync.WaitGroup
				meet.Add(len(all))
				var mu sync.Mutex
				left := len(all)
				s.DuringPatch(func(string) {
					mu.Lock()
					first := left > 0
					left--
					mu.Unlock()
					if first {
						meet.Done()
						meet.Wait()
					}
				})
				var running sync.WaitGroup
				var exchanges sync.RWMutex
				for _, step := range all {
					running.Go(func() {
						c := client(t, s.URL, token)
						r := plan.Wait(0, "", nil)
						for r.Outcome == plan.OutcomeWait {
							exchanges.RLock()
							r = c.Run(context.Background(), sc, step, r.Memo)
							exchanges.RUnlock()
							// A pause is longer than the exchanges that are on their way.
							exchanges.Lock()
							exchanges.Unlock() //nolint:staticcheck // it is the waiting that counts
						}
						if r.Outcome != plan.OutcomeDone {
							t.Errorf("%s: %s %v", step.Address, r.Outcome, r.Fault)
						}
					})
				}
				running.Wait()
				got, _ := s.Device(name)
				slices.Sort(got.Tags)
				if got.Status != "active" || got.CustomFields["platform_class"] != "H200_LENOVOHG635NV2_NORDMA_01" || !slices.Equal(got.Tags, []string{"ironic", "rack-checked"}) {
					t.Fatalf("round %d: %s, %v, tags %v", round, got.Status, got.CustomFields, got.Tags)
				}
			}
		})
	}
}

// stepsOf are all steps of a device that is enrolled.
func stepsOf(t *testing.T, c interface {
	Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot
}, sc *plan.Scope) []*plan.Step {
	t.Helper()
	name := sc.Targets[0].Name()
	p := plan.Build(plan.Input{Scope: sc, Kinds: kinds(), World: c.Read(context.Background(), sc, desired(sc)), Owners: map[string]plan.Ownership{name: {State: plan.StateAvailable}}})
	if len(p.Steps) != len(writable()) {
		t.Fatalf("%d steps", len(p.Steps))
	}
	return p.Steps
}
