package ironictest

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Node is a node that a scenario starts with. Zero values are Ironic's own
// defaults: enroll, the driver's interfaces, no power state.
type Node struct {
	Name       string
	Driver     string // default fake-hardware
	State      plan.ProvisionState
	Fields     map[string]any // any further field of Ironic's node, unchecked: instance_uuid, power_state, driver_info, …
	Ports      []Port
	Portgroups []Portgroup
	Inventory  json.RawMessage // what an earlier inspection left; nil: nothing
}

// Port is a port of such a node.
type Port struct {
	MAC        string
	PXEEnabled bool
	Link       map[string]any // local_link_connection
}

// Portgroup is a portgroup of such a node.
type Portgroup struct {
	Name, MAC, Mode string
	NoStandalone    bool // standalone_ports_supported is false
}

// AddNode puts a node in and gives its UUID. It panics where a test is wrong: a
// name that exists.
func (s *Server) AddNode(spec Node) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(spec.Name) != nil {
		panic("ironictest: there is a node " + spec.Name)
	}
	now := s.options.Now()
	n := s.blankNode(now)
	if spec.Driver == "" {
		spec.Driver = "fake-hardware"
	}
	n.set("name", spec.Name)
	n.set("driver", spec.Driver)
	if spec.State != "" {
		n.set("provision_state", string(spec.State))
	}
	maps.Copy(n.fields, clone(spec.Fields))
	if refused := n.interfaces(spec.Driver); refused != nil {
		panic("ironictest: the node has an interface that is not enabled")
	}
	if spec.Inventory != nil {
		n.inventory = spec.Inventory
		n.set("inspection_finished_at", stamp(now))
	}
	s.nodes = append(s.nodes, n)
	for _, p := range spec.Ports {
		link := p.Link
		if link == nil {
			link = map[string]any{}
		}
		s.ports = append(s.ports, &object{map[string]any{
			"uuid": s.newUUID(sortPort), "address": p.MAC, "node_uuid": n.uuid(), "pxe_enabled": p.PXEEnabled, "local_link_connection": link,
			"physical_network": nil, "portgroup_uuid": nil, "is_smartnic": false, "extra": map[string]any{}, "internal_info": map[string]any{},
			"created_at": stamp(now), "updated_at": nil,
		}})
	}
	for _, g := range spec.Portgroups {
		s.portgroups = append(s.portgroups, &object{map[string]any{
			"uuid": s.newUUID(sortPortgroup), "name": g.Name, "address": g.MAC, "node_uuid": n.uuid(), "mode": g.Mode, "properties": map[string]any{},
			"standalone_ports_supported": !g.NoStandalone, "extra": map[string]any{}, "internal_info": map[string]any{}, "created_at": stamp(now), "updated_at": nil,
		}})
	}
	return n.uuid()
}

// Set changes a field of a node as somebody behind Ironic's back would; nil is
// null. It panics when there is no such node.
func (s *Server) Set(node, field string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.options.Now())
	s.must(node).set(field, value)
}

// Remove takes a node and its ports away, as somebody else's DELETE does. It
// panics when there is no such node.
func (s *Server) Remove(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.must(node)
	ofNode := func(o *object) bool { return o.text("node_uuid") == n.uuid() }
	s.ports = slices.DeleteFunc(s.ports, ofNode)
	s.portgroups = slices.DeleteFunc(s.portgroups, ofNode)
	s.nodes = slices.DeleteFunc(s.nodes, func(other *simNode) bool { return other == n })
}

// Lock holds a node's lock for a while, as an operation of another conductor
// does.
func (s *Server) Lock(node, host string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.must(node)
	n.set("reservation", host)
	n.later(s.options.Now().Add(d), func(time.Time) { n.set("reservation", nil) })
}

// FailCleaning lets the node's next cleanings end in clean failed, in a step,
// with the given last_error; "" ends that.
func (s *Server) FailCleaning(node, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(node).failClean = text
}

// LosePXE lets the node's inspections do what Ironic's default [inspector]
// update_pxe_enabled does when the ramdisk booted from virtual media: no port has
// PXE any more. It panics when there is no such node.
func (s *Server) LosePXE(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(node).losePXE = true
}

// Verbs are the provision verbs that a node accepted, in order.
func (s *Server) Verbs(node string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.must(node).verbs)
}

func (s *Server) must(node string) *simNode {
	n := s.find(node)
	if n == nil {
		panic("ironictest: there is no node " + node)
	}
	return n
}

// Node shows a node as it is now; false when there is none.
func (s *Server) Node(ident string) (NodeView, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.options.Now())
	n := s.find(ident)
	if n == nil {
		return NodeView{}, false
	}
	return s.view(n), true
}

// Nodes shows all nodes in the order of their creation.
func (s *Server) Nodes() []NodeView {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.options.Now())
	var out []NodeView
	for _, n := range s.nodes {
		out = append(out, s.view(n))
	}
	return out
}

func (s *Server) view(n *simNode) NodeView {
	v := NodeView{
		Name: n.text("name"), UUID: n.uuid(), Driver: n.text("driver"), ProvisionState: n.state(), PowerState: n.text("power_state"),
		InstanceUUID: n.text("instance_uuid"), LastError: n.text("last_error"), Reservation: n.text("reservation"), Maintenance: n.fields["maintenance"] == true,
		HasInventory: n.inventory != nil,
	}
	if info, ok := n.fields["driver_info"].(map[string]any); ok {
		v.DriverInfo = clone(info)
	}
	if properties, ok := n.fields["properties"].(map[string]any); ok {
		v.Properties = clone(properties)
	}
	if extra, ok := n.fields["extra"].(map[string]any); ok {
		v.Extra = clone(extra)
	}
	v.Traits, _ = n.fields["traits"].([]any)
	for _, p := range s.ports {
		if p.text("node_uuid") == n.uuid() {
			v.MACs = append(v.MACs, p.text("address"))
			if p.fields["pxe_enabled"] == true {
				v.PXE = append(v.PXE, p.text("address"))
			}
		}
	}
	return v
}
