package dhcp_test

import (
	"io/fs"
	"net/netip"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// TestFresh is the whole way of two new devices.
func TestFresh(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1), device(2))
	changes := 0
	b.srv.OnChange(func() {
		if _, ok := b.srv.Lease(mac(1)); ok {
			changes++
		}
	})
	if b.p.Requests() != 0 {
		t.Errorf("%d requests before the first use", b.p.Requests())
	}
	pl := b.look(b.p)
	if want := "lon14/gpu-001/dhcp.reservation lon14/gpu-002/dhcp.reservation lon14/dhcp.service"; addresses(pl) != want {
		t.Fatalf("planned %q, want %q", addresses(pl), want)
	}
	if got := b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Mutating }); got != 0 {
		t.Errorf("planning wrote %d times", got)
	}
	if got := b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Method == "ssh.exec" }); got != 1 {
		t.Errorf("planning took %d commands, want one for everything", got)
	}
	if n := b.p.Requests(); n != 2 {
		t.Errorf("planning took %d requests, want a login and a command", n)
	}
	service := pl.Steps[2]
	if strings.Join(service.Serves, " ") != "gpu-001 gpu-002" || service.Reason != plan.ReasonChanged || len(service.Effects) != 1 || service.Effects[0] != plan.EffectServiceRestart {
		t.Errorf("service step: serves %v, reason %s, effects %v", service.Serves, service.Reason, service.Effects)
	}
	if plan.Satisfies(service.After, service.Before) {
		t.Error("the service step's before satisfies its after: it would never run")
	}
	if f := b.apply(b.p, pl); f != nil {
		t.Fatal(f)
	}
	for _, d := range []*plan.Intent{device(1), device(2)} {
		if got, _ := b.srv.ReadFile(at(d.Name + "-bmc")); got != rendered(entry(d)) {
			t.Errorf("%s: %q", d.Name, got)
		}
		if got, ok := b.srv.Lease(d.BMCMAC); !ok || got != d.OOB {
			t.Errorf("%s would get %v, %v", d.Name, got, ok)
		}
		if got := b.srv.Mode(at(d.Name + "-bmc")); got != 0o644 {
			t.Errorf("%s has mode %o; dnsmasq could not read it", d.Name, got)
		}
	}
	if changes == 0 {
		t.Error("OnChange was not called with the reservations live")
	}
	if reloads := b.reloads(); reloads != 1 {
		t.Errorf("%d reloads for two devices, want 1", reloads)
	}
	if temps := b.temps(); len(temps) != 0 {
		t.Errorf("left behind: %v", temps)
	}
	b.settled()
}

func (b *bench) reloads() int {
	return b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Method == "ssh.exec" && r.Mutating })
}

// TestChanged replaces one device's file; inotify alone would keep the old entry.
func TestChanged(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	old := entry(device(1))
	old.MAC = mac(9)
	b.srv.PutFile(at("gpu-001-bmc"), rendered(old), 0o640)
	b.srv.Chown(at("gpu-001-bmc"), "enroll", 0o604)
	pl := b.look(b.p)
	if len(pl.Steps) != 2 || pl.Steps[0].Action != plan.ActionUpdate || plan.Text(pl.Steps[0].Before, "content") != rendered(old) {
		t.Fatalf("planned %v", addresses(pl))
	}
	if f := b.apply(b.p, pl); f != nil {
		t.Fatal(f)
	}
	if _, ok := b.srv.Lease(mac(9)); ok {
		t.Error("the old MAC still gets an address")
	}
	if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
		t.Errorf("lease %v", got)
	}
	if got := b.srv.Mode(at("gpu-001-bmc")); got != 0o604 {
		t.Errorf("mode %o, want that of the replaced file", got)
	}
	b.settled()
}

// TestRenamed moves a device's file to its new name.
func TestRenamed(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	old := entry(device(1))
	old.Device, old.Name = "spare-1", "spare-1-bmc"
	b.srv.PutFile(at("spare-1-bmc"), rendered(old), 0o644)
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	if got := strings.Join(b.srv.Files(), " "); got != "gpu-001-bmc" {
		t.Errorf("files: %s", got)
	}
	if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
		t.Errorf("lease %v", got)
	}
	b.settled()
}

// TestPending: the upload of an earlier run was never reloaded.
func TestPending(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	b.srv.PutOld(at("gpu-001-bmc"), rendered(entry(device(1))), b.clock.now())
	b.srv.SetPending(true)
	if _, ok := b.srv.Lease(mac(1)); ok {
		t.Fatal("the reservation is live without a reload")
	}
	pl := b.look(b.p)
	if addresses(pl) != "lon14/dhcp.service" || pl.Steps[0].Reason != plan.ReasonPending {
		t.Fatalf("planned %s", addresses(pl))
	}
	if f := b.apply(b.p, pl); f != nil {
		t.Fatal(f)
	}
	if got, _ := b.srv.Lease(mac(1)); got != device(1).OOB {
		t.Errorf("lease %v", got)
	}
	b.settled()
}

