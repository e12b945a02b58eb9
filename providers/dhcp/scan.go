package dhcp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// The kinds of this package, by their local names.
const (
	kindReservation = "reservation"
	kindIndex       = "index"
	kindService     = "service"
)

// maxFile is how much of a file is read back; a reservation has 100 bytes.
const maxFile = 64 << 10

// Read looks at the whole folder and the service in one command, and reads
// back over SFTP only the files that the command could not tell exactly.
// Connection, login and host key faults make everything Unreadable; a hash
// command that completed with a failure does not: the files are then read.
func (p *Provider) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	unreadable := func(a plan.Address, f *plan.Fault) { out[a] = plan.LiveFault(plan.Unreadable, f) }
	var wanted []wish
	var services, indexes []plan.Address
	for _, r := range resources {
		switch r.Address.Kind {
		case kindService:
			services = append(services, r.Address)
		case kindIndex:
			indexes = append(indexes, r.Address)
		case kindReservation:
			t := sc.Target(r.Address.Device)
			if t == nil {
				unreadable(r.Address, plan.NewFault(plan.CodeInternal, "%s is not in the scope of this run", r.Address.Device))
				continue
			}
			entry, at, f := entryFor(t)
			if f != nil {
				unreadable(r.Address, f)
				continue
			}
			wanted = append(wanted, wish{address: r.Address, entry: entry, path: at})
		default:
			unreadable(r.Address, plan.NewFault(plan.CodeInternal, "%s is no resource of a DHCP server", r.Address))
		}
	}
	if len(wanted) == 0 && len(services) == 0 && len(indexes) == 0 {
		return out
	}
	f := p.exchange(ctx, func(l *link) *plan.Fault {
		parts := []part{{"pending", "test -e " + markerName}}
		if len(wanted) > 0 || len(indexes) > 0 {
			parts = append(parts, folderParts(p.settings)...)
		}
		if len(services) > 0 {
			parts = append(parts, p.flavour.stateParts(p.settings)...)
		}
		a, f := p.run(ctx, l, "looking at the reservations", p.settings.Directory, parts)
		if f != nil {
			return f
		}
		for _, address := range services {
			out[address] = p.serviceLive(a)
		}
		if len(wanted) == 0 && len(indexes) == 0 {
			return nil
		}
		fo, f := p.folder(a)
		if f != nil {
			return f
		}
		for _, address := range indexes {
			out[address] = fo.indexLive(sc)
		}
		return p.transferMissing(ctx, l, fo, wanted, out)
	})
	if f != nil {
		for _, w := range wanted {
			unreadable(w.address, f)
		}
		for _, address := range append(services, indexes...) {
			unreadable(address, f)
		}
	}
	return out
}

// folderParts tell all of the folder: names, hashes, lines; and the lines of the
// server's own configuration, where the account may read it.
func folderParts(s plan.DHCPSettings) []part {
	return []part{
		{"names", "ls -p"}, {"sums", "sha256sum -- *"}, {"lines", `grep -HaZ "" -- *`},
		{"mains", `grep -HaZ "" -- ` + mainFiles(s)},
	}
}

// mainFiles are the files of the server's own configuration, as words of a
// command.
func mainFiles(s plan.DHCPSettings) string {
	if s.Service == serviceDnsmasq { // Debian's unit reads the folder too
		return s.Config + " " + strings.TrimSuffix(s.Config, path.Ext(s.Config)) + ".d/*"
	}
	return s.Config
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
		mains: parseLines(a.sections["mains"].body),
	}), nil
}

// transferMissing answers every wish, reading back what the listing does not
// tell exactly.
func (p *Provider) transferMissing(ctx context.Context, l *link, fo *folder, wanted []wish, out plan.Snapshot) *plan.Fault {
	for _, w := range wanted {
		want := fo.fl.render(w.entry, p.settings.Options)
		former := fo.former(w.entry)
		for _, name := range []string{w.name(), former} {
			f := fo.files[name]
			switch {
			case f == nil || f.exact || f.dir:
				continue // no such file, or known already
			case f.sum == hash(want):
				f.text, f.exact = want, true
				continue
			}
			content, fault := p.readBack(ctx, l, path.Join(fo.dir, name))
			if fault != nil && fault.Code == plan.CodeDHCPForeignFile {
				out[w.address] = plan.LiveFault(plan.Unreadable, fault)
				continue
			}
			if fault != nil {
				return fault
			}
			if content == nil {
				delete(fo.files, name)
				continue
			}
			fo.files[name] = &file{sum: hash(*content), text: *content, exact: true}
		}
		if _, done := out[w.address]; !done {
			out[w.address] = fo.live(w, former)
		}
	}
	return nil
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

// readBack reads a small file; nil when there is none.
func (p *Provider) readBack(ctx context.Context, l *link, at string) (*string, *plan.Fault) {
	var content *string
	f := p.transfer(ctx, l, "reading "+at, func(files *sftp.Client) error {
		f, err := files.Open(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrPermission):
			return plan.NewFault(plan.CodeDHCPForeignFile, "%s exists on %s and user %q may not read it, so nobody can tell whose it is", at, p.address, p.settings.User)
		case err != nil:
			return err
		}
		raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
		if len(raw) > maxFile {
			return plan.NewFault(plan.CodeDHCPForeignFile, "%s on %s is larger than %d bytes; a reservation is not", at, p.address, maxFile)
		}
		text := string(raw)
		content = &text
		return nil
	})
	return content, f
}
