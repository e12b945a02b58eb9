package dhcp

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// What a service step remembers between its exchanges.
const (
	memoPhase  = "phase"
	memoSince  = "since"  // the moment when the service was told, see momentOf
	memoLooks  = "looks"  // looks at a log that did not yet show our files
	memoWhy    = "why"    // what was wrong before the former content was put back
	memoBack   = "back"   // what was put back
	memoMarker = "marker" // the marker as it was when the service was told
	memoTries  = "tries"  // starts that systemd refused because there were too many

	phaseTold     = "told"
	phaseLimited  = "limited"
	phaseRestored = "restored"
)

const (
	// systemd refuses the sixth start of a unit within ten seconds and leaves it down.
	startLimit = 11 * time.Second
	mostTries  = 3
)

// runService checks the configuration, tells the service, looks, and looks again
// after the settle time. When a look is bad it puts the former files back, tells
// the service again and looks again. Each call is one of these.
func (p *Provider) runService(ctx context.Context, l *link, sc *plan.Scope, step *plan.Step, memo plan.Memo) (plan.Result, *plan.Fault) {
	if r, f := p.locked(ctx, l, memo); f != nil || r != nil {
		return orZero(r), f
	}
	switch memo[memoPhase] {
	case "":
		return p.begin(ctx, l, sc, step)
	case phaseTold:
		return p.afterSettling(ctx, l, sc, step, memo)
	case phaseLimited:
		return p.tell(ctx, l, sc, step, memo)
	case phaseRestored:
		return plan.Result{}, p.afterRestore(ctx, l, memo)
	}
	return plan.Result{}, plan.NewFault(plan.CodeInternal, "%s: unknown phase %q", step.Address, memo[memoPhase])
}

// begin has the server check what stands there now.
func (p *Provider) begin(ctx context.Context, l *link, sc *plan.Scope, step *plan.Step) (plan.Result, *plan.Fault) {
	a, f := p.check(ctx, l, markerPart(), stalePart(), sincePart())
	if f == nil {
		f = p.lost(a)
	}
	if f != nil {
		return plan.Result{}, f
	}
	p.sweep(ctx, l, a.sections["stale"].body)
	marker := markerText(a)
	if f := p.judge(a, "as it stands"); f != nil {
		return plan.Result{}, p.undo(ctx, l, marker, f)
	}
	return p.tell(ctx, l, sc, step, plan.Memo{memoMarker: marker, memoSince: momentOf(a.sections["since"].body)})
}

// check runs the server's own check on the live configuration, where it has one
// that proves something. It may fail because the account may not read what the
// server may, such as the file of a key: then sudo asks again.
func (p *Provider) check(ctx context.Context, l *link, more ...part) (answer, *plan.Fault) {
	parts := append([]part{p.lockPart()}, more...)
	if p.flavour.check == nil {
		return p.run(ctx, l, "looking at the lock", p.settings.Directory, parts)
	}
	command := p.flavour.check(p.settings.Config)
	parts = append(parts, part{"readable", "test -r " + p.settings.Config})
	a, f := p.run(ctx, l, "checking the configuration", p.settings.Directory, append(parts, part{"check", command}))
	if f != nil || a.sections["check"].status == 0 {
		return a, f
	}
	again, f := p.run(ctx, l, "checking the configuration", p.settings.Directory, append(parts, part{"check", "sudo -n " + command}))
	if f == nil && a.sections["readable"].status == 0 && strings.Contains(again.stderr, passwordRequired) {
		return a, nil // what the account itself was told
	}
	return again, f
}

// judge reads the check's answer, where there was a check.
func (p *Provider) judge(a answer, what string) *plan.Fault {
	if p.flavour.check == nil {
		return nil
	}
	if strings.Contains(a.stderr, passwordRequired) {
		return p.noSudo(p.flavour.check(p.settings.Config), a)
	}
	return p.checked(a, what)
}

const passwordRequired = "a password is required"

func (p *Provider) noSudo(command string, a answer) *plan.Fault {
	return plan.NewFault(plan.CodeDHCPCommand, "sudo on %s does not let %s run %s", p.address, p.settings.User, command).
		With("command", "sudo -n "+command).With("stderr", strings.TrimSpace(a.stderr)).
		WithHint("enroll doctor --sudoers prints the file for /etc/sudoers.d on the server; among its lines is: %s ALL=(root) NOPASSWD: %s", p.settings.User, command)
}

// undo puts the former files back after the check refused the new ones: the
// service was never touched, so nothing has to be told to it.
func (p *Provider) undo(ctx context.Context, l *link, marker string, f *plan.Fault) *plan.Fault {
	if f.Code != plan.CodeDHCPRefused {
		return f
	}
	c := parseChanges(marker)
	if c.empty() {
		return f.With("rollback", "none: no change of enroll is under way").With("commands", p.commands())
	}
	if back := p.putBack(ctx, l, c); back != nil {
		return f.With("rollback", "failed: "+back.Error()).With("commands", p.commands())
	}
	f = f.With("restored", c.names())
	a, again := p.check(ctx, l, markerPart())
	if again == nil {
		again = p.judge(a, "with the former files")
	}
	if again != nil {
		return f.With("rollback", "the former files stand again; the check says: "+again.Error()).With("commands", p.commands())
	}
	if _, left := p.settle(ctx, l, marker, markerText(a)); left != nil {
		return f.With("rollback", "the former files stand again and are good; the marker stays: "+left.Error())
	}
	return f.With("rollback", "the former files stand again and are good; the service was not touched")
}

