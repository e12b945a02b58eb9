package bmc_test

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// kept is a kind of setting under the table: a world in which it differs, and what
// a BMC has that keeps it.
type kept struct {
	kind string
	// lacks are the makers that have no such thing: the plan says so, and nothing is
	// written.
	lacks []string
	// world is a site that wants the setting, and a BMC that differs; nil: demanding.
	world func(t *testing.T, vendor string) (*world, *clock)
	holds func(w *world) bool
	drift func(w *world) // somebody else's change
	// ignore lets the BMC accept the change and not do it; nil: it answers every
	// change with 200 and does nothing.
	ignore func(w *world)
	// again: how often a restart may come once more when nobody heard of the first.
	again int
}

// demanding is a site that wants everything of one BMC, none of which it has.
func demanding(t *testing.T, vendor string) (*world, *clock) {
	t.Helper()
	w, c := freshMachine(t, &clock{bubble: true}, vendor)
	w.monitor(monitorName, monitorPassword)
	return w, c
}

// onFamily gives the value of a maker.
func onFamily[T any](w *world, values map[string]T) T { return values[w.bmcs[0].Vendor()] }

func keptKinds() []kept {
	ofBench := func(kind string, drift func(*world)) kept {
		b := benches()[slices.IndexFunc(benches(), func(b bench) bool { return b.kind == kind })]
		return kept{kind: kind, lacks: b.lacks, holds: func(w *world) bool { return b.holds(w.bmcs[0]) }, drift: drift}
	}
	setBack := func(attribute string, value any, name string, to any) func(*world) {
		return func(w *world) {
			w.bmcs[0].SetAttribute(attribute, value)
			w.bmcs[0].SetValue(name, to)
		}
	}
	return []kept{
		{
			kind: "credential", lacks: []string{bmctest.Supermicro},
			world: func(t *testing.T, vendor string) (*world, *clock) { return fresh(t, vendor), &clock{bubble: true} },
			holds: func(w *world) bool { return w.vault.staged == "" && w.bmcs[0].Accepts("root", w.vault.stored) },
			drift: func(w *world) { w.bmcs[0].Change(func(m *bmctest.Machine) { m.Password = factoryPassword }) },
			ignore: func(w *world) {
				w.profile(func(p *bmctest.Profile) { p.PasswordIgnored = true })
			},
		},
		{
			kind: "reset", again: 1,
			world: func(t *testing.T, vendor string) (*world, *clock) {
				w, c := demanding(t, vendor)
				w.profile(func(p *bmctest.Profile) { p.RestartTime, p.WarmupTime = 2*time.Minute, time.Minute })
				w.scope.Parameters.ForceBMCRestart = true
				return w, c
			},
			holds: func(w *world) bool { return w.bmcs[0].Restarts() > 0 },
			drift: func(w *world) { w.scope.Parameters.ForceBMCRestart = true },
		},
		ofBench("hostname", func(w *world) { w.bmcs[0].SetHostname("by-hand") }),
		ofBench("network", func(w *world) { w.bmcs[0].SetDHCP(false) }),
		ofBench("ntp", func(w *world) { w.bmcs[0].SetNTP(true, "time.example.org") }),
		ofBench("time_zone", func(w *world) {
			setBack("Time.1.Timezone", "CST6CDT", "offset", "-05:00")(w)
			w.bmcs[0].SetValue("zone", "(UTC-06:00) Central Time")
		}),
		ofBench("syslog", func(w *world) {
			setBack("SysLog.1.SysLogEnable", "Disabled", "syslog", false)(w)
			w.bmcs[0].DropRecipients()
		}),
		ofBench("virtual_media", setBack("", nil, "rmedia", false)),
		{
			kind:  "bios",
			holds: func(w *world) bool { tc := biosCases[w.bmcs[0].Vendor()]; return w.bmcs[0].BIOS(tc.name) == tc.to },
			drift: func(w *world) {
				tc := biosCases[w.bmcs[0].Vendor()]
				w.bmcs[0].SetBIOS(tc.name, onFamily(w, map[string]any{bmctest.IDRAC: 60, bmctest.XCC: 1, bmctest.Generic: 8, bmctest.AMI: 1, bmctest.Supermicro: 1}))
			},
			ignore: func(w *world) {
				w.profile(func(p *bmctest.Profile) { p.BIOSIgnored = []string{biosCases[w.bmcs[0].Vendor()].name} })
			},
		},
		{
			kind: "boot_order", lacks: []string{bmctest.Supermicro},
			holds: func(w *world) bool {
				return strings.HasPrefix(strings.Join(w.bmcs[0].Boots(), " "), "nic1") && (onFamily(w, map[string]bool{bmctest.XCC: true, bmctest.Generic: true}) || !slices.Contains(w.bmcs[0].Boots(), "nic2"))
			},
			drift:  func(w *world) { w.bmcs[0].SetFirstNIC(0) },
			ignore: func(w *world) { w.profile(func(p *bmctest.Profile) { p.BootIgnored = true }) },
		},
		{
			kind: "ipmi_user",
			holds: func(w *world) bool {
				role, enabled, ipmi, secret := w.bmcs[0].User(monitorName)
				return role == "ReadOnly" && enabled && ipmi && secret == monitorPassword
			},
			drift: func(w *world) { w.bmcs[0].ChangeUser(monitorName, "Other-2-Password", "Operator") },
		},
		{
			kind:  "ipmi_lan",
			holds: func(w *world) bool { return w.bmcs[0].IPMI() },
			drift: setBack("IPMILan.1.Enable", "Disabled", "ipmi", false),
		},
		ofBench("security", func(w *world) {
			setBack("WebServer.1.BlockHTTPPort", "Disabled", "http", true)(w)
			w.bmcs[0].SetValue("lockdown", false)
		}),
	}
}

