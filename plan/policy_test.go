package plan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asks makes a condition of a function.
type asks func(PolicyCase) (bool, error)

func (f asks) Holds(c PolicyCase) (bool, error) { return f(c) }

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func policed(sc *Scope, policies ...Policy) *Plan {
	sc.Site.Policies = policies
	return Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent()), Now: noon})
}

func blocks(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		if s.Blocked != nil {
			out = append(out, s.Address.String()+" "+string(s.Blocked.Rule))
		}
	}
	return out
}

func effect(name string) asks {
	return func(c PolicyCase) (bool, error) { return c.HasEffect(name) }
}

func TestPolicyOverThePlanDeniesAllOfIt(t *testing.T) {
	p := policed(testScope("gpu-001", "gpu-002"), Policy{Name: "no_passwords", Action: PolicyDeny, Subject: SubjectPlan, When: effect("credential"), Owner: OwnerInfra, Text: `has_effect("credential")`})
	if got, want := p.Summary.Blocked, len(p.Steps); got != want || got == 0 {
		t.Errorf("%d of %d steps blocked:\n%s", got, want, strings.Join(lines(p), "\n"))
	}
	if !p.Denied() || p.HasWork() {
		t.Errorf("denied %t, work %t", p.Denied(), p.HasWork())
	}
	if r := p.Policies[0]; r.Outcome != PolicyHolds || cmp.Diff([]string{"lon14"}, r.Holds) != "" || !r.Denies() {
		t.Errorf("%+v", r)
	}
}

func TestPolicyOverDevicesLeavesTheOthersAlone(t *testing.T) {
	sc := testScope("gpu-001", "gpu-002")
	p := policed(sc, Policy{Name: "not_one", Action: PolicyDeny, Subject: SubjectDevice, UsesDevice: true, When: asks(func(c PolicyCase) (bool, error) { return c.Target.Name() == "gpu-001", nil })})
	for _, s := range p.Steps {
		switch blocked := s.Blocked != nil; {
		case s.Address.Device == "gpu-001" && !blocked, s.Address.Device == "gpu-002" && blocked:
			t.Errorf("%s blocked: %t", s.Address, blocked)
		case s.Address.Shared() && cmp.Diff([]string{"gpu-002"}, s.Serves) != "":
			t.Errorf("%s serves %v", s.Address, s.Serves)
		case s.Address.Shared() && blocked:
			t.Errorf("%s is blocked although gpu-002 needs it", s.Address)
		}
	}
	verdicts := map[string]DeviceVerdict{}
	for _, d := range p.Devices {
		verdicts[d.Name] = d.Verdict
	}
	if d := cmp.Diff(map[string]DeviceVerdict{"gpu-001": VerdictBlocked, "gpu-002": VerdictChanges}, verdicts); d != "" {
		t.Error(d)
	}
	// A policy that denies every device leaves nobody to serve.
	p = policed(testScope("gpu-001"), Policy{Name: "none", Action: PolicyDeny, Subject: SubjectDevice, When: asks(func(PolicyCase) (bool, error) { return true, nil })})
	if p.HasWork() {
		t.Errorf("still runs: %v", lines(p))
	}
}

func TestPolicyOverStepsBlocksWhatComesAfter(t *testing.T) {
	p := policed(testScope("gpu-001"), Policy{Name: "no_nodes", Action: PolicyDeny, Subject: SubjectStep, When: asks(func(c PolicyCase) (bool, error) { return c.Step.Address.KindName() == "ironic.node", nil })})
	want := []string{"lon14/gpu-001/ironic.node policy", "lon14/gpu-001/netbox.tag[ironic] policy"}
	if d := cmp.Diff(want, blocks(p)); d != "" {
		t.Error(d)
	}
	for _, s := range p.Steps {
		if s.Address.KindName() == "netbox.tag" && !strings.Contains(s.Blocked.Text, "comes after ironic.node") {
			t.Errorf("reason %q", s.Blocked.Text)
		}
	}
	if d := cmp.Diff([]string{"lon14/gpu-001/ironic.node"}, p.Policies[0].Holds); d != "" {
		t.Error(d)
	}
}

