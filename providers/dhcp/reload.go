package dhcp

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// What a service step remembers between its exchanges.
const (
	memoPhase    = "phase"
	memoSince    = "since"    // the server's clock at the reload, for journalctl
	memoLooks    = "looks"    // looks at a log that did not yet show our files
	memoWhy      = "why"      // what was wrong before the previous content was restored
	memoRestored = "restored" // what was restored
	memoMarker   = "marker"   // the pending marker as it was before the reload

	phaseReloaded = "reloaded"
	phaseRestored = "restored"
)

// runService reloads, then looks; when the look is bad it restores what this
// run changed, reloads again and looks again. Each call is one of these.
func (p *Provider) runService(ctx context.Context, l *link, sc *plan.Scope, step *plan.Step, memo plan.Memo) (plan.Result, *plan.Fault) {
	switch memo[memoPhase] {
	case "":
		r, f := p.reload(ctx, l)
		if f != nil {
			return plan.Result{}, f
		}
		return plan.Wait(p.settings.Settle, p.settings.Unit+" was reloaded; its log is read after the settle time",
			plan.Memo{memoPhase: phaseReloaded, memoSince: r.since, memoMarker: r.marker}), nil
	case phaseReloaded:
		return p.afterReload(ctx, l, sc, step, memo)
	case phaseRestored:
		return plan.Result{}, p.afterRestore(ctx, l, memo)
	}
	return plan.Result{}, plan.NewFault(plan.CodeInternal, "%s: unknown phase %q", step.Address, memo[memoPhase])
}

