package bmc_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// clock is a virtual clock that BMCs and client share; waits move it on. In a
// bubble of synctest it is the bubble's.
type clock struct {
	t      time.Time
	bubble bool
}

func (c *clock) now() time.Time {
	if c.bubble {
		return time.Now()
	}
	return c.t
}

func (c *clock) pass(d time.Duration) {
	if c.bubble {
		time.Sleep(d)
		return
	}
	c.t = c.t.Add(d)
}

// biosWorld is one machine whose site wants BIOS attributes.
func biosWorld(t *testing.T, vendor string, want map[string]any, change ...func(*bmctest.Machine)) (*world, *clock) {
	t.Helper()
	return biosWorldAt(t, &clock{t: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}, vendor, want, change...)
}

func biosWorldAt(t *testing.T, c *clock, vendor string, want map[string]any, change ...func(*bmctest.Machine)) (*world, *clock) {
	t.Helper()
	m := machine(vendor)
	m.FirstNIC = 1
	m.Profile.BootTime, m.Profile.JobPolls, m.Profile.SessionTimeout = 4*time.Minute, 1, 24*time.Hour
	for _, f := range change {
		f(&m)
	}
	w := worldOf(t, bmctest.Options{Now: c.now, Pipes: c.bubble}, m)
	w.scope.Site.BMC.RestrictBoot = false
	w.scope.Site.BMC.BIOS = []plan.BIOSSettings{{Class: "EXAMPLEMODEL1", Attributes: want}}
	w.scope.Targets[0].Intent.Manufacturer, w.scope.Targets[0].Intent.Model = "Example", "Model 1"
	w.connect()
	return w, c
}

// until runs a step to its end, moving the clock on by each pause.
func (w *world) until(c *clock, step *plan.Step) plan.Result {
	w.t.Helper()
	var memo plan.Memo
	for range 400 {
		r := w.client.Run(w.t.Context(), w.scope, step, memo)
		if r.Outcome != plan.OutcomeWait {
			return r
		}
		c.t = c.t.Add(r.After)
		memo = r.Memo
	}
	w.t.Fatalf("%s: never done", step.Address)
	return plan.Result{}
}

var biosCases = map[string]struct {
	want map[string]any
	name string
	to   any
}{
	bmctest.IDRAC:      {map[string]any{"SriovGlobalEnable": "Enabled", "BootMode": "UEFI", "NumaNodesPerSocket": int64(1), "AcPwrRcvryUserDelay": "180", "SystemServiceTag": "SVCTAG1"}, "AcPwrRcvryUserDelay", 180},
	bmctest.XCC:        {map[string]any{"DevicesandIOPorts_SRIOV": "Enable", "NetworkStackSettings_PXEbootwaittime": "2"}, "NetworkStackSettings_PXEbootwaittime", 2},
	bmctest.Generic:    {map[string]any{"SriovSupport": "Enabled", "MaxNodes": int64(2)}, "MaxNodes", 2},
	bmctest.AMI:        {map[string]any{"PCIS007": "Enabled", "SETP005": "10", "NWSK000": "NWSK000Enabled"}, "SETP005", 10},
	bmctest.Supermicro: {map[string]any{"QuietBoot_002E": false, "BootRetries_0031": "3", "SRIOVSupport_00A1": "Disabled"}, "BootRetries_0031", 3},
}

// fallsBack tells whether a maker's settings object is found although the BIOS does
// not name it.
func fallsBack(vendor string) bool {
	return vendor == bmctest.IDRAC || vendor == bmctest.AMI || vendor == bmctest.Supermicro
}

