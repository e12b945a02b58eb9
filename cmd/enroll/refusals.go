package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/enroll-dev/enroll/providers/bmc"
)

// refusals keeps which logins BMCs refused: a file for each BMC and account, in one
// folder that all runs of this user share. A run that cannot use the folder says so
// once and goes on.
type refusals struct {
	dir  string
	warn func(error)
	once sync.Once
}

func (a *app) refusals() *refusals {
	return &refusals{dir: filepath.Join(a.stateDir(), "refusals"), warn: a.warn}
}

func (r *refusals) complain(err error) {
	r.once.Do(func() {
		r.warn(fmt.Errorf("the logins that BMCs refuse are not remembered; too many runs in a row may lock an account: %w", err))
	})
}

func (r *refusals) path(address, account string) string {
	return filepath.Join(r.dir, url.PathEscape(address)+","+url.PathEscape(account)+".json") // no part has a comma
}

// Refused gives what is remembered of a BMC and account.
func (r *refusals) Refused(address, account string) []bmc.Refusal {
	list, err := r.read(r.path(address, account))
	if err != nil {
		r.complain(err)
	}
	return list
}

func (r *refusals) read(path string) ([]bmc.Refusal, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the name is escaped
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []bmc.Refusal
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// Update changes it while it holds the folder's lock.
func (r *refusals) Update(address, account string, change func([]bmc.Refusal) []bmc.Refusal) {
	if err := r.update(r.path(address, account), change); err != nil {
		r.complain(err)
	}
}

func (r *refusals) update(path string, change func([]bmc.Refusal) []bmc.Refusal) (err error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(r.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	list, _ := r.read(path) // what cannot be read is written anew
	if list = change(list); len(list) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return writeFile(path, append(raw, '\n'))
}
