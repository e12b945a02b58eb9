package dhcp

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

// TestCheck: who has an index has a check, with an absolute path: a normal user's
// PATH has no sbin.
func TestCheck(t *testing.T) {
	for service, want := range map[string]string{
		"kea": "/usr/sbin/kea-dhcp4 -t /c", "isc": "/usr/sbin/dhcpd -t -4 -cf /c",
	} {
		s := settingsOf(service, false)
		fl, _ := flavourOf(&s)
		if fl.index == "" || fl.check == nil || fl.check("/c") != want {
			t.Errorf("%s: index %q, check %v", service, fl.index, fl.check != nil)
		}
	}
	s := settingsOf("kea", true)
	if fl, _ := flavourOf(&s); fl.check("/c") != "/usr/sbin/kea-dhcp6 -t /c" || fl.socket != "547" {
		t.Error("DHCPv6 is checked as DHCPv4")
	}
}

// TestSurvey reads what people write in the three languages.
func TestSurvey(t *testing.T) {
	prefix := netip.MustParsePrefix
	addr := netip.MustParseAddr
	for name, c := range map[string]struct {
		read         func(string) survey
		text         string
		claims       []string
		subnets      []netip.Prefix
		pools        []span
		opaqueWanted bool
	}{
		"ISC": {surveyISC, `
# host commented { hardware ethernet 02:00:5e:00:00:99; }
subnet 192.0.2.0 netmask 255.255.255.0 {
  pool { allow unknown-clients; range 192.0.2.100 192.0.2.150; }
  range dynamic-bootp 192.0.2.7;
}
shared-network x { subnet 198.51.100.0 netmask 255.255.255.128 { } }
group { host Printer { hardware ethernet B0:7F:00:00:00:01; fixed-address 192.0.2.9, 192.0.2.10;
  option host-name "a } b ; c"; } }
subnet6 2001:db8::/64 { range6 2001:db8::100 2001:db8::1ff; range6 2001:db8::/126; }
host six { hardware ethernet 02:00:5e:00:00:06; fixed-address6 2001:db8::6; }
`, []string{"name printer", "MAC b0:7f:00:00:00:01", "address 192.0.2.9", "address 192.0.2.10", "name six", "MAC 02:00:5e:00:00:06", "address 2001:db8::6"},
			[]netip.Prefix{prefix("192.0.2.0/24"), prefix("198.51.100.0/25"), prefix("2001:db8::/64")},
			[]span{{addr("192.0.2.100"), addr("192.0.2.150")}, {addr("192.0.2.7"), addr("192.0.2.7")}, {addr("2001:db8::100"), addr("2001:db8::1ff")}, {addr("2001:db8::"), addr("2001:db8::3")}}, false},
		"Kea": {surveyKea, `// a comment with "quotes
{ "Dhcp4": { # another
  "reservations": [ { "hw-address": "B0:7F:00:00:00:01", "ip-address": "192.0.2.9", "hostname": "Printer" }, ],
  "shared-networks": [ { "subnet4": [ { "subnet": "198.51.100.0/25" /* x */ } ] } ],
  "subnet4": [ { "subnet": "192.0.2.0/24", "pools": [ { "pool": "192.0.2.100 - 192.0.2.150" }, { "pool": "192.0.2.64/31" } ],
    "reservations": <?include "/etc/kea/enroll.d/index.json"?> } ] } }`,
			[]string{"MAC b0:7f:00:00:00:01", "address 192.0.2.9", "name printer"},
			[]netip.Prefix{prefix("198.51.100.0/25"), prefix("192.0.2.0/24")},
			[]span{{addr("192.0.2.100"), addr("192.0.2.150")}, {addr("192.0.2.64"), addr("192.0.2.65")}}, false},
		"Kea v6":      {surveyKea, `{ "hw-address": "02:00:5e:00:00:06", "ip-addresses": [ "2001:db8::6", "2001:db8::7" ] }`, []string{"MAC 02:00:5e:00:00:06", "address 2001:db8::6", "address 2001:db8::7"}, nil, nil, false},
		"Kea, empty":  {surveyKea, " \n", nil, nil, nil, false},
		"Kea, broken": {surveyKea, `{ "hw-address": "02:00:5e:00:00:06"`, nil, nil, nil, true},
		"dnsmasq": {surveyDnsmasqConf, "# dhcp-host=02:00:5e:00:00:99,192.0.2.99\nport=0\ndhcp-range=192.0.2.0,static,255.255.255.0,1h\ndhcp-range=set:x,192.0.2.100,192.0.2.150,255.255.255.0,12h\ndhcp-host = B0:7F:00:00:00:01,192.0.2.9,Printer\nbogus\n",
			[]string{"MAC b0:7f:00:00:00:01", "address 192.0.2.9", "name printer"},
			[]netip.Prefix{prefix("192.0.2.0/24"), prefix("192.0.2.0/24")}, []span{{addr("192.0.2.100"), addr("192.0.2.150")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.read(c.text)
			if diff := cmp.Diff(c.claims, got.claims); diff != "" {
				t.Error(diff)
			}
			if len(got.subnets) != len(c.subnets) || len(got.pools) != len(c.pools) || got.opaque != c.opaqueWanted {
				t.Fatalf("%+v", got)
			}
			for i := range c.subnets {
				if got.subnets[i] != c.subnets[i] {
					t.Errorf("subnet %s, want %s", got.subnets[i], c.subnets[i])
				}
			}
			for i := range c.pools {
				if got.pools[i] != c.pools[i] {
					t.Errorf("pool %s, want %s", got.pools[i], c.pools[i])
				}
			}
		})
	}
}

// FuzzSurvey: foreign text in any language is read to its end, and what it says
// is said in canonical form.
func FuzzSurvey(f *testing.F) {
	for _, text := range []string{
		"subnet 192.0.2.0 netmask 255.255.255.0 { range 192.0.2.1 192.0.2.2; host x { hardware ethernet 2:0:5e:0:0:1; fixed-address 192.0.2.9; } }",
		`{ "subnet": "192.0.2.0/24", "pools": [ { "pool": "192.0.2.1-192.0.2.2" } ], "x": <?include "y"?>, } // c`,
		"dhcp-range=192.0.2.1,192.0.2.2\ndhcp-host=02:00:5e:10:00:01,192.0.2.9", "02:00:5e:10:00:01,192.0.2.11,gpu-001-bmc", "\"\\", "/*", "<?", "{{{{", "}}}}", "\"{", ";;;",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(string) survey{surveyISC, surveyKea, surveyDnsmasqConf, surveyHosts} {
			s := read(text)
			for _, claim := range s.claims {
				kind, value := cutClaim(claim)
				switch kind {
				case "MAC":
					if m, err := plan.ParseMAC(value); err != nil || m.String() != value {
						t.Errorf("%q claims %q", text, claim)
					}
				case "address":
					if a, err := netip.ParseAddr(value); err != nil || a.String() != value {
						t.Errorf("%q claims %q", text, claim)
					}
				case "name":
					if value != lowerASCII(value) {
						t.Errorf("%q claims %q", text, claim)
					}
				default:
					t.Errorf("%q claims %q", text, claim)
				}
			}
			for _, p := range s.subnets {
				if p != p.Masked() {
					t.Errorf("%q declares %s", text, p)
				}
			}
		}
	})
}

