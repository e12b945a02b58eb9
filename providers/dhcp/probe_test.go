package dhcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// verdicts writes findings as lines: what, then the fault's code or "ok".
func verdicts(findings []providers.Finding) string {
	var lines []string
	for _, f := range findings {
		what, _, _ := strings.Cut(strings.TrimPrefix(f.What, "DHCP: "), " ")
		verdict := "ok"
		if f.Fault != nil {
			verdict = string(f.Fault.Code)
		} else if strings.Contains(f.Note, "cannot be read") {
			verdict = "note"
		}
		lines = append(lines, what+" "+verdict)
	}
	return strings.Join(lines, ", ")
}

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		set  dhcptest.Behaviour
		want string
	}{
		"all is well":  {dhcptest.Behaviour{}, "login ok, write ok, service ok, reload ok, log ok, lock ok"},
		"no sudo rule": {dhcptest.Behaviour{NoSudo: true}, "login ok, write ok, service ok, reload DHCP_COMMAND_FAILED, log ok, lock ok"},
		"no journal":   {dhcptest.Behaviour{NoJournal: true}, "login ok, write ok, service ok, reload ok, log note, lock ok"},
		"no systemd":   {dhcptest.Behaviour{NoSystemd: true}, "login ok, write ok, service DHCP_COMMAND_FAILED, reload ok, log ok, lock ok"},
		"no login":     {dhcptest.Behaviour{NoLogin: true}, "login DHCP_LOGIN_REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcptest.Options{})
			b.srv.Set(func(now *dhcptest.Behaviour) { *now = c.set })
			if got := verdicts(b.p.Probe(context.Background(), nil)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if n := b.srv.Recorder().Count(func(r exchange.Record) bool { return r.Mutating }); n > 0 {
				t.Errorf("%d mutating requests", n)
			}
		})
	}
}
