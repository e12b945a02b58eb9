package ironic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

var (
	_ providers.Reader = (*ironic.Client)(nil)
	_ providers.Runner = (*ironic.Client)(nil)
	_ providers.Owner  = (*ironic.Client)(nil)
	_ providers.Closer = (*ironic.Client)(nil)
)

const password = `p&"s3cret'word`

// clock is a clock that only tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// lab is a site with one Ironic, and a fleet of which each device has two NICs.
type lab struct {
	t      testing.TB
	clock  *clock
	sim    *ironictest.Server
	client *ironic.Client
	scope  *plan.Scope
	// cabling is what the ramdisk sees, by MAC address: "switch port".
	cabling map[string]string
	// silent NICs report no LLDP, dark ones have no carrier, and of some the
	// carrier is not reported.
	silent, dark, unreported map[string]bool
	verify                   error
	// wait lets time pass: the clock of the simulator, or the real one.
	wait func(time.Duration)
	// patience is how many exchanges a step may take.
	patience int
	// links is what the BMCs tell; nil: nobody watches.
	links ironic.Links
	// without says which requests the middleware refuses for want of an access rule.
	without func(*http.Request) bool
	// before is called before each request, while nothing is locked; nil: not.
	before func(*http.Request)
}

type credentials struct{}

func (credentials) Credential(context.Context, string) (string, plan.Secret, error) {
	return "enroll", plan.NewSecret(password, "1"), nil
}

func (credentials) Ref(device string) plan.SecretRef {
	return plan.SecretRef{Item: "bmc-" + device, Field: "password"}
}

func newLab(t testing.TB, devices int, change ...func(*plan.Target)) *lab {
	t.Helper()
	return newLabWith(t, devices, ironictest.Durations{}, change...)
}

// newLabWith also says how long things take in Ironic.
func newLabWith(t testing.TB, devices int, d ironictest.Durations, change ...func(*plan.Target)) *lab {
	t.Helper()
	// Longer than the first pause: a look meets the final state with the lock held.
	d.Release = 400 * time.Millisecond
	l := &lab{t: t, patience: 5000, clock: &clock{now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}, cabling: map[string]string{}, silent: map[string]bool{}, dark: map[string]bool{}, unreported: map[string]bool{}}
	l.wait = l.clock.Advance
	l.sim = ironictest.New(ironictest.Options{
		Now: l.clock.Now, Inventory: l.inventory, Durations: d,
		Without: func(r *http.Request) bool { return l.without != nil && l.without(r) },
		Before: func(r *http.Request) {
			if l.before != nil {
				l.before(r)
			}
		},
		Verify: func(info map[string]any) error {
			if info["redfish_password"] != password {
				return fmt.Errorf("HTTP 401 for %v", info["redfish_address"])
			}
			return l.verify
		},
	})
	t.Cleanup(l.sim.Close)
	settings := l.sim.Settings("baremetal", "COMPUTE_GPU")
	settings.EnrolProject = "proj-enrol"
	settings.Timeout = 2 * time.Second
	site := &plan.Site{Name: "demo", IronicEnrol: true, Ironics: []plan.IronicSettings{settings}, BMC: &plan.BMCSettings{}}
	l.scope = &plan.Scope{Site: site}
	for n := 1; n <= devices; n++ {
		target := device(site, n)
		for _, f := range change {
			f(target)
		}
		for _, nic := range target.Intent.Frontend {
			if nic.Peer != nil {
				l.cabling[nic.MAC.String()] = nic.Peer.Device + " " + nic.Peer.Port
			}
		}
		l.scope.Targets = append(l.scope.Targets, target)
	}
	l.client = l.connect()
	return l
}

