package bmc

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

func credentialFacet() facet {
	return facet{kind: credentialKind(), read: readCredential, run: runCredential}
}

// credentialKind sees to it that the BMC takes the host's credential and belongs
// to the recorded machine. Where it takes another password that the vault has, or
// wants a new one, the password is changed: see rotate.
func credentialKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.credential", Phase: plan.PhaseBMC, First: true,
		Doc: "The BMC answers, accepts the host's credential and belongs to the recorded machine. A BMC that still has its factory password, or the staged one of a rotation that was not finished, or that wants its password changed, is given a new one.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "credential", ""),
				Want:    plan.Obj(map[string]plan.Value{"Login": plan.Str(loginAccepted)}),
				From:    from(t.Settings.BMCPassword.String(), t.Intent.URL),
				Effects: []plan.Effect{plan.EffectCredential}, Budget: plan.Duration(t.Site.BMC.ReadyBudget),
			}}
		},
		Decide: decideCredential,
		Looks:  []plan.Action{plan.ActionVerify},
	}
}

// What a login shows.
const (
	loginAccepted = "accepted"        // the stored password is taken
	loginStaged   = "staged"          // only that of a rotation that was not finished
	loginFactory  = "factory"         // only the factory's
	loginChange   = "change_required" // the BMC does nothing before it has another password
	loginRefused  = "refused"         // two were refused; one more is tried after a pause
	loginUntried  = "not tried"       // one more refusal could lock the account
)

func decideCredential(d plan.Decision) plan.Verdict {
	rotate := func(reason plan.Reason) *plan.Step {
		return &plan.Step{
			Action: plan.ActionUpdate, Reason: reason, After: d.Resource.Want, Budget: d.Resource.Budget,
			Because: []string{"Login"}, Sensitive: true,
		}
	}
	switch {
	case d.Live.Presence == plan.Unreachable && d.Deferred && !d.Target.Settings.BMCFactory.IsZero():
		s := rotate(plan.ReasonDeferred) // one that is new has its factory password
		s.Before, s.BeforeUnknown = plan.Unknown, true
		return plan.Verdict{Step: s}
	case d.Live.Presence == plan.Unreachable && d.Deferred:
		return plan.Verdict{Step: &plan.Step{
			Action: plan.ActionVerify, Reason: plan.ReasonDeferred,
			Before: plan.Unknown, BeforeUnknown: true, After: d.Resource.Want, Budget: d.Resource.Budget,
		}}
	case d.Live.Presence != plan.Present:
		return plan.Verdict{Fault: d.Live.Fault, Unreadable: true}
	}
	login := plan.Text(d.Live.Value, "Login")
	if login == loginAccepted {
		v := plan.Nothing()
		speaks, _ := d.Target.SpeaksIPMI()
		if misfit := plan.Text(d.Live.Value, "IPMI"); misfit != "" && speaks {
			v.Warnings = append(v.Warnings, plan.NewFault(plan.CodeSecretInvalid, "the password of the BMC of %s %s; Ironic will not get in over IPMI", d.Target.Name(), misfit).
				With("secret", d.Target.Settings.BMCPassword.String()))
		}
		return v
	}
	reason := plan.ReasonDiffers
	if login == loginStaged {
		reason = plan.ReasonPending
	}
	s := rotate(reason)
	s.Before = plan.Restrict(d.Live.Value, d.Resource.Want)
	return plan.Verdict{Step: s}
}

