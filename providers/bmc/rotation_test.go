package bmc_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

const (
	storedPassword  = "Stored-2-Password"
	factoryPassword = "Factory-2-Password"
)

// testVault is the item of one device.
type testVault struct {
	stored, staged, factory string
	readOnly                bool
	made                    []string // every password that was staged
	writes                  int
	// breakAt is the write that fails, from 1; after it was done where lost is set.
	breakAt int
	lost    bool
	// unversioned: as of a vault that has no versions.
	unversioned bool
}

func (v *testVault) version() string {
	if v.unversioned {
		return ""
	}
	return strconv.Itoa(v.writes + 1)
}

func (v *testVault) Passwords(context.Context, string) (p bmc.Passwords, err error) {
	secret := func(s string) plan.Secret {
		if s == "" {
			return plan.Secret{}
		}
		return plan.NewSecret(s, v.version())
	}
	ref := func(field string) plan.SecretRef { return plan.SecretRef{Item: "bmc", Field: field} }
	return bmc.Passwords{StagedRef: ref("staged"), FactoryRef: ref("factory"), Staged: secret(v.staged), Factory: secret(v.factory), ReadOnly: v.readOnly}, nil
}

func (v *testVault) write(do func()) error {
	v.writes++
	if v.writes == v.breakAt {
		if v.lost {
			do()
		}
		return plan.NewFault(plan.CodeSecretUnreachable, "the vault is gone")
	}
	do()
	return nil
}

func (v *testVault) Stage(_ context.Context, _ string, next plan.Secret) error {
	if v.staged != "" || v.readOnly {
		return plan.NewFault(plan.CodeSecretConflict, "staged already")
	}
	return v.write(func() {
		v.staged = next.Reveal()
		v.made = append(v.made, v.staged)
	})
}

func (v *testVault) Publish(context.Context, string) error {
	if v.staged == "" {
		return plan.NewFault(plan.CodeSecretConflict, "nothing staged")
	}
	return v.write(func() { v.stored, v.staged = v.staged, "" })
}

// rotating are the families whose password enroll sets.
var rotating = []string{bmctest.Generic, bmctest.IDRAC, bmctest.XCC, bmctest.AMI}

// fresh is a world with a BMC as the factory leaves it.
func fresh(t *testing.T, vendor string, change ...func(*bmctest.Machine)) *world {
	t.Helper()
	m := machine(vendor)
	m.Password = factoryPassword
	for _, c := range change {
		c(&m)
	}
	w := newBubble(t, m)
	w.vault = &testVault{stored: storedPassword, factory: factoryPassword}
	w.refusals = memory{}
	w.connect()
	return w
}

func demanded(m *bmctest.Machine) { m.Profile.PasswordChange = true }

// rotate runs the credential's step of a new plan as the interpreter does; nil when
// the plan has none.
func (w *world) rotate() (*plan.Step, plan.Result) {
	w.t.Helper()
	p := w.build(w.read())
	w.noPassword("plan", planText(p))
	s := stepOf(p, "credential")
	if s == nil {
		if len(p.Diagnostics) > 0 {
			return nil, plan.Failed(p.Diagnostics[0].Fault)
		}
		return nil, plan.Already()
	}
	var memo plan.Memo
	for range 30 {
		r := w.client.Run(context.Background(), w.scope, s, memo)
		raw, err := r.MarshalJSON()
		if err != nil {
			w.t.Fatal(err)
		}
		w.noPassword("result", string(raw))
		if r.Outcome == plan.OutcomeFailed {
			w.noPassword("fault", faultText(r.Fault))
		}
		if r.Outcome != plan.OutcomeWait {
			return s, r
		}
		time.Sleep(r.After)
		memo = r.Memo
	}
	w.t.Fatal("never done")
	return nil, plan.Result{}
}

