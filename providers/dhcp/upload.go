package dhcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"time"

	"github.com/pkg/sftp"

	"github.com/enroll-dev/enroll/plan"
)

// previous is what stood at a path before this run changed it.
type previous struct {
	existed bool
	content string
	mode    fs.FileMode
}

const (
	modeNew   = 0o644     // dnsmasq runs as its own user and must be able to read the file
	staleTemp = time.Hour // no upload lives that long: its deadlines are minutes
)

// tempName fits the temporary names of upload, and nothing that a person or
// another tool would leave there.
var tempName = regexp.MustCompile(`^\.[a-z0-9-]+\.enroll-[0-9a-f]{16}$`)

// stage names the request of a transfer that failed: the server answers a full
// disk, a name that exists and a folder in the way with the same "Failure".
func stage(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// mark writes the pending marker, with a text that no other upload writes: who
// reloads removes the marker that it saw before its reload and no later one. It
// also removes the temporary files that this run could not remove and, once,
// those that other runs left an hour ago or earlier. Both times are the server's.
func (p *Provider) mark(ctx context.Context, l *link) *plan.Fault {
	token, f := p.random(8)
	if f != nil {
		return f
	}
	return p.transfer(ctx, l, "writing "+p.markerPath(), func(files *sftp.Client) error {
		f, err := files.OpenFile(p.markerPath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
		if err != nil {
			return p.explain(files, stage("open", err))
		}
		_, err = f.Write([]byte("# enroll uploaded reservations; the service was not reloaded since (" + token + ")\n"))
		err = stage("write", err)
		if closeErr := f.Close(); err == nil {
			err = stage("close", closeErr)
		}
		if err != nil {
			return p.explain(files, err)
		}
		p.sweep(files)
		return nil
	})
}

// sweep is tidiness: what it cannot do now, a later run does.
func (p *Provider) sweep(files *sftp.Client) {
	for _, temp := range p.litter {
		_ = files.Remove(temp)
	}
	p.litter = nil
	if p.swept {
		return
	}
	p.swept = true
	now, err := files.Stat(p.markerPath())
	if err != nil {
		return
	}
	list, err := files.ReadDir(p.settings.Directory)
	if err != nil {
		return
	}
	for _, info := range list {
		if tempName.MatchString(info.Name()) && now.ModTime().Sub(info.ModTime()) > staleTemp {
			_ = files.Remove(path.Join(p.settings.Directory, info.Name()))
		}
	}
}

// upload replaces a file as a whole: temporary name, write, sync, hash,
// posix-rename. At no moment is half a file under the live name. What stood
// there, old, is remembered until a reload proved the new content.
func (p *Provider) upload(ctx context.Context, l *link, at, content string, old previous) *plan.Fault {
	suffix, f := p.random(8)
	if f != nil {
		return f
	}
	temp := path.Join(path.Dir(at), "."+path.Base(at)+".enroll-"+suffix)
	f = p.transfer(ctx, l, "uploading "+at, func(files *sftp.Client) error {
		return p.write(files, temp, content, old.mode)
	})
	if f == nil {
		f = p.verify(ctx, l, temp, content)
	}
	if f == nil {
		f = plan.Permit(ctx)
	}
	if f == nil {
		f = p.transfer(ctx, l, "uploading "+at, func(files *sftp.Client) error {
			return p.explain(files, stage("posix-rename", files.PosixRename(temp, at)))
		})
	}
	if f != nil {
		// On a lost connection the temporary file stays until the next upload of
		// this run, or of a run an hour later. dnsmasq does not read it.
		gone := p.transfer(ctx, l, "removing "+temp, func(files *sftp.Client) error {
			if err := files.Remove(temp); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
		if gone != nil {
			p.litter = append(p.litter, temp)
		}
		return f
	}
	p.remember(at, old)
	return nil
}

// remember keeps the first content that this run replaced, not an own one.
func (p *Provider) remember(at string, old previous) {
	if _, known := p.previous[at]; !known {
		p.previous[at] = old
	}
}

// before looks at what an upload replaces, and refuses servers without an
// atomic rename before anything is written.
func (p *Provider) before(ctx context.Context, l *link, at string) (previous, *plan.Fault) {
	old := previous{mode: modeNew}
	f := p.transfer(ctx, l, "looking at "+at, func(files *sftp.Client) error {
		if _, ok := files.HasExtension("posix-rename@openssh.com"); !ok {
			return plan.NewFault(plan.CodeDHCPTransfer, "the SFTP server of %s has no posix-rename: a file could not be replaced without a moment in which it is missing or cut", p.address).
				WithHint("Use OpenSSH's sftp-server or internal-sftp on the DHCP server (posix-rename@openssh.com). Nothing was written.")
		}
		info, err := files.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return stage("stat", err)
		case !info.Mode().IsRegular():
			return plan.NewFault(plan.CodeDHCPForeignFile, "%s on %s is no regular file (%s)", at, p.address, info.Mode().Type())
		}
		old.existed, old.mode = true, info.Mode().Perm()
		return nil
	})
	if f != nil || !old.existed {
		return old, f
	}
	content, f := p.readBack(ctx, l, at)
	if f == nil && content == nil {
		return previous{mode: modeNew}, nil
	}
	if content != nil {
		old.content = *content
	}
	return old, f
}

// write makes the temporary file: exclusive, with its final mode, synced where
// the server can.
func (p *Provider) write(files *sftp.Client, temp, content string, mode fs.FileMode) error {
	f, err := files.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return p.explain(files, stage("create "+temp, err))
	}
	err = stage("set mode", f.Chmod(mode))
	if err == nil {
		_, err = f.Write([]byte(content)) // the count that comes back is not to be trusted; verify hashes
		err = stage("write", err)
	}
	if _, ok := files.HasExtension("fsync@openssh.com"); ok && err == nil {
		err = stage("fsync", f.Sync())
	}
	if closeErr := f.Close(); err == nil {
		err = stage("close", closeErr)
	}
	return p.explain(files, err)
}

// verify hashes the temporary file on the server; where that command fails, the
// file is read back instead.
func (p *Provider) verify(ctx context.Context, l *link, temp, content string) *plan.Fault {
	a, f := p.run(ctx, l, "hashing "+temp, "", []part{{"sums", "sha256sum -- " + quote(temp)}})
	if f != nil {
		return f
	}
	got := ""
	if s := a.sections["sums"]; s.status == 0 {
		got = parseSums(s.body)[temp]
	}
	if got == "" {
		text, f := p.readBack(ctx, l, temp)
		switch {
		case f != nil:
			return f
		case text != nil:
			got = hash(*text)
		}
	}
	if got != hash(content) {
		return plan.NewFault(plan.CodeDHCPTransfer, "%s on %s does not hold what was written to it", temp, p.address).
			With("sha256 written", hash(content)).With("sha256 found", got)
	}
	return nil
}

// remove takes a file away that stood at the step's Before.
func (p *Provider) remove(ctx context.Context, l *link, at, content string) *plan.Fault {
	f := p.transfer(ctx, l, "removing "+at, func(files *sftp.Client) error {
		if err := files.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return stage("remove", err)
		}
		return nil
	})
	if f == nil {
		p.remember(at, previous{existed: true, content: content, mode: modeNew})
	}
	return f
}

// explain adds to a failed write what the server's "Failure" does not say: how
// much space is left, and whose right is missing.
func (p *Provider) explain(files *sftp.Client, err error) error {
	if err == nil || transport(err) {
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
