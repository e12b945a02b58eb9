package dhcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

// included is a configuration that takes hosts from a file elsewhere, with the
// MAC of device 1 in it.
var included = map[string]struct{ main, at, text string }{
	"dnsmasq": {"dhcp-range=192.0.2.0,static,255.255.255.0,1h\nconf-dir=/srv/more,*.conf\ndhcp-hostsdir=/etc/enroll-hosts.d\n", "/srv/more/printers.conf", "dhcp-host=02:00:5e:10:00:01,192.0.2.77,printer\n"},
	"kea": {`{ "Dhcp4": { "reservations": <?include "/srv/printers"?>, "subnet4": [ { "id": 1, "subnet": "192.0.2.0/24",
		"reservations": <?include "/etc/kea/enroll.d/index.json"?> } ] } }`, "/srv/printers", `[ { "hw-address": "02:00:5e:10:00:01", "ip-address": "192.0.2.77", "hostname": "printer" } ]`},
	"isc": {"include \"/srv/printers\";\nsubnet 192.0.2.0 netmask 255.255.255.0 { }\ninclude \"/etc/dhcp/enroll.d/index.conf\";\n", "/srv/printers", "host printer { hardware ethernet 02:00:5e:10:00:01; fixed-address 192.0.2.77; }\n"},
}

// TestIncluded: what the main configuration takes from elsewhere counts, and is
// read in the same exchange; what cannot be read is said, once.
func TestIncluded(t *testing.T) {
	for _, service := range services {
		c := included[service]
		t.Run(service, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{Service: service, Main: c.main}, device(1), device(2))
			b.srv.PutFile(c.at, c.text, 0o644)
			if !b.srv.Restart() {
				t.Fatal("the machine does not start")
			}
			pl := b.look(b.p)
			b.wantFault(fault(pl), plan.CodeDHCPConflict, "gpu-001 needs MAC 02:00:5e:10:00:01, which "+c.at+" already has")
			if n := b.p.Requests(); n > 2 { // the login and the look
				t.Errorf("%d exchanges", n)
			}
			if got := addresses(pl); strings.Contains(got, "gpu-001") || !strings.Contains(got, "gpu-002") {
				t.Errorf("steps: %s", got)
			}

			b.srv.Chown(c.at, map[string]string{"dnsmasq": "dnsmasq", "kea": "_kea", "isc": "root"}[service], 0o600) // the server's own
			pl = b.look(b.connect())
			if f := fault(pl); f != nil {
				t.Fatal(f)
			}
			var said []string
			for _, d := range pl.Diagnostics {
				if d.Severity == plan.SeverityWarning {
					said = append(said, d.Fault.Error())
				}
			}
			if len(said) != 1 || !strings.Contains(said[0], c.at) || strings.Contains(said[0], "\n") {
				t.Errorf("warnings: %q", said)
			}
			// The account's own check cannot read it either: sudo's counts.
			b.scope.Targets = b.scope.Targets[1:]
			b.end()
			if f := b.converge(b.p); f != nil {
				t.Fatal(f)
			}
			if got, _ := b.srv.Lease(mac(2)); got != device(2).OOB {
				t.Errorf("the BMC gets %s", got)
			}
			for _, f := range b.connect().Probe(context.Background(), b.scope.Site) {
				if strings.Contains(f.What, "configuration") && !strings.Contains(f.Note, c.at) {
					t.Errorf("doctor says: %+v", f)
				}
			}
		})
	}
}
