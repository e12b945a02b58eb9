package schema

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/enroll-dev/enroll/plan"
)

// deviceType is the shape of device.*. What NetBox leaves open is null.
func deviceType() map[string]cty.Type {
	return map[string]cty.Type{
		"name": cty.String, "id": cty.Number, "serial": cty.String, "site": cty.String, "status": cty.String,
		"role": cty.String, "class": cty.String, "gpu": cty.Bool, "manufacturer": cty.String, "model": cty.String,
		"device_type": cty.String, "platform": cty.String, "rack": cty.String, "position": cty.String, "oob_ip": cty.String,
		"tags": cty.List(cty.String), "custom_fields": cty.DynamicPseudoType, "config_context": cty.DynamicPseudoType,
	}
}

// deviceDocs explains each attribute of device.* for the reference page.
func deviceDocs() map[string]string {
	return map[string]string{
		"name": "the device's name", "id": "NetBox's number of the device", "serial": "the serial number",
		"site": "slug of the NetBox site", "status": "NetBox's status value, for example `staged`", "role": "slug of the role",
		"class": "label of the `device_class` that has the role", "gpu": "whether that class has GPUs",
		"manufacturer": "name of the manufacturer", "model": "model of the device type", "device_type": "slug of the device type",
		"platform": "slug of the platform", "rack": "name of the rack", "position": "rack unit, a text such as `10` or `10.5`",
		"oob_ip":        "the out-of-band address, a text without a prefix length",
		"tags":          "slugs of the tags, a list of texts",
		"custom_fields": "the custom fields by name; a field that may be missing is read with `try`", "config_context": "the rendered config context",
	}
}

// unknownDevice is a device before there is one.
func unknownDevice() cty.Value {
	attrs := map[string]cty.Value{}
	for name, t := range deviceType() {
		attrs[name] = cty.UnknownVal(t)
	}
	return cty.ObjectVal(attrs)
}

func deviceValue(i *plan.Intent) cty.Value { return deviceValueOf(i, nil) }

// deviceValueOf leaves out what is not used: config contexts can be large. Nil
// means all.
func deviceValueOf(i *plan.Intent, uses map[string]bool) cty.Value {
	attrs := map[string]cty.Value{}
	set := func(name string, value func() cty.Value) {
		if uses == nil || uses[name] {
			attrs[name] = value()
		}
	}
	for name, s := range map[string]string{
		"name": i.Name, "serial": i.Serial, "site": i.Site, "status": i.Status, "role": i.Role, "class": i.Class, "manufacturer": i.Manufacturer,
		"model": i.Model, "device_type": i.DeviceTypeSlug, "platform": i.Platform, "rack": i.Rack, "position": i.Position,
	} {
		set(name, func() cty.Value { return textOrNull(s) })
	}
	set("id", func() cty.Value { return cty.NumberIntVal(i.ID) })
	set("gpu", func() cty.Value { return cty.BoolVal(i.GPU) })
	set("oob_ip", func() cty.Value {
		if !i.OOB.IsValid() {
			return textOrNull("")
		}
		return cty.StringVal(i.OOB.String())
	})
	set("tags", func() cty.Value {
		if len(i.Tags) == 0 {
			return cty.ListValEmpty(cty.String)
		}
		list := make([]cty.Value, len(i.Tags))
		for n, t := range i.Tags {
			list[n] = cty.StringVal(t)
		}
		return cty.ListVal(list)
	})
	set("custom_fields", func() cty.Value { return jsonObject(i.CustomFields) })
	set("config_context", func() cty.Value { return jsonObject(i.ConfigContext) })
	return cty.ObjectVal(attrs)
}

// deviceUses are the attributes of device that a block's expressions use.
func deviceUses(b *rawBlock) map[string]bool {
	uses := map[string]bool{}
	for _, a := range perDevice(b) {
		for _, t := range a.expr.Variables() {
			if root, name := (reference{steps: t}).names(); root == "device" {
				uses[name] = true
			}
		}
	}
	return uses
}

func textOrNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

