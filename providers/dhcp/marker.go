package dhcp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// The marker says that files were changed and the service was not yet proved
// healthy with them. Its lines say which: "~ NAME" for one whose former content
// stands under its kept name, "+ NAME" for one that did not exist. Whoever finds
// it restarts, and can put back what stood there before, also when the run that
// changed it is dead.
const markerName = ".enroll-pending"

const markerHead = "# enroll changed files; the service was not yet proved healthy with them ("

// markerPath is the marker's path.
func (p *Provider) markerPath() string { return path.Join(p.settings.Directory, markerName) }

// keptName is where a file's former content is kept until the service was proved.
func keptName(name string) string { return "." + name + ".enroll-old" }

// changes are what a marker lists.
type changes struct {
	replaced []string // their former content is kept
	created  []string
}

func (c changes) empty() bool { return len(c.replaced)+len(c.created) == 0 }

func (c changes) names() string {
	return strings.Join(append(slices.Clone(c.created), c.replaced...), ", ")
}

var safeName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// parseChanges reads a marker. Lines that are cut or that nobody wrote so are
// left out.
func parseChanges(text string) changes {
	var c changes
	for _, line := range strings.Split(text, "\n") {
		sign, name, _ := strings.Cut(line, " ")
		switch {
		case !safeName.MatchString(name):
		case sign == "~" && !slices.Contains(c.replaced, name):
			c.replaced = append(c.replaced, name)
		case sign == "+" && !slices.Contains(c.created, name):
			c.created = append(c.created, name)
		}
	}
	return c
}

// with adds changes. What was created in an earlier, unproved change and is
// replaced now was created all the same.
func (c changes) with(more changes) changes {
	out := changes{replaced: slices.Clone(c.replaced), created: slices.Clone(c.created)}
	for _, name := range more.created {
		if !slices.Contains(out.created, name) && !slices.Contains(out.replaced, name) {
			out.created = append(out.created, name)
		}
	}
	for _, name := range more.replaced {
		if !slices.Contains(out.created, name) && !slices.Contains(out.replaced, name) {
			out.replaced = append(out.replaced, name)
		}
	}
	return out
}

// render writes a marker. The token makes each one different: who removes one
// removes the one that it has proved.
func (c changes) render(token string) string {
	var b strings.Builder
	b.WriteString(markerHead + token + ")\n")
	for _, name := range c.created {
		b.WriteString("+ " + name + "\n")
	}
	for _, name := range c.replaced {
		b.WriteString("~ " + name + "\n")
	}
	return b.String()
}

// markerPart shows the marker's lines. grep ends each with a newline, cut by a
// lost connection or not.
func markerPart() part { return part{"marker", `grep -HaZ "" -- ` + markerName} }

func markerText(a answer) string { return parseLines(a.sections["marker"].body)[markerName] }

// marker is the marker's file on its way, made beside the others.
func (p *Provider) marker(c changes) (*upload, *plan.Fault) {
	token, f := p.random(8)
	if f != nil {
		return nil, f
	}
	temp := path.Join(p.settings.Directory, markerName+".enroll-"+token)
	return &upload{at: p.markerPath(), temp: temp, content: c.render(token), old: previous{mode: modeNew}}, nil
}

// mark puts the marker in place, as a whole.
func (p *Provider) mark(files *sftp.Client, m *upload) error {
	return p.explain(files, stage("posix-rename", files.PosixRename(m.temp, m.at)))
}

// keep lets the present content of a file stand under its kept name too. What
// stands there without a marker that lists it is of a run that changed nothing.
func (p *Provider) keep(files *sftp.Client, at string) error {
	kept := path.Join(path.Dir(at), keptName(path.Base(at)))
	if err := gone(files.Remove(kept)); err != nil {
		return stage("remove "+kept, err)
	}
	return p.twin(files, at, kept)
}

// keepAgain keeps a file that the marker lists already, where nothing is kept for
// it any more: a run that ended while it tidied up had proved what stands there.
func (p *Provider) keepAgain(files *sftp.Client, at string) error {
	kept := path.Join(path.Dir(at), keptName(path.Base(at)))
	_, err := files.Lstat(kept)
	if !errors.Is(err, fs.ErrNotExist) {
		return stage("look at "+kept, err)
	}
	return p.twin(files, at, kept)
}

