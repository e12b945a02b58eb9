package netboxtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

type object = map[string]any

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// choiceOf is a choice field. Labels are for people; nobody may rely on them.
func choiceOf(value string) any {
	if value == "" {
		return nil
	}
	return object{"value": value, "label": strings.ToUpper(value[:1]) + value[1:]}
}

// page is the address for people that goes with an API address.
func (x *request) pageOf(kind string, id int64) string {
	return fmt.Sprintf("%s/%s/%d/", x.base(), kind, id)
}

func (x *request) nested(kind string, id int64, name string, more object) object {
	out := object{"id": id, "url": fmt.Sprintf("%s/api/%s/%d/", x.base(), kind, id), "display": name, "name": name, "description": ""}
	maps.Copy(out, more)
	return out
}

// customFields shows every field of the model, null when it is not set, and
// selections as objects from 4.7.
func (x *request) customFields(model string, values map[string]any) object {
	out := object{}
	for _, f := range x.opt.Fields {
		if f.Object != model {
			continue
		}
		v := values[f.Name]
		if s, ok := v.(string); ok && s != "" && f.Choices != nil && x.atLeast(4, 7) {
			v = object{"value": s, "label": "The " + s}
		}
		out[f.Name] = v
	}
	return out
}

func (x *request) siteRef(s *siteRow) object {
	return x.nested("dcim/sites", s.id, s.Slug, object{"slug": s.Slug})
}

func (x *request) manufacturerRef(t *typeRow) object {
	return x.nested("dcim/manufacturers", t.manufacturer, t.Manufacturer, object{"slug": slugify(t.Manufacturer)})
}

func (x *request) roleRef(r *nameRow) object {
	out := x.nested("dcim/device-roles", r.id, r.name, object{"slug": r.slug, "device_count": 0, "virtualmachine_count": 0})
	if x.atLeast(4, 3) {
		out["_depth"] = 0
	}
	return out
}

func (x *request) tagRefs(tags []*nameRow) []object {
	out := make([]object, 0, len(tags))
	for _, t := range tags {
		ref := x.nested("extras/tags", t.id, t.name, object{"slug": t.slug, "color": "9e9e9e", "display_url": x.pageOf("extras/tags", t.id)})
		delete(ref, "description")
		out = append(out, ref)
	}
	return out
}

func (x *request) deviceRef(d *deviceRow) object {
	return x.nested("dcim/devices", d.id, d.Name, nil)
}

func (x *request) addressRef(a *addressRow) object {
	family := 4
	if strings.Contains(a.text, ":") {
		family = 6
	}
	out := object{
		"id": a.id, "url": fmt.Sprintf("%s/api/ipam/ip-addresses/%d/", x.base(), a.id), "display": a.text, "address": a.text,
		"family": object{"value": family, "label": fmt.Sprintf("IPv%d", family)}, "description": "", "dns_name": "",
	}
	if x.atLeast(4, 6) {
		out["nat_inside"], out["nat_outside"] = nil, []object{}
		if a.inside != nil {
			out["nat_inside"] = x.insideRef(a.inside)
		}
	}
	return out
}

// insideRef is shorter than other references, and its family is a number.
func (x *request) insideRef(a *addressRow) object {
	return object{
		"id": a.id, "url": fmt.Sprintf("%s/api/ipam/ip-addresses/%d/", x.base(), a.id), "display_url": x.pageOf("ipam/ip-addresses", a.id),
		"display": a.text, "family": 4, "address": a.text,
	}
}

// lagRef is the LAG of an interface, which is shown otherwise than far ends are.
func (x *request) lagRef(i *interfaceRow) object {
	out := x.interfaceRef(i)
	delete(out, "description")
	device := out["device"].(object)
	delete(device, "description")
	out["display_url"], device["display_url"] = x.pageOf("dcim/interfaces", i.id), x.pageOf("dcim/devices", i.device.id)
	return out
}

func (x *request) countOf(match func(d *deviceRow) bool) int {
	n := 0
	for _, d := range x.devices {
		if match(d) {
			n++
		}
	}
	return n
}

