package netbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/enroll-dev/enroll/plan"
)

// draft is an intent while it is put together.
type draft struct {
	*plan.Intent
	world  *world
	device device
}

// gap adds a fault about the device; url is the page where it can be filled in.
func (d *draft) gap(code plan.Code, url, format string, args ...any) remark {
	r := d.remark(code, url, format, args)
	d.Faults = append(d.Faults, r.fault)
	return r
}

// warn adds a warning about the device.
func (d *draft) warn(code plan.Code, url, format string, args ...any) remark {
	r := d.remark(code, url, format, args)
	d.Warnings = append(d.Warnings, r.fault)
	return r
}

// remark says foreign names as printable text only, whatever stands in them.
func (d *draft) remark(code plan.Code, url, format string, args []any) remark {
	return remark{plan.NewFault(code, "%s", printable(format, args)).With("device", d.Name).With("url", url)}
}

// longestText is more than any summary has whose parts have a sensible length.
const longestText = 1500

func printable(format string, args []any) string {
	return clean(fmt.Sprintf(format, args...), longestText)
}

// remark is a fault that is recorded already; it may be said more exactly.
type remark struct{ fault *plan.Fault }

func (r remark) with(key, value string) remark {
	r.fault = r.fault.With(key, value)
	return r
}

func (r remark) hint(format string, args ...any) remark {
	r.fault = r.fault.WithHint("%s", printable(format, args))
	return r
}

func (r remark) because(err error) remark {
	r.fault = r.fault.Because(err)
	return r
}

// eligible is the status gate of the reference workflow.
func eligible(status string) bool { return status == statusStaged || status == statusActive }

func (w *world) class(d device) plan.DeviceClass {
	for _, class := range w.site.Classes {
		if slices.Contains(class.Roles, d.Role.Slug) {
			return class
		}
	}
	return plan.DeviceClass{}
}

// find gives the one device of that name, or says why there is none.
func (w *world) find(name string) (device, *plan.Fault) {
	found := w.devices[name]
	list := w.client.base + "/dcim/devices/"
	switch {
	case placeholder(name):
		return device{}, plan.NewFault(plan.CodeIntentInvalid, "the device name %q is a placeholder, not a name", clean(name, 80)).With("device", name).With("url", list)
	case len(found) > 1:
		f := plan.NewFault(plan.CodeDeviceAmbiguous, "site %s has %d devices with the name %s", w.slug, len(found), clean(name, 80)).With("device", name).With("url", list)
		for _, other := range found {
			f = f.With(fmt.Sprintf("device_%d", other.ID), w.client.page("dcim/devices", other.ID))
		}
		return device{}, f
	case len(found) == 1:
		return found[0], nil
	}
	f := plan.NewFault(plan.CodeDeviceNotFound, "NetBox shows no device %s in site %s: it does not exist, or the token may not see it", clean(name, 80), w.slug).With("device", name).With("url", list)
	// NetBox's filter ignores case and gives such devices too; a plan must not be
	// made for them.
	for other := range w.devices {
		if strings.EqualFold(other, name) {
			f = f.With("similar", clean(other, 80)).WithHint("NetBox has %s; names are compared exactly, so write the name as NetBox has it.", clean(other, 80))
		}
	}
	return device{}, f
}

// intent puts one device together from what was read.
func (w *world) intent(raw device) *plan.Intent {
	d := &draft{Intent: &plan.Intent{Site: w.slug, Name: *raw.Name}, world: w, device: raw}
	d.basics()
	if !d.routed() {
		return d.Intent // the rest is noise about a device that nobody enrols
	}
	d.gates()
	d.context()
	d.platform()
	d.oob()
	d.frontend()
	d.ntp()
	return d.Intent
}

func (d *draft) basics() {
	raw := d.device
	d.ID, d.URL = raw.ID, d.world.client.page("dcim/devices", raw.ID)
	d.Status, d.Serial = string(raw.Status), strings.TrimSpace(raw.Serial)
	d.Role = raw.Role.Slug
	class := d.world.class(raw)
	d.Class, d.GPU = class.Name, class.GPU
	d.Model, d.DeviceTypeSlug = raw.DeviceType.Model, raw.DeviceType.Slug
	if raw.DeviceType.Manufacturer != nil {
		d.Manufacturer = raw.DeviceType.Manufacturer.Name
	}
	if raw.Platform != nil {
		d.Platform = raw.Platform.Slug
	}
	if raw.Rack != nil {
		d.Rack = raw.Rack.Name
	}
	if raw.Position != nil {
		d.Position = strings.TrimSuffix(raw.Position.String(), ".0")
	}
	d.Tags = []string{}
	for _, t := range raw.Tags {
		d.Tags = append(d.Tags, t.Slug)
	}
	slices.Sort(d.Tags)
	d.CustomFields = unwrapFields(raw.CustomFields)
	d.sources()
}

// routed is the routing preflight: it comes before every other judgement.
func (d *draft) routed() bool {
	switch {
	case d.Class == "":
		d.gap(plan.CodeRoutingUnresolved, d.URL, "%s has the role %s, which no device_class of site %s lists", d.Name, d.Role, d.world.site.Name).
			with("phase", "resolve_ironic_instance")
	case !managed(d.world.site, d.Class):
		d.gap(plan.CodeRoutingUnresolved, d.URL, "%s is of class %s (role %s), which no ironic block of site %s manages", d.Name, d.Class, d.Role, d.world.site.Name).
			with("phase", "resolve_ironic_instance")
	default:
		return true
	}
	return false
}

