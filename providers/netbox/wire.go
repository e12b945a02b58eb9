package netbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Fields asked for, by kind of object. What is not here is not sent, which
// saves NetBox most of its work.
//
//nolint:gochecknoglobals // constant tables
var (
	deviceFields = []string{
		"id", "name", "status", "role", "device_role", "site", "device_type", "platform", "rack", "position", "parent_device",
		"serial", "oob_ip", "tags", "custom_fields", "config_context", "interface_count", "last_updated",
	}
	twinFields      = []string{"id", "name", "site"}
	typeFields      = []string{"id", "slug", "model", "manufacturer", "custom_fields", "last_updated"}
	liveFields      = []string{"id", "name", "status", "tags", "custom_fields", "last_updated"}
	rackFields      = []string{"id", "name", "site"}
	interfaceFields = []string{
		"id", "name", "type", "device", "mgmt_only", "enabled", "mac_address", "primary_mac_address", "mac_addresses",
		"connected_endpoints", "connected_endpoints_type", "connected_endpoints_reachable", "_occupied",
	}
	portFields    = []string{"id", "name", "label", "description", "device", "lag"}
	addressFields = []string{"id", "address", "status", "vrf", "assigned_object_type", "assigned_object_id", "assigned_object", "nat_inside", "last_updated"}
	holderFields  = []string{"id", "name", "type", "device", "mac_address", "mac_addresses"}
	siteFields    = []string{"id", "slug", "custom_fields", "last_updated"}
	slugFields    = []string{"id", "slug"}
	switchFields  = []string{"id", "platform"}
)

// choice is a choice field: {"value","label"}, in some places a bare string.
// Labels are translated and renamed between versions, so only the value counts.
type choice string

func (c *choice) UnmarshalJSON(b []byte) error {
	var object struct {
		Value *string `json:"value"`
	}
	switch {
	case len(b) > 0 && b[0] == '"':
		return json.Unmarshal(b, (*string)(c))
	case string(b) == "null":
		*c = ""
		return nil
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return err
	}
	if object.Value != nil {
		*c = choice(*object.Value)
	}
	return nil
}

// ref is a nested object.
type ref struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Slug    string `json:"slug"`
	Address string `json:"address"` // of IP addresses
}

type tag struct {
	ID   int64  `json:"id"`
	Slug string `json:"slug"`
}

type device struct {
	ID         int64   `json:"id"`
	Name       *string `json:"name"` // NetBox allows devices without a name
	Status     choice  `json:"status"`
	Role       *ref    `json:"role"`
	OldRole    *ref    `json:"device_role"` // the older spelling of role
	Site       *ref    `json:"site"`
	DeviceType *struct {
		ID           int64  `json:"id"`
		Model        string `json:"model"`
		Slug         string `json:"slug"`
		Manufacturer *ref   `json:"manufacturer"`
	} `json:"device_type"`
	Platform      *ref            `json:"platform"`
	Rack          *ref            `json:"rack"`
	Position      *json.Number    `json:"position"`
	Parent        *ref            `json:"parent_device"`
	Serial        string          `json:"serial"`
	OOB           *ref            `json:"oob_ip"`
	Tags          []tag           `json:"tags"`
	CustomFields  map[string]any  `json:"custom_fields"`
	ConfigContext json.RawMessage `json:"config_context"`
	Interfaces    int             `json:"interface_count"`
	LastUpdated   string          `json:"last_updated"`
}

func (d *device) ident() int64 { return d.ID }

func (d *device) check() error {
	if d.ID <= 0 {
		return errors.New("a device without id")
	}
	if d.Role == nil {
		d.Role = d.OldRole
	}
	missing := func(field string) error { return fmt.Errorf("device %d: %s is missing", d.ID, field) }
	switch {
	case d.Status == "":
		return missing("status")
	case d.Role == nil || d.Role.Slug == "":
		return missing("role")
	case d.Site == nil || d.Site.Slug == "":
		return missing("site")
	case d.DeviceType == nil || d.DeviceType.ID <= 0:
		return missing("device_type")
	case d.CustomFields == nil:
		return missing("custom_fields")
	case d.ConfigContext == nil:
		return missing("config_context")
	case d.Tags == nil:
		return missing("tags")
	}
	return nil
}

// twin is a device that is looked at for its name only.
type twin struct {
	ID   int64   `json:"id"`
	Name *string `json:"name"`
	Site *ref    `json:"site"`
}

