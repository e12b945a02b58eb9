package ironic_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// The never-do list of the reference as properties: whatever the world is, whatever
// goes wrong, and whenever the scheduler takes the node.

const instance = "11111111-1111-1111-1111-111111111111"

// drawn is a lab with one device in a state that was drawn, and wishes that were.
func drawn(t *testing.T, r *rapid.T) *lab {
	raid := rapid.SampledFrom([]string{"", "hardware", "software"}).Draw(r, "raid")
	hint := rapid.Bool().Draw(r, "root device wanted")
	l := newLab(t, 1, func(target *plan.Target) {
		i := &target.Intent.Ironic
		if rapid.Bool().Draw(r, "bond") {
			i.Bond = &plan.Bond{Mode: "802.3ad", Miimon: 100}
		}
		if raid != "" {
			i.Interfaces["raid_interface"] = "agent"
			disk := map[string]any{"size_gb": "MAX", "raid_level": "1"}
			if raid == "software" {
				disk["controller"] = "software"
			}
			i.TargetRAIDConfig = map[string]any{"logical_disks": []any{disk}}
		}
		if hint {
			i.RootDevice = map[string]any{"serial": "S1"}
		}
	})
	l.scope.Site.Ironics[0].SwitchToIPMI = rapid.Bool().Draw(r, "switch")
	if rapid.Bool().Draw(r, "trait") {
		l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
	}
	l.scope.Parameters = plan.Parameters{
		ForceInspection: rapid.Bool().Draw(r, "force"), RewriteCredentials: rapid.Bool().Draw(r, "rewrite"), ClearMaintenance: rapid.Bool().Draw(r, "clear"),
		MaxAttempts: rapid.IntRange(0, 2).Draw(r, "attempts"),
	}
	l.client, l.patience = l.connect(), 40
	state := rapid.SampledFrom([]plan.ProvisionState{
		"", plan.StateEnroll, plan.StateManageable, plan.StateInspectFailed, plan.StateCleanFailed, plan.StateInspectWait, plan.StateCleanWait, plan.StateAvailable,
		plan.StateDeployFailed, plan.StateError, plan.StateAdoptFailed,
	}).Draw(r, "state")
	if state == "" {
		return l
	}
	spec := available(l.scope.Targets[0], l)
	spec.State = state
	if rapid.Bool().Draw(r, "no inventory") {
		spec.Inventory = nil
	}
	if rapid.Bool().Draw(r, "no link") {
		spec.Ports[1].Link = nil
	}
	if rapid.Bool().Draw(r, "off") {
		spec.Fields["power_state"] = "power off"
	}
	if rapid.Bool().Draw(r, "root device there") {
		spec.Fields["properties"] = map[string]any{"root_device": map[string]any{"serial": "S0"}}
	}
	if reason := rapid.SampledFrom([]string{"", "clean failure", "a person"}).Draw(r, "maintenance"); reason != "" {
		spec.Fields["maintenance"], spec.Fields["maintenance_reason"] = true, reason
		if reason == "clean failure" {
			spec.Fields["fault"] = reason
		}
	}
	switch state { //nolint:exhaustive // the others have none
	case plan.StateInspectFailed, plan.StateInspectWait:
		spec.Fields["target_provision_state"] = "manageable"
	case plan.StateCleanFailed, plan.StateCleanWait:
		spec.Fields["target_provision_state"] = "available"
	}
	l.sim.AddNode(spec)
	if rapid.Bool().Draw(r, "cleaning fails") {
		l.sim.FailCleaning("gpu-001", brokenDisk)
	}
	return l
}

// guarded reports whether a request is the read of one node that every write rests on.
func guarded(r exchange.Record) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/nodes/") && strings.Contains(r.Path, "?fields=")
}

