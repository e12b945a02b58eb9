package bmctest

import (
	"net/http"
	"strings"
	"time"
)

// megarac is an AMI MegaRAC SP-X on a board of another maker.
func megarac() maker {
	return maker{
		system: "Self", manager: "Self", nic: "eth0", model: "G593-SD0", registry: "Base.1.12", lockAfter: 5, idle: 30 * time.Second, bodyETag: true,
		ifMatch: true, expands: true, managerResets: []any{"ForceRestart"}, resetInfo: true, settings: "SD", biosSettings: "SD",
		root: func(b *BMC, d object) {
			d["Vendor"], d["Product"], d["RedfishVersion"] = "AMI", "AMI Redfish Server", "1.11.0"
			d["Oem"] = object{"Ami": object{"@odata.type": "#AMIServiceRoot.v1_0_0.AMIServiceRoot", "RtpVersion": "13.03", "InventoryDataStatus": link(inventoryPath)}}
			if b.machine.Profile.BoardVendor != "" {
				d["Vendor"] = b.machine.Profile.BoardVendor
			}
		},
		resource: (*BMC).amiResource, change: (*BMC).amiChange, action: (*BMC).amiAction,
	}
}

const inventoryPath = rootPath + "/Oem/Ami/InventoryData/Status"

func (b *BMC) amiResource(path string) object {
	switch path {
	case b.systemPath() + "/SD":
		return object{"@odata.id": path, "@odata.type": "#ComputerSystem.v1_17_0.ComputerSystem", "Id": "Self", "Name": "System", "SystemType": "Physical", "Boot": b.bootProperties(true)}
	case inventoryPath:
		status := "Completed"
		if b.inPOST() {
			status = "InProgress"
		}
		return object{"@odata.id": path, "@odata.type": "#AMIInventoryStatus.v1_0_0.AMIInventoryStatus", "Id": "InventoryDataStatus", "Name": "PostStatus for Bios Inventory file",
			"InventoryData": object{"DeletedModules": []any{}, "Messages": []any{}, "ProcessingTime": 30572.31, "Status": status}}
	case b.managerPath() + "/VirtualMedia":
		var members []string
		if b.values["rmedia"] == true {
			members = []string{path + "/CD1"}
		}
		return collection(path, "VirtualMedia", members...)
	}
	return nil
}

func (b *BMC) amiChange(path string) map[string]setter {
	if o, ok := b.optionOf(path, "/SD"); ok {
		return map[string]setter{"BootOptionEnabled": b.setEnabled(o.reference)}
	}
	switch path {
	case b.managerPath():
		return map[string]setter{"DateTimeLocalOffset": b.offset}
	case b.systemPath() + "/SD":
		return map[string]setter{"Boot/BootOrder": b.setOrder}
	case b.biosPath() + "/SD":
		return map[string]setter{"Attributes": b.setAttributes}
	}
	return nil
}

// amiAnswer refuses what an AMI refuses before it looks at values.
func (b *BMC) amiAnswer(w http.ResponseWriter, path string, doc, body object) bool {
	future := strings.HasSuffix(path, "/SD")
	switch {
	case future && b.inPOST():
		w.Header().Set("Retry-After", "30")
		m := info("Ami.1.0.ServiceTemporarilyUnavailableDueToHostBooting", "The service is temporarily unavailable because the host is booting.", "Wait until the host has booted.", "Critical")
		b.respond(w, http.StatusServiceUnavailable, object{"error": object{"code": "Ami.1.0.ServiceTemporarilyUnavailableDueToHostBooting", "message": m["Message"], "@Message.ExtendedInfo": []any{m}}})
	case path == b.interfacePath() && b.groups(body) > 1:
		b.refuse(w, http.StatusBadRequest, "SyncAgent.1.0.OnePropertyAtATime", "Only one group of properties can be changed at a time.", "Send the groups one after the other.")
	case path == b.interfacePath() && equalTo(doc, body):
		b.refuse(w, http.StatusBadRequest, "SyncAgent.1.0.PatchValueAlreadyExists", "The value that was sent is the present one.", "Send values that differ.")
	default:
		return false
	}
	return true
}

// groups counts the parts of an interface that a body touches.
func (b *BMC) groups(body object) int { return len(body) }

// equalTo tells whether all that a body says is so already.
func equalTo(doc, body object) bool {
	for key, want := range body {
		have, ok := doc[key]
		if !ok {
			return false
		}
		if inner, nested := want.(object); nested {
			part, _ := have.(object)
			if !equalTo(part, inner) {
				return false
			}
			continue
		}
		if list, isList := want.([]any); isList {
			others, _ := have.([]any)
			if len(list) != len(others) {
				return false
			}
			for i := range list {
				if list[i] != others[i] {
					return false
				}
			}
			continue
		}
		if have != want {
			return false
		}
	}
	return true
}

// futureOnly refuses a change of what only its settings object takes.
func (b *BMC) futureOnly(w http.ResponseWriter, path string) bool {
	_, option := b.optionOf(path, "")
	if b.machine.Vendor != AMI || path != b.systemPath() && path != b.biosPath() && !option {
		return false
	}
	m := info("Ami.1.0.OperationSupportedInFutureStateURI", "The operation is supported at "+path+"/SD.", "Send the request there.", "Warning")
	m["MessageArgs"] = []any{"PATCH", path + "/SD"}
	b.respond(w, http.StatusBadRequest, object{"error": object{"code": "Ami.1.0.OperationSupportedInFutureStateURI", "message": m["Message"], "@Message.ExtendedInfo": []any{m}}})
	return true
}

func (b *BMC) amiAction(path string) action {
	if path != b.managerPath()+"/Actions/Oem/AMIVirtualMedia.EnableRMedia" {
		return nil
	}
	return func(w http.ResponseWriter, body object) {
		state := text(body["RMediaState"])
		if state != "Enable" && state != "Disable" { // not the words of the status
			b.parameterError(w, "RMediaState")
			return
		}
		if (b.values["rmedia"] == true) == (state == "Enable") {
			b.refuse(w, http.StatusBadRequest, "Ami.1.0.NoChangeInPropertyValue", "The property has that value already.", "None.")
			return
		}
		b.values["rmedia"] = state == "Enable"
		b.respond(w, http.StatusOK, object{"@Message.ExtendedInfo": []any{info("Ami.1.0.DelayInActionCompletion", "The action takes some seconds.", "None.", "OK")}})
	}
}
