package dhcp

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

const (
	goodFile = "# managed by enroll: device 1001 gpu-001\n02:00:5e:10:00:01,192.0.2.11,gpu-001-bmc\n"
	// handFile has the documented form without the device's name.
	handFile = "# managed by enroll: device 1001\n02:00:5e:10:00:01,192.0.2.11,node-001-bmc\n"
)

func goodEntry() Entry {
	return Entry{DeviceID: 1001, Device: "gpu-001", MAC: plan.MAC{2, 0, 0x5e, 0x10, 0, 1}, Address: netip.MustParseAddr("192.0.2.11"), Name: "gpu-001-bmc"}
}

func TestRender(t *testing.T) {
	if got := goodEntry().Render(); got != goodFile {
		t.Errorf("%q, want %q", got, goodFile)
	}
	for _, text := range []string{goodFile, handFile} {
		e, err := ParseEntry(text)
		if err != nil || e.Render() != text {
			t.Errorf("%q: read and rendered %q, %v", text, e.Render(), err)
		}
	}
}

func TestParseEntryRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty":               "",
		"no marker":           "02:00:5e:10:00:01,192.0.2.11,gpu-001-bmc\n",
		"other marker":        strings.Replace(goodFile, "enroll", "somebody", 1),
		"device 0":            strings.Replace(goodFile, "1001", "0", 1),
		"device of 20 digits": strings.Replace(goodFile, "1001", "99999999999999999999", 1),
		"device beyond int64": strings.Replace(goodFile, "1001", "9999999999999999999", 1),
		"byte order mark":     "\ufeff" + goodFile,
		"CRLF":                strings.ReplaceAll(goodFile, "\n", "\r\n"),
		"cut":                 goodFile[:len(goodFile)-1],
		"marker only":         goodFile[:strings.Index(goodFile, "\n")+1],
		"third line":          goodFile + "\n",
		"MAC upper case":      strings.Replace(goodFile, "5e", "5E", 1),
		"MAC short":           strings.Replace(goodFile, "02:00:", "02:", 1),
		"address with mask":   strings.Replace(goodFile, ".11", ".11/24", 1),
		"address too large":   strings.Replace(goodFile, ".11", ".999", 1),
		"IPv6":                strings.Replace(goodFile, "192.0.2.11", "2001:db8::1", 1),
		"lease time":          strings.Replace(goodFile, "bmc\n", "bmc,12h\n", 1),
		"name with a space":   strings.Replace(goodFile, "-bmc", " bmc", 1),
		"name is a time":      strings.Replace(goodFile, "gpu-001-bmc", "12h", 1),
	} {
		if e, err := ParseEntry(text); err == nil {
			t.Errorf("%s: read as %+v", name, e)
		}
	}
}

// FuzzParseEntry: what is read renders to the same bytes, is found again by its
// owner, and takes exactly what it claims.
func FuzzParseEntry(f *testing.F) {
	for _, text := range []string{goodFile, handFile, goodFile + "x", strings.Replace(goodFile, "gpu-001-bmc", "a,b", 1), "# managed by enroll: device 1 a\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEntry(text)
		if err != nil {
			return
		}
		if got := e.Render(); got != text {
			t.Errorf("%q renders as %q", text, got)
		}
		if id, ours := owner(text); !ours || id != e.DeviceID {
			t.Errorf("%q: owner %d, %v", text, id, ours)
		}
		if got := claims(text); !reflect.DeepEqual(got, e.claims()) {
			t.Errorf("%q claims %q, want %q", text, got, e.claims())
		}
	})
}

// FuzzEntryFor: whatever NetBox calls a device, the file has one marker and one
// line, or there is none.
func FuzzEntryFor(f *testing.F) {
	for _, name := range []string{"gpu-001", "GPU-1", "a,b", "x\ny", "../etc", "K", "-a", "12h", "ſ"} {
		f.Add(name, "-bmc", int64(7))
	}
	f.Fuzz(func(t *testing.T, name, suffix string, id int64) {
		site := &plan.Site{DHCP: &plan.DHCPSettings{Directory: "/etc/enroll-hosts.d", NameSuffix: suffix}}
		e, at, fault := entryFor(&plan.Target{Site: site, Intent: &plan.Intent{Name: name, ID: id, BMCMAC: goodEntry().MAC, OOB: goodEntry().Address}})
		if fault != nil {
			return
		}
		got, err := ParseEntry(e.Render())
		if err != nil || got != e {
			t.Errorf("%q %q: %q is read as %+v, %v", name, suffix, e.Render(), got, err)
		}
		if strings.Count(at, "/") != 3 || !strings.HasPrefix(at, "/etc/enroll-hosts.d/") || !safePath.MatchString(at) || !read(e.Name) {
			t.Errorf("%q %q: path %q", name, suffix, at)
		}
	})
}

func TestClaims(t *testing.T) {
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
		if got := claims(line); !reflect.DeepEqual(got, want) {
			t.Errorf("%q claims %q, want %q", line, got, want)
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
