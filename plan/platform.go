package plan

import (
	"slices"
	"strings"
)

// PlatformNames are the names by which a site file may speak of a device's
// platform, the wider first: DEVICETYPE of a platform class (reference, phase 0b),
// and the whole class that NetBox records, where it does.
func (i *Intent) PlatformNames() []string {
	var names []string
	if t := DeviceType(i.Manufacturer + i.Model); t != "" {
		names = append(names, t)
	}
	if i.PlatformClass != nil && *i.PlatformClass != "" {
		names = append(names, *i.PlatformClass)
	}
	return names
}

// DeviceType is DEVICETYPE of a platform class: letters and digits, upper case.
func DeviceType(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToUpper(s))
}

// SwitchesToIPMI reports whether the device's node gets the driver ipmi after
// inspection: all of its Ironic do, or those of its platform.
func (t *Target) SwitchesToIPMI() bool {
	return t.Ironic != nil && (t.Ironic.SwitchToIPMI || slices.ContainsFunc(t.Intent.PlatformNames(), func(name string) bool { return slices.Contains(t.Ironic.SwitchPlatforms, name) }))
}

// SpeaksIPMI reports whether Ironic reaches the device's BMC by IPMI, or will: NetBox
// has that driver, or the node gets it after inspection. by says where that is set.
func (t *Target) SpeaksIPMI() (speaks bool, by string) {
	switch {
	case t.Intent.Ironic.Driver == "ipmi":
		return true, t.Intent.URL
	case !t.SwitchesToIPMI():
		return false, ""
	case t.Ironic.SwitchToIPMI:
		return true, t.Site.Set["ironic."+t.Ironic.Name+".switch_to_ipmi_after_inspection"]
	}
	return true, t.Site.Set["ironic."+t.Ironic.Name+".switch_to_ipmi_platforms"]
}