// One difference, one job, one reset; then nothing more.
func TestBIOS(t *testing.T) {
	for vendor, tc := range biosCases {
		for name, change := range map[string]func(*bmctest.Machine){
			"plain":                func(*bmctest.Machine) {},
			"no graceful restart":  func(m *bmctest.Machine) { m.Profile.NoGracefulRestart = true },
			"no operating system":  func(m *bmctest.Machine) { m.Profile.NoOS = true },
			"slow to shut down":    func(m *bmctest.Machine) { m.Profile.Shutdown = 100 * time.Second },
			"host is off":          func(m *bmctest.Machine) { m.PoweredOff = true },
			"slow to schedule":     func(m *bmctest.Machine) { m.Profile.JobPolls = 12 },
			"echo before the boot": func(m *bmctest.Machine) { m.Profile.BIOSEcho = true },
			"no Location":          func(m *bmctest.Machine) { m.Profile.NoJobLocation = true },
			"ETag demanded":        func(m *bmctest.Machine) { m.Profile.RequireIfMatch = true },
			"no ETag":              func(m *bmctest.Machine) { m.Profile.NoETag = true },
			"tasks":                func(m *bmctest.Machine) { m.Profile.Tasks = vendor != bmctest.IDRAC },
			"no link to settings":  func(m *bmctest.Machine) { m.Profile.NoBIOSLink = fallsBack(vendor) },
			"settings only read":   func(m *bmctest.Machine) { m.Profile.BIOSItself = true },
			"boot is not told":     func(m *bmctest.Machine) { m.Profile.NoBootProgress = true },
			"registry's version":   func(m *bmctest.Machine) { m.Profile.RegistryVersion = "1.0.0" },
			"slow to boot":         func(m *bmctest.Machine) { m.Profile.BootTime = 25 * time.Minute },
		} {
			t.Run(vendor+" "+name, func(t *testing.T) {
				w, c := biosWorld(t, vendor, tc.want, change)
				step := stepOf(w.build(w.read()), "bios")
				if step == nil || step.Blocked != nil || !slices.Contains(step.Effects, plan.EffectReboot) || slices.Contains(step.Because, "Attributes.BootMode") {
					t.Fatalf("%+v", step)
				}
				if r := w.until(c, step); r.Outcome != plan.OutcomeDone {
					t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
				}
				if got := w.bmcs[0].BIOS(tc.name); got != tc.to || w.bmcs[0].Resets() != 1 {
					t.Errorf("%s = %v after %d resets", tc.name, got, w.bmcs[0].Resets())
				}
				if live := w.live(w.read(), "bios"); !plan.Satisfies(step.After, live.Value) {
					t.Errorf("read back %s, want %s", plan.ToJSON(live.Value), plan.ToJSON(step.After))
				}
				if p := w.build(w.read()); stepOf(p, "bios") != nil {
					t.Errorf("again: %s", steps(p))
				}
				w.close()
			})
		}
	}
}

// What the machine accepts and does not do is told by reading back, with one
// reset and no more.
func TestBIOSThatDoesNotStick(t *testing.T) {
	for vendor, tc := range biosCases {
		w, c := biosWorld(t, vendor, tc.want, func(m *bmctest.Machine) { m.Profile.BIOSIgnored = []string{tc.name} })
		step := stepOf(w.build(w.read()), "bios")
		if r := w.until(c, step); r.Outcome != plan.OutcomeDone || w.bmcs[0].Resets() != 1 {
			t.Errorf("%s: %s %s, %d resets", vendor, r.Outcome, faultText(r.Fault), w.bmcs[0].Resets())
		}
		if live := w.live(w.read(), "bios"); plan.Satisfies(step.After, live.Value) {
			t.Errorf("%s: %s is taken for done", vendor, plan.ToJSON(live.Value))
		}
		w.close()
	}
}

