package dhcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
)

// link is one connection to the server, through a jump host where the site has
// one.
type link struct {
	conn   net.Conn      // the TCP connection, on which everything else travels
	shell  *ssh.Client   // of the server; before its login, of the jump host
	files  *sftp.Client  // nil until the first transfer
	gone   atomic.Bool   // the transport has ended
	over   chan struct{} // closed then
	silent atomic.Bool   // it was ended because the server gave no sign of life
	next   chan opened   // the session of the next command, opened in advance; nil while there is none
}

// opened is a session, or why there is none.
type opened struct {
	session *ssh.Session
	err     error
}

// session gives a session for a command, and has the next one opened while the
// command runs: that saves a round trip. A server that has none to spare says so to
// the command that needs it.
func (l *link) session() (*ssh.Session, error) {
	ready := opened{err: errNotOpened}
	if l.next != nil {
		ready = <-l.next // comes with the connection's end at the latest
	}
	if ready.err != nil {
		ready.session, ready.err = l.shell.NewSession()
	}
	if ready.err != nil {
		return nil, ready.err
	}
	next := make(chan opened, 1)
	go func() {
		session, err := l.shell.NewSession()
		next <- opened{session, err}
	}()
	l.next = next
	return ready.session, nil
}

var errNotOpened = errors.New("no session was opened in advance")

// cut ends the connection at the socket: everything that waits on it returns,
// a frozen server or not.
func (l *link) cut() {
	_ = l.conn.Close() // it is given up either way
}

// exchange takes the turn, sees to a connection and lets do use it. A fault
// that leaves the connection in doubt gives it up; the next exchange opens a new one.
func (p *Provider) exchange(ctx context.Context, do func(l *link) *plan.Fault) *plan.Fault {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return ended(ctx, "waiting for the turn on the connection to "+p.address)
	}
	if p.link != nil && p.link.gone.Load() {
		p.drop()
	}
	if p.link == nil {
		l, f := p.open(ctx)
		if f != nil {
			return f
		}
		p.link = l
	}
	f := do(p.link)
	if f != nil && f.Class() == plan.ClassUnreachable || ctx.Err() != nil || p.link.gone.Load() {
		p.drop()
	}
	return f
}

// drop gives the connection up. The socket goes first, so that nothing below
// waits for an answer.
func (p *Provider) drop() {
	if p.link == nil {
		return
	}
	p.link.cut()
	if p.link.files != nil {
		_ = p.link.files.Close() // its transport is already gone
	}
	_ = p.link.shell.Close()
	p.link = nil
}

// hop is a host to log in at.
type hop struct {
	address string // host:port
	user    string
}

// hops are the jump host, where there is one, and the server.
func hops(s plan.DHCPSettings) ([]hop, *plan.Fault) {
	server := hop{net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), s.User}
	if s.ProxyJump == "" {
		return []hop{server}, nil
	}
	jump := hop{user: s.User}
	user, host, named := strings.Cut(s.ProxyJump, "@")
	if named {
		jump.user = user
	} else {
		host = s.ProxyJump
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), strconv.Itoa(defaultPort)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || !safeHost.MatchString(name) || name[0] == '-' || !safeUser.MatchString(jump.user) {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "dhcp proxy_jump %q: want [USER@]HOST[:PORT]", s.ProxyJump)
	}
	jump.address = net.JoinHostPort(name, port)
	return []hop{jump, server}, nil
}

// open connects and logs in, hop by hop, each step under its own deadline.
func (p *Provider) open(ctx context.Context) (*link, *plan.Fault) {
	if p.forgotten {
		return nil, plan.NewFault(plan.CodeInternal, "the DHCP provider was closed")
	}
	l := &link{over: make(chan struct{})}
	for _, h := range p.hops {
		p.requests.Add(1)
		tunnel, f := p.reach(ctx, l, h)
		if f == nil {
			f = p.login(ctx, l, tunnel, h)
		}
		if f != nil {
			if l.conn != nil {
				l.cut()
			}
			return nil, f
		}
	}
	go func() { // ends with the connection, which Close ends
		_ = l.shell.Wait()
		l.gone.Store(true)
		close(l.over)
	}()
	go p.keepalive(l)
	return l, nil
}

// reach opens the way to a hop: a TCP connection, or a channel through the jump
// host.
func (p *Provider) reach(ctx context.Context, l *link, h hop) (net.Conn, *plan.Fault) {
	limit := p.settings.Timeouts.Connect
	if l.conn == nil {
		dialCtx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		conn, err := p.options.Dial(dialCtx, "tcp", h.address)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ended(ctx, "connecting to "+h.address)
		case err != nil:
			return nil, plan.NewFault(plan.CodeDHCPUnreachable, "no connection to %s", p.title(h)).
				With("deadline", limit.String()).Because(err)
		}
		l.conn = conn
		return conn, nil
	}
	var tunnel net.Conn
	f := p.within(ctx, l.cut, limit, "connecting to "+h.address+" through "+p.hops[0].address, func() (err error) {
		tunnel, err = l.shell.Dial("tcp", h.address)
		return err
	}, func(err error) *plan.Fault {
		f := plan.NewFault(plan.CodeDHCPUnreachable, "%s does not lead to the DHCP server %s", p.title(p.hops[0]), h.address).Because(err)
		if rejected := new(ssh.OpenChannelError); errors.As(err, &rejected) && rejected.Reason == ssh.Prohibited {
			return f.WithHint("Allow it there: AllowTcpForwarding of its sshd_config, and permitopen of the key in authorized_keys.")
		}
		return f
	})
	return tunnel, f
}

