package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

type verifyFlags struct {
	deviceFlags
	inventoryFlags
	dhcp    bool
	relay   string
	server  string
	timeout time.Duration
	format  string
}

func (a *app) verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify DEVICE…", Short: "Prove that devices are as they are recorded, or as they were planned; changes nothing",
		Long: "Compares the hardware that Ironic's last inspection found with the record: processors, memory, disks, NICs,\n" +
			"BIOS, GPUs and, by LLDP, every cable. Says what happened to wrong cables and which moves make them right.\n" +
			"Reads NetBox and Ironic, and starts no inspection. Exit 15 when a check failed.\n\n" +
			"With --dhcp, run on a machine of the BMC network: sends a DISCOVER with the MAC of the device's BMC to the\n" +
			"DHCP server, as a relay agent at --relay would, and compares the offer with NetBox and the site file.\n" +
			"It never sends a REQUEST: nothing is leased. Exit 15 when the offer is another one, or none.",
		Example: "  enroll verify --all\n  enroll verify --rack r01 --format svg > cables.svg\n  enroll verify --dhcp gpu-017 --relay 192.0.2.5",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !f.dhcp {
				return a.verifyInventories(cmd.Context(), f, args)
			}
			switch {
			case f.format != "text" && f.format != "json":
				return usageError{fmt.Errorf("--format with --dhcp is text or json, not %q", f.format)}
			case len(args) != 1 || f.all || f.filtered():
				return usageError{errors.New("enroll verify --dhcp wants the name of one device")}
			}
			return a.verifyDHCP(cmd.Context(), f, args[0])
		},
		ValidArgsFunction: a.completeDevices,
	}
	cmd.Flags().BoolVar(&f.dhcp, "dhcp", false, "ask the DHCP server for the address of the device's BMC")
	cmd.Flags().StringVar(&f.relay, "relay", "", "address of this machine on the BMC network; the server answers there (required with --dhcp)")
	cmd.Flags().StringVar(&f.server, "server", "", "address of the DHCP server on the BMC network (default: host of the dhcp block)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 6*time.Second, "how long an offer is waited for; it is asked for three times")
	f.deviceFlags.register(cmd)
	f.inventoryFlags.register(cmd)
	cmd.Flags().StringVar(&f.format, "format", "text", "text, json, markdown or svg (the last two not with --dhcp)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json", "markdown", "svg"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// dhcpProof is what the DHCP server offered, beside what it should.
type dhcpProof struct {
	Device string      `json:"device"`
	MAC    plan.MAC    `json:"mac"`
	Relay  string      `json:"relay"`
	Server string      `json:"server"`
	Checks []proofLine `json:"checks"`
}

type proofLine struct {
	What     string            `json:"what"`
	Verdict  plan.CheckVerdict `json:"verdict"`
	Expected string            `json:"expected"`
	Observed string            `json:"observed"`
}

func (a *app) verifyDHCP(ctx context.Context, f verifyFlags, name string) error {
	relay, err := relayAddress(f.relay)
	switch {
	case err != nil:
		return usageError{err}
	case f.timeout <= 0:
		return usageError{errors.New("--timeout must be longer than zero")}
	}
	s, err := a.openIntents(ctx, selection{names: []string{name}})
	if err != nil {
		return err
	}
	for _, d := range s.failed {
		return d.Fault
	}
	t := s.scope.Targets[0]
	mac, want, fault := dhcp.Expected(t)
	switch {
	case fault != nil && len(t.Intent.Faults) > 0:
		return t.Intent.Faults[0] // why something is missing
	case fault != nil:
		return fault
	}
	if f.server == "" {
		f.server = s.site.DHCP.Host
	}
	server, err := dhcpServer(ctx, f.server)
	if err != nil {
		return err
	}
	got, fault := dhcp.Discovery{MAC: mac, Server: server, Relay: relay, Timeout: f.timeout}.Ask(ctx)
	if fault != nil {
		return fault
	}
	p := dhcpProof{Device: s.site.Name + "/" + t.Name(), MAC: mac, Relay: relay.String(), Server: server.String(), Checks: compareOffer(want, got)}
	if err := a.printProof(p, f.format); err != nil {
		return err
	}
	for _, c := range p.Checks {
		if c.Verdict != plan.CheckPass {
			return exitStatus(exitVerify)
		}
	}
	return nil
}

// openIntents reads the site and what NetBox says about devices, and nothing
// else: no provider is made.
func (a *app) openIntents(ctx context.Context, sel selection) (*session, error) {
	s, err := a.openNetBox(ctx, "verify")
	if err != nil {
		return nil, err
	}
	return s, s.readIntents(ctx, sel)
}

// compareOffer judges an offer; nil is none.
func compareOffer(want dhcp.Offer, got *dhcp.Offer) []proofLine {
	if got == nil {
		return []proofLine{{"address", plan.CheckFail, want.Address.String(), "no offer"}}
	}
	line := func(what, expected, observed string) proofLine {
		verdict := plan.CheckPass
		if expected != observed {
			verdict = plan.CheckFail
		}
		if observed == "" {
			observed = "none"
		}
		return proofLine{what, verdict, expected, observed}
	}
	return []proofLine{
		line("address", want.Address.String(), got.Address.String()),
		line("host name", want.Name, got.Name),
	}
}

func (a *app) printProof(p dhcpProof, format string) error {
	if format == "json" {
		return view.JSON(a.sys.stdout, p)
	}
	return writeProof(a.sys.stdout, p, a.sys.color())
}

func writeProof(w io.Writer, p dhcpProof, color bool) error {
	fmt.Fprintf(w, "%s: DISCOVER of %s through %s to %s\n", p.Device, p.MAC, p.Relay, p.Server)
	for _, c := range p.Checks {
		text := c.Expected
		if c.Verdict != plan.CheckPass {
			text = "expected " + c.Expected + ", observed " + c.Observed
		}
		if _, err := fmt.Fprintf(w, "  %s %s: %s\n", view.Mark(c.Verdict == plan.CheckPass, color), c.What, view.Clean(text)); err != nil {
			return err
		}
	}
	return nil
}

const dhcpServerPort = 67

// relayAddress reads ADDRESS or ADDRESS:PORT. Another port is of use only where
// something forwards: a server answers a relay agent at port 67.
func relayAddress(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, errors.New("--dhcp wants --relay: an address of this machine on the BMC network")
	}
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() {
		return netip.AddrPortFrom(addr, dhcpServerPort), nil
	}
	if at, err := netip.ParseAddrPort(text); err == nil && at.Addr().Is4() {
		return at, nil
	}
	return netip.AddrPort{}, fmt.Errorf("--relay wants an IPv4 address, not %q", text)
}

// dhcpServer finds the address of HOST or HOST:PORT.
func dhcpServer(ctx context.Context, text string) (netip.AddrPort, error) {
	host, port := text, dhcpServerPort
	if h, p, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return netip.AddrPort{}, usageError{fmt.Errorf("--server: %q is no port", p)}
		}
		host, port = h, int(n)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil || len(found) == 0 {
		return netip.AddrPort{}, plan.NewFault(plan.CodeDHCPRelay, "the DHCP server %q has no IPv4 address", host).Because(err).
			WithHint("Give its address on the BMC network with --server.")
	}
	return netip.AddrPortFrom(found[0].Unmap(), uint16(port)), nil
}
