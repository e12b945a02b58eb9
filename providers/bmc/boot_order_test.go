package bmc_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

func bootWorld(t *testing.T, vendor string, change ...func(*bmctest.Machine)) (*world, *clock) {
	t.Helper()
	w, c := biosWorld(t, vendor, nil, change...)
	w.scope.Site.BMC.RestrictBoot, w.scope.Site.BMC.BIOS = true, nil
	w.connect()
	return w, c
}

// From the disk or another NIC to the provisioning NIC, ahead of the disk, with
// the other NICs off where the family can say so, by one reset where one is
// needed; then nothing more.
func TestBootOrder(t *testing.T) {
	want := map[string]string{
		bmctest.Generic: "nic1 disk nic2", bmctest.IDRAC: "nic1 disk", bmctest.XCC: "nic1 nic2 disk other", bmctest.AMI: "nic1 nic1 disk other",
	}
	for name, change := range map[string]func(*bmctest.Machine){
		"plain":                         func(*bmctest.Machine) {},
		"firmware 6: no RelatedItem":    func(m *bmctest.Machine) { m.Profile.NoRelatedItem, m.Profile.NoSystemSettings = true, true },
		"options make jobs, one in all": func(m *bmctest.Machine) { m.Profile.OptionJobs = bmctest.OptionsMerge },
		"iDRAC 10":                      func(m *bmctest.Machine) { m.Profile.BootOnSettings, m.Profile.NoSystemSettings = true, true },
		"slow to schedule":              func(m *bmctest.Machine) { m.Profile.JobPolls = 12 },
		"no Location":                   func(m *bmctest.Machine) { m.Profile.NoJobLocation = true },
		"host is off":                   func(m *bmctest.Machine) { m.PoweredOff = true },
		"trailing slashes":              func(m *bmctest.Machine) { m.Profile.TrailingSlash = true },
		"no network order":              func(m *bmctest.Machine) { m.Profile.NoNetworkOrder = true },
	} {
		for vendor, want := range want {
			for _, first := range []int{0, 2} {
				t.Run(vendor+" "+name+" from "+[]string{"disk", "", "other NIC"}[first], func(t *testing.T) {
					w, c := bootWorld(t, vendor, change, func(m *bmctest.Machine) { m.FirstNIC = first })
					step := stepOf(w.build(w.read()), "boot_order")
					if vendor == bmctest.XCC && first == 2 { // its class of NICs is first then
						w.close()
						return
					}
					if step == nil || step.Blocked != nil {
						p := w.build(w.read())
						t.Fatalf("%s %+v", steps(p), p.Diagnostics)
					}
					r := w.until(c, step)
					if r.Outcome != plan.OutcomeDone {
						t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
					}
					resets := 1
					if vendor == bmctest.Generic {
						resets = 0
					}
					b := w.bmcs[0]
					wants := []string{want}
					if vendor == bmctest.Generic && first == 2 {
						wants = append(wants, "nic1 nic2 disk")
					}
					if got := strings.Join(b.Boots(), " "); !slices.Contains(wants, got) || b.Resets() != resets {
						t.Errorf("boots from %s after %d resets, jobs %v", got, b.Resets(), b.Jobs())
					}
					if live := w.live(w.read(), "boot_order"); !plan.Satisfies(step.After, live.Value) {
						t.Errorf("read back %s %v", plan.ToJSON(live.Value), live.Evidence)
					}
					writes := mutating(w)
					if p := w.build(w.read()); stepOf(p, "boot_order") != nil {
						t.Errorf("again: %s", steps(p))
					}
					if r := w.client.Run(t.Context(), w.scope, step, nil); r.Outcome != plan.OutcomeAlready && r.Outcome != plan.OutcomeDone || mutating(w) != writes {
						t.Errorf("equal: %s, %d writes", r.Outcome, mutating(w)-writes)
					}
					w.close()
				})
			}
		}
	}
}

