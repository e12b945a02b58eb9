package dhcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/providers/exchange"
)

// controlAddress is where Kea's control agent listens, seen from the machine.
const controlAddress = "127.0.0.1:8000"

// control is a connection to Kea's control agent.
func (c *conn) control(incoming ssh.NewChannel) {
	if c.s.read().NoControl {
		_ = incoming.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	channel, requests, err := incoming.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	defer func() { _ = channel.Close() }()
	req, err := http.ReadRequest(bufio.NewReader(channel))
	if err != nil {
		return
	}
	var asked struct {
		Command string   `json:"command"`
		Service []string `json:"service"`
	}
	if err := json.NewDecoder(io.LimitReader(req.Body, 1<<20)).Decode(&asked); err != nil {
		_, _ = io.WriteString(channel, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		return
	}
	c.controlled(channel, asked.Command, asked.Service)
}

// controlled answers one command, or with what a fault leaves of the answer.
func (c *conn) controlled(channel ssh.Channel, command string, services []string) {
	rec, fault := c.s.recorder.Begin(exchange.Record{System: "dhcp", Method: "kea.control", Path: command, Mutating: command == "config-reload"})
	var kind exchange.Kind
	if fault != nil {
		kind = fault.Kind
	}
	status, body := http.StatusOK, []byte("<html><body>It works!</body></html>")
	switch kind {
	case exchange.Stall:
		c.s.recorder.End(rec)
		<-c.ended
		return
	case exchange.Reset:
		c.s.recorder.End(rec)
		c.reset()
		return
	case exchange.Status:
		status = http.StatusInternalServerError
	case exchange.Garbage:
	default:
		if kind == exchange.Delay {
			c.pause(fault.Delay)
		}
		var answer any
		c.s.locked(func() { answer = c.s.keaCommand(command, services) })
		var err error
		if body, err = json.Marshal([]any{answer}); err != nil {
			status = http.StatusInternalServerError
		}
	}
	reply := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(body), body)
	rec.Status = status
	if kind == exchange.HalfBody {
		reply = reply[:len(reply)/2]
	}
	if kind != exchange.LostReply {
		_, _ = io.WriteString(channel, reply)
	}
	if kind == exchange.LostReply || kind == exchange.HalfBody {
		rec.Status = 0
		c.s.recorder.End(rec)
		c.reset()
		return
	}
	c.s.recorder.End(rec)
}