func from(places ...string) []string {
	var out []string
	for _, p := range places {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// readCredential makes a request in any case: what was proven some minutes ago
// may not be so any more.
func readCredential(ctx context.Context, k *conn, t *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	if fault := k.proveNow(ctx, t); fault != nil {
		return plan.Null, nil, fault
	}
	login := map[candidate]string{stored: loginAccepted, staged: loginStaged, factory: loginFactory}[k.using]
	if fault := k.settable(ctx, login); fault != nil {
		return plan.Null, nil, fault
	}
	return k.loginValue(login), evidence{
		"url": k.base + k.tree.system.path, "family": k.family.name, "certificate": k.shown.print(), "serial": strings.Join(serialsOf(k.tree.system, k.family), " / "),
	}, nil
}

func (k *conn) loginValue(login string) plan.Value {
	return plan.Obj(map[string]plan.Value{"Login": plan.Str(login), "IPMI": plan.Str(passwordRule{}.misfit(k.password.Reveal()))})
}

// unproven is what is known of the login of a BMC that could not be proven: that it
// will be after its password was changed; false when nothing is.
func (k *conn) unproven(ctx context.Context, fault *plan.Fault) (plan.Live, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	login := ""
	switch {
	case k.client.opt.Rotation == nil:
	case isCode(fault, plan.CodeBMCPasswordChange):
		login = loginChange
	case isCode(fault, plan.CodeBMCCredential):
		if _, left := k.another(ctx); left {
			login = loginRefused
		}
	}
	if login == "" {
		return plan.Live{}, false
	}
	if fault := k.settable(ctx, login); fault != nil {
		return plan.LiveFault(plan.Unreadable, fault), true
	}
	live := plan.LiveValue(k.loginValue(login))
	live.Evidence = evidence{"url": k.base, "family": k.family.name}
	return live, true
}

// settable tells why a BMC that does not take the stored password cannot be given
// one.
func (k *conn) settable(ctx context.Context, login string) *plan.Fault {
	if login == loginAccepted || login == loginStaged {
		return nil
	}
	ref := k.client.credentials.Ref(k.device)
	if k.family.password.none {
		return plan.NewFault(plan.CodeBMCPasswordChange, "the BMC of %s wants its password changed; enroll sets none on the family %s", k.device, k.family.name).With("secret", ref.String())
	}
	if fault := k.lookUp(ctx); fault != nil {
		return fault
	}
	switch {
	case login == loginChange && k.using == staged:
		return plan.NewFault(plan.CodeBMCPasswordChange, "the BMC of %s wants also the staged password of %s changed", k.device, ref)
	case !k.passwords.ReadOnly:
		return nil
	case login == loginChange && k.using == stored:
		return plan.NewFault(plan.CodeBMCPasswordChange, "the BMC of %s wants another password than that of %s, and the vault cannot be written", k.device, ref).
			WithHint("Set the BMC's password by hand and store it, or keep the item in a vault that enroll may write.")
	}
	_, current, err := k.client.credentials.Credential(ctx, k.device)
	if err != nil {
		return plan.AsFault(err)
	}
	rule, fault := k.passwordRule(ctx, login != loginFactory)
	if fault != nil {
		return fault
	}
	if misfit := rule.misfit(current.Reveal()); misfit != "" {
		return plan.NewFault(plan.CodeSecretInvalid, "the password that the BMC of %s is to get %s", k.device, misfit).With("secret", ref.String()).
			WithHint("Store one of %d printable ASCII characters at most, with letters in both cases, digits and another character.", ipmiBytes)
	}
	return nil
}

// proveNow reads the system under the login, unless this call has done so.
func (k *conn) proveNow(ctx context.Context, t *plan.Target) *plan.Fault {
	if _, fault := k.freshSystem(ctx); fault != nil {
		return fault
	}
	return k.identify(k.tree, t.Intent)
}

// The pauses between looks at a BMC that does not answer yet.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
	memoPauses   = "pauses"
)

// runCredential changes the password, or looks whether the login is proven.
func runCredential(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
	if step.Action.Mutates() {
		return k.rotate(ctx, t, maps.Clone(memo))
	}
	return k.await(ctx, t, step, memo)
}

// await looks once. Nothing that answers yet, and a BMC that says it is
// busy starting, is waited for; everything else ends the step.
func (k *conn) await(ctx context.Context, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
	observed := ""
	fault := k.use(ctx, t, func() *plan.Fault {
		if fault := k.proveNow(ctx, t); fault != nil {
			return fault
		}
		observed = k.observedIdentity()
		return nil
	}, nil)
	if fault == nil {
		return plan.Verified(plan.Check{
			Address: step.Address, Verdict: plan.CheckPass, Expected: expectedIdentity(t), Observed: observed,
			From: from(k.base, t.Intent.URL),
		})
	}
	if !fault.Retry() || fault.Code == plan.CodeInterrupted || k.exhausted() {
		return plan.Failed(fault)
	}
	pauses, _ := strconv.Atoi(memo[memoPauses]) // nothing there is none yet
	pause := firstPause
	for range min(pauses, 10) {
		pause = min(2*pause, longestPause)
	}
	observed = "BMC does not answer yet"
	if !isCode(fault, plan.CodeBMCUnreachable) {
		observed = "BMC is not ready yet: " + fault.Summary
	}
	return plan.Wait(pause, observed, plan.Memo{memoPauses: strconv.Itoa(pauses + 1)})
}

// exhausted tells that no further login will be tried in this run.
func (k *conn) exhausted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.login.unproven >= maxUnproven && k.login.token == ""
}

func expectedIdentity(t *plan.Target) string {
	if t.Intent.Serial == "" {
		return "login accepted"
	}
	return "login accepted, serial number " + t.Intent.Serial
}

func (k *conn) observedIdentity() string {
	serials := serialsOf(k.tree.system, k.family)
	if len(serials) == 0 {
		return "login accepted; the BMC shows no serial number"
	}
	return "login accepted, serial number " + strings.Join(serials, " / ")
}