// run is one run for one kind: a plan, and its step as the interpreter visits it.
func (row kept) run(w *world, c *clock) (*plan.Step, *plan.Fault) {
	w.t.Helper()
	p := w.build(w.read())
	for _, d := range p.Diagnostics {
		if d.Severity == plan.SeverityError {
			return nil, d.Fault
		}
	}
	s := stepOf(p, row.kind)
	if s == nil || s.Blocked != nil {
		return nil, nil
	}
	return s, w.visit(c, s)
}

// begin makes the world of a cell. Only the kind is read and planned.
func (row kept) begin(t *testing.T, vendor string) (*world, *clock) {
	t.Helper()
	world := row.world
	if world == nil {
		world = demanding
	}
	w, c := world(t, vendor)
	for _, k := range bmc.Kinds() {
		if k.Name == "bmc."+row.kind {
			w.kinds = []plan.Kind{k}
		}
	}
	if row.holds(w) {
		t.Fatal("it has it already")
	}
	return w, c
}

// next is another run of the program, on a BMC that restarts nothing unasked.
func (w *world) next() {
	w.t.Helper()
	w.close()
	w.scope.Parameters.ForceBMCRestart = false
	w.connect()
}

// done brings the BMC to what is wanted.
func (row kept) done(w *world, c *clock) {
	w.t.Helper()
	if s, f := row.run(w, c); s == nil || f != nil || !row.holds(w) {
		w.t.Fatalf("%v %s, the BMC has it: %v", s, faultText(f), row.holds(w))
	}
}

// answering lets every change be answered in the BMC's stead.
func (w *world) answering(status int, body string) {
	for _, method := range []string{http.MethodPatch, http.MethodPost, http.MethodDelete} {
		for _, path := range []string{"/redfish/v1/Managers", "/redfish/v1/AccountService", "/redfish/v1/Systems"} {
			w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: method, Path: path, Status: status, Body: body})
		}
	}
}

// untouched holds what must be so after a change that did not come about.
func (row kept) untouched(w *world, f *plan.Fault, want plan.Code) {
	w.t.Helper()
	if f == nil || f.Code != want || row.holds(w) {
		w.t.Errorf("%s, want %s; the BMC has it: %v", faultText(f), want, row.holds(w))
	}
}