func TestBIOSIsJudgedInThePlan(t *testing.T) {
	for _, tc := range []struct {
		name  string
		want  map[string]any
		says  string
		block plan.Rule
		seed  func(*bmctest.BMC)
	}{
		{"an enumeration", map[string]any{"SriovGlobalEnable": "Enable"}, `takes Enabled, Disabled and not "Enable"`, "", nil},
		{"a bound", map[string]any{"AcPwrRcvryUserDelay": int64(9999)}, "takes 60 to 600 and not 9999", "", nil},
		{"no number", map[string]any{"AcPwrRcvryUserDelay": "long"}, "takes a whole number", "", nil},
		{"read-only", map[string]any{"SystemServiceTag": "OTHER"}, "can only be read", "", nil},
		{"unknown", map[string]any{"Sriov": "Enabled"}, "has no attribute Sriov", "", nil},
		{"misspelt", map[string]any{"BootMod": "Uefi"}, "has no attribute BootMod; it has BootMode", "", nil},
		{"foreign values wait", map[string]any{"SriovGlobalEnable": "Enabled"}, "LogicalProc = \"Disabled\"", plan.RuleForeign, func(b *bmctest.BMC) { b.StageBIOS("LogicalProc", "Disabled") }},
		{"a foreign job waits", map[string]any{"SriovGlobalEnable": "Enabled"}, "LogicalProc", plan.RuleForeign, func(b *bmctest.BMC) { b.StageJob(map[string]any{"LogicalProc": "Disabled"}) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, _ := biosWorld(t, bmctest.IDRAC, tc.want)
			if tc.seed != nil {
				tc.seed(w.bmcs[0])
			}
			p := w.build(w.read())
			text := ""
			for _, d := range p.Diagnostics {
				text += d.Fault.Error()
			}
			if s := stepOf(p, "bios"); tc.block != "" && (s == nil || s.Blocked == nil || s.Blocked.Rule != tc.block || !strings.Contains(s.Blocked.Text, tc.says)) {
				t.Errorf("%+v", s)
			} else if tc.block == "" && !strings.Contains(text, tc.says) {
				t.Errorf("%s %s", steps(p), text)
			}
			if mutating(w) != 0 {
				t.Error("written while planning")
			}
			w.close()
		})
	}
}

// What Supermicro adds to the rules of the settings object: names with a number,
// and a licence without which nothing is taken.
func TestBIOSOfSupermicro(t *testing.T) {
	w, _ := biosWorld(t, bmctest.Supermicro, map[string]any{"QuietBoot": false})
	if p := w.build(w.read()); len(p.Diagnostics) == 0 || !strings.Contains(p.Diagnostics[0].Fault.Error(), "it has no attribute QuietBoot; it has QuietBoot_002E") {
		t.Errorf("%s %+v", steps(p), p.Diagnostics)
	}
	w.close()
	w, c := biosWorld(t, bmctest.Supermicro, biosCases[bmctest.Supermicro].want, func(m *bmctest.Machine) { m.Profile.NoLicence = true })
	r := w.until(c, stepOf(w.build(w.read()), "bios"))
	if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCRefused || !strings.Contains(faultText(r.Fault), "SFT-OOB-LIC") || w.bmcs[0].Resets() != 0 {
		t.Errorf("%s %s, %d resets", r.Outcome, faultText(r.Fault), w.bmcs[0].Resets())
	}
	w.close()
}

// A BMC without BIOS settings is shown with what it lacks, and nothing is written
// or reset for it.
func TestBIOSThatIsNotThere(t *testing.T) {
	for _, vendor := range makers {
		for name, change := range map[string]func(*bmctest.Machine){
			"no BIOS": func(m *bmctest.Machine) { m.Profile.NoBIOS = true },
			"no settings object": func(m *bmctest.Machine) {
				m.Profile.NoBIOSLink = !fallsBack(vendor)
				m.Profile.NoBIOS = fallsBack(vendor)
			},
		} {
			w, _ := biosWorld(t, vendor, biosCases[vendor].want, change)
			p := w.build(w.read())
			shown := slices.ContainsFunc(p.Observed, func(o plan.Observation) bool { return o.Address.Kind == "bios" && o.Rule == "unsupported" })
			s := stepOf(p, "bios")
			if blocked := s != nil && s.Blocked != nil && s.Blocked.Rule == plan.RuleUnsupported; !blocked && !shown || mutating(w) != 0 {
				t.Errorf("%s %s: %s %+v", vendor, name, steps(p), p.Observed)
			}
			w.close()
		}
	}
}

