package ironictest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// shape is what ports and portgroups differ in.
type shape struct {
	collection, one string
	creatable       []string
	patchable       []string
	summary         []string
	store           func(*Server) *[]*object
	create          func(*request, map[string]any) (*object, *answer)
}

func portShape() shape {
	return shape{
		collection: "ports", one: "Port",
		creatable: []string{"uuid", "address", "node_uuid", "pxe_enabled", "local_link_connection", "portgroup_uuid", "physical_network", "extra", "is_smartnic"},
		patchable: []string{"address", "extra", "pxe_enabled", "local_link_connection", "portgroup_uuid", "physical_network"},
		summary:   []string{"uuid", "address"},
		store:     func(s *Server) *[]*object { return &s.ports },
		create:    (*request).newPort,
	}
}

func portgroupShape() shape {
	return shape{
		collection: "portgroups", one: "Portgroup",
		creatable: []string{"uuid", "node_uuid", "name", "address", "mode", "properties", "standalone_ports_supported", "extra"},
		patchable: []string{"name", "address", "mode", "properties", "standalone_ports_supported", "extra"},
		summary:   []string{"uuid", "name", "address"},
		store:     func(s *Server) *[]*object { return &s.portgroups },
		create:    (*request).newPortgroup,
	}
}

func (r *request) routeObjects(sh shape) answer {
	if sh.collection == "portgroups" && r.version < 23 {
		return notFoundPath()
	}
	switch {
	case len(r.path) == 1 && r.Method == http.MethodPost:
		return r.createObject(sh)
	case len(r.path) == 1 || (len(r.path) == 2 && r.path[1] == "detail"):
		return r.only(http.MethodGet, func() answer { return r.listObjects(sh, "") })
	case len(r.path) != 2:
		return notFoundPath()
	}
	store := sh.store(r.server)
	i := slices.IndexFunc(*store, func(o *object) bool { return o.text("uuid") == r.path[1] })
	if i < 0 {
		return fault(http.StatusNotFound, "%s %s could not be found.", sh.one, r.path[1])
	}
	o := (*store)[i]
	n := r.server.find(o.text("node_uuid"))
	switch r.Method {
	case http.MethodGet:
		return answer{status: http.StatusOK, body: r.server.object(sh, o, nil)}
	case http.MethodDelete:
		if n.locked() {
			return locked(n)
		}
		*store = slices.Delete(*store, i, i+1)
		return answer{status: http.StatusNoContent}
	case http.MethodPatch:
		return r.patchObject(sh, o, n)
	}
	return notAllowed()
}

// object shows a port or portgroup.
func (s *Server) object(sh shape, o *object, fields []string) map[string]any {
	out := map[string]any{"links": s.links(sh.collection, o.text("uuid"))}
	for k, v := range o.fields {
		if len(fields) == 0 || slices.Contains(fields, k) {
			out[k] = v
		}
	}
	return out
}

func (r *request) createObject(sh shape) answer {
	body, refused := r.object(strings.ToLower(sh.one), sh.creatable)
	if refused != nil {
		return *refused
	}
	o, refused := sh.create(r, body)
	if refused != nil {
		return *refused
	}
	maps.Copy(o.fields, map[string]any{"created_at": stamp(r.now), "updated_at": nil, "internal_info": map[string]any{}})
	if o.fields["extra"] == nil {
		o.fields["extra"] = map[string]any{}
	}
	*sh.store(r.server) = append(*sh.store(r.server), o)
	return answer{status: http.StatusCreated, body: r.server.object(sh, o, nil), location: r.server.URL + "/v1/" + sh.collection + "/" + o.text("uuid")}
}

// parent finds the node that a new object is to belong to.
func (r *request) parent(what string, body map[string]any) (*simNode, *answer) {
	ident, ok := body["node_uuid"].(string)
	refuse := func(a answer) (*simNode, *answer) { return nil, &a }
	switch {
	case !ok:
		return refuse(fault(http.StatusBadRequest, "Schema error for %s: 'node_uuid' is a required property", what))
	case !isUUID(ident):
		return refuse(fault(http.StatusBadRequest, "Expected UUID for node_uuid: %s", ident))
	}
	n := r.server.find(ident)
	switch {
	case n == nil:
		return refuse(fault(http.StatusBadRequest, "Node %s could not be found.", ident))
	case n.locked():
		return refuse(locked(n))
	}
	return n, nil
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidForm.MatchString(s) }

