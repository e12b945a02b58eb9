package dhcp_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// TestServiceDown: a service that does not run before anything is done.
func TestServiceDown(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	b.srv.Kill()
	b.wantFault(fault(b.look(b.p)), plan.CodeDHCPUnhealthy, "dnsmasq", "failed (failed)", "systemctl status dnsmasq")
	b.srv.Start()
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	b.settled()
}

// TestDiesOnReload: the reload says nothing and the server is gone. A restart
// with the former files brings it back; where it does not, the fault says so.
func TestDiesOnReload(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	b.srv.Set(func(m *dhcptest.Behaviour) { m.DieOnReload = true })
	b.wantFault(b.converge(b.p), plan.CodeDHCPUnhealthy, "the unit is failed", "rollback", "NO HOST OF THIS SITE IS SERVED", "sudo systemctl restart dnsmasq")
	if !b.srv.Pending() {
		t.Error("the marker is gone although nothing was proved")
	}
	b.srv.Set(func(m *dhcptest.Behaviour) { m.DieOnReload = false })
	b.srv.Start()
	b.end()
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	b.settled()
}

// TestRollback: dnsmasq refuses the new entry, because its own configuration
// has the address, which no look at the folder shows. The old file comes back.
func TestRollback(t *testing.T) {
	old := entry(device(1))
	old.MAC, old.Address = mac(9), device(9).OOB
	b := newBench(t, dhcptest.Options{Static: []string{"02:00:5e:10:00:55,192.0.2.11,printer"}}, device(1))
	b.srv.PutFile(at("gpu-001-bmc"), rendered(old), 0o600)
	b.srv.Chown(at("gpu-001-bmc"), "enroll", 0o644)
	b.srv.Start()
	if got, _ := b.srv.Lease(mac(9)); got != old.Address {
		t.Fatalf("lease before: %v", got)
	}
	f := b.converge(b.p)
	b.wantFault(f, plan.CodeDHCPUnhealthy, "duplicate dhcp-host IP address 192.0.2.11", "restored: gpu-001-bmc", "the former files stand again and the unit is active")
	if got, _ := b.srv.ReadFile(at("gpu-001-bmc")); got != rendered(old) {
		t.Errorf("the file holds %q", got)
	}
	if got, _ := b.srv.Lease(mac(9)); got != old.Address {
		t.Errorf("lease after: %v", got)
	}
	if b.srv.Pending() {
		t.Error("the marker stays although everything was undone and reloaded")
	}
}