// However long the way from a denied step is, what waits for it names that step, and
// what the policy says is not said again.
func TestWhatWaitsForADeniedStepNamesItAlone(t *testing.T) {
	at := func(kind string) Address {
		return Address{Site: "lon14", Device: "gpu-001", System: "ironic", Kind: kind}
	}
	p := &Plan{Steps: []*Step{
		{ID: "s1", Address: at("node")}, {ID: "s2", Address: at("port"), Needs: []string{"s1"}}, {ID: "s3", Address: at("power"), Needs: []string{"s2"}},
	}}
	r := PolicyResult{Policy: "quiet", Action: PolicyDeny, Outcome: PolicyHolds, Holds: []string{at("node").String()}, Message: "Wait: storage moves."}
	for range 2 { // apply judges a plan again
		p.Enforce([]PolicyResult{r})
		for i, want := range []string{"policy quiet: Wait: storage moves.", "it comes after ironic.node, denied by policy quiet", "it comes after ironic.node, denied by policy quiet"} {
			if got := p.Steps[i].Blocked; got == nil || got.Text != want {
				t.Errorf("%s: %+v, want %q", p.Steps[i].Address, got, want)
			}
		}
	}
}

func TestPolicyThatCannotBeDecidedDenies(t *testing.T) {
	for _, action := range PolicyActions() {
		p := policed(testScope("gpu-001"), Policy{Name: "broken", Action: action, Subject: SubjectPlan, When: asks(func(PolicyCase) (bool, error) { return false, errors.New("no such field") })})
		if p.HasWork() || !p.Denied() {
			t.Errorf("%s: a policy that fails lets %v run", action, lines(p))
		}
		if r := p.Policies[0]; r.Outcome != PolicyFailed || r.Error != "no such field" {
			t.Errorf("%s: %+v", action, r)
		}
	}
}

func TestPolicyWarnsAndAsks(t *testing.T) {
	yes := asks(func(PolicyCase) (bool, error) { return true, nil })
	p := policed(testScope("gpu-001"),
		Policy{Name: "a", Action: PolicyWarn, Subject: SubjectDevice, When: yes, Message: "look twice", Owner: OwnerNetBox},
		Policy{Name: "b", Action: PolicyApproval, Subject: SubjectPlan, When: yes})
	if blocked := blocks(p); blocked != nil || p.Denied() {
		t.Errorf("blocked: %v", blocked)
	}
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Device != "gpu-001" || p.Diagnostics[0].Fault.Summary != "policy a: look twice" || p.Diagnostics[0].Fault.Owner() != OwnerNetBox {
		t.Errorf("%+v", p.Diagnostics)
	}
	if w := p.ApprovalsWanted(); len(w) != 1 || w[0].Policy != "b" {
		t.Errorf("%+v", w)
	}
	p.PlanID = "0123456789ab"
	raw, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p.Policies, back.Policies); d != "" {
		t.Error(d)
	}
}

func TestPolicyIsNotAskedAboutNothing(t *testing.T) {
	sc := testScope("gpu-001")
	asked := 0
	sc.Site.Policies = []Policy{{Name: "a", Action: PolicyDeny, Subject: SubjectPlan, When: asks(func(PolicyCase) (bool, error) { asked++; return true, nil })}}
	p := Build(Input{Scope: sc, Kinds: testKinds, World: satisfied(sc), Now: noon})
	if asked != 0 || p.Denied() || p.Policies[0].Outcome != PolicyPasses {
		t.Errorf("asked %d times, %+v", asked, p.Policies)
	}
}

// Enforcing again can only block more: what a plan blocks stays blocked whatever
// the time of day is when it is applied.
func TestEnforceNeverUnblocks(t *testing.T) {
	sc := testScope("gpu-001")
	office := func(c PolicyCase) (bool, error) { return c.Within("08:00", "18:00", "UTC") }
	p := policed(sc, Policy{Name: "office", Action: PolicyDeny, Subject: SubjectPlan, When: asks(office)})
	p.Enforce(JudgePolicies(p, sc, noon.Add(8*time.Hour)))
	if p.HasWork() {
		t.Error("the evening unblocked what the plan shows as blocked")
	}
	sc.Site.Policies[0].When = asks(func(c PolicyCase) (bool, error) { in, err := c.Within("18:00", "24:00", "UTC"); return in, err })
	p = policed(sc, sc.Site.Policies...)
	if !p.HasWork() {
		t.Fatal("blocked at noon")
	}
	p.Enforce(JudgePolicies(p, sc, noon.Add(8*time.Hour)))
	if p.HasWork() {
		t.Error("a policy that holds at apply does not block")
	}
}

