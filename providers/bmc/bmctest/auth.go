package bmctest

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/providers/exchange"
)

type session struct {
	id, token, client string
	created, used     time.Time
	user              string
	passwordOnly      bool // good for changing the password and nothing else
}

const sessionsPath = "/redfish/v1/SessionService/Sessions"

// describe tells the recorder about a request. Sessions are logins, not
// changes.
func (b *BMC) describe() exchange.Describe {
	return exchange.Describe{
		System: "bmc",
		Device: func(*http.Request) string { return b.name },
		Mutating: func(r *http.Request) bool {
			return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasPrefix(r.URL.Path, sessionsPath)
		},
	}
}

func (b *BMC) expire() {
	for id, s := range b.sessions {
		if b.now().Sub(s.used) > b.machine.Profile.SessionTimeout {
			delete(b.sessions, id)
		}
	}
}

// failures are the failed logins of one account, or from one address.
type failures struct {
	count  int
	last   time.Time
	locked time.Time // until then
}

// failuresOf gives those that count against an account. Whoever asks an iDRAC has
// the one address that there is here.
func (b *BMC) failuresOf(user string) *failures {
	if b.machine.Vendor == IDRAC {
		user = ""
	}
	if b.failed[user] == nil {
		b.failed[user] = &failures{}
	}
	return b.failed[user]
}

func (b *BMC) isLocked(user string) bool { return b.now().Before(b.failuresOf(user).locked) }

// failWindow is for how long a login that failed counts; each that follows begins it
// anew (AccountLockoutCounterResetAfter, an iDRAC's IPBlocking.1.FailWindow).
func (b *BMC) failWindow() time.Duration {
	switch b.machine.Vendor {
	case IDRAC:
		return time.Minute
	case XCC:
		return time.Hour
	}
	return 10 * time.Minute
}

// fail counts a login that failed.
func (b *BMC) fail(user string) {
	f := b.failuresOf(user)
	if b.now().Sub(f.last) >= b.failWindow() {
		f.count = 0
	}
	f.last = b.now()
	f.count++
	if limit := b.machine.Profile.LockAfter; limit > 0 && f.count >= limit {
		f.locked, f.count = b.now().Add(b.machine.Profile.LockFor), 0
		b.lockouts++
	}
}

// password checks a login. A locked account refuses the right password too, and
// most BMCs do not say that this is why.
func (b *BMC) password(user, password string) bool {
	if b.isLocked(user) {
		return false
	}
	right := b.machine.Password
	if user != b.machine.User {
		u := b.userNamed(user)
		if u == nil || !u.enabled || u.password == "" {
			b.fail(user)
			return false
		}
		right = u.password
	}
	if password != right {
		b.fail(user)
		return false
	}
	if b.machine.Vendor != IDRAC { // whether that clears an address is not known
		b.failuresOf(user).count = 0
	}
	return true
}

// authorized finds out who asks; nil means that the answer was given.
func (b *BMC) authorized(w http.ResponseWriter, r *http.Request) *session {
	b.expire()
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		for _, s := range b.sessions {
			if s.token == token {
				s.used = b.now()
				return s
			}
		}
		b.refuse(w, http.StatusUnauthorized, b.base("NoValidSession"), "There is no valid session established with the implementation.", "Establish a session before attempting any operations.")
		return nil
	}
	if user, password, ok := r.BasicAuth(); ok && !b.machine.Profile.NoBasic {
		if b.password(user, password) {
			return &session{user: user, passwordOnly: b.mustChange(user)}
		}
		b.unauthorized(w, user)
		return nil
	}
	b.unauthorized(w, "")
	return nil
}

func (b *BMC) unauthorized(w http.ResponseWriter, user string) {
	if b.machine.Vendor == Generic && !b.machine.Profile.NoBasic {
		w.Header().Set("WWW-Authenticate", `Basic realm="BMC"`) // an iDRAC takes Basic and does not advertise it
	}
	if b.isLocked(user) && b.machine.Profile.TellLockout {
		b.refuse(w, http.StatusUnauthorized, "SMC.1.0.AccountLockup", "The account is locked after too many failed logins.", "Wait until the lockout ends.")
		return
	}
	b.refuse(w, http.StatusUnauthorized, b.base("AccessDenied"), "The authentication credentials included with this request are missing or invalid.", "Attempt to ensure that the URI is correct and that the service has the appropriate credentials.")
}

