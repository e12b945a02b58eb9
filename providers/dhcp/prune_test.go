package dhcp_test

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// gone is the entry of a device that NetBox has no more.
func gone() dhcp.Entry { return entry(device(7)) }

// arrangePrune is a whole site of one device, a neighbour of hers and a stale
// entry, all in force.
func arrangePrune(t *testing.T, service string) *scene {
	t.Helper()
	s := &scene{bench: newStalling(t, dhcptest.Options{Service: service, HostKeys: hostKeys()[1:]}, device(1), device(5)), old: gone(), existed: true}
	s.scope.Whole = true
	s.scope.Parameters.PruneDHCP = true
	s.stand(entry(device(1)), entry(device(5)), gone())
	if got, _ := s.srv.Lease(mac(7)); got != device(7).OOB {
		t.Fatalf("the stale entry is not served: %v", got)
	}
	return s
}

// pruned checks the end of an undisturbed run.
func (s *scene) pruned(what string) {
	s.t.Helper()
	s.arrived(what)
	if got, _ := s.srv.Lease(mac(7)); got.IsValid() {
		s.t.Errorf("%s: the stale entry is still served: %v", what, got)
	}
}

func TestPrune(t *testing.T) {
	for _, service := range services {
		t.Run(service, func(t *testing.T) {
			s := arrangePrune(t, service)
			file := path.Base(func() string { at, _ := s.file(gone()); return at }())
			pl := s.look(s.p)
			if got, want := addresses(pl), "lon14/dhcp.stale["+file+"] lon14/dhcp.service"; got != want {
				t.Fatalf("steps %s, want %s", got, want)
			}
			step := pl.Steps[0]
			if step.Action != plan.ActionRemove || !slices.Equal(step.Effects, []plan.Effect{plan.EffectServiceRestart}) || len(step.Serves) != 0 || !step.After.IsNull() {
				t.Errorf("%+v", step)
			}
			if restarts := pl.Summary.ServiceRestarts; restarts != 1 {
				t.Errorf("%d restarts", restarts)
			}
			if f := s.apply(s.p, pl); f != nil {
				t.Fatal(f)
			}
			s.pruned("")
		})
	}
}

// Without the flag, and for a part of the site, the entry stays.
func TestPruneNotAsked(t *testing.T) {
	for name, change := range map[string]func(*plan.Scope){
		"not asked":  func(sc *plan.Scope) { sc.Parameters.PruneDHCP = false },
		"not whole":  func(sc *plan.Scope) { sc.Whole = false },
		"its device": func(sc *plan.Scope) { sc.Targets = append(sc.Targets, &plan.Target{Site: sc.Site, Intent: device(7)}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := arrangePrune(t, "isc")
			change(s.scope)
			pl := s.look(s.p)
			if got := addresses(pl); got != "" {
				t.Errorf("steps %s", got)
			}
			if shown := len(pl.Observed) == 1; shown != (name == "not asked") {
				t.Errorf("observed %v", pl.Observed)
			}
		})
	}
}

// A device's entry under another name with another MAC and address is stale, one
// that has either of them is a former name, which its reservation removes.
func TestPruneLeftBehind(t *testing.T) {
	s := arrangePrune(t, "kea")
	old := gone()
	old.DeviceID = device(1).ID
	at, content := s.file(old)
	s.srv.PutOld(at, content, s.clock.now())
	if got := addresses(s.look(s.p)); !strings.Contains(got, "dhcp.stale") {
		t.Errorf("steps %s", got)
	}
	old.MAC = mac(1)
	_, content = s.file(old)
	s.srv.PutOld(at, content, s.clock.now())
	if got := addresses(s.look(s.p)); strings.Contains(got, "dhcp.stale") {
		t.Errorf("steps %s", got)
	}
}

