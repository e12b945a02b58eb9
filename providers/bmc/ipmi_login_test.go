package bmc_test

import (
	"context"
	"net"
	"strings"
	"testing"

	ipmi "github.com/bougou/go-ipmi/pkg/bmc"
	ipmiclock "github.com/bougou/go-ipmi/pkg/clock"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/server"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// ipmiServer listens on a port of its own, with the monitoring account and one
// cipher suite.
func ipmiServer(t *testing.T, suite types.CipherSuiteID) int {
	t.Helper()
	b := ipmi.New(ipmi.DeviceInfo{DeviceID: 1, IPMIVersion: 0x20}, [16]byte{1}, mock.New(), ipmi.WithClock(ipmiclock.Real))
	user, err := b.Users.Add(2, monitorName)
	if err != nil {
		t.Fatal(err)
	}
	user.SetPassword([]byte(monitorPassword))
	user.Enabled = true
	user.ChannelAccess[1] = ipmi.UserChannelAccess{MaxPrivilege: ipmi.PrivilegeLevelUser, Enabled: true}
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server.NewServer(b, socket, server.WithCipherSuites([]types.CipherSuiteID{suite}))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(context.Background()) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return socket.LocalAddr().(*net.UDPAddr).Port
}

// ipmiWorld has the account set over Redfish and asks IPMI at a port.
func ipmiWorld(t *testing.T, port int, vaults string) *world {
	t.Helper()
	w := newWorld(t, machine(bmctest.XCC))
	w.ipmiPort = port
	w.scope.Site.BMC.VerifyIPMI = true
	w.monitor(monitorName, vaults)
	return w
}

// checkLogin runs the verify step of a plan that sets the account.
func checkLogin(t *testing.T, w *world, verdict plan.CheckVerdict, observed string) {
	t.Helper()
	p := w.build(w.read())
	s := stepOf(p, "ipmi")
	if s == nil || s.Action != plan.ActionVerify || !strings.Contains(strings.Join(s.Because, " "), "bmc.ipmi_user") {
		t.Fatalf("%s %+v", steps(p), p.Diagnostics)
	}
	user := stepOf(p, "ipmi_user")
	if len(s.Needs) == 0 || user == nil {
		t.Errorf("%s needs %v", s.Address, s.Needs)
	}
	var memo plan.Memo
	for range 3 {
		r := w.client.Run(t.Context(), w.scope, s, memo)
		if memo = r.Memo; r.Outcome == plan.OutcomeWait {
			continue
		}
		if r.Outcome != plan.OutcomeDone || len(r.Checks) != 1 || r.Checks[0].Verdict != verdict || !strings.Contains(r.Checks[0].Observed, observed) || strings.Contains(r.Checks[0].Observed, monitorPassword) {
			t.Errorf("%s %+v %s", r.Outcome, r.Checks, faultText(r.Fault))
		}
		return
	}
	t.Error("never done")
}

// Both cipher suites are taken, and a wrong password is seen to fail.
func TestIPMILogin(t *testing.T) {
	for suite, text := range map[types.CipherSuiteID]string{types.CipherSuiteID17: "suite 17", types.CipherSuiteID3: "suite 3"} {
		port := ipmiServer(t, suite)
		w := ipmiWorld(t, port, monitorPassword)
		checkLogin(t, w, plan.CheckPass, text)
		// Where nothing is planned the check is made at once.
		if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
			t.Fatal(faultText(f))
		}
		p := w.build(w.read())
		if stepOf(p, "ipmi") != nil || checkOf(p) != plan.CheckPass {
			t.Errorf("%s %+v", steps(p), p.Checks)
		}
		w.close()
		w = ipmiWorld(t, port, "Wrong-2-Password")
		checkLogin(t, w, plan.CheckFail, "did not let the monitoring account in")
		w.close()
	}
}

func checkOf(p *plan.Plan) plan.CheckVerdict {
	for _, c := range p.Checks {
		if c.Address.Kind == "ipmi" {
			return c.Verdict
		}
	}
	return ""
}
