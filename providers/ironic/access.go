package ironic

import (
	"path"
	"strings"
)

// AccessRule is one rule of an application credential that a run needs: the
// method and the path below the endpoint, in Keystone's spelling, where * is one
// segment. A missing one is answered with 401, in the words of a bad token.
type AccessRule struct {
	Service string `json:"service"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Use     string `json:"-"`
}

// ruleFor is the rule that lets a request pass, false when there is none.
func ruleFor(method, requested string) (AccessRule, bool) {
	at, _, _ := strings.Cut("/v1/"+requested, "?")
	for _, r := range AccessRules() {
		if ok, err := path.Match(r.Path, at); err == nil && ok && r.Method == method {
			return r, true
		}
	}
	return AccessRule{}, false
}

// AccessRules are all that this package ever sends. GET / and GET /v1 are public
// and need none. A test compares the table with the requests that are sent.
func AccessRules() []AccessRule {
	var out []AccessRule
	rule := func(method, path, use string) {
		out = append(out, AccessRule{Service: "baremetal", Method: method, Path: "/v1/" + path, Use: use})
	}
	rule("GET", "nodes", "find the devices' nodes")
	rule("GET", "nodes/*", "read one node")
	rule("GET", "nodes/*/inventory", "verify the hardware")
	rule("GET", "nodes/*/history", "say why a transition failed")
	rule("GET", "ports", "find the devices' ports, and whose a MAC address is")
	rule("GET", "portgroups", "read the bond")
	rule("POST", "nodes", "create a node")
	rule("POST", "portgroups", "create the bond")
	rule("POST", "ports", "create a port")
	rule("PATCH", "nodes/*", "credential, RAID interface, root device, driver")
	rule("PATCH", "ports/*", "add a missing link")
	rule("PUT", "nodes/*/states/provision", "manage, inspect, provide")
	rule("PUT", "nodes/*/states/power", "power on")
	rule("PUT", "nodes/*/states/raid", "RAID target")
	rule("PUT", "nodes/*/traits/*", "the scheduler's trait")
	rule("PUT", "nodes/*/maintenance", "put maintenance back")
	rule("DELETE", "nodes/*/maintenance", "clear maintenance before a ramdisk is booted")
	return out
}
