package bmc_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// demand makes a site want everything that is one value.
func demand(w *world) {
	off, on, five := false, true, 5
	b := w.scope.Site.BMC
	w.scope.Site.ConfigureDHCP, w.scope.Site.DHCP = true, &plan.DHCPSettings{}
	b.Syslog = &plan.SyslogSettings{Port: 514, Protocol: "udp"}
	b.Security = &plan.SecuritySettings{
		HTTP: &off, Telnet: &off, SNMP: "v3", MinTLSVersion: "1.2", LockoutAttempts: &five, LockoutDuration: time.Minute, HostInterface: &off,
	}
	b.IDRAC = &plan.VendorSettings{Lockdown: &on, IPBlocking: &on, Attributes: map[string]any{"VNCServer.1.Enable": "Disabled", "SysLog.1.Port": int64(514)}}
	b.XCC = &plan.VendorSettings{FirmwareRollback: &off}
	b.AMI = &plan.VendorSettings{VirtualMedia: &on}
	b.Supermicro = &plan.VendorSettings{Lockdown: &on}
	b.TimeZone = "UTC"
	for _, t := range w.scope.Targets {
		t.Settings.SyslogServers = []string{"syslog1.example.org", "syslog2.example.org"}
	}
	w.connect()
}

// bench is one setting under the table: what it does, and what a maker lacks.
type bench struct {
	kind  string
	lacks []string                  // makers
	holds func(b *bmctest.BMC) bool // the BMC has what is wanted
}

func benches() []bench {
	return []bench{
		{"hostname", nil, func(b *bmctest.BMC) bool { return b.Hostname() == "gpu-001-bmc" }},
		{"ntp", nil, func(b *bmctest.BMC) bool {
			on, servers := b.NTP()
			return on && slices.Equal(servers, []string{"ntp1.example.org", "ntp2.example.org"})
		}},
		{"time_zone", nil, func(b *bmctest.BMC) bool { return zoneOf(b) }},
		{"network", nil, func(b *bmctest.BMC) bool { return b.DHCP() }},
		{"syslog", []string{bmctest.Generic, bmctest.AMI}, func(b *bmctest.BMC) bool { return syslogOf(b) }},
		{"security", []string{bmctest.AMI}, func(b *bmctest.BMC) bool { return securityOf(b) }},
		{"virtual_media", []string{bmctest.Generic, bmctest.IDRAC, bmctest.XCC, bmctest.Supermicro}, func(b *bmctest.BMC) bool { return b.Value("rmedia") == true }},
	}
}

func syslogOf(b *bmctest.BMC) bool {
	switch b.Vendor() {
	case bmctest.IDRAC:
		return b.Attribute("SysLog.1.SysLogEnable") == "Enabled" && b.Attribute("SysLog.1.Server1") == "syslog1.example.org" && b.Attribute("SysLog.1.Server2") == "syslog2.example.org"
	case bmctest.XCC:
		return slices.Equal(b.Recipients(), []string{"syslog1.example.org:514", "syslog2.example.org:514"})
	case bmctest.Supermicro: // holds one
		return b.Value("syslog") == true && b.Value("syslogserver") == "syslog1.example.org" && b.Value("syslogport") == 514
	}
	return false
}

func zoneOf(b *bmctest.BMC) bool {
	switch b.Vendor() {
	case bmctest.IDRAC:
		return b.Attribute("Time.1.Timezone") == "UTC"
	case bmctest.Supermicro:
		return b.Value("zone") == "(UTC+00:00) Coordinated Universal Time"
	}
	return b.Value("offset") == "+00:00" && b.Value("saving") == false
}

