package bmctest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// user is an account beside the machine's own.
type user struct {
	id, name, password, role, ipmi string
	enabled                        bool
	change                         bool // the password must be changed first
	types                          []string
}

const (
	accountsPath = rootPath + "/AccountService/Accounts"
	dellSlots    = 16
	dellOwnSlot  = "2"
	noPrivilege  = "No Access"
)

// ownID is the id of the machine's own account.
func (b *BMC) ownID() string {
	switch b.machine.Vendor {
	case IDRAC, Supermicro:
		return dellOwnSlot
	case Generic:
		return b.machine.User
	}
	return "1"
}

func (b *BMC) userAt(id string) *user {
	for _, u := range b.users {
		if u.id == id {
			return u
		}
	}
	return nil
}

func (b *BMC) userNamed(name string) *user {
	for _, u := range b.users {
		if u.name == name {
			return u
		}
	}
	return nil
}

// accountIDs are those that the collection shows.
func (b *BMC) accountIDs() []string {
	if b.machine.Vendor == IDRAC {
		var out []string
		for i := 1; i <= dellSlots; i++ {
			out = append(out, strconv.Itoa(i))
		}
		return out
	}
	out := []string{b.ownID()}
	for _, u := range b.users {
		out = append(out, u.id)
	}
	if b.machine.Vendor == AMI {
		out = append(out, "HostInterfaceAdministrator")
	}
	return out
}

// accountResource gives the collection and the accounts.
func (b *BMC) accountResource(path string) object {
	if b.machine.Profile.NoAccounts {
		return nil
	}
	if path == accountsPath {
		var members []string
		for _, id := range b.accountIDs() {
			members = append(members, path+"/"+id)
		}
		return collection(path, "ManagerAccount", members...)
	}
	id, ok := strings.CutPrefix(path, accountsPath+"/")
	if !ok || !slices.Contains(b.accountIDs(), id) {
		return nil
	}
	d := object{"@odata.id": path, "@odata.type": "#ManagerAccount.v1_9_0.ManagerAccount", "Id": id, "Name": "User Account", "Password": nil,
		"UserName": "", "RoleId": "None", "Enabled": false, "Locked": false, "AccountTypes": []any{"Redfish"}}
	switch u := b.userAt(id); {
	case id == b.ownID():
		d["UserName"], d["RoleId"], d["Enabled"] = b.machine.User, "Administrator", true
	case u != nil:
		d["UserName"], d["RoleId"], d["Enabled"] = u.name, u.role, u.enabled
		if len(u.types) > 0 {
			var types []any
			for _, t := range u.types {
				types = append(types, t)
			}
			d["AccountTypes"] = types
		}
	case id == "HostInterfaceAdministrator":
		d["UserName"], d["RoleId"], d["Enabled"] = id, id, true
	}
	if b.machine.Vendor == XCC {
		d["PasswordChangeRequired"] = b.mustChange(text(d["UserName"]))
	}
	return d
}

// limits of a password, as the makers have them.
func (b *BMC) passwordLimits() (least, most int) {
	switch b.machine.Vendor {
	case XCC:
		return 10, 32
	case IDRAC:
		return 1, 40
	case AMI:
		return 13, 20
	}
	return 8, 20
}

// fitsPolicy judges a new password.
func (b *BMC) fitsPolicy(password, current string) bool {
	least, most := b.passwordLimits()
	letters := strings.ContainsAny(strings.ToLower(password), "abcdefghijklmnopqrstuvwxyz")
	digits := strings.ContainsAny(password, "0123456789")
	return len(password) >= least && len(password) <= most && (b.machine.Vendor != XCC || letters && digits) && password != current
}

// setOwnPassword changes the password of the account that the machine has.
func (b *BMC) setOwnPassword(v any) (func(), string) {
	s, ok := v.(string)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	if !b.fitsPolicy(s, b.machine.Password) {
		return nil, "PropertyValueFormatError"
	}
	return func() {
		b.passwordChanges++
		if !b.machine.Profile.PasswordIgnored {
			b.machine.Password, b.machine.Profile.PasswordChange = s, false
		}
	}, ""
}

