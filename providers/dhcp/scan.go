package dhcp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// The kinds of this package, by their local names.
const (
	kindReservation = "reservation"
	kindIndex       = "index"
	kindStale       = "stale"
	kindService     = "service"
)

// maxFile is how much of a file is read back; a reservation has 100 bytes.
const maxFile = 64 << 10

// ask is one Read that waits for its look at the server.
type ask struct {
	sc       *plan.Scope
	wanted   []wish
	services []plan.Address
	indexes  []plan.Address
	stale    []plan.Address
	out      plan.Snapshot
	done     chan struct{} // closed with the answers
}

func (q *ask) unreadable(a plan.Address, f *plan.Fault) {
	q.out[a] = plan.LiveFault(plan.Unreadable, f)
}

// fail answers all that has no answer yet.
func (q *ask) fail(f *plan.Fault) {
	for _, w := range q.wanted {
		if _, answered := q.out[w.address]; !answered {
			q.unreadable(w.address, f)
		}
	}
	for _, a := range slices.Concat(q.services, q.indexes, q.stale) {
		if _, answered := q.out[a]; !answered {
			q.unreadable(a, f)
		}
	}
}

// Read looks at the whole folder and the service in one command, and reads
// back over SFTP only the files that the command could not tell exactly. Reads
// that wait for the connection share one look.
// Connection, login and host key faults make everything Unreadable; a hash
// command that completed with a failure does not: the files are then read.
func (p *Provider) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	q := newAsk(sc, resources)
	if len(q.wanted)+len(q.services)+len(q.indexes)+len(q.stale) == 0 {
		return q.out
	}
	p.mu.Lock()
	p.asks = append(p.asks, q)
	p.mu.Unlock()
	entered := false
	f := p.exchange(ctx, func(l *link) *plan.Fault {
		entered = true
		asks := p.takeAsks(nil)
		if len(asks) == 0 {
			return nil // another one's look answered this one too
		}
		f := p.answer(ctx, l, asks)
		for _, q := range asks {
			q.fail(f)
			close(q.done)
		}
		return f
	})
	if f != nil && !entered {
		only := q
		if f.Code != plan.CodeInterrupted && f.Code != plan.CodeTimeout {
			only = nil // there is no connection: for nobody
		}
		for _, other := range p.takeAsks(only) {
			other.fail(f)
			close(other.done)
		}
	}
	<-q.done
	return q.out
}

// takeAsks takes what waits, or only one of them.
func (p *Provider) takeAsks(only *ask) []*ask {
	p.mu.Lock()
	defer p.mu.Unlock()
	if only == nil {
		all := p.asks
		p.asks = nil
		return all
	}
	i := slices.Index(p.asks, only)
	if i < 0 {
		return nil // somebody is at it
	}
	p.asks = slices.Delete(p.asks, i, i+1)
	return []*ask{only}
}

func newAsk(sc *plan.Scope, resources []plan.Resource) *ask {
	q := &ask{sc: sc, out: plan.Snapshot{}, done: make(chan struct{})}
	for _, r := range resources {
		switch r.Address.Kind {
		case kindService:
			q.services = append(q.services, r.Address)
		case kindIndex:
			q.indexes = append(q.indexes, r.Address)
		case kindStale:
			if !safeName.MatchString(r.Address.Key) {
				q.unreadable(r.Address, plan.NewFault(plan.CodeInternal, "%q is no name of an entry's file", r.Address.Key))
				continue
			}
			q.stale = append(q.stale, r.Address)
		case kindReservation:
			t := sc.Target(r.Address.Device)
			if t == nil {
				q.unreadable(r.Address, plan.NewFault(plan.CodeInternal, "%s is not in the scope of this run", r.Address.Device))
				continue
			}
			entry, at, f := entryFor(t)
			if f != nil {
				q.unreadable(r.Address, f)
				continue
			}
			q.wanted = append(q.wanted, wish{address: r.Address, entry: entry, path: at})
		default:
			q.unreadable(r.Address, plan.NewFault(plan.CodeInternal, "%s is no resource of a DHCP server", r.Address))
		}
	}
	return q
}

// answer looks once for all asks.
func (p *Provider) answer(ctx context.Context, l *link, asks []*ask) *plan.Fault {
	folder, state := false, false
	for _, q := range asks {
		folder = folder || len(q.wanted)+len(q.indexes)+len(q.stale) > 0
		state = state || len(q.services) > 0
	}
	parts := []part{{"pending", "test -e " + markerName}}
	if folder {
		parts = append(parts, folderParts(p.flavour, p.settings)...)
	}
	if state {
		parts = append(parts, p.flavour.stateParts(p.settings)...)
	}
	a, f := p.run(ctx, l, "looking at the reservations", p.settings.Directory, parts)
	if f != nil {
		return f
	}
	for _, q := range asks {
		for _, address := range q.services {
			q.out[address] = p.serviceLive(a)
		}
	}
	if !folder {
		return nil
	}
	fo, f := p.folder(a)
	if f != nil {
		return f
	}
	for _, q := range asks {
		if f := p.transferMissing(ctx, l, fo, q.wanted, q.out); f != nil {
			return f
		}
		for _, address := range q.indexes {
			q.out[address] = fo.indexLive(q.sc)
		}
		if f := p.readStale(ctx, l, fo, q); f != nil {
			return f
		}
		for _, address := range q.services {
			q.out[address] = withMarked(q.out[address], fo)
		}
	}
	return nil
}

// folderParts tell all of the folder: names, hashes, lines; and the lines of the
// server's own configuration, where the account may read it.
func folderParts(fl flavour, s plan.DHCPSettings) []part {
	return []part{
		{"names", "ls -p"}, {"sums", "sha256sum -- *"}, {"lines", `grep -HaZ "" -- *`},
		mainsPart(fl, s.Directory, s.Config),
	}
}

