package bmc_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

const (
	monitorName     = "ipmi_exporter"
	monitorPassword = "Monitor-2-Passwd"
)

// monitoredWorld is a world whose site has a monitoring account.
func monitoredWorld(t *testing.T, vendor string, change ...func(*bmctest.Machine)) *world {
	t.Helper()
	m := machine(vendor)
	for _, c := range change {
		c(&m)
	}
	w := newBubble(t, m)
	w.monitor(monitorName, monitorPassword)
	return w
}

func (w *world) monitor(user, password string) {
	b := w.scope.Site.BMC
	b.Monitoring, b.MonitoringUser = plan.SecretRef{Item: monitorName, Field: "password"}, plan.SecretRef{Item: monitorName, Field: "username"}
	b.MonitoringRole = "ReadOnly"
	w.monitoring = func(context.Context) (string, plan.Secret, error) { return user, plan.NewSecret(password, "1"), nil }
	w.connect()
}

// converged runs the steps of some kinds of a fresh plan, in its order, and gives the
// fault that ended it.
func (w *world) converged(kinds ...string) *plan.Fault {
	w.t.Helper()
	p := w.build(w.read())
	for _, d := range p.Diagnostics {
		if d.Severity == plan.SeverityError {
			return d.Fault
		}
	}
	for _, s := range p.Steps {
		if !slices.Contains(kinds, s.Address.Kind) || s.Blocked != nil {
			continue
		}
		var memo plan.Memo
		for range 30 {
			r := w.client.Run(context.Background(), w.scope, s, memo)
			raw, err := r.MarshalJSON()
			if err != nil || strings.Contains(string(raw), monitorPassword) {
				w.t.Errorf("%v %s", err, raw)
			}
			if r.Outcome == plan.OutcomeFailed {
				return r.Fault
			}
			if memo = r.Memo; r.Outcome != plan.OutcomeWait {
				break
			}
			time.Sleep(r.After)
		}
		if live := w.read().Get(s.Address); s.Action.Mutates() && !plan.Satisfies(s.After, live.Value) {
			return plan.NewFault(plan.CodeNotApplied, "%s", s.Address).With("now", string(plan.ToJSON(live.Value)))
		}
	}
	return nil
}

func (w *world) hasMonitor() {
	w.t.Helper()
	role, enabled, ipmi, secret := w.bmcs[0].User(monitorName)
	if role != "ReadOnly" || !enabled || !ipmi || secret != monitorPassword {
		w.t.Errorf("role %q, enabled %v, IPMI %v, its password is right: %v", role, enabled, ipmi, secret == monitorPassword)
	}
	if !w.bmcs[0].IPMI() {
		w.t.Error("IPMI over LAN is off")
	}
}

func TestIPMIUser(t *testing.T) {
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := monitoredWorld(t, vendor)
				p := w.build(w.read())
				user := stepOf(p, "ipmi_user")
				if user == nil || stepOf(p, "ipmi_lan") == nil || !user.Sensitive || !slices.Contains(user.Effects, plan.EffectCredential) || len(p.Diagnostics) > 0 {
					t.Fatalf("%s %+v", steps(p), p.Diagnostics)
				}
				if strings.Contains(planText(p), monitorPassword) {
					t.Error("the plan has the password")
				}
				if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
					t.Fatal(faultText(f))
				}
				w.hasMonitor()
				// Equal: nothing is written, and one login proves it.
				writes := mutating(w)
				w.close()
				w.connect()
				if p := w.build(w.read()); stepOf(p, "ipmi_user") != nil || stepOf(p, "ipmi_lan") != nil || mutating(w) != writes {
					t.Errorf("again: %s", steps(p))
				}
				// Drift: somebody else's password, role and right.
				w.bmcs[0].ChangeUser(monitorName, "Other-2-Password", "Operator")
				w.close()
				w.connect()
				if f := w.converged("ipmi_user"); f != nil {
					t.Fatal(faultText(f))
				}
				w.hasMonitor()
				if !w.bmcs[0].Accepts("root", password) || w.bmcs[0].PasswordChanges() != 0 {
					t.Error("the own account was touched")
				}
				w.close()
			})
		})
	}
}

