package netboxtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

func statuses() []string {
	return []string{"offline", "active", "planned", "staged", "failed", "inventory", "decommissioning"}
}

// notSimulatedKeys are writable fields of a device that this package does not
// write: they are refused loudly instead of being ignored as unknown ones are.
func notSimulatedKeys() []string {
	return []string{"device_type", "role", "tenant", "platform", "asset_tag", "site", "location", "rack", "position", "face", "parent_device", "airflow",
		"primary_ip4", "primary_ip6", "oob_ip", "cluster", "virtual_chassis", "vc_position", "vc_priority", "description", "comments", "config_template", "local_context_data"}
}

// draft is what a PATCH makes of a device before it is saved. The row (name,
// serial, status, custom fields) is written back whole, as NetBox does it; tags
// are rows of their own.
type draft struct {
	name, serial, status string
	fields               map[string]any
	replace              bool // tags is the new list
	tags, add, remove    []*nameRow
}

func (n *draft) save(d *deviceRow) {
	d.Name, d.Serial, d.Status, d.CustomFields = n.name, n.serial, n.status, n.fields
	if n.replace {
		d.tags = n.tags
	}
	for _, t := range n.add {
		d.tags = appendTag(d.tags, t)
	}
	d.tags = slices.DeleteFunc(slices.Clone(d.tags), func(t *nameRow) bool { return slices.Contains(n.remove, t) })
	d.Tags = d.slugs()
}

func (x *request) patch(r row) {
	d := r.raw.(*deviceRow)
	if hook := x.beforePatch; hook != nil {
		x.mu.Unlock()
		hook(d.Name)
		x.mu.Lock()
	}
	if only := x.token.ChangeStatus; only != "" && d.Status != only {
		x.fail(http.StatusNotFound, "No Device matches the given query.")
		return
	}
	if kind := x.r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		x.fail(http.StatusUnsupportedMediaType, fmt.Sprintf("Unsupported media type %q in request.", kind))
		return
	}
	raw, err := io.ReadAll(io.LimitReader(x.r.Body, 3<<20))
	if err != nil {
		return // the client went away
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		x.fail(http.StatusBadRequest, "JSON parse error - Expecting value: line 1 column 1 (char 0)")
		return
	}
	if !x.matches(d) {
		x.etag(r)
		x.fail(http.StatusPreconditionFailed, "Precondition failed.")
		return
	}
	body, ok := decoded.(object)
	if !ok {
		x.crash("AttributeError", "'list' object has no attribute 'get'")
		return
	}
	next := draft{name: d.Name, serial: d.Serial, status: d.Status, fields: maps.Clone(d.CustomFields)}
	message, ok := x.apply(body, &next)
	if !ok {
		return
	}
	if only := x.token.ChangeStatus; only != "" && next.status != only {
		x.fail(http.StatusForbidden, "You do not have permission to perform this action.")
		return
	}
	x.between(d)
	// If-Match is looked at again under the lock of the row; without it the row is
	// written as it was read, over whatever came meanwhile.
	if !x.matches(d) {
		x.etag(r)
		x.fail(http.StatusPreconditionFailed, "Precondition failed.")
		return
	}
	before := x.snapshot(d)
	next.save(d)
	x.touch(d)
	x.logChange(d, message, before, x.snapshot(d))
	x.etag(r)
	x.answer(http.StatusOK, x.cut(x.deviceView(d)))
}

// between lets other requests in, as between the two halves of a transaction.
func (x *request) between(d *deviceRow) {
	hook := x.duringPatch
	x.mu.Unlock()
	if hook != nil {
		hook(d.Name)
	}
	runtime.Gosched()
	x.mu.Lock()
}

// matches checks If-Match; "*" is no check, and so is an older NetBox.
func (x *request) matches(d *deviceRow) bool {
	header := strings.Join(x.r.Header.Values("If-Match"), ",")
	if header == "" || !x.atLeast(4, 6) {
		return true
	}
	for _, tag := range strings.Split(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == tagOf(d.updated) {
			return true
		}
	}
	return false
}