// cells are the columns of the table.
func cells() []struct {
	name string
	try  func(t *testing.T, row kept, vendor string)
} {
	in := func(f func(t *testing.T, row kept, vendor string)) func(t *testing.T, row kept, vendor string) {
		return func(t *testing.T, row kept, vendor string) {
			t.Helper()
			synctest.Test(t, func(t *testing.T) { f(t, row, vendor) })
		}
	}
	refused := func(status int, body string, want plan.Code) func(t *testing.T, row kept, vendor string) {
		return in(func(t *testing.T, row kept, vendor string) {
			w, c := row.begin(t, vendor)
			w.answering(status, body)
			s, f := row.run(w, c)
			if s == nil {
				t.Fatal("no step")
			}
			row.untouched(w, f, want)
			if w.bmcs[0].Resets() != 0 || w.bmcs[0].Restarts() != 0 {
				t.Errorf("%d resets, %d restarts", w.bmcs[0].Resets(), w.bmcs[0].Restarts())
			}
			w.close()
		})
	}
	return []struct {
		name string
		try  func(t *testing.T, row kept, vendor string)
	}{
		{"fresh", in(func(t *testing.T, row kept, vendor string) {
			w, c := row.begin(t, vendor)
			row.done(w, c)
			w.close()
		})},
		{"equal", in(func(t *testing.T, row kept, vendor string) {
			w, c := row.begin(t, vendor)
			row.done(w, c)
			w.next()
			writes, resets, restarts := mutating(w), w.bmcs[0].Resets(), w.bmcs[0].Restarts()
			if s, f := row.run(w, c); s != nil || f != nil || mutating(w) != writes || w.bmcs[0].Resets() != resets || w.bmcs[0].Restarts() != restarts {
				t.Errorf("%v %s, %d writes, %d resets, %d restarts", s, faultText(f), mutating(w)-writes, w.bmcs[0].Resets()-resets, w.bmcs[0].Restarts()-restarts)
			}
			w.close()
		})},
		{"drift", in(func(t *testing.T, row kept, vendor string) {
			w, c := row.begin(t, vendor)
			row.done(w, c)
			w.next()
			resets, restarts := w.bmcs[0].Resets(), w.bmcs[0].Restarts()
			row.drift(w)
			s, f := row.run(w, c)
			if s == nil || f != nil || !row.holds(w) || w.bmcs[0].Resets() > resets+1 || w.bmcs[0].Restarts() > restarts+1 {
				t.Errorf("%v %s, the BMC has it: %v, %d resets, %d restarts", s, faultText(f), row.holds(w), w.bmcs[0].Resets()-resets, w.bmcs[0].Restarts()-restarts)
			}
			w.close()
		})},
		{"refused", refused(400, extendedInfo("Base.1.12.PropertyValueNotInList", "Not in the list."), plan.CodeBMCRefused)},
		{"ignored", in(func(t *testing.T, row kept, vendor string) {
			w, c := row.begin(t, vendor)
			if row.ignore == nil {
				w.answering(200, "{}")
			} else {
				row.ignore(w)
			}
			_, f := row.run(w, c)
			row.untouched(w, f, plan.CodeNotApplied)
			if w.bmcs[0].Resets() > 1 || w.bmcs[0].Restarts() > 0 {
				t.Errorf("%d resets, %d restarts", w.bmcs[0].Resets(), w.bmcs[0].Restarts())
			}
			w.close()
		})},
		{"busy", refused(503, extendedInfo("Base.1.12.ServiceTemporarilyUnavailable", "Busy."), plan.CodeBMCBusy)},
		{"killed", killedAtEach},
	}
}