// Killed at each exchange, the next run makes one account of it.
func TestIPMIUserKilled(t *testing.T) {
	kinds := []exchange.Kind{exchange.LostReply, exchange.Reset}
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			var total int
			synctest.Test(t, func(t *testing.T) {
				w := monitoredWorld(t, vendor)
				_ = w.converged("ipmi_user", "ipmi_lan")
				w.close()
				total = len(w.fleet.Recorder().Records())
			})
			for point := range sweep.Points(t, total*len(kinds), 11) {
				at, kind := point/len(kinds)+1, kinds[point%len(kinds)]
				t.Run(strconv.Itoa(at)+" "+string(kind), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := monitoredWorld(t, vendor)
						w.fleet.Recorder().Inject(&exchange.Fault{Kind: kind, At: at})
						_ = w.converged("ipmi_user", "ipmi_lan")
						_ = w.client.Close(context.Background())
						time.Sleep(40 * time.Minute)
						w.connect()
						if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
							t.Error(faultText(f))
						}
						w.hasMonitor()
						w.close()
					})
				})
			}
		})
	}
}

func TestIPMIUserRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare        func(*bmctest.Machine)
		user, password string
		status         int // of every POST and PATCH of accounts
		code           plan.Code
		text           string
	}{
		"refused":           {nil, monitorName, monitorPassword, 400, plan.CodeBMCRefused, "refused"},
		"busy":              {nil, monitorName, monitorPassword, 503, plan.CodeBMCBusy, "busy"},
		"password too long": {nil, monitorName, "Monitor-2-Password-too-long", 0, plan.CodeSecretInvalid, "27 bytes"},
		"name too long":     {nil, "ipmi_exporter_user", monitorPassword, 0, plan.CodeSecretInvalid, "18 bytes"},
		"the own account":   {nil, "root", monitorPassword, 0, plan.CodeConfigInvalid, "the account that enroll and Ironic use"},
	} {
		for _, vendor := range makers {
			t.Run(name+" "+vendor, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := monitoredWorld(t, vendor)
					w.monitor(tc.user, tc.password)
					if tc.status > 0 {
						for _, method := range []string{"POST", "PATCH"} {
							w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: method, Path: "/redfish/v1/AccountService/Accounts", Status: tc.status, Body: `{"error":{"message":"` + tc.password + `"}}`})
						}
					}
					f := w.converged("ipmi_user")
					if f == nil || f.Code != tc.code || !strings.Contains(faultText(f), tc.text) || strings.Contains(faultText(f), tc.password) {
						t.Errorf("%s", faultText(f))
					}
					if mutating(w) > 0 && tc.status == 0 {
						t.Error("it was sent")
					}
					w.close()
				})
			})
		}
	}
}

// A secret that the vault does not have fails the device; a BMC without accounts
// is shown and skipped.
func TestIPMIUserMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := monitoredWorld(t, bmctest.XCC)
		w.monitoring = func(context.Context) (string, plan.Secret, error) {
			return "", plan.Secret{}, plan.NewFault(plan.CodeSecretMissing, "there is no item ipmi_exporter")
		}
		w.connect()
		if p := w.build(w.read()); p.Devices[0].Verdict == plan.VerdictClean || p.Devices[0].Verdict == plan.VerdictChanges || p.Diagnostics[0].Fault.Code != plan.CodeSecretMissing {
			t.Errorf("%s %+v", p.Devices[0].Verdict, p.Diagnostics)
		}
		w.close()
	})
	synctest.Test(t, func(t *testing.T) {
		w := monitoredWorld(t, bmctest.Generic, func(m *bmctest.Machine) { m.Profile.NoAccounts = true })
		p := w.build(w.read())
		if stepOf(p, "ipmi_user") != nil || len(p.Diagnostics) > 0 || !slices.ContainsFunc(p.Observed, func(o plan.Observation) bool { return o.Address.Kind == "ipmi_user" }) {
			t.Errorf("%s %+v %+v", steps(p), p.Diagnostics, p.Observed)
		}
		w.close()
	})
}

