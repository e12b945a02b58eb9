package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// interrupts is what signals mean. While something is read or asked, the first
// one cancels: sessions are closed, and the command ends with INTERRUPTED. While
// a plan is applied, the first one starts nothing new and lets what is in flight
// finish, the second one cancels. After that signals are the system's again, so
// that a further one ends a process that hangs.
type interrupts struct {
	cancel context.CancelFunc
	notify func(string) // tells people

	now func() time.Time

	mu   sync.Mutex
	at   time.Time // when it was cancelled
	stop func()    // set while a plan is applied
	tell func()    // tells how far the apply is; nil when nothing is applied
}

// listen takes signals until over is closed.
func (i *interrupts) listen(signals <-chan os.Signal, end func(), over <-chan struct{}) {
	defer end()
	for {
		select {
		case <-over:
			return
		case signal := <-signals:
			if signal == syscall.SIGUSR1 {
				i.progress()
				continue
			}
		}
		if !i.soft() {
			i.hard()
			return
		}
		i.notify("Interrupted: starting nothing new, finishing what is in flight. Interrupt again to cancel.")
	}
}

// watched tells of the first write that failed: whoever read our output has
// gone, which is an interrupt and must not be a death in the middle of a write.
type watched struct {
	io.Writer
	once sync.Once
	lost func()
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		w.once.Do(w.lost)
	}
	return n, err
}

// lost is what a reader that has gone means.
func (i *interrupts) lost() {
	if !i.soft() {
		i.hard()
	}
}

// hard cancels, and notes when.
func (i *interrupts) hard() {
	i.mu.Lock()
	if i.at.IsZero() {
		i.at = i.now()
	}
	i.mu.Unlock()
	i.cancel()
}

// left is how much of a time that begins when the run is cancelled is left.
func (i *interrupts) left(of time.Duration) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.at.IsZero() {
		return of
	}
	return of - i.now().Sub(i.at)
}

// soft stops an apply, once.
func (i *interrupts) soft() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stop == nil {
		return false
	}
	i.stop()
	i.stop = nil
	return true
}

// progress answers SIGUSR1, which interrupts nothing.
func (i *interrupts) progress() {
	i.mu.Lock()
	tell := i.tell
	i.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// applying gives the channel that is closed by the first signal from now on, and
// the end of that meaning. tell answers SIGUSR1.
func (i *interrupts) applying(tell func()) (stop <-chan struct{}, end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	stopped := make(chan struct{})
	i.stop, i.tell = func() { close(stopped) }, tell
	return stopped, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.stop, i.tell = nil, nil
	}
}

// listening starts it for one command line. The context ends with the first
// signal that cancels.
func (a *app) listening(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, end := a.sys.signals()
	over, ended := make(chan struct{}), make(chan struct{})
	a.interrupts = &interrupts{cancel: cancel, now: a.sys.now, notify: func(text string) { fmt.Fprintln(a.sys.stderr, text) }}
	go func() {
		defer close(ended)
		a.interrupts.listen(signals, end, over)
	}()
	return ctx, func() {
		close(over)
		<-ended
		cancel()
	}
}
