package bmc

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Monitoring gives user name and password of the account that monitoring uses on
// all BMCs of a site. Ironic never does.
type Monitoring func(ctx context.Context) (user string, password plan.Secret, err error)

// ipmiRule is how a family lets an account in over IPMI. The zero value: every
// account may, since IPMI has the same table (reference, section 10).
type ipmiRule struct {
	types     bool // AccountTypes has IPMI, and is sent with the password
	privilege bool // an attribute of the slot
	// firstAccess: the account service may demand that every new account changes its
	// password first, also one that an administrator makes.
	firstAccess bool
}

func ipmiUserFacet() facet {
	return facet{kind: ipmiUserKind(), read: readIPMIUser, set: setIPMIUser, more: true}
}

// ipmiUserKind keeps the monitoring account: its role for Redfish, its privilege for
// IPMI, and that the vault's password is its password. A BMC without accounts to
// be made is shown and left alone.
func ipmiUserKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.ipmi_user", Phase: plan.PhaseBMC,
		Doc: "The account that monitoring uses, over Redfish and IPMI, the same on all BMCs of a site. Ironic never uses it. An XCC that makes new accounts change their password first (PasswordChangeOnFirstAccess) stops doing so before the account is made.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || t.Site.BMC.Monitoring.IsZero() {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "ipmi_user", ""),
				Want: plan.Obj(map[string]plan.Value{
					"Enabled": plan.Bool(true), "RoleId": plan.Str(t.Site.BMC.MonitoringRole), "IPMI": plan.Bool(true), "Login": plan.Str(loginAccepted),
					firstAccess: plan.Bool(false),
				}),
				From:    from(t.Site.Set["bmc.monitoring"], "Password: "+t.Site.BMC.Monitoring.String()),
				Effects: []plan.Effect{plan.EffectCredential}, Sensitive: true,
			}}
		},
		Decide: observeUnsupported,
	}
}

// ipmiPrivileges are the words of IPMI for the roles of Redfish.
func ipmiPrivileges() map[string]string {
	return map[string]string{"ReadOnly": "User", "Operator": "Operator", "Administrator": "Administrator"}
}

// firstAccess is Lenovo's name of the demand that a new account changes its password
// first.
const firstAccess = "PasswordChangeOnFirstAccess"

// demandsChange tells whether an account that is given a password now would have to
// change it first.
func (k *conn) demandsChange(service document) bool {
	on, _ := service.yes("Oem", "Lenovo", firstAccess)
	return k.family.ipmi.firstAccess && on
}

// ipmiNameBytes is the longest user name of IPMI.
const ipmiNameBytes = 16

// monitor is the monitoring account as the vault has it, checked.
func (k *conn) monitor(ctx context.Context) (user string, password plan.Secret, fault *plan.Fault) {
	ref := k.client.settings.Monitoring
	if k.client.opt.Monitoring == nil {
		return "", password, plan.NewFault(plan.CodeSecretMissing, "%s was not read from the vault", ref)
	}
	user, password, err := k.client.opt.Monitoring(ctx)
	if err != nil {
		return "", password, plan.AsFault(err)
	}
	k.monitoring = password
	misfit := passwordRule{least: 1}.misfit(password.Reveal())
	switch {
	case misfit != "":
		return "", password, plan.NewFault(plan.CodeSecretInvalid, "the password of the monitoring account %s", misfit).With("secret", ref.String())
	case user == "" || len(user) > ipmiNameBytes || strings.TrimSpace(user) != user:
		return "", password, plan.NewFault(plan.CodeSecretInvalid, "the user name of the monitoring account has %d bytes, or blanks at an end; IPMI takes 1 to %d bytes", len(user), ipmiNameBytes).With("secret", k.client.settings.MonitoringUser.String())
	case user == k.user:
		return "", password, plan.NewFault(plan.CodeConfigInvalid, "the monitoring account of %s is the account that enroll and Ironic use", k.device).With("secret", k.client.settings.MonitoringUser.String()).
			WithHint("Give monitoring an account of its own: monitoring and credential in the bmc block must name different users.")
	}
	return user, password, nil
}