func jsonObject(m map[string]any) cty.Value {
	attrs := map[string]cty.Value{}
	for name, v := range m {
		attrs[name] = jsonValue(v)
	}
	return cty.ObjectVal(attrs)
}

// jsonValue takes what encoding/json decodes into.
func jsonValue(v any) cty.Value {
	switch v := v.(type) {
	case nil:
		return cty.NullVal(cty.DynamicPseudoType)
	case string:
		return cty.StringVal(v)
	case bool:
		return cty.BoolVal(v)
	case map[string]any:
		return jsonObject(v)
	case []any:
		list := make([]cty.Value, len(v))
		for i := range v {
			list[i] = jsonValue(v[i])
		}
		return cty.TupleVal(list)
	}
	n, err := cty.ParseNumberVal(fmt.Sprint(v))
	if err != nil {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return n
}

// Settings evaluates for one device what depends on the device. It may be
// called from many goroutines.
func (f *File) Settings(intent *plan.Intent) (plan.Settings, Diagnostics) {
	s := plan.Settings{Hostname: intent.Name, NTPServers: intent.NTPServers, Set: map[string]string{}}
	if len(intent.NTPServers) > 0 && intent.URL != "" {
		s.Set["bmc.ntp"] = intent.URL
	}
	if f.bmc == nil {
		return s, nil
	}
	r := &reporter{sources: f.sources, flowing: f.flowing}
	sc := f.scope.with("device", deviceValueOf(intent, f.uses))
	for _, a := range f.perDevice {
		value, ok := r.goValue(a, sc)
		if !ok || value == nil {
			r.explainNulls(a, intent)
			continue
		}
		key := a.path
		switch a.path {
		case "bmc.credential":
			s.BMCPassword = value.(plan.SecretRef)
		case "bmc.factory_credential":
			s.BMCFactory = value.(plan.SecretRef)
		case "bmc.username":
			s.BMCUsername = value.(plan.SecretRef)
		case "bmc.hostname":
			s.Hostname = value.(string)
		case "bmc.ntp_servers", "bmc.ntp.servers":
			s.NTPServers, key = value.([]string), "bmc.ntp"
		case "bmc.syslog.servers":
			s.SyslogServers, key = value.([]string), "bmc.syslog"
		}
		s.Set[key] = place(a.at)
	}
	if f.bmc.attr("username") == nil && !s.BMCPassword.IsZero() {
		s.BMCUsername = plan.SecretRef{Item: s.BMCPassword.Item, Field: "username"}
	}
	if f.bmc.attr("hostname") == nil {
		if err := isHostName(intent.Name); err != nil {
			r.error(f.bmc.at, "Unsuitable host name", "The BMC's host name is the device's name %s unless the bmc block sets hostname, and it %s. Rename the device, or write: hostname = %s", quote(intent.Name), err, f.bmc.spec.attribute("hostname").example)
		}
	}
	return s, r.finish()
}

// perDevice lists the attributes of a block and below that are evaluated for
// each device.
func perDevice(b *rawBlock) []*rawAttr {
	var out []*rawAttr
	for _, a := range b.attrs {
		if a.spec.perDevice {
			out = append(out, a)
		}
	}
	for _, child := range b.blocks {
		out = append(out, perDevice(child)...)
	}
	return out
}

// explainNulls adds to the failure of an attribute which of the device's
// attributes NetBox leaves empty.
func (r *reporter) explainNulls(a *rawAttr, intent *plan.Intent) {
	device := deviceValue(intent)
	empty := map[string]bool{}
	for _, t := range a.expr.Variables() {
		root, name := (reference{steps: t}).names()
		if root == "device" && device.Type().HasAttribute(name) && device.GetAttr(name).IsNull() {
			empty["device."+name] = true
		}
	}
	if len(empty) == 0 || len(r.diags) == 0 {
		return
	}
	r.diags[len(r.diags)-1].Detail += fmt.Sprintf(" NetBox has nothing for %s of the device %s: fill it in there, or write a default with coalesce or try.", listed(sortedNames(empty), "and"), quote(intent.Name))
}
