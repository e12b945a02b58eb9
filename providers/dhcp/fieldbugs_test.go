package dhcp_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// Mistakes that other tools made in the field. Each keeps the name of the report.

// TestField_luci1079_PiHole2058_nethsecurity1254: one entry with an address that
// another has took the whole service down. Here neither two devices of a run, nor
// a file of the folder, nor a host of the server's own configuration may share one.
func TestField_luci1079_PiHole2058_nethsecurity1254(t *testing.T) {
	static := map[string]string{
		"dnsmasq": "dhcp-host=02:00:5e:99:00:01,192.0.2.11,printer\n",
		"isc":     "host printer { hardware ethernet 02:00:5e:99:00:01; fixed-address 192.0.2.11; }\n",
		"kea":     `"reservations": [ { "hw-address": "02:00:5e:99:00:01", "ip-address": "192.0.2.11" } ],`,
	}
	for _, service := range services {
		two := device(2)
		two.OOB = device(1).OOB
		b := newBench(t, dhcptest.Options{Service: service}, device(1), two)
		b.wantFault(fault(b.look(b.p)), plan.CodeDHCPConflict, "gpu-001", "gpu-002", "192.0.2.11")

		other := entry(device(7))
		other.Address = device(1).OOB
		b = newBench(t, dhcptest.Options{Service: service}, device(1))
		b.stand(other)
		b.wantFault(fault(b.look(b.p)), plan.CodeDHCPConflict, "address 192.0.2.11", "device of that file: 1007")

		b = newBench(t, dhcptest.Options{Service: service}, device(1))
		main, _ := b.srv.ReadFile(b.scope.Site.DHCP.Config)
		text := main + static[service]
		if service == "kea" {
			text = strings.Replace(main, `"subnet4"`, static[service]+` "subnet4"`, 1)
		}
		b.srv.PutFile(b.scope.Site.DHCP.Config, text, 0o644)
		b.wantFault(fault(b.look(b.p)), plan.CodeDHCPConflict, "address 192.0.2.11", b.scope.Site.DHCP.Config)
		if got := b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Mutating }); got != 0 {
			t.Errorf("%s: %d writes", service, got)
		}
	}
}

// TestField_openwrt17041: the same MAC in another case passed as another one.
func TestField_openwrt17041(t *testing.T) {
	for service, c := range map[string]struct{ name, text string }{
		"dnsmasq": {"old", "B0:7F:00:00:00:01,192.0.2.99,old\n"},
		"isc":     {"old.conf", "host old { hardware ethernet B0:7F:00:00:00:01; fixed-address 192.0.2.99; }\n"},
		"kea":     {"old.json", `{ "hw-address": "B0:7F:00:00:00:01", "ip-address": "192.0.2.99" }` + "\n"},
	} {
		i := device(1)
		i.BMCMAC = plan.MAC{0xb0, 0x7f, 0, 0, 0, 1}
		b := newBench(t, dhcptest.Options{Service: service}, i)
		b.srv.PutFile(b.at(c.name), c.text, 0o644)
		b.wantFault(fault(b.look(b.p)), plan.CodeDHCPConflict, "MAC b0:7f:00:00:00:01", b.at(c.name))
	}
}

// TestField_mitogenTruncated: an upload that was cut was served. Here the file
// under the live name is the whole old or the whole new one wherever the
// connection ends; TestEveryExchange does the rest.
func TestField_mitogenTruncated(t *testing.T) {
	for _, service := range services {
		s := arrange(t, service, 1)
		s.srv.Recorder().Inject(&exchange.Fault{Kind: exchange.HalfBody, Method: "sftp.write", Path: s.at(".gpu-001-bmc"), Times: 1})
		f := s.converge(s.p)
		s.wantFault(f, plan.CodeDHCPTransfer)
		s.disturbed("cut in the middle of a write", f)
		if f := s.converge(s.p); f != nil {
			t.Fatal(f)
		}
		_ = s.p.Close(t.Context())
		s.arrived("in the end")
	}
}

