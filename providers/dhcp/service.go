package dhcp

import (
	"context"
	"fmt"
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
		Doc:        "the DHCP service: checked, then reloaded or restarted once after all uploads, then proved healthy",
	}
}

const (
	stateActive = "active"
	// stateDeaf is a process that runs, that systemd calls active, and that no
	// client reaches: Kea after a reload that failed on a duplicate.
	stateDeaf = "active without a DHCP socket"
)

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

// decideService makes live what this plan uploads and what an earlier run left.
// A service that does not serve is a fault: whoever stopped it may have had a
// reason. It is not one when the marker says that enroll's own run ended in the
// middle and what is about to be done would start it. Before is what the uploads
// will have left: the marker.
func decideService(d plan.Decision) plan.Verdict {
	if d.Live.Presence != plan.Present {
		return plan.Verdict{Fault: d.Live.Fault, Unreadable: true}
	}
	v := decideTelling(d)
	v.Observed = observeStale(d)
	if f := unreadFault(withDefaults(*d.Scope.Site.DHCP), d.Live.Evidence[evidenceUnread]); f != nil {
		v.Warnings = append(v.Warnings, f)
	}
	return v
}

func decideTelling(d plan.Decision) plan.Verdict {
	s := withDefaults(*d.Scope.Site.DHCP)
	state := plan.Text(d.Live.Value, "state")
	pending := !plan.Satisfies(plan.Bool(false), plan.Attr(d.Live.Value, "pending"))
	if mended := pending && (s.Apply == applyRestart || state == stateDeaf); state != stateActive && !mended {
		return plan.Verdict{Fault: unhealthy(s, "the DHCP service %s on %s is %s, not active", s.Unit, s.Host, state)}
	}
	step := &plan.Step{Action: plan.ActionRun, Before: serviceValue(state, true), After: d.Resource.Want}
	index := d.World.Get(plan.Address{Site: d.Resource.Address.Site, System: "dhcp", Kind: kindIndex})
	switch {
	case serve(d, step, func(*plan.Step) bool { return true }):
		step.Reason = plan.ReasonChanged
	case pending:
		step.Reason, step.Because = plan.ReasonPending, []string{"pending"}
	case index.Presence == plan.Present && !plan.Satisfies(plan.Bool(true), plan.Attr(index.Value, "complete")):
		step.Reason, step.Because = plan.ReasonPending, []string{d.Resource.Address.Site + "/dhcp." + kindIndex}
	default:
		return plan.Nothing()
	}
	return plan.Verdict{Step: step}
}

// unhealthy is the fault of a service that does not serve, with the commands
// for a person.
func unhealthy(s plan.DHCPSettings, format string, args ...any) *plan.Fault {
	fl, _ := flavourOf(&s)
	return plan.NewFault(plan.CodeDHCPUnhealthy, format, args...).With("commands", byHand(s, fl))
}

// byHand are the commands that a person runs on the server.
func byHand(s plan.DHCPSettings, fl flavour) string {
	text := fmt.Sprintf("on %s: systemctl status %s; journalctl -u %s -n 50", s.Host, s.Unit, s.Unit)
	if fl.check != nil {
		text += "; sudo " + fl.check(s.Config)
	}
	return text + "; sudo systemctl restart " + s.Unit
}

// showPart asks systemd for the unit's state. is-active is not enough: it says
// active for units whose process is gone.
func showPart(unit string) part {
	return part{"show", "systemctl show -p LoadState,ActiveState,SubState,Result,MainPID,ExecMainStartTimestamp " + unit}
}

// stateParts ask for the state of the service: the unit's, and, where a process
// that runs can be deaf, whether it holds the socket that clients speak to.
func (fl flavour) stateParts(s plan.DHCPSettings) []part {
	parts := []part{showPart(s.Unit)}
	if fl.socket != "" {
		parts = append(parts, part{"socket", "ss -Hlun sport = :" + fl.socket})
	}
	return parts
}

// heard corrects the unit's state by what the socket says. Where ss is missing
// or forbidden nothing follows.
func (fl flavour) heard(state string, a answer) string {
	if s, asked := a.sections["socket"]; asked && state == stateActive && s.status == 0 && strings.TrimSpace(s.body) == "" {
		return stateDeaf
	}
	return state
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
	state = p.flavour.heard(state, a)
	live := plan.LiveValue(serviceValue(state, a.sections["pending"].status == 0))
	live.Evidence = map[string]string{
		"unit": p.settings.Unit + "@" + p.settings.Host, "sub state": properties["SubState"], "result": properties["Result"],
		"main pid": properties["MainPID"], "started": properties["ExecMainStartTimestamp"],
	}
	return live
}

// Run performs one exchange of a step: the upload of a reservation, with those
// that wait beside it; the index; for the service, telling it, and after the
// settle time the look at its health.
func (p *Provider) Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result {
	if step.Address.Kind == kindReservation {
		return p.runReservation(ctx, step, memo)
	}
	var result plan.Result
	f := p.exchange(ctx, func(l *link) (f *plan.Fault) {
		switch step.Address.Kind {
		case kindIndex:
			result, f = p.runIndex(ctx, l, sc, memo)
			return f
		case kindStale:
			result, f = p.runStale(ctx, l, step, memo)
			return f
		case kindService:
			result, f = p.runService(ctx, l, sc, step, memo)
			switch {
			case over(result, f):
				_ = p.release(ctx, l, f == nil) // the step is over all the same; Close tries again and tells
			case p.held && f == nil:
				result.Memo[memoLock] = p.token // for another process that goes on
			}
			return f
		}
		return plan.NewFault(plan.CodeInternal, "%s is no step of a DHCP server", step.Address)
	})
	if f != nil {
		return plan.Failed(f)
	}
	return result
}

// over reports whether nothing more comes of the step.
func over(r plan.Result, f *plan.Fault) bool {
	if f != nil {
		return f.Class() != plan.ClassUnreachable
	}
	return r.Outcome != plan.OutcomeWait
}
