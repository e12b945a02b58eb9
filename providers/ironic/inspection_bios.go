package ironic

import (
	"slices"
	"strings"
)

// biosVersion is what the ramdisk read, else DMI's; "" when neither says.
func biosVersion(inv *inventory) (version, from string) {
	if v := said(inv.Hardware.Vendor.Firmware.Version); v != "" {
		return v, "inventory.system_vendor.firmware.version"
	}
	return said(inv.Plugin.DMI.BIOS["Version"]), "plugin_data.dmi.bios.Version"
}

func noBIOS() finding {
	return unreported("inventory.system_vendor.firmware.version", "BIOS version (ramdisks since April 2023, or collector dmi-decode)")
}

func biosAllow(allow []string, inv *inventory) finding {
	v, from := biosVersion(inv)
	switch {
	case v == "":
		return noBIOS()
	case slices.Contains(allow, v):
		return matched(from, v)
	}
	return mismatch(from, v, "BIOS version "+v+" is none of those allowed: "+strings.Join(allow, ", "))
}

func biosBlock(block []string, inv *inventory) finding {
	v, from := biosVersion(inv)
	switch {
	case v == "":
		return noBIOS()
	case slices.Contains(block, v):
		return mismatch(from, v, "BIOS version "+v+" is blocked")
	}
	return matched(from, v)
}
