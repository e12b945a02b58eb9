package bmc

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// login is how a BMC knows us.
type login struct {
	basic    bool   // the BMC has no sessions: user and password with each request
	token    string // X-Auth-Token
	session  string // path of the session, "" when the BMC did not say
	sessions string // path of the collection

	// A login whose answer was lost may have left a session that nobody knows.
	lost      int       // how many of them are not settled
	lostSince time.Time // when the first of them was sent
	lostUntil time.Time // until then the BMC may still serve one that it did not answer in time
	opened    time.Time // when the login of the present session was sent
	unproven  int       // logins in this run of which nothing is known
	left      bool      // a session could not be ended
}

// maxUnproven bounds the logins of a run whose outcome is unknown: they may all
// have been refused, and some BMCs lock an account after the third.
const maxUnproven = 2

// session makes sure that requests can be made. It tries a credential once in a
// run; a refused one is remembered.
func (k *conn) session(ctx context.Context, root document) *plan.Fault {
	switch {
	case k.refused != nil:
		return k.refused
	case k.login.basic || k.login.token != "":
		return nil
	case k.login.unproven >= maxUnproven:
		return plan.NewFault(plan.CodeBMCUnreachable, "the BMC of %s did not answer %d logins; enroll does not try again in this run, so as not to lock the account", k.device, k.login.unproven).With("url", k.base)
	}
	if h := k.refusedBefore(k.own(k.using, k.password)); h != nil {
		k.refused = h.fault
		return k.refused
	}
	k.login.sessions = root.link("Links", "Sessions")
	if service := root.link("SessionService"); k.login.sessions == "" && service != "" {
		k.login.sessions = strings.TrimSuffix(service, "/") + "/Sessions"
	}
	if k.login.sessions == "" {
		k.login.basic = true
		return nil
	}
	return k.post(ctx)
}

// credential asks for user and password, once.
func (k *conn) credential(ctx context.Context) *plan.Fault {
	if k.known {
		return nil
	}
	user, password, err := k.client.credentials.Credential(ctx, k.device)
	if err != nil {
		return plan.AsFault(err)
	}
	if user == "" || password.Reveal() == "" {
		return plan.NewFault(plan.CodeSecretInvalid, "user name or password of the BMC of %s is empty", k.device).With("secret", k.client.credentials.Ref(k.device).String())
	}
	k.user, k.password, k.known = user, password, true
	return nil
}

// post opens a session. The request is not abandoned when ctx is cancelled:
// its answer is the only place where the session's address stands.
func (k *conn) post(ctx context.Context) *plan.Fault {
	if ctx.Err() != nil {
		return k.noAnswer(ctx, request{method: http.MethodPost, path: resolve(k.login.sessions)}, ctx.Err())
	}
	started := k.client.opt.Now()
	// No Authorization header: some firmware refuses the login because of it.
	ans, sent, fault := k.exchange(context.WithoutCancel(ctx), request{method: http.MethodPost, path: resolve(k.login.sessions), body: map[string]string{
		"UserName": k.user, "Password": k.password.Reveal(),
	}})
	if fault != nil {
		if sent {
			k.login.unproven++
			k.login.lost++
			if k.login.lost == 1 {
				k.login.lostSince, k.login.lostUntil = started, time.Time{}
			}
			if given := k.client.opt.Now(); given.Sub(started) >= k.client.settings.Timeout {
				k.login.lostUntil = given.Add(k.client.settings.Timeout)
			}
		}
		return fault
	}
	list := messages(ans.body)
	token := ans.header.Get("X-Auth-Token")
	switch {
	case ans.status >= 200 && ans.status < 300 && token != "":
		k.login.token, k.login.session, k.login.opened = token, k.sessionPath(ans), started
		k.loggedIn()
		if has(list, idsPasswordChange...) {
			// This session may change the password and nothing else.
			k.refused = k.wantsChange(ans, list)
			return k.refused
		}
		k.login.unproven = 0
		// What is left of a lost login must not stand in the way of this one; Close
		// tries again and says so.
		if fault := k.sweep(ctx); fault != nil && (k.login.token == "" || isCode(fault, plan.CodeBMCUnreachable) || isCode(fault, plan.CodeInterrupted)) {
			return fault
		}
		return nil
	case ans.status >= 200 && ans.status < 300:
		k.login.left = !isPage(ans) // nobody can end it without its token
		return k.refusal(plan.CodeBMCProtocol, ans, "the BMC of %s answered the login without a session token", k.device)
	case ans.status == http.StatusUnauthorized, ans.status == http.StatusForbidden && !has(list, idsSessionLimit...) && !busy(list),
		has(list, idsLocked...), has(list, idsPasswordChange...):
		return k.refuse(ans, list)
	case missing(ans.status):
		k.login.basic = true // no session service behind the link
		return nil
	}
	return k.judge(ans)
}

// loggedIn follows a login that the BMC took.
func (k *conn) loggedIn() {
	k.starting = false
	k.forget(k.user)
}

// refuse remembers that the credential was refused.
func (k *conn) refuse(ans *answer, list []message) *plan.Fault {
	ref, first := k.own(k.using, k.password).secret, k.client.credentials.Ref(k.device)
	switch {
	case has(list, idsPasswordChange...):
		k.loggedIn()
		k.refused = k.wantsChange(ans, list)
	case has(list, idsLocked...):
		k.refused = k.refusal(plan.CodeBMCLocked, ans, "the BMC of %s has locked the account", k.device)
	default:
		k.remember(k.own(k.using, k.password))
		k.refused = k.refusal(plan.CodeBMCCredential, ans, "the BMC of %s at %s refused the login with %s", k.device, k.base, ref)
	}
	k.refused = k.refused.With("secret", ref.String())
	if k.using != stored {
		k.refused = k.refused.With("refused before", first.String())
	}
	k.login.token, k.login.session, k.login.basic = "", "", false
	return k.refused
}

