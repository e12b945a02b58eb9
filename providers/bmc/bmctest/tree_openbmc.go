package bmctest

import "time"

// openBMC is the generic BMC.
func openBMC() maker {
	return maker{
		system: "system", manager: "bmc", nic: "eth0", model: "Example Server", registry: "Base.1.18", lockAfter: 5, idle: 5 * time.Minute, weakETag: true,
		expands: true, managerResets: []any{"GracefulRestart", "ForceRestart"}, resetInfo: true, biosSettings: "Settings",
		root: func(b *BMC, d object) {
			d["Vendor"], d["Product"] = "OpenBMC", "Example BMC"
			d["Links"].(object)["ManagerProvidingService"] = link(b.managerPath())
			if b.machine.Profile.NoVendor { // as sushy-tools
				delete(d, "Vendor")
				delete(d, "Product")
			}
		},
		resource: func(b *BMC, path string) object {
			switch path {
			case b.interfacePath() + "/Settings":
				if b.machine.Profile.SettingsObject {
					return pendingCopy(b.ethernet(), path)
				}
			case b.protocolPath() + "/Settings":
				if b.machine.Profile.SettingsObject && !b.machine.Profile.NoNetworkProtocol {
					return pendingCopy(b.protocol(), path)
				}
			}
			return nil
		},
		change: func(b *BMC, path string) map[string]setter {
			if o, ok := b.optionOf(path, ""); ok {
				return map[string]setter{"BootOptionEnabled": b.setEnabled(o.reference)}
			}
			switch path {
			case b.managerPath():
				if b.machine.Profile.ZoneName {
					return map[string]setter{"TimeZoneName": b.line("zone")}
				}
				return map[string]setter{"DateTimeLocalOffset": b.offset}
			case b.systemPath():
				return map[string]setter{"Boot/BootOrder": b.setOrder}
			case b.biosPath() + "/Settings":
				return map[string]setter{"Attributes": b.setAttributes}
			}
			return nil
		},
	}
}

func pendingCopy(d object, path string) object {
	d["@odata.id"] = path
	delete(d, "@Redfish.Settings")
	return d
}
