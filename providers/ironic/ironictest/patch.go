package ironictest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// patch applies a JSON patch to a copy of fields.
func (r *request) patch(fields map[string]any, allowed []string) (map[string]any, *answer) {
	refuse := func(a answer) (map[string]any, *answer) { return nil, &a }
	var ops []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(r.body, &ops); err != nil {
		return refuse(fault(http.StatusInternalServerError, "Expecting value: line 1 column 1 (char 0)"))
	}
	for _, op := range ops {
		if !slices.Contains([]string{"add", "replace", "remove"}, op.Op) {
			return refuse(fault(http.StatusBadRequest, "Schema error for patch: '%s' is not one of ['add', 'replace', 'remove']", op.Op))
		}
	}
	for _, op := range ops {
		if top := strings.Split(strings.Trim(op.Path, "/"), "/")[0]; !slices.Contains(allowed, top) {
			return refuse(fault(http.StatusBadRequest, "Cannot patch /%s. Only the following can be updated: %s", top, strings.Join(allowed, ", ")))
		}
	}
	for _, op := range ops {
		if since(strings.Split(strings.Trim(op.Path, "/"), "/")[0]) > r.version {
			return refuse(tooNew())
		}
	}
	next := clone(fields)
	for _, op := range ops {
		var value any
		if op.Op != "remove" {
			if len(op.Value) == 0 {
				return refuse(fault(http.StatusInternalServerError, "'value'"))
			}
			if err := json.Unmarshal(op.Value, &value); err != nil {
				return refuse(fault(http.StatusInternalServerError, "Expecting value: line 1 column 1 (char 0)"))
			}
		}
		if reason := apply(next, op.Op, strings.Split(strings.TrimPrefix(op.Path, "/"), "/"), value); reason != "" {
			shown := fmt.Sprintf("{'op': '%s', 'path': '%s'", op.Op, op.Path)
			if op.Op != "remove" {
				shown += ", 'value': " + strings.ReplaceAll(string(op.Value), `"`, "'")
			}
			return refuse(fault(http.StatusBadRequest, "Couldn't apply patch '%s}'. Reason: %s", shown, reason))
		}
	}
	return next, nil
}

// apply changes one place and gives the reason when it cannot.
func apply(at map[string]any, op string, path []string, value any) string {
	for _, key := range path[:len(path)-1] {
		inner, ok := at[key].(map[string]any)
		if !ok {
			return fmt.Sprintf("member '%s' not found in %v", key, at)
		}
		at = inner
	}
	last := path[len(path)-1]
	_, exists := at[last]
	switch {
	case !exists && op != "add":
		return fmt.Sprintf("can't %s a non-existent object '%s'", op, last)
	case op != "remove":
		at[last] = value
	case len(path) == 1:
		at[last] = nil // a field of the record goes back to nothing
		if last == "local_link_connection" || last == "extra" || last == "properties" || last == "driver_info" {
			at[last] = map[string]any{}
		}
	default:
		delete(at, last)
	}
	return ""
}

func clone(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for k, v := range fields {
		if inner, ok := v.(map[string]any); ok {
			v = clone(inner)
		}
		out[k] = v
	}
	return out
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// patchNode applies the gates of Ironic's API in their order: the state, the
// lock, then the single fields.
func (r *request) patchNode(n *simNode) answer {
	if r.version < 45 && r.URL.Query().Has("reset_interfaces") {
		return tooNew()
	}
	next, refused := r.patch(n.fields, patchable())
	if refused != nil {
		return *refused
	}
	switch state := n.state(); {
	case state == plan.StateInspecting && r.version >= 39:
		return fault(http.StatusConflict, "Cannot update node \"%s\" while it is in state \"inspecting\".", n.uuid())
	case n.text("target_provision_state") != "" && !patchableIn(state):
		return fault(http.StatusConflict, "Node %s can not be updated while a state transition is in progress.", r.path[1])
	case n.locked():
		return locked(n)
	}
	if old, wanted := n.text("instance_uuid"), next["instance_uuid"]; old != "" && wanted != nil && wanted != old {
		return fault(http.StatusConflict, "Node %s is associated with instance %s.", n.uuid(), old)
	}
	if refused := r.switchDriver(n, next); refused != nil {
		return *refused
	}
	switched := !equal(n.fields["driver"], next["driver"])
	for k, v := range next {
		if switched && strings.HasSuffix(k, "_interface") {
			continue // what a new driver resets is judged by no state
		}
		if equal(n.fields[k], v) || (k != "resource_class" && !strings.HasSuffix(k, "_interface")) || (k == "resource_class" && n.fields[k] == nil) {
			continue
		}
		excused := n.fields["maintenance"] == true && k != "resource_class"
		if !slices.Contains([]plan.ProvisionState{plan.StateEnroll, plan.StateInspecting, plan.StateInspectWait, plan.StateManageable, plan.StateAvailable}, n.state()) && !excused {
			return fault(http.StatusConflict, "Node %s can not have %s updated unless it is in one of allowed (enroll, inspecting, inspect wait, manageable, available) states or in maintenance mode.", n.uuid(), k)
		}
	}
	if !equal(n.fields, next) {
		next["updated_at"] = stamp(r.now)
	}
	n.fields = next
	return answer{status: http.StatusOK, body: r.shown(n, nil)}
}

// patchableIn are the states on the way to somewhere in which Ironic still
// takes a patch.
func patchableIn(s plan.ProvisionState) bool {
	switch s { //nolint:exhaustive // a closed list of Ironic
	case plan.StateDeployFailed, plan.StateInspecting, plan.StateInspectFailed, plan.StateInspectWait, plan.StateCleanFailed, plan.StateError,
		plan.StateVerifying, plan.StateAdoptFailed, plan.StateRescueFailed, plan.StateUnrescueFailed, plan.StateServicing, plan.StateServiceWait, plan.StateServiceFailed, plan.StateServiceHold:
		return true
	}
	return false
}