// twin lets the content of a file stand under another name, which is free, too.
func (p *Provider) twin(files *sftp.Client, at, other string) error {
	if _, ok := files.HasExtension("hardlink@openssh.com"); ok {
		err := files.Link(at, other)
		if err == nil || transport(err) {
			return err
		}
	}
	// A file system without hard links: the content is written once more.
	text, err := readFile(files, at)
	if err != nil {
		return stage("read "+at, err)
	}
	return p.write(files, &upload{temp: other, content: text, old: previous{mode: modeNew}})
}

// reinstate lets the kept content of a file stand under its name again. It stays
// kept: until the service is proved, somebody may have to put it back once more.
func (p *Provider) reinstate(files *sftp.Client, name string) error {
	at := path.Join(p.settings.Directory, name)
	token, f := p.random(8)
	if f != nil {
		return f
	}
	temp := tempFor(at, token)
	if err := p.twin(files, path.Join(p.settings.Directory, keptName(name)), temp); err != nil {
		return gone(err)
	}
	if err := files.PosixRename(temp, at); err != nil {
		return stage("posix-rename to "+at, err)
	}
	// A rename between two names of one file leaves both.
	return stage("remove "+temp, gone(files.Remove(temp)))
}

// settle removes the marker that was seen before the service was told, and what
// was kept for it: what was changed then is proved. now is the marker that the last
// look found, which also found the lock to be this run's; newer says that it is
// another one, of a change since.
func (p *Provider) settle(ctx context.Context, l *link, seen, now string) (newer bool, f *plan.Fault) {
	if now != seen {
		return now != "", nil
	}
	// An empty marker cannot be told from none here: it goes too.
	return false, p.transfer(ctx, l, "removing "+p.markerPath(), func(files *sftp.Client) error {
		// The marker last: without it nobody would look for what is kept.
		err := each(parseChanges(seen).replaced, func(name string) error {
			return gone(files.Remove(path.Join(p.settings.Directory, keptName(name))))
		})
		if err == nil {
			err = gone(files.Remove(p.markerPath()))
		}
		return p.explain(files, stage("remove", err))
	})
}

// putBack restores what a marker lists: contents first, then the index, then
// files that did not exist go, so that at no moment a file is listed that is not
// there. It says what it restored.
func (p *Provider) putBack(ctx context.Context, l *link, c changes) *plan.Fault {
	index := p.flavour.index
	return p.transfer(ctx, l, "putting back the former files", func(files *sftp.Client) error {
		var others []string
		for _, name := range c.replaced {
			if name != index {
				others = append(others, name)
			}
		}
		if err := each(others, func(name string) error { return p.reinstate(files, name) }); err != nil {
			return p.explain(files, err)
		}
		switch {
		case index == "":
		case slices.Contains(c.replaced, index):
			if err := p.reinstate(files, index); err != nil {
				return p.explain(files, err)
			}
		case slices.Contains(c.created, index):
			if err := p.emptyIndex(files); err != nil {
				return p.explain(files, err)
			}
		}
		return p.explain(files, each(c.created, func(name string) error {
			if name == index {
				return nil // the configuration may include it: it is emptied instead
			}
			return gone(files.Remove(path.Join(p.settings.Directory, name)))
		}))
	})
}

// emptyIndex replaces the index by one that lists nothing.
func (p *Provider) emptyIndex(files *sftp.Client) error {
	token, f := p.random(8)
	if f != nil {
		return f
	}
	at := path.Join(p.settings.Directory, p.flavour.index)
	temp := tempFor(at, token)
	if err := p.write(files, &upload{temp: temp, content: p.flavour.renderIndex(p.settings.Directory, nil), old: previous{mode: modeNew}}); err != nil {
		return err
	}
	return stage("posix-rename", files.PosixRename(temp, at))
}

// gone takes a file that is not there for one that was removed.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