// The scheduler claims the node between any two exchanges. No write follows a read
// that could see it, and between that read and its write nothing else is asked: the
// window is one exchange.
func TestNothingIsWrittenToAClaimedNode(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := drawn(t, r)
		defer l.sim.Close()
		at := rapid.IntRange(1, 120).Draw(r, "claimed before exchange")
		if kind := rapid.SampledFrom([]exchange.Kind{"", exchange.LostReply, exchange.Reset, exchange.Status}).Draw(r, "fault"); kind != "" {
			l.sim.Recorder().Inject(&exchange.Fault{Kind: kind, At: rapid.IntRange(1, 120).Draw(r, "at"), Status: http.StatusServiceUnavailable, Body: "busy"})
		}
		exchanges, claimed := 0, 0
		l.before = func(*http.Request) {
			exchanges++
			if _, there := l.sim.Node("gpu-001"); exchanges >= at && claimed == 0 && there {
				claimed = exchanges
				l.sim.Set("gpu-001", "instance_uuid", instance)
			}
		}
		p := l.plan()
		l.apply(p)
		l.apply(l.plan()) // a second run meets a claimed node, and writes nothing either

		var last exchange.Record
		served := 0
		records := l.sim.Recorder().Records()
		slices.SortFunc(records, func(a, b exchange.Record) int { return a.Seq - b.Seq })
		for _, rec := range records {
			if rec.Fault != string(exchange.Reset) && rec.Fault != string(exchange.Status) {
				served++ // those that reached the service
			}
			if rec.Mutating && (rec.Method != http.MethodPost || rec.Path != "/v1/nodes") {
				if !guarded(last) {
					r.Errorf("%s %s follows %s %s: the guard was not read right before", rec.Method, rec.Path, last.Method, last.Path)
				}
				if claimed != 0 && served > claimed {
					r.Errorf("%s %s is exchange %d, and the node was claimed before exchange %d", rec.Method, rec.Path, served, claimed)
				}
			}
			last = rec
		}
	})
}

// Without a claim, in random worlds with a fault each: the root device of a node
// without software RAID stays, PXE is on one port of a new node, the credential is
// the host's own, and what a person has to look at is not touched.
func TestNeverDo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := drawn(t, r)
		defer l.sim.Close()
		before, existed := l.sim.Node("gpu-001")
		if kind := rapid.SampledFrom([]exchange.Kind{"", exchange.LostReply, exchange.Reset, exchange.Status}).Draw(r, "fault"); kind != "" {
			l.sim.Recorder().Inject(&exchange.Fault{Kind: kind, At: rapid.IntRange(1, 120).Draw(r, "at"), Status: http.StatusServiceUnavailable, Body: "busy"})
		}
		p := l.plan()
		l.apply(p)
		after, exists := l.sim.Node("gpu-001")
		if !exists {
			return // its creation failed
		}
		switch before.ProvisionState { //nolint:exhaustive // those for people
		case plan.StateDeployFailed, plan.StateError, plan.StateAdoptFailed:
			if l.mutating() != 0 {
				r.Errorf("%d writes to a node that is %s", l.mutating(), before.ProvisionState)
			}
		}
		disks := l.scope.Targets[0].Intent.Ironic.TargetRAIDConfig
		if before.Properties["root_device"] != nil && after.Properties["root_device"] == nil && !strings.Contains(fmt.Sprint(disks), "controller:software") {
			r.Errorf("the root device is gone: %v, RAID %v", after.Properties, disks)
		}
		for _, key := range []string{"redfish_username", "ipmi_username"} {
			if user := after.DriverInfo[key]; user != nil && user != before.DriverInfo[key] && user != "enroll" {
				r.Errorf("%s is %v", key, user)
			}
		}
		if !existed && len(after.PXE) > 1 || existed && fmt.Sprint(after.PXE) != fmt.Sprint(before.PXE) {
			r.Errorf("PXE on %v, before on %v", after.PXE, before.PXE)
		}
		// A flag that a recovery cleared is back, unless manage came through.
		if before.Maintenance && !after.Maintenance && after.ProvisionState == before.ProvisionState && before.ProvisionState == plan.StateCleanFailed {
			manages := 0
			for _, v := range l.sim.Verbs("gpu-001") {
				if v == "manage" {
					manages++
				}
			}
			if manages == 0 {
				r.Errorf("maintenance was cleared, manage did not come through, and nothing was put back: %+v", after)
			}
		}
	})
}
