package ironictest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var customTrait = regexp.MustCompile(`^CUSTOM_[A-Z0-9_]+$`)

// standardTraits are the names of os-traits that are played here.
func standardTraits() []string {
	return []string{"HW_ARCH_X86_64", "HW_ARCH_AARCH64", "HW_CPU_X86_AVX", "HW_CPU_X86_VMX"}
}

// trait adds a trait or takes it away. Only custom ones and those of os-traits are
// taken.
func (r *request) trait(n *simNode, name string) answer {
	have, _ := n.fields["traits"].([]any)
	at := slices.Index(have, any(name))
	switch {
	case r.Method != http.MethodPut && r.Method != http.MethodDelete:
		return notAllowed()
	case r.Method == http.MethodPut && !customTrait.MatchString(name) && !slices.Contains(standardTraits(), name):
		return fault(http.StatusBadRequest, "Schema error for trait: '%s' is not valid under any of the given schemas. Possible root cause: '%s' does not match '^CUSTOM_[A-Z0-9_]+$'", name, name)
	case n.locked():
		return locked(n)
	case r.Method == http.MethodDelete && at < 0:
		return fault(http.StatusNotFound, "Node %s doesn't have a trait '%s'", n.uuid(), name)
	case r.Method == http.MethodDelete:
		n.fields["traits"] = slices.Delete(slices.Clone(have), at, at+1)
	case at < 0:
		n.fields["traits"] = append(slices.Clone(have), name)
	}
	return answer{status: http.StatusNoContent}
}

// raid sets the RAID target. Ironic takes it in every state that has no lock.
func (r *request) raid(n *simNode) answer {
	if r.version < since("target_raid_config") {
		return tooNew()
	}
	var config map[string]any
	if err := json.Unmarshal(r.body, &config); err != nil || config == nil {
		return fault(http.StatusBadRequest, "RAID config validation error: None is not of type 'object'")
	}
	if n.text("raid_interface") == "no-raid" {
		return fault(http.StatusNotFound, "Driver %s does not support raid (disabled or not implemented).", n.text("driver"))
	}
	disks, _ := config["logical_disks"].([]any)
	for _, d := range disks {
		disk, _ := d.(map[string]any)
		for _, key := range []string{"size_gb", "raid_level"} {
			if _, ok := disk[key]; !ok {
				return fault(http.StatusBadRequest, "RAID config validation error: '%s' is a required property", key)
			}
		}
	}
	if n.locked() {
		return locked(n)
	}
	n.fields["target_raid_config"] = config
	return answer{status: http.StatusNoContent}
}

// switchDriver applies reset_interfaces and refuses interfaces that the new
// hardware type does not have.
func (r *request) switchDriver(n *simNode, next map[string]any) *answer {
	driver, _ := next["driver"].(string)
	if equal(n.fields["driver"], next["driver"]) {
		return nil
	}
	if !slices.Contains(drivers(), driver) {
		a := fault(http.StatusBadRequest, "No valid host was found. Reason: No conductor service registered which supports driver %s for conductor group \"\".", driver)
		return &a
	}
	reset := strings.EqualFold(r.URL.Query().Get("reset_interfaces"), "true")
	for _, i := range []string{"power", "management", "bios", "boot", "console", "deploy", "inspect", "network", "raid", "rescue", "storage", "vendor"} {
		key := i + "_interface"
		if reset && equal(n.fields[key], next[key]) {
			next[key] = interfaceNames()[i][driver]
			continue
		}
		name := fmt.Sprint(next[key])
		ofOther := strings.Contains(name, "redfish") && driver == "ipmi" || name == "ipmitool" && driver != "ipmi" || name == "fake" && driver != "fake-hardware"
		if ofOther {
			a := fault(http.StatusBadRequest, "%s interface implementation '%s' is not supported by hardware type %s.", i, name, driver)
			return &a
		}
	}
	return nil
}
