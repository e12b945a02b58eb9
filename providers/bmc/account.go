package bmc

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// accounts reads the accounts of a BMC. In a table of slots, free ones have no
// name.
func (k *conn) accounts(ctx context.Context) (service, collection document, list []document, fault *plan.Fault) {
	path := k.tree.root.link("AccountService")
	if path == "" {
		path = rootPath + "AccountService"
	}
	if service, fault = k.get(ctx, path); fault != nil {
		return service, collection, nil, fault
	}
	all := service.link("Accounts")
	if all == "" {
		return service, collection, nil, k.lacks(service, "accounts")
	}
	collection, list, fault = k.members(ctx, all)
	return service, collection, list, fault
}

// accountNamed finds an account by its exact name; nil when there is none.
func accountNamed(list []document, name string) *document {
	for i := range list {
		if list[i].text("UserName") == name {
			return &list[i]
		}
	}
	return nil
}

func basicOf(user string, password plan.Secret) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password.Reveal()))
}

// Where an iDRAC that wants its password changed takes the new one: it shows
// nothing then, and lets slot 2, which is root's, be changed (reference 3.3).
const (
	idracAttributes  = rootPath + "Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1"
	idracOwnPassword = "Users.2.Password"
	idracOwner       = "root"
)

// setPassword sends one PATCH with the own account's new password. forced is the
// BMC's demand, nil when it makes none.
func (k *conn) setPassword(ctx context.Context, next plan.Secret, forced *plan.Fault) *plan.Fault {
	r := request{method: http.MethodPatch, change: true, body: map[string]any{"Password": next.Reveal()}, token: k.login.token, basic: k.login.token == "", header: map[string]string{"If-Match": "*"}}
	switch {
	case forced != nil && k.forcedAt != "":
		r.path = resolve(k.forcedAt)
	case forced != nil && k.family.attributes && k.user == idracOwner:
		r.path, r.body = idracAttributes, map[string]any{"Attributes": map[string]any{idracOwnPassword: next.Reveal()}}
	case forced != nil:
		return k.fault(plan.CodeBMCPasswordChange, request{method: http.MethodPatch, path: rootPath}, "the BMC of %s wants its password changed and does not say at which account", k.device)
	default:
		_, _, list, fault := k.accounts(ctx)
		if fault != nil {
			return fault
		}
		own := accountNamed(list, k.user)
		if own == nil {
			return k.fault(plan.CodeBMCUnsupported, request{method: http.MethodGet, path: rootPath + "AccountService"}, "the BMC of %s shows no account of the name under which enroll logs in", k.device)
		}
		r.path = own.path
		if !k.family.anyMatch {
			if r.header["If-Match"] = own.etag; own.etag == "" || own.expanded {
				delete(r.header, "If-Match")
			}
		}
	}
	if fault := plan.Permit(ctx); fault != nil {
		return fault
	}
	ans, _, fault := k.exchange(ctx, r)
	if fault == nil && ans.status == http.StatusPreconditionRequired || fault == nil && ans.status == http.StatusPreconditionFailed {
		r.header = map[string]string{"If-Match": "*"}
		ans, _, fault = k.exchange(ctx, r)
	}
	switch {
	case fault != nil:
		return fault
	case ans.status == http.StatusUnauthorized && r.token != "":
		return k.unauthorized(ctx, ans)
	}
	return k.taken(ans)
}

// wantsChange is the fault of a BMC that demands another password. Which account it
// means is kept as it was said: in the fault's evidence a path that has the password
// for a part, as that of the account admin may, is no path any more.
func (k *conn) wantsChange(ans *answer, list []message) *plan.Fault {
	k.forcedAt = ""
	for _, m := range list {
		if m.id == "PasswordChangeRequired" && len(m.args) > 0 && strings.HasPrefix(m.args[0], "/") {
			k.forcedAt = m.args[0]
			break
		}
	}
	return k.refusal(plan.CodeBMCPasswordChange, ans, "the BMC of %s wants its password changed before it does anything else", k.device)
}