func readIPMIUser(ctx context.Context, k *conn, _ *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	user, password, fault := k.monitor(ctx)
	if fault != nil {
		return plan.Null, nil, fault
	}
	service, collection, list, fault := k.accounts(ctx)
	if fault != nil {
		return plan.Null, nil, fault
	}
	demands := plan.Bool(k.demandsChange(service))
	seen := evidence{"url": k.base + collection.path}
	account := accountNamed(list, user)
	if account == nil {
		if i := slices.IndexFunc(list, func(d document) bool { return d.unread != nil }); i >= 0 {
			return plan.Null, nil, list[i].unread // it might be this one
		}
		return plan.Obj(map[string]plan.Value{"Enabled": plan.Bool(false), "RoleId": plan.Null, "IPMI": plan.Bool(false), "Login": plan.Str("no account"), firstAccess: demands}), seen, nil
	}
	seen["url"] = k.base + account.path
	enabled, _ := account.yes("Enabled")
	ipmi, fault := k.mayIPMI(ctx, *account)
	if fault != nil {
		return plan.Null, nil, fault
	}
	role := plan.Null
	if text := account.text("RoleId"); text != "" {
		role = plan.Str(text)
	}
	login := loginRefused
	if enabled {
		if login, fault = k.tryMonitor(ctx, user, password); fault != nil {
			return plan.Null, nil, fault
		}
		if login == loginAccepted && ipmi && account.text("RoleId") == k.client.settings.MonitoringRole {
			demands = plan.Bool(false) // it will not be given its password again
		}
	}
	return plan.Obj(map[string]plan.Value{"Enabled": plan.Bool(enabled), "RoleId": role, "IPMI": plan.Bool(ipmi), "Login": plan.Str(login), firstAccess: demands}), seen, nil
}

// mayIPMI tells whether an account may log in over IPMI with its privilege.
func (k *conn) mayIPMI(ctx context.Context, account document) (bool, *plan.Fault) {
	switch rule := k.family.ipmi; {
	case rule.privilege:
		d, fault := k.attributes(ctx)
		if fault != nil {
			return false, fault
		}
		return d.text("Attributes", privilegeOf(account)) == ipmiPrivileges()[k.client.settings.MonitoringRole], nil
	case rule.types && takesIPMI(account):
		return slices.Contains(account.list("AccountTypes"), "IPMI"), nil
	}
	return true, nil
}

// takesIPMI tells that IPMI can be a type of the account.
func takesIPMI(account document) bool {
	allowed := account.list("AccountTypes@Redfish.AllowableValues")
	return account.key("AccountTypes") && (len(allowed) == 0 || slices.Contains(allowed, "IPMI"))
}

// privilegeOf is the iDRAC's attribute of a slot.
func privilegeOf(account document) string { return "Users." + name(account.path) + ".IpmiLanPrivilege" }

// tryMonitor logs in as the monitoring account, once in a run unless its password
// was written since, and not with one that an earlier run was refused: accounts are
// locked for these logins too.
func (k *conn) tryMonitor(ctx context.Context, user string, password plan.Secret) (string, *plan.Fault) {
	if k.monitored != "" {
		return k.monitored, nil
	}
	tried := k.monitors(user, password, false)
	if h := k.refusedBefore(tried); h != nil && h.same {
		k.monitored = loginRefused
		return loginRefused, nil
	} else if h != nil {
		return loginUntried, nil
	}
	r := request{method: http.MethodPost, path: resolve(k.login.sessions), body: map[string]string{"UserName": user, "Password": password.Reveal()}}
	if k.login.sessions == "" || k.login.basic {
		r = request{method: http.MethodGet, path: k.tree.system.path, header: map[string]string{"Authorization": basicOf(user, password)}}
	}
	ans, _, fault := k.exchange(context.WithoutCancel(ctx), r)
	if fault != nil {
		return "", fault
	}
	ok := ans.status >= 200 && ans.status < 300
	list := messages(ans.body)
	switch {
	case ok && r.method == http.MethodPost:
		if token, path := ans.header.Get("X-Auth-Token"), k.sessionPath(ans); token == "" || path == "" || k.endAs(ctx, token, path) != nil {
			k.login.left = true
		}
	case ok:
	case ans.status == http.StatusUnauthorized, ans.status == http.StatusForbidden && !has(list, idsSessionLimit...) && !busy(list), has(list, idsLocked...):
	default:
		return "", k.judge(ans)
	}
	k.monitored = loginRefused
	switch demanded := has(list, idsPasswordChange...); {
	case demanded: // a session that is good for changing the password and nothing else
		k.forget(user)
	case ok:
		k.monitored = loginAccepted
		k.forget(user)
	default:
		k.remember(tried)
	}
	if k.tree == nil { // who answers next has to prove that it is the same machine
		return k.monitored, k.fault(plan.CodeBMCUnreachable, r, "the connection to the BMC of %s broke while the monitoring account logged out", k.device)
	}
	return k.monitored, nil
}

