package dhcp_test

import (
	"net/netip"
	"path"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

// TestHostileDevices takes devices whose names mean something to a shell, a file
// system, a reader's eye or a server's grammar through a whole run on each server.
// Every one has a file of its own with a plain name, and its address; a name that
// does not fit is refused alone. What stood on the machine stands there still.
func TestHostileDevices(t *testing.T) {
	const mapped, refused = "mapped", "refused"
	names := []struct {
		device string
		bare   string // its reservation's name without a suffix, or what becomes of it
		suffix string // the same with the suffix -bmc
	}{
		{`"; rm -rf /`, mapped, mapped}, {"a\nb", mapped, mapped}, {"../x", mapped, mapped}, {strings.Repeat("a", 255), refused, refused},
		{"index", mapped, "index-bmc"}, {".hidden", mapped, mapped}, {"-rf", mapped, mapped}, {"$(reboot)", mapped, mapped}, {"`id`", mapped, mapped},
		{"a'b", mapped, mapped}, {"*", mapped, mapped}, {"~", mapped, mapped}, {"a/b", mapped, mapped}, {"a,b", mapped, mapped}, {"\x00", mapped, mapped}, {"\xff\xfe", mapped, mapped},
		// Of "gpu-001": a hyphen that is none, a letter of another alphabet, another width, an invisible one.
		{"gpu-001", "gpu-001", "gpu-001-bmc"}, {"gpu\u2011001", mapped, mapped}, {"g\u0440u-001", mapped, mapped}, {"\uff47pu-001", mapped, mapped}, {"gpu-\u200b001", mapped, mapped}, {"gpu\u2212001", mapped, mapped},
		{"enroll--x", mapped, mapped}, // the form of a mapped name
		// dhcpd
		{"host", "host", "host-bmc"}, {"subnet", "subnet", "subnet-bmc"}, {"include", "include", "include-bmc"}, {"group", "group", "group-bmc"}, {"option", "option", "option-bmc"}, {"if", "if", "if-bmc"}, {"x { }", mapped, mapped},
		// Kea
		{"reservations", "reservations", "reservations-bmc"}, {"null", "null", "null-bmc"}, {"hw-address", "hw-address", "hw-address-bmc"}, {`<?include "x"?>`, mapped, mapped}, {"//x", mapped, mapped},
		// dnsmasq
		{"ignore", mapped, "ignore-bmc"}, {"infinite", mapped, "infinite-bmc"}, {"12h", mapped, "12h-bmc"}, {"id:*", mapped, mapped}, {"set:x", mapped, mapped}, {"tag", "tag", "tag-bmc"}, {"#x#", mapped, mapped},
	}
	for _, service := range services {
		for _, suffix := range []string{"", "-bmc"} {
			t.Run(service+suffix, func(t *testing.T) {
				var devices []*plan.Intent
				for n, c := range names {
					d := device(1)
					d.Name, d.ID, d.BMCMAC[5], d.OOB = c.device, int64(2000+n), byte(n+1), netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 2)})
					devices = append(devices, d)
				}
				b := newBench(t, dhcptest.Options{Service: service}, devices...)
				b.scope.Site.DHCP.NameSuffix = suffix
				const foreign = "# somebody's\n"
				b.srv.PutFile("/etc/x", foreign, 0o600)
				b.srv.PutFile(b.at(".hidden"), foreign, 0o600)
				b.p = b.connect()
				pl := b.look(b.p)
				if f := b.apply(b.p, pl); f != nil {
					t.Fatal(f)
				}
				seen := map[string]string{}
				for n, c := range names {
					want := c.bare
					if suffix != "" {
						want = c.suffix
					}
					got, served := b.srv.Lease(devices[n].BMCMAC)
					if served != (want != refused) || served && got != devices[n].OOB {
						t.Errorf("%q gets %s", c.device, got)
					}
					if want == refused {
						continue
					}
					name, found := fileOf(b, devices[n])
					if device, ok := dhcp.DeviceOf(b.scope.Site.DHCP, name); !found || !ok || device != c.device || (want != mapped && name != want) || want == mapped && !strings.HasPrefix(name, "enroll--") {
						t.Errorf("%q stands as %q, read as %q", c.device, name, device)
					}
					if other, twice := seen[name]; twice {
						t.Errorf("%q and %q are both %s", c.device, other, name)
					}
					seen[name] = c.device
				}
				for _, at := range []string{"/etc/x", b.at(".hidden")} {
					if got, _ := b.srv.ReadFile(at); got != foreign {
						t.Errorf("%s holds %q", at, got)
					}
				}
				if f := fault(b.look(b.connect())); f == nil || f.Code != plan.CodeIntentInvalid || !strings.Contains(f.Summary, "longer than 63") {
					t.Errorf("the long name: %v", f)
				}
			})
		}
	}
}

// fileOf finds the file with a device's mark, and gives the name of its reservation.
func fileOf(b *bench, d *plan.Intent) (name string, found bool) {
	for _, file := range b.srv.Files() {
		text, _ := b.srv.ReadFile(b.at(file))
		if !strings.HasPrefix(file, ".") && !strings.HasPrefix(file, "index.") && strings.Contains(text, d.BMCMAC.String()) {
			return strings.TrimSuffix(file, path.Ext(file)), true
		}
	}
	return "", false
}