// accountChange gives the properties of an account that take a PATCH.
func (b *BMC) accountChange(path string) map[string]setter {
	id, ok := strings.CutPrefix(path, accountsPath+"/")
	if !ok || b.accountResource(path) == nil || id == "1" && b.machine.Vendor == IDRAC {
		return nil
	}
	if id == b.ownID() {
		return map[string]setter{"Password": b.setOwnPassword}
	}
	u := b.userAt(id)
	if u == nil && b.machine.Vendor != IDRAC {
		return nil // the internal one
	}
	make := func(change func(*user)) func() {
		return func() {
			u := b.userAt(id)
			if u == nil {
				u = &user{id: id, ipmi: noPrivilege}
				b.users = append(b.users, u)
			}
			change(u)
		}
	}
	text := func(set func(*user, string)) setter {
		return func(v any) (func(), string) {
			s, ok := v.(string)
			if !ok {
				return nil, "PropertyValueTypeError"
			}
			return make(func(u *user) { set(u, s) }), ""
		}
	}
	set := map[string]setter{
		"UserName": text(func(u *user, s string) { u.name = s }),
		"RoleId":   text(func(u *user, s string) { u.role = s }),
		"Enabled": func(v any) (func(), string) {
			on, ok := v.(bool)
			if !ok {
				return nil, "PropertyValueTypeError"
			}
			return make(func(u *user) { u.enabled = on }), ""
		},
		"Password": func(v any) (func(), string) {
			s, ok := v.(string)
			if !ok || !b.fitsPolicy(s, "") {
				return nil, "PropertyValueFormatError"
			}
			return make(func(u *user) {
				u.change = b.values["firstaccess"] == true
				if !b.machine.Profile.PasswordIgnored {
					u.password = s
				}
			}), ""
		},
	}
	if b.machine.Vendor == XCC {
		set["PasswordChangeRequired"] = func(v any) (func(), string) {
			on, ok := v.(bool)
			if !ok {
				return nil, "PropertyValueTypeError"
			}
			return make(func(u *user) { u.change = on }), ""
		}
	}
	if b.hasAccountTypes() {
		set["AccountTypes"] = func(v any) (func(), string) {
			types, refusal := accountTypes(v)
			return make(func(u *user) { u.types = types }), refusal
		}
	}
	return set
}

func (b *BMC) hasAccountTypes() bool {
	return b.machine.Vendor == XCC || b.machine.Vendor == Generic && !b.machine.Profile.NoAccountTypes
}

func accountTypes(v any) ([]string, string) {
	list, ok := v.([]any)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	var out []string
	for _, item := range list {
		s, _ := item.(string)
		if !slices.Contains([]string{"WebUI", "Redfish", "ManagerConsole", "IPMI", "SNMP"}, s) {
			return nil, "PropertyValueNotInList"
		}
		out = append(out, s)
	}
	return out, ""
}

// typesWithoutPassword: an XCC takes IPMI for an account only with its password
// in the same request.
func (b *BMC) typesWithoutPassword(body object) bool {
	types, refusal := accountTypes(body["AccountTypes"])
	return b.machine.Vendor == XCC && refusal == "" && slices.Contains(types, "IPMI") && body["Password"] == nil
}

// createAccount answers a POST to the collection; an iDRAC 9 has slots.
func (b *BMC) createAccount(w http.ResponseWriter, body object) {
	if b.machine.Vendor == Supermicro && b.smcLocked(w) {
		return
	}
	u := &user{enabled: true, ipmi: noPrivilege, role: "ReadOnly", change: b.values["firstaccess"] == true}
	u.name, _ = body["UserName"].(string)
	u.password, _ = body["Password"].(string)
	for _, key := range sorted(body) {
		switch key {
		case "UserName", "Password":
		case "RoleId":
			u.role, _ = body[key].(string)
		case "Enabled":
			u.enabled, _ = body[key].(bool)
		case "AccountTypes":
			types, refusal := accountTypes(body[key])
			if !b.hasAccountTypes() {
				refusal = "PropertyUnknown"
			}
			if refusal != "" {
				b.propertyError(w, refusal, key)
				return
			}
			u.types = types
		default:
			b.propertyError(w, "PropertyUnknown", key)
			return
		}
	}
	if u.name == "" || len(u.name) > 16 || !b.fitsPolicy(u.password, "") {
		b.propertyError(w, "PropertyValueFormatError", "Password")
		return
	}
	for _, id := range b.accountIDs() {
		if text(b.accountResource(accountsPath + "/" + id)["UserName"]) == u.name {
			b.refuse(w, http.StatusBadRequest, b.base("ResourceAlreadyExists"), "The account exists already.", "Change it.")
			return
		}
	}
	u.id = strconv.Itoa(len(b.users) + 3)
	if b.machine.Vendor == Generic {
		u.id = u.name
	}
	b.users = append(b.users, u)
	w.Header().Set("Location", accountsPath+"/"+u.id)
	b.respond(w, http.StatusCreated, b.accountResource(accountsPath+"/"+u.id))
}

