package dhcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/plan"
)

// Kea takes commands as JSON, at its control agent over HTTP or at the daemon's
// own socket. Both are reached through the SSH connection (direct-tcpip and
// direct-streamlocal): no program is started on the server and nothing is quoted.

// maxControl is how much Kea may answer; a configuration with 10,000 reservations
// has about 5 MB.
const maxControl = 64 << 20

// keaAnswer is Kea's answer: result is 0 for good, 1 for failed, 2 for a command
// that this build does not know, 3 for nothing found.
type keaAnswer struct {
	Result    int             `json:"result"`
	Text      string          `json:"text"`
	Arguments json.RawMessage `json:"arguments"`
}

// keaService is the daemon's name for the control agent.
func keaService(v6 bool) string {
	if v6 {
		return "dhcp6"
	}
	return "dhcp4"
}

// control sends one command to Kea. A fault means that there is no answer;
// whether the command was good stands in the answer.
func (p *Provider) control(ctx context.Context, l *link, command string) (keaAnswer, *plan.Fault) {
	p.requests.Add(1)
	var answer keaAnswer
	at := p.settings.Control
	f := p.within(ctx, l.cut, p.settings.Timeouts.Command, command+" at "+at+" on "+p.address, func() error {
		network := "tcp"
		if path.IsAbs(at) {
			network = "unix"
		}
		conn, err := l.shell.Dial(network, at)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // the answer was read, or is lost
		var raw []byte
		if network == "unix" {
			raw, err = askSocket(conn, command)
		} else {
			raw, err = askAgent(conn, at, command, keaService(p.settings.IPv6))
		}
		if err != nil {
			return err
		}
		answer, err = parseAnswer(raw)
		return err
	}, func(err error) *plan.Fault {
		var refused *ssh.OpenChannelError
		switch {
		case errors.As(err, &refused):
			return plan.NewFault(plan.CodeDHCPCommand, "Kea's control channel %s cannot be reached through %s", at, p.address).
				WithHint("Start kea-ctrl-agent, correct control in the dhcp block, and let sshd forward to it (AllowTcpForwarding local, PermitOpen). Or set apply = \"restart\".").Because(err)
		case !alive(l): // also where what came before the end looked like nonsense
			return plan.NewFault(plan.CodeDHCPUnreachable, "the connection to %s was lost during: %s", p.address, command).
				WithHint("Whether the command took effect is not known; run enroll again: it looks and continues.").Because(err)
		}
		return plan.NewFault(plan.CodeDHCPCommand, "Kea's control channel %s on %s gave no answer that makes sense to %s", at, p.address, command).Because(err)
	})
	return answer, f
}

// askAgent speaks HTTP over a connection that is open already.
func askAgent(conn net.Conn, host, command, service string) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"command": command, "service": []string{service}})
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", host, len(body))
	if _, err := conn.Write(append([]byte(head), body...)); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxControl+1))
	if closeErr := res.Body.Close(); err == nil {
		err = closeErr
	}
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("HTTP status %d: %s", res.StatusCode, excerpt(string(raw)))
	}
	return raw, nil
}

// askSocket writes one command; the daemon answers and closes.
func askSocket(conn net.Conn, command string) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(body); err != nil {
		return nil, err
	}
	var raw json.RawMessage
	err = json.NewDecoder(io.LimitReader(conn, maxControl+1)).Decode(&raw)
	return raw, err
}

// parseAnswer reads the daemon's object, or the agent's list of one.
func parseAnswer(raw []byte) (keaAnswer, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > maxControl {
		return keaAnswer{}, fmt.Errorf("an answer of more than %d bytes", maxControl)
	}
	var one struct {
		keaAnswer
		Result *int `json:"result"`
	}
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return keaAnswer{}, err
		}
		if len(list) != 1 {
			return keaAnswer{}, fmt.Errorf("%d answers to one command", len(list))
		}
		raw = list[0]
	}
	if err := json.Unmarshal(raw, &one); err != nil {
		return keaAnswer{}, err
	}
	if one.Result == nil {
		return keaAnswer{}, fmt.Errorf("an answer without a result: %s", excerpt(string(raw)))
	}
	one.keaAnswer.Result = *one.Result
	return one.keaAnswer, nil
}

// keaWord is what Kea says about itself.
type keaWord struct {
	reload float64         // how many seconds ago it last loaded its configuration well
	why    string          // what is wrong by its own word, "" when nothing is
	config json.RawMessage // its running configuration
	fault  *plan.Fault
}

