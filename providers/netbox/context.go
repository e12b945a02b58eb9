package netbox

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// contextLimit is the largest rendered config context that is decoded.
const contextLimit = 1 << 20

// complaint is one mistake in a config context, by its JSON path.
type complaint struct {
	Path string
	Text string
	// Missing: nothing is there; otherwise what is there is wrong.
	Missing bool
	// Unknown: a key that enroll does not know; it is only a warning.
	Unknown bool
}

// rendered is the config context of a device, decoded once.
type rendered struct {
	values map[string]any
	err    error // why there are no values
	ironic ironicContext
	found  []complaint // about ironic_settings
}

// ironicContext is ironic_settings with what reading NetBox asks of it.
type ironicContext struct{ plan.IronicContext }

// frontend says whether an interface is one of the frontend network: of the type
// that interface_type names, enabled and not for management.
func (c ironicContext) frontend(i netInterface) bool {
	return c.InterfaceType != "" && string(i.Type) == c.InterfaceType && !*i.MgmtOnly && *i.Enabled
}

// lacpMembers says which interfaces are members of an LACP bond: those that the
// bond names, else all of the frontend.
func (c ironicContext) lacpMembers() func(i netInterface) bool {
	return func(i netInterface) bool {
		return c.Bond != nil && c.Bond.Mode == modeLACP && c.frontend(i) && (len(c.Bond.Interfaces) == 0 || slices.Contains(c.Bond.Interfaces, i.Name))
	}
}

func render(raw json.RawMessage) *rendered {
	r := &rendered{}
	if r.values, r.err = decodeContext(raw); r.err == nil {
		r.ironic.IronicContext, r.found = decodeIronic(r.values)
	}
	return r
}

// decodeContext decodes a rendered config context, which is free JSON: it has
// to be an object. Null is the same as an empty one.
func decodeContext(raw json.RawMessage) (map[string]any, error) {
	if len(raw) > contextLimit {
		return nil, fmt.Errorf("the config context has %d bytes; at most %d are read", len(raw), contextLimit)
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return nil, err
	}
	switch decoded := decoded.(type) {
	case map[string]any:
		return decoded, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("the config context is %s, not an object", kindOf(decoded))
}

// bondModes are the modes of the Linux bonding driver, which Ironic takes by name.
func bondModes() []string {
	return []string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}
}

// modeLACP is the bond mode whose switch side is a LAG.
const modeLACP = "802.3ad"

// object reads the keys of one JSON object and collects what is wrong. Null
// counts as absent: that is how a config context of more weight takes a key back.
type object struct {
	path   string
	values map[string]any
	known  map[string]bool
	found  *[]complaint
}

func (o *object) complain(key, format string, args ...any) {
	*o.found = append(*o.found, complaint{Path: o.path + "." + key, Text: fmt.Sprintf(format, args...)})
}

func (o *object) missing(key, text string) {
	*o.found = append(*o.found, complaint{Path: o.path + "." + key, Text: text, Missing: true})
}

func (o *object) value(key string) (any, bool) {
	o.known[key] = true
	v, ok := o.values[key]
	return v, ok && v != nil
}

func (o *object) text(key string) string {
	v, ok := o.value(key)
	if !ok {
		return ""
	}
	s, isText := v.(string)
	switch {
	case !isText:
		o.complain(key, "is %s, not a string", kindOf(v))
	case strings.TrimSpace(s) == "":
		o.complain(key, "is an empty string")
	case placeholder(s):
		o.complain(key, "is the placeholder %q", clean(s, 20))
	default:
		return s
	}
	return ""
}

func (o *object) boolean(key string) bool {
	v, ok := o.value(key)
	if !ok {
		return false
	}
	b, isBool := v.(bool)
	if !isBool {
		o.complain(key, "is %s, not true or false", kindOf(v))
	}
	return b
}

func (o *object) object(key string) map[string]any {
	v, ok := o.value(key)
	if !ok {
		return nil
	}
	m, isObject := v.(map[string]any)
	if !isObject {
		o.complain(key, "is %s, not an object", kindOf(v))
	}
	return m
}

func (o *object) count(key string) int {
	v, ok := o.value(key)
	if !ok {
		return 0
	}
	n, isNumber := v.(float64)
	if !isNumber || n != math.Trunc(n) || n < 0 || n > 1e6 {
		o.complain(key, "is %s, not a whole number from 0 to 1000000", shown(v))
		return 0
	}
	return int(n)
}

func (o *object) texts(key string) []string {
	v, ok := o.value(key)
	if !ok {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		o.complain(key, "is %s, not a list of strings", kindOf(v))
		return nil
	}
	out := make([]string, 0, len(list))
	for i, el := range list {
		s, isText := el.(string)
		if !isText || strings.TrimSpace(s) == "" || placeholder(s) {
			o.complain(fmt.Sprintf("%s[%d]", key, i), "is %s, not a name", shown(el))
			continue
		}
		out = append(out, s)
	}
	return out
}

