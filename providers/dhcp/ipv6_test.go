package dhcp_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

// device6 is a device whose BMC has an IPv6 address.
func device6(n int) *plan.Intent {
	d := device(n)
	d.OOB = netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 15: byte(0x10 + n)})
	return d
}

func newBench6(t *testing.T, service string, devices ...*plan.Intent) *bench {
	t.Helper()
	return newBench(t, dhcptest.Options{Service: service, IPv6: true}, devices...)
}

// TestIPv6 takes a reservation of a DHCPv6 service through its life: made, moved,
// removed; every time the service says what stands in the file.
func TestIPv6(t *testing.T) {
	for _, service := range []string{"kea", "isc"} {
		t.Run(service, func(t *testing.T) {
			d := device6(1)
			b := newBench6(t, service, d, device6(2))
			leased := func(want netip.Addr) {
				t.Helper()
				got, _ := b.srv.Lease(mac(1))
				if got != want {
					t.Errorf("the BMC gets %s, want %s", got, want)
				}
			}
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			leased(d.OOB)
			b.settled()
			b.end()
			d.OOB = netip.MustParseAddr("2001:db8::99")
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			leased(d.OOB)
			b.settled()
			b.end()
			b.scope.Targets, b.scope.Whole, b.scope.Parameters.PruneDHCP = b.scope.Targets[1:], true, true
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			leased(netip.Addr{})
			if got, _ := b.srv.Lease(mac(2)); got != device6(2).OOB {
				t.Errorf("the other BMC gets %s", got)
			}
		})
	}
}

// TestIPv6Refused: the server's own check says no to one entry, and the service
// goes on with the others.
func TestIPv6Refused(t *testing.T) {
	for service, config := range map[string]string{
		"kea": `{ "hw-address": "02:00:5e:10:00:01", "ip-addresses": [ "2001:db8::77" ] }`,
		"isc": "host foreign { hardware ethernet 02:00:5e:10:00:01; fixed-address6 2001:db8::77; }\n",
	} {
		t.Run(service, func(t *testing.T) {
			b := newBench6(t, service, device6(1), device6(2))
			name := map[string]string{"kea": "foreign.json", "isc": "foreign.conf"}[service]
			b.srv.PutFile(b.at(name), config, 0o644)
			pl := b.look(b.p)
			b.wantFault(fault(pl), plan.CodeDHCPConflict, "MAC 02:00:5e:10:00:01", name)
			if f := b.apply(b.p, pl); f != nil {
				t.Fatal(f)
			}
			if got, _ := b.srv.Lease(mac(2)); got != device6(2).OOB {
				t.Errorf("the other BMC gets %s", got)
			}
		})
	}
}

// TestIPv6Deaf: the process of DHCPv6 is gone, or has no socket, and systemd still
// says active.
func TestIPv6Deaf(t *testing.T) {
	for _, service := range []string{"kea", "isc"} {
		t.Run(service, func(t *testing.T) {
			d := device6(1)
			b := newBench6(t, service, device6(2))
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			b.scope.Site.DHCP.Settle = 3 * time.Second // longer than a daemon lives that ends at once
			b.end()
			b.scope.Targets = append(b.scope.Targets, &plan.Target{Site: b.scope.Site, Intent: d})
			b.srv.Set(func(is *dhcptest.Behaviour) {
				if service == "isc" {
					is.DiesOf = d.BMCMAC
				} else {
					is.DeafTo = d.BMCMAC
				}
			})
			b.wantFault(b.converge(b.p), plan.CodeDHCPUnhealthy, "the former files stand again and the unit is active")
			if got, _ := b.srv.Lease(mac(2)); !b.srv.Serving() || got != device6(2).OOB {
				t.Errorf("the other BMC gets %s", got)
			}
		})
	}
}

// TestOtherFamily: an address of the other family, of a subnet that is not served, or
// of a pool is a fault that says what to correct.
func TestOtherFamily(t *testing.T) {
	at := func(text string) *plan.Intent {
		d := device(1)
		d.OOB = netip.MustParseAddr(text)
		return d
	}
	for name, c := range map[string]struct {
		service string
		v6      bool
		device  *plan.Intent
		code    plan.Code
		says    string
	}{
		"Kea v4, v6 address":   {"kea", false, at("2001:db8::11"), plan.CodeIntentInvalid, "serves IPv4"},
		"ISC v4, v6 address":   {"isc", false, at("2001:db8::11"), plan.CodeIntentInvalid, "serves IPv4"},
		"dnsmasq, v6 address":  {"dnsmasq", false, at("2001:db8::11"), plan.CodeIntentInvalid, "serves IPv4"},
		"Kea v6, v4 address":   {"kea", true, at("192.0.2.11"), plan.CodeIntentInvalid, "serves IPv6"},
		"ISC v6, v4 address":   {"isc", true, at("192.0.2.11"), plan.CodeIntentInvalid, "serves IPv6"},
		"Kea v6, mapped":       {"kea", true, at("::ffff:192.0.2.11"), plan.CodeIntentInvalid, "serves IPv6"},
		"Kea v6, multicast":    {"kea", true, at("ff02::1"), plan.CodeIntentInvalid, "no host can have"},
		"Kea v6, other subnet": {"kea", true, at("2001:db8:1::11"), plan.CodeDHCPConflict, "outside every subnet"},
		"ISC v6, other subnet": {"isc", true, at("2001:db8:1::11"), plan.CodeDHCPConflict, "outside every subnet"},
		"Kea v6, pool":         {"kea", true, at("2001:db8::f010"), plan.CodeDHCPConflict, "dynamic pool"},
		"ISC v6, pool":         {"isc", true, at("2001:db8::f010"), plan.CodeDHCPConflict, "dynamic pool"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{Service: c.service, IPv6: c.v6}, c.device)
			pl := b.look(b.p)
			b.wantFault(fault(pl), c.code, c.says)
			if got := addresses(pl); strings.Contains(got, "reservation") {
				t.Errorf("steps: %s", got)
			}
		})
	}
	_, err := dhcp.New(plan.DHCPSettings{Service: "dnsmasq", IPv6: true, Host: "h", User: "u", Directory: "/d"}, dhcp.Credentials{}, dhcp.Options{})
	if err == nil || !strings.Contains(err.Error(), "not with dnsmasq") {
		t.Errorf("dnsmasq with IPv6: %v", err)
	}
}

// TestIPv6Expected: nobody is asked with the wrong protocol.
func TestIPv6Expected(t *testing.T) {
	site := &plan.Site{Name: "lon14", ConfigureDHCP: true, DHCP: &plan.DHCPSettings{Service: "kea", IPv6: true, Directory: "/d"}}
	if _, _, f := dhcp.Expected(&plan.Target{Site: site, Intent: device6(1)}); f == nil || f.Code != plan.CodeDHCPRelay {
		t.Errorf("%v", f)
	}
}

// TestIPv6Sudoers: what the account may run is of the daemon of DHCPv6.
func TestIPv6Sudoers(t *testing.T) {
	for service, want := range map[string]string{"kea": "/usr/sbin/kea-dhcp6 -t /etc/kea/kea-dhcp6.conf", "isc": "/usr/sbin/dhcpd -t -6 -cf /etc/dhcp/dhcpd6.conf"} {
		if got := strings.Join(dhcp.SudoCommands(plan.DHCPSettings{Service: service, IPv6: true}), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", service, got)
		}
	}
}