func (x *request) deviceView(d *deviceRow) object {
	out := object{
		"id": d.id, "url": fmt.Sprintf("%s/api/dcim/devices/%d/", x.base(), d.id), "display_url": fmt.Sprintf("%s/dcim/devices/%d/", x.base(), d.id), "display": d.Name, "name": d.Name,
		"device_type": x.nested("dcim/device-types", d.kind.id, d.kind.Model, object{"model": d.kind.Model, "slug": slugify(d.kind.Model), "manufacturer": x.manufacturerRef(d.kind), "device_count": 0}),
		"role":        x.roleRef(d.role), "site": x.siteRef(d.site), "tenant": nil, "platform": nil, "location": nil, "rack": nil, "position": nil, "face": nil, "parent_device": nil,
		"serial": d.Serial, "asset_tag": nil, "status": choiceOf(d.Status), "airflow": nil, "primary_ip": nil, "primary_ip4": nil, "primary_ip6": nil, "oob_ip": nil,
		"cluster": nil, "virtual_chassis": nil, "vc_position": nil, "vc_priority": nil, "description": "", "comments": "", "config_template": nil, "local_context_data": nil,
		"tags": x.tagRefs(d.tags), "custom_fields": x.customFields("dcim.device", d.CustomFields), "created": stamp(d.created), "last_updated": stamp(d.updated),
		"latitude": nil, "longitude": nil, "interface_count": len(x.ofDevice[d.id]), "config_context": object{},
	}
	for _, part := range []string{"console_port", "console_server_port", "power_port", "power_outlet", "front_port", "rear_port", "device_bay", "module_bay", "inventory_item"} {
		out[part+"_count"] = 0
	}
	delete(out["device_type"].(object), "name")
	if d.Name == "" {
		out["name"], out["display"] = nil, fmt.Sprintf("%s (%d)", d.kind.Model, d.id)
	}
	if d.Context != nil {
		out["config_context"] = d.Context
	}
	if d.location != 0 {
		out["location"] = x.nested("dcim/locations", d.location, d.Location, object{"slug": slugify(d.Location), "rack_count": 0, "_depth": 0})
	}
	if d.rack != nil {
		out["rack"] = x.nested("dcim/racks", d.rack.id, d.rack.name, nil)
	}
	if d.platform != 0 {
		out["platform"] = x.nested("dcim/platforms", d.platform, d.Platform, object{"slug": d.Platform})
	}
	if d.Position != 0 {
		out["position"] = decimal(d.Position)
		out["face"] = choiceOf("front")
	}
	if d.parent != 0 {
		out["parent_device"] = x.nested("dcim/devices", d.parent, d.Parent, object{"device_bay": nil})
	}
	if d.oob != nil {
		out["oob_ip"] = x.addressRef(d.oob)
	}
	if x.atLeast(4, 5) {
		out["owner"] = nil
	}
	if x.atLeast(4, 7) {
		out["cooling_method"], out["cooling_intake_count"], out["cooling_outflow_count"] = nil, 0, 0
	}
	return out
}

// decimal is a number that NetBox prints with one decimal place.
type decimal float64

func (d decimal) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%.1f", float64(d)), nil }

func (x *request) cableRef(i *interfaceRow, segment int) object {
	id := i.id*10 + int64(segment)
	return object{"id": id, "url": fmt.Sprintf("%s/api/dcim/cables/%d/", x.base(), id), "display": fmt.Sprintf("#%d", id), "label": "", "description": ""}
}

// owner is the end of a path from which its cables are numbered: the seeded one.
func owner(i *interfaceRow) *interfaceRow {
	if len(i.peers()) == 0 && len(i.far) > 0 {
		return i.far[0]
	}
	return i
}

func (x *request) interfaceRef(i *interfaceRow) object {
	display := i.Name
	if i.Label != "" {
		display += " (" + i.Label + ")"
	}
	out := x.nested("dcim/interfaces", i.id, i.Name, object{"display": display, "description": i.Text, "device": x.deviceRef(i.device), "cable": nil, "_occupied": false})
	if cabled(i) {
		own := owner(i)
		segment := 0
		if own != i {
			segment = len(own.Panels)
		}
		out["cable"], out["_occupied"] = x.cableRef(own, segment), true
	}
	return out
}

// cabled interfaces have a far end, or a cable that ends in a panel.
func cabled(i *interfaceRow) bool { return connected(i) || len(i.Panels) > 0 }

func connected(i *interfaceRow) bool { return len(i.peers()) > 0 || len(i.far) > 0 }

