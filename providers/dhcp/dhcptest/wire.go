package dhcptest

import (
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// answerWire serves DHCP to relay agents: an offer to who has an entry with an
// address, silence to all others. Every message is an exchange of the recorder;
// one that would lease an address is a mutating one.
func (s *Server) answerWire() {
	defer s.wait.Done()
	packet := make([]byte, 64<<10)
	for {
		n, from, err := s.wire.ReadFromUDPAddrPort(packet)
		if err != nil {
			return
		}
		message, err := dhcpv4.FromBytes(packet[:n])
		if err != nil {
			continue
		}
		kind := message.MessageType()
		rec, _ := s.recorder.Begin(exchange.Record{System: "dhcp", Method: "wire." + kind.String(), Path: message.ClientHWAddr.String(), Mutating: kind != dhcpv4.MessageTypeDiscover})
		if answer := s.offer(message); answer != nil {
			_, _ = s.wire.WriteToUDPAddrPort(answer, from) // a relay agent asks again
		}
		s.recorder.End(rec)
	}
}

// offer makes the answer to a message; nil is silence. Without a relay agent's
// address the machine knows no network that the message could come from.
func (s *Server) offer(message *dhcpv4.DHCPv4) []byte {
	if message.MessageType() != dhcpv4.MessageTypeDiscover || message.GatewayIPAddr.IsUnspecified() || len(message.ClientHWAddr) != len(plan.MAC{}) {
		return nil
	}
	mac := plan.MAC(message.ClientHWAddr)
	address, found := s.Lease(mac)
	if !found {
		return nil
	}
	modifiers := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(dhcpv4.MessageTypeOffer), dhcpv4.WithYourIP(address.AsSlice()),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.Wire.Addr().AsSlice())), dhcpv4.WithLeaseTime(3600),
	}
	if name := s.nameOf(address); name != "" {
		modifiers = append(modifiers, dhcpv4.WithOption(dhcpv4.OptHostName(name)))
	}
	answer, err := dhcpv4.NewReplyFromRequest(message, modifiers...)
	if err != nil {
		return nil
	}
	return answer.ToBytes()
}

// nameOf is the host name that goes with an address.
func (s *Server) nameOf(address netip.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.daemon.table {
		if h.address == address {
			return h.name
		}
	}
	return ""
}
