package ironic

import (
	"context"
	"net/url"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

const keyPXE = "pxe_port"

const fromPorts = "pxe_enabled of the node's ports"

func expectPXE(e expectations) string {
	if e.provisioning == nil {
		return ""
	}
	return "PXE on the port of " + e.provisioning.Name + " alone"
}

// pxePort judges the ports as they are after the inspection: Ironic's own hook sets
// pxe_enabled of every port by the address that the ramdisk booted from, and a
// ramdisk from virtual media has none, which turns all of them off (reference,
// never-do list: PXE on exactly one port, the first frontend interface).
func pxePort(nic plan.FrontendNIC, inv *inventory) finding {
	switch {
	case inv.pxe == nil:
		return finding{verdict: plan.CheckSkipped, observed: "not looked at", text: "an inventory alone does not tell of Ironic's ports", from: []string{fromPorts}}
	case len(inv.pxe) == 1 && inv.pxe[0] == nic.MAC.String():
		return matched(fromPorts, "PXE on "+nic.Name)
	case len(inv.pxe) == 0:
		return mismatch(fromPorts, "PXE on no port", "Ironic would find no port to deploy over: an inspection turns PXE off where [inspector] update_pxe_enabled is true. Set that to false, and the port with baremetal port set --pxe-enabled")
	}
	return mismatch(fromPorts, "PXE on "+named(inv.pxe), "only "+nic.Name+" ("+nic.MAC.String()+") is wanted: correct the ports with baremetal port set --pxe-enabled and --pxe-disabled")
}

// readPXE adds the ports of a node with PXE to its inventory.
func (s *service) readPXE(ctx context.Context, n *node, inv *inventory) *plan.Fault {
	ports, f := s.ports(ctx, "node="+url.QueryEscape(n.UUID))
	if f == nil {
		inv.pxe = pxeOf(n, ports)
	}
	return f
}

// pxeOf lists the MAC addresses of a node's ports with PXE; it is never nil.
func pxeOf(n *node, ports []*port) []string {
	out := []string{}
	for _, p := range ports {
		if p.NodeUUID == n.UUID && p.PXEEnabled {
			out = append(out, strings.ToLower(p.Address))
		}
	}
	sort.Strings(out)
	return out
}