// keaAnswers asks Kea how it is and for its configuration, both at once.
func (p *Provider) keaAnswers(ctx context.Context, l *link) keaWord {
	var word keaWord
	var config keaAnswer
	var f *plan.Fault
	_ = together(func() error {
		word = p.keaStatus(ctx, l)
		return nil
	}, func() error {
		config, f = p.control(ctx, l, "config-get")
		return nil
	})
	switch {
	case word.fault != nil || word.why != "":
	case f != nil:
		word.fault = f
	case config.Result != 0:
		word.why = fmt.Sprintf("config-get gives result %d: %s", config.Result, excerpt(config.Text))
	}
	word.config = config.Arguments
	return word
}

// keaStatus asks Kea whether it is ready, and when it last loaded its
// configuration.
func (p *Provider) keaStatus(ctx context.Context, l *link) keaWord {
	status, f := p.control(ctx, l, "status-get")
	if f != nil {
		return keaWord{fault: f}
	}
	var told struct {
		Reload  float64 `json:"reload"`
		Sockets struct {
			Status string   `json:"status"`
			Errors []string `json:"errors"`
		} `json:"sockets"`
	}
	switch {
	case status.Result != 0 || json.Unmarshal(status.Arguments, &told) != nil:
		return keaWord{why: fmt.Sprintf("status-get gives result %d: %s", status.Result, excerpt(status.Text))}
	case told.Sockets.Status != "" && told.Sockets.Status != "ready":
		return keaWord{why: fmt.Sprintf("its sockets are %s: %v", told.Sockets.Status, told.Sockets.Errors)}
	}
	return keaWord{reload: told.Reload}
}

// keaTick is how much older Kea may call its last reload than it is: it counts
// from whole seconds to whole seconds.
const keaTick = 1.0

// keaComplaint judges what Kea says about itself: whether it is ready, whether it
// took our reload, whether it holds the reservations, and those no more whose files
// were removed. "" when all is well.
//
// The age of the reload was asked for before the server's clock was looked at, see
// lookAgain: however long any of the two took, a reload that came after ours is
// never older than what has passed since ours.
func (p *Provider) keaComplaint(h health, ours map[string]Entry) (string, *plan.Fault) {
	switch {
	case h.kea.fault != nil:
		return "", h.kea.fault
	case h.kea.why != "":
		return h.kea.why, nil
	case p.settings.Apply == applyReload && h.kea.reload > h.elapsed()+keaTick:
		return fmt.Sprintf("its last good reload is %.0f s old, ours %.0f s", h.kea.reload, h.elapsed()), nil
	}
	if why := keaHolds(h.kea.config, ours); why != "" {
		return why, nil
	}
	return keaStill(h.kea.config, h.removed()), nil
}

// keaStill looks for reservations of enroll whose files were taken away.
func keaStill(config []byte, removed []string) string {
	var doc any
	if len(removed) == 0 || json.Unmarshal(config, &doc) != nil { // keaHolds has complained
		return ""
	}
	marked := map[string]bool{}
	names(doc, marked)
	var still []string
	for _, file := range removed {
		if marked[strings.TrimSuffix(file, path.Ext(file))] {
			still = append(still, file)
		}
	}
	if len(still) == 0 {
		return ""
	}
	return "its running configuration still holds " + least(still) + ", which was removed"
}

// names notes the names of all reservations with enroll's mark.
func names(doc any, marked map[string]bool) {
	switch v := doc.(type) {
	case []any:
		for _, x := range v {
			names(x, marked)
		}
	case map[string]any:
		name, _ := v["hostname"].(string)
		if mark, _ := v["user-context"].(map[string]any); name != "" && mark["managed-by"] == "enroll" {
			marked[name] = true
		}
		for _, x := range v {
			names(x, marked)
		}
	}
}

// keaHolds looks for the reservations in a configuration that Kea tells.
func keaHolds(config []byte, ours map[string]Entry) string {
	var doc any
	if err := json.Unmarshal(config, &doc); err != nil {
		return "config-get tells no configuration"
	}
	held := map[string]bool{}
	pairs(doc, held)
	var missing []string
	for at, e := range ours {
		if !held[e.MAC.String()+" "+e.Address.String()] {
			missing = append(missing, at)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "its running configuration does not hold " + least(missing)
}

// pairs notes every MAC with each of its addresses.
func pairs(doc any, held map[string]bool) {
	switch v := doc.(type) {
	case []any:
		for _, x := range v {
			pairs(x, held)
		}
	case map[string]any:
		var one survey
		shallow := map[string]any{"hw-address": v["hw-address"], "ip-address": v["ip-address"], "ip-addresses": v["ip-addresses"]}
		one.walkKea(shallow)
		mac := ""
		for _, claim := range one.claims {
			kind, value := cutClaim(claim)
			switch {
			case kind == "MAC":
				mac = value
			case mac != "":
				held[mac+" "+value] = true
			}
		}
		for _, x := range v {
			pairs(x, held)
		}
	}
}