// told is what came of telling the service.
type told struct {
	since  string // the moment just before
	failed string // what is wrong already, "" when nothing is
}

// SudoCommands are the commands that the account needs sudo for, as they stand in
// sudoers.
func SudoCommands(s plan.DHCPSettings) []string {
	s = withDefaults(s)
	commands := []string{"/usr/bin/systemctl restart " + s.Unit}
	if s.Service == serviceDnsmasq && s.Apply == applyReload {
		commands = append([]string{"/usr/bin/systemctl reload " + s.Unit}, commands...)
	}
	if fl, known := flavourOf(&s); known && fl.check != nil { // for a configuration that only root may read
		commands = append(commands, fl.check(s.Config))
	}
	return commands
}

// sincePart tells the moment by the server's clock, and by the time since it
// booted, which nobody can put back.
func sincePart() part { return part{"since", "date +%s.%N; cat /proc/uptime"} }

// momentOf is the clock and, where it was told, the time since the boot.
func momentOf(body string) string {
	words := strings.Fields(body)
	for i, w := range words {
		words[i] = seconds.FindString(w)
	}
	return strings.TrimSpace(strings.Join(words[:min(2, len(words))], " "))
}

// act makes the files live: a reload, or a restart. A service that is down is
// started by a restart whatever the site chose. asked is the server's clock where it
// was just asked for; Kea's reload then needs no command of its own.
func (p *Provider) act(ctx context.Context, l *link, how, asked string) (told, *plan.Fault) {
	if p.settings.Service == serviceKea && how == applyReload && asked != "" {
		return p.reloadKea(ctx, l, asked)
	}
	parts := []part{sincePart()}
	command := ""
	if p.settings.Service != serviceKea || how == applyRestart {
		command = "/usr/bin/systemctl " + how + " " + p.settings.Unit
		parts = append(parts, part{"act", "sudo -n " + command})
	}
	a, f := p.run(ctx, l, how+" of "+p.settings.Unit, p.settings.Directory, parts)
	if f != nil {
		return told{}, f
	}
	t := told{since: momentOf(a.sections["since"].body)}
	if t.since == "" {
		return told{}, plan.NewFault(plan.CodeDHCPCommand, "date on %s does not tell the time: %q", p.address, excerpt(a.sections["since"].body))
	}
	if command == "" {
		return p.reloadKea(ctx, l, t.since)
	}
	switch s := a.sections["act"]; {
	case s.status == 0:
	case strings.Contains(a.stderr, passwordRequired):
		return told{}, p.noSudo(command, a)
	case how == applyReload:
		return told{}, plan.NewFault(plan.CodeDHCPCommand, "the reload of %s on %s ended with status %d", p.settings.Unit, p.address, s.status).
			With("command", "sudo -n "+command).With("status", strconv.Itoa(s.status)).With("stderr", a.stderr)
	default:
		t.failed = "the restart ended with status " + strconv.Itoa(s.status) + ": " + excerpt(strings.TrimSpace(a.stderr))
	}
	return t, nil
}

// reloadKea has Kea load its files, at a moment after since.
func (p *Provider) reloadKea(ctx context.Context, l *link, since string) (told, *plan.Fault) {
	t := told{since: since}
	answer, f := p.control(ctx, l, "config-reload")
	if f == nil && answer.Result != 0 {
		t.failed = "config-reload gives result " + strconv.Itoa(answer.Result) + ": " + excerpt(answer.Text)
	}
	return t, f
}

// tell makes the change live and looks at once.
func (p *Provider) tell(ctx context.Context, l *link, sc *plan.Scope, step *plan.Step, memo plan.Memo) (plan.Result, *plan.Fault) {
	how := p.settings.Apply
	if memo[memoPhase] == phaseLimited {
		how = applyRestart
	}
	t, f := p.act(ctx, l, how, memo[memoSince])
	if f != nil {
		return plan.Result{}, f
	}
	h, f := p.look(ctx, l, t.since)
	if f != nil {
		return plan.Result{}, f
	}
	tries, _ := strconv.Atoi(memo[memoTries]) // "" is none
	if h.limited && h.state != stateActive && tries < mostTries {
		next := plan.Memo{memoPhase: phaseLimited, memoMarker: memo[memoMarker], memoTries: strconv.Itoa(tries + 1), memoWhy: memo[memoWhy], memoBack: memo[memoBack]}
		return plan.Wait(startLimit, "systemd refuses to start "+p.settings.Unit+" so often; it is started again after its limit", next), nil
	}
	next := plan.Memo{memoPhase: phaseTold, memoSince: t.since, memoMarker: memo[memoMarker]}
	if memo[memoWhy] != "" { // the former files stand again
		next[memoPhase], next[memoWhy], next[memoBack] = phaseRestored, memo[memoWhy], memo[memoBack]
		return plan.Wait(p.settings.Settle, "the former files stand again: "+memo[memoWhy], next), nil
	}
	why := t.failed
	if why == "" && h.state != stateActive {
		why = "the unit is " + h.state
	}
	if why != "" {
		return p.restore(ctx, l, sc, step, h, memo[memoMarker], why)
	}
	return plan.Wait(p.settings.Settle, p.settings.Unit+" was told; it is looked at again after the settle time", next), nil
}

