package bmc_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// A BMC is asked at its out-of-band address; the lab leads that elsewhere.
func TestOutOfBandAddress(t *testing.T) {
	w := newWorld(t)
	w.fleet = bmctest.New(bmctest.Options{Addresses: []net.IP{net.IPv4(198, 18, 0, 7)}})
	defer w.fleet.Close()
	m := machine(bmctest.IDRAC)
	m.Name = "gpu-007"
	b := w.fleet.Add(m)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, w.fleet.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	site := w.scope.Site
	site.BMC.CAFile = ca
	w.scope.Targets = []*plan.Target{{Site: site, Intent: &plan.Intent{Name: m.Name, OOB: netip.MustParseAddr("198.18.0.7")}}}
	var asked []string
	c, err := bmc.New(*site.BMC, w, bmc.Options{Now: time.Now, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		asked = append(asked, address)
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(b.URL, "https://"))
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.client = c
	if live := w.live(w.read(), "credential"); live.Presence != plan.Present || len(asked) != 1 || asked[0] != "198.18.0.7:443" {
		t.Errorf("%s %s, asked %v", live.Presence, faultText(live.Fault), asked)
	}
	w.close()

	w.scope.Targets[0].Intent.OOB = netip.Addr{}
	w.connect()
	if live := w.live(w.read(), "credential"); live.Presence != plan.Unreadable || live.Fault.Code != plan.CodeIntentIncomplete {
		t.Errorf("no address: %s %s", live.Presence, faultText(live.Fault))
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	for _, file := range []string{empty, filepath.Join(dir, "missing.pem")} {
		if _, err := bmc.New(plan.BMCSettings{CAFile: file}, w, bmc.Options{Now: time.Now}); plan.AsFault(err) == nil || plan.AsFault(err).Code != plan.CodeConfigInvalid {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := bmc.New(plan.BMCSettings{}, w, bmc.Options{}); err == nil {
		t.Error("no clock")
	}
}