func (o *object) unknown() {
	for _, key := range sortedKeys(o.values) {
		if !o.known[key] {
			*o.found = append(*o.found, complaint{Path: o.path + "." + clean(key, 60), Text: "is no key that enroll knows; nothing is done with it", Unknown: true})
		}
	}
}

// decodeIronic decodes config context ironic_settings. Driver, interface_type
// and raid_interface are mandatory.
func decodeIronic(context map[string]any) (plan.IronicContext, []complaint) {
	var out plan.IronicContext
	var found []complaint
	raw, ok := context["ironic_settings"]
	if !ok || raw == nil {
		return out, []complaint{{Path: "ironic_settings", Text: "there is no such object in the config context", Missing: true}}
	}
	values, ok := raw.(map[string]any)
	if !ok {
		return out, []complaint{{Path: "ironic_settings", Text: "is " + kindOf(raw) + ", not an object"}}
	}
	o := &object{path: "ironic_settings", values: values, known: map[string]bool{}, found: &found}

	out.Driver = o.text("driver")
	out.InterfaceType = o.text("interface_type")
	out.Interfaces = map[string]string{}
	for _, key := range sortedKeys(values) {
		if !strings.HasSuffix(key, "_interface") {
			continue
		}
		if name := o.text(key); name != "" {
			out.Interfaces[key] = name
		}
	}
	for _, key := range []string{"driver", "interface_type", "raid_interface"} {
		if values[key] == nil {
			o.missing(key, "is not set")
		}
	}
	out.ResourceClass = o.text("resource_class")
	out.CPUArch = o.text("cpu_arch")
	out.Capabilities = o.capabilities("capabilities")
	out.RootDevice = o.object("root_device")
	out.Bond = o.bond("bond")
	out.SkipCableVerification = o.boolean("skip_cable_verification")
	out.RedfishAddress = o.redfishAddress("redfish_address_override")
	out.DriverInfo = o.object("ironic_driver_info")
	out.TargetRAIDConfig = o.object("target_raid_config")
	// Parameters of the older workflow; enroll takes them as flags of a run.
	o.boolean("run_inspection")
	o.boolean("force_inspection")
	o.unknown()
	return out, found
}

// capabilities takes both forms that Ironic's world knows: an object, and the
// string "boot_mode:uefi,secure_boot:true".
func (o *object) capabilities(key string) map[string]string {
	v, ok := o.value(key)
	if !ok {
		return nil
	}
	out := map[string]string{}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			text, isText := v[name].(string)
			if !isText || text == "" {
				o.complain(key+"."+clean(name, 60), "is %s, not a string", shown(v[name]))
				continue
			}
			out[name] = text
		}
	case string:
		for _, pair := range strings.Split(v, ",") {
			name, value, found := strings.Cut(strings.TrimSpace(pair), ":")
			if !found || name == "" || value == "" {
				o.complain(key, "is %q, which is not NAME:VALUE,NAME:VALUE", clean(v, 80))
				return nil
			}
			out[name] = value
		}
	default:
		o.complain(key, "is %s, not an object of strings", kindOf(v))
		return nil
	}
	return out
}

func (o *object) bond(key string) *plan.Bond {
	values := o.object(key)
	if values == nil {
		return nil
	}
	b := &object{path: o.path + "." + key, values: values, known: map[string]bool{}, found: o.found}
	bond := &plan.Bond{
		Mode: b.text("mode"), Miimon: b.count("miimon"), XmitHashPolicy: b.text("xmit_hash_policy"), Interfaces: b.texts("interfaces"),
	}
	switch {
	case values["mode"] == nil:
		b.missing("mode", "is not set")
	case bond.Mode != "" && !slices.Contains(bondModes(), bond.Mode):
		b.complain("mode", "is %q, not one of %s", clean(bond.Mode, 40), strings.Join(bondModes(), ", "))
	}
	b.unknown()
	return bond
}

// redfishAddress checks scheme://host[:port][/redfish/v1/Systems/ID].
func (o *object) redfishAddress(key string) string {
	text := o.text(key)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	id, inSystems := "", false
	if err == nil {
		id, inSystems = strings.CutPrefix(strings.TrimSuffix(u.Path, "/"), "/redfish/v1/Systems/")
	}
	switch {
	case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		o.complain(key, "is not scheme://host:port[/redfish/v1/Systems/ID]")
	case u.User != nil:
		o.complain(key, "holds a user name or password; credentials stand in the vault")
	case u.Path != "" && u.Path != "/" && (!inSystems || id == "" || strings.Contains(id, "/")):
		o.complain(key, "has the path %q; only /redfish/v1/Systems/ID may follow the port", clean(u.Path, 80))
	default:
		return text
	}
	return ""
}

// kindOf names the JSON type of a decoded value, with an article.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

// shown is a short form of a wrong value; nested ones are only named.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", clean(v, 40))
	case bool, float64:
		return fmt.Sprint(v)
	}
	return kindOf(v)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