// A NIC that is not surely found changes nothing, in the plan and in a step.
func TestBootNICIsNotFound(t *testing.T) {
	for _, vendor := range []string{bmctest.Generic, bmctest.IDRAC, bmctest.AMI} {
		w, c := bootWorld(t, vendor)
		step := stepOf(w.build(w.read()), "boot_order")
		if step == nil {
			w.bmcs[0].SetFirstNIC(0)
			step = stepOf(w.build(w.read()), "boot_order")
		}
		other := plan.MAC{2, 0, 0x5e, 0, 9, 9}
		w.scope.Targets[0].Intent.Frontend[0].MAC = other
		p := w.build(w.read())
		if !slices.ContainsFunc(p.Diagnostics, func(d plan.Diagnostic) bool {
			return d.Fault.Code == plan.CodeBMCBootNIC && strings.Contains(d.Fault.Evidence["options"], "Boot0001")
		}) {
			t.Errorf("%s: %s %+v", vendor, steps(p), p.Diagnostics)
		}
		step.After = plan.Obj(map[string]plan.Value{"First": plan.Obj(map[string]plan.Value{"MACAddress": plan.Str(other.String())}), "OtherNICs": plan.Strs()})
		if r := w.until(c, step); r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCBootNIC || mutating(w) != 0 {
			t.Errorf("%s: %s %s, %d writes", vendor, r.Outcome, faultText(r.Fault), mutating(w))
		}
		w.close()
	}
}

// Without restriction an iDRAC is reordered and nothing is switched off; an AMI is
// left alone.
func TestBootIsNotRestricted(t *testing.T) {
	off := false
	for _, vendor := range []string{bmctest.IDRAC, bmctest.AMI} {
		w, c := bootWorld(t, vendor, func(m *bmctest.Machine) { m.FirstNIC = 0 })
		w.scope.Site.BMC.IDRAC, w.scope.Site.BMC.AMI = &plan.VendorSettings{RestrictBoot: &off}, &plan.VendorSettings{RestrictBoot: &off}
		w.connect()
		step := stepOf(w.build(w.read()), "boot_order")
		if vendor == bmctest.AMI {
			if step != nil {
				t.Errorf("AMI: %+v", step)
			}
			w.close()
			continue
		}
		if r := w.until(c, step); r.Outcome != plan.OutcomeDone || strings.Join(w.bmcs[0].Boots(), " ") != "nic1 nic2 disk" {
			t.Errorf("%s %s, boots %v", r.Outcome, faultText(r.Fault), w.bmcs[0].Boots())
		}
		w.close()
	}
}

// Firmware that makes a job of each option: no boot for each, and nothing left.
func TestOneOptionPerJob(t *testing.T) {
	w, c := bootWorld(t, bmctest.IDRAC, func(m *bmctest.Machine) {
		m.Profile.OptionJobs, m.FirstNIC = bmctest.OptionsRefuse, 0
		m.NICs = append(m.NICs, bmctest.NIC{MAC: plan.MAC{2, 0, 0x5e, 0, 1, 3}})
	})
	r := w.until(c, stepOf(w.build(w.read()), "boot_order"))
	if b := w.bmcs[0]; r.Outcome != plan.OutcomeFailed || b.Resets() != 0 || len(b.Jobs()) != 0 || b.BootOrder()[0] != "Boot0000" {
		t.Errorf("%s %s, %d resets, jobs %v", r.Outcome, faultText(r.Fault), b.Resets(), b.Jobs())
	}
	w.close()
}

// An order that is accepted and not kept is told by reading back, with one reset.
func TestBootOrderThatDoesNotStick(t *testing.T) {
	for _, vendor := range []string{bmctest.Generic, bmctest.IDRAC, bmctest.XCC, bmctest.AMI} {
		w, c := bootWorld(t, vendor, func(m *bmctest.Machine) { m.Profile.BootIgnored, m.FirstNIC = true, 0 })
		step := stepOf(w.build(w.read()), "boot_order")
		r := w.until(c, step)
		if r.Outcome != plan.OutcomeDone || w.bmcs[0].Resets() > 1 || plan.Satisfies(step.After, w.live(w.read(), "boot_order").Value) {
			t.Errorf("%s: %s %s, %d resets", vendor, r.Outcome, faultText(r.Fault), w.bmcs[0].Resets())
		}
		w.close()
	}
}

// An AMI whose host boots is busy, and is not reset meanwhile.
func TestBootOrderWhileTheHostBoots(t *testing.T) {
	w, c := bootWorld(t, bmctest.AMI, func(m *bmctest.Machine) { m.FirstNIC = 0 })
	step := stepOf(w.build(w.read()), "boot_order")
	w.bmcs[0].ResetHost()
	if r := w.client.Run(t.Context(), w.scope, step, nil); r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCBusy || r.Fault.After != 30*time.Second {
		t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
	}
	c.t = c.t.Add(5 * time.Minute)
	if r := w.until(c, step); r.Outcome != plan.OutcomeDone || w.bmcs[0].Resets() != 2 {
		t.Errorf("%s %s, %d resets", r.Outcome, faultText(r.Fault), w.bmcs[0].Resets())
	}
	w.close()
}