func securityOf(b *bmctest.BMC) bool {
	switch b.Vendor() {
	case bmctest.Supermicro:
		return b.Value("lockdown") == true
	case bmctest.IDRAC:
		return b.Attribute("WebServer.1.BlockHTTPPort") == "Enabled" && b.Attribute("SNMP.1.SNMPProtocol") == "SNMPv3" && b.Attribute("WebServer.1.TLSProtocol") == "TLS 1.2 and Higher" &&
			b.Attribute("IPBlocking.1.FailCount") == 5 && b.Attribute("OS-BMC.1.AdminState") == "Disabled" && b.Attribute("VNCServer.1.Enable") == "Disabled" && b.Attribute("Lockdown.1.SystemLockdown") == "Enabled"
	case bmctest.XCC:
		return b.Value("http") == false && b.Value("tls") == "TLSLevel1_2" && (b.Value("kcs") == false || b.Value("kcs") == "Disabled") && b.Value("rollback") == false && b.Value("lockout") == 5 && b.Value("lockoutfor") == 60
	}
	return b.Value("http") == false && b.Value("lockout") == 5
}

func stepOf(p *plan.Plan, kind string) *plan.Step {
	for _, s := range p.Steps {
		if s.Address.Kind == kind {
			return s
		}
	}
	return nil
}

func only(vendor string) func(m *bmctest.Machine) {
	return func(m *bmctest.Machine) { m.Vendor, m.StaticIP, m.FirstNIC = vendor, true, 1 }
}

func bmcOf(t *testing.T, vendor string, change ...func(*bmctest.Machine)) *world {
	t.Helper()
	m := machine(vendor)
	only(vendor)(&m)
	for _, c := range change {
		c(&m)
	}
	w := newWorld(t, m)
	demand(w)
	return w
}

// Every setting on every family: fresh it is written until the BMC has it, then
// it is equal and nothing is written; what a family lacks is shown and not
// written.
func TestSettings(t *testing.T) {
	for _, vendor := range makers {
		for _, row := range benches() {
			t.Run(vendor+" "+row.kind, func(t *testing.T) {
				w := bmcOf(t, vendor, func(m *bmctest.Machine) { m.Profile.KCSWords = vendor == bmctest.XCC })
				p := w.build(w.read())
				step := stepOf(p, row.kind)
				if slices.Contains(row.lacks, vendor) {
					shown := slices.ContainsFunc(p.Observed, func(o plan.Observation) bool { return o.Address.Kind == row.kind && o.Rule == "unsupported" })
					if step != nil || !shown {
						t.Errorf("step %v, observed %+v", step, p.Observed)
					}
					w.close()
					return
				}
				if step == nil || step.Blocked != nil {
					t.Fatalf("%s %+v", steps(p), p.Diagnostics)
				}
				if r := w.apply(step); r.Outcome != plan.OutcomeDone {
					t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
				}
				if !row.holds(w.bmcs[0]) {
					t.Error("the BMC does not have it")
				}
				if live := w.live(w.read(), row.kind); !plan.Satisfies(step.After, live.Value) {
					t.Errorf("read back: %s, want %s", plan.ToJSON(live.Value), plan.ToJSON(step.After))
				}
				writes := mutating(w)
				if s := stepOf(w.build(w.read()), row.kind); s != nil && s.Reason != plan.ReasonChanged {
					t.Errorf("again: %s", plan.ToJSON(s.Before))
				}
				if r := w.client.Run(t.Context(), w.scope, step, nil); r.Outcome != plan.OutcomeAlready || mutating(w) != writes {
					t.Errorf("equal: %s, %d writes", r.Outcome, mutating(w)-writes)
				}
				w.close()
			})
		}
	}
}

