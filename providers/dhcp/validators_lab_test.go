//go:build lab

package dhcp_test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

// TestLabValidators has the daemons' own checks judge what is rendered, in both
// families and with options. Each of them also refuses what it is known to refuse:
// a check that passes everything would prove nothing.
func TestLabValidators(t *testing.T) {
	for name, c := range map[string]struct {
		service string
		v6      bool
		address string
		options []plan.DHCPOption
		main    string // %INDEX% is the index
		refused string // a further file that is refused beside the rendered ones
		program []string
	}{
		"Kea": {"kea", false, "192.0.2.11", []plan.DHCPOption{{Name: "ntp-servers", Value: "192.0.2.123"}, {Name: "domain-name", Value: "oob.example"}},
			`{ "Dhcp4": { "interfaces-config": { "interfaces": [ "lo" ] }, "lease-database": { "type": "memfile", "persist": false },
			  "subnet4": [ { "id": 1, "subnet": "192.0.2.0/24", "reservations": <?include "%INDEX%"?> } ] } }`,
			`{ "hw-address": "02:00:5e:10:00:99", "ip-address": "192.0.2.11" }`, []string{"/usr/sbin/kea-dhcp4", "-t"}},
		"Kea, IPv6": {"kea", true, "2001:db8::11", []plan.DHCPOption{{Name: "dns-servers", Value: "2001:db8::53"}},
			`{ "Dhcp6": { "interfaces-config": { "interfaces": [ "lo" ] }, "lease-database": { "type": "memfile", "persist": false },
			  "subnet6": [ { "id": 1, "subnet": "2001:db8::/64", "reservations": <?include "%INDEX%"?> } ] } }`,
			`{ "hw-address": "02:00:5e:10:00:99", "ip-addresses": [ "2001:db8::11" ] }`, []string{"/usr/sbin/kea-dhcp6", "-t"}},
		"ISC": {"isc", false, "192.0.2.11", []plan.DHCPOption{{Name: "ntp-servers", Value: "192.0.2.123"}, {Name: "domain-name", Value: `"oob.example"`}},
			"subnet 192.0.2.0 netmask 255.255.255.0 { }\ninclude \"%INDEX%\";\n",
			"host gpu-001-bmc { hardware ethernet 02:00:5e:10:00:99; }\n", []string{"/usr/sbin/dhcpd", "-t", "-4", "-cf"}},
		"ISC, IPv6": {"isc", true, "2001:db8::11", []plan.DHCPOption{{Name: "dhcp6.name-servers", Value: "2001:db8::53"}},
			"subnet6 2001:db8::/64 { }\ninclude \"%INDEX%\";\n",
			"host gpu-001-bmc { hardware ethernet 02:00:5e:10:00:99; }\n", []string{"/usr/sbin/dhcpd", "-t", "-6", "-cf"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(c.program[0]); err != nil {
				t.Skipf("%s is not installed; make lab-up installs it", c.program[0])
			}
			folder := t.TempDir()
			settings := plan.DHCPSettings{Service: c.service, IPv6: c.v6, Directory: folder, Options: c.options}
			write := func(name, content string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			index, _ := dhcp.RenderIndex(settings, nil)
			main := filepath.Join(folder, "main")
			write("main", strings.ReplaceAll(c.main, "%INDEX%", index))
			check := func(names ...string) (string, error) {
				t.Helper()
				_, text := dhcp.RenderIndex(settings, names)
				write(filepath.Base(index), text)
				out, err := exec.Command(c.program[0], append(c.program[1:], main)...).CombinedOutput()
				return string(out), err
			}
			var names []string
			for i, name := range []string{"gpu-001-bmc", "include", "subnet", "host", "enroll--3iu3n9o-bmc", strings.Repeat("a", 63)} {
				address := netip.MustParseAddr(c.address)
				for range i {
					address = address.Next()
				}
				e := dhcp.Entry{DeviceID: int64(1001 + i), Device: "gpu-001", MAC: mac(i + 1), Address: address, Name: name}
				names = append(names, dhcp.FileName(settings, e))
				write(dhcp.FileName(settings, e), dhcp.Render(settings, e))
			}
			if out, err := check(); err != nil {
				t.Errorf("no reservation: %v\n%s", err, out)
			}
			if out, err := check(names...); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			extension := filepath.Ext(names[0])
			write("zz"+extension, c.refused)
			if out, err := check(append(names, "zz"+extension)...); err == nil {
				t.Errorf("a double reservation passes\n%s", out)
			}
		})
	}
}
