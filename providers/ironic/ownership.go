package ironic

import (
	"context"
	"sync"

	"github.com/enroll-dev/enroll/plan"
)

// Ownership says who holds each device's node: one request per Ironic, a list,
// or the node itself when only one device is asked for. A device without a
// node has the zero value. Devices that no Ironic manages have no entry.
func (c *Client) Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership {
	out := map[string]plan.Ownership{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, devices := range byIronic(sc.Targets) {
		wg.Go(func() {
			found, f := c.find(ctx, name, devices)
			mu.Lock()
			defer mu.Unlock()
			for _, device := range devices {
				switch n := found[device]; {
				case f != nil:
					out[device] = plan.Ownership{Unknown: f}
				case n == nil:
					out[device] = plan.Ownership{}
				default:
					out[device] = own(n)
				}
			}
		})
	}
	wg.Wait()
	return out
}

func own(n *node) plan.Ownership {
	name := n.Name
	if name == "" {
		name = n.UUID
	}
	return plan.Own(name, n.ProvisionState, n.InstanceUUID, n.Maintenance)
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

// find reads the nodes of devices by name.
func (c *Client) find(ctx context.Context, ironic string, devices []string) (map[string]*node, *plan.Fault) {
	s, f := c.service(ironic)
	if f != nil {
		return nil, f
	}
	if len(devices) == 1 {
		n, f := s.node(ctx, devices[0])
		return map[string]*node{devices[0]: n}, f
	}
	all, f := s.nodes(ctx)
	if f != nil {
		return nil, f
	}
	out := map[string]*node{}
	for _, n := range all {
		out[n.Name] = n
	}
	return out, nil
}

func (c *Client) service(ironic string) (*service, *plan.Fault) {
	if s, ok := c.services[ironic]; ok {
		return s, nil
	}
	return nil, plan.NewFault(plan.CodeInternal, "no client for ironic %q", ironic)
}