// A value for which a family has no word is shown and not written; the other settings
// are.
func TestSecurityThatAFamilyCannotSay(t *testing.T) {
	w := bmcOf(t, bmctest.IDRAC)
	w.scope.Site.BMC.Security.SNMP = "off"
	p := w.build(w.read())
	step := stepOf(p, "security")
	if step == nil || !plan.Attr(step.After, "SNMP").IsNull() {
		t.Fatalf("%s", steps(p))
	}
	for range 2 {
		shown := slices.ContainsFunc(p.Observed, func(o plan.Observation) bool {
			return o.Address.Kind == "security" && o.Rule == "unsupported" && plan.Attr(o.Want, "SNMP").AsString() == "off"
		})
		if !shown {
			t.Errorf("observed %+v", p.Observed)
		}
		if r := w.apply(step); r.Outcome == plan.OutcomeFailed || w.bmcs[0].Attribute("SNMP.1.SNMPProtocol") != "All" || w.bmcs[0].Attribute("WebServer.1.BlockHTTPPort") != "Enabled" {
			t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
		}
		p = w.build(w.read())
		if again := stepOf(p, "security"); again != nil && again.Reason != plan.ReasonChanged {
			t.Errorf("again: %s", plan.ToJSON(again.Before))
		}
		after := step.After.AsValueMap()
		after["SNMP"] = plan.Str("off")
		step.After = plan.Obj(after) // as a plan has it that was made before the BMC could be read
	}
	w.close()
}

// A refusal ends the step with the BMC's words; a busy BMC is waited for; what
// was accepted and not done is read back as such.
func TestSettingsAreRefused(t *testing.T) {
	for _, vendor := range makers {
		for _, row := range benches() {
			if slices.Contains(row.lacks, vendor) {
				continue
			}
			for _, tc := range []struct {
				name   string
				status int
				body   string
				want   plan.Code
			}{
				{"refused", 400, extendedInfo("Base.1.12.PropertyValueNotInList", "Not in the list."), plan.CodeBMCRefused},
				{"busy", 503, extendedInfo("Ami.1.0.ServiceTemporarilyUnavailableDueToHostBooting", "Booting."), plan.CodeBMCBusy},
				{"500", 500, `{"error":{"code":"Base.1.0.InternalError","message":"no"}}`, plan.CodeBMCBusy},
				{"ignored", 200, `{}`, ""},
			} {
				t.Run(vendor+" "+row.kind+" "+tc.name, func(t *testing.T) {
					w := bmcOf(t, vendor)
					step := stepOf(w.build(w.read()), row.kind)
					for _, method := range []string{http.MethodPatch, http.MethodPost} {
						path := "/redfish/v1/Managers"
						w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: method, Path: path, Status: tc.status, Body: tc.body})
						w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: method, Path: "/redfish/v1/AccountService", Status: tc.status, Body: tc.body})
					}
					r := w.client.Run(t.Context(), w.scope, step, nil)
					if tc.want != "" && (r.Outcome != plan.OutcomeFailed || r.Fault.Code != tc.want || r.Fault.Evidence["message_id"] == "") {
						t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
					}
					if tc.want == "" && (r.Outcome == plan.OutcomeFailed || plan.Satisfies(step.After, w.live(w.read(), row.kind).Value)) {
						t.Errorf("ignored: %s %s", r.Outcome, faultText(r.Fault))
					}
					if row.holds(w.bmcs[0]) {
						t.Error("the BMC has it")
					}
					w.close()
				})
			}
		}
	}
}

// The same of what is written to the host's system: a refusal is not taken for a
// value, a busy BMC leaves the host alone, and nothing is reset for what was not
// stored.
func TestHostSettingsAreRefused(t *testing.T) {
	for _, vendor := range makers {
		for _, kind := range []string{"bios", "boot_order"} {
			tc := biosCases[vendor]
			if kind == "boot_order" && vendor == bmctest.Supermicro { // which enroll does not keep
				continue
			}
			for _, refusal := range []struct {
				name   string
				status int
				body   string
				want   plan.Code
			}{
				{"refused", 400, extendedInfo("Base.1.12.PropertyValueNotInList", "Not in the list."), plan.CodeBMCRefused},
				{"busy", 503, extendedInfo("Base.1.12.ServiceTemporarilyUnavailable", "Busy."), plan.CodeBMCBusy},
				{"500", 500, `{"error":{"code":"Base.1.0.InternalError","message":"no"}}`, plan.CodeBMCBusy},
			} {
				t.Run(vendor+" "+kind+" "+refusal.name, func(t *testing.T) {
					w, c := biosWorld(t, vendor, tc.want, func(m *bmctest.Machine) { m.FirstNIC = 0 })
					w.scope.Site.BMC.RestrictBoot = true
					w.connect()
					step := stepOf(w.build(w.read()), kind)
					if step == nil {
						t.Fatal("no step")
					}
					w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodPatch, Path: "/redfish/v1/Systems", Status: refusal.status, Body: refusal.body})
					if r := w.until(c, step); r.Outcome != plan.OutcomeFailed || r.Fault.Code != refusal.want || r.Fault.Evidence["message_id"] == "" {
						t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
					}
					b := w.bmcs[0]
					if b.Resets() != 0 || len(b.Jobs()) != 0 || plan.Satisfies(step.After, w.live(w.read(), kind).Value) {
						t.Errorf("%d resets, jobs %v", b.Resets(), b.Jobs())
					}
					w.close()
				})
			}
		}
	}
}