// FuzzIndex: an index that is read is written again as the same list.
func FuzzIndex(f *testing.F) {
	for _, service := range []string{"kea", "isc"} {
		for _, names := range [][]string{nil, {"a.json"}, {"a.conf", "b.conf"}} {
			_, text := RenderIndex(settingsOf(service, false), names)
			f.Add(service, text)
		}
	}
	f.Add("kea", "[ <?include \"/etc/enroll.d/../x\"?> ]")
	for _, at := range []string{"/etc/enroll.d/.", "/etc/enroll.d/..", "/etc/enroll.d//a.conf", "/etc/enroll.d/./a.conf"} {
		f.Add("isc", "include \""+at+"\";")
		f.Add("kea", "[\n<?include \""+at+"\"?>\n]")
	}
	f.Fuzz(func(t *testing.T, service, text string) {
		s := settingsOf(service, false)
		fl, ok := flavourOf(&s)
		if !ok || fl.index == "" {
			return
		}
		names, err := fl.parseIndex(s.Directory, text)
		if err != nil {
			return
		}
		for _, name := range names {
			if strings.Contains(name, "/") || name == ".." || name == "" {
				t.Errorf("%q lists %q", text, name)
			}
		}
		again, err := fl.parseIndex(s.Directory, fl.renderIndex(s.Directory, names))
		if err != nil || strings.Join(again, "\n") != strings.Join(names, "\n") {
			t.Errorf("%q lists %q, written again %q, %v", text, names, again, err)
		}
	})
}

// FuzzParseSums: only whole hashes of whole names are believed.
func FuzzParseSums(f *testing.F) {
	f.Add(hash("x") + "  a b\n\\" + hash("x") + "  esc\\\\aped\nsha256sum: x: Is a directory\n")
	f.Fuzz(func(t *testing.T, text string) {
		for name, sum := range parseSums(text) {
			if !hexSum.MatchString(sum) || !strings.Contains(text, sum+" ") || name == "" || strings.Contains(name, "\n") {
				t.Errorf("%q: %q has %q", text, name, sum)
			}
		}
	})
}

// FuzzParseAnswer: what Kea answers is an answer with a result, or an error.
func FuzzParseAnswer(f *testing.F) {
	for _, text := range []string{`[ { "result": 0 } ]`, `{ "result": 1, "text": "x" }`, `[]`, `[{}]`, `null`, `[ { "result": "0" } ]`, "<html>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseAnswer([]byte(text)); err == nil && !strings.Contains(text, "result") && !strings.Contains(strings.ToLower(text), "result") && !strings.Contains(text, `\u`) {
			t.Errorf("%q is an answer", text)
		}
	})
}

// FuzzParseChanges: a marker, cut or not, names files of the folder and nothing
// else; whole ones are read as they were written.
func FuzzParseChanges(f *testing.F) {
	f.Add(changes{replaced: []string{"a.json"}, created: []string{"b.json"}}.render("0123"))
	f.Add("~ ../x\n+ .hidden\n+ a b\n~ \n")
	f.Fuzz(func(t *testing.T, text string) {
		c := parseChanges(text)
		for _, name := range append(append([]string(nil), c.replaced...), c.created...) {
			if strings.ContainsAny(name, "/ \n") || strings.HasPrefix(name, ".") {
				t.Errorf("%q names %q", text, name)
			}
		}
		again := parseChanges(c.render("x"))
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(changes{})); diff != "" {
			t.Error(diff)
		}
	})
}
