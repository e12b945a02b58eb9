package dhcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// previous is what stood at a path before it is changed.
type previous struct {
	existed  bool
	content  string
	mode     fs.FileMode
	uid, gid uint32
}

const modeNew = 0o644 // the server runs as its own user and must be able to read the file

// tempName fits the temporary names of enroll, and nothing that a person or
// another tool would leave there.
var tempName = regexp.MustCompile(`^\.[A-Za-z0-9._-]+\.enroll-[0-9a-f]{16}$`)

// tempFor is a name in the same folder that no server reads.
func tempFor(at, token string) string {
	return path.Join(path.Dir(at), "."+strings.TrimPrefix(path.Base(at), ".")+".enroll-"+token)
}

// stage names the request of a transfer that failed: the server answers a full
// disk, a name that exists and a folder in the way with the same "Failure".
func stage(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// inFlight is how many files are worked on at once: SFTP has no order between
// requests of different files, so a round trip serves them all.
const inFlight = 512

// each does something with every item, many at once, and gives the error of the
// first item, in their order, that has one.
func each[T any](items []T, do func(T) error) error {
	errs := make([]error, len(items))
	slots := make(chan struct{}, inFlight)
	var wait sync.WaitGroup
	for i, item := range items {
		slots <- struct{}{}
		wait.Add(1)
		go func() {
			defer wait.Done()
			errs[i] = do(item)
			<-slots
		}()
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// upload is one file on its way.
type upload struct {
	at, content string
	old         previous
	temp        string
	passing     bool  // it is made for a check alone, and need not outlive the server
	err         error // why it cannot be replaced, when the reason is its own
}

func (u *upload) name() string { return path.Base(u.at) }

// name gives the uploads their temporary names.
func (p *Provider) name(uploads []*upload) *plan.Fault {
	for _, u := range uploads {
		token, f := p.random(8)
		if f != nil {
			return f
		}
		u.temp = tempFor(u.at, token)
	}
	return nil
}

// prepare writes the temporary files, keeps what they replace and puts the
// marker in place: from here on, whatever happens, somebody will restart, and can
// put the former files back. had is what the marker lists already.
func (p *Provider) prepare(ctx context.Context, l *link, temps []*upload, had, more changes) *plan.Fault {
	c := had.with(more)
	m, f := p.marker(c)
	if f != nil {
		return f
	}
	f = p.transfer(ctx, l, "writing to "+p.settings.Directory, func(files *sftp.Client) error {
		var work []func() error
		for _, u := range append(temps[:len(temps):len(temps)], m) {
			work = append(work, func() error { return p.write(files, u) })
		}
		for _, name := range c.replaced[len(had.replaced):] {
			work = append(work, func() error { return p.explain(files, p.keep(files, path.Join(p.settings.Directory, name))) })
		}
		for _, name := range more.replaced {
			if slices.Contains(had.replaced, name) {
				work = append(work, func() error { return p.explain(files, p.keepAgain(files, path.Join(p.settings.Directory, name))) })
			}
		}
		// The marker gets its name when all that it promises is there.
		if err := together(work...); err != nil {
			return err
		}
		return p.mark(files, m)
	})
	if f != nil {
		p.discard(ctx, l, []*upload{m})
	}
	return f
}

// discard removes temporary files. On a lost connection they stay until the
// next change of this run, or of a run an hour later; no server reads them.
func (p *Provider) discard(ctx context.Context, l *link, uploads []*upload) {
	if len(uploads) == 0 {
		return
	}
	f := p.transfer(ctx, l, "removing temporary files", func(files *sftp.Client) error {
		return each(uploads, func(u *upload) error {
			if u.temp == "" {
				return nil
			}
			return gone(files.Remove(u.temp))
		})
	})
	if f != nil {
		for _, u := range uploads {
			if u.temp != "" {
				p.litter = append(p.litter, u.temp)
			}
		}
	}
}

// sweep removes what other runs left an hour ago or earlier, and what this run
// could not remove. It is tidiness: what it cannot do now, a later run does.
func (p *Provider) sweep(ctx context.Context, l *link, stale string) {
	list := p.litter
	p.litter = nil
	for _, name := range strings.Split(stale, "\n") {
		name = strings.TrimPrefix(name, "./")
		if tempName.MatchString(name) {
			list = append(list, path.Join(p.settings.Directory, name))
		}
	}
	if len(list) == 0 {
		return
	}
	_ = p.transfer(ctx, l, "removing stale temporary files", func(files *sftp.Client) error {
		return each(list, func(at string) error { return gone(files.Remove(at)) })
	})
}

// stalePart lists temporary files that no upload can still be writing: its
// deadlines are minutes. The times are the server's own.
func stalePart() part {
	return part{"stale", `find . -maxdepth 1 -name ".*.enroll-*" -mmin +60`}
}

// sumsPart hashes the temporary files on the server.
func sumsPart(uploads []*upload) part {
	var names []string
	for _, u := range uploads {
		names = append(names, quote(path.Base(u.temp)))
	}
	return part{"temps", "sha256sum -- " + strings.Join(names, " ")}
}

// verified holds the hashes against what was written; where the command failed,
// the files are read back instead.
func (p *Provider) verified(ctx context.Context, l *link, a answer, uploads []*upload) *plan.Fault {
	sums := map[string]string{}
	if a.sections["temps"].status <= 1 {
		sums = parseSums(a.sections["temps"].body)
	}
	var unknown []*upload
	for _, u := range uploads {
		if sums[path.Base(u.temp)] == "" {
			unknown = append(unknown, u)
		}
	}
	var mu sync.Mutex
	if len(unknown) > 0 {
		f := p.transfer(ctx, l, "reading back", func(files *sftp.Client) error {
			return each(unknown, func(u *upload) error {
				text, err := readFile(files, u.temp)
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				sums[path.Base(u.temp)] = hash(text)
				return err
			})
		})
		if f != nil {
			return f
		}
	}
	for _, u := range uploads {
		if got := sums[path.Base(u.temp)]; got != hash(u.content) {
			return plan.NewFault(plan.CodeDHCPTransfer, "%s on %s does not hold what was written to it", u.temp, p.address).
				With("sha256 written", hash(u.content)).With("sha256 found", got)
		}
	}
	return nil
}

// publish gives the temporary files their names, and removes those of the trial.
// At no moment is half a file under a live name.
func (p *Provider) publish(ctx context.Context, l *link, uploads, trial []*upload) *plan.Fault {
	return p.transfer(ctx, l, "renaming in "+p.settings.Directory, func(files *sftp.Client) error {
		return each(append(uploads[:len(uploads):len(uploads)], trial...), func(u *upload) error {
			if slices.Contains(trial, u) {
				return p.explain(files, gone(stage("remove "+u.temp, files.Remove(u.temp))))
			}
			return p.explain(files, stage("posix-rename to "+u.at, files.PosixRename(u.temp, u.at)))
		})
	})
}

// before looks at what uploads replace, and refuses servers without an atomic
// rename before anything is written. The contents are those of the folder's
// listing where that is exact.
func (p *Provider) before(ctx context.Context, l *link, fo *folder, uploads []*upload) *plan.Fault {
	return p.transfer(ctx, l, "looking at "+p.settings.Directory, func(files *sftp.Client) error {
		if _, ok := files.HasExtension("posix-rename@openssh.com"); !ok {
			return plan.NewFault(plan.CodeDHCPTransfer, "the SFTP server of %s has no posix-rename: a file could not be replaced without a moment in which it is missing or cut", p.address).
				WithHint("Use OpenSSH's sftp-server or internal-sftp on the DHCP server (posix-rename@openssh.com). Nothing was written.")
		}
		return each(uploads, func(u *upload) error {
			u.err = p.lookAt(files, fo, u)
			if transport(u.err) {
				return u.err
			}
			return nil
		})
	})
}

func (p *Provider) lookAt(files *sftp.Client, fo *folder, u *upload) error {
	u.old = previous{mode: modeNew}
	info, err := files.Lstat(u.at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return stage("stat "+u.at, err)
	case !info.Mode().IsRegular():
		return plan.NewFault(plan.CodeDHCPForeignFile, "%s on %s is no regular file (%s)", u.at, p.address, info.Mode().Type())
	}
	u.old.existed, u.old.mode = true, info.Mode().Perm()
	if st, ok := info.Sys().(*sftp.FileStat); ok {
		u.old.uid, u.old.gid = st.UID, st.GID
	}
	if f := fo.files[u.name()]; f != nil && f.exact {
		u.old.content = f.text
		return nil
	}
	u.old.content, err = readFile(files, u.at)
	return stage("read "+u.at, err)
}

// write makes a temporary file: exclusive, with its final mode and owner, synced
// where the server can. The owner is kept where the account may give files away.
func (p *Provider) write(files *sftp.Client, u *upload) error {
	f, err := p.create(files, u.temp, u.content, u.old)
	if f == nil {
		return err
	}
	if _, ok := files.HasExtension("fsync@openssh.com"); ok && err == nil && !u.passing {
		err = stage("fsync", f.Sync())
	}
	if closeErr := f.Close(); err == nil {
		err = stage("close", closeErr)
	}
	return p.explain(files, err)
}

// create makes a file with its content and leaves it open; nil where it could not be
// made. A file that others may not read gets its mode before its content, any other
// gets both at once.
func (p *Provider) create(files *sftp.Client, at, content string, old previous) (*sftp.File, error) {
	f, err := files.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, p.explain(files, stage("create "+at, err))
	}
	rights := func() error {
		if err := f.Chmod(old.mode); err != nil || !old.existed {
			return stage("set mode", err)
		}
		if err := f.Chown(int(old.uid), int(old.gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return stage("set owner", err)
		}
		return nil
	}
	text := func() error {
		_, err := f.Write([]byte(content)) // the count that comes back is not to be trusted; verified hashes
		return stage("write", err)
	}
	if old.mode&modeNew == modeNew {
		return f, together(rights, text)
	}
	if err = rights(); err == nil {
		err = text()
	}
	return f, err
}

// together does several things at once and gives the error of the first that has one.
func together(work ...func() error) error {
	return each(work, func(do func() error) error { return do() })
}

// readFile reads a small file.
func readFile(files *sftp.Client, at string) (string, error) {
	f, err := files.Open(at)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && len(raw) > maxFile {
		err = errTooLarge
	}
	return string(raw), err
}

var errTooLarge = fmt.Errorf("it is larger than %d bytes", maxFile)

// explain adds to a failed write what the server's "Failure" does not say: how
// much space is left, and whose right is missing.
func (p *Provider) explain(files *sftp.Client, err error) error {
	var known *plan.Fault
	if err == nil || transport(err) || errors.As(err, &known) {
		return err
	}
	f := plan.NewFault(plan.CodeDHCPTransfer, "writing to %s on %s failed", p.settings.Directory, p.address).Because(err)
	if errors.Is(err, fs.ErrPermission) {
		return f.WithHint("Give the folder to user %s on the server: chown %s %s. The old file is still in place.", p.settings.User, p.settings.User, p.settings.Directory)
	}
	if _, ok := files.HasExtension("statvfs@openssh.com"); ok {
		if vfs, vfsErr := files.StatVFS(p.settings.Directory); vfsErr == nil {
			return f.With("free bytes", strconv.FormatUint(vfs.Bavail*vfs.Frsize, 10)).With("free inodes", strconv.FormatUint(vfs.Favail, 10))
		}
	}
	return f
}