// gates are the status gate, the place and the identity.
func (d *draft) gates() {
	if strings.ContainsFunc(d.Name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		d.gap(plan.CodeIntentInvalid, d.URL, "the device name %q holds characters that cannot be printed", d.Name).hint("Rename the device in NetBox.")
	}
	if !eligible(d.Status) {
		d.gap(plan.CodeStatusNotEligible, d.URL, "%s has the status %s; only staged and active devices are enrolled", d.Name, d.Status)
	}
	if circle := d.parents(); circle != "" {
		d.gap(plan.CodeIntentInvalid, d.URL, "%s is in a bay of itself: %s", d.Name, circle).hint("Correct the device bays in NetBox.")
	}
	// A child device in a bay has no position of its own.
	if d.Rack != "" && d.Position == "" && d.device.Parent == nil && !d.world.site.NetBox.AllowUnplaced {
		d.gap(plan.CodeDeviceNotPlaced, d.URL, "%s is in rack %s without a position", d.Name, d.Rack).
			hint("Record the rack unit of %s in NetBox; allow_unplaced in the netbox block waives it for the site.", d.Name)
	}
	switch {
	case placeholder(d.Serial):
		d.gap(plan.CodeIntentInvalid, d.URL, "the serial number of %s is the placeholder %q", d.Name, d.Serial).
			hint("Write the serial number of the machine into NetBox, or leave it empty.")
	case d.Serial == "":
		d.warn(plan.CodeIntentIncomplete, d.URL, "%s has no serial number in NetBox, so the BMC cannot be proven to be its own", d.Name).
			hint("Write the serial number of the machine into NetBox.")
	}
}

// parents gives the way around when a device is in a bay of itself, by way of
// other devices of this reading; "" when it is not.
func (d *draft) parents() string {
	way := []string{d.Name}
	for at := d.device; at.Parent != nil && len(way) <= len(d.world.byID)+1; {
		way = append(way, clean(at.Parent.Name, 80))
		if at.Parent.ID == d.ID {
			return strings.Join(way, " → ")
		}
		next, known := d.world.byID[at.Parent.ID]
		if !known {
			return ""
		}
		at = next
	}
	return ""
}

// context takes the rendered config context.
func (d *draft) context() {
	at := d.URL + "config-context/"
	r := d.world.contexts[d.ID]
	if r.err != nil {
		d.gap(plan.CodeIntentInvalid, at, "the config context of %s cannot be used", d.Name).because(r.err)
		return
	}
	decoded := r.values
	d.ConfigContext, d.Ironic = decoded, r.ironic.IronicContext
	for _, f := range r.found {
		switch {
		case f.Unknown:
			d.warn(plan.CodeIntentInvalid, at, "config context of %s: %s %s", d.Name, f.Path, f.Text).with("path", f.Path).
				hint("Remove the key, or correct its name.")
		case f.Missing:
			d.gap(plan.CodeIntentIncomplete, at, "config context of %s: %s %s", d.Name, f.Path, f.Text).with("path", f.Path).
				hint("Set %s in a config context that applies to %s.", f.Path, d.Name)
		default:
			d.gap(plan.CodeIntentInvalid, at, "config context of %s: %s %s", d.Name, f.Path, f.Text).with("path", f.Path).
				hint("Correct %s in the config context that sets it; the page shows which one does.", f.Path)
		}
	}
	switch v := decoded["inspection_validation"].(type) {
	case nil:
	case map[string]any:
		d.Inspection = v
	default:
		d.gap(plan.CodeIntentInvalid, at, "config context of %s: inspection_validation is %s, not an object", d.Name, kindOf(v)).with("path", "inspection_validation")
	}
}

// ntp takes the servers of the NetBox site, else those of the config context.
func (d *draft) ntp() {
	w := d.world
	if v := w.siteObject.CustomFields["ntp_servers"]; v != nil && v != "" {
		list, err := servers(v)
		if err != nil {
			at := w.client.page("dcim/sites", w.siteObject.ID)
			d.gap(plan.CodeIntentInvalid, at, "custom field ntp_servers of NetBox site %s is not a list of servers", w.slug).because(err)
		}
		d.NTPServers = list
		if len(list) > 0 || err != nil {
			return
		}
	}
	list, err := servers(d.ConfigContext["ntp"])
	if err != nil {
		d.gap(plan.CodeIntentInvalid, d.URL+"config-context/", "config context of %s: ntp is not a list of servers", d.Name).with("path", "ntp").because(err)
	}
	d.NTPServers = list
}

// servers reads the forms in which sites keep lists of servers: a JSON list, a
// text with commas or white space, {"servers": …}.
func servers(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return cleanServers(strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' }))
	case []any:
		list := make([]string, 0, len(v))
		for _, el := range v {
			s, ok := el.(string)
			if !ok {
				return nil, fmt.Errorf("an entry is %s, not a string", kindOf(el))
			}
			list = append(list, strings.TrimSpace(s))
		}
		return cleanServers(list)
	case map[string]any:
		inner, ok := v["servers"]
		if _, nested := inner.(map[string]any); ok && !nested {
			return servers(inner)
		}
	}
	return nil, fmt.Errorf("it is %s", kindOf(v))
}

// cleanServers accepts host names and addresses only: the values go to BMCs.
func cleanServers(list []string) ([]string, error) {
	for _, s := range list {
		if _, err := netip.ParseAddr(s); err == nil {
			continue
		}
		rest := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")
		if s == "" || placeholder(s) || rest != "" {
			return nil, fmt.Errorf("%q is no host name or address", clean(s, 60))
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}