// connect makes a client with an empty request counter.
func (l *lab) connect() *ironic.Client {
	l.t.Helper()
	c, err := ironic.New(l.scope.Site.Ironics, credentials{}, ironic.Options{Now: l.clock.Now, Links: l.links})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func device(site *plan.Site, n int) *plan.Target {
	name := fmt.Sprintf("gpu-%03d", n)
	i := &plan.Intent{
		Site: "demo", Name: name, URL: "http://netbox/dcim/devices/" + name + "/", Status: "active", Class: "COMPUTE_GPU",
		OOB: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}),
		Ironic: plan.IronicContext{
			Driver: "redfish", InterfaceType: "100gbase-x-qsfp28", ResourceClass: "gpu-large", CPUArch: "x86_64",
			Capabilities: map[string]string{"boot_mode": "uefi"},
			Interfaces:   map[string]string{"raid_interface": "no-raid", "network_interface": "noop", "inspect_interface": "agent"},
		},
	}
	for k, nic := range []string{"eth0", "eth1"} {
		i.Frontend = append(i.Frontend, plan.FrontendNIC{
			Name: nic, URL: "http://netbox/dcim/interfaces/" + name + "-" + nic + "/", MAC: plan.MAC{0x02, 0, 0x5e, 0, byte(n), byte(k + 1)},
			Peer: &plan.Peer{Device: fmt.Sprintf("leaf-%d", k+1), Port: fmt.Sprintf("Ethernet1/%d", n), URL: "http://netbox/dcim/interfaces/leaf/"},
		})
	}
	return &plan.Target{Site: site, Intent: i, Ironic: &site.Ironics[0], Settings: plan.Settings{
		BMCPassword: plan.SecretRef{Item: "bmc-" + name, Field: "password"}, BMCUsername: plan.SecretRef{Item: "bmc-" + name, Field: "username"},
	}}
}

// inventory is what a ramdisk posts.
func (l *lab) inventory(n ironictest.NodeView) (json.RawMessage, bool) {
	var interfaces []map[string]any
	raw := map[string]any{}
	for i, mac := range n.MACs {
		name := fmt.Sprintf("enp%ds0", i) // not NetBox's name, as in reality
		lldp := []any{}
		if far := strings.SplitN(l.cabling[mac], " ", 2); len(far) == 2 && !l.silent[mac] {
			lldp = []any{
				[]any{1, "04001122334455"}, []any{2, fmt.Sprintf("05%x", far[1])}, []any{3, "0078"},
				[]any{4, fmt.Sprintf("%x", "host port")}, []any{5, fmt.Sprintf("%x", far[0])}, []any{0, ""},
			}
		}
		nic := map[string]any{"name": name, "mac_address": strings.ToUpper(mac), "has_carrier": !l.dark[mac], "lldp": lldp}
		if l.unreported[mac] {
			delete(nic, "has_carrier")
		}
		interfaces = append(interfaces, nic)
		raw[name] = lldp
	}
	data, err := json.Marshal(map[string]any{"inventory": map[string]any{"interfaces": interfaces}, "plugin_data": map[string]any{"lldp_raw": raw}})
	if err != nil {
		l.t.Error(err)
	}
	return data, true
}

// plan looks at everything and makes a plan.
func (l *lab) plan() *plan.Plan {
	l.t.Helper()
	ctx := l.t.Context()
	owners := l.client.Ownership(ctx, l.scope)
	resources := plan.Desired(l.scope, ironic.Kinds())
	world := l.client.Read(ctx, l.scope, resources)
	for _, r := range resources {
		if _, ok := world[r.Address]; !ok {
			l.t.Errorf("nothing was read for %s", r.Address)
		}
	}
	p := plan.Build(plan.Input{Scope: l.scope, Kinds: ironic.Kinds(), World: world, Owners: owners})
	raw, err := json.Marshal(p)
	if err != nil {
		l.t.Fatal(err)
	}
	if strings.Contains(string(raw), "s3cret") {
		l.t.Errorf("the plan holds the password: %s", raw)
	}
	return p
}