// afterSettling looks a second time, closely.
func (p *Provider) afterSettling(ctx context.Context, l *link, sc *plan.Scope, step *plan.Step, memo plan.Memo) (plan.Result, *plan.Fault) {
	h, f := p.lookAgain(ctx, l, memo[memoSince])
	if f != nil {
		return plan.Result{}, f
	}
	again := plan.Wait(p.settings.Settle, "another run changed files meanwhile; "+p.settings.Unit+" is told once more", plan.Memo{})
	if h.marker != "" && h.marker != memo[memoMarker] {
		return again, nil // and its changes are in the log that would be judged
	}
	if h.steppedBack() && memo[memoLooks] == "" {
		look := plan.Memo{memoPhase: phaseTold, memoSince: memo[memoSince], memoMarker: memo[memoMarker], memoLooks: "1"}
		return plan.Wait(p.settings.Settle, "the clock of "+p.settings.Host+" was put back meanwhile, so its log is not judged; "+p.settings.Unit+" is looked at once more", look), nil
	}
	ours := entriesOf(sc, step.Serves)
	why, f := p.complaint(h, ours)
	if f != nil {
		return plan.Result{}, f
	}
	if p.settings.Service == serviceDnsmasq && why == "" {
		if at := h.unread(ours); at != "" {
			if memo[memoLooks] == "" {
				look := plan.Memo{memoPhase: phaseTold, memoSince: memo[memoSince], memoMarker: memo[memoMarker], memoLooks: "1"}
				return plan.Wait(p.settings.Settle, p.settings.Unit+" has not yet read "+at, look), nil
			}
			why = "dnsmasq did not read " + at + " after it was told"
		}
	}
	if why != "" {
		return p.restore(ctx, l, sc, step, h, memo[memoMarker], why)
	}
	newer, f := p.settle(ctx, l, memo[memoMarker], h.marker)
	switch {
	case f != nil:
		return plan.Result{}, f
	case newer:
		return again, nil
	}
	return plan.Done(), nil
}

// restore puts the former files back and tells the service again.
func (p *Provider) restore(ctx context.Context, l *link, sc *plan.Scope, step *plan.Step, h health, marker, why string) (plan.Result, *plan.Fault) {
	fault := p.unserved(why).With("log", h.log())
	c := parseChanges(marker)
	if c.empty() {
		return plan.Result{}, fault.With("rollback", "none: no former content of the files is known").With("commands", p.commands())
	}
	if f := p.putBack(ctx, l, c); f != nil {
		return plan.Result{}, fault.With("rollback", "failed: "+f.Error()).With("commands", p.commands())
	}
	back := plan.Memo{memoMarker: marker, memoWhy: why, memoBack: c.names()}
	if h.state != stateActive && h.state != stateDeaf {
		back[memoPhase] = phaseLimited // it is down: only a restart brings it back
	}
	r, f := p.tell(ctx, l, sc, step, back)
	if f != nil {
		return plan.Result{}, fault.With("restored", c.names()).With("rollback", "the former files stand again, the service was not told: "+f.Error()).With("commands", p.commands())
	}
	return r, nil
}

func (p *Provider) unserved(why string) *plan.Fault {
	return plan.NewFault(plan.CodeDHCPUnhealthy, "%s on %s does not serve what was uploaded: %s", p.settings.Unit, p.address, why)
}

// afterRestore reports both outcomes: what was wrong, and how the service is
// with the former files.
func (p *Provider) afterRestore(ctx context.Context, l *link, memo plan.Memo) *plan.Fault {
	fault := p.unserved(memo[memoWhy]).With("restored", memo[memoBack])
	h, f := p.look(ctx, l, memo[memoSince])
	switch {
	case f != nil:
		return fault.With("rollback", "the former files stand again and the service was told; its outcome is not known: "+f.Error()).With("commands", p.commands())
	case h.state != stateActive:
		return fault.With("rollback", "the former files stand again, the service was told, and the unit is "+h.state+": NO HOST OF THIS SITE IS SERVED until it runs again").
			With("log", h.log()).With("commands", p.commands())
	}
	newer, f := p.settle(ctx, l, memo[memoMarker], h.marker)
	switch {
	case f != nil:
		return fault.With("rollback", "the former files stand again and the unit is active; the marker stays: "+f.Error())
	case newer:
		return fault.With("rollback", "the former files stand again and the unit is active; another run changed files meanwhile and left its marker")
	}
	return fault.With("rollback", "the former files stand again and the unit is active")
}

// commands are what a person does on the server.
func (p *Provider) commands() string { return byHand(p.settings, p.flavour) }