// title names a hop in a fault.
func (p *Provider) title(h hop) string {
	if h == p.hops[len(p.hops)-1] {
		return "the DHCP server " + h.address
	}
	return "the jump host " + h.address
}

// login verifies the host key of a hop and logs in there.
func (p *Provider) login(ctx context.Context, l *link, tunnel net.Conn, h hop) *plan.Fault {
	var hostKey *plan.Fault
	trusted := false
	limit := p.settings.Timeouts.Login
	agentCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	keys, done, f := p.signers(agentCtx)
	if f != nil {
		return f
	}
	defer done()
	config := &ssh.ClientConfig{
		User:              h.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(keys...)},
		HostKeyAlgorithms: p.hosts.algorithms(h.address),
		HostKeyCallback: func(address string, remote net.Addr, key ssh.PublicKey) error {
			if hostKey = p.hosts.verdict(address, remote, key); hostKey != nil {
				return hostKey
			}
			trusted = true
			return nil
		},
	}
	return p.within(ctx, l.cut, limit, "the login at "+h.address, func() error {
		c, channels, requests, err := ssh.NewClientConn(tunnel, h.address, config)
		if err != nil {
			return err
		}
		l.shell = ssh.NewClient(c, channels, requests)
		return nil
	}, func(err error) *plan.Fault {
		switch {
		case hostKey != nil:
			return hostKey
		case trusted && !transport(err):
			return plan.NewFault(plan.CodeDHCPLoginRefused, "%s refused the login of user %q with the key %s", h.address, h.user, fingerprints(keys)).
				WithHint("Put the key's public half into ~%s/.ssh/authorized_keys on the server, or correct user and identity in the dhcp block.", h.user).Because(err)
		}
		return plan.NewFault(plan.CodeDHCPUnreachable, "the SSH handshake with %s failed", h.address).Because(err)
	})
}

// keepalive asks the server for a sign of life again and again, so that nothing
// on the way forgets an idle connection, and cuts one that does not answer: a
// frozen server answers nothing, and says nothing either.
func (p *Provider) keepalive(l *link) {
	for {
		due := make(chan struct{})
		stop := p.options.After(p.options.Keepalive, func() { close(due) })
		select {
		case <-l.over:
			stop()
			return
		case <-due:
		}
		stop = p.options.After(p.options.Keepalive, func() {
			l.silent.Store(true)
			l.cut()
		})
		answered := alive(l)
		stop()
		if !answered {
			return
		}
	}
}

// within runs do and cuts the connection under it when the deadline passes
// or the context ends; a frozen server leaves no other way. classify turns
// do's own error into a fault.
func (p *Provider) within(ctx context.Context, cut func(), limit time.Duration, what string, do func() error, classify func(error) *plan.Fault) *plan.Fault {
	var late atomic.Bool
	inTime := p.options.After(limit, func() {
		late.Store(true)
		cut()
	})
	defer inTime()
	stop := context.AfterFunc(ctx, cut)
	defer stop()
	err := do()
	switch {
	case late.Load(): // also where the command then ended by its signal
		return plan.NewFault(plan.CodeDHCPUnreachable, "%s did not end within %s", what, limit).With("deadline", limit.String()).
			WithHint("The server may be frozen or overloaded; whether the last request took effect is not known, the next run looks.")
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx, what)
	}
	return classify(err)
}

// ended is the fault of work that the caller gave up.
func ended(ctx context.Context, what string) *plan.Fault {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return plan.NewFault(plan.CodeTimeout, "the budget ended during %s", what).Because(ctx.Err())
	}
	return plan.NewFault(plan.CodeInterrupted, "interrupted during %s", what).Because(ctx.Err())
}

// transport reports whether an error is the connection's, not the server's word.
func transport(err error) bool {
	var netErr net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.As(err, &netErr)
}

// transfer runs SFTP requests under the transfer deadline. what names the file
// and the purpose.
func (p *Provider) transfer(ctx context.Context, l *link, what string, do func(files *sftp.Client) error) *plan.Fault {
	p.requests.Add(1)
	return p.within(ctx, l.cut, p.settings.Timeouts.Transfer, what, func() error {
		if l.files == nil {
			files, err := sftp.NewClient(l.shell)
			if err != nil {
				return fmt.Errorf("start sftp: %w", err)
			}
			l.files = files
		}
		return do(l.files)
	}, func(err error) *plan.Fault {
		var f *plan.Fault
		if errors.As(err, &f) {
			return f
		}
		return plan.NewFault(plan.CodeDHCPTransfer, "%s on %s failed", what, p.address).Because(err)
	})
}