func (t *twin) ident() int64 { return t.ID }

func (t *twin) check() error {
	if t.ID <= 0 || t.Site == nil {
		return fmt.Errorf("device %d: id or site is missing", t.ID)
	}
	return nil
}

// rack is a rack as a Filter looks for it.
type rack struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Site *ref   `json:"site"`
}

func (r *rack) ident() int64 { return r.ID }

func (r *rack) check() error {
	if r.ID <= 0 || r.Name == "" || r.Site == nil {
		return fmt.Errorf("rack %d: name or site is missing", r.ID)
	}
	return nil
}

// deviceType is a device type with its custom fields, which a device does not show.
type deviceType struct {
	ID           int64          `json:"id"`
	Slug         string         `json:"slug"`
	Model        string         `json:"model"`
	Manufacturer *ref           `json:"manufacturer"`
	CustomFields map[string]any `json:"custom_fields"`
	LastUpdated  string         `json:"last_updated"`
}

func (t *deviceType) ident() int64 { return t.ID }

func (t *deviceType) check() error {
	if t.ID <= 0 || t.Model == "" || t.CustomFields == nil {
		return fmt.Errorf("device type %d: model or custom_fields is missing", t.ID)
	}
	return nil
}

// liveDevice is what the kinds look at.
type liveDevice struct {
	ID           int64          `json:"id"`
	Name         *string        `json:"name"`
	Status       choice         `json:"status"`
	Tags         []tag          `json:"tags"`
	CustomFields map[string]any `json:"custom_fields"`
	LastUpdated  string         `json:"last_updated"`
}

func (d *liveDevice) ident() int64 { return d.ID }

func (d *liveDevice) check() error {
	if d.ID <= 0 || d.Status == "" || d.Tags == nil || d.CustomFields == nil {
		return fmt.Errorf("device %d: id, status, tags or custom_fields is missing", d.ID)
	}
	return nil
}

func (d *liveDevice) name() string {
	if d.Name == nil {
		return ""
	}
	return *d.Name
}

func (d *liveDevice) hasTag(slug string) bool {
	for _, t := range d.Tags {
		if t.Slug == slug {
			return true
		}
	}
	return false
}

type macObject struct {
	Address string `json:"mac_address"`
}

// endpoint is the far end of a cable; for anything but an interface only the
// display text is sure to be there.
type endpoint struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Display     string `json:"display"`
	Description string `json:"description"`
	Device      *ref   `json:"device"`
}

// label is the port's label, which stands only in the display text of a brief
// object: "NAME (LABEL)".
func (e endpoint) label() string {
	inner, found := strings.CutPrefix(e.Display, e.Name+" (")
	label, closed := strings.CutSuffix(inner, ")")
	if !found || !closed {
		return ""
	}
	return label
}

func (e endpoint) String() string {
	text := e.Name
	if text == "" {
		text = e.Display
	}
	if e.Device != nil {
		text = e.Device.Name + " " + text
	}
	return clean(text, 80)
}

// netInterface is an interface of a device. Absent booleans are nil.
type netInterface struct {
	ID         int64       `json:"id"`
	Name       string      `json:"name"`
	Type       choice      `json:"type"`
	Device     *ref        `json:"device"`
	MgmtOnly   *bool       `json:"mgmt_only"`
	Enabled    *bool       `json:"enabled"`
	MAC        *string     `json:"mac_address"`
	PrimaryMAC *macObject  `json:"primary_mac_address"`
	MACs       []macObject `json:"mac_addresses"`
	// Null when not cabled. link_peers is no other name for it: it is the next hop, a
	// panel's port where there is one, and all versions from 4.2 on give both.
	Endpoints     []endpoint `json:"connected_endpoints"`
	EndpointsType *string    `json:"connected_endpoints_type"`
	Reachable     *bool      `json:"connected_endpoints_reachable"`
	Occupied      *bool      `json:"_occupied"` // a cable is plugged in, or it is marked as connected
}

func (i *netInterface) ident() int64 { return i.ID }

// primary is the MAC that NetBox names as the interface's own, if it is one.
func (i *netInterface) primary() (plan.MAC, bool) {
	mac, err := plan.ParseMAC(i.primaryText())
	return mac, err == nil
}

func (i *netInterface) primaryText() string {
	switch {
	case i.PrimaryMAC != nil:
		return i.PrimaryMAC.Address
	case i.MAC != nil:
		return *i.MAC
	}
	return ""
}

