package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Holder is who holds a lock. It stands in the lock's file.
type Holder struct {
	User    string    `json:"user"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	PlanID  string    `json:"plan_id"`
	// Alive is the last sign of life; with full seconds, so that it is always of one length.
	Alive time.Time `json:"alive"`
}

// Lease is how long a run may be silent before it is taken for one that hangs: the
// engine tells something every five minutes, and the machine may be suspended for one.
const Lease = 2*heartbeat + time.Minute

// Hangs reports whether a holder that lives has given no sign of life for a lease.
// Its lock stays its own until somebody breaks it.
func (h Holder) Hangs(now time.Time) bool { return now.Sub(h.Alive) > Lease }

func (h Holder) String() string {
	if h.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("%s on %s, process %d, plan %s, since %s", h.User, h.Host, h.PID, h.PlanID, h.Started.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// Lock is a device's lock as it is found. The system holds it for the process
// and lets go of it when the process ends, however it ends: a lock is held by
// somebody who lives, or by nobody. It covers one machine, or those that share
// the folder over a file system that passes locks on.
type Lock struct {
	Site, Device string
	Path         string
	Held         bool
	Holder       Holder // the last one, when nobody holds it
}

// Locks are the locks that a run holds.
type Locks struct {
	files map[string]*os.File // by device
	by    Holder
}

// LockDevices keeps other runs from the same devices: a file for each in a
// folder that all runs share, locked until Release or the end of the process.
// LOCK_HELD names the first device that another run has, and that run. The files
// stay: removing them would let two runs hold two files of one name.
func LockDevices(dir, site string, devices []string, by Holder) (*Locks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, plan.NewFault(plan.CodeJournal, "the folder %s for locks cannot be made; nothing was started", dir).Because(err)
	}
	by.Alive = by.Started.UTC().Truncate(time.Second)
	l := &Locks{files: map[string]*os.File{}, by: by}
	sorted := append([]string(nil), devices...)
	sort.Strings(sorted)
	for _, d := range sorted {
		if l.files[d] != nil {
			continue
		}
		if f := l.lock(lockPath(dir, site, d), d); f != nil {
			return nil, errors.Join(f, l.Release())
		}
	}
	return l, nil
}

const lockSuffix = ".lock"

func lockPath(dir, site, device string) string {
	return filepath.Join(dir, url.PathEscape(site)+"."+url.PathEscape(device)+lockSuffix)
}

func (l *Locks) lock(path, device string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the name is escaped
	if err != nil {
		return plan.NewFault(plan.CodeJournal, "the lock %s cannot be opened; nothing was started", path).Because(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := readHolder(f)
		fault := plan.NewFault(plan.CodeLockHeld, "another run is applying to %s: %s", device, holder).With("lock", path)
		if !holder.Alive.IsZero() {
			fault = fault.With("last sign of life", holder.Alive.UTC().Format(time.DateTime+" UTC"))
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			fault = fault.Because(err)
		}
		_ = f.Close() // nothing was written
		return fault
	}
	l.files[device] = f
	err = f.Truncate(0)
	if err == nil {
		err = l.sign(f)
	}
	if err != nil {
		return plan.NewFault(plan.CodeJournal, "the lock %s cannot be written; nothing was started", path).Because(err)
	}
	return nil
}

// sign writes who holds a lock, as one write of one length.
func (l *Locks) sign(f *os.File) error {
	raw, err := json.Marshal(l.by)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append(raw, '\n'), 0)
	return err
}

// Alive gives a sign of life, at most one in half a minute. It is for people who look
// at the locks: that one could not be written changes nothing of who holds them.
func (l *Locks) Alive(now time.Time) {
	now = now.UTC().Truncate(time.Second)
	if now.Sub(l.by.Alive) < 30*time.Second {
		return
	}
	l.by.Alive = now
	for _, f := range l.files {
		_ = l.sign(f)
	}
}

// readHolder reads who wrote the file last; the zero Holder when it says nothing.
func readHolder(f *os.File) Holder {
	var h Holder
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return Holder{}
	}
	return h
}

// Lost gives LOCK_LOST when the file that the run holds is not the one that
// other runs look at any more: somebody broke the lock.
func (l *Locks) Lost(device string) *plan.Fault {
	f := l.files[device]
	if f == nil {
		return nil
	}
	ours, err := f.Stat()
	if err == nil {
		var theirs os.FileInfo
		if theirs, err = os.Stat(f.Name()); err == nil && os.SameFile(ours, theirs) {
			return nil
		}
	}
	return plan.NewFault(plan.CodeLockLost, "the lock on %s was broken; nothing more is written", device).With("lock", f.Name()).Because(err)
}

// Release lets go of all locks.
func (l *Locks) Release() error {
	var errs []error
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// ListLocks lists a folder's locks, by site and device.
func ListLocks(dir string) ([]Lock, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+lockSuffix))
	if err != nil {
		return nil, err
	}
	var out []Lock
	for _, path := range names {
		site, device, ok := strings.Cut(strings.TrimSuffix(filepath.Base(path), lockSuffix), ".")
		if !ok {
			continue
		}
		l := Lock{Path: path}
		if l.Site, err = url.PathUnescape(site); err == nil {
			l.Device, err = url.PathUnescape(device)
		}
		if err != nil {
			continue // not one of ours
		}
		f, err := os.Open(path) //nolint:gosec // in the folder of locks
		if err != nil {
			return nil, plan.NewFault(plan.CodeJournal, "the lock %s cannot be read", path).Because(err)
		}
		l.Holder = readHolder(f)
		// A shared lock is refused exactly while somebody holds the exclusive one.
		l.Held = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
		if err := f.Close(); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	sort.Slice(out, func(a, b int) bool {
		if out[a].Site != out[b].Site {
			return out[a].Site < out[b].Site
		}
		return plan.NaturalLess(out[a].Device, out[b].Device)
	})
	return out, nil
}

// BreakLock takes a device's lock from whoever holds it: a process that hangs.
// That process finds out before its next write and writes nothing more; a
// request that it has in flight may still arrive.
func BreakLock(dir, site, device string) error {
	path := lockPath(dir, site, device)
	if err := os.Remove(path); err != nil {
		return plan.NewFault(plan.CodeConfigInvalid, "there is no lock on %s of site %s to break", device, site).With("lock", path).Because(err)
	}
	return nil
}