// macForm is Ironic's: colons only.
var macForm = regexp.MustCompile(`^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$`)

// address checks a MAC address and whether it is free in a collection.
func (r *request) address(sh shape, body map[string]any, required bool) (string, *answer) {
	text, ok := body["address"].(string)
	if !ok && !required {
		return "", nil
	}
	if !macForm.MatchString(text) {
		a := fault(http.StatusBadRequest, "Expected valid MAC address for address: %s", text)
		return "", &a
	}
	text = strings.ToLower(text)
	for _, o := range *sh.store(r.server) {
		if o.text("address") == text {
			a := fault(http.StatusConflict, "A %s with MAC address %s already exists.", strings.ToLower(sh.one), text)
			return "", &a
		}
	}
	return text, nil
}

func (r *request) newPort(body map[string]any) (*object, *answer) {
	for k := range body {
		if since(k) > r.version {
			a := tooNew()
			return nil, &a
		}
	}
	n, refused := r.parent("port", body)
	if refused != nil {
		return nil, refused
	}
	mac, refused := r.address(portShape(), body, true)
	if refused != nil {
		return nil, refused
	}
	link, refused := checkLink(body["local_link_connection"])
	if refused != nil {
		return nil, refused
	}
	o := &object{map[string]any{
		"uuid": r.server.newUUID(sortPort), "is_smartnic": false, "physical_network": nil, "pxe_enabled": true, "portgroup_uuid": nil,
	}}
	maps.Copy(o.fields, body)
	o.fields["address"], o.fields["local_link_connection"] = mac, link
	if group, ok := body["portgroup_uuid"].(string); ok {
		i := slices.IndexFunc(r.server.portgroups, func(g *object) bool { return g.text("uuid") == group })
		var a answer
		switch {
		case i < 0:
			a = fault(http.StatusBadRequest, "Portgroup %s could not be found.", group)
			return nil, &a
		case r.server.portgroups[i].text("node_uuid") != n.uuid():
			a = fault(http.StatusInternalServerError, "Port can not be added to a portgroup belonging to a different node.")
			return nil, &a
		}
	}
	return o, nil
}

var datapathForm = regexp.MustCompile(`^[0-9a-fA-F]{16}$`)

// checkLink is the schema of local_link_connection: empty, or switch_id and
// port_id with an optional switch_info, the id being a MAC address or an
// OpenFlow datapath id.
func checkLink(v any) (map[string]any, *answer) {
	link, ok := v.(map[string]any)
	if v == nil || (ok && len(link) == 0) {
		return map[string]any{}, nil
	}
	cause := ""
	for k := range link {
		if !slices.Contains([]string{"switch_id", "port_id", "switch_info", "network_type"}, k) {
			cause = fmt.Sprintf("Additional properties are not allowed ('%s' was unexpected)", k)
		}
	}
	for _, k := range []string{"port_id", "switch_id"} {
		if _, ok := link[k].(string); !ok {
			cause = fmt.Sprintf("'%s' is a required property", k)
		}
	}
	if cause != "" || !ok {
		raw, err := json.Marshal(v)
		if err != nil {
			panic("ironictest: " + err.Error())
		}
		a := fault(http.StatusBadRequest, "Schema error for local_link_connection: %s is not valid under any of the given schemas. Possible root cause: %s", strings.ReplaceAll(string(raw), `"`, "'"), cause)
		return nil, &a
	}
	if id := link["switch_id"].(string); !macForm.MatchString(id) && !datapathForm.MatchString(id) {
		a := fault(http.StatusBadRequest, "Expected a MAC address or OpenFlow datapath ID but received %s.", id)
		return nil, &a
	}
	return link, nil
}

