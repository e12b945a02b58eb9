package dhcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

// TestRollbackTwice: a rollback after which the service was not proved leaves the
// marker, and the former content kept: the rollback of the next run restores it again.
func TestRollbackTwice(t *testing.T) {
	for _, service := range services {
		for _, links := range []bool{true, false} {
			s := arrange(t, service, 1)
			s.scope.Site.DHCP.Settle = 3 * time.Second
			s.p = s.connect()
			s.srv.Set(func(m *dhcptest.Behaviour) { m.DieOnReload, m.NoLink = true, !links })
			s.wantFault(s.converge(s.p), plan.CodeDHCPUnhealthy, "NO HOST OF THIS SITE IS SERVED")
			s.srv.Set(func(m *dhcptest.Behaviour) { m.DieOnReload, m.DiesOf = false, mac(1) })
			s.srv.Start() // by a person
			s.later()
			s.wantFault(s.converge(s.p), plan.CodeDHCPUnhealthy, "the former files stand again and the unit is active")
			if at, want := s.file(s.old); mustRead(s, at) != want {
				t.Errorf("%s: the former file does not stand there", service)
			}
			if got, _ := s.srv.Lease(s.old.MAC); got != s.old.Address {
				t.Errorf("%s: the former reservation is served with %v", service, got)
			}
			s.srv.Set(func(m *dhcptest.Behaviour) { m.DiesOf = plan.MAC{} })
			if f := s.converge(s.p); f != nil {
				t.Fatalf("%s: %v", service, f)
			}
			s.arrived("in the end")
			for _, name := range s.srv.Files() {
				if strings.HasSuffix(name, ".enroll-old") {
					t.Errorf("%s: %s is left", service, name)
				}
			}
		}
	}
}

// TestNothingKept: a marker lists a file for which nothing is kept any more. What
// stands there then is what a rollback of the next run restores.
func TestNothingKept(t *testing.T) {
	b := newBench(t, dhcptest.Options{Service: "kea"}, device(1), device(5))
	b.stand(entry(device(1)))
	b.srv.PutFile(b.at(".enroll-pending"), "# enroll changed files; the service was not yet proved healthy with them (0123456789abcdef)\n~ index.json\n", 0o644)
	b.srv.Chown(b.at(".enroll-pending"), "enroll", 0o644)
	b.srv.Set(func(is *dhcptest.Behaviour) { is.DeafTo = mac(5) })
	b.wantFault(b.converge(b.p), plan.CodeDHCPUnhealthy, "rollback")
	if err := b.srv.WouldStart(); err != nil {
		t.Errorf("a restart would fail: %v", err)
	}
	if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
		t.Errorf("the neighbour gets %s", got)
	}
}