// TestPlaced: an address that the server would give to anybody, or that it does
// not know.
func TestPlaced(t *testing.T) {
	for _, service := range []string{"kea", "isc"} {
		for text, words := range map[string][]string{
			"192.0.2.245": {"dynamic pool 192.0.2.240 - 192.0.2.250"},
			"203.0.113.9": {"outside every subnet that the server declares", "192.0.2.0/24, 198.51.100.0/24"},
		} {
			i := device(1)
			i.OOB = netip.MustParseAddr(text)
			b := newBench(t, dhcptest.Options{Service: service}, i)
			b.wantFault(fault(b.look(b.p)), plan.CodeDHCPConflict, append(words, b.scope.Site.DHCP.Config)...)
		}
	}
}

// TestFamilies: an address of the family that the site does not serve is refused,
// and says what to do.
func TestFamilies(t *testing.T) {
	i := device(1)
	i.OOB = netip.MustParseAddr("2001:db8::11")
	b := newBench(t, dhcptest.Options{Service: "kea"}, i)
	b.wantFault(fault(b.look(b.p)), plan.CodeIntentInvalid, "serves IPv4", "IPv6 service (family)")
	b = newBench(t, dhcptest.Options{Service: "kea"}, device(1))
	b.scope.Site.DHCP.IPv6 = true
	b.wantFault(fault(b.look(b.connect())), plan.CodeIntentInvalid, "serves IPv6")
}

// TestForeignIndex: an index with something in it that enroll does not write is
// never replaced; a foreign file that it lists stays listed.
func TestForeignIndex(t *testing.T) {
	b := newBench(t, dhcptest.Options{Service: "isc"}, device(1))
	b.srv.PutFile(b.at("index.conf"), "include \"/etc/dhcp/enroll.d/printer.conf\";\noption domain-name \"x\";\n", 0o644)
	b.srv.PutFile(b.at("printer.conf"), "host printer { hardware ethernet 02:00:5e:99:00:01; fixed-address 192.0.2.99; }\n", 0o644)
	b.wantFault(fault(b.look(b.p)), plan.CodeDHCPForeignFile, "index.conf", "line 2")
	b.srv.PutFile(b.at("index.conf"), "include \"/etc/dhcp/enroll.d/printer.conf\";\ninclude \"/etc/dhcp/enroll.d/gone.conf\";\n", 0o644)
	b.srv.Chown(b.at("index.conf"), "enroll", 0o644)
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	const want = "include \"/etc/dhcp/enroll.d/gpu-001-bmc.conf\";\ninclude \"/etc/dhcp/enroll.d/printer.conf\";\n"
	if got, _ := b.srv.ReadFile(b.at("index.conf")); got != want {
		t.Errorf("the index holds %q", got)
	}
	if got, _ := b.srv.Lease(plan.MAC{2, 0, 0x5e, 0x99, 0, 1}); got.String() != "192.0.2.99" {
		t.Errorf("the printer's lease is %v", got)
	}
	b.settled()
}

// TestStaleEntry: the entry of a device that the site does not have is shown as
// drift and stays. A run for some devices cannot tell.
func TestStaleEntry(t *testing.T) {
	for _, service := range services {
		b := newBench(t, dhcptest.Options{Service: service}, device(1))
		b.stand(entry(device(1)), entry(device(7)))
		if pl := b.look(b.p); len(pl.Observed) != 0 {
			t.Errorf("%s: a run for one device observed %+v", service, pl.Observed)
		}
		b.scope.Whole = true
		pl := b.look(b.p)
		if len(pl.Observed) != 1 || pl.Observed[0].Rule != "stale" || !strings.Contains(pl.Observed[0].Text, "gpu-007-bmc") || !strings.Contains(pl.Observed[0].Text, "1007") {
			t.Errorf("%s: observed %+v", service, pl.Observed)
		}
		if addresses(pl) != "" {
			t.Errorf("%s: planned %s", service, addresses(pl))
		}
	}
}
