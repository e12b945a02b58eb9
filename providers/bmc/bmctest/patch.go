package bmctest

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// setter checks and stores the value of a writable property. It gives the
// message of the Base registry that refuses it, "" when it fits.
type setter func(v any) (store func(), refusal string)

var zoneOffset = regexp.MustCompile(`^[+-][01][0-9]:(00|15|30|45)$`) //nolint:gochecknoglobals // a constant

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`) //nolint:gochecknoglobals // a constant

// writable gives the properties of a resource that take a PATCH, by their
// names or, one level down, NAME/NAME; nil when the resource takes none.
func (b *BMC) writable(path string) map[string]setter {
	p := b.machine.Profile
	base := path
	if p.SettingsObject && b.machine.Vendor == Generic && (strings.HasPrefix(path, b.interfacePath()) || strings.HasPrefix(path, b.protocolPath())) {
		base = strings.TrimSuffix(path, "/Settings")
		if base == path {
			return nil // the resource itself takes none then
		}
	}
	switch {
	case p.ReadOnly:
		return nil
	case base == b.interfacePath():
		set := map[string]setter{"DHCPv4/DHCPEnabled": b.setDHCP}
		if !p.NoHostname && !p.HostnameOnProtocol {
			set["HostName"] = b.setHostname
		}
		return set
	case base == b.protocolPath():
		return b.protocolSetters()
	case path == rootPath+"/AccountService" && b.machine.Vendor != IDRAC:
		return map[string]setter{"AccountLockoutThreshold": b.count("lockout", 0, 16), "AccountLockoutDuration": b.count("lockoutfor", 0, 86400), "Oem/Lenovo/PasswordChangeOnFirstAccess": b.flag("firstaccess")}
	}
	if set := b.accountChange(path); set != nil {
		return set
	}
	return b.maker.change(b, path)
}

func (b *BMC) protocolSetters() map[string]setter {
	set := map[string]setter{
		"NTP/ProtocolEnabled": b.setNTPEnabled, "NTP/NTPServers": b.setNTPServers,
		"HTTP/ProtocolEnabled": b.flag("http"), "SSH/ProtocolEnabled": b.flag("ssh"), "IPMI/ProtocolEnabled": b.flag("ipmi"), "SNMP/ProtocolEnabled": b.flag("snmp"),
	}
	switch b.machine.Vendor {
	case IDRAC:
		set = map[string]setter{"NTP/ProtocolEnabled": without, "NTP/NTPServers": without, "IPMI/ProtocolEnabled": b.flag("ipmi")}
	case XCC:
		set["SNMP/EnableSNMPv3"] = b.flag("snmp")
		delete(set, "SNMP/ProtocolEnabled")
	default:
		set["SSDP/ProtocolEnabled"] = b.flag("ssdp")
	}
	if !b.machine.Profile.NoHostname {
		set["HostName"] = b.setHostname
	}
	return set
}

func (b *BMC) setDHCP(v any) (func(), string) {
	on, ok := v.(bool)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	return func() { b.dhcp = on }, ""
}

// flag, choice, line and count are settings that are one value.
func (b *BMC) flag(name string) setter {
	return func(v any) (func(), string) {
		if _, ok := v.(bool); !ok {
			return nil, "PropertyValueTypeError"
		}
		return func() { b.values[name] = v }, ""
	}
}

func (b *BMC) choice(name string, words ...string) setter {
	return func(v any) (func(), string) {
		if !slices.Contains(words, text(v)) {
			return nil, "PropertyValueNotInList"
		}
		return func() { b.values[name] = v }, ""
	}
}

// offset is the time zone of those that keep no more of it.
func (b *BMC) offset(v any) (func(), string) {
	s, ok := v.(string)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	if !zoneOffset.MatchString(s) {
		return nil, "PropertyValueFormatError"
	}
	return func() { b.values["offset"] = s }, ""
}

func (b *BMC) line(name string) setter {
	return func(v any) (func(), string) {
		if _, ok := v.(string); !ok {
			return nil, "PropertyValueTypeError"
		}
		return func() { b.values[name] = v }, ""
	}
}

func (b *BMC) count(name string, low, up float64) setter {
	return func(v any) (func(), string) {
		n, ok := v.(float64)
		if !ok {
			return nil, "PropertyValueTypeError"
		}
		if n < low || n > up {
			return nil, "PropertyValueNotInList"
		}
		return func() { b.values[name] = int(n) }, ""
	}
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

func (b *BMC) patch(w http.ResponseWriter, r *http.Request, doc object, writable map[string]setter) {
	if match := r.Header.Get("If-Match"); match != "" {
		if match != "*" && strings.TrimPrefix(match, "W/") != strings.TrimPrefix(b.etag(doc), "W/") {
			b.refuse(w, http.StatusPreconditionFailed, b.base("PreconditionFailed"), "The ETag supplied did not match the current ETag of the resource.", "Try the operation again using the appropriate ETag.")
			return
		}
	} else if b.machine.Profile.RequireIfMatch {
		id := b.base("PreconditionRequired")
		if b.machine.Vendor == AMI {
			id = "Ami.1.0.PreconditionHeaderMissing"
		}
		b.refuse(w, http.StatusPreconditionRequired, id, "A precondition header or annotation is required to change this resource.", "Try the operation again using an If-Match or If-None-Match header and appropriate ETag.")
		return
	}
	body, ok := b.body(w, r)
	if !ok {
		return
	}
	path := trimSlash(r.URL.Path)
	if b.machine.Profile.Refuse != "" {
		b.refuse(w, http.StatusBadRequest, b.base(b.machine.Profile.Refuse), "The change is refused.", "None.")
		return
	}
	if b.machine.Vendor == AMI && b.amiAnswer(w, path, doc, body) || b.machine.Vendor == Supermicro && b.smcAnswer(w, path, doc, body) {
		return
	}
	if strings.HasPrefix(path, accountsPath+"/") && b.typesWithoutPassword(body) {
		b.propertyError(w, "PropertyMissing", "Password")
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
	if b.machine.Vendor == IDRAC && b.dellAnswer(w, path, body, apply) {
		return
	}
	if b.machine.Vendor == AMI && path == b.protocolPath() && tooManyServers(body) {
		b.startTask(w, nil) // it fails later
		return
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
			case nested && known && strings.Count(prefix, "/") < 2:
				if !visit(prefix+key+"/", have[key], inner) {
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

func tooManyServers(body object) bool {
	ntp, _ := body["NTP"].(object)
	servers, _ := ntp["NTPServers"].([]any)
	return len(servers) > 2
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
	case b.machine.Profile.TaskFails || t.apply == nil:
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
