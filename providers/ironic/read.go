package ironic

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/enroll-dev/enroll/plan"
)

// Read answers resources of the systems ironic and check. One Ironic costs: the
// nodes once (the node itself when only one device is asked for), its ports and
// portgroups once when such resources are among them, and one inventory per
// node for which a check or the inspection is.
func (c *Client) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	parts := map[string][]plan.Resource{}
	for _, r := range resources {
		t := sc.Target(r.Address.Device)
		if t == nil || t.Ironic == nil {
			out[r.Address] = plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeInternal, "%s: no Ironic manages the device", r.Address))
			continue
		}
		parts[t.Ironic.Name] = append(parts[t.Ironic.Name], r)
	}
	for name, list := range parts {
		wg.Go(func() {
			snap := c.readOne(ctx, sc, name, list)
			mu.Lock()
			defer mu.Unlock()
			out.Merge(snap)
		})
	}
	wg.Wait()
	return out
}

// view is what one Ironic says at one moment.
type view struct {
	nodes       map[string]*node // by name
	names       map[string]string
	ports       map[string]*port // by MAC address, lower case
	groups      map[string][]*portgroup
	inventories map[string]seen // by device
	portFault   *plan.Fault
	groupFault  *plan.Fault

	// current gives the version that the vault has of a device's credential.
	current func(device string) (string, *plan.Fault)

	// strangers are all nodes, read when a device has none of its own.
	strangers     []*node
	strangerFault *plan.Fault
}

type seen struct {
	inventory *inventory // nil: there is none
	fault     *plan.Fault
}

func (c *Client) readOne(ctx context.Context, sc *plan.Scope, ironic string, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	s, f := c.service(ironic)
	var v *view
	if f == nil {
		v, f = c.look(ctx, s, sc, resources)
	}
	for _, r := range resources {
		if f != nil {
			out[r.Address] = plan.LiveFault(presence(f), f)
			continue
		}
		l := v.live(sc.Target(r.Address.Device), r)
		l.Evidence = map[string]string{"ironic": s.where(), "node": r.Address.Device}
		out[r.Address] = l
	}
	return out
}

// presence says how a fault of the whole system shows at each resource.
func presence(f *plan.Fault) plan.Presence {
	if f.Code == plan.CodeIronicUnreachable {
		return plan.Unreachable
	}
	return plan.Unreadable
}

// look reads what the resources need.
func (c *Client) look(ctx context.Context, s *service, sc *plan.Scope, resources []plan.Resource) (*view, *plan.Fault) {
	needs := map[string]bool{} // kinds
	pxe := map[string]bool{}   // devices whose ports are checked
	inventories := map[string]bool{}
	var devices []string
	known := map[string]bool{}
	for _, r := range resources {
		a := r.Address
		needs[a.Kind] = true
		if a.System == systemCheck || (a.Kind == kindProvision && a.Key == keyInspect) {
			inventories[a.Device] = true
		}
		if a.Kind == kindInspection && a.Key == keyPXE {
			pxe[a.Device] = true
		}
		if !known[a.Device] {
			known[a.Device] = true
			devices = append(devices, a.Device)
		}
	}
	found, all, f := c.find(ctx, s.settings.Name, devices)
	if f != nil {
		return nil, f
	}
	v := newView(found)
	for _, n := range all {
		v.names[n.UUID] = n.Name
	}
	v.current = func(device string) (string, *plan.Fault) {
		_, password, err := c.credentials.Credential(ctx, device)
		return password.Version, plan.AsFault(err)
	}
	if needs[kindNode] || needs[kindPort] || len(pxe) > 0 {
		v.readPorts(ctx, s, sc, devices)
	}
	if needs[kindNode] {
		v.readStrangers(ctx, s, devices, all)
	}
	if needs[kindPortgroup] || needs[kindPort] {
		v.readPortgroups(ctx, s, sc, devices)
	}
	switch f := s.tooOldForInventory(); {
	case f == nil:
		v.readInventories(ctx, s, devices, inventories)
	case len(inventories) > 0 && !sc.Parameters.SkipInspection:
		return nil, f // also of devices that are still to be inspected: it could not be verified
	}
	v.addPXE(pxe)
	return v, nil
}

