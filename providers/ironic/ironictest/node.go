package ironictest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// object is anything with JSON fields.
type object struct{ fields map[string]any }

func (o *object) text(key string) string {
	s, _ := o.fields[key].(string)
	return s
}

// simNode is a node with what is still to happen to it.
type simNode struct {
	object
	inventory json.RawMessage // nil: none
	history   []map[string]any
	events    []event // in the order of time
	failClean string
	losePXE   bool
	verbs     []string // that were accepted, in order
}

// event is a change that becomes due by the clock.
type event struct {
	at time.Time
	do func(at time.Time)
}

func (n *simNode) uuid() string { return n.text("uuid") }

func (n *simNode) state() plan.ProvisionState { return plan.ProvisionState(n.text("provision_state")) }

func (n *simNode) locked() bool { return n.text("reservation") != "" }

// set writes a field; "" is null, as in Ironic.
func (n *simNode) set(key string, v any) {
	if v == "" {
		v = nil
	}
	n.fields[key] = v
}

func (n *simNode) later(at time.Time, do func(at time.Time)) {
	n.events = append(n.events, event{at, do})
	sort.SliceStable(n.events, func(i, j int) bool { return n.events[i].at.Before(n.events[j].at) })
}

// advance lets everything happen that is due.
func (s *Server) advance(now time.Time) {
	for _, n := range s.nodes {
		for len(n.events) > 0 && !n.events[0].at.After(now) {
			e := n.events[0]
			n.events = n.events[1:]
			e.do(e.at)
		}
	}
}

func (s *Server) find(ident string) *simNode {
	for _, n := range s.nodes {
		if n.uuid() == ident || (n.text("name") == ident && ident != "") {
			return n
		}
	}
	return nil
}

