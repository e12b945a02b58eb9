package dhcp

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
)

// Limits of what a command may answer. A folder of 10,000 reservations answers
// about 3 MB.
const (
	maxStdout = 16 << 20
	maxStderr = 16 << 10
)

// part is one command of a script, with the name under which its answer is found.
type part struct {
	name    string
	command string
}

// section is the answer of one part.
type section struct {
	body   string
	status int
}

// answer is what a script answered.
type answer struct {
	sections map[string]section
	status   int
	stderr   string
}

// script wraps commands into one that any login shell can start: the shell
// only sees exec, /bin/sh and one quoted word. PATH is set because that of a
// non-interactive login may be anything; LC_ALL, so that messages are English.
func script(mark, dir string, parts []part) string {
	var b strings.Builder
	b.WriteString("LC_ALL=C; export LC_ALL; PATH=/usr/bin:/bin:/usr/sbin:/sbin; export PATH; ")
	if dir != "" {
		fmt.Fprintf(&b, "cd -- %s || exit %d; ", quote(dir), exitNoDirectory)
	}
	fmt.Fprintf(&b, "echo; echo @%s begin 0", mark)
	for _, p := range parts {
		fmt.Fprintf(&b, "; %s; echo @%s %s $?", p.command, mark, p.name)
	}
	return "exec /bin/sh -c " + quote(b.String())
}

// exitNoDirectory is the script's own status for a folder that cannot be entered.
const exitNoDirectory = 90

// quote makes one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// splitSections cuts a script's output at its marks. What a profile printed
// before the first mark is ignored. The order is the script's, so an answer
// that lacks a mark was cut.
func splitSections(stdout, mark string, parts []part) (map[string]section, error) {
	_, rest, found := strings.Cut(stdout, "\n@"+mark+" begin 0\n")
	if !found {
		return nil, errors.New("the answer has no beginning")
	}
	out := map[string]section{}
	for _, p := range parts {
		head := "@" + mark + " " + p.name + " "
		var body, tail string
		if strings.HasPrefix(rest, head) {
			tail = rest[len(head):]
		} else {
			body, tail, found = strings.Cut(rest, "\n"+head)
			if !found {
				return nil, fmt.Errorf("the answer ends before that of %q", p.name)
			}
			body += "\n"
		}
		text, after, found := strings.Cut(tail, "\n")
		status, err := strconv.Atoi(text)
		if !found || err != nil {
			return nil, fmt.Errorf("the answer of %q has no exit status", p.name)
		}
		out[p.name] = section{body: body, status: status}
		rest = after
	}
	return out, nil
}

// random gives n random bytes as hex.
func (p *Provider) random(n int) (string, *plan.Fault) {
	raw := make([]byte, n)
	if _, err := io.ReadFull(p.options.Random, raw); err != nil {
		return "", plan.NewFault(plan.CodeInternal, "no random bytes").Because(err)
	}
	return hex.EncodeToString(raw), nil
}

// run sends a script and waits for its answer under the command deadline. what
// names the purpose. An answer whose own status is not zero is a fault.
func (p *Provider) run(ctx context.Context, l *link, what, dir string, parts []part) (answer, *plan.Fault) {
	mark, f := p.random(8)
	if f != nil {
		return answer{}, f
	}
	p.requests.Add(1)
	text := script(mark, dir, parts)
	var commands []string
	for _, part := range parts {
		commands = append(commands, part.command)
	}
	byHand := strings.Join(commands, "; ")
	var stdout, stderr capped
	stdout.limit, stderr.limit = maxStdout, maxStderr
	status := 0
	refused := func(format string, args ...any) *plan.Fault {
		f := plan.NewFault(plan.CodeDHCPCommand, format, args...).With("server", p.address).With("command", byHand).With("stderr", stderr.text())
		return f
	}
	var running atomic.Pointer[ssh.Session]
	f = p.within(ctx, func() { p.giveUp(running.Load(), l) }, p.settings.Timeouts.Command, what+" on "+p.address, func() error {
		session, err := l.session()
		if err != nil {
			return err
		}
		running.Store(session)
		defer func() { _ = session.Close() }() // already ended by its exit status, or lost
		session.Stdout, session.Stderr = &stdout, &stderr
		err = session.Run(text)
		var exit *ssh.ExitError
		if errors.As(err, &exit) {
			status = exit.ExitStatus()
			return ctx.Err() // it may have ended by the signal of who gave it up
		}
		var missing *ssh.ExitMissingError
		if err != nil && !errors.As(err, &missing) && !transport(err) && alive(l) {
			return refused("%s refuses to run commands for user %q", p.address, p.settings.User).
				WithHint("The account needs a shell: one that is limited to SFTP cannot reload the service.").Because(err)
		}
		return err
	}, func(err error) *plan.Fault {
		var f *plan.Fault
		var rejected *ssh.OpenChannelError
		switch {
		case errors.As(err, &f):
			return f
		case errors.As(err, &rejected):
			return refused("%s opens no further session", p.address).
				WithHint("Commands left behind by lost connections may still hold its sessions (MaxSessions of sshd_config); look at the processes of user %s.", p.settings.User).Because(err)
		}
		if l.silent.Load() {
			err = fmt.Errorf("the server gave no sign of life for %s", p.options.Keepalive)
		}
		return plan.NewFault(plan.CodeDHCPUnreachable, "the connection to %s was lost during: %s", p.address, what).
			With("command", byHand).
			WithHint("Whether the command took effect is not known; run enroll again: it looks and continues.").Because(err)
	})
	switch {
	case f != nil:
		return answer{}, f
	case stdout.over:
		return answer{}, refused("%s on %s answered more than %d bytes", what, p.address, maxStdout)
	case status == exitNoDirectory:
		return answer{}, refused("the folder %s cannot be entered on %s", dir, p.address).
			WithHint("Create it for user %s (mode 0755) and name it in dnsmasq's configuration: dhcp-hostsdir=%s", p.settings.User, dir)
	case status != 0:
		return answer{}, refused("%s on %s ended with status %d", what, p.address, status).With("status", strconv.Itoa(status))
	}
	sections, err := splitSections(stdout.text(), mark, parts)
	if err != nil {
		return answer{}, refused("%s on %s gave an answer that makes no sense", what, p.address).With("stdout", excerpt(stdout.text())).Because(err)
	}
	return answer{sections: sections, status: status, stderr: stderr.text()}, nil
}

// farewell is how long a server has to take the signal of a command that is given up.
const farewell = 100 * time.Millisecond

// giveUp ends a command: neither the end of a session nor that of its connection
// ends what the server runs for it. A frozen server does not take the signal
// either, so the connection does not wait for it.
func (p *Provider) giveUp(session *ssh.Session, l *link) {
	if session == nil {
		l.cut()
		return
	}
	p.options.After(farewell, l.cut)
	go func() { _ = session.Signal(ssh.SIGTERM) }() // ends with the connection
}

// alive asks the server for a sign of life. "No such request" is one.
func alive(l *link) bool {
	_, _, err := l.shell.SendRequest("keepalive@openssh.com", true, nil)
	return err == nil
}

// capped keeps the first limit bytes and remembers that there were more.
type capped struct {
	limit int
	buf   bytes.Buffer
	over  bool
}

func (c *capped) Write(b []byte) (int, error) {
	keep := b
	if room := c.limit - c.buf.Len(); len(keep) > room {
		keep, c.over = keep[:room], true
	}
	c.buf.Write(keep)
	return len(b), nil
}

func (c *capped) text() string { return c.buf.String() }

// excerpt shortens foreign output for evidence.
func excerpt(s string) string {
	const most = 500
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
