package netbox

import (
	"slices"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// frontend collects the NICs of the frontend network: interfaces of the type
// that ironic_settings.interface_type names, enabled and not for management.
func (d *draft) frontend() {
	d.sameMAC()
	kind := d.Ironic.InterfaceType
	if kind == "" {
		return // said already
	}
	var nics []netInterface
	for _, i := range d.world.interfaces[d.ID] {
		if d.world.contexts[d.ID].ironic.frontend(i) {
			nics = append(nics, i)
		}
	}
	if len(nics) == 0 {
		d.gap(plan.CodeIntentIncomplete, d.URL+"interfaces/", "%s has no enabled interface of type %s (ironic_settings.interface_type) that is not for management", d.Name, kind).
			hint("Record the frontend interfaces of %s with that type, or correct ironic_settings.interface_type.", d.Name)
		return
	}
	slices.SortFunc(nics, func(a, b netInterface) int { return compareNatural(a.Name, b.Name) })
	for n, i := range nics {
		at := d.world.client.page("dcim/interfaces", i.ID)
		nic := plan.FrontendNIC{Name: i.Name, URL: at, MAC: d.macOf(i, n == 0)}
		if n > 0 && i.Name == nics[n-1].Name {
			d.gap(plan.CodeIntentAmbiguous, at, "%s has two frontend interfaces with the name %s", d.Name, i.Name)
		}
		if n > 0 && nic.MAC.IsZero() && len(i.MACs) == 0 && i.MAC == nil && i.PrimaryMAC == nil {
			d.warn(plan.CodeIntentIncomplete, at, "frontend interface %s of %s has no MAC address, so it gets no port in Ironic", i.Name, d.Name).
				hint("Record the MAC address of interface %s of %s and mark it primary.", i.Name, d.Name)
		}
		nic.Peer = d.peer(i, at)
		d.Frontend = append(d.Frontend, nic)
	}
	d.bond()
}

// peer is the switch port at the far end of the cable of an interface.
func (d *draft) peer(i netInterface, at string) *plan.Peer {
	excused := d.Ironic.SkipCableVerification
	if len(i.Endpoints) == 0 {
		if !excused {
			what := "is not cabled, or its cable ends in a panel"
			if i.Occupied != nil && *i.Occupied {
				what = "is cabled, but the cables end before a switch port, at a panel for example"
			} else if i.Occupied != nil {
				what = "is not cabled"
			}
			d.gap(plan.CodeIntentIncomplete, at, "frontend interface %s of %s %s", i.Name, d.Name, what).
				hint("Record the cable of interface %s of %s up to the switch port, or set ironic_settings.skip_cable_verification.", i.Name, d.Name).
				with("netbox_version", d.world.client.Version())
		}
		return nil
	}
	ends := make([]string, len(i.Endpoints))
	for n, e := range i.Endpoints {
		ends[n] = e.String()
	}
	sort.Strings(ends)
	far := strings.Join(ends, ", ")
	switch {
	case i.EndpointsType == nil || *i.EndpointsType != interfaceType:
		kind := "nothing known"
		if i.EndpointsType != nil {
			kind = clean(*i.EndpointsType, 60)
		}
		d.gap(plan.CodeIntentInvalid, at, "the cable of interface %s of %s ends at %s (%s), which is no switch port", i.Name, d.Name, far, kind).
			hint("Correct the cable of interface %s of %s.", i.Name, d.Name)
		return nil
	case len(i.Endpoints) > 1:
		d.gap(plan.CodeIntentAmbiguous, at, "the cable of interface %s of %s ends at %d ports: %s", i.Name, d.Name, len(i.Endpoints), far).
			hint("Record one far end for interface %s of %s.", i.Name, d.Name).with("netbox_version", d.world.client.Version())
		return nil
	case i.Reachable == nil || !*i.Reachable:
		if excused {
			d.warn(plan.CodeIntentIncomplete, at, "the path from interface %s of %s to %s has a cable that is not connected", i.Name, d.Name, far)
			return nil
		}
		d.gap(plan.CodeIntentIncomplete, at, "the path from interface %s of %s to %s has a cable that is not connected (planned, for example)", i.Name, d.Name, far).
			hint("Set the cables of the path to connected when they are; the trace of the interface shows them.").with("netbox_version", d.world.client.Version())
		return nil
	}
	return d.switchPort(i, i.Endpoints[0], at)
}

func (d *draft) switchPort(i netInterface, e endpoint, at string) *plan.Peer {
	peer := &plan.Peer{Device: e.Device.name(), Port: e.Name, Label: e.label(), Description: e.Description, URL: d.world.client.page("dcim/interfaces", e.ID)}
	peer.Platform = d.world.platforms[e.Device.id()]
	if d.world.contexts[d.ID].ironic.lacpMembers()(i) {
		p, ok := d.world.ports[e.ID]
		switch {
		case !ok:
			d.gap(plan.CodeNetBoxDenied, peer.URL, "NetBox names %s as far end of interface %s of %s and does not show it", e, i.Name, d.Name).
				hint("Give the token's user the permission dcim.view_interface for the interfaces of switches too.").with("permission", "dcim.view_interface")
			return nil
		case p.LAG != nil && d.lagInCircle(p):
			d.gap(plan.CodeIntentInvalid, peer.URL, "the LAG %s of %s %s is the port itself, or a member of it", clean(p.LAG.Name, 60), peer.Device, peer.Port).
				with("interface", at).with("other", d.world.client.page("dcim/interfaces", p.LAG.ID)).hint("Correct the LAG of the switch port.")
			return nil
		case p.LAG != nil:
			peer.LAG = p.LAG.Name
		}
	}
	for _, name := range []struct{ what, text string }{{"switch", peer.Device}, {"port", peer.Port}} {
		if name.text == "" || placeholder(name.text) {
			d.gap(plan.CodeIntentInvalid, peer.URL, "the %s at the far end of interface %s of %s has the name %q", name.what, i.Name, d.Name, name.text).with("interface", at)
			return nil
		}
	}
	if placeholder(peer.LAG) {
		d.gap(plan.CodeIntentInvalid, peer.URL, "the LAG of %s %s has the name %q", peer.Device, peer.Port, peer.LAG).with("interface", at)
		peer.LAG = ""
	}
	return peer
}

// lagInCircle finds a port that is its own LAG, at once or by way of others.
func (d *draft) lagInCircle(p port) bool {
	seen := map[int64]bool{p.ID: true}
	for p.LAG != nil {
		if seen[p.LAG.ID] {
			return true
		}
		next, known := d.world.ports[p.LAG.ID]
		if !known {
			return false
		}
		seen[next.ID] = true
		p = next
	}
	return false
}

// bond checks the members of the bond and, for LACP, that their switch ports
// are in one LAG: on one switch the same one, and at most on two switches
// (an MLAG pair, whose halves may have different names).
func (d *draft) bond() {
	bond := d.Ironic.Bond
	if bond == nil {
		return
	}
	at := d.URL + "config-context/"
	members := d.Frontend
	// The rule for which interfaces these are is that of lacpMembers.
	if len(bond.Interfaces) > 0 {
		members = nil
		for _, name := range bond.Interfaces {
			n := slices.IndexFunc(d.Frontend, func(nic plan.FrontendNIC) bool { return nic.Name == name })
			if n < 0 {
				d.gap(plan.CodeIntentInvalid, at, "config context of %s: ironic_settings.bond.interfaces names %s, which is no frontend interface of type %s", d.Name, clean(name, 60), d.Ironic.InterfaceType).
					with("path", "ironic_settings.bond.interfaces")
				continue
			}
			members = append(members, d.Frontend[n])
		}
	}
	if bond.Mode != modeLACP {
		return
	}
	lags := map[string]map[string]bool{} // switch → LAGs of the members' ports, "" for none
	var shown []string
	with, without := 0, 0
	for _, nic := range members {
		if nic.Peer == nil {
			continue // said already, or excused
		}
		if lags[nic.Peer.Device] == nil {
			lags[nic.Peer.Device] = map[string]bool{}
		}
		lags[nic.Peer.Device][nic.Peer.LAG] = true
		lag := nic.Peer.LAG
		if lag == "" {
			without++
			lag = "no LAG"
		} else {
			with++
		}
		shown = append(shown, nic.Name+" → "+nic.Peer.Device+" "+nic.Peer.Port+" ("+lag+")")
	}
	text := strings.Join(shown, ", ")
	split := ""
	for _, name := range switchNames(lags) {
		if len(lags[name]) > 1 {
			split = name
		}
	}
	switch {
	case with == 0 && without > 0:
		d.warn(plan.CodeIntentIncomplete, d.URL+"interfaces/", "%s has an %s bond and none of its switch ports is in a LAG: %s", d.Name, modeLACP, text).
			hint("Record the LAG of the switch ports; until then the physical ports are taken.")
	case with > 0 && without > 0:
		d.gap(plan.CodeIntentAmbiguous, d.URL+"interfaces/", "%s has an %s bond and only some of its switch ports are in a LAG: %s", d.Name, modeLACP, text).
			hint("Put all the ports into the LAG in NetBox, or none.")
	case split != "":
		d.gap(plan.CodeIntentAmbiguous, d.URL+"interfaces/", "%s has an %s bond whose ports on %s are in different LAGs: %s", d.Name, modeLACP, split, text).
			hint("Put all the ports on %s into one LAG in NetBox.", split)
	case len(lags) > 2:
		d.gap(plan.CodeIntentAmbiguous, d.URL+"interfaces/", "%s has an %s bond to %d switches: %s", d.Name, modeLACP, len(lags), text).
			hint("A LAG ends at one switch or at a pair; correct the cables or the bond.")
	}
}

func switchNames(lags map[string]map[string]bool) []string {
	names := make([]string, 0, len(lags))
	for n := range lags {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// sameMAC finds a MAC that two physical interfaces of the device share.
func (d *draft) sameMAC() {
	first := map[plan.MAC]netInterface{}
	for _, i := range d.world.interfaces[d.ID] {
		mac, ok := i.primary()
		if !ok || i.logical() {
			continue
		}
		if other, taken := first[mac]; taken {
			d.gap(plan.CodeIntentAmbiguous, d.world.client.page("dcim/interfaces", i.ID), "interfaces %s and %s of %s have the same MAC %s", other.Name, i.Name, d.Name, mac).
				with("other", d.world.client.page("dcim/interfaces", other.ID)).hint("Correct the MAC of one of the two.")
			continue
		}
		first[mac] = i
	}
}
