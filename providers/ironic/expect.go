package ironic

import (
	"math"

	"github.com/enroll-dev/enroll/plan"
)

// expectations are what config context inspection_validation wants an
// inspection to have found. Nil, and an empty list, mean: not asked.
type expectations struct {
	Sockets, Cores            *int
	Architecture              string
	NICs                      *int
	NICVendors                []string
	NICLink                   bool
	Disks                     *int
	DiskModels                []string
	MemoryGiB, DIMMs, DIMMGiB *int
	MemoryConsistent          bool
	BIOSAllow, BIOSBlock      []string
	GPUs                      *int
	GPUDevices                []string // VENDOR:PRODUCT
	nics                      []plan.FrontendNIC
	provisioning              *plan.FrontendNIC // nil: the record has none
	skipCables                bool
	portNames, switchNames    map[string][]string // by the switch's platform: what does not count
}

// expected collects what a device's record and its site want. Values of a wrong
// type are faults of the intent, which keep the device from being looked at; here
// they count as absent.
func expected(t *plan.Target) expectations {
	doc := t.Intent.Inspection
	cpu, nics, disks, memory, bios := section(doc, "cpu"), section(doc, "nics"), section(doc, "disks"), section(doc, "memory"), section(doc, "bios")
	e := expectations{
		Sockets: count(cpu, "sockets"), Cores: count(cpu, "cores"),
		NICs: count(nics, "count"), NICVendors: texts(nics, "vendors"),
		Disks: count(disks, "count"), DiskModels: texts(disks, "models"),
		MemoryGiB: count(memory, "total_gib"), DIMMs: count(memory, "dimms"), DIMMGiB: count(memory, "dimm_gib"),
		BIOSAllow: texts(bios, "allow"), BIOSBlock: texts(bios, "block"),
		GPUs: count(doc, "gpus"), GPUDevices: texts(doc, "gpu_devices"),
		nics: frontend(t), skipCables: t.Intent.Ironic.SkipCableVerification,
		portNames: t.Site.Verification.PortNames, switchNames: t.Site.Verification.SwitchNames,
	}
	if nic, ok := t.Intent.ProvisioningNIC(); ok && !nic.MAC.IsZero() {
		e.provisioning = &nic
	}
	e.Architecture, _ = cpu["architecture"].(string)
	e.NICLink, _ = nics["link"].(bool)
	e.MemoryConsistent, _ = memory["consistent"].(bool)
	return e
}

func section(doc map[string]any, key string) map[string]any {
	m, _ := doc[key].(map[string]any)
	return m
}

func count(doc map[string]any, key string) *int {
	f, ok := doc[key].(float64)
	if !ok || f != math.Trunc(f) || f < 0 || f > 1e6 {
		return nil
	}
	n := int(f)
	return &n
}

func texts(doc map[string]any, key string) []string {
	list, _ := doc[key].([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