func TestUnclaimed(t *testing.T) {
	address := device(7).OOB
	for name, c := range map[string]struct {
		mark     dhcp.Mark
		recorded map[int64]netip.Addr
		want     bool
	}{
		"no such device":        {dhcp.Mark{DeviceID: 7, Address: address}, map[int64]netip.Addr{8: address}, true},
		"this address":          {dhcp.Mark{DeviceID: 7, Address: address}, map[int64]netip.Addr{7: address}, false},
		"another address":       {dhcp.Mark{DeviceID: 7, Address: address}, map[int64]netip.Addr{7: device(8).OOB}, true},
		"no address recorded":   {dhcp.Mark{DeviceID: 7, Address: address}, map[int64]netip.Addr{7: {}}, false},
		"entry cannot be read":  {dhcp.Mark{DeviceID: 7}, map[int64]netip.Addr{7: device(8).OOB}, false},
		"unread, and no device": {dhcp.Mark{DeviceID: 7}, nil, true},
	} {
		if got := c.mark.Unclaimed(c.recorded); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The file is looked at once more, with the lock held, right before it goes.
func TestPruneGuard(t *testing.T) {
	for _, service := range services {
		t.Run(service, func(t *testing.T) {
			s := arrangePrune(t, service)
			step := s.look(s.p).Steps[0]
			at, _ := s.file(gone())
			other := gone()
			other.MAC = mac(8)
			_, changed := s.file(other)
			s.srv.PutOld(at, changed, s.clock.now())
			s.wantFault(s.step(s.p, step), plan.CodePlanStale)
			s.wantFault(s.p.Run(t.Context(), s.scope, step, nil).Fault, plan.CodePlanStale, at) // past the guard
			if got, _ := s.srv.ReadFile(at); got != changed {
				t.Error("the file was touched")
			}
			if s.srv.Pending() {
				t.Error("a marker was written for nothing")
			}
			forged := *step
			forged.Before = plan.Obj(map[string]plan.Value{"path": plan.Str(at), "content": plan.Str("somebody's\n")})
			s.wantFault(s.p.Run(t.Context(), s.scope, &forged, nil).Fault, plan.CodePlanInvalid)
		})
	}
}

// TestPruneRollback: a service that dies without the entry has it back.
func TestPruneRollback(t *testing.T) {
	for _, service := range services {
		t.Run(service, func(t *testing.T) {
			s := arrangePrune(t, service)
			pl := s.look(s.p)
			if f := s.step(s.p, pl.Steps[0]); f != nil {
				t.Fatal(f)
			}
			s.sound("removed, not told")
			s.srv.Set(func(m *dhcptest.Behaviour) { m.DieOnReload = true })
			s.wantFault(s.step(s.p, pl.Steps[1]), plan.CodeDHCPUnhealthy, "restored: ", "the former files stand again")
			s.srv.Set(func(m *dhcptest.Behaviour) { m.DieOnReload = false })
			if !s.srv.Restart() {
				t.Fatal("somebody's restart fails")
			}
			at, content := s.file(gone())
			if got, _ := s.srv.ReadFile(at); got != content {
				t.Errorf("the file holds %q", got)
			}
			if got, _ := s.srv.Lease(mac(7)); got != device(7).OOB {
				t.Errorf("put back, and its lease is %v", got)
			}
			s.sound("put back")
			if f := s.converge(s.p); f != nil {
				t.Fatal(f)
			}
			s.pruned("the next run")
		})
	}
}

// TestPruneEveryExchange: a run that is killed at any exchange leaves the entry or
// none, a server that would come up, and an end for the next run.
func TestPruneEveryExchange(t *testing.T) {
	for _, service := range services {
		whole := arrangePrune(t, service)
		before := len(whole.srv.Recorder().Records())
		if f := whole.converge(whole.p); f != nil {
			t.Fatal(f)
		}
		n := len(whole.srv.Recorder().Records()) - before
		for _, kind := range []exchange.Kind{exchange.Reset, exchange.LostReply, exchange.Status, exchange.HalfBody, exchange.Garbage, exchange.Stall} {
			t.Run(service+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				for _, k := range disturbable(t, n) {
					s := arrangePrune(t, service)
					s.srv.Recorder().Inject(&exchange.Fault{Kind: kind, At: k, Times: 1, Status: 4, Body: "Failure"})
					f := s.converge(s.p)
					what := fmt.Sprintf("%s at %d (%v)", kind, k, f)
					s.sound(what)
					at, content := s.file(gone())
					if got, there := s.srv.ReadFile(at); there && got != content {
						t.Errorf("%s: the file holds %q", what, got)
					}
					if _, there := s.srv.ReadFile(at); !there && !s.srv.Pending() {
						if got, _ := s.srv.Lease(mac(7)); got.IsValid() {
							t.Errorf("%s: the file is gone, its entry is served, and nothing says so", what)
						}
					}
					if k%2 == 0 {
						s.later()
					}
					if f := s.converge(s.p); f != nil {
						t.Errorf("%s: the next run: %v\n%s", what, f, strings.Join(f.EvidenceLines(), "\n"))
					}
					s.pruned(what)
					_ = s.p.Close(context.Background())
				}
			})
		}
	}
}