// wish is one reservation that was asked for.
type wish struct {
	address plan.Address
	entry   Entry
	path    string
}

func (w wish) name() string { return path.Base(w.path) }

// folder makes the listing of an answer. Status 1 and 2 of grep say that the
// folder is empty or holds something that is no readable file.
func (p *Provider) folder(a answer) (*folder, *plan.Fault) {
	lines := a.sections["lines"]
	if lines.status > 2 {
		return nil, plan.NewFault(plan.CodeDHCPCommand, "the files in %s on %s cannot be listed: grep ended with status %d", p.settings.Directory, p.address, lines.status).
			With("stderr", a.stderr)
	}
	names := a.sections["names"]
	if names.status != 0 {
		return nil, plan.NewFault(plan.CodeDHCPCommand, "the folder %s on %s cannot be listed: ls ended with status %d", p.settings.Directory, p.address, names.status).
			With("stderr", a.stderr)
	}
	sums := a.sections["sums"]
	return newFolder(p.flavour, p.settings.Directory, listing{
		names: strings.Split(names.body, "\n"), hashed: sums.status <= 1, sums: parseSums(sums.body), lines: parseLines(lines.body),
		config: p.settings.Config, mains: parseLines(a.sections["mains"].body),
	}), nil
}

// transferMissing answers every wish, reading back what the listing does not
// tell exactly, all of it at once.
func (p *Provider) transferMissing(ctx context.Context, l *link, fo *folder, wanted []wish, out plan.Snapshot) *plan.Fault {
	formers := map[plan.Address]string{}
	var missing []string
	for _, w := range wanted {
		want := fo.fl.render(w.entry, p.settings.Options)
		formers[w.address] = fo.former(w.entry)
		for _, name := range []string{w.name(), formers[w.address]} {
			f := fo.files[name]
			switch {
			case f == nil || f.exact || f.dir:
			case f.sum == hash(want):
				f.text, f.exact = want, true
			default:
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	faults, f := p.readAll(ctx, l, fo, missing)
	if f != nil {
		return f
	}
	for _, w := range wanted {
		if f := faults[w.name()]; f != nil {
			out[w.address] = plan.LiveFault(plan.Unreadable, f)
		} else if f := faults[formers[w.address]]; f != nil {
			out[w.address] = plan.LiveFault(plan.Unreadable, f)
		} else {
			out[w.address] = fo.live(w, formers[w.address])
		}
	}
	return nil
}

// readAll reads files of the folder; those that cannot be read have a fault of
// their own.
func (p *Provider) readAll(ctx context.Context, l *link, fo *folder, names []string) (map[string]*plan.Fault, *plan.Fault) {
	faults := map[string]*plan.Fault{}
	if len(names) == 0 {
		return faults, nil
	}
	var mu sync.Mutex
	f := p.transfer(ctx, l, "reading back "+fo.dir, func(files *sftp.Client) error {
		return each(names, func(name string) error {
			text, err := readFile(files, fo.at(name))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				fo.files[name] = &file{sum: hash(text), text: text, exact: true}
			case errors.Is(err, fs.ErrNotExist):
				delete(fo.files, name)
			case transport(err):
				return err
			default:
				faults[name] = p.unreadable(fo.at(name), err)
			}
			return nil
		})
	})
	return faults, f
}

// live judges nothing beyond what makes a file untouchable: somebody else's
// file, or somebody else's MAC, address or name.
func (fo *folder) live(w wish, former string) plan.Live {
	own := fo.files[w.name()]
	if own != nil {
		switch id, ours := fo.fl.owner(own.text); {
		case own.dir:
			return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeDHCPForeignFile, "%s is a folder", w.path))
		case !ours:
			return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeDHCPForeignFile, "%s exists and does not carry enroll's mark", w.path).
				With("content", excerpt(own.text)))
		case id != w.entry.DeviceID:
			return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeDHCPForeignFile, "%s belongs to the NetBox device %d, not to %s (%d)", w.path, id, w.entry.Device, w.entry.DeviceID).
				With("content", excerpt(own.text)).
				WithHint("If the device was recorded anew in NetBox and this is its old file, remove the file; else rename one of the two devices."))
		}
	}
	if f := fo.conflict(w.entry, former); f != nil {
		return plan.LiveFault(plan.Unreadable, f)
	}
	at, f := w.path, own
	// Shown as long as it exists, so that the step that removes it stays in the
	// plan; where there is an index, that one does.
	if former != "" && (own == nil || fo.fl.index == "") {
		at, f = path.Join(fo.dir, former), fo.files[former]
	}
	if f == nil {
		return plan.LiveAbsent()
	}
	live := plan.LiveValue(plan.Obj(map[string]plan.Value{"path": plan.Str(at), "content": plan.Str(f.text)}))
	live.Evidence = map[string]string{"file": at, "sha256": f.sum, "size": strconv.Itoa(len(f.text))}
	return live
}

// unreadable is the fault of a file that cannot be read, so that nobody can tell
// whose it is.
func (p *Provider) unreadable(at string, err error) *plan.Fault {
	var known *plan.Fault
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, fs.ErrPermission):
		return plan.NewFault(plan.CodeDHCPForeignFile, "%s exists on %s and user %q may not read it, so nobody can tell whose it is", at, p.address, p.settings.User)
	case errors.Is(err, errTooLarge):
		return plan.NewFault(plan.CodeDHCPForeignFile, "%s on %s is larger than %d bytes; a reservation is not", at, p.address, maxFile)
	}
	return plan.NewFault(plan.CodeDHCPTransfer, "reading %s on %s failed", at, p.address).Because(err)
}