// together runs steps of one device as the interpreter does: one visit at a time,
// whichever is due first.
func (w *world) together(c *clock, steps ...*plan.Step) []plan.Result {
	type state struct {
		memo plan.Memo
		due  time.Time
		over *plan.Result
	}
	all := make([]state, len(steps))
	for range 800 {
		next := -1
		for i := range all {
			if all[i].over == nil && (next < 0 || all[i].due.Before(all[next].due)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		s := &all[next]
		if s.due.After(c.t) {
			c.t = s.due
		}
		r := w.client.Run(w.t.Context(), w.scope, steps[next], s.memo)
		if r.Outcome == plan.OutcomeWait {
			s.memo, s.due = r.Memo, c.t.Add(r.After)
			continue
		}
		s.over = &r
	}
	out := make([]plan.Result, len(steps))
	for i := range all {
		if all[i].over == nil {
			w.t.Fatalf("%s: never done", steps[i].Address)
		}
		out[i] = *all[i].over
	}
	return out
}

// BIOS settings and boot order of a device come with one reset.
func TestOneResetForAll(t *testing.T) {
	for _, vendor := range []string{bmctest.IDRAC, bmctest.XCC} {
		for _, polls := range []int{1, 9} {
			tc := biosCases[vendor]
			w, c := biosWorld(t, vendor, tc.want, func(m *bmctest.Machine) {
				m.FirstNIC, m.Profile.JobPolls = 0, polls
				for i := range 4 {
					m.NICs = append(m.NICs, bmctest.NIC{MAC: plan.MAC{2, 0, 0x5e, 0, 2, byte(i + 1)}})
				}
			})
			w.scope.Site.BMC.RestrictBoot = true
			w.connect()
			p := w.build(w.read())
			bios, order := stepOf(p, "bios"), stepOf(p, "boot_order")
			if bios == nil || order == nil {
				t.Fatalf("%s: %s %+v", vendor, steps(p), p.Diagnostics)
			}
			for i, r := range w.together(c, bios, order) {
				if r.Outcome != plan.OutcomeDone {
					t.Errorf("%s %d: %s %s", vendor, i, r.Outcome, faultText(r.Fault))
				}
			}
			b := w.bmcs[0]
			if b.Resets() != 1 || b.BIOS(tc.name) != tc.to || b.Boots()[0] != "nic1" {
				t.Errorf("%s: %d resets, %v, boots %v, jobs %v", vendor, b.Resets(), b.BIOS(tc.name), b.Boots(), b.Jobs())
			}
			w.close()
		}
	}
}

// A run that ends after any visit leaves a machine that the next one finishes.
func TestBootOrderAfterACrash(t *testing.T) {
	for _, vendor := range []string{bmctest.IDRAC, bmctest.XCC, bmctest.AMI} {
		for stop := 1; ; stop++ {
			w, c := bootWorld(t, vendor, func(m *bmctest.Machine) { m.FirstNIC = 0 })
			step := stepOf(w.build(w.read()), "boot_order")
			var memo plan.Memo
			ended := false
			for range stop {
				r := w.client.Run(t.Context(), w.scope, step, memo)
				memo = r.Memo
				if ended = r.Outcome != plan.OutcomeWait; ended {
					break
				}
				c.t = c.t.Add(min(r.After, 5*time.Second))
			}
			_ = w.client.Close(t.Context())
			w.connect()
			for range 2 { // while an AMI boots it is busy, which the interpreter waits for
				if step := stepOf(w.build(w.read()), "boot_order"); step != nil {
					r := w.until(c, step)
					if r.Outcome == plan.OutcomeFailed && r.Fault.Code == plan.CodeBMCBusy {
						c.t = c.t.Add(5 * time.Minute)
						continue
					}
					if r.Outcome != plan.OutcomeDone && r.Outcome != plan.OutcomeAlready {
						t.Errorf("%s, stopped after %d: %s %s", vendor, stop, r.Outcome, faultText(r.Fault))
					}
				}
			}
			if b := w.bmcs[0]; b.Boots()[0] != "nic1" || b.Resets() != 1 {
				t.Errorf("%s, stopped after %d: boots %v, %d resets, jobs %v", vendor, stop, b.Boots(), b.Resets(), b.Jobs())
			}
			w.close()
			if ended {
				break
			}
		}
	}
}