// TestForeign are files that are never touched.
func TestForeign(t *testing.T) {
	other := entry(device(7))
	byHand := "02:00:5e:10:00:01,192.0.2.77,spare\n"
	for name, c := range map[string]struct {
		file, content string
		mode          fs.FileMode
		code          plan.Code
		words         []string
	}{
		"own name without marker":        {"gpu-001-bmc", byHand, 0o644, plan.CodeDHCPForeignFile, []string{at("gpu-001-bmc"), "mark", byHand[:20]}},
		"own name of another device":     {"gpu-001-bmc", rendered(other), 0o644, plan.CodeDHCPForeignFile, []string{"1007", "gpu-001"}},
		"own name empty":                 {"gpu-001-bmc", "", 0o644, plan.CodeDHCPForeignFile, []string{"mark"}},
		"own name unreadable":            {"gpu-001-bmc", byHand, 0o600, plan.CodeDHCPForeignFile, []string{"may not read"}},
		"own name large":                 {"gpu-001-bmc", strings.Repeat("# x\n", 20000) + "end", 0o644, plan.CodeDHCPForeignFile, []string{"larger"}},
		"neighbour unreadable":           {"old", byHand, 0o600, plan.CodeDHCPConflict, []string{at("old"), "cannot be read"}},
		"same MAC":                       {"old", byHand, 0o644, plan.CodeDHCPConflict, []string{"MAC 02:00:5e:10:00:01", at("old")}},
		"same MAC among several":         {"old", "02:00:5e:99:00:01,06-02:00:5E:10:00:01,set:x,nine,12h\n", 0o644, plan.CodeDHCPConflict, []string{"MAC"}},
		"same address":                   {"old", "02:00:5e:10:00:42,spare,192.0.2.11\n", 0o644, plan.CodeDHCPConflict, []string{"address 192.0.2.11"}},
		"same name":                      {"old", "02:00:5e:10:00:42,192.0.2.99,GPU-001-BMC\n", 0o644, plan.CodeDHCPConflict, []string{"name gpu-001-bmc"}},
		"same address, another of ours":  {"gpu-007-bmc", strings.Replace(rendered(other), "192.0.2.17", "192.0.2.11", 1), 0o644, plan.CodeDHCPConflict, []string{"device of that file: 1007"}},
		"same address, no newline, late": {"old", strings.Repeat("# x\n", 15000) + "02:00:5e:10:00:42,192.0.2.11", 0o644, plan.CodeDHCPConflict, []string{"address"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{}, device(1))
			b.srv.PutFile(at(c.file), c.content, 0o644)
			b.srv.Chown(at(c.file), "root", c.mode)
			pl := b.look(b.p)
			b.wantFault(fault(pl), c.code, c.words...)
			if addresses(pl) != "" {
				t.Errorf("planned %s", addresses(pl))
			}
			if got, _ := b.srv.ReadFile(at(c.file)); got != c.content {
				t.Error("the file was touched")
			}
		})
	}
}

// TestFolderInTheWay: a folder has the file's name.
func TestFolderInTheWay(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	b.srv.MakeDir(at("gpu-001-bmc"))
	b.wantFault(fault(b.look(b.p)), plan.CodeDHCPForeignFile, "is a folder")
}

// TestIgnored are files that take nothing away from the device.
func TestIgnored(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	mine := rendered(entry(device(1)))
	for _, name := range []string{".old.swp", "old~", "#old#"} {
		b.srv.PutFile(at(name), mine, 0o644)
	}
	b.srv.PutFile(at("notes"), "# 02:00:5e:10:00:01,192.0.2.11,gpu-001-bmc\n", 0o644)
	b.srv.MakeDir(at("sub"))
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	b.settled()
}

// TestRival: two devices of one run need the same.
func TestRival(t *testing.T) {
	two := device(2)
	two.OOB = device(1).OOB
	b := newBench(t, dhcptest.Options{}, device(1), two)
	pl := b.look(b.p)
	b.wantFault(fault(pl), plan.CodeDHCPConflict, "gpu-001", "gpu-002", "192.0.2.11")
	if addresses(pl) != "" {
		t.Errorf("planned %s", addresses(pl))
	}
}