// User tells what a further account may: its role, and whether its user may log in
// over IPMI; "" when there is none of that name.
func (b *BMC) User(name string) (role string, enabled, ipmi bool, password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.users {
		if u.name == name {
			shared := !b.hasAccountTypes() && b.machine.Vendor != IDRAC
			return u.role, u.enabled, shared || slices.Contains(u.types, "IPMI") || b.machine.Vendor == IDRAC && u.ipmi != noPrivilege, u.password
		}
	}
	return "", false, false, ""
}

// AddUser is an account that somebody else made, which may do everything.
func (b *BMC) AddUser(name, password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := strconv.Itoa(len(b.users) + 3)
	if b.machine.Vendor == Generic {
		id = name
	}
	b.users = append(b.users, &user{id: id, name: name, password: password, role: "ReadOnly", ipmi: "User", enabled: true, types: []string{"Redfish", "IPMI"}})
}

// ChangeUser is somebody else's change of a further account, which also loses its
// way in over IPMI.
func (b *BMC) ChangeUser(name, password, role string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u := b.userNamed(name); u != nil {
		u.password, u.role, u.types, u.ipmi, u.change = password, role, []string{"Redfish"}, noPrivilege, b.values["firstaccess"] == true
	}
}

// IPMI tells whether IPMI over LAN is on.
func (b *BMC) IPMI() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.values["ipmi"] == true || b.attrs["IPMILan.1.Enable"] == "Enabled"
}

// PasswordChanges is how often a change of the own account's password was taken.
func (b *BMC) PasswordChanges() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.passwordChanges
}

// mayWhilePasswordOnly tells what an account may do that has to change its
// password first: that.
func (b *BMC) mayWhilePasswordOnly(r *http.Request, path string) bool {
	switch {
	case r.Method == http.MethodDelete && strings.HasPrefix(path, sessionsPath+"/"):
		return true
	case r.Method != http.MethodPatch:
		return false
	case b.machine.Vendor == IDRAC:
		return path == b.attributesPath()
	}
	return path == accountsPath+"/"+b.ownID()
}

// dellUsers are the attributes of the slots; passwords are never shown.
func (b *BMC) dellUsers(attrs object) {
	for i := 2; i <= dellSlots; i++ {
		prefix, name, role, ipmi := "Users."+number(i)+".", "", word(false), noPrivilege
		if number(i) == b.ownID() {
			name, role, ipmi = b.machine.User, word(true), "Administrator"
		} else if u := b.userAt(number(i)); u != nil {
			name, role, ipmi = u.name, word(u.enabled), u.ipmi
		}
		attrs[prefix+"UserName"], attrs[prefix+"Enable"], attrs[prefix+"IpmiLanPrivilege"] = name, role, ipmi
	}
}

func (b *BMC) dellUserChange() map[string]setter {
	set := map[string]setter{"Attributes/Users." + dellOwnSlot + ".Password": b.setOwnPassword}
	for i := 3; i <= dellSlots; i++ {
		id := number(i)
		set["Attributes/Users."+id+".IpmiLanPrivilege"] = func(v any) (func(), string) {
			s, _ := v.(string)
			if !slices.Contains([]string{"User", "Operator", "Administrator", noPrivilege}, s) || b.userAt(id) == nil {
				return nil, "PropertyValueNotInList"
			}
			return func() { b.userAt(id).ipmi = s }, ""
		}
	}
	return set
}
