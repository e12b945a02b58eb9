package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// notes are what runs of this user leave for the next ones: a small JSON file for
// each thing, in one folder. A run that cannot use the folder says so once, with
// what comes of that, and goes on.
type notes[T any] struct {
	dir  string
	loss string // what comes of it when nothing is remembered, as a clause
	warn func(error)
	once sync.Once
}

func (n *notes[T]) complain(err error) {
	n.once.Do(func() { n.warn(fmt.Errorf("%s: %w", n.loss, err)) })
}

// path is the file about the thing of a name.
func (n *notes[T]) path(name ...string) string {
	escaped := make([]string, len(name))
	for i := range name {
		escaped[i] = url.PathEscape(name[i]) // no part has a comma then
	}
	return filepath.Join(n.dir, strings.Join(escaped, ",")+".json")
}

// each gives all that is remembered, by the names of its things; what cannot be read
// ends it.
func (n *notes[T]) each(see func(note T, name ...string)) error {
	paths, err := filepath.Glob(filepath.Join(n.dir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range paths { // sorted
		note, err := n.read(path)
		if err != nil {
			return err
		}
		name := strings.Split(strings.TrimSuffix(filepath.Base(path), ".json"), ",")
		for i, part := range name {
			if name[i], err = url.PathUnescape(part); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		see(note, name...)
	}
	return nil
}

// get reads a file; the zero value where there is none.
func (n *notes[T]) get(path string) T {
	note, err := n.read(path)
	if err != nil {
		n.complain(err)
	}
	return note
}

func (n *notes[T]) read(path string) (note T, err error) {
	raw, err := os.ReadFile(path) //nolint:gosec // names are escaped
	if errors.Is(err, fs.ErrNotExist) {
		return note, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &note)
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return note, nil
}

// change rewrites a file while it holds the folder's lock; keep false removes it.
func (n *notes[T]) change(path string, change func(T) (note T, keep bool)) {
	if err := n.rewrite(path, change); err != nil {
		n.complain(err)
	}
}

func (n *notes[T]) rewrite(path string, change func(T) (T, bool)) (err error) {
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(n.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	note, _ := n.read(path) // what cannot be read is written anew
	note, keep := change(note)
	if !keep {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	raw, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return writeFile(path, append(raw, '\n'))
}
