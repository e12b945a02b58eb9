package ironic

import (
	"context"
	"fmt"
	"sync"

	"github.com/enroll-dev/enroll/plan"
)

// Ownership says who holds each device's node: one request per Ironic, a list,
// or the node itself when only one device is asked for. A device without a
// node has the zero value. Devices that no Ironic manages have no entry.
//
// Names change: a device that has no node by its name is looked for by the MAC
// addresses of its NICs. When another node has one of them, nobody knows whose
// machine it is, and nothing may be written.
func (c *Client) Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership {
	out := map[string]plan.Ownership{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, devices := range byIronic(sc.Targets) {
		wg.Go(func() {
			found, _, f := c.find(ctx, name, devices)
			var others map[string]*plan.Fault
			if f == nil {
				others, f = c.underOtherNames(ctx, sc, name, devices, found)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, device := range devices {
				switch n := found[device]; {
				case f != nil:
					out[device] = plan.Ownership{Unknown: f}
				case n == nil:
					out[device] = plan.Ownership{Unknown: others[device]}
				default:
					out[device] = plan.Ownership{Unknown: c.moved(device, n)}
					if out[device].Unknown == nil {
						out[device] = own(n)
					}
				}
			}
		})
	}
	wg.Wait()
	return out
}

// moved gives PLAN_STALE for a node that has the name of a device and is not the one
// that had it when this client first saw it: it is another machine.
func (c *Client) moved(device string, n *node) *plan.Fault {
	was, known := c.first.LoadOrStore(device, n.UUID)
	if !known || was == n.UUID {
		return nil
	}
	return plan.NewFault(plan.CodePlanStale, "the name %s has moved to another node of Ironic; nothing is written to it", device).
		With("node", n.UUID).With("was", fmt.Sprint(was)).WithHint("See which node is the machine's and who renamed them, and make a new plan.")
}

// underOtherNames finds the MAC addresses of devices without a node on nodes of
// other names.
func (c *Client) underOtherNames(ctx context.Context, sc *plan.Scope, ironic string, devices []string, found map[string]*node) (map[string]*plan.Fault, *plan.Fault) {
	var nameless []*plan.Target
	for _, d := range devices {
		if found[d] == nil {
			nameless = append(nameless, sc.Target(d))
		}
	}
	if len(nameless) == 0 {
		return nil, nil
	}
	s, f := c.service(ironic)
	if f != nil {
		return nil, f
	}
	v := newView(found)
	if v.readPorts(ctx, s, sc, devices); v.portFault != nil {
		return nil, v.portFault
	}
	out := map[string]*plan.Fault{}
	for _, t := range nameless {
		if nic, p := v.taken(t); p != nil {
			v.nameHolder(ctx, s, p.NodeUUID)
			out[t.Name()] = v.conflict(t, nic, p)
		}
	}
	return out, nil
}

// own reads who holds a node. An allocation needs no look of its own: Ironic writes
// its uuid into instance_uuid, and takes it out with it (shown in the lab). Lists
// refuse the field allocation_uuid.
func own(n *node) plan.Ownership {
	name := n.Name
	if name == "" {
		name = n.UUID
	}
	o := plan.Own(name, n.ProvisionState, n.InstanceUUID, n.Maintenance)
	o.NodeUUID = n.UUID
	return o
}

// byIronic sorts devices by the ironic block that manages them.
func byIronic(targets []*plan.Target) map[string][]string {
	out := map[string][]string{}
	for _, t := range targets {
		if t.Ironic != nil {
			out[t.Ironic.Name] = append(out[t.Ironic.Name], t.Name())
		}
	}
	return out
}

// find reads the nodes of devices by name. all are the nodes of the whole Ironic
// when they were read, nil when there was no need.
func (c *Client) find(ctx context.Context, ironic string, devices []string) (byName map[string]*node, all []*node, f *plan.Fault) {
	s, f := c.service(ironic)
	if f != nil {
		return nil, nil, f
	}
	if len(devices) == 1 {
		n, f := s.node(ctx, devices[0])
		return map[string]*node{devices[0]: n}, nil, f
	}
	all, f = s.nodes(ctx)
	if f != nil {
		return nil, nil, f
	}
	out := map[string]*node{}
	for _, n := range all {
		out[n.Name] = n
	}
	return out, all, nil
}

func (c *Client) service(ironic string) (*service, *plan.Fault) {
	if s, ok := c.services[ironic]; ok {
		return s, nil
	}
	return nil, plan.NewFault(plan.CodeInternal, "no client for ironic %q", ironic)
}