// The rules of an iDRAC's job, to the letter.
func TestJobs(t *testing.T) {
	want := map[string]any{"SriovGlobalEnable": "Enabled"}
	t.Run("one that is never scheduled is deleted, without a reset", func(t *testing.T) {
		w, c := biosWorld(t, bmctest.IDRAC, want, func(m *bmctest.Machine) { m.Profile.JobsNeverSchedule = true })
		step := stepOf(w.build(w.read()), "bios")
		r := w.until(c, step)
		if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCRefused || !strings.Contains(r.Fault.Summary, "not scheduled") {
			t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
		}
		if b := w.bmcs[0]; len(b.Jobs()) != 0 || b.Resets() != 0 || b.PendingBIOS() != 0 {
			t.Errorf("jobs %v, %d resets, %d pending", b.Jobs(), b.Resets(), b.PendingBIOS())
		}
		w.profile(func(p *bmctest.Profile) { p.JobsNeverSchedule = false })
		if r := w.until(c, stepOf(w.build(w.read()), "bios")); r.Outcome != plan.OutcomeDone {
			t.Errorf("the next run: %s", faultText(r.Fault))
		}
		w.close()
	})
	t.Run("one that is there already is adopted", func(t *testing.T) {
		w, c := biosWorld(t, bmctest.IDRAC, want)
		w.bmcs[0].StageJob(want)
		step := stepOf(w.build(w.read()), "bios")
		if step == nil || step.Reason != plan.ReasonPending {
			t.Fatalf("%+v", step)
		}
		if r := w.until(c, step); r.Outcome != plan.OutcomeDone || len(w.bmcs[0].Jobs()) != 1 || w.bmcs[0].Resets() != 1 {
			t.Errorf("%s %s, jobs %v, %d resets", r.Outcome, faultText(r.Fault), w.bmcs[0].Jobs(), w.bmcs[0].Resets())
		}
		w.close()
	})
	t.Run("one that another reset carried in is left to finish", func(t *testing.T) {
		w, c := biosWorld(t, bmctest.IDRAC, want)
		step := stepOf(w.build(w.read()), "bios")
		w.bmcs[0].StageJob(want)
		w.read()
		w.bmcs[0].ResetHost()
		if got := w.bmcs[0].Jobs(); !slices.Equal(got, []string{"Running"}) {
			w.read()
			t.Logf("jobs %v", got)
		}
		if r := w.until(c, step); r.Outcome != plan.OutcomeDone || w.bmcs[0].Resets() != 1 || w.bmcs[0].BIOS("SriovGlobalEnable") != "Enabled" {
			t.Errorf("%s %s, %d resets", r.Outcome, faultText(r.Fault), w.bmcs[0].Resets())
		}
		w.close()
	})
	t.Run("one that fails ends the step", func(t *testing.T) {
		w, c := biosWorld(t, bmctest.IDRAC, want, func(m *bmctest.Machine) { m.Profile.JobFails = true })
		if r := w.until(c, stepOf(w.build(w.read()), "bios")); r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCRefused || w.bmcs[0].Resets() != 1 {
			t.Errorf("%s %s, %d resets", r.Outcome, faultText(r.Fault), w.bmcs[0].Resets())
		}
		w.close()
	})
}

// A run that ends after any exchange leaves a machine that the next run brings to
// its end, with one reset in all.
func TestBIOSAfterACrash(t *testing.T) {
	for vendor, tc := range biosCases {
		for point := range sweep.Points(t, 100, 7) { // no run has that many
			stop := point + 1
			w, c := biosWorld(t, vendor, tc.want)
			step := stepOf(w.build(w.read()), "bios")
			var memo plan.Memo
			ended := false
			for range stop {
				r := w.client.Run(t.Context(), w.scope, step, memo)
				memo = r.Memo
				if ended = r.Outcome != plan.OutcomeWait; ended {
					break
				}
				c.t = c.t.Add(min(r.After, 15*time.Second))
			}
			_ = w.client.Close(t.Context())
			w.connect()
			if step := stepOf(w.build(w.read()), "bios"); step != nil {
				if r := w.until(c, step); r.Outcome != plan.OutcomeDone && r.Outcome != plan.OutcomeAlready {
					t.Errorf("%s, stopped after %d: %s %s", vendor, stop, r.Outcome, faultText(r.Fault))
				}
			}
			if b := w.bmcs[0]; b.BIOS(tc.name) != tc.to || b.Resets() != 1 {
				t.Errorf("%s, stopped after %d: %v, %d resets, jobs %v", vendor, stop, b.BIOS(tc.name), b.Resets(), b.Jobs())
			}
			w.close()
			if ended {
				break
			}
		}
	}
}