// readStrangers reads all nodes when one of the devices has none: its machine may
// be another node's, under a name and with ports that nothing here knows.
func (v *view) readStrangers(ctx context.Context, s *service, devices []string, all []*node) {
	if !slices.ContainsFunc(devices, func(d string) bool { return v.nodes[d] == nil }) {
		return
	}
	if v.strangers = all; all == nil {
		v.strangers, v.strangerFault = s.nodes(ctx)
	}
}

// stranger finds a node that has the device's BMC, or its name in other letters.
func (v *view) stranger(t *plan.Target) *plan.Fault {
	address, system := bmcOf(driverInfo(t))
	for _, n := range v.strangers {
		what := ""
		theirs, theirSystem := bmcOf(n.DriverInfo)
		// A node without a system id takes the BMC's only system.
		sameSystem := system == theirSystem || system == "" || theirSystem == ""
		switch {
		case strings.EqualFold(n.Name, t.Name()):
			what = "nearly its name"
		case address != "" && address == theirs && sameSystem:
			what = "its BMC " + address + system
		case theirs == t.Intent.OOB.String():
			what = "its BMC " + theirs
		default:
			continue
		}
		name := n.Name
		if name == "" {
			name = n.UUID
		}
		return plan.NewFault(plan.CodeIronicConflict, "node %s in Ironic has %s: it is the machine of %s under another name", name, what, t.Name()).
			With("node", n.UUID).With("provision_state", string(n.ProvisionState)).With("netbox", t.Intent.URL)
	}
	return nil
}

// bmcOf is the BMC that a driver_info leads to, in one spelling: "https://HOST"
// and the system's path, or the bare address of IPMI.
func bmcOf(info map[string]any) (address, system string) {
	if address, ok := info["ipmi_address"].(string); ok && address != "" {
		return address, ""
	}
	address, _ = info["redfish_address"].(string)
	system, _ = info["redfish_system_id"].(string)
	address = strings.ToLower(strings.TrimSuffix(address, "/"))
	if address != "" && !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return address, strings.TrimSuffix(system, "/")
}

// newView begins with the nodes that were found, by name.
func newView(found map[string]*node) *view {
	v := &view{nodes: map[string]*node{}, names: map[string]string{}, ports: map[string]*port{}, groups: map[string][]*portgroup{}, inventories: map[string]seen{}}
	for name, n := range found {
		if n != nil {
			v.nodes[name] = n
			v.names[n.UUID] = name
		}
	}
	return v
}

// readPorts reads all ports of the Ironic, or those of one device: the node's
// own, and for MAC addresses that are not among them whoever has them.
func (v *view) readPorts(ctx context.Context, s *service, sc *plan.Scope, devices []string) {
	keep := func(ports []*port, f *plan.Fault) {
		if f != nil && v.portFault == nil {
			v.portFault = f
		}
		for _, p := range ports {
			if mac, err := plan.ParseMAC(p.Address); err == nil {
				v.ports[mac.String()] = p
			}
		}
	}
	if len(devices) != 1 {
		keep(s.ports(ctx, ""))
		return
	}
	if n := v.nodes[devices[0]]; n != nil {
		keep(s.ports(ctx, "node="+url.QueryEscape(n.UUID)))
	}
	for _, nic := range frontend(sc.Target(devices[0])) {
		if v.ports[nic.MAC.String()] == nil && v.portFault == nil {
			keep(s.ports(ctx, "address="+url.QueryEscape(nic.MAC.String())))
			if p := v.ports[nic.MAC.String()]; p != nil {
				v.nameHolder(ctx, s, p.NodeUUID)
			}
		}
	}
}

// nameHolder learns the name of a node that has what should not be there, so that
// a conflict can be reported in words. It is asked for nothing else.
func (v *view) nameHolder(ctx context.Context, s *service, uuid string) {
	if uuid == "" || v.names[uuid] != "" {
		return
	}
	if n, f := s.node(ctx, uuid); f == nil && n != nil {
		v.names[uuid] = n.Name
	}
}

