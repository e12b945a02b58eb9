package dhcp

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

// settingsOf are a site's settings for each service, with and without options.
func settingsOf(service string, v6 bool) plan.DHCPSettings {
	s := plan.DHCPSettings{Service: service, IPv6: v6, Host: "dhcp1", User: "enroll", Directory: "/etc/enroll.d", NameSuffix: "-bmc"}
	if service != serviceDnsmasq {
		s.Options = []plan.DHCPOption{{Name: "ntp-servers", Value: "192.0.2.123"}, {Name: "domain-name", Value: `"oob.example"`}}
	}
	return withDefaults(s)
}

func goodEntry() Entry {
	return Entry{DeviceID: 1001, Device: "gpu-001", MAC: plan.MAC{2, 0, 0x5e, 0x10, 0, 1}, Address: netip.MustParseAddr("192.0.2.11"), Name: "gpu-001-bmc"}
}

// TestRender shows the files of the three servers.
func TestRender(t *testing.T) {
	v6 := goodEntry()
	v6.Address = netip.MustParseAddr("2001:db8::11")
	mapped := goodEntry()
	mapped.Device = "gpu 001"
	for _, c := range []struct {
		name, service string
		v6            bool
		entry         Entry
		want          string
	}{
		{"dnsmasq", "dnsmasq", false, goodEntry(), "# managed by enroll: device 1001 gpu-001\n02:00:5e:10:00:01,192.0.2.11,gpu-001-bmc\n"},
		{"a name that was mapped", "dnsmasq", false, mapped, "# managed by enroll: device 1001\n02:00:5e:10:00:01,192.0.2.11,gpu-001-bmc\n"},
		{"ISC", "isc", false, goodEntry(), `# managed by enroll: device 1001 gpu-001
host gpu-001-bmc {
  hardware ethernet 02:00:5e:10:00:01;
  fixed-address 192.0.2.11;
  option host-name "gpu-001-bmc";
  option ntp-servers 192.0.2.123;
  option domain-name "oob.example";
}
`},
		{"ISC v6", "isc", true, v6, `# managed by enroll: device 1001 gpu-001
host gpu-001-bmc {
  hardware ethernet 02:00:5e:10:00:01;
  fixed-address6 2001:db8::11;
  option ntp-servers 192.0.2.123;
  option domain-name "oob.example";
}
`},
		{"Kea", "kea", false, goodEntry(), `{
  "hw-address": "02:00:5e:10:00:01",
  "ip-address": "192.0.2.11",
  "hostname": "gpu-001-bmc",
  "option-data": [ { "name": "ntp-servers", "data": "192.0.2.123" },
                   { "name": "domain-name", "data": "\"oob.example\"" } ],
  "user-context": { "managed-by": "enroll", "device-id": 1001 }
}
`},
		{"Kea v6", "kea", true, v6, `{
  "hw-address": "02:00:5e:10:00:01",
  "ip-addresses": [ "2001:db8::11" ],
  "hostname": "gpu-001-bmc",
  "option-data": [ { "name": "ntp-servers", "data": "192.0.2.123" },
                   { "name": "domain-name", "data": "\"oob.example\"" } ],
  "user-context": { "managed-by": "enroll", "device-id": 1001 }
}
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settingsOf(c.service, c.v6)
			got := Render(s, c.entry)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			fl, _ := flavourOf(&s)
			e, err := fl.parse(got, s.Options)
			if err != nil || Render(s, e) != got {
				t.Errorf("read as %+v, %v", e, err)
			}
			if got := fl.survey(got).claims; !sameClaims(got, c.entry.claims()) {
				t.Errorf("claims %q, want %q", got, c.entry.claims())
			}
		})
	}
}

// sameClaims compares without order and repetition.
func sameClaims(a, b []string) bool {
	set := func(list []string) []string {
		list = slices.Clone(list)
		slices.Sort(list)
		return slices.Compact(list)
	}
	return slices.Equal(set(a), set(b))
}

// TestSamples reads and writes the documented files: files that were written by
// hand after the documented form are enroll's.
func TestSamples(t *testing.T) {
	for _, c := range []struct{ service, dir, folder string }{
		{"dnsmasq", "dnsmasq/enroll-hosts.d", "/etc/enroll-hosts.d"},
		{"isc", "isc/enroll.d", "/etc/dhcp/enroll.d"},
		{"kea", "kea/enroll.d", "/etc/kea/enroll.d"},
	} {
		s := plan.DHCPSettings{Service: c.service, Directory: c.folder}
		fl, _ := flavourOf(&s)
		names, err := filepath.Glob("testdata/" + c.dir + "/*")
		if err != nil || len(names) < 2 {
			t.Fatalf("%s: %v, %v", c.dir, names, err)
		}
		var files []string
		for _, at := range names {
			raw, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(at)
			if name == fl.index {
				listed, err := fl.parseIndex(c.folder, string(raw))
				if _, text := RenderIndex(s, listed); err != nil || text != string(raw) {
					t.Errorf("%s: %q, %v", at, text, err)
				}
				continue
			}
			files = append(files, name)
			e, err := fl.parse(string(raw), nil)
			if err != nil || FileName(s, e) != name || e.DeviceID < 1001 {
				t.Errorf("%s: %+v, %v", at, e, err)
			}
		}
		if _, text := RenderIndex(s, files); fl.index != "" {
			if raw, err := os.ReadFile("testdata/" + c.dir + "/" + fl.index); err != nil || string(raw) != text {
				t.Errorf("%s: the index is %q, %v", c.service, text, err)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, service := range []string{"dnsmasq", "isc", "kea"} {
		s := settingsOf(service, false)
		fl, _ := flavourOf(&s)
		good := Render(s, goodEntry())
		for name, text := range map[string]string{
			"empty":               "",
			"other mark":          strings.Replace(good, "enroll", "somebody", 1),
			"device 0":            strings.Replace(good, "1001", "0", 1),
			"device of 20 digits": strings.Replace(good, "1001", "99999999999999999999", 1),
			"device beyond int64": strings.Replace(good, "1001", "9999999999999999999", 1),
			"byte order mark":     "\ufeff" + good,
			"CRLF":                strings.ReplaceAll(good, "\n", "\r\n"),
			"cut":                 good[:len(good)-1],
			"first line only":     good[:strings.Index(good, "\n")+1],
			"one line more":       good + "\n",
			"twice":               good + good,
			"MAC upper case":      strings.Replace(good, "5e", "5E", 1),
			"MAC short":           strings.Replace(good, "02:00:", "02:", 1),
			"address with mask":   strings.Replace(good, ".11", ".11/24", 1),
			"address too large":   strings.Replace(good, ".11", ".999", 1),
			"name with a space":   strings.ReplaceAll(good, "-bmc", " bmc"),
			"name is a time":      strings.ReplaceAll(good, "gpu-001-bmc", "12h"),
			"name closes a block": strings.ReplaceAll(good, "gpu-001-bmc", `x"; } host y {`),
			"another option":      strings.Replace(good, "ntp-servers", "log-servers", 1),
		} {
			if text == good { // this server's file has no such part
				continue
			}
			if e, err := fl.parse(text, s.Options); err == nil {
				t.Errorf("%s, %s: read as %+v", service, name, e)
			}
		}
	}
}

