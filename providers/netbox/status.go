package netbox

import (
	"context"

	"github.com/enroll-dev/enroll/plan"
)

const (
	kindStatus   = "netbox.status"
	statusStaged = "staged"
	statusActive = "active"
)

// statusKind moves a device from staged to active, after its BMC and DHCP were
// configured and before Ironic. No other change of status is ever made
// (reference workflow, phase 3).
func statusKind() plan.Kind {
	return plan.Kind{
		Name:  kindStatus,
		Phase: plan.PhaseActivate,
		Doc:   "NetBox status of the device: staged becomes active, anything else is left alone.",
		Want: func(t *plan.Target) []plan.Resource {
			return []plan.Resource{{
				Address: t.Address("netbox", "status", ""),
				Want:    statusValue(statusActive),
				From:    []string{t.Intent.URL},
			}}
		},
		Decide: decideStatus,
	}
}

func decideStatus(d plan.Decision) plan.Verdict {
	if d.Live.Presence != plan.Present {
		return plan.Compare(d)
	}
	switch status := plan.Text(d.Live.Value, "status"); status {
	case statusActive:
		return plan.Nothing()
	case statusStaged:
		return plan.Compare(d)
	default:
		return plan.Verdict{Fault: notEligible(d.Resource.Address.Device, status)}
	}
}

func notEligible(device, status string) *plan.Fault {
	return plan.NewFault(plan.CodeStatusNotEligible, "%s has the status %s; only a staged device is made active", device, clean(status, 40)).With("device", device)
}

func statusValue(status string) plan.Value {
	return plan.Obj(map[string]plan.Value{"status": plan.Str(status)})
}

func liveStatus(_ plan.Resource, d liveDevice) plan.Live {
	return plan.LiveValue(statusValue(string(d.Status)))
}

func runStatus(ctx context.Context, c *Client, s *subject) plan.Result {
	return c.write(ctx, s, edit{
		decide: func(d liveDevice) (change, bool, *plan.Fault) {
			switch d.Status {
			case statusActive:
				return change{}, true, nil
			case statusStaged:
				return change{status: statusActive, message: c.note("status staged to active")}, false, nil
			}
			return change{}, false, notEligible(s.name, string(d.Status))
		},
		stuck: func(d liveDevice) (string, string) { return "status active", "status " + string(d.Status) },
	})
}