func planText(p *plan.Plan) string {
	text := steps(p)
	for _, d := range p.Diagnostics {
		text += faultText(d.Fault)
	}
	for _, s := range p.Steps {
		text += string(plan.ToJSON(s.After)) + strings.Join(s.From, " ")
		if !s.BeforeUnknown {
			text += string(plan.ToJSON(s.Before))
		}
	}
	return text
}

// noPassword looks for every password that there is.
func (w *world) noPassword(where, text string) {
	w.t.Helper()
	noSecret(w.t, where, text)
	for _, p := range append(w.vault.made, factoryPassword, storedPassword) {
		if strings.Contains(text, p) {
			w.t.Errorf("%s holds a password: %s", where, text)
		}
	}
}

// kept holds what must be so at every end: the vault and the BMC agree, nothing is
// staged, no account is locked, and planning again finds nothing to do.
func (w *world) kept() {
	w.t.Helper()
	if w.vault.staged != "" || !w.bmcs[0].Accepts("root", w.vault.stored) {
		w.t.Errorf("staged %v, the BMC takes the stored password: %v", w.vault.staged != "", w.bmcs[0].Accepts("root", w.vault.stored))
	}
	_ = w.client.Close(context.Background())
	w.connect()
	failed, writes := w.bmcs[0].FailedLogins(), mutating(w)
	if s, r := w.rotate(); s != nil || r.Outcome != plan.OutcomeAlready {
		w.t.Errorf("the next run: %+v %s %s", s, r.Outcome, faultText(r.Fault))
	}
	if w.bmcs[0].FailedLogins() != failed || mutating(w) != writes {
		w.t.Error("the next run failed to log in, or wrote")
	}
	w.close()
}

func TestRotate(t *testing.T) {
	for _, vendor := range rotating {
		for name, tc := range map[string]struct {
			prepare func(*bmctest.Machine)
			vault   func(*testVault)
			changes int // of the BMC's password
			reason  plan.Reason
		}{
			"factory":                    {nil, nil, 1, plan.ReasonDiffers},
			"factory, change demanded":   {demanded, nil, 1, plan.ReasonDiffers},
			"no session before":          {func(m *bmctest.Machine) { demanded(m); m.Profile.ChangeRefusesLogin = true }, nil, 1, plan.ReasonDiffers},
			"stored, change demanded":    {func(m *bmctest.Machine) { demanded(m); m.Password = storedPassword }, nil, 1, plan.ReasonDiffers},
			"staged and set":             {func(m *bmctest.Machine) { m.Password = "Staged-2-Password" }, func(v *testVault) { v.staged = "Staged-2-Password" }, 0, plan.ReasonPending},
			"staged and not set":         {nil, func(v *testVault) { v.staged = "Staged-2-Password" }, 1, plan.ReasonDiffers},
			"the vault is only read":     {nil, func(v *testVault) { v.readOnly = true }, 1, plan.ReasonDiffers},
			"only read, change demanded": {demanded, func(v *testVault) { v.readOnly = true }, 1, plan.ReasonDiffers},
			"no sessions":                {func(m *bmctest.Machine) { m.Profile.NoSessions = true }, nil, 1, plan.ReasonDiffers},
			"if-match demanded":          {func(m *bmctest.Machine) { m.Profile.RequireIfMatch = true }, nil, 1, plan.ReasonDiffers},
		} {
			t.Run(vendor+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := fresh(t, vendor, func(m *bmctest.Machine) {
						if tc.prepare != nil {
							tc.prepare(m)
						}
					})
					if tc.vault != nil {
						tc.vault(w.vault)
					}
					stored := w.vault.stored
					s, r := w.rotate()
					if s == nil || s.Reason != tc.reason || !s.Sensitive || len(s.Effects) != 1 || s.Effects[0] != plan.EffectCredential || r.Outcome != plan.OutcomeDone {
						t.Fatalf("%+v %s %s", s, r.Outcome, faultText(r.Fault))
					}
					if live := w.live(w.read(), "credential"); !plan.Satisfies(s.After, live.Value) {
						t.Errorf("read back: %s %s", live.Presence, faultText(live.Fault))
					}
					if n := w.bmcs[0].PasswordChanges(); n != tc.changes {
						t.Errorf("%d changes", n)
					}
					if (w.vault.stored == stored) != w.vault.readOnly {
						t.Errorf("the stored password is the old one: %v", w.vault.stored == stored)
					}
					w.close()
					w.kept()
				})
			})
		}
	}
}