// TestRollbackOfNew: a file that did not exist before goes away again.
func TestRollbackOfNew(t *testing.T) {
	b := newBench(t, dhcptest.Options{Static: []string{"02:00:5e:10:00:55,192.0.2.11,printer"}}, device(1))
	b.wantFault(b.converge(b.p), plan.CodeDHCPUnhealthy, "duplicate", "the former files stand again")
	if files := b.srv.Files(); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// TestUnreadable: dnsmasq may not read the file.
func TestUnreadable(t *testing.T) {
	old := entry(device(1))
	old.MAC = mac(9)
	b := newBench(t, dhcptest.Options{}, device(1))
	b.srv.PutFile(at("gpu-001-bmc"), rendered(old), 0o600)
	b.srv.Chown(at("gpu-001-bmc"), "enroll", 0o600) // kept by the upload
	b.wantFault(b.converge(b.p), plan.CodeDHCPUnhealthy, "cannot read "+at("gpu-001-bmc")+": Permission denied")
}

// TestReloadLost: the connection ends with the reload done or not; the marker
// makes the next run look and reload again.
func TestReloadLost(t *testing.T) {
	for _, kind := range []exchange.Kind{exchange.Reset, exchange.LostReply} {
		b := newBench(t, dhcptest.Options{}, device(1))
		pl := b.look(b.p)
		if f := b.step(b.p, pl.Steps[0]); f != nil {
			t.Fatal(f)
		}
		r := b.srv.Recorder().Records()
		b.srv.Recorder().Inject(&exchange.Fault{Kind: kind, At: r[len(r)-1].Seq + 3, Times: 1}) // after the step's own read and the lock's
		b.wantFault(b.step(b.p, pl.Steps[1]), plan.CodeDHCPUnreachable, "reload of dnsmasq", "not known")
		if !b.srv.Pending() {
			t.Errorf("%s: the marker is gone", kind)
		}
		b.later()
		again := b.look(b.p)
		if addresses(again) != "lon14/dhcp.service" || again.Steps[0].Reason != plan.ReasonPending {
			t.Errorf("%s: planned %s", kind, addresses(again))
		}
		if f := b.apply(b.p, again); f != nil {
			t.Errorf("%s: %v", kind, f)
		}
		b.settled()
	}
}

// TestHealthWaits: the service step asks for the settle time and remembers in
// plain text, so that another process can go on with it.
func TestHealthWaits(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	pl := b.look(b.p)
	if f := b.step(b.p, pl.Steps[0]); f != nil {
		t.Fatal(f)
	}
	r := b.p.Run(context.Background(), b.scope, pl.Steps[1], nil)
	if r.Outcome != plan.OutcomeWait || r.After != b.scope.Site.DHCP.Settle || !b.srv.Pending() {
		t.Fatalf("after the reload: %+v, pending %v", r, b.srv.Pending())
	}
	r = b.connect().Run(context.Background(), b.scope, pl.Steps[1], r.Memo)
	if r.Outcome != plan.OutcomeDone || b.srv.Pending() {
		t.Errorf("after the look: %+v, pending %v", r, b.srv.Pending())
	}
}

// TestServiceAlone: read without any reservation.
func TestServiceAlone(t *testing.T) {
	b := newBench(t, dhcptest.Options{})
	address := plan.Address{Site: "lon14", System: "dhcp", Kind: "service"}
	live := b.p.Read(context.Background(), b.scope, []plan.Resource{{Address: address}})[address]
	if live.Fault != nil || string(plan.ToJSON(live.Value)) != `{"pending":false,"state":"active"}` {
		t.Errorf("%s, %v", plan.ToJSON(live.Value), live.Fault)
	}
}

// TestTogether runs many steps at once on one provider.
func TestTogether(t *testing.T) {
	var devices []*plan.Intent
	for n := range 9 {
		devices = append(devices, device(n+1))
	}
	b := newBench(t, dhcptest.Options{}, devices...)
	steps := b.look(b.p).Steps
	var wait sync.WaitGroup
	for _, s := range steps[:9] {
		wait.Go(func() {
			if r := b.p.Run(context.Background(), b.scope, s, nil); r.Fault != nil {
				t.Errorf("%s: %v", s.Address, r.Fault)
			}
		})
	}
	wait.Wait()
	if f := b.step(b.p, steps[9]); f != nil {
		t.Fatal(f)
	}
	b.settled()
	if got := b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Method == "ssh.login" }); got != 2 {
		t.Errorf("%d logins, want one of the run and one of the last look", got)
	}
}

// TestRollbackBesideAnotherRun: what another run left pending stays pending.
func TestRollbackBesideAnotherRun(t *testing.T) {
	b := newBench(t, dhcptest.Options{Static: []string{"02:00:5e:10:00:55,192.0.2.11,printer"}}, device(1))
	steps := b.look(b.p).Steps
	if f := b.step(b.p, steps[0]); f != nil {
		t.Fatal(f)
	}
	r := b.p.Run(context.Background(), b.scope, steps[1], nil)
	r = b.p.Run(context.Background(), b.scope, steps[1], r.Memo)
	if r.Outcome != plan.OutcomeWait || r.Memo["why"] == "" {
		t.Fatalf("%+v", r)
	}
	b.srv.PutFile(at(".enroll-pending"), "of another run\n", 0o644)
	r = b.p.Run(context.Background(), b.scope, steps[1], r.Memo)
	b.wantFault(r.Fault, plan.CodeDHCPUnhealthy, "another run changed files meanwhile")
	if !b.srv.Pending() {
		t.Error("the other run's marker is gone")
	}
}

// TestIdleConnectionLost: a connection that ended between two exchanges is no
// fault of the next.
func TestIdleConnectionLost(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	h := newPauses()
	b.after = h.after
	b.p = b.connect()
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	b.srv.Cut()
	h.stopped(15*time.Second, 1) // the client has seen it: it asks for no sign of life any more
	if f := fault(b.look(b.p)); f != nil {
		t.Error(f)
	}
}

// TestOwned: the difference of an owned device is shown and reloads nothing.
func TestOwned(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	kinds := dhcp.Kinds()
	world := b.p.Read(context.Background(), b.scope, plan.Desired(b.scope, kinds))
	pl := plan.Build(plan.Input{Scope: b.scope, Kinds: kinds, World: world, Owners: map[string]plan.Ownership{
		"gpu-001": {Node: "gpu-001", State: "active", Owned: true, Satisfied: true, Reason: "it is active"},
	}})
	if len(pl.Steps) != 1 || pl.Steps[0].Blocked == nil || pl.Steps[0].Address.KindName() != "dhcp.reservation" {
		for _, s := range pl.Steps {
			t.Errorf("%s %+v", s.Address, s.Blocked)
		}
	}
}