// setIPMIUser makes the account, or sets what differs with its password: an XCC
// takes IPMI only with it, and an iDRAC refuses the rest alone. An iDRAC's privilege
// follows in a request of its own.
func setIPMIUser(ctx context.Context, k *conn, _ *plan.Target, step *plan.Step, _ plan.Memo) plan.Result {
	user, password, fault := k.monitor(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	service, collection, list, fault := k.accounts(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	// What is written has to be proven by a login.
	if h := k.refusedBefore(k.monitors(user, password, false)); h != nil && !h.same {
		return k.afterHold(h)
	}
	role := plan.Text(step.After, "RoleId")
	body := map[string]any{"Password": password.Reveal(), "RoleId": role, "Enabled": true}
	account := accountNamed(list, user)
	if account == nil && k.demandsChange(service) {
		return k.dropDemand(ctx, service)
	}
	if account == nil {
		body["UserName"] = user
		k.rewritten(user)
		return next(k.createAccount(ctx, collection, list, body), "the monitoring account was made; it is looked at next")
	}
	enabled, _ := account.yes("Enabled")
	ipmi, fault := k.mayIPMI(ctx, *account)
	if fault != nil {
		return plan.Failed(fault)
	}
	accepted := false
	if enabled {
		login, fault := k.tryMonitor(ctx, user, password)
		if fault != nil {
			return plan.Failed(fault)
		}
		accepted = login == loginAccepted
	}
	if h := k.refusedBefore(k.monitors(user, password, false)); h != nil && !h.same && !accepted {
		return k.afterHold(h) // this one was one too many
	}
	switch rule := k.family.ipmi; {
	case enabled && accepted && account.text("RoleId") == role && (ipmi || rule.privilege):
		if ipmi {
			return plan.Already()
		}
		d, fault := k.attributes(ctx)
		if fault != nil {
			return plan.Failed(fault)
		}
		return k.writeAttributes(ctx, d, map[string]any{privilegeOf(*account): ipmiPrivileges()[role]})
	case k.demandsChange(service):
		return k.dropDemand(ctx, service)
	case rule.types && takesIPMI(*account) && !ipmi:
		body["AccountTypes"] = append(account.list("AccountTypes"), "IPMI")
	}
	if must, _ := account.yes("PasswordChangeRequired"); must {
		body["PasswordChangeRequired"] = false
	}
	k.rewritten(user)
	had := account.text("RoleId")
	r := k.write(ctx, change{on: *account, body: body, same: func(now document) bool {
		return now.text("UserName") == user && now.text("RoleId") == had
	}})
	return next(r, "the monitoring account was set; it is looked at next")
}

// dropDemand stops the BMC from making the account change its password, which is
// everybody's, as soon as it gets it.
func (k *conn) dropDemand(ctx context.Context, service document) plan.Result {
	body := map[string]any{}
	put(body, []string{"Oem", "Lenovo", firstAccess}, false)
	r := k.write(ctx, change{on: service, body: body, same: k.demandsChange})
	return next(r, "new accounts need not change their password any more; the monitoring account comes next")
}

// rewritten follows a change of the monitoring account: it is tried anew.
func (k *conn) rewritten(user string) {
	k.monitored = ""
	k.doubt(user)
}

// afterHold waits until a login may be tried, where that is a matter of a pause.
func (k *conn) afterHold(h *held) plan.Result {
	pause := h.until.Sub(k.client.opt.Now())
	if pause > tryPause {
		return plan.Failed(h.fault)
	}
	return plan.Wait(max(pause, firstPause), "the BMC refused the monitoring account; it is tried after a pause, so as not to lock it", plan.Memo{})
}

// createAccount posts a new account; a BMC that has slots, and refuses that, gets
// the first free one filled in. The first two slots of an iDRAC are its own.
func (k *conn) createAccount(ctx context.Context, collection document, list []document, body map[string]any) plan.Result {
	var free *document
	for i := range list {
		if list[i].unread == nil && list[i].key("UserName") && list[i].text("UserName") == "" && (!k.family.ipmi.privilege || name(list[i].path) != "1") {
			free = &list[i]
			break
		}
	}
	if free != nil {
		if k.family.ipmi.types && free.key("AccountTypes") {
			body["AccountTypes"] = []string{"Redfish", "IPMI"}
		}
		return k.write(ctx, change{on: *free, body: body, same: func(now document) bool { return now.text("UserName") == "" }})
	}
	if k.family.ipmi.types && slices.ContainsFunc(list, takesIPMI) {
		body["AccountTypes"] = []string{"Redfish", "IPMI"}
	}
	return k.send(ctx, http.MethodPost, collection.path, body)
}
