package ironic

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// inspectionCheck is one check of an inventory against the record: a row of
// inspectionChecks. Both functions are pure.
type inspectionCheck struct {
	key  string // of check.inspection[…]
	path string // below inspection_validation; "" for what is always checked
	// expects says in words what is wanted, "" when the record does not ask for it.
	expects func(e expectations) string
	judge   func(e expectations, inv *inventory) finding
}

// finding is what a check found in an inventory.
type finding struct {
	verdict  plan.CheckVerdict
	observed string
	text     string   // what is wrong, or why it is unknown
	from     []string // where in the inventory it was seen
}

func matched(from, observed string) finding {
	return finding{verdict: plan.CheckPass, observed: observed, from: []string{from}}
}

func mismatch(from, observed, text string) finding {
	return finding{verdict: plan.CheckFail, observed: observed, text: text, from: []string{from}}
}

// unreported is the finding of a check whose data are missing: that is not the
// same as a mismatch, and it proves nothing.
func unreported(from, what string) finding {
	return finding{verdict: plan.CheckUnknown, observed: "not reported", text: "the inventory has no " + what, from: []string{from}}
}

// equal is the finding of a number that must be met exactly.
func equal(from, what string, want, got int) finding {
	if want == got {
		return matched(from, strconv.Itoa(got))
	}
	return mismatch(from, strconv.Itoa(got), fmt.Sprintf("%s: %d recorded, %d found", what, want, got))
}

// inspectionChecks are all checks but those of cables, in the order of the
// reference (phase 5).
func inspectionChecks() []inspectionCheck {
	number := func(pick func(e expectations) *int) func(e expectations) string {
		return func(e expectations) string {
			if n := pick(e); n != nil {
				return strconv.Itoa(*n)
			}
			return ""
		}
	}
	list := func(before string, pick func(e expectations) []string) func(e expectations) string {
		return func(e expectations) string {
			if l := pick(e); len(l) > 0 {
				return before + strings.Join(l, ", ")
			}
			return ""
		}
	}
	yes := func(text string, pick func(e expectations) bool) func(e expectations) string {
		return func(e expectations) string {
			if pick(e) {
				return text
			}
			return ""
		}
	}
	return []inspectionCheck{
		{keyCarrier, "", expectCarrier, func(e expectations, inv *inventory) finding { return carrier(e.nics, inv) }},
		{keyPXE, "", expectPXE, func(e expectations, inv *inventory) finding { return pxePort(*e.provisioning, inv) }},
		{"cpu_cores", "cpu.cores", number(func(e expectations) *int { return e.Cores }), func(e expectations, inv *inventory) finding { return cpuCores(*e.Cores, inv) }},
		{"cpu_sockets", "cpu.sockets", number(func(e expectations) *int { return e.Sockets }), func(e expectations, inv *inventory) finding { return cpuSockets(*e.Sockets, inv) }},
		{"cpu_architecture", "cpu.architecture", func(e expectations) string { return e.Architecture }, func(e expectations, inv *inventory) finding { return cpuArchitecture(e.Architecture, inv) }},
		{"nic_count", "nics.count", number(func(e expectations) *int { return e.NICs }), func(e expectations, inv *inventory) finding { return nicCount(*e.NICs, inv) }},
		{"nic_vendors", "nics.vendors", list("each of ", func(e expectations) []string { return e.NICVendors }), func(e expectations, inv *inventory) finding { return nicVendors(e.NICVendors, inv) }},
		{"nic_link", "nics.link", yes("link on each", func(e expectations) bool { return e.NICLink }), func(_ expectations, inv *inventory) finding { return nicLink(inv) }},
		{"disk_count", "disks.count", number(func(e expectations) *int { return e.Disks }), func(e expectations, inv *inventory) finding { return diskCount(*e.Disks, inv) }},
		{"disk_models", "disks.models", list("each one of ", func(e expectations) []string { return e.DiskModels }), func(e expectations, inv *inventory) finding { return diskModels(e.DiskModels, inv) }},
		{"memory_total", "memory.total_gib", gib(func(e expectations) *int { return e.MemoryGiB }), func(e expectations, inv *inventory) finding { return memoryTotal(*e.MemoryGiB, inv) }},
		{"dimm_count", "memory.dimms", number(func(e expectations) *int { return e.DIMMs }), func(e expectations, inv *inventory) finding { return dimmCount(*e.DIMMs, inv) }},
		{"dimm_size", "memory.dimm_gib", gib(func(e expectations) *int { return e.DIMMGiB }), func(e expectations, inv *inventory) finding { return dimmSize(*e.DIMMGiB, inv) }},
		{"dimm_consistency", "memory.consistent", yes("one size, speed and maker", func(e expectations) bool { return e.MemoryConsistent }), func(_ expectations, inv *inventory) finding { return dimmConsistency(inv) }},
		{"bios_allow", "bios.allow", list("one of ", func(e expectations) []string { return e.BIOSAllow }), func(e expectations, inv *inventory) finding { return biosAllow(e.BIOSAllow, inv) }},
		{"bios_block", "bios.block", list("none of ", func(e expectations) []string { return e.BIOSBlock }), func(e expectations, inv *inventory) finding { return biosBlock(e.BIOSBlock, inv) }},
		{"gpu_count", "gpus", expectGPUs, func(e expectations, inv *inventory) finding { return gpuCount(*e.GPUs, e.GPUDevices, inv) }},
	}
}

func gib(pick func(e expectations) *int) func(e expectations) string {
	return func(e expectations) string {
		if n := pick(e); n != nil {
			return strconv.Itoa(*n) + " GiB"
		}
		return ""
	}
}

// tally counts equal texts and names the counts, most frequent first: "24 × 64 GB,
// 8 × 32 GB". What a hostile inventory says stays short.
type tally map[string]int

const tallied = 6 // different texts that are named

func (t tally) String() string {
	keys := make([]string, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(a, b int) bool {
		if t[keys[a]] != t[keys[b]] {
			return t[keys[a]] > t[keys[b]]
		}
		return keys[a] < keys[b]
	})
	var parts []string
	for n, k := range keys {
		if n == tallied {
			parts = append(parts, fmt.Sprintf("%d more kinds", len(keys)-n))
			break
		}
		name := k
		if name == "" {
			name = "(not reported)"
		}
		parts = append(parts, fmt.Sprintf("%d × %s", t[k], name))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// named lists some names, and how many more there are.
func named(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// words of an inventory are shown short and printable.
func said(v any) string {
	switch v := v.(type) {
	case string:
		text := []rune(plain([]byte(v)))
		if len(text) > 60 {
			return string(text[:60]) + "…"
		}
		return string(text)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}
