package bmc

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	ipmi "github.com/bougou/go-ipmi/pkg/client"
	ipmitypes "github.com/bougou/go-ipmi/pkg/types"

	"github.com/enroll-dev/enroll/plan"
)

func ipmiLoginFacet() facet {
	return facet{kind: ipmiLoginKind(), read: readIPMILogin, run: runIPMILogin}
}

// ipmiLoginKind proves that the monitoring account gets in over IPMI, where the
// site says that it can be reached from here. It comes after the account and the
// switch were set.
func ipmiLoginKind() plan.Kind {
	return plan.Kind{
		Name: "check.ipmi", Phase: plan.PhaseBMC, Last: true,
		Doc: "The monitoring account logs in over IPMI (RMCP+).",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || t.Site.BMC.Monitoring.IsZero() || !t.Site.BMC.VerifyIPMI {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("check", "ipmi", ""),
				Want:    plan.Obj(map[string]plan.Value{"Login": plan.Str(loginAccepted)}),
				From:    from(t.Site.Set["bmc.verify_ipmi"]), Budget: plan.Duration(2 * time.Minute),
			}}
		},
		Decide: decideIPMILogin,
		Looks:  []plan.Action{plan.ActionVerify},
	}
}

func ipmiCheck(a plan.Address, from []string) plan.Check {
	return plan.Check{Address: a, Verdict: plan.CheckUnknown, Expected: "login over IPMI accepted", From: from}
}

func decideIPMILogin(d plan.Decision) plan.Verdict {
	var because []string
	for _, kind := range []string{"bmc.credential", "bmc.ipmi_user", "bmc.ipmi_lan"} {
		if s := d.Planned(kind); s != nil {
			because = append(because, s.Address.String())
		}
	}
	if len(because) > 0 {
		return plan.Verdict{Step: &plan.Step{Action: plan.ActionVerify, Reason: plan.ReasonChanged, Because: because, Before: plan.Unknown, BeforeUnknown: true, After: d.Resource.Want}}
	}
	check := ipmiCheck(d.Resource.Address, d.Resource.From)
	switch {
	case d.Live.Presence == plan.Unsupported:
		return unsupported(d)
	case d.Live.Presence != plan.Present:
		check.Observed, check.Text = "not seen", "Nobody could log in: the BMC or the vault could not be read."
	case plan.Text(d.Live.Value, "Login") == loginAccepted:
		check.Verdict, check.Observed = plan.CheckPass, d.Live.Evidence["suite"]
	default:
		check.Verdict, check.Observed, check.Text = plan.CheckFail, plan.Text(d.Live.Value, "Login"), "Monitoring does not get in over IPMI: the password differs, the user has no privilege, or UDP port 623 is not open."
	}
	return plan.Verdict{Checks: []plan.Check{check}}
}

func readIPMILogin(ctx context.Context, k *conn, _ *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	suite, fault := "", k.refusedOverRedfish()
	if fault == nil {
		suite, fault = k.ipmiLogin(ctx)
	}
	if isCode(fault, plan.CodeBMCCredential) {
		return plan.Obj(map[string]plan.Value{"Login": plan.Str(fault.Summary)}), evidence{"url": k.base}, nil
	}
	if fault != nil {
		return plan.Null, nil, fault
	}
	return plan.Obj(map[string]plan.Value{"Login": plan.Str(loginAccepted)}), evidence{"url": k.base, "suite": suite}, nil
}

func runIPMILogin(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
	suite := ""
	fault := k.use(ctx, t, func() (fault *plan.Fault) { suite, fault = k.ipmiLogin(ctx); return fault }, nil)
	check := ipmiCheck(step.Address, step.From)
	switch {
	case fault == nil:
		check.Verdict, check.Observed = plan.CheckPass, suite
		return plan.Verified(check)
	case !isCode(fault, plan.CodeBMCCredential):
		return plan.Failed(fault)
	case memo[memoLooks] == "": // an account that was just made may take a moment
		return plan.Wait(restartPause, "IPMI does not take the monitoring account yet; it is tried once more", plan.Memo{memoLooks: "1"})
	}
	check.Verdict, check.Observed = plan.CheckFail, fault.Summary
	return plan.Verified(check)
}

