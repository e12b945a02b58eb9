package dhcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
)

// link is one connection to the server.
type link struct {
	conn  net.Conn
	shell *ssh.Client
	files *sftp.Client // nil until the first transfer
	gone  atomic.Bool  // the transport has ended
}

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

// open connects and logs in, each under its own deadline.
func (p *Provider) open(ctx context.Context) (*link, *plan.Fault) {
	p.requests.Add(1)
	dialCtx, cancel := context.WithTimeout(ctx, p.settings.Timeouts.Connect)
	defer cancel()
	conn, err := p.options.Dial(dialCtx, "tcp", p.address)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ended(ctx, "connecting to "+p.address)
		}
		return nil, plan.NewFault(plan.CodeDHCPUnreachable, "no connection to the DHCP server %s", p.address).
			With("deadline", p.settings.Timeouts.Connect.String()).Because(err)
	}
	var hostKey *plan.Fault
	trusted := false
	config := &ssh.ClientConfig{
		User:              p.settings.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(p.signer)},
		HostKeyAlgorithms: p.hosts.algorithms(p.address),
		HostKeyCallback: func(address string, remote net.Addr, key ssh.PublicKey) error {
			if hostKey = p.hosts.verdict(address, remote, key); hostKey != nil {
				return hostKey
			}
			trusted = true
			return nil
		},
	}
	l := &link{conn: conn}
	f := within(ctx, conn, p.settings.Timeouts.Login, "the login at "+p.address, func() error {
		c, channels, requests, err := ssh.NewClientConn(conn, p.address, config)
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
			return plan.NewFault(plan.CodeDHCPLoginRefused, "%s refused the login of user %q with the key %s", p.address, p.settings.User, ssh.FingerprintSHA256(p.signer.PublicKey())).
				WithHint("Put the key's public half into ~%s/.ssh/authorized_keys on the server, or correct user and identity in the dhcp block.", p.settings.User).Because(err)
		}
		return plan.NewFault(plan.CodeDHCPUnreachable, "the SSH handshake with %s failed", p.address).Because(err)
	})
	if f != nil {
		l.cut()
		return nil, f
	}
	go func() { // ends with the connection, which Close ends
		_ = l.shell.Wait()
		l.gone.Store(true)
	}()
	return l, nil
}

// within runs do and closes the connection under it when the deadline passes
// or the context ends; a frozen server leaves no other way. classify turns
// do's own error into a fault.
func within(ctx context.Context, conn net.Conn, limit time.Duration, what string, do func() error, classify func(error) *plan.Fault) *plan.Fault {
	var late atomic.Bool
	timer := time.AfterFunc(limit, func() {
		late.Store(true)
		_ = conn.Close()
	})
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	err := do()
	switch {
	case err == nil:
		return nil
	case late.Load():
		return plan.NewFault(plan.CodeDHCPUnreachable, "%s did not end within %s", what, limit).With("deadline", limit.String()).
			WithHint("The server may be frozen or overloaded; whether the last request took effect is not known, the next run looks.")
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
	return within(ctx, l.conn, p.settings.Timeouts.Transfer, what, func() error {
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
