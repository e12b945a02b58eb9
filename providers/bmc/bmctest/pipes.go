package bmctest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	opened chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{opened: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.opened:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listening.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is that of a pipe.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "tcp" }
func (pipeAddr) String() string  { return "127.0.0.1:0" }

// pipe gives its ends an address, as sessions tell where they come from.
type pipe struct{ net.Conn }

func (pipe) RemoteAddr() net.Addr { return pipeAddr{} }

// Dial connects to the BMC of a fleet of pipes at an address of the form
// 127.0.0.1:PORT; one that is not reachable refuses.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	listening := s.pipesAt(address)
	if listening == nil {
		return nil, refused
	}
	here, there := net.Pipe()
	select {
	case listening.opened <- pipe{there}:
		return here, nil
	case <-listening.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
}

func (s *Server) pipesAt(address string) *pipes {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bmcs {
		if b.URL == "https://"+address {
			b.listening.Lock()
			defer b.listening.Unlock()
			return b.pipes
		}
	}
	return nil
}