// TestRecord: what NetBox must say, and what its words may not do.
func TestRecord(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Intent, *plan.DHCPSettings)
		code   plan.Code
		word   string
	}{
		"no MAC":       {func(i *plan.Intent, _ *plan.DHCPSettings) { i.BMCMAC = plan.MAC{} }, plan.CodeIntentIncomplete, "MAC"},
		"multicast":    {func(i *plan.Intent, _ *plan.DHCPSettings) { i.BMCMAC = plan.MAC{1, 0, 0x5e, 0, 0, 1} }, plan.CodeIntentInvalid, "multicast"},
		"IPv6":         {func(i *plan.Intent, _ *plan.DHCPSettings) { i.OOB = netip.MustParseAddr("2001:db8::11") }, plan.CodeIntentInvalid, "IPv4"},
		"injection":    {func(i *plan.Intent, _ *plan.DHCPSettings) { i.Name = "gpu\n02:00:5e:00:00:09,192.0.2.9,x" }, plan.CodeIntentInvalid, "63"},
		"long":         {func(i *plan.Intent, _ *plan.DHCPSettings) { i.Name = strings.Repeat("a", 60) }, plan.CodeIntentInvalid, "63"},
		"outside":      {func(_ *plan.Intent, s *plan.DHCPSettings) { s.Subnets = []string{"198.51.100.0/24"} }, plan.CodeIntentInvalid, "198.51.100.0/24"},
		"broadcast":    {func(_ *plan.Intent, s *plan.DHCPSettings) { s.Subnets = []string{"192.0.2.8/30"} }, plan.CodeIntentInvalid, "broadcast"},
		"no NetBox id": {func(i *plan.Intent, _ *plan.DHCPSettings) { i.ID = 0 }, plan.CodeIntentInvalid, "id 0"},
	} {
		t.Run(name, func(t *testing.T) {
			i := device(1)
			b := newBench(t, dhcptest.Options{}, i)
			c.change(i, b.scope.Site.DHCP)
			pl := b.look(b.connect())
			b.wantFault(fault(pl), c.code, c.word)
			if addresses(pl) != "" {
				t.Errorf("planned %s", addresses(pl))
			}
		})
	}
}

// TestMapped: names that no file may have get one that says them.
func TestMapped(t *testing.T) {
	for _, name := range []string{`"; rm -rf /`, "a\nb", "../x", "index", ".hidden", "gpu\u2011001", "12h", "a,b"} {
		i := device(1)
		i.Name = name
		b := newBench(t, dhcptest.Options{}, i)
		b.scope.Site.DHCP.NameSuffix = ""
		b.p = b.connect()
		if f := b.converge(b.p); f != nil {
			t.Errorf("%q: %v", name, f)
			continue
		}
		files := b.srv.Files()
		if got, ok := dhcp.DeviceOf(b.scope.Site.DHCP, files[0]); len(files) != 1 || !ok || got != name {
			t.Errorf("%q: the folder holds %q, which is read as %q", name, files, got)
		}
		if got, _ := b.srv.Lease(mac(1)); got != i.OOB {
			t.Errorf("%q: lease %v", name, got)
		}
		b.settled()
	}
}

// TestSwitchedOff: no resource without configure_dhcp or a dhcp block.
func TestSwitchedOff(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	b.scope.Site.ConfigureDHCP = false
	if r := plan.Desired(b.scope, dhcp.Kinds()); len(r) != 0 {
		t.Errorf("%d resources with configure_dhcp = false", len(r))
	}
	b.scope.Site.ConfigureDHCP, b.scope.Site.DHCP = true, nil
	if r := plan.Desired(b.scope, dhcp.Kinds()); len(r) != 0 {
		t.Errorf("%d resources without a dhcp block", len(r))
	}
}

// TestStale: somebody writes between the read and the upload.
func TestStale(t *testing.T) {
	old := entry(device(1))
	old.MAC = mac(9)
	third := entry(device(1))
	third.MAC = mac(8)
	for name, c := range map[string]struct {
		before, meanwhile string
		code              plan.Code
	}{
		"changed":  {rendered(old), rendered(third), plan.CodePlanStale},
		"appeared": {"", "02:00:5e:10:00:42,192.0.2.99,x\n", plan.CodeDHCPForeignFile},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{}, device(1))
			if c.before != "" {
				b.srv.PutFile(at("gpu-001-bmc"), c.before, 0o644)
			}
			pl := b.look(b.p)
			b.srv.PutFile(at("gpu-001-bmc"), c.meanwhile, 0o644)
			r := b.p.Run(t.Context(), b.scope, pl.Steps[0], nil) // past the guard
			b.wantFault(r.Fault, c.code, at("gpu-001-bmc"))
			if got, _ := b.srv.ReadFile(at("gpu-001-bmc")); got != c.meanwhile {
				t.Error("the file was replaced")
			}
			if b.srv.Pending() {
				t.Error("a marker was written for nothing")
			}
		})
	}
}