func (r *request) newPortgroup(body map[string]any) (*object, *answer) {
	if _, refused := r.parent("portgroup", body); refused != nil {
		return nil, refused
	}
	mac, refused := r.address(portgroupShape(), body, false)
	if refused != nil {
		return nil, refused
	}
	if name, ok := body["name"].(string); ok {
		for _, g := range r.server.portgroups {
			if g.text("name") == name {
				a := fault(http.StatusConflict, "A portgroup with name %s already exists.", name)
				return nil, &a
			}
		}
	}
	o := &object{map[string]any{
		"uuid": r.server.newUUID(sortPortgroup), "name": nil, "mode": "active-backup", "properties": map[string]any{}, "standalone_ports_supported": true,
	}}
	maps.Copy(o.fields, body)
	o.fields["address"] = nil
	if mac != "" {
		o.fields["address"] = mac
	}
	return o, nil
}

// listObjects lists a collection, all of it or a node's part.
func (r *request) listObjects(sh shape, ofNode string) answer {
	filters := []string{"node", "node_uuid", "address"}
	if sh.collection == "ports" {
		filters = append(filters, "portgroup")
	}
	if refused := r.expect(filters...); refused != nil {
		return *refused
	}
	fields, refused := r.fields(func(k string) bool {
		return slices.Contains(sh.creatable, k) || slices.Contains([]string{"created_at", "updated_at", "internal_info", "links"}, k)
	})
	if refused != nil {
		return *refused
	}
	if fields == nil && !r.detailed() {
		fields = sh.summary
	}
	q := r.URL.Query()
	if ident := q.Get("node") + q.Get("node_uuid"); ident != "" {
		n := r.server.find(ident)
		if n == nil {
			return fault(http.StatusNotFound, "Node %s could not be found.", ident)
		}
		ofNode = n.uuid()
	}
	byUUID := map[string]*object{}
	var uuids []string
	for _, o := range *sh.store(r.server) {
		if (ofNode != "" && o.text("node_uuid") != ofNode) || (q.Has("address") && !strings.EqualFold(o.text("address"), q.Get("address"))) {
			continue
		}
		byUUID[o.text("uuid")] = o
		uuids = append(uuids, o.text("uuid"))
	}
	page, next, refused := r.cutPage(sh.collection, uuids)
	if refused != nil {
		return *refused
	}
	out := []any{}
	for _, id := range page {
		out = append(out, r.server.object(sh, byUUID[id], fields))
	}
	return listed(sh.collection, out, next)
}

// connectivity are the attributes of a port that only some states let change.
func connectivity() []string {
	return []string{"pxe_enabled", "local_link_connection", "physical_network", "portgroup_uuid"}
}

func (r *request) patchObject(sh shape, o *object, n *simNode) answer {
	next, refused := r.patch(o.fields, sh.patchable)
	switch {
	case refused != nil:
		return *refused
	case n.locked():
		return locked(n)
	}
	if sh.collection == "ports" {
		link, refused := checkLink(next["local_link_connection"])
		if refused != nil {
			return *refused
		}
		next["local_link_connection"] = link
		for _, k := range connectivity() {
			if !equal(o.fields[k], next[k]) && !reconnectable(n) {
				return fault(http.StatusConflict, "Port %s can not have any connectivity attributes (pxe_enabled, local_link_connection, physical_network, portgroup_id) updated unless node %s is in a enroll, inspecting, inspect wait, manageable state or in maintenance mode. The current state is %s.", o.text("uuid"), n.uuid(), n.state())
			}
		}
		if !equal(o.fields["address"], next["address"]) && n.text("instance_uuid") != "" {
			return fault(http.StatusConflict, "Cannot update hardware address for port %s as node %s is active or has instance UUID assigned", o.text("uuid"), n.uuid())
		}
	}
	if !equal(o.fields, next) {
		next["updated_at"] = stamp(r.now)
	}
	o.fields = next
	return answer{status: http.StatusOK, body: r.server.object(sh, o, nil)}
}

func reconnectable(n *simNode) bool {
	switch n.state() { //nolint:exhaustive // the states that the refusal names
	case plan.StateEnroll, plan.StateInspecting, plan.StateInspectWait, plan.StateManageable:
		return true
	}
	return n.fields["maintenance"] == true
}
