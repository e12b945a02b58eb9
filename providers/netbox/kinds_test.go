package netbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

var (
	_ providers.Reader = (*netbox.Client)(nil)
	_ providers.Runner = (*netbox.Client)(nil)
)

func kinds() []plan.Kind { return netbox.Kinds() }

func desired(sc *plan.Scope) []plan.Resource { return plan.Desired(sc, kinds()) }

// provide stands in for the kind of another provider whose step netbox.tag
// waits for.
func provide(planned bool) plan.Kind {
	return plan.Kind{
		Name: "ironic.provision", Phase: plan.PhaseClean,
		Want: func(t *plan.Target) []plan.Resource {
			return []plan.Resource{{Address: t.Address("ironic", "provision", "provide"), Want: plan.Str("available")}}
		},
		Decide: func(d plan.Decision) plan.Verdict {
			if !planned {
				return plan.Nothing()
			}
			return plan.Verdict{Step: &plan.Step{Action: plan.ActionTransition, Reason: plan.ReasonState, Before: plan.Str("manageable"), After: d.Resource.Want}}
		},
	}
}

// The tag of configured BMCs comes after everything that is set on the BMC, and not
// where that is not the plan's to finish.
func TestBMCTag(t *testing.T) {
	const tag = "netbox.tag[ipmi_exporter]"
	held := plan.Ownership{State: plan.StateActive, Owned: true, Satisfied: true, Reason: "instance x"}
	for name, tc := range map[string]struct {
		configure bool
		tags      []string
		owner     plan.Ownership
		blocked   bool
		planned   bool
	}{
		"fresh":                  {configure: true, planned: true},
		"tagged":                 {configure: true, tags: []string{"ipmi_exporter"}},
		"BMCs are not ours":      {},
		"held by somebody":       {configure: true, owner: held},
		"a setting is forbidden": {configure: true, blocked: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := host(1)
			d.Status, d.Tags = "active", tc.tags
			s := serve(t, netboxtest.Options{}, d)
			c := client(t, s.URL, s.Token)
			st := site()
			st.BMC, st.ConfigureBMC = &plan.BMCSettings{}, tc.configure
			sc := scopeOf(st, intent(t, c, st, "gpu-001"))
			ntp := plan.Kind{Name: "bmc.ntp", Phase: plan.PhaseBMC,
				Want: func(t *plan.Target) []plan.Resource {
					return []plan.Resource{{Address: t.Address("bmc", "ntp", ""), Want: plan.Str("a")}}
				},
				Decide: func(d plan.Decision) plan.Verdict {
					v := plan.Compare(d)
					if tc.blocked {
						v.Step.Blocked = &plan.Block{Rule: plan.RuleUnsupported, Text: "no such thing"}
					}
					return v
				}}
			world := c.Read(context.Background(), sc, desired(sc))
			world[sc.Targets[0].Address("bmc", "ntp", "")] = plan.LiveValue(plan.Str("b"))
			p := plan.Build(plan.Input{Scope: sc, Kinds: append(netbox.Kinds(), ntp), World: world, Owners: map[string]plan.Ownership{"gpu-001": tc.owner}})
			ids := map[string]string{}
			var found *plan.Step
			for _, step := range p.Steps {
				ids[step.Address.Local()] = step.ID
				if step.Address.Local() == tag {
					found = step
				}
			}
			if (found != nil) != tc.planned {
				t.Fatalf("planned: %v, want %v", found, tc.planned)
			}
			if found != nil && !slices.Contains(found.Needs, ids["bmc.ntp"]) {
				t.Errorf("it needs %v, not %s", found.Needs, ids["bmc.ntp"])
			}
		})
	}
}