// step runs one step as the interpreter does: guard, exchanges, read-back.
func (l *lab) step(s *plan.Step) *plan.Fault {
	l.t.Helper()
	ctx := l.t.Context()
	resource := []plan.Resource{{Address: s.Address, Want: s.After}}
	if s.Action.Mutates() {
		live := l.client.Read(ctx, l.scope, resource)[s.Address]
		if live.Fault != nil {
			return live.Fault
		}
		if live.Presence == plan.Present && plan.Satisfies(s.After, live.Value) {
			return nil
		}
		now := live.Value
		if live.Presence == plan.Present {
			now = plan.Restrict(live.Value, s.Before)
		}
		if !s.BeforeUnknown && plan.Fingerprint(now) != s.Guard {
			return plan.NewFault(plan.CodePlanStale, "%s: %s is not %s", s.Address, plan.ToJSON(now), plan.ToJSON(s.Before))
		}
		if o := l.client.Ownership(ctx, l.scope)[s.Address.Device]; o.Unknown != nil {
			return o.Unknown
		} else if o.Owned {
			return plan.NewFault(plan.CodeNodeOwned, "%s", o.Reason)
		}
	}
	var memo plan.Memo
	var owes *plan.Obligation
	for range l.patience {
		r := l.client.Run(ctx, l.scope, s, memo)
		if r.Opens != nil {
			r.Opens.Address = s.Address
			owes = r.Opens
		}
		if r.Closes {
			owes = nil
		}
		switch r.Outcome {
		case plan.OutcomeWait:
			l.wait(r.After)
			memo = r.Memo
			continue
		case plan.OutcomeFailed:
			if owes != nil {
				// On a node that somebody claimed meanwhile not even that is put back.
				if back := l.client.Restore(ctx, l.scope, *owes); back.Outcome == plan.OutcomeFailed && back.Fault.Code != plan.CodeNodeOwned {
					l.t.Errorf("not put back: %v", back.Fault)
				}
			}
			return r.Fault
		case plan.OutcomeDone, plan.OutcomeAlready:
		}
		if l.sim != nil && s.Action == plan.ActionTransition {
			// The next call must not meet the lock of this one.
			if n, _ := l.sim.Node(s.Address.Device); n.Reservation != "" {
				l.t.Errorf("%s ended with the lock of %s", s.Address, n.Reservation)
			}
		}
		for _, c := range r.Checks {
			if c.Verdict == plan.CheckUnknown {
				return plan.NewFault(plan.CodeInspectionMismatch, "%s is not proven: %s", c.Address.Local(), c.Text)
			}
			if c.Verdict == plan.CheckFail {
				return plan.NewFault(plan.CodeInspectionMismatch, "%s: expected %s, observed %s", c.Address.Local(), c.Expected, c.Observed)
			}
		}
		if !s.Action.Mutates() {
			return nil
		}
		if live := l.client.Read(ctx, l.scope, resource)[s.Address]; live.Fault != nil {
			return live.Fault
		} else if live.Presence != plan.Present || !plan.Satisfies(s.After, live.Value) {
			return plan.NewFault(plan.CodeNotApplied, "%s is %s", s.Address, plan.ToJSON(live.Value))
		}
		return nil
	}
	return plan.NewFault(plan.CodeTimeout, "%s never ended", s.Address)
}

// apply runs a plan's steps in their order, up to the first fault of each device.
func (l *lab) apply(p *plan.Plan) map[string]*plan.Fault {
	l.t.Helper()
	out := map[string]*plan.Fault{}
	for _, s := range p.Steps {
		if s.Blocked != nil || out[s.Address.Device] != nil {
			continue
		}
		if f := l.step(s); f != nil {
			out[s.Address.Device] = f
		}
	}
	return out
}

// shown lists the steps of a plan as "action address", blocked ones in brackets.
func shown(p *plan.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		text := string(s.Action) + " " + s.Address.Local()
		if s.Blocked != nil {
			text = "[" + text + ": " + string(s.Blocked.Rule) + "]"
		}
		out = append(out, text)
	}
	return out
}

func (l *lab) mutating() int {
	return l.sim.Recorder().Count(func(r exchange.Record) bool { return r.Mutating })
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}
