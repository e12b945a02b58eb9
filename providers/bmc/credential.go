package bmc

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

func credentialFacet() facet {
	return facet{kind: credentialKind(), read: readCredential, run: runCredential}
}

// credentialKind proves that the host's credential works and that the BMC is
// that of the recorded machine. This version changes no password.
func credentialKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.credential", Phase: plan.PhaseBMC, First: true,
		Doc: "The BMC answers, accepts the host's credential and belongs to the recorded machine.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "credential", ""),
				Want:    plan.Obj(map[string]plan.Value{"Login": plan.Str(loginAccepted)}),
				From:    from(t.Settings.BMCPassword.String(), t.Intent.URL),
				Budget:  plan.Duration(t.Site.BMC.ReadyBudget),
			}}
		},
		Decide: func(d plan.Decision) plan.Verdict {
			if d.Live.Presence == plan.Unreachable && d.Deferred {
				return plan.Verdict{Step: &plan.Step{
					Action: plan.ActionVerify, Reason: plan.ReasonDeferred,
					Before: plan.Unknown, BeforeUnknown: true, After: d.Resource.Want, Budget: d.Resource.Budget,
				}}
			}
			if d.Live.Presence == plan.Present {
				return plan.Nothing()
			}
			return plan.Verdict{Fault: d.Live.Fault, Unreadable: true}
		},
	}
}

const loginAccepted = "accepted"

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
	return plan.Obj(map[string]plan.Value{"Login": plan.Str(loginAccepted)}), evidence{
		"url": k.base + k.tree.system.path, "family": k.family.name, "certificate": k.shown.print(), "serial": strings.Join(serialsOf(k.tree.system, k.family), " / "),
	}, nil
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

// runCredential looks once. Nothing that answers yet, and a BMC that says it is
// busy starting, is waited for; everything else ends the step.
func runCredential(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
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
