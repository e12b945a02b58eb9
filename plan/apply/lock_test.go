package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

var somebody = Holder{User: "ada", Host: "runner1", PID: 4711, PlanID: "0123456789ab", Started: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}

func lockAll(t *testing.T, dir string, devices ...string) *Locks {
	t.Helper()
	l, err := LockDevices(dir, "s", devices, somebody)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *Locks) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestDevicesAreLocked(t *testing.T) {
	dir := t.TempDir()
	l := lockAll(t, dir, "b", "../a", "b")
	_, err := LockDevices(dir, "s", []string{"c", "b"}, Holder{})
	if !errors.Is(err, plan.CodeLockHeld) || !strings.HasSuffix(err.Error(), "ada on runner1, process 4711, plan 0123456789ab, since 2026-11-30 10:00:00 UTC") {
		t.Errorf("second lock: %v", err)
	}
	release(t, lockAll(t, dir, "c")) // was let go of when b was refused
	release(t, l)
	release(t, lockAll(t, dir, "b"))
}

func TestLocksAreListed(t *testing.T) {
	dir := t.TempDir()
	release(t, lockAll(t, dir, "gpu-10", "gpu-2"))
	l := lockAll(t, dir, "gpu-10")
	defer release(t, l)
	locks, err := ListLocks(dir)
	if err != nil || len(locks) != 2 {
		t.Fatalf("%v, %v", locks, err)
	}
	if locks[0].Device != "gpu-2" || locks[0].Held || locks[1].Device != "gpu-10" || !locks[1].Held || locks[1].Holder.PID != somebody.PID || locks[1].Site != "s" {
		t.Errorf("%+v", locks)
	}
}

// A run that waits is told from one that hangs by its last sign of life.
func TestALockShowsSignsOfLife(t *testing.T) {
	dir := t.TempDir()
	l := lockAll(t, dir, "a", "b")
	defer release(t, l)
	holder := func() Holder {
		locks, err := ListLocks(dir)
		if err != nil || len(locks) != 2 || locks[0].Holder != locks[1].Holder {
			t.Fatalf("%+v, %v", locks, err)
		}
		return locks[0].Holder
	}
	for _, c := range []struct{ at, want time.Duration }{{10 * time.Second, 0}, {31 * time.Second, 31 * time.Second}, {time.Minute, 31 * time.Second}, {time.Hour, time.Hour}} {
		l.Alive(somebody.Started.Add(c.at))
		if got := holder().Alive.Sub(somebody.Started); got != c.want {
			t.Errorf("after %s the last sign of life is of %s, want %s", c.at, got, c.want)
		}
	}
	if h := holder(); h.Hangs(h.Alive.Add(Lease)) || !h.Hangs(h.Alive.Add(Lease+time.Second)) {
		t.Error("the lease has another length")
	}
	var f *plan.Fault
	if _, err := LockDevices(dir, "s", []string{"a"}, Holder{}); !errors.As(err, &f) || f.Evidence["last sign of life"] != "2026-11-30 11:00:00 UTC" {
		t.Errorf("second lock: %v", err)
	}
}

func TestABrokenLockIsNoticedBeforeTheNextWrite(t *testing.T) {
	dir := t.TempDir()
	l := lockAll(t, dir, "a", "b")
	if f := l.Lost("a"); f != nil {
		t.Fatal(f)
	}
	if err := BreakLock(dir, "s", "a"); err != nil {
		t.Fatal(err)
	}
	other := lockAll(t, dir, "a")
	defer release(t, other)
	if f := l.Lost("a"); !errors.Is(f, plan.CodeLockLost) {
		t.Errorf("after the break: %v", f)
	}
	if f := l.Lost("b"); f != nil {
		t.Errorf("the other device: %v", f)
	}
	if f := other.Lost("a"); f != nil {
		t.Errorf("the new holder: %v", f)
	}
	if err := BreakLock(dir, "s", "nobody"); !errors.Is(err, plan.CodeConfigInvalid) {
		t.Errorf("a lock that is not there: %v", err)
	}
	release(t, l)
}