// uuid numbers objects of a sort; tests can rely on it.
func uuid(sort, n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", sort, n) }

const (
	sortNode = iota + 1
	sortPort
	sortPortgroup
	sortHistory
)

func (s *Server) newUUID(sort int) string {
	s.serial++
	return uuid(sort, s.serial)
}

// interfaceNames are the implementations that are enabled, and each hardware
// type's default, as in the recorded lab.
func interfaceNames() map[string]map[string]string { // interface → driver → default
	fake := func(name, redfish string) map[string]string {
		ipmi := redfish
		if redfish == "redfish" {
			ipmi = "ipmitool" // power and management
		}
		return map[string]string{"fake-hardware": name, "redfish": redfish, "idrac": redfish, "ipmi": ipmi}
	}
	return map[string]map[string]string{
		"bios": fake("fake", "no-bios"), "boot": fake("fake", "ipxe"), "console": fake("fake", "no-console"), "deploy": fake("fake", "direct"),
		"inspect": fake("fake", "agent"), "management": fake("fake", "redfish"), "network": fake("noop", "noop"), "power": fake("fake", "redfish"),
		"raid": fake("fake", "no-raid"), "rescue": fake("fake", "no-rescue"), "storage": fake("noop", "noop"), "vendor": fake("fake", "no-vendor"),
	}
}

func enabledInterfaces() map[string][]string {
	return map[string][]string{
		"bios": {"fake", "no-bios", "redfish"}, "boot": {"fake", "ipxe", "pxe", "redfish-virtual-media", "idrac-redfish-virtual-media"},
		"console": {"fake", "no-console"}, "deploy": {"direct", "fake"}, "inspect": {"agent", "fake", "no-inspect", "redfish"},
		"management": {"fake", "idrac-redfish", "ipmitool", "redfish"}, "network": {"flat", "neutron", "noop"},
		"power": {"fake", "idrac-redfish", "ipmitool", "redfish"}, "raid": {"agent", "fake", "idrac-redfish", "no-raid", "redfish"},
		"rescue": {"agent", "fake", "no-rescue"}, "storage": {"cinder", "fake", "noop"}, "vendor": {"fake", "idrac-redfish", "ipmitool", "no-vendor", "redfish"},
	}
}

func drivers() []string { return []string{"fake-hardware", "idrac", "ipmi", "redfish"} }

// patchable are the fields that a PATCH may name.
func patchable() []string {
	out := []string{
		"automated_clean", "chassis_uuid", "conductor_group", "description", "driver", "driver_info", "extra", "instance_info", "instance_uuid", "lessee",
		"maintenance", "name", "network_data", "owner", "properties", "protected", "protected_reason", "resource_class", "retired", "retired_reason", "shard",
	}
	for i := range interfaceNames() {
		out = append(out, i+"_interface")
	}
	sort.Strings(out)
	return out
}

// creatable are the fields that a POST may carry.
func creatable() []string {
	return append([]string{"uuid"}, slices.DeleteFunc(patchable(), func(k string) bool { return k == "maintenance" || k == "instance_uuid" })...)
}

// since is the first API version of fields that are younger than 1.1.
func since(field string) int {
	switch field {
	case "driver_internal_info":
		return 3
	case "name":
		return 5
	case "clean_step":
		return 7
	case "raid_config", "target_raid_config":
		return 12
	case "pxe_enabled", "local_link_connection":
		return 19
	case "network_interface":
		return 20
	case "resource_class":
		return 21
	case "storage_interface":
		return 33
	case "traits":
		return 37
	case "portgroup_uuid":
		return 24
	case "physical_network":
		return 34
	case "rescue_interface":
		return 38
	case "bios_interface":
		return 40
	case "fault":
		return 42
	case "deploy_step":
		return 44
	case "conductor_group":
		return 46
	case "automated_clean":
		return 47
	case "protected", "protected_reason":
		return 48
	case "conductor":
		return 49
	case "owner":
		return 50
	case "description":
		return 51
	case "allocation_uuid":
		return 52
	case "retired", "retired_reason":
		return 61
	case "lessee":
		return 65
	case "network_data":
		return 66
	case "boot_mode", "secure_boot":
		return 75
	case "shard":
		return 82
	}
	if strings.HasSuffix(field, "_interface") {
		return 31
	}
	return 1
}

// blankNode has every field of API 1.82.
func (s *Server) blankNode(now time.Time) *simNode {
	n := &simNode{object: object{map[string]any{
		"uuid": s.newUUID(sortNode), "created_at": stamp(now), "driver_info": map[string]any{}, "driver_internal_info": map[string]any{}, "extra": map[string]any{},
		"properties": map[string]any{}, "instance_info": map[string]any{}, "network_data": map[string]any{}, "clean_step": map[string]any{}, "deploy_step": map[string]any{},
		"raid_config": map[string]any{}, "target_raid_config": map[string]any{}, "traits": []any{}, "conductor_group": "", "conductor": conductor,
		"provision_state": "enroll", "maintenance": false, "protected": false, "retired": false, "console_enabled": false,
	}}}
	for _, k := range []string{
		"updated_at", "name", "automated_clean", "boot_mode", "secure_boot", "description", "fault", "inspection_finished_at", "inspection_started_at", "instance_uuid",
		"last_error", "lessee", "owner", "maintenance_reason", "power_state", "target_power_state", "target_provision_state", "protected_reason", "retired_reason",
		"provision_updated_at", "reservation", "resource_class", "shard", "allocation_uuid", "chassis_uuid", "driver",
	} {
		n.fields[k] = nil
	}
	for i := range interfaceNames() {
		n.fields[i+"_interface"] = nil
	}
	return n
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000-07:00") }

// shown is the node as a version shows it, secrets masked.
func (r *request) shown(n *simNode, fields []string) map[string]any {
	out := map[string]any{"links": r.server.links("nodes", n.uuid())}
	for k, v := range n.fields {
		if since(k) > r.version || (len(fields) > 0 && !slices.Contains(fields, k)) {
			continue
		}
		switch k {
		case "driver_info", "instance_info":
			v = masked(v.(map[string]any))
		case "provision_state":
			v = stateFor(r.version, n.state())
		}
		out[k] = v
	}
	if len(fields) == 0 {
		for _, sub := range []string{"ports", "states", "portgroups", "volume"} {
			out[sub] = r.server.links("nodes", n.uuid()+"/"+sub)
		}
	}
	return out
}

// stateFor: below 1.2 available is null, below 1.39 inspect wait is inspecting.
func stateFor(version int, s plan.ProvisionState) any {
	switch {
	case version < 2 && s == plan.StateAvailable:
		return nil
	case version < 39 && s == plan.StateInspectWait:
		return string(plan.StateInspecting)
	}
	return string(s)
}

func masked(info map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range info {
		if text, ok := v.(string); ok && text != "" && strings.Contains(k, "password") {
			v = "******"
		}
		out[k] = v
	}
	return out
}

func (n *simNode) states() map[string]any {
	out := map[string]any{}
	for _, k := range []string{
		"console_enabled", "last_error", "power_state", "provision_state", "target_power_state", "target_provision_state", "provision_updated_at",
		"raid_config", "target_raid_config", "boot_mode", "secure_boot",
	} {
		out[k] = n.fields[k]
	}
	return out
}

var validName = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

func (r *request) createNode() answer {
	body, refused := r.object("node", creatable())
	if refused != nil {
		return *refused
	}
	for k := range body {
		if since(k) > r.version {
			return fault(http.StatusBadRequest, "Schema error for node: Additional properties are not allowed ('%s' was unexpected)", k)
		}
	}
	n := r.server.blankNode(r.now)
	driver, _ := body["driver"].(string)
	name, _ := body["name"].(string)
	owner, _ := body["owner"].(string)
	switch {
	case driver == "":
		return fault(http.StatusBadRequest, "Schema error for node: 'driver' is a required property")
	case body["name"] != nil && !validName.MatchString(name):
		return fault(http.StatusBadRequest, "Cannot create node with invalid name '%s'", name)
	case !slices.Contains(drivers(), driver):
		return fault(http.StatusBadRequest, "No valid host was found. Reason: No conductor service registered which supports driver %s for conductor group \"\".", driver)
	case owner != "" && owner != r.Header.Get("X-Project-Id"):
		return fault(http.StatusBadRequest, "Cannot create a node as a project scoped admin with an owner other than your own project.")
	case name != "" && r.server.find(name) != nil:
		return fault(http.StatusConflict, "A node with name %s already exists.", name)
	}
	for k, v := range body {
		n.fields[k] = v
	}
	if refused := n.interfaces(driver); refused != nil {
		return *refused
	}
	if r.version < 11 {
		n.set("provision_state", string(plan.StateAvailable))
	}
	r.server.nodes = append(r.server.nodes, n)
	return answer{status: http.StatusCreated, body: r.shown(n, nil), location: r.server.URL + "/v1/nodes/" + n.uuid()}
}

// interfaces fills the defaults of a hardware type in and refuses what is not
// enabled.
func (n *simNode) interfaces(driver string) *answer {
	for i, defaults := range interfaceNames() {
		name := n.text(i + "_interface")
		if name == "" {
			n.set(i+"_interface", defaults[driver])
			continue
		}
		valid := enabledInterfaces()[i]
		if !slices.Contains(valid, name) {
			a := fault(http.StatusBadRequest, "Could not find the following interface in the 'ironic.hardware.interfaces.%s' entrypoint: %s. Valid interfaces are ['%s'].", i, name, strings.Join(valid, "', '"))
			return &a
		}
	}
	return nil
}

// object decodes a body and refuses unknown keys, as Ironic's schemas do.
func (r *request) object(what string, known []string) (map[string]any, *answer) {
	var body map[string]any
	if err := json.Unmarshal(r.body, &body); err != nil {
		a := fault(http.StatusInternalServerError, "Expecting value: line 1 column 1 (char 0)")
		return nil, &a
	}
	keys := make([]string, 0, len(body))
	for k := range body {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if !slices.Contains(known, k) {
			a := fault(http.StatusBadRequest, "Schema error for %s: Additional properties are not allowed ('%s' was unexpected)", what, k)
			return nil, &a
		}
	}
	return body, nil
}

func (r *request) showNode(n *simNode) answer {
	fields, refused := r.fields(func(k string) bool { _, ok := n.fields[k]; return ok })
	if refused != nil {
		return *refused
	}
	return answer{status: http.StatusOK, body: r.shown(n, fields)}
}

func (r *request) deleteNode(n *simNode) answer {
	switch {
	case n.text("instance_uuid") != "":
		return fault(http.StatusConflict, "Node %s is associated with instance %s.", n.uuid(), n.text("instance_uuid"))
	case n.locked():
		return locked(n)
	}
	switch n.state() { //nolint:exhaustive // the states in which a node may go
	case plan.StateEnroll, plan.StateManageable, plan.StateAvailable, plan.StateAdoptFailed:
	default:
		if !n.fields["maintenance"].(bool) {
			return fault(http.StatusConflict, "Can not delete node \"%s\" while it is in provision state \"%s\". Valid provision states to perform deletion are: \"('manageable', 'enroll', 'adopt failed', 'available')\", or set the node into maintenance mode", n.uuid(), n.state())
		}
	}
	s := r.server
	s.nodes = slices.DeleteFunc(s.nodes, func(o *simNode) bool { return o == n })
	gone := func(o *object) bool { return o.text("node_uuid") == n.uuid() }
	s.ports, s.portgroups = slices.DeleteFunc(s.ports, gone), slices.DeleteFunc(s.portgroups, gone)
	return answer{status: http.StatusNoContent}
}

// history shows the node's events; the last three fields only in detail.
func (r *request) history(n *simNode) []any {
	out := []any{}
	for _, h := range n.history {
		entry := maps.Clone(h)
		if !r.detailed() {
			delete(entry, "event_type")
			delete(entry, "conductor")
			delete(entry, "user")
		}
		out = append(out, entry)
	}
	return out
}

func (r *request) inventory(n *simNode) answer {
	if n.inventory == nil {
		return fault(http.StatusNotFound, "Node inventory record for node 1 could not be found.")
	}
	return answer{status: http.StatusOK, body: n.inventory}
}

func (r *request) maintenance(n *simNode) answer {
	if r.Method != http.MethodPut && r.Method != http.MethodDelete {
		return notAllowed()
	}
	if n.locked() {
		return locked(n)
	}
	n.set("maintenance", r.Method == http.MethodPut)
	n.set("fault", nil)
	n.set("maintenance_reason", nil)
	if r.Method == http.MethodPut && len(r.body) > 0 {
		var body struct {
			Reason string `json:"reason"`
		}
		if err := json.Unmarshal(r.body, &body); err != nil {
			return fault(http.StatusInternalServerError, "Expecting value: line 1 column 1 (char 0)")
		}
		n.set("maintenance_reason", body.Reason)
	}
	return answer{status: http.StatusAccepted}
}
