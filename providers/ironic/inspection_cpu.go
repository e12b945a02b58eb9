package ironic

import (
	"fmt"
	"strconv"
	"strings"
)

const fromDMICPU = "plugin_data.dmi.cpu"

// cpuCores compares the cores of all processors together. The inventory proper
// counts threads only, so the number is that of DMI.
func cpuCores(want int, inv *inventory) finding {
	cpus := populatedCPUs(inv)
	if len(cpus) == 0 {
		return unreported(fromDMICPU, "processors of DMI (ramdisk collector dmi-decode); its cpu.count are threads, not cores")
	}
	sum := 0
	for n, cpu := range cpus {
		cores, err := strconv.Atoi(said(cpu["Core Count"]))
		if err != nil || cores <= 0 || cores > 1e5 {
			return unreported(fromDMICPU, fmt.Sprintf("Core Count of processor %d", n+1))
		}
		sum += cores
	}
	return equal(fromDMICPU+"[].Core Count", "cores", want, sum)
}

// cpuSockets compares the processors. Ramdisks before 2024 do not count sockets.
func cpuSockets(want int, inv *inventory) finding {
	if n := inv.Hardware.CPU.Sockets; n.known {
		return equal("inventory.cpu.socket_count", "processors", want, n.value)
	}
	if cpus := populatedCPUs(inv); len(cpus) > 0 {
		return equal(fromDMICPU, "processors", want, len(cpus))
	}
	return unreported("inventory.cpu.socket_count", "socket_count (ramdisks since 2024) and no processors of DMI (collector dmi-decode)")
}

func cpuArchitecture(want string, inv *inventory) finding {
	const from = "inventory.cpu.architecture"
	switch got := said(inv.Hardware.CPU.Architecture); got {
	case "":
		return unreported(from, "cpu.architecture")
	case want:
		return matched(from, got)
	default:
		return mismatch(from, got, "the processors are "+got+", not "+want)
	}
}

// populatedCPUs leaves out empty sockets, which DMI lists too.
func populatedCPUs(inv *inventory) []map[string]any {
	var out []map[string]any
	for _, cpu := range inv.Plugin.DMI.CPU {
		if cpu == nil {
			return nil // no object: the list cannot be read
		}
		if strings.Contains(said(cpu["Status"]), "Unpopulated") {
			continue
		}
		out = append(out, cpu)
	}
	return out
}