// A lockdown is lifted for a change and put back last, also by the plan when it
// was as wanted; where the site does not keep it, it is a person's.
func TestLockdown(t *testing.T) {
	w := bmcOf(t, bmctest.IDRAC)
	w.bootsRight()
	all := w.build(w.read()).Steps
	if last := all[len(all)-1]; last.Address.Kind != "security" || len(last.Needs) == 0 {
		t.Fatalf("%s needs %v", last.Address, last.Needs)
	}
	locked := func() bool { return w.bmcs[0].Attribute("Lockdown.1.SystemLockdown") == "Enabled" }
	for _, s := range all {
		if r := w.apply(s); r.Outcome != plan.OutcomeDone {
			t.Fatalf("%s: %s", s.Address, faultText(r.Fault))
		}
	}
	off := false
	w.scope.Site.BMC.Security.SSH = &off
	if r := w.apply(stepOf(w.build(w.read()), "security")); r.Outcome != plan.OutcomeDone || w.bmcs[0].Attribute("SSH.1.Enable") != "Disabled" || !locked() {
		t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
	}
	w.bmcs[0].SetNTP(false)
	p := w.build(w.read())
	if s := stepOf(p, "security"); s == nil || s.Reason != plan.ReasonChanged || !s.BeforeUnknown {
		t.Fatalf("%s", steps(p))
	}
	if r := w.apply(stepOf(p, "ntp")); r.Outcome != plan.OutcomeDone || locked() {
		t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
	}
	if r := w.apply(stepOf(p, "security")); r.Outcome != plan.OutcomeDone || !locked() {
		t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
	}
	w.bmcs[0].SetNTP(false)
	w.scope.Site.BMC.IDRAC.Lockdown = nil
	w.close()
	w.connect()
	if r := w.apply(stepOf(w.build(w.read()), "ntp")); r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCRefused || !strings.Contains(r.Fault.WayOut(), "lockdown = true") || !locked() {
		t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
	}
	w.close()
}

// A Supermicro's lockdown refuses changes and new accounts: it is lifted for both,
// and put back last.
func TestLockdownOfSupermicro(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := monitoredWorld(t, bmctest.Supermicro)
		locked := func() bool { return w.bmcs[0].Value("lockdown") == true }
		w.bmcs[0].SetValue("lockdown", true)
		for _, kind := range []string{"hostname", "ipmi_user"} {
			if f := w.converged(kind); f == nil || f.Code != plan.CodeBMCRefused || !strings.Contains(f.WayOut(), "lockdown = true in bmc.supermicro") || !locked() {
				t.Errorf("%s, which nobody lifts it for: %s", kind, faultText(f))
			}
		}
		on := true
		w.scope.Site.BMC.Supermicro = &plan.VendorSettings{Lockdown: &on}
		for _, kind := range []string{"hostname", "ipmi_user"} {
			w.bmcs[0].ChangeUser(monitorName, "Other-2-Password", "Operator")
			w.bmcs[0].SetHostname("other")
			w.bmcs[0].SetValue("lockdown", true)
			w.close()
			w.connect()
			p := w.build(w.read())
			if s := stepOf(p, "security"); s == nil || s.Reason != plan.ReasonChanged {
				t.Fatalf("%s: %s", kind, steps(p))
			}
			if f := w.converged(kind); f != nil || locked() {
				t.Errorf("%s: %s", kind, faultText(f))
			}
			if f := w.converged("ipmi_user", "ipmi_lan", "hostname", "ntp", "security"); f != nil || !locked() {
				t.Errorf("%s: %s", kind, faultText(f))
			}
		}
		w.hasMonitor()
		if p := w.build(w.read()); stepOf(p, "security") != nil || stepOf(p, "hostname") != nil {
			t.Errorf("again: %s", steps(p))
		}
		w.close()
	})
}

