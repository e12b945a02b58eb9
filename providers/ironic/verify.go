package ironic

import (
	"context"
	"net/url"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/cabling"
)

// Verification is what the inventory that Ironic keeps of a device proves.
type Verification struct {
	Device    string
	State     plan.ProvisionState // "": there is no node
	Inspected string              // when the inspection finished; "": never, or not since one failed
	Checks    []plan.Check        // every check that the record asks for
	Cables    []cabling.Cable     // of the frontend NICs
	Fault     *plan.Fault         // nothing could be read; Checks are empty
}

// Verify judges the devices of a scope on the inventories that Ironic keeps, one
// answer for each, in the scope's order. It sends GET only: the nodes once for each
// Ironic, and one inventory for each node that was inspected. Devices whose
// record has faults, or that no Ironic manages, have a fault.
func (c *Client) Verify(ctx context.Context, sc *plan.Scope) []Verification {
	out := make([]Verification, len(sc.Targets))
	place := map[string]int{}
	for n, t := range sc.Targets {
		out[n].Device = t.Name()
		place[t.Name()] = n
		switch {
		case len(t.Intent.Faults) > 0:
			out[n].Fault = t.Intent.Faults[0]
		case t.Ironic == nil:
			out[n].Fault = plan.NewFault(plan.CodeRoutingUnresolved, "%s: no Ironic manages class %q", t.Name(), t.Intent.Class)
		}
	}
	var wg sync.WaitGroup
	for name, devices := range byIronic(sc.Targets) {
		wg.Go(func() {
			found, _, f := c.find(ctx, name, devices)
			var ports map[string][]*port
			if f == nil {
				ports, f = c.portsOf(ctx, name, devices, found)
			}
			var group errgroup.Group
			group.SetLimit(c.opt.AtOnce)
			for _, device := range devices {
				v, t := &out[place[device]], sc.Target(device)
				switch {
				case v.Fault != nil:
				case f != nil:
					v.Fault = f
				default:
					group.Go(func() error {
						c.verify(ctx, t, found[device], ports, v)
						return nil
					})
				}
			}
			_ = group.Wait() // faults are kept per device
		})
	}
	wg.Wait()
	return out
}

// portsOf are the ports of nodes that have any to check, by node UUID: one request,
// of all nodes when there are several.
func (c *Client) portsOf(ctx context.Context, ironic string, devices []string, found map[string]*node) (map[string][]*port, *plan.Fault) {
	s, f := c.service(ironic)
	if f != nil {
		return nil, f
	}
	filter := ""
	if len(devices) == 1 {
		if found[devices[0]] == nil {
			return nil, nil
		}
		filter = "node=" + url.QueryEscape(found[devices[0]].UUID)
	}
	ports, f := s.ports(ctx, filter)
	out := map[string][]*port{}
	for _, p := range ports {
		out[p.NodeUUID] = append(out[p.NodeUUID], p)
	}
	return out, f
}

// verify fills in the answer for one device.
func (c *Client) verify(ctx context.Context, t *plan.Target, n *node, ports map[string][]*port, v *Verification) {
	var inv *inventory
	if n != nil {
		v.State, v.Inspected = n.ProvisionState, n.InspectionFinishedAt
		s, f := c.service(t.Ironic.Name)
		if f == nil {
			inv, f = s.inventory(ctx, n)
		}
		if f != nil {
			v.Fault = f
			return
		}
		if inv != nil {
			inv.pxe = pxeOf(n, ports[n.UUID])
		}
	}
	v.Checks = judgeAll(t, inv)
	v.Cables = cablesOf(t, inv)
}

// cablesOf are the frontend cables of a device as the detective wants them. Names
// that the site's rules make equal to those of the record are given as recorded.
func cablesOf(t *plan.Target, inv *inventory) []cabling.Cable {
	var out []cabling.Cable
	e := expected(t)
	if e.skipCables {
		return nil
	}
	for _, nic := range e.nics {
		c := cabling.Cable{Device: t.Name(), NIC: nic.Name}
		if nic.Peer != nil {
			c.Recorded, c.RecordedText = cabling.End{Switch: nic.Peer.Device, Port: nic.Peer.Port}, nic.Peer.Description
		}
		if inv != nil {
			if l, _ := inv.link(nic.MAC); len(l.far) > 0 {
				c.OK = cable(nic, e, inv).verdict == plan.CheckPass
				c.Seen = announced(nic, l.far[0], e)
			}
		}
		out = append(out, c)
	}
	return out
}

func announced(nic plan.FrontendNIC, n neighbour, e expectations) cabling.Announced {
	a := cabling.Announced{Switch: said(n.SystemName), PortID: said(n.PortID), Description: said(n.PortDescription)}
	if a.Switch == "" {
		a.Switch = said(n.ChassisID)
	}
	if nic.Peer == nil {
		return a
	}
	if same, _ := sameName(nic.Peer.Device, n.SystemName, e.switchNames[nic.Peer.Platform]); same {
		a.Switch = nic.Peer.Device
	}
	return a
}