// What BIOS attributes depend on is held against the values after the change: what
// another wanted attribute makes writable is written with it, in one reset; the rest
// is told in the plan.
func TestBIOSThatDepends(t *testing.T) {
	for _, tc := range []struct {
		name, vendor string
		want         map[string]any
		says         string
	}{
		{"read-only at the moment", bmctest.IDRAC, map[string]any{"ProcCStates": "Disabled"}, `ProcCStates is ReadOnly because SysProfile = "PerfPerWattOptimizedDapc"; also set SysProfile = "Custom"`},
		{"read-only after the change", bmctest.IDRAC, map[string]any{"ProcCStates": "Disabled", "SysProfile": "DenseCfgOptimized"}, `because SysProfile = "DenseCfgOptimized"; set SysProfile = "Custom" instead`},
		{"made writable", bmctest.IDRAC, map[string]any{"ProcCStates": "Disabled", "SysProfile": "Custom"}, ""},
		{"made writable, by display name", bmctest.IDRAC, map[string]any{"ProcCStates": "Disabled", "SysProfile": "Custom", "BootMode": "UEFI"}, ""},
		{"equal and read-only", bmctest.IDRAC, map[string]any{"ProcCStates": "Enabled", "SriovGlobalEnable": "Enabled"}, ""},
		{"a value that comes along", bmctest.IDRAC, map[string]any{"ProcCStates": "Enabled", "SysProfile": "Performance"}, `ProcCStates becomes "Disabled" because SysProfile = "PerfOptimized"; set SysProfile = `},
		{"grayed out, which is for people's eyes", bmctest.XCC, map[string]any{"Memory_MemorySpeed": "Balanced"}, ""},
		{"no longer grayed", bmctest.XCC, map[string]any{"Memory_MemorySpeed": "Balanced", "OperatingModes_ChooseOperatingMode": "CustomMode"}, ""},
		{"hidden, which is for people's eyes", bmctest.XCC, map[string]any{"DevicesandIOPorts_SPRedirection": "Enabled"}, ""},
		{"no longer hidden", bmctest.XCC, map[string]any{"DevicesandIOPorts_SPRedirection": "Enabled", "DevicesandIOPorts_COMPort2": "Enabled"}, ""},
	} {
		t.Run(tc.vendor+" "+tc.name, func(t *testing.T) {
			w, c := biosWorld(t, tc.vendor, tc.want)
			defer w.close()
			p := w.build(w.read())
			if tc.says != "" {
				if s := stepOf(p, "bios"); s != nil || len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Fault.Error(), tc.says) {
					t.Errorf("%s %+v", steps(p), p.Diagnostics)
				}
				if mutating(w) != 0 {
					t.Error("written while planning")
				}
				return
			}
			step := stepOf(p, "bios")
			if step == nil || step.Blocked != nil {
				t.Fatalf("%s %+v", steps(p), p.Diagnostics)
			}
			if r := w.until(c, step); r.Outcome != plan.OutcomeDone || w.bmcs[0].Resets() != 1 {
				t.Errorf("%s %s, %d resets", r.Outcome, faultText(r.Fault), w.bmcs[0].Resets())
			}
			if p := w.build(w.read()); stepOf(p, "bios") != nil || len(p.Diagnostics) != 0 {
				t.Errorf("again: %s %+v", steps(p), p.Diagnostics)
			}
		})
	}
}

// A BMC that holds its rules against the values before the change refuses both in one
// request; nothing is stored or reset then, and the way is one after the other.
func TestBIOSThatDependsOnWhatIsLive(t *testing.T) {
	for vendor, want := range map[string]map[string]any{
		bmctest.IDRAC: {"ProcCStates": "Disabled", "SysProfile": "Custom"},
	} {
		w, c := biosWorld(t, vendor, want, func(m *bmctest.Machine) { m.Profile.RulesLive = true })
		r := w.until(c, stepOf(w.build(w.read()), "bios"))
		if b := w.bmcs[0]; r.Outcome != plan.OutcomeFailed || !strings.Contains(faultText(r.Fault), "out of the site file for one run") || b.Resets() != 0 || mutating(w) != 1 {
			t.Errorf("%s: %s %s, %d resets, %d changes", vendor, r.Outcome, faultText(r.Fault), b.Resets(), mutating(w))
		}
		w.close()
	}
}
