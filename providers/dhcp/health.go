package dhcp

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// health is what can be seen of the service after it was told.
type health struct {
	state   string
	limited bool // systemd refused the start because there were too many
	marker  string
	dir     string
	index   string
	lines   []string          // the log since; nil when it cannot be read
	names   map[string]bool   // paths in the folder
	sums    map[string]string // hashes of the files, by name; nil where nothing hashes
	byClock float64           // seconds since, by the server's clock
	byBoot  float64           // the same by the time since its boot; 0 where it does not tell
	kea     keaWord           // what Kea said before that clock was looked at
}

var (
	seconds    = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,6})?`)
	lineOfFile = regexp.MustCompile(`^.+ at line [0-9]+ of (.+)$`)
)

// look asks for the service's health. since is the server's clock when the
// service was told.
func (p *Provider) look(ctx context.Context, l *link, since string) (health, *plan.Fault) {
	from, up, _ := strings.Cut(since, " ")
	if from == "" || seconds.FindString(from) != from || seconds.FindString(up) != up {
		return health{}, plan.NewFault(plan.CodeInternal, "the time of the reload %q is none", since)
	}
	parts := p.flavour.stateParts(p.settings)
	if p.held {
		parts = append(parts, p.lockPart())
	}
	a, f := p.run(ctx, l, "looking at the health of "+p.settings.Unit, p.settings.Directory, append(parts,
		markerPart(),
		part{"names", "ls"},
		part{"sums", "sha256sum -- *"},
		part{"now", sincePart().command},
		part{"log", "journalctl -u " + p.settings.Unit + " --since @" + from + " -o cat --no-pager -n 20000"},
	))
	if f != nil {
		return health{}, f
	}
	if p.held {
		if f := p.lost(a); f != nil {
			return health{}, f
		}
	}
	live := p.serviceLive(a)
	if live.Fault != nil {
		return health{}, live.Fault
	}
	h := health{
		dir: p.settings.Directory, index: p.flavour.index,
		state: plan.Text(live.Value, "state"), limited: live.Evidence["result"] == "start-limit-hit",
		marker: markerText(a), names: map[string]bool{},
	}
	now, booted, _ := strings.Cut(momentOf(a.sections["now"].body), " ")
	h.byClock = secondsOf(now) - secondsOf(from)
	if up != "" && booted != "" {
		h.byBoot = secondsOf(booted) - secondsOf(up)
	}
	for _, name := range strings.Fields(a.sections["names"].body) {
		h.names[p.settings.Directory+"/"+name] = true
	}
	if sums := a.sections["sums"]; sums.status <= 1 {
		h.sums = parseSums(sums.body)
	}
	if log := a.sections["log"]; log.status == 0 { // else no right to read it: the rest has to do
		h.lines = strings.Split(log.body, "\n")
	}
	return h, nil
}

// lookAgain is the look after the settle time. Kea is asked first, see
// keaComplaint.
func (p *Provider) lookAgain(ctx context.Context, l *link, since string) (health, *plan.Fault) {
	var word keaWord
	if p.settings.Service == serviceKea {
		if word = p.keaAnswers(ctx, l); word.fault != nil && word.fault.Class() == plan.ClassUnreachable {
			return health{}, word.fault
		}
	}
	h, f := p.look(ctx, l, since)
	h.kea = word
	return h, f
}

// elapsed is how long ago since was, at the most: a clock that was put back makes
// it less, one that was put forward makes Kea's own count more.
func (h health) elapsed() float64 { return max(h.byClock, h.byBoot) }

// steppedBack says that the clock was put back since: the log's lines of then do
// not say any more whether they came before or after.
func (h health) steppedBack() bool { return h.byBoot > h.byClock+1 }

func secondsOf(text string) float64 {
	n, err := strconv.ParseFloat(seconds.FindString(text), 64)
	if err != nil {
		return 0
	}
	return n
}

// standing leaves the entries whose files stand as they were planned: one that was
// refused has failed by itself, and the service need not hold it.
func (p *Provider) standing(h health, ours map[string]Entry) map[string]Entry {
	out := map[string]Entry{}
	for at, e := range ours {
		sum, hashed := h.sums[path.Base(at)]
		if h.names[at] && (!hashed || sum == hash(p.flavour.render(e, p.settings.Options))) {
			out[at] = e
		}
	}
	return out
}

// complaint finds what is wrong, "" when nothing is.
func (p *Provider) complaint(h health, ours map[string]Entry) (string, *plan.Fault) {
	if h.state != stateActive {
		return "the unit is " + h.state, nil
	}
	switch p.settings.Service {
	case serviceDnsmasq:
		return h.hostsComplaint(p.settings.Directory, ours), nil
	case serviceKea:
		why, f := p.keaComplaint(h, p.standing(h, ours))
		if f != nil && f.Code == plan.CodeDHCPCommand && p.settings.Apply == applyRestart {
			return "", nil // a site that restarts need not have a control agent: unit, socket and check have to do
		}
		return why, f
	}
	return "", nil
}

// hostsComplaint judges dnsmasq's log. Only what names our files or addresses
// counts; somebody else's bad line is not ours to roll back.
func (h health) hostsComplaint(dir string, ours map[string]Entry) string {
	if h.steppedBack() {
		return ""
	}
	addresses := map[string]bool{}
	for _, e := range ours {
		addresses[e.Address.String()] = true
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
	if len(files) == 0 {
		return ""
	}
	return byFile[least(files)]
}

// unread names one of our files that dnsmasq did not read since the reload. It
// says so for every file it reads; where its log is elsewhere nothing follows.
func (h health) unread(ours map[string]Entry) string {
	seen := map[string]bool{}
	for _, line := range h.lines {
		if at, found := strings.CutPrefix(strings.TrimSpace(line), "read "); found {
			seen[at] = true
		}
	}
	if len(seen) == 0 || h.steppedBack() {
		return ""
	}
	var missing []string
	for at := range ours {
		if h.names[at] && !seen[at] {
			missing = append(missing, at)
		}
	}
	return least(missing)
}

// removed lists the files that the marked change took away.
func (h health) removed() []string {
	var out []string
	for _, name := range parseChanges(h.marker).replaced {
		if name != h.index && !h.names[h.dir+"/"+name] {
			out = append(out, name)
		}
	}
	return out
}

// log shortens the log for evidence.
func (h health) log() string { return lastLines(strings.Join(h.lines, "\n"), 12) }

// least is the first of names in order, "" of none.
func least(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// cutClaim splits "MAC …" and "address …".
func cutClaim(claim string) (kind, value string) {
	kind, value, _ = strings.Cut(claim, " ")
	return kind, value
}
