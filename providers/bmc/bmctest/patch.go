package bmctest

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// setter checks and stores the value of a writable property. It gives the
// message of the Base registry that refuses it, "" when it fits.
type setter func(v any) (store func(), refusal string)

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`) //nolint:gochecknoglobals // a constant

// writable gives the properties of a resource that take a PATCH, by their
// names or, one level down, NAME/NAME; nil when the resource takes none.
func (b *BMC) writable(path string) map[string]setter {
	p := b.machine.Profile
	onSettings := p.SettingsObject && b.machine.Vendor == Generic
	base := path
	if onSettings {
		base = strings.TrimSuffix(path, "/Settings")
		if base == path {
			return nil // the resource itself takes none then
		}
	}
	switch {
	case p.ReadOnly:
		return nil
	case base == b.interfacePath() && !p.NoHostname && !p.HostnameOnProtocol:
		return map[string]setter{"HostName": b.setHostname}
	case base == b.protocolPath():
		set := map[string]setter{"NTP/ProtocolEnabled": b.setNTPEnabled, "NTP/NTPServers": b.setNTPServers}
		if b.machine.Vendor == IDRAC {
			set = map[string]setter{"NTP/ProtocolEnabled": without, "NTP/NTPServers": without}
		}
		if !p.NoHostname {
			set["HostName"] = b.setHostname
		}
		return set
	case b.machine.Vendor == IDRAC && path == b.attributesPath():
		set := map[string]setter{"Attributes/NIC.1.DNSRacName": b.setHostname, "Attributes/NTPConfigGroup.1.NTPEnable": b.setNTPWord}
		for i := range 3 {
			set["Attributes/NTPConfigGroup.1.NTP"+strconv.Itoa(i+1)] = func(v any) (func(), string) { return b.setNTPSlot(i, v) }
		}
		return set
	}
	return nil
}

// without takes a value and does nothing with it, as the standard NTP resource
// of an iDRAC does.
func without(any) (func(), string) { return func() {}, "" }

func (b *BMC) setHostname(v any) (func(), string) {
	s, ok := v.(string)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	if !hostName.MatchString(s) {
		return nil, "PropertyValueFormatError"
	}
	return func() { b.hostname = s }, ""
}

func (b *BMC) setNTPEnabled(v any) (func(), string) {
	on, ok := v.(bool)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	return func() { b.ntp.enabled = on }, ""
}

func (b *BMC) setNTPServers(v any) (func(), string) {
	list, ok := v.([]any)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	var servers []string
	for _, item := range list {
		s, ok := item.(string)
		if !ok {
			return nil, "PropertyValueTypeError"
		}
		if s == "" || len(s) > 255 || strings.ContainsAny(s, " /") {
			return nil, "PropertyValueFormatError"
		}
		servers = append(servers, s)
	}
	return func() { b.ntp.servers = servers }, ""
}

func (b *BMC) setNTPWord(v any) (func(), string) {
	switch v {
	case "Enabled", "Disabled":
		return func() { b.ntp.enabled = v == "Enabled" }, ""
	}
	return nil, "PropertyValueNotInList"
}

func (b *BMC) setNTPSlot(i int, v any) (func(), string) {
	s, ok := v.(string)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	if len(s) > 255 || strings.ContainsAny(s, " /") {
		return nil, "PropertyValueFormatError"
	}
	return func() {
		for len(b.ntp.servers) < 3 {
			b.ntp.servers = append(b.ntp.servers, "")
		}
		b.ntp.servers[i] = s
	}, ""
}

func (b *BMC) patch(w http.ResponseWriter, r *http.Request, doc object, writable map[string]setter) {
	if match := r.Header.Get("If-Match"); match != "" {
		if match != "*" && strings.TrimPrefix(match, "W/") != strings.TrimPrefix(b.etag(doc), "W/") {
			b.refuse(w, http.StatusPreconditionFailed, b.base("PreconditionFailed"), "The ETag supplied did not match the current ETag of the resource.", "Try the operation again using the appropriate ETag.")
			return
		}
	} else if b.machine.Profile.RequireIfMatch {
		b.refuse(w, http.StatusPreconditionRequired, b.base("PreconditionRequired"), "A precondition header or annotation is required to change this resource.", "Try the operation again using an If-Match or If-None-Match header and appropriate ETag.")
		return
	}
	body, ok := b.body(w, r)
	if !ok {
		return
	}
	stores, ok := b.check(w, doc, writable, body)
	if !ok {
		return
	}
	apply := func() {
		for _, store := range stores {
			store()
		}
	}
	switch {
	case b.machine.Profile.Tasks:
		b.startTask(w, apply)
		return
	case b.machine.Profile.Late > 0:
		b.late = append(b.late, lateChange{at: b.now().Add(b.machine.Profile.Late), apply: apply})
	default:
		apply()
	}
	if b.machine.Vendor == IDRAC {
		b.respond(w, http.StatusOK, object{"@Message.ExtendedInfo": []any{
			info(b.base("Success"), "The request completed successfully.", "None", "OK"),
			info("IDRAC.2.8.SYS413", "The operation successfully completed.", "No response action is required.", "Informational"),
		}})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// check finds the setters of a body. One bad property refuses the whole.
func (b *BMC) check(w http.ResponseWriter, doc object, writable map[string]setter, body object) ([]func(), bool) {
	if len(body) == 0 {
		b.refuse(w, http.StatusBadRequest, b.base("EmptyJSON"), "The request body submitted contained an empty JSON object and the service is unable to process it.", "Add properties in the JSON object and resubmit the request.")
		return nil, false
	}
	var stores []func()
	var visit func(prefix string, at any, part object) bool
	visit = func(prefix string, at any, part object) bool {
		have, _ := at.(object)
		for _, key := range sorted(part) {
			set := writable[prefix+key]
			inner, nested := part[key].(object)
			_, known := have[key]
			switch {
			case set != nil:
				store, refusal := set(part[key])
				if refusal != "" {
					b.propertyError(w, refusal, key)
					return false
				}
				stores = append(stores, store)
			case prefix == "" && nested && known:
				if !visit(key+"/", have[key], inner) {
					return false
				}
			case known:
				b.propertyError(w, "PropertyNotWritable", key)
				return false
			default:
				b.propertyError(w, "PropertyUnknown", key)
				return false
			}
		}
		return true
	}
	if !visit("", doc, body) {
		return nil, false
	}
	return stores, true
}

// propertyError refuses a property with the words of the Base registry, and of
// Dell's where an iDRAC has its own.
func (b *BMC) propertyError(w http.ResponseWriter, message, property string) {
	text := map[string]string{
		"PropertyUnknown":          "The property " + property + " is not in the list of valid properties for the resource.",
		"PropertyNotWritable":      "The property " + property + " is a read only property and cannot be assigned a value.",
		"PropertyMissing":          "The property " + property + " is a required property and must be included in the request.",
		"PropertyValueTypeError":   "The value provided for the property " + property + " is of a different type than the property can accept.",
		"PropertyValueFormatError": "The value provided for the property " + property + " is of a different format than the property can accept.",
		"PropertyValueNotInList":   "The value provided for the property " + property + " is not in the list of acceptable values.",
	}[message]
	first := info(b.base(message), text, "Remove or correct the property and resubmit the request if the operation failed.", "Warning")
	first["MessageArgs"], first["RelatedProperties"] = []any{property}, []any{"#/" + property}
	list := []any{first}
	if dell := map[string]string{"PropertyUnknown": "SYS429", "PropertyNotWritable": "SYS410", "PropertyValueTypeError": "SYS425", "PropertyValueFormatError": "SYS426", "PropertyValueNotInList": "SYS426"}[message]; dell != "" && b.machine.Vendor == IDRAC {
		list = append(list, info("IDRAC.2.8."+dell, "Unable to complete the operation because of the attribute "+property+".", "Correct the attribute and retry the operation.", "Warning"))
	}
	b.respond(w, http.StatusBadRequest, object{"error": object{
		"code": b.base("GeneralError"), "message": "A general error has occurred. See ExtendedInfo for more information.", "@Message.ExtendedInfo": list,
	}})
}

// task is a change that takes its time.
type task struct {
	polls int // looks that still find it running
	apply func()
	state string
}

func (b *BMC) startTask(w http.ResponseWriter, apply func()) {
	b.nextID++
	id := strconv.Itoa(b.nextID)
	b.tasks[id] = &task{polls: b.machine.Profile.TaskPolls, apply: apply, state: "New"}
	path := rootPath + "/TaskService/Tasks/" + id
	w.Header().Set("Location", path)
	b.respond(w, http.StatusAccepted, object{"@odata.id": path, "@odata.type": "#Task.v1_7_3.Task", "Id": id, "Name": "Task " + id, "TaskState": "New"})
}

// taskDoc looks at a task, which moves it on.
func (b *BMC) taskDoc(id string) object {
	t := b.tasks[id]
	if t == nil {
		return nil
	}
	messages := []any{}
	switch {
	case t.state == "Completed" || t.state == "Exception":
	case t.polls > 0:
		t.polls--
		t.state = "Running"
	case b.machine.Profile.TaskFails:
		t.state = "Exception"
	default:
		t.state = "Completed"
		t.apply()
	}
	if t.state == "Exception" {
		messages = append(messages, info(b.base("PropertyValueFormatError"), "The value provided for the property NTPServers is of a different format than the property can accept.", "Correct the value and resubmit the request.", "Warning"))
	}
	return object{"@odata.id": rootPath + "/TaskService/Tasks/" + id, "@odata.type": "#Task.v1_7_3.Task", "Id": id, "Name": "Task " + id, "TaskState": t.state, "TaskStatus": "OK", "Messages": messages}
}

func (b *BMC) taskRunning(path string) bool {
	t := b.tasks[last(path)]
	return strings.HasPrefix(path, rootPath+"/TaskService/Tasks/") && t != nil && t.state == "Running"
}