// FuzzParse: what is read as a file of ours renders to the same bytes, is found
// again by its owner, and takes exactly what it claims.
func FuzzParse(f *testing.F) {
	for _, service := range []string{"dnsmasq", "isc", "kea"} {
		s := settingsOf(service, false)
		f.Add(service, Render(s, goodEntry()))
	}
	f.Fuzz(func(t *testing.T, service, text string) {
		s := plan.DHCPSettings{Service: service}
		fl, ok := flavourOf(&s)
		if !ok {
			return
		}
		e, err := fl.parse(text, nil)
		if err != nil {
			return
		}
		if got := Render(s, e); got != text {
			t.Errorf("%q renders as %q", text, got)
		}
		if id, ours := fl.owner(text); !ours || id != e.DeviceID {
			t.Errorf("%q: owner %d, %v", text, id, ours)
		}
		if got := fl.survey(text).claims; !sameClaims(got, e.claims()) {
			t.Errorf("%q claims %q, want %q", text, got, e.claims())
		}
	})
}

// hostile are names of devices that mean something to a shell, a file system or
// a server's grammar.
func hostile() []string {
	return []string{
		`"; rm -rf /`, "a\nb", "../x", strings.Repeat("a", 255), "index", ".hidden", "gpu\u2011001", "gpu 001", "ɡpu-001", "12h", "infinite", "ignore",
		"include", "host", "subnet", "$(reboot)", "`id`", "a'b", "-rf", "~", "*", "a,b", "a/b", "a\\b", "\x00", "\xff\xfe", "enroll--x", "con", "",
	}
}