// Wherever a run is killed, the next ones come to the end, and no account is locked.
func TestRotateKilled(t *testing.T) {
	kinds := []exchange.Kind{exchange.Reset, exchange.LostReply}
	for _, vendor := range rotating {
		for name, demand := range map[string]func(*bmctest.Machine){"factory": func(*bmctest.Machine) {}, "demanded": demanded} {
			t.Run(vendor+" "+name, func(t *testing.T) {
				var total int
				synctest.Test(t, func(t *testing.T) {
					w := fresh(t, vendor, demand)
					w.rotate()
					w.close()
					total = len(w.fleet.Recorder().Records())
				})
				for point := range sweep.Points(t, total*len(kinds), 7) {
					at, kind := point/len(kinds)+1, kinds[point%len(kinds)]
					t.Run(strconv.Itoa(at)+" "+string(kind), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							w := fresh(t, vendor, demand)
							w.fleet.Recorder().Inject(&exchange.Fault{Kind: kind, At: at})
							w.rotate()
							w.recover()
						})
					})
				}
			})
		}
	}
}

// recover is what the runs after a killed one do; a person starts them so far apart
// that a session of which Close said that it may be left has ended, and that no
// refused login counts any more.
func (w *world) recover() {
	w.t.Helper()
	for range 2 {
		_ = w.client.Close(context.Background())
		time.Sleep(61 * time.Minute)
		w.connect()
		if _, r := w.rotate(); r.Outcome != plan.OutcomeFailed {
			break
		} else if r.Fault.Code == plan.CodeBMCLocked {
			w.t.Error("locked")
		}
	}
	w.kept()
}

func TestRotateVaultBreaks(t *testing.T) {
	for _, vendor := range rotating {
		for at := 1; at <= 2; at++ {
			for _, lost := range []bool{false, true} {
				t.Run(vendor+" "+strconv.Itoa(at)+" "+strconv.FormatBool(lost), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := fresh(t, vendor)
						w.vault.breakAt, w.vault.lost = at, lost
						if _, r := w.rotate(); r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeSecretUnreachable {
							t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
						}
						w.recover()
						if len(w.vault.made) > 1 {
							t.Errorf("%d passwords were staged", len(w.vault.made))
						}
					})
				})
			}
		}
	}
}

// A password that the BMC takes and does not apply, refuses, or is too busy for.
func TestRotateRefused(t *testing.T) {
	for _, vendor := range rotating {
		for name, tc := range map[string]struct {
			prepare func(*bmctest.Machine)
			fault   *exchange.Fault
			code    plan.Code
			changes int
		}{
			"ignored": {func(m *bmctest.Machine) { m.Profile.PasswordIgnored = true }, nil, plan.CodeNotApplied, 1},
			"refused": {func(m *bmctest.Machine) {}, &exchange.Fault{Kind: exchange.Status, Method: "PATCH", Status: 400, Body: `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.12.PropertyValueFormatError","MessageArgs":["Factory-2-Password"]}]}}`}, plan.CodeBMCRefused, 0},
			"busy":    {func(m *bmctest.Machine) {}, &exchange.Fault{Kind: exchange.Status, Method: "PATCH", Status: 503, Body: "{}"}, plan.CodeBMCBusy, 0},
		} {
			t.Run(vendor+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := fresh(t, vendor, tc.prepare)
					if tc.fault != nil {
						w.fleet.Recorder().Inject(tc.fault)
					}
					if _, r := w.rotate(); r.Outcome != plan.OutcomeFailed || r.Fault.Code != tc.code {
						t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
					}
					if n := w.bmcs[0].PasswordChanges(); n != tc.changes || w.vault.staged == "" || w.vault.stored != storedPassword {
						t.Errorf("%d changes; staged: %v", n, w.vault.staged != "")
					}
					w.close()
					w.fleet.Recorder().Reset()
					w.bmcs[0].Change(func(m *bmctest.Machine) { m.Profile.PasswordIgnored = false })
					w.recover()
				})
			})
		}
	}
}

