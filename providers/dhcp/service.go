package dhcp

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// serviceKind is the DHCP service of the site, shared by its devices. Its value
// is {"state", "pending"}: state is "active" when systemd's unit runs, else
// systemd's own words; pending is true while something was uploaded that no
// reload has proved.
func serviceKind() plan.Kind {
	return plan.Kind{
		Name:       "dhcp." + kindService,
		Phase:      plan.PhaseService,
		WantShared: wantService,
		Decide:     decideService,
		Doc:        "the DHCP service: reloaded once after all uploads, then proved healthy",
	}
}

const stateActive = "active"

func serviceValue(state string, pending bool) plan.Value {
	return plan.Obj(map[string]plan.Value{"state": plan.Str(state), "pending": plan.Bool(pending)})
}

func wantService(sc *plan.Scope) []plan.Resource {
	if !enabled(sc.Site) {
		return nil
	}
	r := plan.Resource{
		Address: plan.Address{Site: sc.Site.Name, System: "dhcp", Kind: kindService},
		Want:    serviceValue(stateActive, false),
		Effects: []plan.Effect{plan.EffectServiceRestart},
	}
	if at := sc.Site.Set["dhcp.service"]; at != "" {
		r.From = []string{at}
	}
	return []plan.Resource{r}
}

// decideService reloads after uploads of this plan and after uploads of an
// earlier run that nobody reloaded. A service that does not run is a fault
// either way: a reload does not start it, and whoever stopped it may have had a
// reason. Before is what the uploads will have left: the marker.
func decideService(d plan.Decision) plan.Verdict {
	if d.Live.Presence != plan.Present {
		return plan.Verdict{Fault: d.Live.Fault, Unreadable: true}
	}
	s := d.Scope.Site.DHCP
	if state := plan.Text(d.Live.Value, "state"); state != stateActive {
		return plan.Verdict{Fault: unhealthy(withDefaults(*s), "the DHCP service %s on %s is %s, not active", withDefaults(*s).Unit, s.Host, state)}
	}
	step := &plan.Step{Action: plan.ActionRun, Before: serviceValue(stateActive, true), After: d.Resource.Want}
	devices := map[string]bool{}
	for _, u := range d.Steps {
		if u.Address.KindName() == "dhcp."+kindReservation && u.Blocked == nil && u.Action.Mutates() {
			step.Because = append(step.Because, u.Address.String())
			devices[u.Address.Device] = true
		}
	}
	switch {
	case len(devices) > 0:
		step.Reason = plan.ReasonChanged
		for name := range devices {
			step.Serves = append(step.Serves, name)
		}
		sort.Strings(step.Serves)
		sort.Strings(step.Because)
	case !plan.Satisfies(plan.Bool(false), plan.Attr(d.Live.Value, "pending")):
		step.Reason = plan.ReasonPending
		step.Because = []string{"pending"}
	default:
		return plan.Nothing()
	}
	return plan.Verdict{Step: step}
}

// unhealthy is the fault of a service that does not serve, with the commands
// for a person.
func unhealthy(s plan.DHCPSettings, format string, args ...any) *plan.Fault {
	return plan.NewFault(plan.CodeDHCPUnhealthy, format, args...).
		With("commands", fmt.Sprintf("on %s: systemctl status %s; journalctl -u %s -n 50; sudo systemctl restart %s", s.Host, s.Unit, s.Unit, s.Unit))
}

// showPart asks systemd for the unit's state. is-active is not enough: it says
// active for units whose process is gone.
func showPart(unit string) part {
	return part{"show", "systemctl show -p LoadState,ActiveState,SubState,Result,MainPID,ExecMainStartTimestamp " + unit}
}

// unitState reads systemctl show's lines, whose order is systemd's.
func unitState(show string) (state string, properties map[string]string) {
	properties = map[string]string{}
	for _, line := range strings.Split(show, "\n") {
		if key, value, found := strings.Cut(line, "="); found {
			properties[key] = value
		}
	}
	active, sub := properties["ActiveState"], properties["SubState"]
	switch {
	case properties["LoadState"] == "not-found":
		return "unknown to systemd", properties
	case active == "active" && sub == "running", active == "reloading":
		return stateActive, properties
	case active == "":
		return "without an ActiveState", properties
	}
	return active + " (" + sub + ")", properties
}

// serviceLive is the service's value in the answer of a look.
func (p *Provider) serviceLive(a answer) plan.Live {
	show := a.sections["show"]
	if show.status != 0 {
		return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeDHCPCommand, "systemctl on %s does not tell the state of %s (status %d)", p.address, p.settings.Unit, show.status).
			With("stderr", a.stderr).With("stdout", excerpt(show.body)))
	}
	state, properties := unitState(show.body)
	live := plan.LiveValue(serviceValue(state, a.sections["pending"].status == 0))
	live.Evidence = map[string]string{
		"unit": p.settings.Unit + "@" + p.settings.Host, "sub state": properties["SubState"], "result": properties["Result"],
		"main pid": properties["MainPID"], "started": properties["ExecMainStartTimestamp"],
	}
	return live
}

// Run performs one exchange of a step: the whole upload of a reservation; for
// the service the reload, and after the settle time the look at its health.
func (p *Provider) Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result {
	result := plan.Done()
	f := p.exchange(ctx, func(l *link) (f *plan.Fault) {
		switch step.Address.Kind {
		case kindReservation:
			return p.runReservation(ctx, l, step)
		case kindService:
			result, f = p.runService(ctx, l, sc, step, memo)
			return f
		}
		return plan.NewFault(plan.CodeInternal, "%s is no step of a DHCP server", step.Address)
	})
	if f != nil {
		return plan.Failed(f)
	}
	return result
}