// refusedOverRedfish saves a login that would be refused again.
func (k *conn) refusedOverRedfish() *plan.Fault {
	if k.monitored != loginRefused {
		return nil
	}
	return plan.NewFault(plan.CodeBMCCredential, "the BMC of %s does not let the monitoring account in over Redfish; IPMI was not tried", k.device)
}

const ipmiPort = 623

// ipmiSuites are the cipher suites that are offered: AES with SHA-256, and with
// SHA-1 for older firmware. Those without encryption are not.
func ipmiSuites() []ipmitypes.CipherSuiteID {
	return []ipmitypes.CipherSuiteID{ipmitypes.CipherSuiteID17, ipmitypes.CipherSuiteID3}
}

// ipmiLogin opens a session as the monitoring account and closes it. Which suite
// took it is told. That it did not come about is BMC_CREDENTIAL_REJECTED, with the
// reason of each suite: IPMI does not tell a wrong password from a wrong name.
func (k *conn) ipmiLogin(ctx context.Context) (string, *plan.Fault) {
	user, password, fault := k.monitor(ctx)
	if fault != nil {
		return "", fault
	}
	base, err := url.Parse(k.base)
	if err != nil {
		return "", plan.NewFault(plan.CodeInternal, "the address of the BMC of %s cannot be read", k.device).Because(err)
	}
	port := k.client.opt.IPMIPort
	if port == 0 {
		port = ipmiPort
	}
	level := map[string]ipmitypes.PrivilegeLevel{
		"ReadOnly": ipmitypes.PrivilegeLevelUser, "Operator": ipmitypes.PrivilegeLevelOperator, "Administrator": ipmitypes.PrivilegeLevelAdministrator,
	}[k.client.settings.MonitoringRole]
	tried := k.monitors(user, password, true)
	if h := k.refusedBefore(tried); h != nil {
		return "", h.fault
	}
	var reasons []string
	for _, suite := range ipmiSuites() {
		if ctx.Err() != nil {
			return "", k.noAnswer(ctx, request{method: "RMCP+", path: "login"}, ctx.Err())
		}
		c, err := ipmi.NewClient(base.Hostname(), port, user, password.Reveal())
		if err != nil {
			return "", plan.NewFault(plan.CodeSecretInvalid, "IPMI does not take the monitoring account").Because(k.scrub(err))
		}
		c = c.WithTimeout(2 * time.Second).WithRetry(2).WithCipherSuiteID(suite).WithMaxPrivilegeLevel(level)
		if err = c.Connect(ctx); err == nil {
			k.forget(user)
			_ = c.Close(context.WithoutCancel(ctx)) // one that is not closed ends by itself after a minute
			return fmt.Sprintf("accepted with cipher suite %d", suite), nil
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.Close(over) // gives the socket back without asking who did not answer
		reasons = append(reasons, fmt.Sprintf("suite %d: %s", suite, k.clean(err.Error())))
		if denies(err) { // another suite would only be one refusal more
			k.remember(tried)
			break
		}
	}
	return "", k.fault(plan.CodeBMCCredential, request{method: "RMCP+", path: fmt.Sprintf("port %d", port)}, "the BMC of %s did not let the monitoring account in over IPMI", k.device).
		With("secret", k.client.settings.Monitoring.String()).With("answer", strings.Join(reasons, "; "))
}

// denies tells that the BMC knows the account not, or by another password, or does
// not grant it its privilege; else it was the suite, or nobody answered. The library
// keeps no more of its errors than their texts.
func denies(err error) bool {
	reasons := []error{ipmi.ErrRAKPAuthentication}
	for _, code := range []ipmitypes.RmcpStatusCode{ipmitypes.RmcpStatusCodeUnauthorizedName, ipmitypes.RmcpStatusCodeUnauthorizedRoleOfPriLevel, ipmitypes.RmcpStatusCodeInvalidIntegrityCheckValue} {
		reasons = append(reasons, ipmitypes.NewRmcpStatusError(code))
	}
	return slices.ContainsFunc(reasons, func(reason error) bool { return strings.Contains(err.Error(), reason.Error()) })
}