func TestCountEffect(t *testing.T) {
	reboot := []Effect{EffectReboot}
	step := func(s string) *Step { return &Step{Address: addr(t, s), Effects: reboot, Action: ActionUpdate} }
	c := PolicyCase{Steps: []*Step{step("s/a/bmc.bios"), step("s/a/bmc.boot_order"), step("s/b/bmc.bios"), step("s/dhcp.service")}}
	if n, err := c.CountEffect("reboot"); n != 3 || err != nil {
		t.Errorf("%d %v: a host counts once, a shared step for itself", n, err)
	}
	if _, err := c.CountEffect("rebot"); err == nil {
		t.Error("an effect that does not exist")
	}
	for pattern, want := range map[string]bool{"*/bmc.bios": true, "s/b/bmc.*": true, "*/ironic.*": false, "dhcp.service": true, "a/bmc.bios": true} {
		if got, err := c.Changes(pattern); got != want || err != nil {
			t.Errorf("changes(%q) = %t, %v", pattern, got, err)
		}
	}
}

func TestWithin(t *testing.T) {
	at := func(s string) time.Time {
		when, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct {
		now, from, to, zone string
		want                bool
	}{
		{"2026-12-01T08:00:00Z", "08:00", "18:00", "UTC", true},
		{"2026-12-01T17:59:59Z", "08:00", "18:00", "UTC", true},
		{"2026-12-01T18:00:00Z", "08:00", "18:00", "UTC", false},
		{"2026-07-01T07:30:00Z", "08:00", "18:00", "Europe/London", true}, // summer time
		{"2026-12-01T07:30:00Z", "08:00", "18:00", "Europe/London", false},
		{"2026-12-01T23:30:00Z", "22:00", "06:00", "UTC", true}, // over midnight
		{"2026-12-01T05:59:00Z", "22:00", "06:00", "UTC", true},
		{"2026-12-01T12:00:00Z", "22:00", "06:00", "UTC", false},
		{"2026-12-01T23:59:59Z", "18:00", "24:00", "UTC", true},
	} {
		got, err := PolicyCase{Now: at(c.now)}.Within(c.from, c.to, c.zone)
		if err != nil || got != c.want {
			t.Errorf("%s within %s to %s %s: %t, %v", c.now, c.from, c.to, c.zone, got, err)
		}
	}
	for _, c := range [][3]string{{"8:00", "18:00", "UTC"}, {"08:00", "25:00", "UTC"}, {"08:00", "08:00", "UTC"}, {"08:00", "18:00", "Mars/Olympus"}, {"08:00", "18:00", ""}, {"08:00", "18:00", "Local"}} {
		if _, err := (PolicyCase{Now: noon}).Within(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
	if _, err := (PolicyCase{}).Within("08:00", "18:00", "UTC"); err == nil {
		t.Error("a time that is not known is judged")
	}
}

func TestCheckPattern(t *testing.T) {
	for _, good := range []string{"*/bmc.bios", "*/bmc.*", "lon14/*/ironic.port[eth0]", "gpu-*/netbox.tag[*]", "dhcp.service", "*/*", "*/*.*", "*", "*/dhcp.service", "demo/*/ironic.provision[*]", "*/ironic.p*", "gpu-001/*"} {
		if err := CheckPattern(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "bmc.bios", "*/bmc", "*/bios.bmc", "a/b/c/bmc.bios", "*/", `*/bmc.\`,
		"*/bmc.nttp", "*/ironic.provision", "*/ironic.node[*]", "*/*/dhcp.service", "*/ironic.port[eth0", "*/ironic.{node}"} {
		if err := CheckPattern(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The owner of a policy is the owner of its faults, also of one that was read from a
// plan file.
func TestAPolicysOwnerOwnsItsFaults(t *testing.T) {
	f := NewFault(CodePolicyWarning, "x").Of(PolicyResult{Policy: "a", Owner: OwnerOnsite})
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back Fault
	if err := json.Unmarshal(raw, &back); err != nil || back.Owner() != OwnerOnsite || f.Owner() != OwnerOnsite {
		t.Errorf("%s: %s, %v", raw, back.Owner(), err)
	}
}
