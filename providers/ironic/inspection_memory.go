package ironic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

const (
	fromMemory = "inventory.memory.physical_mb"
	fromDIMMs  = "plugin_data.dmi.memory.devices"
)

// memoryTotal compares what is installed. memory.total is not used: it is what
// the kernel left after reserving its own.
func memoryTotal(want int, inv *inventory) finding {
	mb := inv.Hardware.Memory.PhysicalMB
	if !mb.known {
		return unreported(fromMemory, "memory.physical_mb")
	}
	observed := fmt.Sprintf("%d MiB", mb.value)
	if mb.value%1024 == 0 {
		observed = fmt.Sprintf("%d GiB", mb.value/1024)
	}
	if mb.value == int64(want)*1024 {
		return matched(fromMemory, observed)
	}
	return mismatch(fromMemory, observed, fmt.Sprintf("memory: %d GiB recorded, %s found", want, observed))
}

// dimms are the modules in their slots; DMI lists empty slots too. False when
// there are no data.
func dimms(inv *inventory) ([]map[string]any, bool) {
	var out []map[string]any
	for _, d := range inv.Plugin.DMI.Memory.Devices {
		if d == nil {
			return nil, false // no object: the list cannot be read
		}
		if size := said(d["Size"]); !strings.HasPrefix(size, "No Module") && size != "Not Installed" {
			out = append(out, d)
		}
	}
	return out, inv.Plugin.DMI.Memory.Devices != nil
}

func noDIMMs() finding {
	return unreported(fromDIMMs, "memory modules (ramdisk collector dmi-decode)")
}

func dimmCount(want int, inv *inventory) finding {
	found, ok := dimms(inv)
	if !ok {
		return noDIMMs()
	}
	return equal(fromDIMMs, "memory modules", want, len(found))
}

// dimmSize wants every module to have the size. DMI's MB and GB are powers of two.
func dimmSize(want int, inv *inventory) finding {
	const from = fromDIMMs + "[].Size"
	found, ok := dimms(inv)
	if !ok {
		return noDIMMs()
	}
	sizes := tally{}
	var wrong, silent []string
	for n, d := range found {
		text := said(d["Size"])
		sizes[text]++
		switch mib, err := sizeMiB(text); {
		case err != nil:
			silent = append(silent, slot(d, n))
		case mib != int64(want)*1024:
			wrong = append(wrong, slot(d, n))
		}
	}
	switch {
	case len(wrong) > 0:
		return mismatch(from, sizes.String(), "another size: "+named(wrong))
	case len(silent) > 0:
		return finding{verdict: plan.CheckUnknown, observed: sizes.String(), text: "no size was reported for " + named(silent), from: []string{from}}
	}
	return matched(from, sizes.String())
}

func slot(d map[string]any, n int) string {
	if name := said(d["Locator"]); name != "" {
		return name
	}
	return "module " + strconv.Itoa(n+1)
}

// sizeMiB reads dmidecode's sizes: "64 GB", "65536 MB", "1 TB".
func sizeMiB(text string) (int64, error) {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return 0, err
	}
	switch strings.ToUpper(strings.TrimSpace(unit)) {
	case "MB", "MIB":
		return n, nil
	case "GB", "GIB":
		return n << 10, nil
	case "TB", "TIB":
		return n << 20, nil
	}
	return 0, fmt.Errorf("%q is no unit of memory", unit)
}

// dimmConsistency wants all modules to be alike in size, speed and maker.
func dimmConsistency(inv *inventory) finding {
	found, ok := dimms(inv)
	if !ok {
		return noDIMMs()
	}
	kinds := tally{}
	missing := map[string]bool{}
	var lacks []string
	values := map[string]tally{}
	for _, d := range found {
		var words []string
		for _, field := range []string{"Size", "Speed", "Manufacturer"} {
			v := said(d[field])
			if v == "" && field == "Speed" {
				v = said(d["Configured Memory Speed"])
			}
			if v == "" || v == "Unknown" || v == "Not Specified" {
				if !missing[field] {
					missing[field] = true
					lacks = append(lacks, field)
				}
				continue
			}
			if values[field] == nil {
				values[field] = tally{}
			}
			values[field][v]++
			words = append(words, v)
		}
		kinds[strings.Join(words, " ")]++
	}
	for _, field := range []string{"Size", "Speed", "Manufacturer"} {
		if len(values[field]) > 1 {
			return mismatch(fromDIMMs, kinds.String(), "modules differ in "+field+": "+values[field].String())
		}
	}
	if len(lacks) > 0 {
		return finding{verdict: plan.CheckUnknown, observed: kinds.String(), text: "not reported for every module: " + strings.Join(lacks, ", "), from: []string{fromDIMMs}}
	}
	return matched(fromDIMMs, kinds.String())
}