// Links are up, down or unknown with the evidence; unknown is never down.
func TestLinks(t *testing.T) {
	state := func(s any) map[string]any { return map[string]any{"State": s, "Health": "OK"} }
	for _, tc := range []struct {
		name string
		link map[string]any
		off  bool
		want plan.CheckVerdict
		says string
	}{
		{"up", nil, false, plan.CheckPass, "eth0 up"},
		{"up at no speed", map[string]any{"SpeedMbps": 0}, false, plan.CheckUnknown, "unknown"},
		{"up, speed not told", map[string]any{"SpeedMbps": bmctest.Absent}, false, plan.CheckPass, "up"},
		{"down", map[string]any{"LinkStatus": "LinkDown"}, false, plan.CheckUnknown, "eth0 down"},
		{"down, host off", map[string]any{"LinkStatus": "LinkDown"}, true, plan.CheckUnknown, "eth0 unknown"},
		{"down, never looked at", map[string]any{"LinkStatus": "LinkDown", "Status": state(nil)}, false, plan.CheckUnknown, "eth0 unknown"},
		{"down, switched off", map[string]any{"LinkStatus": "LinkDown", "Status": state("Disabled")}, false, plan.CheckUnknown, "eth0 unknown"},
		{"no link", map[string]any{"LinkStatus": "NoLink"}, false, plan.CheckUnknown, "eth0 down"},
		{"null", map[string]any{"LinkStatus": nil}, false, plan.CheckUnknown, "eth0 unknown"},
		{"empty", map[string]any{"LinkStatus": ""}, false, plan.CheckUnknown, "eth0 unknown"},
		{"absent", map[string]any{"LinkStatus": bmctest.Absent}, false, plan.CheckUnknown, "eth0 unknown"},
		{"training", map[string]any{"LinkStatus": "Training"}, false, plan.CheckUnknown, "eth0 unknown"},
		{"not listed", map[string]any{"MACAddress": "02:00:5e:00:99:99", "PermanentMACAddress": "02:00:5e:00:99:99"}, false, plan.CheckUnknown, "does not list it"},
		{"a WWN as address", map[string]any{"MACAddress": "21:00:F4:E9:00:11:22:33", "PermanentMACAddress": bmctest.Absent}, false, plan.CheckUnknown, "does not list it"},
	} {
		for _, vendor := range makers {
			t.Run(vendor+" "+tc.name, func(t *testing.T) {
				w := bmcOf(t, vendor, func(m *bmctest.Machine) { m.NICs[0].Link, m.PoweredOff = tc.link, tc.off })
				p := w.build(w.read())
				i := slices.IndexFunc(p.Checks, func(c plan.Check) bool { return c.Address.Kind == "link" })
				if i < 0 || p.Checks[i].Verdict != tc.want || !strings.Contains(p.Checks[i].Observed, tc.says) {
					t.Errorf("%+v", p.Checks)
				}
				w.close()
			})
		}
	}
	w := bmcOf(t, bmctest.AMI, func(m *bmctest.Machine) { m.Profile.NoHostNICs = true })
	if _, fault := w.client.Links(t.Context(), w.scope.Targets[0]); fault == nil || fault.Code != plan.CodeBMCUnsupported {
		t.Errorf("no list of interfaces is taken for unknown links: %s", faultText(fault))
	}
	w.close()
}