// readPortgroups reads portgroups only when a device of the read is bonded: all of
// the Ironic, or those of one device's node and, when it has none, whoever has the
// MAC address of its bond.
func (v *view) readPortgroups(ctx context.Context, s *service, sc *plan.Scope, devices []string) {
	if !slices.ContainsFunc(devices, func(d string) bool { return sc.Target(d).Intent.Ironic.Bond != nil }) {
		return
	}
	keep := func(groups []*portgroup, f *plan.Fault) {
		v.groupFault = f
		for _, g := range groups {
			v.groups[g.NodeUUID] = append(v.groups[g.NodeUUID], g)
		}
	}
	if len(devices) != 1 {
		keep(s.portgroups(ctx, ""))
		return
	}
	n := v.nodes[devices[0]]
	if n != nil {
		keep(s.portgroups(ctx, "node="+url.QueryEscape(n.UUID)))
	}
	nic, ok := sc.Target(devices[0]).Intent.ProvisioningNIC()
	if !ok || v.groupFault != nil || n != nil && len(v.groups[n.UUID]) > 0 {
		return
	}
	keep(s.portgroups(ctx, "address="+url.QueryEscape(nic.MAC.String())))
	if g := v.bondOf(nic.MAC.String()); g != nil {
		v.nameHolder(ctx, s, g.NodeUUID)
	}
}

// bondOf finds the portgroup that has a MAC address; nil when none has.
func (v *view) bondOf(mac string) *portgroup {
	for _, groups := range v.groups {
		for _, g := range groups {
			if strings.EqualFold(g.Address, mac) {
				return g
			}
		}
	}
	return nil
}

func (v *view) livePortgroup(t *plan.Target, n *node, mac string) plan.Live {
	switch {
	case v.groupFault != nil:
		return plan.LiveFault(presence(v.groupFault), v.groupFault)
	case n != nil && len(v.groups[n.UUID]) > 0:
		return plan.LiveValue(livePortgroup(v.groups[n.UUID][0]))
	}
	if g := v.bondOf(mac); g != nil {
		return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeIronicConflict, "MAC address %s of the bond of %s is already that of a portgroup of %s in Ironic", mac, t.Name(), v.holder(g.NodeUUID)).
			With("portgroup", g.UUID).With("node", g.NodeUUID).With("netbox", t.Intent.URL))
	}
	return plan.LiveAbsent()
}

func (v *view) readInventories(ctx context.Context, s *service, devices []string, wanted map[string]bool) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(s.client.opt.AtOnce)
	for _, device := range devices {
		n := v.nodes[device]
		if n == nil || !wanted[device] {
			continue
		}
		group.Go(func() error {
			inv, f := s.inventory(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			v.inventories[device] = seen{inventory: inv, fault: f}
			return nil
		})
	}
	_ = group.Wait() // faults are kept per device
}

// addPXE tells the inventories which ports have PXE.
func (v *view) addPXE(devices map[string]bool) {
	byNode := map[string][]*port{}
	for _, p := range v.ports {
		byNode[p.NodeUUID] = append(byNode[p.NodeUUID], p)
	}
	for device := range devices {
		if i := v.inventories[device]; i.inventory != nil && v.portFault == nil {
			i.inventory.pxe = pxeOf(v.nodes[device], byNode[v.nodes[device].UUID])
		}
	}
}

// live answers one resource.
func (v *view) live(t *plan.Target, r plan.Resource) plan.Live {
	n := v.nodes[t.Name()]
	switch r.Address.Kind {
	case kindNode:
		return v.liveNode(t, n)
	case kindPort:
		return v.livePort(t, n, r.Address.Key)
	case kindPortgroup:
		return v.livePortgroup(t, n, plan.Text(r.Want, "address"))
	}
	if n == nil {
		return plan.LiveAbsent()
	}
	switch r.Address.Kind {
	case kindPower:
		return plan.LiveValue(powerValue(n.PowerState))
	case kindMaintenance:
		return plan.LiveValue(n.upkeep().value())
	case kindCredential:
		current, f := v.current(t.Name())
		if f != nil {
			return plan.LiveFault(plan.Unreadable, f)
		}
		return plan.LiveValue(liveCredential(n.record(), current, r.Want))
	case kindTrait:
		return plan.LiveValue(traitValue(slices.Contains(n.Traits, r.Address.Key)))
	case kindRAIDInterface:
		return plan.LiveValue(plan.Obj(map[string]plan.Value{"raid_interface": plan.Str(n.Interfaces["raid_interface"])}))
	case kindRAIDConfig:
		return plan.LiveValue(raidValue(n.TargetRAID))
	case kindRootDevice:
		hint, _ := n.Properties["root_device"].(map[string]any)
		return plan.LiveValue(rootDeviceValue(hint))
	case kindDriver:
		return plan.LiveValue(plan.Obj(map[string]plan.Value{"driver": plan.Str(n.Driver)}))
	case kindProvision:
		if r.Address.Key == keyManage {
			return plan.LiveValue(manageValue(n.ProvisionState, n.Maintenance))
		}
		if r.Address.Key != keyInspect {
			return plan.LiveValue(stateValue(n.ProvisionState))
		}
	}
	i := v.inventories[t.Name()]
	if i.fault != nil {
		return plan.LiveFault(presence(i.fault), i.fault)
	}
	switch {
	case r.Address.Kind == kindProvision:
		return plan.LiveValue(liveInspection(n, i.inventory, plan.Text(r.Want, "inventory")))
	case i.inventory == nil:
		return plan.LiveAbsent()
	case r.Address.Kind == kindInspection && r.Address.Key == keyPXE && v.portFault != nil:
		return plan.LiveFault(presence(v.portFault), v.portFault)
	case r.Address.System == systemCheck:
		return plan.LiveValue(liveCheck(newJudge(t, i.inventory).find(r.Address)))
	}
	return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeInternal, "%s: there is no such kind", r.Address))
}