// login creates a session.
func (b *BMC) login(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		b.unauthorized(w, "") // as some firmware does
		return
	}
	body, ok := b.body(w, r)
	if !ok {
		return
	}
	for _, key := range sorted(body) {
		if key != "UserName" && key != "Password" {
			b.propertyError(w, "PropertyUnknown", key)
			return
		}
	}
	user, okUser := body["UserName"].(string)
	password, okPassword := body["Password"].(string)
	if !okUser || !okPassword {
		b.propertyError(w, "PropertyMissing", "Password")
		return
	}
	if !b.password(user, password) {
		b.unauthorized(w, user)
		return
	}
	if b.mustChange(user) && b.machine.Profile.ChangeRefusesLogin {
		b.respond(w, http.StatusForbidden, object{"error": object{"code": b.base("GeneralError"), "message": "A general error has occurred.", "@Message.ExtendedInfo": []any{b.passwordChangeInfo(user)}}})
		return
	}
	b.expire()
	if len(b.sessions) >= b.machine.Profile.MaxSessions {
		if b.machine.Vendor == IDRAC {
			b.refuse(w, http.StatusServiceUnavailable, "IDRAC.2.8.RAC0218", "The maximum number of user sessions is reached.", "Close an existing session and retry.")
			return
		}
		b.refuse(w, http.StatusServiceUnavailable, b.base("SessionLimitExceeded"), "The session establishment failed due to the number of simultaneous sessions exceeding the limit of the implementation.", "Reduce the number of other sessions before trying to establish the session.")
		return
	}
	b.nextID++
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	s := &session{id: strconv.Itoa(b.nextID), token: random(), client: client, created: b.now(), used: b.now(), user: user, passwordOnly: b.mustChange(user)}
	b.sessions[s.id] = s
	w.Header().Set("X-Auth-Token", s.token)
	switch {
	case b.machine.Profile.NoLocation:
	case b.machine.Profile.AbsoluteLocation:
		w.Header().Set("Location", "https://"+b.hostname+sessionsPath+"/"+s.id)
	default:
		w.Header().Set("Location", sessionsPath+"/"+s.id)
	}
	doc := b.sessionDoc(s)
	if s.passwordOnly {
		doc["@Message.ExtendedInfo"] = []any{b.passwordChangeInfo(user)}
	}
	b.answer(w, http.StatusCreated, doc)
}

func (b *BMC) logout(w http.ResponseWriter, id string) {
	if b.sessions[id] == nil {
		b.notFound(w, sessionsPath+"/"+id)
		return
	}
	delete(b.sessions, id)
	if b.machine.Vendor == IDRAC {
		b.answer(w, http.StatusOK, object{"@Message.ExtendedInfo": []any{info(b.base("Success"), "The request completed successfully.", "None", "OK")}})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *BMC) sessionDoc(s *session) object {
	return object{
		"@odata.id": sessionsPath + "/" + s.id, "@odata.type": "#Session.v1_3_0.Session", "Id": s.id, "Name": "User Session",
		"UserName": s.user, "ClientOriginIPAddress": s.client, "CreatedTime": s.created.UTC().Format(time.RFC3339),
	}
}

// mustChange tells whether an account must change its password first.
func (b *BMC) mustChange(user string) bool {
	if u := b.userNamed(user); u != nil && user != b.machine.User {
		return u.change
	}
	return b.machine.Profile.PasswordChange
}

// passwordChangeInfo is what stands in every answer until the password was
// changed.
func (b *BMC) passwordChangeInfo(user string) object {
	account := accountsPath + "/" + b.ownID()
	if u := b.userNamed(user); u != nil {
		account = accountsPath + "/" + u.id
	}
	if b.machine.Vendor == IDRAC {
		return info("IDRAC.2.8.SWC1908", "The default password must be changed before any other operation.", "Change the password and retry.", "Critical")
	}
	m := info(b.base("PasswordChangeRequired"), "The password provided for this account must be changed before access is granted.  PATCH the Password property for this account located at the target URI '"+account+"' to complete this process.", "Change the password for this account using a PATCH to the Password property at the URI provided.", "Critical")
	m["MessageArgs"] = []any{account}
	return m
}

func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand does not fail
	return hex.EncodeToString(b[:])
}
