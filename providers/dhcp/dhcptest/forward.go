package dhcptest

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// forward serves one direct-tcpip channel: sshd connects to where the client
// wants to go. Unlike sessions these channels are not limited in number.
func (c *conn) forward(incoming ssh.NewChannel) {
	var to struct {
		Host   string
		Port   uint32
		Origin string
		From   uint32
	}
	if err := ssh.Unmarshal(incoming.ExtraData(), &to); err != nil {
		_ = incoming.Reject(ssh.ConnectionFailed, "bad request")
		return
	}
	address := net.JoinHostPort(to.Host, strconv.FormatUint(uint64(to.Port), 10))
	if b := c.s.read(); c.s.options.Service == serviceKea && address == controlAddress && !b.NoForwarding {
		c.control(incoming) // the machine's own, not this process's
		return
	}
	rec, _ := c.s.recorder.Begin(exchange.Record{System: "dhcp", Method: "ssh.forward", Path: address})
	defer c.s.recorder.End(rec)
	if c.s.read().NoForwarding {
		_ = incoming.Reject(ssh.Prohibited, "open failed")
		return
	}
	target, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		_ = incoming.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	channel, requests, err := incoming.Accept()
	if err != nil {
		_ = target.Close()
		return
	}
	go ssh.DiscardRequests(requests) // ends with the channel
	var both sync.WaitGroup
	pipe := func(to io.WriteCloser, from io.Reader) {
		_, _ = io.Copy(to, from)
		_ = to.Close() // the other direction ends too
	}
	both.Go(func() { pipe(channel, target) })
	both.Go(func() { pipe(target, channel) })
	both.Wait()
}