// What is planned, by the record's status and tags and the node's state.
func TestDecide(t *testing.T) {
	class := `netbox.platform_class update {"platform_class":""} → {"platform_class":"H200_LENOVOHG635NV2_NORDMA_01"}`
	status := `netbox.status update {"status":"staged"} → {"status":"active"}`
	tag := `netbox.tag[ironic] update {"present":false} → {"present":true}`
	for name, tc := range map[string]struct {
		status  string
		class   string
		tags    []string
		owner   plan.Ownership
		provide bool
		want    []string
	}{
		"fresh":                 {status: "staged", provide: true, want: []string{class, status, tag}},
		"without Ironic":        {status: "staged", want: []string{class, status}},
		"active, on the way":    {status: "active", class: "H200_LENOVOHG635NV2_NORDMA_01", owner: plan.Ownership{State: plan.StateManageable}, want: nil},
		"another class":         {status: "active", class: "KEPT", owner: plan.Ownership{State: plan.StateManageable}, want: nil},
		"blank class":           {status: "active", class: " \n", owner: plan.Ownership{State: plan.StateManageable}, want: []string{class}},
		"available, no tag":     {status: "active", class: "KEPT", owner: plan.Ownership{State: plan.StateAvailable}, want: []string{tag}},
		"available and tagged":  {status: "active", class: "KEPT", tags: []string{"ironic"}, owner: plan.Ownership{State: plan.StateAvailable}, want: nil},
		"satisfied by instance": {status: "active", owner: plan.Ownership{State: plan.StateActive, InstanceUUID: "x", Owned: true, Satisfied: true, Reason: "instance x"}, want: []string{class + " blocked owned", tag}},
		"satisfied and staged":  {status: "staged", class: "KEPT", owner: plan.Ownership{State: plan.StateActive, Owned: true, Satisfied: true, Reason: "instance x"}, want: []string{status + " blocked owned", tag}},
		"owned, not satisfied":  {status: "staged", class: "KEPT", owner: plan.Ownership{State: "rescue", Owned: true, Reason: "rescue"}, want: []string{status + " blocked owned"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := host(1)
			d.Status, d.Tags, d.CustomFields = tc.status, tc.tags, map[string]any{"platform_class": tc.class}
			s := serve(t, netboxtest.Options{}, d)
			c := client(t, s.URL, s.Token)
			sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
			p := plan.Build(plan.Input{Scope: sc, Kinds: append(netbox.Kinds(), provide(tc.provide)), World: c.Read(context.Background(), sc, desired(sc)), Owners: map[string]plan.Ownership{"gpu-001": tc.owner}})
			var got []string
			for _, step := range p.Steps {
				if step.Address.System != "netbox" {
					continue
				}
				text := step.Address.Local() + " " + string(step.Action) + " " + string(plan.ToJSON(step.Before)) + " → " + string(plan.ToJSON(step.After))
				if step.Blocked != nil {
					text += " blocked " + string(step.Blocked.Rule)
				} else if step.Guard == "" {
					t.Errorf("%s has no guard", step.Address)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			kept := 0
			for _, o := range p.Observed {
				if o.Rule == "kept" && plan.Text(o.Live, "platform_class") == "KEPT" {
					kept++
				}
			}
			for _, d := range p.Diagnostics {
				if d.Severity == plan.SeverityWarning && d.Fault.Code == plan.CodePlatformKept && d.Fault.Evidence["url"] != "" {
					kept++
				}
			}
			if want := tc.class == "KEPT"; (kept == 2) != want {
				t.Errorf("observed and warned about the kept class: %d times", kept)
			}
		})
	}
}

// A status that changed between the intent and the live read is a fault, not a
// write.
func TestDecideOddStatus(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	s.SetStatus("gpu-001", "failed")
	p := plan.Build(plan.Input{Scope: sc, Kinds: netbox.Kinds(), World: c.Read(context.Background(), sc, desired(sc)), Owners: map[string]plan.Ownership{"gpu-001": {State: plan.StateAvailable}}})
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Fault.Code != plan.CodeStatusNotEligible {
		t.Errorf("diagnostics %v", p.Diagnostics)
	}
	for _, step := range p.Steps {
		if step.Blocked == nil {
			t.Errorf("%s would run", step.Address)
		}
	}
}

// stepFor makes the step that a kind plans.
func stepFor(t *testing.T, c *netbox.Client, sc *plan.Scope, local string) *plan.Step {
	t.Helper()
	p := plan.Build(plan.Input{Scope: sc, Kinds: netbox.Kinds(), World: c.Read(context.Background(), sc, desired(sc)), Owners: map[string]plan.Ownership{"gpu-001": {State: plan.StateAvailable}}})
	n := slices.IndexFunc(p.Steps, func(s *plan.Step) bool { return s.Address.Local() == local })
	if n < 0 {
		t.Fatalf("no step %s in %v", local, p.Steps)
	}
	return p.Steps[n]
}

// shows reports whether a new read satisfies the step.
func shows(t *testing.T, c *netbox.Client, sc *plan.Scope, step *plan.Step) bool {
	t.Helper()
	live := c.Read(context.Background(), sc, desired(sc)).Get(step.Address)
	if live.Presence != plan.Present {
		t.Fatalf("%s: %s %v", step.Address, live.Presence, live.Fault)
	}
	return plan.Satisfies(step.After, live.Value)
}

// Every version of NetBox: the step's exchange makes the read-back true, leaves
// the rest of the device alone, writes once, and a second run writes nothing.
func TestRun(t *testing.T) {
	for _, opt := range []netboxtest.Options{{Version: "4.2"}, {Version: "4.5"}, {Version: "4.6"}, {Version: "4.6", NoETag: true}, {Version: "4.7"}} {
		for _, local := range writable() {
			name := opt.Version + " " + local
			if opt.NoETag {
				name += " without ETag"
			}
			t.Run(name, func(t *testing.T) {
				o := opt
				token := netboxtest.DefaultToken
				if o.Version == "4.2" {
					token = strings.Repeat("0123456789", 4) // v2 tokens come with 4.5
					o.Tokens = []netboxtest.Token{{Value: token}}
				}
				d := host(1)
				d.Tags, d.CustomFields = []string{"ipmi_exporter"}, map[string]any{"asset": "KEPT"}
				o.Fields = []netboxtest.Field{{Object: "dcim.device", Name: "platform_class"}, {Object: "dcim.device", Name: "asset"}, {Object: "dcim.devicetype", Name: "gpu_type"}}
				s := serve(t, o, d)
				c := client(t, s.URL, token)
				sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
				step := stepFor(t, c, sc, local)
				if shows(t, c, sc, step) {
					t.Fatal("satisfied before it ran")
				}
				if r := through(t, c, sc, step); r.Outcome != plan.OutcomeDone {
					t.Fatalf("%s %v", r.Outcome, r.Fault)
				}
				if !shows(t, c, sc, step) {
					t.Error("not satisfied after it ran")
				}
				if r := c.Run(context.Background(), sc, step, nil); r.Outcome != plan.OutcomeAlready {
					t.Errorf("second run: %s %v", r.Outcome, r.Fault)
				}
				writes := 0
				for _, rec := range s.Recorder.Records() {
					if rec.Mutating {
						writes++
						if rec.System != "netbox" || rec.Device != "gpu-001" || rec.Method != "PATCH" {
							t.Errorf("record %+v", rec)
						}
					}
				}
				if writes != 1 {
					t.Errorf("%d writes", writes)
				}
				got, _ := s.Device("gpu-001")
				wantStatus, wantTags, wantClass := "staged", []string{"ipmi_exporter"}, any(nil)
				switch local {
				case "netbox.status":
					wantStatus = "active"
				case "netbox.platform_class":
					wantClass = "H200_LENOVOHG635NV2_NORDMA_01"
				default:
					wantTags = append(wantTags, "ironic")
				}
				if got.Status != wantStatus || !slices.Equal(got.Tags, wantTags) || got.CustomFields["asset"] != "KEPT" || got.CustomFields["platform_class"] != wantClass || got.Serial != d.Serial {
					t.Errorf("device is now %+v", got)
				}
				changes := s.Changes()
				if len(changes) != 1 || (o.Version >= "4.4" && !strings.HasPrefix(changes[0].Message, "enroll plan 01J: ")) {
					t.Errorf("change log %+v", changes)
				}
			})
		}
	}
}

// The note in the change log is cut, because NetBox breaks on a long one.
func TestLongNote(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	c, err := netbox.New(netbox.Options{URL: s.URL, Token: plan.NewSecret(s.Token, ""), ChangelogMessage: strings.Repeat("ü", 300)})
	if err != nil {
		t.Fatal(err)
	}
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	if r := c.Run(context.Background(), sc, stepFor(t, c, sc, "netbox.status"), nil); r.Outcome != plan.OutcomeDone {
		t.Fatalf("%s %v", r.Outcome, r.Fault)
	}
	note := s.Changes()[0].Message
	if !strings.HasSuffix(note, ": status staged to active") {
		t.Errorf("note %q", note)
	}
}

// Somebody else writes between our read and our write: 412, then the step is
// decided anew, and nothing of the other's is lost.
func TestRunWithRival(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	s.AddTag("rack-checked")
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	step := stepFor(t, c, sc, "netbox.tag[ironic]")
	rival := 2
	s.BeforePatch(func(name string) {
		if rival > 0 {
			rival--
			s.Update(name, func(d *netboxtest.Device) { d.Tags = []string{"rack-checked"} })
		}
	})
	var memo plan.Memo
	for try := 1; try <= 2; try++ {
		r := c.Run(context.Background(), sc, step, memo)
		if r.Outcome != plan.OutcomeWait || r.After <= 0 || !strings.Contains(r.Observed, "somebody else") {
			t.Fatalf("try %d: %+v", try, r)
		}
		memo = r.Memo
	}
	if r := c.Run(context.Background(), sc, step, memo); r.Outcome != plan.OutcomeDone {
		t.Fatalf("%s %v", r.Outcome, r.Fault)
	}
	if d, _ := s.Device("gpu-001"); !slices.Equal(d.Tags, []string{"rack-checked", "ironic"}) {
		t.Errorf("tags %v", d.Tags)
	}
	// A rival that never rests ends the step.
	rival = 99
	s.Update("gpu-001", func(d *netboxtest.Device) { d.Tags = nil })
	memo = nil
	for {
		r := c.Run(context.Background(), sc, step, memo)
		if r.Outcome == plan.OutcomeWait {
			memo = r.Memo
			continue
		}
		wantCode(t, r.Fault, plan.CodeNetBoxRefused)
		if rival != 99-3 {
			t.Errorf("%d tries", 99-rival)
		}
		break
	}
}

// A device that was deleted and made again under its name is another device.
func TestDeviceMadeAgain(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	c := client(t, s.URL, s.Token)
	sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
	step := stepFor(t, c, sc, "netbox.status")
	s.Remove("gpu-001")
	s.AddDevice(host(1))
	live := c.Read(context.Background(), sc, desired(sc)).Get(step.Address)
	if live.Presence != plan.Unreadable {
		t.Fatalf("presence %s", live.Presence)
	}
	wantCode(t, live.Fault, plan.CodeDeviceNotFound)
	wantCode(t, c.Run(context.Background(), sc, step, nil).Fault, plan.CodeDeviceNotFound)
	s.Update("gpu-001", func(d *netboxtest.Device) { d.Name = "gpu-900" })
	if d, _ := s.Device("gpu-900"); d.Status != "staged" {
		t.Errorf("the other device was written: %s", d.Status)
	}
}
