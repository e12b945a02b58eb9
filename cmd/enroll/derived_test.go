package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// Whoever edits a plan file and makes both hashes anew gets nothing past apply that
// enroll would not plan itself: effects that --approve and policies judge by, values,
// steps that run without a guard or on a held machine, the order. An edit that leaves
// less to do, or lies about what the guards read, is none of these.
func TestAForgedPlanFile(t *testing.T) {
	l, dir, file := drifted(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p *plan.Plan, local string) *plan.Step {
		i := slices.IndexFunc(p.Steps, func(s *plan.Step) bool { return s.Address.Local() == local || s.Address.KindName() == local })
		if i < 0 {
			t.Fatalf("the plan has no %s", local)
		}
		return p.Steps[i]
	}
	for name, tc := range map[string]struct {
		edit func(p *plan.Plan)
		want string
	}{
		"no effects":        {func(p *plan.Plan) { at(p, "dhcp.service").Effects = nil }, "dhcp.service: has other effects"},
		"another effect":    {func(p *plan.Plan) { at(p, "dhcp.service").Effects = []plan.Effect{plan.EffectPower} }, "dhcp.service: has other effects"},
		"as a mere look":    {func(p *plan.Plan) { s := at(p, "bmc.ntp"); s.Action, s.Guard = plan.ActionVerify, "" }, "bmc.ntp: would verify"},
		"as a wait":         {func(p *plan.Plan) { at(p, "bmc.ntp").Action = plan.ActionWait }, "bmc.ntp: would wait"},
		"on a held machine": {func(p *plan.Plan) { at(p, "bmc.ntp").OnOwned = true }, "bmc.ntp: may not run on a machine that somebody holds"},
		"another phase":     {func(p *plan.Plan) { at(p, "bmc.ntp").Phase = plan.PhaseFinish.String() }, "bmc.ntp: is in the phase finish"},
		"a made-up port": {func(p *plan.Plan) {
			s := at(p, "bmc.ntp")
			s.Address.System, s.Address.Kind, s.Address.Key = "ironic", "port", "eth99"
		}, "ironic.port[eth99]: is about nothing"},
		"out of order": {func(p *plan.Plan) { at(p, "bmc.ntp").Needs = nil }, "bmc.ntp: does not wait for dhcp.reservation"},
		"another value": {func(p *plan.Plan) {
			at(p, "bmc.hostname").After = plan.Obj(map[string]plan.Value{"HostName": plan.Str("evil")})
		}, "bmc.hostname: would write another value"},
		"for nobody":  {func(p *plan.Plan) { at(p, "dhcp.service").Serves = nil }, "dhcp.service: serves no device"},
		"for another": {func(p *plan.Plan) { at(p, "dhcp.service").Serves = []string{"gpu-002"} }, "dhcp.service: serves gpu-002"},
		"as it is":    {func(*plan.Plan) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Decode(whole)
			if err != nil {
				t.Fatal(err)
			}
			tc.edit(p)
			p.Recount()
			p.ContentHash = plan.ContentHash(p)
			raw, err := plan.Encode(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errOut := invoke(t, l, dir, "apply", file, "--approve", "no_such_policy,config,reboot,bmc_reset,power,credential,service_restart,erase")
			if tc.want == "" {
				tc.want = `"no_such_policy" is no class` // it came that far, and would be asked
				if code != exitUsage {
					t.Errorf("exit %d", code)
				}
			} else if code != exitStale {
				t.Errorf("exit %d", code)
			}
			if !strings.Contains(errOut, tc.want) || mutating(l) != 0 {
				t.Errorf("exit %d, %d writes, want %q\n%s%s", code, mutating(l), tc.want, out, errOut)
			}
		})
	}
}
