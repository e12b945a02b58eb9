package dhcp_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

func TestDiscovery(t *testing.T) {
	b := newBench(t, dhcptest.Options{}, device(1))
	if f := b.converge(b.p); f != nil {
		t.Fatal(f)
	}
	before := len(b.srv.Recorder().Records())
	ask := func(mac plan.MAC) *dhcp.Offer {
		t.Helper()
		got, f := dhcp.Discovery{MAC: mac, Server: b.srv.Wire, Relay: anyPort, Timeout: 600 * time.Millisecond}.Ask(context.Background())
		if f != nil {
			t.Fatal(f)
		}
		return got
	}
	_, want, f := dhcp.Expected(b.scope.Targets[0])
	if f != nil {
		t.Fatal(f)
	}
	want.Server = b.srv.Wire.Addr()
	if diff := cmp.Diff(&want, ask(mac(1)), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	if got := ask(mac(2)); got != nil {
		t.Errorf("a MAC without a reservation: %+v", got)
	}
	b.srv.Kill()
	if got := ask(mac(1)); got != nil {
		t.Errorf("a server that does not run: %+v", got)
	}
	asked := 0
	for _, r := range b.srv.Recorder().Records()[before:] {
		if r.Method != "wire.DISCOVER" || r.Mutating {
			t.Errorf("%s %s was sent", r.Method, r.Path)
		}
		asked++
	}
	if asked != 1+3+3 {
		t.Errorf("%d questions, want 1 that was answered and 3 for each that was not", asked)
	}
}

// TestDiscoveryIgnores what is no answer: anybody can send to the socket.
func TestDiscoveryIgnores(t *testing.T) {
	for name, answer := range map[string]func(question []byte) []byte{
		"its own question":     func(q []byte) []byte { return q },
		"text":                 func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") },
		"another transaction":  func(q []byte) []byte { a := offerTo(q); a[4] ^= 0xff; return a },
		"another MAC":          func(q []byte) []byte { a := offerTo(q); a[28+5] ^= 0xff; return a },
		"cut":                  func(q []byte) []byte { return offerTo(q)[:100] },
		"an ACK":               func(q []byte) []byte { a := offerTo(q); a[242] = 5; return a },
		"no message type":      func(q []byte) []byte { a := offerTo(q); a[240] = 255; return a },
		"a reply to nobody":    func(q []byte) []byte { a := offerTo(q); a[2] = 0; return a },
		"an empty datagram":    func([]byte) []byte { return nil },
		"zeroes":               func([]byte) []byte { return make([]byte, 300) },
		"options without end":  func(q []byte) []byte { return append(offerTo(q)[:243], 12, 250, 'x') },
		"an option cut at len": func(q []byte) []byte { return append(offerTo(q)[:243], 12) },
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(anyPort))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			go func() {
				packet := make([]byte, 2000)
				for {
					n, from, err := conn.ReadFromUDPAddrPort(packet)
					if err != nil {
						return
					}
					_, _ = conn.WriteToUDPAddrPort(answer(packet[:n]), from)
				}
			}()
			got, f := dhcp.Discovery{MAC: mac(1), Server: conn.LocalAddr().(*net.UDPAddr).AddrPort(), Relay: anyPort, Timeout: 60 * time.Millisecond}.Ask(context.Background())
			if f != nil || got != nil {
				t.Errorf("%+v, %v", got, f)
			}
		})
	}
}

// offerTo makes the bytes of an offer of 192.0.2.11, by hand: the library that
// reads them did not write them.
func offerTo(question []byte) []byte {
	a := make([]byte, 240, 300)
	copy(a, question[:240])
	a[0] = 2
	copy(a[16:], []byte{192, 0, 2, 11})
	return append(a, 53, 1, 2, 255)
}

func TestDiscoveryRefused(t *testing.T) {
	server := netip.MustParseAddrPort("127.0.0.1:67")
	taken, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(anyPort))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for name, c := range map[string]struct {
		relay, server netip.AddrPort
		words         string
	}{
		"an address of another machine": {netip.MustParseAddrPort("192.0.2.99:0"), server, "ip -4 address"},
		"a port that is taken":          {taken.LocalAddr().(*net.UDPAddr).AddrPort(), server, "another machine"},
		"no address":                    {netip.MustParseAddrPort("0.0.0.0:0"), server, "IPv4 address"},
		"IPv6":                          {netip.MustParseAddrPort("[::1]:0"), server, "IPv4 address"},
		"a server with IPv6 only":       {anyPort, netip.MustParseAddrPort("[::1]:67"), "IPv4 address"},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := dhcp.Discovery{MAC: mac(1), Server: c.server, Relay: c.relay, Timeout: 50 * time.Millisecond}.Ask(context.Background())
			if f == nil || f.Code != plan.CodeDHCPRelay || !strings.Contains(f.Error()+f.WayOut(), c.words) {
				t.Errorf("%v, want %s with %q", f, plan.CodeDHCPRelay, c.words)
			}
		})
	}
	if os.Geteuid() != 0 {
		_, f := dhcp.Discovery{MAC: mac(1), Server: server, Relay: netip.MustParseAddrPort("127.0.0.1:67")}.Ask(context.Background())
		if f == nil || !strings.Contains(f.WayOut(), "root") {
			t.Errorf("without the right to port 67: %v", f)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, f := dhcp.Discovery{MAC: mac(1), Server: taken.LocalAddr().(*net.UDPAddr).AddrPort(), Relay: anyPort}.Ask(ctx)
	if f == nil || f.Code != plan.CodeInterrupted {
		t.Errorf("an interrupted question: %v", f)
	}
}