var (
	seconds    = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,6})?`)
	lineOfFile = regexp.MustCompile(`^.+ at line [0-9]+ of (.+)$`)
)

// reloaded is what stood just before a reload.
type reloaded struct {
	since  string // the server's clock in seconds, to the microsecond
	marker string // the pending marker's content, "" without one
}

// reload lets dnsmasq read the folder anew. The time tells what dnsmasq
// complained about at the uploads from what it says after the reload.
func (p *Provider) reload(ctx context.Context, l *link) (reloaded, *plan.Fault) {
	command := "/usr/bin/systemctl reload " + p.settings.Unit
	a, f := p.run(ctx, l, "reloading "+p.settings.Unit, p.settings.Directory, []part{
		markerPart(),
		{"since", "date +%s.%N"},
		{"reload", "sudo -n " + command},
	})
	if f != nil {
		return reloaded{}, f
	}
	if s := a.sections["reload"]; s.status != 0 {
		f := plan.NewFault(plan.CodeDHCPCommand, "the reload of %s on %s ended with status %d", p.settings.Unit, p.address, s.status).
			With("command", "sudo -n "+command).With("status", strconv.Itoa(s.status)).With("stderr", a.stderr)
		if strings.Contains(a.stderr, "a password is required") {
			return reloaded{}, f.WithHint("Add to a file in /etc/sudoers.d on the server: %s ALL=(root) NOPASSWD: %s", p.settings.User, command)
		}
		return reloaded{}, f
	}
	since := seconds.FindString(a.sections["since"].body)
	if since == "" {
		return reloaded{}, plan.NewFault(plan.CodeDHCPCommand, "date on %s does not tell the time: %q", p.address, excerpt(a.sections["since"].body))
	}
	return reloaded{since: since, marker: markerText(a)}, nil
}

// markerPart shows the pending marker's lines. grep ends each with a newline,
// cut by a lost connection or not.
func markerPart() part { return part{"marker", `grep -HaZ "" -- ` + markerName} }

func markerText(a answer) string {
	return strings.TrimRight(parseLines(a.sections["marker"].body)[markerName], "\n")
}

// health is what can be seen of the service after a reload.
type health struct {
	state  string
	marker string
	lines  []string        // dnsmasq's log since the reload; nil when it cannot be read
	names  map[string]bool // paths in the folder
}

func (p *Provider) health(ctx context.Context, l *link, since string) (health, *plan.Fault) {
	if seconds.FindString(since) != since {
		return health{}, plan.NewFault(plan.CodeInternal, "the time of the reload %q is none", since)
	}
	a, f := p.run(ctx, l, "looking at the health of "+p.settings.Unit, p.settings.Directory, []part{
		showPart(p.settings.Unit),
		markerPart(),
		{"names", "ls"},
		{"log", "journalctl -u " + p.settings.Unit + " --since @" + since + " -o cat --no-pager -n 20000"},
	})
	if f != nil {
		return health{}, f
	}
	if live := p.serviceLive(a); live.Fault != nil {
		return health{}, live.Fault
	}
	h := health{marker: markerText(a), names: map[string]bool{}}
	h.state, _ = unitState(a.sections["show"].body)
	for _, name := range strings.Fields(a.sections["names"].body) {
		h.names[p.settings.Directory+"/"+name] = true
	}
	if log := a.sections["log"]; log.status == 0 { // else no right to read it: the unit's state has to do
		h.lines = strings.Split(log.body, "\n")
	}
	return h, nil
}

// complaint finds what is wrong, "" when nothing is. Only what names our files
// or addresses counts; somebody else's bad line is not ours to roll back.
func (h health) complaint(dir string, ours map[string]netip.Addr) string {
	if h.state != stateActive {
		return "the unit is " + h.state
	}
	addresses := map[string]bool{}
	for _, a := range ours {
		addresses[a.String()] = true
	}
	byFile := map[string]string{}
	for _, line := range h.lines {
		line = strings.TrimSpace(line)
		if at, found := strings.CutPrefix(line, "read "); found {
			// A late inotify may read a file once more before the reload does and
			// take its own older entry for a duplicate: the last reading counts.
			delete(byFile, at)
		}
		if m := lineOfFile.FindStringSubmatch(line); m != nil {
			_, isOurs := ours[m[1]]
			rest, duplicate := strings.CutPrefix(line, "duplicate dhcp-host IP address ")
			address, _, _ := strings.Cut(rest, " ")
			if isOurs || duplicate && addresses[address] {
				byFile[m[1]] = line
			}
		}
		if rest, found := strings.CutPrefix(line, "cannot read "); found {
			for at := range ours {
				if strings.HasPrefix(rest, at+":") {
					return line
				}
			}
		}
		if strings.HasPrefix(line, "bad dynamic directory "+dir) {
			return line
		}
	}
	files := make([]string, 0, len(byFile))
	for at := range byFile {
		files = append(files, at)
	}
	sort.Strings(files)
	if len(files) > 0 {
		return byFile[files[0]]
	}
	return ""
}

// unread names one of our files that dnsmasq did not read since the reload. It
// says so for every file it reads; where its log is elsewhere nothing follows.
func (h health) unread(ours map[string]netip.Addr) string {
	seen := map[string]bool{}
	for _, line := range h.lines {
		if at, found := strings.CutPrefix(strings.TrimSpace(line), "read "); found {
			seen[at] = true
		}
	}
	if len(seen) == 0 {
		return ""
	}
	var missing []string
	for at := range ours {
		if h.names[at] && !seen[at] {
			missing = append(missing, at)
		}
	}
	sort.Strings(missing)
	if len(missing) == 0 {
		return ""
	}
	return missing[0]
}

func (p *Provider) afterReload(ctx context.Context, l *link, sc *plan.Scope, step *plan.Step, memo plan.Memo) (plan.Result, *plan.Fault) {
	h, f := p.health(ctx, l, memo[memoSince])
	if f != nil {
		return plan.Result{}, f
	}
	again := plan.Wait(p.settings.Settle, "another run uploaded after the reload; "+p.settings.Unit+" is reloaded once more", plan.Memo{})
	if h.marker != "" && h.marker != memo[memoMarker] {
		return again, nil // and its uploads are in the log that would be judged
	}
	ours := entriesOf(sc, step.Serves)
	why := h.complaint(p.settings.Directory, ours)
	if at := h.unread(ours); why == "" && at != "" {
		if memo[memoLooks] == "" {
			look := plan.Memo{memoPhase: phaseReloaded, memoSince: memo[memoSince], memoMarker: memo[memoMarker], memoLooks: "1"}
			return plan.Wait(p.settings.Settle, p.settings.Unit+" has not yet read "+at, look), nil
		}
		why = "dnsmasq did not read " + at + " after the reload"
	}
	if why != "" {
		return p.restore(ctx, l, why)
	}
	newer, f := p.unmark(ctx, l, memo[memoMarker])
	if f != nil {
		return plan.Result{}, f
	}
	clear(p.previous)
	if newer {
		return again, nil
	}
	return plan.Done(), nil
}

// restore puts back what stood at the paths that this run changed and reloads.
// Another process knows no previous content; then the fault is all there is.
func (p *Provider) restore(ctx context.Context, l *link, why string) (plan.Result, *plan.Fault) {
	fault := unhealthy(p.settings, "%s on %s does not serve what was uploaded: %s", p.settings.Unit, p.address, why)
	if len(p.previous) == 0 {
		return plan.Result{}, fault.With("rollback", "none: this run holds no earlier content of the files")
	}
	var paths []string
	for at := range p.previous {
		paths = append(paths, at)
	}
	sort.Strings(paths)
	for _, at := range paths {
		if f := p.putBack(ctx, l, at, p.previous[at]); f != nil {
			return plan.Result{}, fault.With("rollback", "failed at "+at+": "+f.Error())
		}
	}
	r, f := p.reload(ctx, l)
	if f != nil {
		return plan.Result{}, fault.With("rollback", "the previous content stands again, the reload failed: "+f.Error())
	}
	return plan.Wait(p.settings.Settle, "the previous content was restored and "+p.settings.Unit+" reloaded: "+why, plan.Memo{
		memoPhase: phaseRestored, memoSince: r.since, memoMarker: r.marker, memoWhy: why, memoRestored: strings.Join(paths, ", "),
	}), nil
}

func (p *Provider) putBack(ctx context.Context, l *link, at string, first previous) *plan.Fault {
	if !first.existed {
		return p.remove(ctx, l, at, "")
	}
	now, f := p.before(ctx, l, at)
	if f != nil {
		return f
	}
	now.mode = first.mode
	return p.upload(ctx, l, at, first.content, now)
}

// afterRestore reports both outcomes: what was wrong, and how the service is
// with the previous content.
func (p *Provider) afterRestore(ctx context.Context, l *link, memo plan.Memo) *plan.Fault {
	fault := unhealthy(p.settings, "%s on %s does not serve what was uploaded: %s", p.settings.Unit, p.address, memo[memoWhy]).
		With("restored", memo[memoRestored])
	h, f := p.health(ctx, l, memo[memoSince])
	switch {
	case f != nil:
		return fault.With("rollback", "restored and reloaded; its outcome is not known: "+f.Error())
	case h.state != stateActive:
		return fault.With("rollback", "restored and reloaded, and the unit is "+h.state+": NO HOST OF THIS SITE IS SERVED until it runs again")
	}
	clear(p.previous)
	newer, f := p.unmark(ctx, l, memo[memoMarker])
	switch {
	case f != nil:
		return fault.With("rollback", "restored and reloaded; the unit is active; the pending marker stays: "+f.Error())
	case newer:
		return fault.With("rollback", "restored and reloaded; the unit is active; another run uploaded meanwhile and left its pending marker")
	}
	return fault.With("rollback", "restored and reloaded; the unit is active")
}

// unmark removes the pending marker that was seen before the reload: what was
// uploaded then is proved, or undone. newer says that another one lies there,
// of an upload since.
func (p *Provider) unmark(ctx context.Context, l *link, seen string) (newer bool, f *plan.Fault) {
	now, f := p.readBack(ctx, l, p.markerPath())
	switch {
	case f != nil:
		return false, f
	case now == nil:
		return false, nil
	case strings.TrimRight(*now, "\n") != seen:
		return true, nil
	}
	return false, p.transfer(ctx, l, "removing "+p.markerPath(), func(files *sftp.Client) error {
		if err := files.Remove(p.markerPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p.explain(files, stage("remove", err))
		}
		return nil
	})
}