// apply validates the body as NetBox does. It answers by itself and says false
// when the body is refused.
func (x *request) apply(body object, next *draft) (message string, ok bool) {
	for _, key := range notSimulatedKeys() {
		if _, there := body[key]; there {
			x.notSimulated("writing " + key)
			return "", false
		}
	}
	problems := object{}
	x.applyText(body, "name", &next.name, problems)
	x.applyText(body, "serial", &next.serial, problems)
	x.applyStatus(body, next, problems)
	x.applyFields(body, next, problems)
	if !x.applyTags(body, next, problems) {
		return "", false
	}
	if len(problems) > 0 {
		x.answer(http.StatusBadRequest, problems)
		return "", false
	}
	if x.atLeast(4, 4) {
		message, _ = body["changelog_message"].(string)
		if utf8.RuneCountInString(message) > 200 {
			x.crash("DataError", "value too long for type character varying(200)")
			return "", false
		}
	}
	return message, true
}

func (x *request) applyText(body object, key string, into *string, problems object) {
	v, there := body[key]
	if !there {
		return
	}
	s, isText := v.(string)
	if !isText {
		problems[key] = []string{"Not a valid string."}
		return
	}
	*into = s
}

func (x *request) applyStatus(body object, next *draft, problems object) {
	v, there := body["status"]
	if !there {
		return
	}
	switch v := v.(type) {
	case string:
		if !slices.Contains(statuses(), v) {
			problems["status"] = []string{v + " is not a valid choice."}
			return
		}
		next.status = v
	case object, []any:
		problems["status"] = []string{`Value must be passed directly (e.g. "foo": 123); do not use a dictionary or list.`}
	default:
		problems["status"] = []string{"This field may not be blank."}
	}
}

// applyFields merges custom fields per key. Releases 4.5.0 to 4.5.7 dropped an
// unknown one silently; the others refuse it.
func (x *request) applyFields(body object, next *draft, problems object) {
	values, there := body["custom_fields"].(object)
	if !there {
		return
	}
	for _, name := range sortedKeys(values) {
		n := slices.IndexFunc(x.opt.Fields, func(f Field) bool { return f.Object == "dcim.device" && f.Name == name })
		if n < 0 {
			if x.major != 4 || x.minor != 5 {
				problems["custom_fields"] = object{name: fmt.Sprintf("Custom field '%s' does not exist for this object type.", name)}
			}
			continue
		}
		f, v := x.opt.Fields[n], values[name]
		s, isText := v.(string)
		switch {
		case v == nil, isText && f.Choices == nil, isText && slices.Contains(f.Choices, s):
			next.fields[name] = v
		case f.Choices != nil:
			problems["__all__"] = []string{fmt.Sprintf("Invalid value for custom field '%s': Invalid choice (%s) for choice set %s.", name, pythonOf(v), f.set())}
		default:
			problems["__all__"] = []string{fmt.Sprintf("Invalid value for custom field '%s': Value must be a string.", name)}
		}
	}
}