// None of the passwords fits: two are tried, the third after a pause, and nothing
// else is done.
func TestRotateNothingFits(t *testing.T) {
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := fresh(t, vendor, func(m *bmctest.Machine) { m.Password = "by-hand-1-Password" })
				w.vault.staged = "Staged-2-Password"
				_, r := w.rotate()
				if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCCredential {
					t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
				}
				want := 3
				if vendor == bmctest.IDRAC {
					want = 1 // within its window
				}
				if vendor == bmctest.Supermicro {
					want = 1 // no password is ever set there
				}
				if n := w.bmcs[0].FailedLogins(); n != want || mutating(w) != 0 {
					t.Errorf("%d logins failed, %d writes", n, mutating(w))
				}
				if !w.bmcs[0].Accepts("root", "by-hand-1-Password") {
					t.Error("locked")
				}
				w.close()
			})
		})
	}
}

// A password that breaks a rule is not sent: the plan says which rule.
func TestRotateRules(t *testing.T) {
	for stored, want := range map[string]string{
		"this-1-is-Longer-than-ipmi": "has 26 bytes",
		"Short-1":                    "has 7 characters",
		"lettersonlyhere":            "wants letters and digits",
		"Unprintable-1-ä":            "printable ASCII",
		" Blank-1-ahead":             "blank",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := fresh(t, bmctest.XCC)
			w.vault.stored, w.vault.readOnly = stored, true
			_, r := w.rotate()
			if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeSecretInvalid || !strings.Contains(faultText(r.Fault), want) || strings.Contains(faultText(r.Fault), stored) {
				t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
			}
			if mutating(w) != 0 {
				t.Error("it was sent")
			}
			w.close()
		})
	}
}

// After a rotation the families that need it are restarted, and others are not; a
// BMC that shows nothing before is planned from intent.
func TestRotateThenRestart(t *testing.T) {
	for _, vendor := range rotating {
		for name, demand := range map[string]func(*bmctest.Machine){"factory": func(*bmctest.Machine) {}, "demanded": demanded} {
			t.Run(vendor+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := fresh(t, vendor, demand)
					p := w.build(w.read())
					reset := stepOf(p, "reset")
					resets := vendor != bmctest.Generic
					if reset == nil && (resets || name == "demanded") || stepOf(p, "hostname") == nil || stepOf(p, "ntp") == nil || len(p.Diagnostics) > 0 {
						t.Fatalf("%s %+v", steps(p), p.Diagnostics)
					}
					for _, s := range p.Steps {
						if live := w.read().Get(s.Address); live.Presence == plan.Present && plan.Satisfies(s.After, live.Value) {
							continue
						}
						var memo plan.Memo
						for {
							r := w.client.Run(context.Background(), w.scope, s, memo)
							if memo = r.Memo; r.Outcome == plan.OutcomeWait {
								time.Sleep(r.After)
								continue
							}
							if r.Outcome == plan.OutcomeFailed {
								t.Errorf("%s: %s", s.Address, faultText(r.Fault))
							}
							break
						}
					}
					if n := w.bmcs[0].Restarts(); n != map[bool]int{true: 1}[resets] {
						t.Errorf("%d restarts", n)
					}
					w.close()
				})
			})
		}
	}
}