// logical interfaces (a LAG, a bridge, a VLAN) rightly have the MAC of a member.
func (i *netInterface) logical() bool { return logicalType(i.Type) }

func logicalType(t choice) bool {
	switch t {
	case "virtual", "bridge", "lag", "channel":
		return true
	}
	return false
}

func (i *netInterface) check() error {
	switch {
	case i.ID <= 0 || i.Name == "":
		return fmt.Errorf("interface %d: id or name is missing", i.ID)
	case i.Device == nil || i.Device.ID <= 0:
		return fmt.Errorf("interface %d %s: device is missing", i.ID, i.Name)
	case i.MgmtOnly == nil || i.Enabled == nil:
		return fmt.Errorf("interface %d %s: mgmt_only or enabled is missing", i.ID, i.Name)
	case i.Type == "": // else a frontend NIC would be one less, and another the provisioning NIC
		return fmt.Errorf("interface %d %s: type is missing", i.ID, i.Name)
	}
	return nil
}

// macHolder is an interface that has one of the MACs that were asked for.
type macHolder struct {
	ID     int64       `json:"id"`
	Name   string      `json:"name"`
	Type   choice      `json:"type"`
	Device *ref        `json:"device"`
	MAC    *string     `json:"mac_address"`
	MACs   []macObject `json:"mac_addresses"`
}

func (h *macHolder) ident() int64 { return h.ID }

func (h *macHolder) check() error {
	if h.ID <= 0 || h.Device == nil || h.Device.ID <= 0 {
		return fmt.Errorf("interface %d: device is missing", h.ID)
	}
	return nil
}

// port is a switch port, read for its label and LAG.
type port struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Label       string `json:"label"`
	Description string `json:"description"`
	Device      *ref   `json:"device"`
	LAG         *ref   `json:"lag"`
}

func (p *port) ident() int64 { return p.ID }

// farDevice is a switch as far as the comparison of LLDP names asks about it.
type farDevice struct {
	ID       int64 `json:"id"`
	Platform *ref  `json:"platform"`
}

func (d *farDevice) ident() int64 { return d.ID }

func (d *farDevice) check() error {
	if d.ID <= 0 {
		return errors.New("a device without an id")
	}
	return nil
}

func (p *port) check() error {
	if p.ID <= 0 || p.Device == nil || p.Name == "" {
		return fmt.Errorf("interface %d: name or device is missing", p.ID)
	}
	return nil
}

type ipAddress struct {
	ID           int64   `json:"id"`
	Address      string  `json:"address"`
	Status       choice  `json:"status"`
	AssignedType *string `json:"assigned_object_type"`
	AssignedID   *int64  `json:"assigned_object_id"`
	Assigned     *struct {
		Name   string `json:"name"`
		Device *ref   `json:"device"`
	} `json:"assigned_object"`
	VRF         *ref   `json:"vrf"`
	NATInside   *ref   `json:"nat_inside"`
	LastUpdated string `json:"last_updated"`
}

func (a *ipAddress) ident() int64 { return a.ID }

func (a *ipAddress) check() error {
	if a.ID <= 0 || a.Address == "" {
		return fmt.Errorf("IP address %d: id or address is missing", a.ID)
	}
	return nil
}

// fielded is an object that is read for its custom fields.
type fielded struct {
	ID           int64          `json:"id"`
	Slug         string         `json:"slug"`
	CustomFields map[string]any `json:"custom_fields"`
	LastUpdated  string         `json:"last_updated"`
}

func (f *fielded) ident() int64 { return f.ID }

func (f *fielded) check() error {
	if f.ID <= 0 || f.Slug == "" {
		return fmt.Errorf("object %d: id or slug is missing", f.ID)
	}
	return nil
}

// unwrapFields gives custom fields with selections reduced to their value,
// which is how NetBox before 4.7 sends them and how every version takes them.
func unwrapFields(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for k, v := range fields {
		out[k] = unwrap(v)
	}
	return out
}

func unwrap(v any) any {
	switch v := v.(type) {
	case map[string]any:
		value, ok := v["value"]
		if _, labelled := v["label"]; ok && labelled && len(v) == 2 {
			return value
		}
	case []any:
		out := make([]any, len(v))
		for i, el := range v {
			out[i] = unwrap(el)
		}
		return out
	}
	return v
}

// placeholder reports text that a script wrote where a value was missing.
func placeholder(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "none", "null", "nil", "n/a", "undefined":
		return true
	}
	return false
}
