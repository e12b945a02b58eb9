package dhcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/enroll-dev/enroll/plan"
)

// Discovery is a DHCPDISCOVER in the name of a host, as a relay agent on its
// network would forward it. It reserves nothing: a DHCPREQUEST is never sent, and
// servers give addresses of reservations without a lease.
type Discovery struct {
	MAC    plan.MAC
	Server netip.AddrPort // of the DHCP server, port 67
	// Relay is an address of this machine on the host's network, port 67: it names
	// the network to the server (giaddr), and there the server answers.
	Relay netip.AddrPort
	// Timeout ends the wait for an answer; the question is repeated meanwhile,
	// since UDP loses packets. Default: 6 s.
	Timeout time.Duration
}

// Offer is what a DHCP server offers to a host.
type Offer struct {
	Address netip.Addr
	Name    string     // option 12, "" when it was not sent
	Server  netip.Addr // option 54: who offers; the zero Addr when it was not sent
}

const (
	defaultDiscovery = 6 * time.Second
	discoverTries    = 3
)

// Ask sends the question and gives the first offer that answers it; nil when
// nobody offers anything in time. A fault says that the question could not be
// asked.
func (d Discovery) Ask(ctx context.Context) (*Offer, *plan.Fault) {
	if d.Timeout <= 0 {
		d.Timeout = defaultDiscovery
	}
	relay := d.Relay.Addr().Unmap()
	if !relay.Is4() || !d.Server.Addr().Unmap().Is4() || relay.IsUnspecified() {
		return nil, plan.NewFault(plan.CodeDHCPRelay, "a DISCOVER goes from an IPv4 address to an IPv4 address, not from %s to %s", d.Relay.Addr(), d.Server.Addr())
	}
	question, err := dhcpv4.NewDiscovery(net.HardwareAddr(d.MAC[:]), dhcpv4.WithRelay(relay.AsSlice()),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionHostName, dhcpv4.OptionDomainName, dhcpv4.OptionServerIdentifier))
	if err != nil {
		return nil, plan.NewFault(plan.CodeInternal, "no DISCOVER can be made for %s", d.MAC).Because(err)
	}
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(relay, d.Relay.Port())))
	if err != nil {
		return nil, unusableRelay(d.Relay, err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // frees the read
	defer func() { _ = conn.Close() }()                         // nothing is lost by it
	offers := make(chan *Offer, 1)
	go func() { // ends with the socket
		defer close(offers)
		if o := awaitOffer(conn, d.Server.Addr().Unmap(), question); o != nil {
			offers <- o
		}
	}()
	again := time.NewTicker(d.Timeout / discoverTries)
	defer again.Stop()
	for try := 1; ; try++ {
		if try == discoverTries {
			again.Stop()
		}
		if _, err := conn.WriteToUDPAddrPort(question.ToBytes(), netip.AddrPortFrom(d.Server.Addr().Unmap(), d.Server.Port())); err != nil && ctx.Err() == nil {
			return nil, plan.NewFault(plan.CodeDHCPRelay, "the DISCOVER cannot be sent from %s to %s", d.Relay, d.Server).Because(err)
		}
		select {
		case o := <-offers:
			if o == nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, ended(ctx, "waiting for an offer of "+d.Server.String())
			}
			return o, nil
		case <-again.C:
		}
	}
}

// awaitOffer reads until an offer answers the question, or the socket is closed.
// What others send there is not for us.
func awaitOffer(conn *net.UDPConn, server netip.Addr, question *dhcpv4.DHCPv4) *Offer {
	packet := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(packet)
		var refused syscall.Errno
		switch {
		case errors.As(err, &refused) && errors.Is(refused, syscall.ECONNREFUSED):
			continue // an ICMP message for an earlier try
		case err != nil:
			return nil
		}
		answer, err := dhcpv4.FromBytes(packet[:n])
		if err != nil || answer.OpCode != dhcpv4.OpcodeBootReply || answer.MessageType() != dhcpv4.MessageTypeOffer ||
			answer.TransactionID != question.TransactionID || answer.ClientHWAddr.String() != question.ClientHWAddr.String() {
			continue
		}
		o := &Offer{Name: answer.HostName(), Server: from.Addr().Unmap()}
		o.Address, _ = netip.AddrFromSlice(answer.YourIPAddr.To4())
		if id, ok := netip.AddrFromSlice(answer.ServerIdentifier().To4()); ok {
			o.Server = id
		}
		return o
	}
}

// unusableRelay says why the socket cannot be had.
func unusableRelay(relay netip.AddrPort, err error) *plan.Fault {
	f := plan.NewFault(plan.CodeDHCPRelay, "no socket at the relay address %s", relay).Because(err)
	switch {
	case errors.Is(err, syscall.EACCES):
		return f.WithHint("Port %d needs a right: run this one command as root, or once: setcap cap_net_bind_service=+ep on the program.", relay.Port())
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return f.WithHint("Give an address of this machine on the BMC network: ip -4 address shows them.")
	case errors.Is(err, syscall.EADDRINUSE):
		return f.WithHint("A DHCP server or relay of this machine has the port; ask from another machine of the BMC network: ss -lunp sport = :%s", strconv.Itoa(int(relay.Port())))
	}
	return f
}

// Expected is the offer that a device's BMC should get, as NetBox and the site
// file say.
func Expected(t *plan.Target) (plan.MAC, Offer, *plan.Fault) {
	if !enabled(t.Site) {
		return plan.MAC{}, Offer{}, plan.NewFault(plan.CodeConfigInvalid, "the site %s configures no DHCP", t.Site.Name).
			WithHint("It needs a dhcp block and configure_dhcp = true.")
	}
	if t.Site.DHCP.IPv6 {
		return plan.MAC{}, Offer{}, plan.NewFault(plan.CodeDHCPRelay, "the DHCP service of the site %s is one of DHCPv6, and a DISCOVER asks one of DHCPv4", t.Site.Name).
			WithHint("enroll plan compares what stands on the server; whether a BMC got its address shows in the server's leases.")
	}
	e, _, f := entryFor(t)
	if f != nil {
		return plan.MAC{}, Offer{}, f
	}
	return e.MAC, Offer{Address: e.Address, Name: e.Name}, nil
}
