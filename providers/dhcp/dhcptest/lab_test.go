//go:build lab

package dhcptest_test

import (
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

// TestConformanceLab runs the table against the lab's sshd and dnsmasq.
func TestConformanceLab(t *testing.T) {
	env := func(name string) string {
		v := os.Getenv(name)
		if v == "" {
			t.Fatalf("%s is not set; run make lab-test", name)
		}
		return v
	}
	file := func(name string) []byte {
		b, err := os.ReadFile(env(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	port, err := strconv.Atoi(env("ENROLL_LAB_SSH_PORT"))
	if err != nil {
		t.Fatal(err)
	}
	const deadline = 20 * time.Second
	conformance(t, &machine{
		settings: plan.DHCPSettings{
			Host: env("ENROLL_LAB_SSH_HOST"), Port: port, User: env("ENROLL_LAB_SSH_USER"),
			Service: "dnsmasq", Directory: env("ENROLL_LAB_DHCP_DIRECTORY"), Unit: env("ENROLL_LAB_DHCP_UNIT"),
			Timeouts: plan.DHCPTimeouts{Connect: deadline, Login: deadline, Command: deadline, Transfer: deadline},
			Settle:   time.Second,
		},
		credentials: dhcp.Credentials{Identity: plan.NewSecret(string(file("ENROLL_LAB_SSH_KEY")), ""), KnownHosts: file("ENROLL_LAB_SSH_KNOWN_HOSTS")},
		host:        hosts(t, env("ENROLL_LAB_DHCP_SUBNET")),
	}, func() {})
}

// hosts gives the addresses from .201 of a subnet, written with or without its length.
func hosts(t *testing.T, subnet string) func(int) netip.Addr {
	t.Helper()
	if p, err := netip.ParsePrefix(subnet); err == nil {
		subnet = p.Masked().Addr().String()
	}
	a, err := netip.ParseAddr(subnet)
	if err != nil || !a.Is4() {
		t.Fatalf("ENROLL_LAB_DHCP_SUBNET is %q", subnet)
	}
	return func(n int) netip.Addr {
		b := a.As4()
		b[3] = byte(200 + n)
		return netip.AddrFrom4(b)
	}
}
