package ironic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// node is a node as Ironic shows it. Null is the zero value here; absent is an
// error, because every field below was asked for by name.
type node struct {
	UUID                 string              `json:"uuid"`
	Name                 string              `json:"name"`
	ProvisionState       plan.ProvisionState `json:"provision_state"`
	TargetProvisionState string              `json:"target_provision_state"`
	ProvisionUpdatedAt   string              `json:"provision_updated_at"`
	InstanceUUID         string              `json:"instance_uuid"`
	Maintenance          bool                `json:"maintenance"`
	MaintenanceReason    string              `json:"maintenance_reason"`
	Fault                string              `json:"fault"`
	LastError            string              `json:"last_error"`
	Reservation          string              `json:"reservation"`
	PowerState           string              `json:"power_state"`
	TargetPowerState     string              `json:"target_power_state"`
	Driver               string              `json:"driver"`
	DriverInfo           map[string]any      `json:"driver_info"`
	Properties           map[string]any      `json:"properties"`
	Extra                map[string]any      `json:"extra"`
	Traits               []string            `json:"traits"`
	TargetRAID           map[string]any      `json:"target_raid_config"`
	ResourceClass        string              `json:"resource_class"`
	InspectionFinishedAt string              `json:"inspection_finished_at"`
	Owner                string              `json:"owner"`
	Lessee               string              `json:"lessee"`

	Interfaces map[string]string `json:"-"` // the *_interface fields
}

// interfaceFields are the *_interface fields of API 1.40, the same up to 1.82.
func interfaceFields() []string {
	return []string{
		"bios_interface", "boot_interface", "console_interface", "deploy_interface", "inspect_interface", "management_interface",
		"network_interface", "power_interface", "raid_interface", "rescue_interface", "storage_interface", "vendor_interface",
	}
}

// nodeFields are what is read of a node, also of the only one: a full node is
// four times as large.
func nodeFields() string {
	return strings.Join(append([]string{
		"uuid", "name", "provision_state", "target_provision_state", "provision_updated_at", "instance_uuid", "maintenance", "maintenance_reason", "fault", "last_error",
		"reservation", "power_state", "target_power_state", "driver", "driver_info", "properties", "extra", "traits", "target_raid_config", "resource_class", "owner", "lessee", "inspection_finished_at",
	}, interfaceFields()...), ",")
}

// UnmarshalJSON also collects the *_interface fields.
func (n *node) UnmarshalJSON(b []byte) error {
	type plain node
	if err := json.Unmarshal(b, (*plain)(n)); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if err := complete(all, strings.Split(nodeFields(), ",")); err != nil {
		return err
	}
	n.Interfaces = map[string]string{}
	for _, k := range interfaceFields() {
		if text := (maybe[string]{}); text.UnmarshalJSON(all[k]) == nil && text.known {
			n.Interfaces[k] = text.value
		}
	}
	return nil
}

// node reads one node by name or UUID; nil when there is none, or none that
// this credential may see.
func (s *service) node(ctx context.Context, ident string) (*node, *plan.Fault) {
	var n node
	path := "nodes/" + url.PathEscape(ident)
	status, f := s.call(ctx, http.MethodGet, path+"?fields="+nodeFields(), nil, &n)
	if status == http.StatusNotFound {
		return nil, nil
	}
	if f != nil {
		return nil, f
	}
	if n.UUID == "" || n.ProvisionState == "" {
		return nil, s.senseless(http.MethodGet, path, status, nil, "a node without uuid or provision_state")
	}
	return &n, nil
}

// page is how many objects are asked for at once; Ironic's own maximum.
const page = "1000"

// nodes reads all nodes.
func (s *service) nodes(ctx context.Context) ([]*node, *plan.Fault) {
	return list(ctx, s, "nodes", "fields="+nodeFields(), func(n *node) string { return n.UUID })
}

// list reads all pages of a collection. The next link is used only as the sign
// that there is more: its host may be one that we cannot reach.
func list[T any](ctx context.Context, s *service, collection, query string, uuid func(*T) string) ([]*T, *plan.Fault) {
	var out []*T
	marker := ""
	markers := map[string]bool{}
	for {
		path := collection + "?" + query + "&limit=" + page
		if marker != "" {
			path += "&marker=" + url.QueryEscape(marker)
		}
		answer := map[string]json.RawMessage{}
		status, f := s.call(ctx, http.MethodGet, path, nil, &answer)
		if f != nil {
			return nil, f
		}
		var items []*T
		if raw, ok := answer[collection]; !ok {
			return nil, s.senseless(http.MethodGet, path, status, nil, "a list without "+collection)
		} else if err := json.Unmarshal(raw, &items); err != nil {
			return nil, s.senseless(http.MethodGet, path, status, raw, "a list of "+collection+" that cannot be decoded").Because(err)
		}
		for _, item := range items {
			if item == nil || uuid(item) == "" {
				return nil, s.senseless(http.MethodGet, path, status, nil, "a list of "+collection+" with an entry that has no uuid")
			}
		}
		out = append(out, items...)
		if len(answer["next"]) == 0 || string(answer["next"]) == "null" || len(items) == 0 {
			return out, nil
		}
		last := uuid(items[len(items)-1])
		if markers[last] {
			return nil, s.senseless(http.MethodGet, path, status, nil, "the same page of "+collection+" again")
		}
		marker, markers[last] = last, true
	}
}