// endpoints are the far ends of a path, through any number of panels.
func (x *request) endpoints(i *interfaceRow) (ends any, kind any) {
	if !connected(i) {
		return nil, nil
	}
	if p := i.peers(); len(p) > 0 && p[0].Kind != "" && p[0].Kind != "dcim.interface" {
		d := x.deviceOf(p[0].Device, i.device.site.Slug, "leaf")
		return []object{{"id": 1, "url": x.base() + "/api/dcim/other-ports/1/", "display": p[0].Port, "device": x.deviceRef(d), "name": p[0].Port, "description": "", "cable": x.cableRef(i, 0), "_occupied": true}}, p[0].Kind
	}
	var list []object
	for _, f := range i.far {
		list = append(list, x.interfaceRef(f))
	}
	return list, "dcim.interface"
}

// linkPeers are the next hop only: a front port when there is a panel.
func (x *request) linkPeers(i *interfaceRow) ([]object, any) {
	own := owner(i)
	switch {
	case !cabled(i):
		return []object{}, nil
	case len(own.Panels) == 0:
		ends, kind := x.endpoints(i)
		list, _ := ends.([]object)
		return list, kind
	}
	panel, segment := own.Panels[0], 0
	if own != i {
		panel, segment = own.Panels[len(own.Panels)-1], len(own.Panels)
	}
	return []object{x.panelPort(own, "front-ports", "F1", panel, segment)}, "dcim.frontport"
}

func (x *request) panelPort(own *interfaceRow, kind, name, panel string, segment int) object {
	d := x.deviceOf(panel, own.device.site.Slug, "patch-panel")
	return x.nested("dcim/"+kind, d.id*100+own.id%100, name, object{"device": x.deviceRef(d), "cable": x.cableRef(own, segment), "_occupied": true})
}

func (x *request) macRef(i *interfaceRow, n int) object {
	text := strings.ToUpper(i.macs()[n])
	return object{"id": i.macIDs[n], "url": fmt.Sprintf("%s/api/dcim/mac-addresses/%d/", x.base(), i.macIDs[n]), "display": text, "mac_address": text, "description": ""}
}

func (x *request) interfaceView(i *interfaceRow) object {
	ref := x.interfaceRef(i)
	ends, kind := x.endpoints(i)
	peers, peersType := x.linkPeers(i)
	macs := []object{}
	for n := range i.macs() {
		macs = append(macs, x.macRef(i, n))
	}
	out := object{
		"id": i.id, "url": ref["url"], "display_url": fmt.Sprintf("%s/dcim/interfaces/%d/", x.base(), i.id), "display": ref["display"], "device": ref["device"], "name": i.Name, "label": i.Label,
		"type": choiceOf(i.Type), "enabled": !i.Disabled, "parent": nil, "bridge": nil, "lag": nil, "mtu": nil, "mac_address": nil, "primary_mac_address": nil, "mac_addresses": macs,
		"mgmt_only": i.MgmtOnly, "description": i.Text, "mark_connected": false, "cable": ref["cable"], "cable_end": nil, "link_peers": peers, "link_peers_type": peersType,
		"connected_endpoints": ends, "connected_endpoints_type": kind, "connected_endpoints_reachable": connected(i) && !owner(i).Planned,
		"tags": []object{}, "custom_fields": object{}, "created": stamp(x.started), "last_updated": stamp(x.started), "_occupied": ref["_occupied"],
	}
	for _, key := range []string{
		"duplex", "l2vpn_termination", "mode", "module", "poe_mode", "poe_type", "qinq_svlan", "rf_channel", "rf_channel_frequency", "rf_channel_width",
		"rf_role", "speed", "tx_power", "untagged_vlan", "vlan_translation_policy", "vrf", "wireless_link", "wwn",
	} {
		out[key] = nil
	}
	for _, key := range []string{"tagged_vlans", "vdcs", "wireless_lans"} {
		out[key] = []object{}
	}
	out["count_fhrp_groups"], out["count_ipaddresses"] = 0, 0
	if x.atLeast(4, 5) {
		out["owner"] = nil
	}
	if x.atLeast(4, 7) {
		out["bridge_interfaces"], out["channels"], out["channel_id"] = []object{}, nil, nil
	}
	if i.MAC != "" {
		out["mac_address"], out["primary_mac_address"] = strings.ToUpper(i.MAC), x.macRef(i, 0)
	}
	if cabled(i) {
		out["cable_end"] = "A"
		if owner(i) != i {
			out["cable_end"] = "B"
		}
	}
	if lag := x.interfaceOf(i.device, i.LAG); i.LAG != "" && lag != nil {
		out["lag"] = x.lagRef(lag)
	}
	return out
}