// sessionPath reads where a session is: Location, else the body.
func (k *conn) sessionPath(ans *answer) string {
	if l := ans.header.Get("Location"); l != "" {
		return resolve(l)
	}
	d, ok := parse(ans.path, "", ans.body)
	if !ok {
		return ""
	}
	if id := d.text("@odata.id"); id != "" {
		return resolve(id)
	}
	if id := d.text("Id"); id != "" {
		return strings.TrimSuffix(ans.path, "/") + "/" + id
	}
	return ""
}

// sweep deletes sessions whose login answer was lost. It knows them by user,
// client address and the BMC's own clock: they began between the lost login and
// the present one, or later where the BMC let the lost one wait. When more fit
// than were lost, none is touched. One that is not there yet, and may still come,
// stays unsettled.
func (k *conn) sweep(ctx context.Context) *plan.Fault {
	if k.login.lost == 0 {
		return nil
	}
	own, fault := k.get(ctx, k.login.session)
	if fault != nil {
		return fault
	}
	all, fault := k.get(ctx, k.login.sessions)
	if fault != nil {
		return fault
	}
	began, err := time.Parse(time.RFC3339, own.text("CreatedTime"))
	if err != nil {
		return nil // the BMC does not tell ages: the session ends by its idle timeout, and Close says so
	}
	earliest := k.login.lostSince.Sub(k.login.opened) - 2*time.Second // times on the wire have whole seconds
	latest := max(0, k.login.lostUntil.Sub(k.login.opened))
	var found []string
	for _, member := range all.links("Members") {
		if resolve(member) == k.login.session {
			continue
		}
		s, fault := k.get(ctx, member)
		if fault != nil && fault.Code == plan.CodeBMCUnsupported {
			continue // ended meanwhile
		}
		if fault != nil {
			return fault
		}
		other, err := time.Parse(time.RFC3339, s.text("CreatedTime"))
		later := other.Sub(began)
		if err == nil && s.text("UserName") == k.user && s.text("ClientOriginIPAddress") == own.text("ClientOriginIPAddress") && later >= earliest && later <= latest {
			found = append(found, resolve(member))
		}
	}
	if len(found) > k.login.lost {
		return nil
	}
	for _, path := range found {
		if err := k.end(ctx, path); err != nil {
			return plan.AsFault(err)
		}
		k.login.lost--
	}
	if k.client.opt.Now().After(k.login.lostUntil) {
		k.login.lost = 0 // what is not there was never opened
	}
	return nil
}

var errLeft = errors.New("a session may be left on the BMC; it ends by the BMC's idle timeout")

// logout deletes what this process opened.
func (k *conn) logout(ctx context.Context) error {
	if k.login.left {
		k.login.left = false
		return errors.Join(errLeft, k.logout(ctx))
	}
	if k.login.lost > 0 && k.login.token == "" && k.refused == nil && k.login.unproven < maxUnproven {
		if fault := k.post(ctx); fault != nil && k.login.token == "" {
			return errors.Join(errLeft, fault)
		}
	}
	if k.login.token == "" {
		if k.login.lost > 0 && k.refused == nil {
			return errLeft
		}
		return nil
	}
	if k.login.lost > 0 {
		// A new try at what sweep could not finish when the session was opened.
		if fault := k.sweep(ctx); fault != nil {
			return errors.Join(errLeft, fault, k.endOwn(ctx))
		}
		if k.login.lost > 0 {
			return errors.Join(errLeft, k.endOwn(ctx))
		}
	}
	return k.endOwn(ctx)
}

func (k *conn) endOwn(ctx context.Context) error {
	path := k.login.session
	if path == "" {
		k.login.token = ""
		return errLeft // the BMC did not say where the session is
	}
	err := k.end(ctx, path)
	k.login.token, k.login.session = "", ""
	return err
}

// end deletes a session. Deleting is repeatable, so a lost answer, and a
// connection that was not made in time, are tried again; a BMC that does not know
// the session any more is content.
func (k *conn) end(ctx context.Context, path string) error {
	return k.endAs(ctx, k.login.token, path)
}

func (k *conn) endAs(ctx context.Context, token, path string) error {
	ctx = context.WithoutCancel(ctx)
	var last error
	denied := false
	for range 3 {
		ans, _, fault := k.exchange(ctx, request{method: http.MethodDelete, path: path, token: token})
		switch {
		case fault != nil:
			last = fault
		case ans.status == http.StatusUnauthorized && !denied:
			denied = true // once it may be a mistake of the BMC's, and the session lives
		case ans.status == http.StatusUnauthorized, ans.status == http.StatusNotFound, ans.status == http.StatusGone:
			return nil
		case ans.status >= 200 && ans.status < 300 && ans.broken == nil && !isPage(ans):
			return nil
		default:
			last = k.refusal(plan.CodeBMCProtocol, ans, "the BMC of %s did not end the session", k.device)
		}
	}
	return errors.Join(errLeft, last)
}

// isPage tells an HTML page, as a web server before the Redfish service gives.
func isPage(ans *answer) bool {
	return strings.HasPrefix(strings.TrimSpace(string(ans.body)), "<")
}