// killedAtEach ends the program at exchanges of a whole run: what it sent last
// arrives or not, and nothing after that. The next run brings the BMC to the end.
func killedAtEach(t *testing.T, row kept, vendor string) {
	t.Helper()
	total, resets, restarts := 0, 0, 0
	synctest.Test(t, func(t *testing.T) {
		w, c := row.begin(t, vendor)
		row.done(w, c)
		w.close()
		total, resets, restarts = len(w.fleet.Recorder().Records()), w.bmcs[0].Resets(), w.bmcs[0].Restarts()
	})
	for point := range sweep.Points(t, 2*total, 41) {
		at, arrives := point/2+1, point%2 == 1
		t.Run(fmt.Sprint(at, " ", arrives), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := row.begin(t, vendor)
				w.fleet.Recorder().Before(func(r exchange.Record) {
					if r.Seq >= at {
						w.dead.Store(true)
					}
				})
				if arrives {
					w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.LostReply, At: at})
					w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Reset, From: at + 1})
				} else {
					w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Reset, From: at})
				}
				_, _ = row.run(w, c)
				_ = w.client.Close(t.Context())
				w.fleet.Recorder().Before(nil)
				w.fleet.Recorder().Reset()
				w.dead.Store(false)
				c.pass(40 * time.Minute)
				w.bmcs[0].EndSessions() // the dead one's
				w.connect()
				if _, f := row.run(w, c); f != nil || !row.holds(w) {
					t.Errorf("the next run: %s, the BMC has it: %v", faultText(f), row.holds(w))
				}
				if b := w.bmcs[0]; b.Resets() > resets || b.Restarts() > restarts+row.again || !b.Accepts("root", w.rightPassword()) {
					t.Errorf("%d resets and not %d, %d restarts and not %d", b.Resets(), resets, b.Restarts(), restarts)
				}
				w.close()
			})
		})
	}
}

// rightPassword is what the vault has for the first BMC.
func (w *world) rightPassword() string {
	if w.vault != nil {
		return w.vault.stored
	}
	return password
}

// lacking is the cell of a maker that has no such thing: the plan says so, with a
// fault or as unsupported, and nothing is written.
func (row kept) lacking(t *testing.T, vendor string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, c := row.begin(t, vendor)
		p := w.build(w.read())
		said := slices.ContainsFunc(p.Observed, func(o plan.Observation) bool { return o.Rule == "unsupported" })
		for _, d := range p.Diagnostics {
			said = said || d.Fault != nil && d.Severity == plan.SeverityError
		}
		if s := stepOf(p, row.kind); s != nil {
			said = s.Blocked != nil && s.Blocked.Rule == plan.RuleUnsupported
		}
		_, _ = row.run(w, c)
		if !said || mutating(w) != 0 || row.holds(w) {
			t.Errorf("%s %+v %+v, %d writes", steps(p), p.Observed, p.Diagnostics, mutating(w))
		}
		w.close()
	})
}

// TestTable is every kind of setting on every family: fresh, equal, drift, refused,
// accepted but ignored, busy, and killed at exchanges. It prints the table and fails
// for a cell that is missing.
func TestTable(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	table := map[string]string{} // kind, maker and cell → how it went
	set := func(row kept, vendor, cell, word string) {
		mu.Lock()
		defer mu.Unlock()
		table[row.kind+" "+vendor+" "+cell] = word
	}
	t.Run("cells", func(t *testing.T) {
		for _, row := range keptKinds() {
			for _, vendor := range makers {
				t.Run(row.kind+" "+vendor, func(t *testing.T) {
					t.Parallel()
					for _, cell := range cells() {
						if slices.Contains(row.lacks, vendor) {
							set(row, vendor, cell.name, "lacks")
							continue
						}
						if t.Run(cell.name, func(t *testing.T) { cell.try(t, row, vendor) }) {
							set(row, vendor, cell.name, "ok")
						}
					}
					if slices.Contains(row.lacks, vendor) {
						row.lacking(t, vendor)
					}
				})
			}
		}
	})
	part := strings.Contains(flag.Lookup("test.run").Value.String(), "/") // only some were asked for
	var lines []string
	for _, k := range bmc.Kinds() {
		kind, written := strings.CutPrefix(k.Name, "bmc.")
		if !written { // a check, which changes nothing
			continue
		}
		for _, vendor := range makers {
			line := fmt.Sprintf("%-14s %-11s", kind, vendor)
			for _, cell := range cells() {
				word := table[kind+" "+vendor+" "+cell.name]
				if word == "" && !t.Failed() && !part {
					t.Errorf("%s on %s has no cell %q", k.Name, vendor, cell.name)
				}
				line += fmt.Sprintf(" %s:%s", cell.name, word)
			}
			lines = append(lines, line)
		}
	}
	t.Logf("\n%s", strings.Join(lines, "\n"))
}
