package dhcp_test

import (
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

// TestClockPutBack: the server's clock is put back in the moment of the reload. What
// is well is called well, and a reload that did not take is still found.
func TestClockPutBack(t *testing.T) {
	for _, service := range services {
		for _, step := range []time.Duration{5 * time.Second, time.Hour} {
			t.Run(service+" "+step.String(), func(t *testing.T) {
				b := newBench(t, dhcptest.Options{Service: service}, device(1), device(2))
				b.stand(entry(device(1)))
				b.clock.pass(time.Minute)
				b.srv.Set(func(is *dhcptest.Behaviour) { is.StepsBack = step })
				if f := b.converge(b.p); f != nil {
					t.Fatal(f)
				}
				if got, _ := b.srv.Lease(mac(2)); got != device(2).OOB {
					t.Errorf("the BMC gets %s", got)
				}
				b.settled()
			})
		}
	}
	b := newBench(t, dhcptest.Options{Service: "kea"}, device(1))
	b.srv.Set(func(is *dhcptest.Behaviour) { is.StepsBack, is.LostReload = 5*time.Second, true })
	b.wantFault(b.converge(b.p), plan.CodeDHCPUnhealthy)
}
