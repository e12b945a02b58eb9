package dhcp_test

import (
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

// TestKeptIndexUsedUp: a rollback after which the service was not proved leaves the
// marker and has used up the index that was kept. The rollback of the next run leaves
// no index all the same that lists a file which is gone.
func TestKeptIndexUsedUp(t *testing.T) {
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
