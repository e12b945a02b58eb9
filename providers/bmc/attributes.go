package bmc

import (
	"context"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// attributes reads the attribute table of an iDRAC: the one that belongs to
// the manager itself, not those of system and lifecycle controller.
func (k *conn) attributes(ctx context.Context) (document, *plan.Fault) {
	m, fault := k.manager(ctx)
	if fault != nil {
		return m, fault
	}
	path := ""
	for _, l := range m.links("Links", "Oem", "Dell", "DellAttributes") {
		if name(l) == m.text("Id") {
			path = l
		}
	}
	if path == "" {
		path = strings.TrimSuffix(m.path, "/") + "/Oem/Dell/DellAttributes/" + name(m.path)
	}
	d, fault := k.get(ctx, path)
	if fault != nil {
		return d, fault
	}
	if _, ok := d.top["Attributes"].(map[string]any); !ok {
		return d, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: d.path}, "the attribute table of the iDRAC of %s is empty", k.device)
	}
	return d, nil
}

// writeAttributes sends the attributes that differ. A plain PATCH takes effect
// at once; the settings object that the table names is for later application.
func (k *conn) writeAttributes(ctx context.Context, d document, want map[string]any) plan.Result {
	differing := map[string]any{}
	before := map[string]any{}
	for _, key := range sortedKeys(want) {
		have, _ := d.at("Attributes", key)
		if n, ok := have.(float64); ok && want[key] == int(n) || have == want[key] {
			continue
		}
		differing[key], before[key] = want[key], have
	}
	if len(differing) == 0 {
		return plan.Already()
	}
	return k.write(ctx, change{on: d, direct: true, body: map[string]any{"Attributes": differing}, same: func(now document) bool {
		for key, have := range before {
			if v, _ := now.at("Attributes", key); !sameValue(v, have) {
				return false
			}
		}
		return true
	}})
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
