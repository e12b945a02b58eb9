package netbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/netip"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// across finds devices that share a MAC or an out-of-band address with another
// device, whether that one is part of the run or not.
func (w *world) across(intents []*plan.Intent) {
	holders := map[plan.MAC][]macHolder{}
	for _, h := range w.holders {
		if logicalType(h.Type) {
			continue
		}
		for _, mac := range h.macs() {
			holders[mac] = append(holders[mac], h)
		}
	}
	twins := map[netip.Addr][]ipAddress{}
	for _, a := range w.twins {
		host, _, _ := strings.Cut(a.Address, "/")
		if addr, err := netip.ParseAddr(host); err == nil {
			twins[addr] = append(twins[addr], a)
		}
	}
	for _, in := range intents {
		for _, mac := range identity(in) {
			for _, h := range holders[mac] {
				if h.Device.ID != in.ID {
					w.clash(in, "MAC", mac.String(), h.Device.Name, h.Name, w.client.page("dcim/interfaces", h.ID))
				}
			}
		}
		if in.OOB.IsValid() {
			w.sameAddress(in, twins[in.OOB])
		}
	}
}

// identity are the MACs by which DHCP and Ironic know a device.
func identity(in *plan.Intent) []plan.MAC {
	set := map[plan.MAC]bool{in.BMCMAC: true}
	for _, nic := range in.Frontend {
		set[nic.MAC] = true
	}
	return sortedMACs(set)
}

// sameAddress compares within one VRF: addresses of different ones may be equal.
func (w *world) sameAddress(in *plan.Intent, twins []ipAddress) {
	mine := w.addresses[w.devices[in.Name][0].OOB.ID]
	for _, a := range twins {
		if a.ID == mine.ID || a.VRF.id() != mine.VRF.id() || a.Assigned == nil || a.Assigned.Device == nil || a.Assigned.Device.ID == in.ID {
			continue
		}
		w.clash(in, "out-of-band address", in.OOB.String(), a.Assigned.Device.Name, a.Assigned.Name, w.client.page("ipam/ip-addresses", a.ID))
	}
}

func (w *world) clash(in *plan.Intent, what, value, device, iface, at string) {
	in.Faults = append(in.Faults, plan.NewFault(plan.CodeIntentAmbiguous, "%s has the %s %s, and so has %s of %s", clean(in.Name, 80), what, value, clean(iface, 60), clean(device, 80)).
		With("device", in.Name).With("url", in.URL).With("other", at).WithHint("Correct the one of the two that is wrong."))
}

// macs are all addresses of the interface, without repetition.
func (h *macHolder) macs() []plan.MAC {
	set := map[plan.MAC]bool{}
	texts := []macObject{}
	if h.MAC != nil {
		texts = append(texts, macObject{Address: *h.MAC})
	}
	for _, m := range append(texts, h.MACs...) {
		if mac, err := plan.ParseMAC(m.Address); err == nil {
			set[mac] = true
		}
	}
	return sortedMACs(set)
}

// name is "" for a reference that is null.
func (r *ref) name() string {
	if r == nil {
		return ""
	}
	return r.Name
}

// id is 0 for a reference that is null.
func (r *ref) id() int64 {
	if r == nil {
		return 0
	}
	return r.ID
}

// sources lists the NetBox objects that the intent rests on.
func (d *draft) sources() {
	w, c := d.world, d.world.client
	add := func(url, updated string, object any) {
		d.Sources = append(d.Sources, plan.SourceObject{URL: url, LastUpdated: updated, Hash: hashOf(object)})
	}
	add(d.URL, d.device.LastUpdated, d.device)
	add(c.page("dcim/sites", w.siteObject.ID), w.siteObject.LastUpdated, w.siteObject)
	if t, ok := w.types[d.device.DeviceType.ID]; ok {
		add(c.page("dcim/device-types", t.ID), t.LastUpdated, t)
	}
	if list := w.interfaces[d.ID]; len(list) > 0 {
		add(d.URL+"interfaces/", "", list) // the newest change of many objects says nothing; the hash does
	}
	if d.device.OOB != nil {
		if a, ok := w.addresses[d.device.OOB.ID]; ok {
			add(c.page("ipam/ip-addresses", a.ID), a.LastUpdated, a)
		}
	}
}

// hash covers what decisions rest on. What enroll itself changes during an
// apply is left out (status, tags, platform_class, times), so that an equal hash
// means: nobody else moved the record. Codes and texts of faults are in it,
// because they speak of things that are nowhere else in the intent.
func (w *world) hash(in *plan.Intent) string {
	fields := maps.Clone(in.CustomFields)
	delete(fields, "platform_class")
	faults := make([]string, len(in.Faults))
	for i, f := range in.Faults {
		faults[i] = string(f.Code) + " " + f.Summary
	}
	return hashOf(map[string]any{
		"site": in.Site, "name": in.Name, "id": in.ID, "serial": in.Serial, "role": in.Role, "class": in.Class, "gpu": in.GPU,
		"manufacturer": in.Manufacturer, "model": in.Model, "device_type": in.DeviceTypeSlug, "platform": in.Platform,
		"rack": in.Rack, "position": in.Position, "custom_fields": fields, "config_context": in.ConfigContext,
		"oob": in.OOB, "bmc_interface": in.BMCInterface, "bmc_mac": in.BMCMAC, "frontend": in.Frontend, "ntp": in.NTPServers, "computed_class": in.ComputedClass, "faults": faults,
	})
}

// hashOf is SHA-256 over JSON, which Go writes canonically: keys sorted, one
// spelling of every number.
func hashOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte(err.Error()) // not reached: only decoded JSON and plain structs are hashed
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