// trace answers /trace/: near ends, cable, far ends of each segment. The
// status of a cable is a bare string here and nowhere else.
func (x *request) trace(id int64) {
	i, ok := x.byID[id]
	if !ok {
		x.fail(404, "No Interface matches the given query.")
		return
	}
	own := owner(i)
	segments := []any{}
	near := []object{x.interfaceRef(own)}
	cable := func(n int) object {
		c := x.cableRef(own, n)
		delete(c, "display")
		maps.Copy(c, object{"status": "connected", "display_url": x.pageOf("dcim/cables", c["id"].(int64)), "type": nil, "color": "", "length": nil, "length_unit": nil})
		if own.Planned && n == len(own.Panels) {
			c["status"] = "planned"
		}
		return c
	}
	if cabled(own) {
		for n, panel := range own.Panels {
			// Trunks run from rear port to rear port, patch cables end at front ports.
			in, out := "F1", "R1"
			inKind, outKind := "front-ports", "rear-ports"
			if n%2 == 1 {
				in, out, inKind, outKind = out, in, outKind, inKind
			}
			segments = append(segments, []any{near, cable(n), []object{x.panelPort(own, inKind, in, panel, n)}})
			near = []object{x.panelPort(own, outKind, out, panel, n+1)}
		}
		ends, _ := x.endpoints(own)
		segments = append(segments, []any{near, cable(len(own.Panels)), ends})
	}
	if own != i {
		slices.Reverse(segments)
		for _, s := range segments {
			seg := s.([]any)
			seg[0], seg[2] = seg[2], seg[0]
		}
	}
	x.answer(200, segments)
}

func (x *request) addressView(a *addressRow) object {
	out := x.addressRef(a)
	more := object{
		"status": choiceOf(a.status), "assigned_object_type": nil, "assigned_object_id": nil, "assigned_object": nil, "nat_inside": nil, "nat_outside": []object{},
		"vrf": nil, "tenant": nil, "role": nil, "tags": []object{}, "custom_fields": object{}, "last_updated": stamp(a.updated), "created": stamp(a.updated),
	}
	maps.Copy(out, more)
	if a.on != nil {
		out["assigned_object_type"], out["assigned_object_id"], out["assigned_object"] = "dcim.interface", a.on.id, x.interfaceRef(a.on)
	}
	if a.inside != nil {
		out["nat_inside"] = x.insideRef(a.inside)
	}
	return out
}

func (x *request) typeView(t *typeRow) object {
	return object{
		"id": t.id, "url": fmt.Sprintf("%s/api/dcim/device-types/%d/", x.base(), t.id), "display": t.Model, "manufacturer": x.manufacturerRef(t), "model": t.Model, "slug": slugify(t.Model),
		"description": "", "custom_fields": x.customFields("dcim.devicetype", t.CustomFields), "tags": []object{}, "created": stamp(x.started), "last_updated": stamp(x.started),
	}
}

func (x *request) siteView(s *siteRow) object {
	return object{
		"id": s.id, "url": fmt.Sprintf("%s/api/dcim/sites/%d/", x.base(), s.id), "display": s.Slug, "name": s.Slug, "slug": s.Slug, "status": choiceOf("active"),
		"description": "", "custom_fields": x.customFields("dcim.site", s.CustomFields), "tags": []object{}, "created": stamp(x.started), "last_updated": stamp(x.started),
	}
}

func (x *request) rackView(r *rackRow) object {
	out := x.nested("dcim/racks", r.id, r.name, object{
		"display_url": x.pageOf("dcim/racks", r.id), "site": x.siteRef(r.site), "location": nil, "status": choiceOf("active"), "u_height": 42,
		"tags": []object{}, "custom_fields": object{}, "created": stamp(x.started), "last_updated": stamp(x.started),
		"device_count": x.countOf(func(d *deviceRow) bool { return d.rack == r }),
	})
	return out
}

func (x *request) namedView(kind string, r *nameRow) object {
	out := x.nested(kind, r.id, r.name, object{
		"slug": r.slug, "display_url": x.pageOf(kind, r.id), "color": "9e9e9e", "tags": []object{}, "custom_fields": object{}, "created": stamp(x.started), "last_updated": stamp(x.started),
	})
	if kind == "dcim/device-roles" {
		maps.Copy(out, object{
			"vm_role": true, "config_template": nil, "parent": nil, "comments": "", "virtualmachine_count": 0, "_depth": 0,
			"device_count": x.countOf(func(d *deviceRow) bool { return d.role == r }),
		})
	}
	if x.atLeast(4, 5) {
		out["owner"] = nil
	}
	return out
}