// liveInspection also answers whether the inventory is newer than the one that a
// step was planned on.
func liveInspection(n *node, inv *inventory, want string) plan.Value {
	state := inventoryPresent
	if inv == nil {
		state = inventoryAbsent
	} else if at, ok := strings.CutPrefix(want, inventoryNewer); ok && n.InspectionFinishedAt != at {
		state = want
	}
	return plan.Obj(map[string]plan.Value{
		"provision_state": plan.Str(string(n.ProvisionState)), "inventory": plan.Str(state), "inspection_finished_at": textOrNull(n.InspectionFinishedAt),
	})
}

// liveNode also guards against a device that Ironic knows under another name:
// one of its MAC addresses stands on another node.
func (v *view) liveNode(t *plan.Target, n *node) plan.Live {
	if n != nil {
		return plan.LiveValue(liveNode(n))
	}
	if v.portFault != nil {
		return plan.LiveFault(presence(v.portFault), v.portFault)
	}
	if nic, p := v.taken(t); p != nil {
		return plan.LiveFault(plan.Unreadable, v.conflict(t, nic, p))
	}
	if v.strangerFault != nil {
		return plan.LiveFault(presence(v.strangerFault), v.strangerFault)
	}
	if f := v.stranger(t); f != nil {
		return plan.LiveFault(plan.Unreadable, f)
	}
	return plan.LiveAbsent()
}

// taken finds the first NIC of a device without a node whose MAC address is a port
// already; nil when none is.
func (v *view) taken(t *plan.Target) (plan.FrontendNIC, *port) {
	for _, nic := range frontend(t) {
		if p := v.ports[nic.MAC.String()]; p != nil {
			return nic, p
		}
	}
	return plan.FrontendNIC{}, nil
}

func (v *view) conflict(t *plan.Target, nic plan.FrontendNIC, p *port) *plan.Fault {
	return plan.NewFault(plan.CodeIronicConflict, "MAC address %s of %s (%s) is already a port of %s in Ironic", nic.MAC, nic.Name, t.Name(), v.holder(p.NodeUUID)).
		With("port", p.UUID).With("node", p.NodeUUID).With("netbox", nic.URL)
}

// holder names a node for people.
func (v *view) holder(uuid string) string {
	if name := v.names[uuid]; name != "" {
		return "node " + name
	}
	return "node " + uuid
}

func (v *view) livePort(t *plan.Target, n *node, key string) plan.Live {
	if v.portFault != nil {
		return plan.LiveFault(presence(v.portFault), v.portFault)
	}
	nic, _ := nicOf(t, plan.Address{Key: key})
	p := v.ports[nic.MAC.String()]
	switch {
	case p == nil:
		return plan.LiveAbsent()
	case n == nil || p.NodeUUID != n.UUID:
		return plan.LiveFault(plan.Unreadable, v.conflict(t, nic, p))
	}
	if v.groupFault != nil {
		return plan.LiveFault(presence(v.groupFault), v.groupFault)
	}
	if groups := v.groups[n.UUID]; p.PortgroupID != "" && len(groups) > 0 && groups[0].UUID != p.PortgroupID {
		return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeIronicConflict, "the port of %s (%s) belongs to another portgroup of node %s", nic.Name, nic.MAC, n.Name).
			With("port", p.UUID).With("portgroup", p.PortgroupID))
	}
	return plan.LiveValue(livePort(p))
}