// A monitoring account that would have to change its password first is of no use:
// the demand is dropped before it gets one, and only then.
func TestPasswordChangeOnFirstAccess(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"no account": func(*world) {},
		"an account that must change it": func(w *world) {
			if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
				w.t.Fatal(faultText(f))
			}
			w.bmcs[0].SetValue("firstaccess", true)
			w.bmcs[0].ChangeUser(monitorName, monitorPassword, "Operator")
		},
	} {
		for _, refuses := range []bool{false, true} { // a session that is good for nothing else, or none
			t.Run(fmt.Sprint(name, " ", refuses), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := monitoredWorld(t, bmctest.XCC, func(m *bmctest.Machine) { m.Profile.ChangeRefusesLogin = refuses })
					prepare(w)
					w.bmcs[0].SetValue("firstaccess", true)
					w.close()
					w.connect()
					s := stepOf(w.build(w.read()), "ipmi_user")
					if s == nil || !strings.Contains(string(plan.ToJSON(s.Before)), `"PasswordChangeOnFirstAccess":true`) {
						t.Fatalf("%+v", s)
					}
					if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
						t.Fatal(faultText(f))
					}
					w.hasMonitor()
					if w.bmcs[0].Value("firstaccess") != false {
						t.Error("accounts must still change their password")
					}
					// Somebody wants it again of new accounts: this one has its password.
					w.bmcs[0].SetValue("firstaccess", true)
					w.close()
					w.connect()
					if p := w.build(w.read()); stepOf(p, "ipmi_user") != nil {
						t.Errorf("again: %s", steps(p))
					}
					w.close()
				})
			})
		}
	}
}

// IPMI over LAN is switched on where Ironic speaks IPMI, from the start or after
// inspection, without a monitoring account, and nowhere else. There a password that
// IPMI does not take is warned of.
func TestIPMILANForIronic(t *testing.T) {
	const class = "EXAMPLEMODEL1"
	for name, tc := range map[string]struct {
		prepare func(*plan.Target)
		from    string
	}{
		"driver":            {func(t *plan.Target) { t.Intent.Ironic.Driver = "ipmi" }, "https://netbox.example.org/dcim/devices/1/"},
		"switched":          {func(t *plan.Target) { t.Ironic.SwitchToIPMI = true }, "site.hcl:5"},
		"platform switched": {func(t *plan.Target) { t.Ironic.SwitchPlatforms = []string{class} }, "site.hcl:6"},
		"another platform":  {func(t *plan.Target) { t.Ironic.SwitchPlatforms = []string{class + "X"} }, ""},
	} {
		for _, vendor := range makers {
			t.Run(name+" "+vendor, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const long = "Twenty-one-Characters" // of which IPMI takes twenty
					m := machine(vendor)
					m.Password = long
					w := newBubble(t, m)
					w.passwords["gpu-001"] = long
					target := w.scope.Targets[0]
					target.Intent.Manufacturer, target.Intent.Model = "Example", "Model 1"
					target.Ironic = &plan.IronicSettings{Name: "x"}
					target.Site.Set = map[string]string{"ironic.x.switch_to_ipmi_after_inspection": "site.hcl:5", "ironic.x.switch_to_ipmi_platforms": "site.hcl:6"}
					warned := func(p *plan.Plan) bool {
						return slices.ContainsFunc(p.Diagnostics, func(d plan.Diagnostic) bool {
							return d.Fault != nil && d.Fault.Code == plan.CodeSecretInvalid && strings.Contains(d.Fault.Summary, "over IPMI")
						})
					}
					if p := w.build(w.read()); stepOf(p, "ipmi_lan") != nil || warned(p) {
						t.Error("nobody speaks IPMI, and it is switched on")
					}
					tc.prepare(target)
					p := w.build(w.read())
					s := stepOf(p, "ipmi_lan")
					if tc.from == "" {
						if s != nil || warned(p) {
							t.Errorf("%s %+v", steps(p), p.Diagnostics)
						}
						w.close()
						return
					}
					if s == nil || stepOf(p, "ipmi_user") != nil || !slices.Equal(s.From, []string{tc.from}) || !warned(p) {
						t.Fatalf("%s %+v %+v", steps(p), s, p.Diagnostics)
					}
					if f := w.converged("ipmi_lan"); f != nil {
						t.Fatal(faultText(f))
					}
					if p := w.build(w.read()); stepOf(p, "ipmi_lan") != nil {
						t.Error("it is not on")
					}
					w.close()
				})
			})
		}
	}
}
