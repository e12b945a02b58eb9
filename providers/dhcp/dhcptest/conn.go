package dhcptest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// conn is one TCP connection to the machine's sshd.
type conn struct {
	s     *Server
	tcp   *net.TCPConn
	ended chan struct{} // closed when the SSH connection is over
	once  sync.Once
}

// reset cuts the connection without a goodbye; what is in flight is lost.
func (c *conn) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}

func (c *conn) end() { c.once.Do(func() { close(c.ended) }) }

func (s *Server) accept() {
	defer s.wait.Done()
	for {
		tcp, err := s.listener.Accept()
		if err != nil {
			return
		}
		c := &conn{s: s, tcp: tcp.(*net.TCPConn), ended: make(chan struct{})}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wait.Add(1)
		go func() {
			defer s.wait.Done()
			c.serve()
			c.end()
			_ = c.tcp.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
	}
}

// serve answers one connection. The login is its first exchange.
func (c *conn) serve() {
	rec, fault := c.s.recorder.Begin(exchange.Record{System: "dhcp", Method: "ssh.login", Path: c.s.options.User})
	c.s.mu.Lock()
	config := *c.s.config
	c.s.mu.Unlock()
	after := func() {}
	if fault != nil {
		switch fault.Kind {
		case exchange.Delay, exchange.Late:
			c.pause(fault.Delay)
		case exchange.Stall:
			c.s.recorder.End(rec)
			_, _ = io.Copy(io.Discard, c.tcp) // until the client gives up
			return
		case exchange.Status:
			config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, errRefused }
		case exchange.Garbage:
			_, _ = c.tcp.Write([]byte("<html><body>It works!</body></html>\r\n"))
			c.s.recorder.End(rec)
			return
		case exchange.HalfBody:
			_, _ = c.tcp.Write([]byte("SSH-2.0-Open"))
			c.s.recorder.End(rec)
			return
		case exchange.LostReply:
			after = c.reset
		case exchange.Reset:
			c.s.recorder.End(rec)
			c.reset()
			return
		}
	}
	server, channels, requests, err := ssh.NewServerConn(c.tcp, &config)
	if err != nil {
		c.s.recorder.End(rec)
		return
	}
	rec.Status = 200
	c.s.recorder.End(rec)
	after()
	var sessions sync.WaitGroup
	go func() { // ends with the connection
		_ = server.Wait()
		c.end()
	}()
	go c.keepalives(requests)
	open := make(chan struct{}, maxSessions)
	for incoming := range channels {
		if incoming.ChannelType() == "direct-tcpip" {
			sessions.Go(func() { c.forward(incoming) })
			continue
		}
		if incoming.ChannelType() != "session" {
			_ = incoming.Reject(ssh.UnknownChannelType, "unsupported channel type")
			continue
		}
		select {
		case open <- struct{}{}:
		default:
			_ = incoming.Reject(ssh.ConnectionFailed, "open failed")
			continue
		}
		channel, reqs, err := incoming.Accept()
		if err != nil {
			break
		}
		sessions.Add(1)
		go func() {
			defer sessions.Done()
			c.session(channel, reqs)
			<-open
		}()
	}
	c.end()
	sessions.Wait()
}

// maxSessions is sshd's default; SFTP counts.
const maxSessions = 10

func (c *conn) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ended:
	case <-c.s.closed:
	}
}

// session serves one channel: one command, or SFTP.
func (c *conn) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	for req := range requests {
		var argument string
		if len(req.Payload) >= 4 && int(binary.BigEndian.Uint32(req.Payload)) == len(req.Payload)-4 {
			argument = string(req.Payload[4:])
		}
		b := c.s.read()
		switch {
		case req.Type == "exec" && !b.NoShell:
			_ = req.Reply(true, nil)
			c.exec(channel, argument, c.signals(requests))
			return
		case req.Type == "subsystem" && argument == "sftp" && !b.NoSFTP:
			_ = req.Reply(true, nil)
			go ssh.DiscardRequests(requests)
			newSFTP(c, channel).serve()
			return
		default: // env is refused too: there is no AcceptEnv
			_ = req.Reply(false, nil)
		}
	}
}

// signals tells of a signal to the command that runs in a session.
func (c *conn) signals(requests <-chan *ssh.Request) <-chan struct{} {
	signalled := make(chan struct{})
	go func() { // ends with the channel
		first := true
		for req := range requests {
			_ = req.Reply(false, nil)
			if req.Type == "signal" && first {
				first = false
				rec, _ := c.s.recorder.Begin(exchange.Record{System: "dhcp", Method: "ssh.signal"})
				c.s.recorder.End(rec)
				close(signalled)
			}
		}
	}()
	return signalled
}

// keepalives answers requests about the whole connection: sshd knows none of
// them, and says so. Who waits for a sign of life is content with that.
func (c *conn) keepalives(requests <-chan *ssh.Request) {
	for req := range requests {
		if !c.s.read().Frozen {
			_ = req.Reply(false, nil)
		}
	}
}

// read copies the behaviour.
func (s *Server) read() Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behaviour
}

// exec runs one command and sends its outcome, or what a fault leaves of it.
func (c *conn) exec(channel ssh.Channel, command string, signalled <-chan struct{}) {
	rec, fault := c.s.recorder.Begin(exchange.Record{System: "dhcp", Method: "ssh.exec", Path: command, Mutating: mutates(command)})
	var kind exchange.Kind
	if fault != nil {
		kind = fault.Kind
	}
	var r ran
	switch kind {
	case exchange.Stall:
		c.s.recorder.End(rec)
		select { // the end of its channel does not end a command
		case <-c.ended:
		case <-signalled:
			_, _ = channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal string
				Core   bool
				Text   string
				Lang   string
			}{Signal: "TERM"}))
		}
		return
	case exchange.Reset:
		c.s.recorder.End(rec)
		c.reset()
		return
	case exchange.Status:
		r = ran{stderr: fault.Body, status: fault.Status}
	case exchange.Garbage:
		r = ran{stdout: "<html><body>It works!</body></html>\n"}
	default:
		if kind == exchange.Delay {
			c.pause(fault.Delay)
		}
		c.s.locked(func() { r = c.s.login(command) })
	}
	if r.hangs {
		rec.Fault = "hangs"
		c.s.recorder.End(rec)
		<-c.ended
		return
	}
	rec.Status = r.status
	if kind == exchange.HalfBody {
		r.stdout = r.stdout[:len(r.stdout)/2]
	}
	if kind != exchange.LostReply {
		_, _ = io.WriteString(channel, r.stdout)
		_, _ = io.WriteString(channel.Stderr(), r.stderr)
	}
	if kind == exchange.LostReply || kind == exchange.HalfBody {
		rec.Status = 0
		c.s.recorder.End(rec)
		c.reset()
		return
	}
	c.s.recorder.End(rec)
	status := make([]byte, 4)
	binary.BigEndian.PutUint32(status, uint32(r.status&0xff))
	_, _ = channel.SendRequest("exit-status", false, status)
}