// FuzzEntryFor: whatever NetBox calls a device, its files are whole and say what
// the device's name was, or there is none.
func FuzzEntryFor(f *testing.F) {
	for _, name := range append(hostile(), "gpu-001", "GPU-1", "K", "ſ") {
		f.Add(name, "-bmc", int64(7))
		f.Add(name, "", int64(7))
	}
	f.Fuzz(func(t *testing.T, name, suffix string, id int64) {
		for _, service := range []string{"dnsmasq", "isc", "kea"} {
			s := settingsOf(service, false)
			s.NameSuffix, s.Directory = suffix, "/etc/enroll.d"
			fl, _ := flavourOf(&s)
			e, at, fault := entryFor(&plan.Target{Site: &plan.Site{DHCP: &s}, Intent: &plan.Intent{Name: name, ID: id, BMCMAC: goodEntry().MAC, OOB: goodEntry().Address}})
			if fault != nil {
				return
			}
			text := Render(s, e)
			got, err := fl.parse(text, s.Options)
			if err != nil || got.Name != e.Name || got.DeviceID != id || got.MAC != e.MAC || got.Address != e.Address {
				t.Errorf("%s %q %q: %q is read as %+v, %v", service, name, suffix, text, got, err)
			}
			if strings.Count(at, "/") != 3 || !strings.HasPrefix(at, "/etc/enroll.d/") || !safePath.MatchString(at) || !fl.reads(filepath.Base(at)) {
				t.Errorf("%s %q %q: path %q", service, name, suffix, at)
			}
			if device, ok := DeviceOf(&s, e.Name); !ok || device != name && device != lowerASCII(name) {
				t.Errorf("%q %q: %s is read as device %q, %v", name, suffix, e.Name, device, ok)
			}
		}
	})
}

// TestHostileNames: no two of them share a file, and each is found again.
func TestHostileNames(t *testing.T) {
	s := settingsOf("kea", false)
	for _, suffix := range []string{"-bmc", ""} {
		s.NameSuffix = suffix
		seen := map[string]string{}
		for _, device := range hostile() {
			name := entryName(&s, device)
			if badName(name) != "" {
				continue // refused, never cut
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%q and %q are both %s", device, other, name)
			}
			seen[name] = device
			if back, ok := DeviceOf(&s, name); !ok || back != device {
				t.Errorf("%q becomes %s, which is read as %q, %v", device, name, back, ok)
			}
		}
		if len(seen) < len(hostile())-2 {
			t.Errorf("only %d of %d names can be used", len(seen), len(hostile()))
		}
	}
}

func TestHostClaims(t *testing.T) {
	for line, want := range map[string][]string{
		"":        nil,
		"# 1,2,3": nil,
		"02:00:5E:10:00:01,192.0.2.11,Node-1,12h":           {"MAC 02:00:5e:10:00:01", "address 192.0.2.11", "name node-1"},
		" 02:00:5e:10:00:01 , 192.0.2.11 # trailing":        {"MAC 02:00:5e:10:00:01", "address 192.0.2.11"},
		"id:01:02,set:red,tag:blue,192.0.2.11,infinite":     {"address 192.0.2.11"},
		"06-02:00:5e:10:00:01,02:00:5e:10:00:02,192.0.2.11": {"MAC 02:00:5e:10:00:01", "MAC 02:00:5e:10:00:02", "address 192.0.2.11"},
		"02:00:5e:10:00:01,ignore":                          {"MAC 02:00:5e:10:00:01"},
		"02:00:5e:10:00:01,192.0.2.999":                     {"MAC 02:00:5e:10:00:01", "name 192.0.2.999"},
		"one,192.0.2.1\r\n\ntwo,192.0.2.2":                  {"name one", "address 192.0.2.1", "name two", "address 192.0.2.2"},
		"02:00:5e:10:00:01,[2001:db8::1],node":              {"MAC 02:00:5e:10:00:01", "name node"},
	} {
		if diff := cmp.Diff(want, surveyHosts(line).claims); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestRead(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "x.tmp": true, "x.dpkg-new": true, "#x": true, "x#": true, "": false, ".x": false, "x~": false, "#x#": false, "#": false,
	} {
		if got := read(name); got != want {
			t.Errorf("read(%q) = %v", name, got)
		}
	}
}
