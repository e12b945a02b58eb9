package apply

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"syscall"

	"github.com/enroll-dev/enroll/plan"
)

// LockDevices keeps other runs on this machine from the same devices: an empty
// file for each in a folder that all runs share, locked until release or the end
// of the process. LOCK_HELD names the first device that another run has. The
// files stay: removing them would let two runs hold two files of one name.
func LockDevices(dir, site string, devices []string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, plan.NewFault(plan.CodeJournal, "the folder %s for locks cannot be made; nothing was started", dir).Because(err)
	}
	var held []*os.File
	release = func() error {
		var errs []error
		for _, f := range held {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}
	sorted := append([]string(nil), devices...)
	sort.Strings(sorted)
	for _, d := range sorted {
		path := filepath.Join(dir, url.PathEscape(site)+"."+url.PathEscape(d)+".lock")
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the name is escaped
		if err != nil {
			return nil, errors.Join(plan.NewFault(plan.CodeJournal, "the lock %s cannot be opened; nothing was started", path).Because(err), release())
		}
		held = append(held, f)
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return nil, errors.Join(plan.NewFault(plan.CodeLockHeld, "another run on this machine is applying to %s", d).With("lock", path).Because(err), release())
		}
	}
	return release, nil
}