// pythonOf shows a decoded value as Python does. The order of keys is lost in
// decoding; value before label is the one that occurs.
func pythonOf(v any) string {
	switch v := v.(type) {
	case string:
		return "'" + v + "'"
	case object:
		keys := sortedKeys(v)
		slices.Reverse(keys)
		parts := make([]string, len(keys))
		for i, k := range keys {
			parts[i] = "'" + k + "': " + pythonOf(v[k])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// applyTags replaces the list for tags and adds or removes for add_tags and
// remove_tags (from 4.6). It answers by itself and says false where NetBox
// crashes.
func (x *request) applyTags(body object, next *draft, problems object) bool {
	list, _ := body["tags"].([]any)
	_, replaces := body["tags"]
	add, _ := body["add_tags"].([]any)
	remove, _ := body["remove_tags"].([]any)
	if !x.atLeast(4, 6) {
		add, remove = nil, nil
	}
	if len(list) > 0 && len(add)+len(remove) > 0 {
		problems["tags"] = []string{`Cannot specify "tags" together with "add_tags" or "remove_tags".`}
		return true
	}
	if replaces && len(add)+len(remove) == 0 {
		next.replace = true
		for _, item := range list {
			t, words := x.tagBy(item)
			if words != "" {
				problems["tags"] = []string{words}
				return true
			}
			next.tags = appendTag(next.tags, t)
		}
	}
	for _, item := range add {
		t, words := x.tagBy(item)
		if words != "" {
			x.crash("ValidationError", fmt.Sprintf("[%q]", words))
			return false
		}
		next.add = append(next.add, t)
	}
	for _, item := range remove {
		t, words := x.tagBy(item)
		if words != "" {
			x.crash("ValidationError", fmt.Sprintf("[%q]", words))
			return false
		}
		next.remove = append(next.remove, t)
	}
	return true
}

func appendTag(list []*nameRow, t *nameRow) []*nameRow {
	if slices.Contains(list, t) {
		return list
	}
	return append(list, t)
}

// tagBy finds a tag by id or by attributes.
func (x *request) tagBy(item any) (*nameRow, string) {
	switch item := item.(type) {
	case float64:
		for _, t := range x.tags {
			if float64(t.id) == item {
				return t, ""
			}
		}
		return nil, fmt.Sprintf("Related object not found using the provided numeric ID: %d", int64(item))
	case object:
		var shown []string
		for _, k := range sortedKeys(item) {
			shown = append(shown, fmt.Sprintf("'%s': '%v'", k, item[k]))
		}
		for _, t := range x.tags {
			slug, hasSlug := item["slug"]
			name, hasName := item["name"]
			if (hasSlug || hasName) && (!hasSlug || slug == t.slug) && (!hasName || name == t.name) {
				return t, ""
			}
		}
		return nil, "Related object not found using the provided attributes: {" + strings.Join(shown, ", ") + "}"
	}
	return nil, fmt.Sprintf("Related objects must be referenced by numeric ID or by dictionary of attributes. Received an unrecognized value: %v", item)
}

// BeforePatch calls hook with the device's name before each PATCH of a device
// is looked at: the place for a rival's write. The hook may use the setters.
func (s *Server) BeforePatch(hook func(device string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforePatch = hook
}

// DuringPatch calls hook with the device's name after a PATCH read the row and
// before it writes it back. The hook may send requests of its own.
func (s *Server) DuringPatch(hook func(device string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.duringPatch = hook
}

// Change is one entry of the change log.
type Change struct {
	Device  string
	Message string // changelog_message
}

// Changes are the changes that came over the API, oldest first.
func (s *Server) Changes() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Change, 0, len(s.changes))
	for _, c := range s.changes {
		name, _ := c.after["name"].(string) // always there
		out = append(out, Change{Device: name, Message: c.message})
	}
	return out
}

type changeRow struct {
	id            int64
	at            time.Time
	request       string
	device        int64
	message       string
	before, after object
}

// snapshot is a device in the change log: a choice is its bare value there, a
// relation its id, and so is a selection field its value.
func (s *Server) snapshot(d *deviceRow) object {
	fields := object{}
	for _, f := range s.opt.Fields {
		if f.Object == "dcim.device" {
			fields[f.Name] = d.CustomFields[f.Name]
		}
	}
	return object{"name": d.Name, "serial": d.Serial, "status": d.Status, "tags": d.slugs(), "custom_fields": fields, "role": d.role.id, "site": d.site.id}
}

// logChange records a change; NetBox skips one that changes nothing.
func (x *request) logChange(d *deviceRow, message string, before, after object) {
	a, errA := json.Marshal(before)
	b, errB := json.Marshal(after)
	if errA != nil || errB != nil || string(a) == string(b) {
		return
	}
	x.changes = append(x.changes, &changeRow{id: x.next("change"), at: d.updated, request: x.id, device: d.id, message: message, before: before, after: after})
}

func (s *Server) changeRows() []row {
	return mapRows(s.changes, func(c *changeRow) row {
		return row{id: c.id, raw: c, view: func(x *request) object {
			out := object{
				"id": c.id, "time": stamp(c.at), "user_name": "lab", "request_id": c.request, "action": object{"value": "update", "label": "Updated"},
				"changed_object_type": "dcim.device", "changed_object_id": c.device, "prechange_data": c.before, "postchange_data": c.after,
			}
			if x.atLeast(4, 4) {
				out["message"] = c.message
			}
			return out
		}}
	})
}

func changeFilters() map[string]filter {
	return map[string]filter{
		"id": idFilter(), "request_id": text(func(r row) string { return r.raw.(*changeRow).request }),
		"changed_object_id": {check: number, fold: same, keys: func(r row) []string { return []string{fmt.Sprint(r.raw.(*changeRow).device)} }},
	}
}
