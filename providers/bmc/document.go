package bmc

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// document is one resource as the BMC sent it. Its readers never fail: a
// property that is absent, null or of another type is "not there".
type document struct {
	path string
	etag string // of the header, else @odata.etag
	// allow is the header of that name: which methods the resource takes; "" when
	// the BMC does not tell.
	allow string
	top   map[string]any
	// expanded documents came with their list: headers, and with some makers
	// properties, are missing.
	expanded bool
	// unread is why a member of a list could not be read; it has no properties then.
	unread *plan.Fault
}

// parse reads a JSON object. The content type is not looked at: several makers
// send text/plain or text/html for JSON.
func parse(path, etag string, body []byte) (document, bool) {
	d := document{path: path, etag: etag}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\xef\xbb\xbf"))
	if json.Unmarshal(body, &d.top) != nil || d.top == nil {
		return d, false
	}
	if d.etag == "" {
		d.etag = d.text("@odata.etag")
	}
	return d, true
}

// at walks to a property; ok tells that the key exists, also with null.
func (d document) at(keys ...string) (any, bool) {
	var v any = d.top
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[k]; !ok {
			return nil, false
		}
	}
	return v, true
}

// key tells that a property exists, be it null.
func (d document) key(keys ...string) bool { _, ok := d.at(keys...); return ok }

// sameValue compares two values of JSON. The operator would not do: a BMC may show
// a list or an object where a word is expected.
func sameValue(a, b any) bool { return reflect.DeepEqual(a, b) }

// text gives a string property, "" when there is none.
func (d document) text(keys ...string) string {
	v, _ := d.at(keys...)
	s, _ := v.(string)
	return s
}

// yes gives a boolean property.
func (d document) yes(keys ...string) (value, ok bool) {
	v, _ := d.at(keys...)
	value, ok = v.(bool)
	return value, ok
}

// number gives a whole number, also one that is written as text.
func (d document) number(keys ...string) (value int, ok bool) {
	v, _ := d.at(keys...)
	switch v := v.(type) {
	case float64:
		return int(v), v == float64(int(v))
	case string:
		n, err := strconv.Atoi(strings.TrimSpace(v))
		return n, err == nil
	}
	return 0, false
}

// list gives the strings of an array without blanks around them, without
// nulls, empty ones and repetitions: some BMCs fill unused places that way.
func (d document) list(keys ...string) []string {
	v, _ := d.at(keys...)
	items, _ := v.([]any)
	var out []string
	seen := map[string]bool{}
	for _, item := range items {
		s, _ := item.(string)
		if s = strings.TrimSpace(s); s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// link gives the @odata.id of an object, "" when there is none.
func (d document) link(keys ...string) string {
	v, _ := d.at(keys...)
	return linkOf(v)
}

// links gives the @odata.id of every object of an array.
func (d document) links(keys ...string) []string {
	v, _ := d.at(keys...)
	items, _ := v.([]any)
	var out []string
	for _, item := range items {
		if l := linkOf(item); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func linkOf(v any) string {
	m, _ := v.(map[string]any)
	s, _ := m["@odata.id"].(string)
	return s
}

// readOnly tells that the BMC says the resource takes no PATCH, and names no
// settings object that would.
func (d document) readOnly() bool {
	return d.link("@Redfish.Settings", "SettingsObject") == "" && d.allow != "" && !strings.Contains(strings.ToUpper(d.allow), "PATCH")
}

// name is the last part of a resource's path.
func name(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}
