package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/enroll-dev/enroll/plan/apply"
)

// sys is everything of the operating system that commands use, so that tests
// can put something else in its place.
type sys struct {
	stdin     io.Reader
	stdout    io.Writer
	stderr    io.Writer
	lookupEnv func(string) (string, bool)
	environ   func() []string
	now       func() time.Time
	clock     apply.Clock // of an apply; it goes with now
	// signals gives the channel on which interrupts arrive, and its end.
	signals func() (<-chan os.Signal, func())
	// terminal says whether a person looks at stdout and can answer on stdin.
	terminal bool
	screen   int // the file descriptor of that terminal
	// width is that of the terminal on stdout in characters, 0 when it is none.
	width int
	// atOnce is how many requests each system gets at the same time, 0 for as many as
	// the system likes.
	atOnce int
	// fleet is told how many devices the run is about; nil: nobody wants to know.
	fleet func(devices int)
}

// system is the real one.
func system() *sys {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width = 0 // a file or a pipe
	}
	return &sys{
		width: width,
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		lookupEnv: os.LookupEnv, environ: os.Environ, now: time.Now, clock: apply.RealClock{}, //nolint:forbidigo // the machine's clock enters here
		signals: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 4)
			signal.Ignore(syscall.SIGPIPE) // a reader that has gone is seen at the write
			signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1)
			return c, func() { signal.Stop(c) }
		},
		terminal: term.IsTerminal(int(os.Stdout.Fd())) && term.IsTerminal(int(os.Stdin.Fd())),
		screen:   int(os.Stdout.Fd()),
	}
}

// color says whether stdout takes colour: a terminal, not told otherwise.
func (s *sys) color() bool {
	if no, set := s.lookupEnv("NO_COLOR"); set && no != "" {
		return false
	}
	t, _ := s.lookupEnv("TERM")
	return s.terminal && t != "dumb"
}
