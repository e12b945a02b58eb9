package ironic

import (
	"slices"
	"strconv"
	"strings"
)

func expectGPUs(e expectations) string {
	if e.GPUs == nil {
		return ""
	}
	text := strconv.Itoa(*e.GPUs)
	if len(e.GPUDevices) > 0 {
		text += " of " + strings.Join(e.GPUDevices, ", ")
	}
	return text
}

// gpuCount counts the PCI devices that are GPUs: those of the given
// VENDOR:PRODUCT ids, else every display controller and accelerator but the
// graphics of a BMC. Virtual functions have product ids of their own, so a list
// of ids leaves them out.
func gpuCount(want int, devices []string, inv *inventory) finding {
	list, from := inv.Plugin.PCI, "plugin_data.pci_devices"
	if list == nil {
		list, from = inv.Hardware.PCI, "inventory.pci_devices"
	}
	if list == nil {
		return unreported("plugin_data.pci_devices", "PCI devices (ramdisk collector pci-devices)")
	}
	found, n := tally{}, 0
	for _, d := range list {
		id := pciID(d.Vendor) + ":" + pciID(d.Product)
		switch {
		case len(devices) > 0 && !slices.ContainsFunc(devices, func(w string) bool { return sameID(w, id) }):
			continue
		case len(devices) == 0 && !isGPU(d):
			continue
		}
		found[id]++
		n++
	}
	f := equal(from, "GPUs", want, n)
	f.observed = found.String()
	return f
}

func pciID(s string) string {
	id, err := hexID(s)
	if err != nil {
		return said(s)
	}
	return strconv.FormatUint(0x10000|id, 16)[1:] // four digits
}

func sameID(want, id string) bool {
	vendor, product, _ := strings.Cut(want, ":")
	return pciID(vendor)+":"+pciID(product) == id
}

// isGPU goes by the PCI class: 0300 VGA, 0302 3D controller, 0380 other display
// controller, 1200 processing accelerator.
func isGPU(d pciDevice) bool {
	class := strings.TrimPrefix(strings.ToLower(d.Class), "0x")
	switch pciID(d.Vendor) {
	case "1a03", "102b": // ASPEED and Matrox: the BMC's own screen
		return false
	}
	for _, prefix := range []string{"0300", "0302", "0380", "1200"} {
		if strings.HasPrefix(class, prefix) {
			return true
		}
	}
	return false
}
