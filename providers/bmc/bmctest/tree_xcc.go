package bmctest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lenovo is an XCC2.
func lenovo() maker {
	return maker{
		system: "1", manager: "1", nic: "NIC", model: "ThinkSystem SR680a V3", registry: "Base.1.12", lockAfter: 5, idle: 5 * time.Minute, bodyETag: true,
		expands: true, managerResets: []any{"GracefulRestart", "ForceRestart"}, settings: "Pending", biosSettings: "Pending",
		root: func(_ *BMC, d object) {
			d["Vendor"] = "Lenovo"
			delete(d, "Product")
			d["@odata.id"] = rootPath + "/"
		},
		resource: (*BMC).lenovoResource, change: (*BMC).lenovoChange, action: (*BMC).lenovoAction,
	}
}

func (b *BMC) securityPath() string   { return b.managerPath() + "/Oem/Lenovo/Security" }
func (b *BMC) recipientsPath() string { return b.managerPath() + "/Oem/Lenovo/Recipients" }

func (b *BMC) networkOrderPath() string {
	return b.systemPath() + "/Oem/Lenovo/BootSettings/BootOrder.NetworkBootOrder"
}

func (b *BMC) lenovoResource(path string) object {
	switch path {
	case b.systemPath() + "/Pending":
		return object{"@odata.id": path, "@odata.type": "#ComputerSystem.v1_17_0.ComputerSystem", "Id": "Pending", "Name": "Pending", "Boot": b.bootProperties(true)}
	case b.securityPath():
		return object{"@odata.id": path, "@odata.type": "#LenovoSecurityService.v1_0_0.LenovoSecurityService", "Id": "Security", "Name": "Security",
			"CryptographyManagement": object{"MinTLSLevel": b.values["tls"]}, "Configurator": object{"FWRollback": b.values["rollback"]}}
	case b.recipientsPath():
		var members []string
		for _, id := range sorted(b.recipients) {
			members = append(members, path+"/"+id)
		}
		return collection(path, "LenovoRecipient", members...)
	case b.systemPath() + "/Oem/Lenovo/BootSettings":
		b.listed = true
		return collection(path, "LenovoBootManager", path+"/BootOrder.NetworkBootOrder")
	case b.networkOrderPath():
		if !b.listed || b.machine.Profile.NoNetworkOrder { // it is not there before the list was read
			return nil
		}
		supported := make([]any, 0, len(b.machine.NICs))
		for i := range b.machine.NICs {
			supported = append(supported, b.slot(i))
		}
		d := object{"@odata.id": path, "@odata.type": "#LenovoBootManager.v1_0_0.LenovoBootManager", "Id": last(path), "Name": last(path), "BootOrderSupported": supported}
		d["BootOrderCurrent"], d["BootOrderNext"] = anyList(b.slots), anyList(b.slots)
		if b.nextSlots != nil {
			d["BootOrderNext"] = anyList(b.nextSlots)
		}
		return d
	}
	if id, ok := strings.CutPrefix(path, b.recipientsPath()+"/"); ok && b.recipients[id] != nil {
		return b.recipients[id]
	}
	return nil
}

// slot is how an XCC names a NIC in its network boot order.
func (b *BMC) slot(i int) string {
	return "UEFI:   SLOT" + strconv.Itoa(15+i) + " (65/0/" + strconv.Itoa(i) + ") HTTP IPv4  Example Network Adapter - " + strings.ToUpper(b.machine.NICs[i].MAC.String())
}

func anyList(list []string) []any {
	out := make([]any, 0, len(list))
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func (b *BMC) lenovoChange(path string) map[string]setter {
	switch path {
	case b.systemPath() + "/Pending":
		return map[string]setter{"Boot/BootOrder": b.setOrder}
	case b.biosPath() + "/Pending":
		return map[string]setter{"Attributes": b.setAttributes}
	case b.securityPath():
		return map[string]setter{"CryptographyManagement/MinTLSLevel": b.choice("tls", "TLSLevel1_0", "TLSLevel1_2", "TLSLevel1_3"), "Configurator/FWRollback": b.flag("rollback")}
	case b.managerPath():
		return map[string]setter{"Oem/Lenovo/KCSEnabled": b.kcs, "DateTimeLocalOffset": b.offset, "AutoDSTEnabled": b.flag("saving")}
	case b.networkOrderPath():
		return map[string]setter{"BootOrderNext": func(v any) (func(), string) {
			list, ok := v.([]any)
			if !ok {
				return nil, "PropertyValueTypeError"
			}
			var next []string
			for _, item := range list {
				next = append(next, text(item))
			}
			return func() { b.nextSlots = next }, ""
		}}
	}
	if id, ok := strings.CutPrefix(path, b.recipientsPath()+"/"); ok && b.recipients[id] != nil {
		return map[string]setter{"RecipientSettings": func(v any) (func(), string) {
			settings, ok := v.(object)
			if !ok {
				return nil, "PropertyValueTypeError"
			}
			return func() {
				have := b.recipients[id]["RecipientSettings"].(object)
				for k, value := range settings {
					have[k] = value
				}
			}, ""
		}}
	}
	return nil
}

// kcs is a boolean or a word, by firmware.
func (b *BMC) kcs(v any) (func(), string) {
	if b.machine.Profile.KCSWords {
		return b.choice("kcs", "Enabled", "Disabled")(v)
	}
	return b.flag("kcs")(v)
}

func (b *BMC) lenovoAction(path string) action {
	if path != b.recipientsPath() {
		return nil
	}
	return func(w http.ResponseWriter, body object) {
		id := text(body["Id"])
		n, err := strconv.Atoi(id)
		settings, ok := body["RecipientSettings"].(object)
		if err != nil || n < 1 || n > 12 || !ok || b.recipients[id] != nil {
			b.propertyError(w, "PropertyValueFormatError", "Id")
			return
		}
		alerts, _ := settings["EnabledAlerts"].(object)
		for _, name := range sorted(alerts) {
			kind, _ := alerts[name].(object)
			events, _ := kind["AcceptedEvents"].([]any)
			if slices.Contains(events, any("AllAuditEvents")) {
				b.propertyError(w, "PropertyValueNotInList", "AcceptedEvents")
				return
			}
		}
		b.recipients[id] = object{"@odata.id": path + "/" + id, "@odata.type": "#LenovoRecipient.v1_0_0.LenovoRecipient", "Id": id, "Name": "Recipient " + id, "RecipientSettings": settings}
		w.Header().Set("Location", path+"/"+id)
		b.respond(w, http.StatusCreated, b.recipients[id])
	}
}
