package bmc

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

const resetBudget = 30 * time.Minute

func resetFacet() facet {
	return facet{kind: resetKind(), read: readReset, run: runReset}
}

// resetKind restarts the BMC when the operator asks for it, and after its password
// was changed where the family wants that. It comes after the login was proven and
// before anything is set.
func resetKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.reset", Phase: plan.PhaseBMC, Second: true,
		Doc: "The BMC is restarted when the operator asks for it, and after its password was changed on iDRAC, XCC and AMI. A restart that an ended run left is done by the next one.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "reset", ""),
				Want:    plan.Obj(map[string]plan.Value{"Restarted": plan.Bool(true)}),
				Effects: []plan.Effect{plan.EffectBMCReset}, Budget: plan.Duration(resetBudget),
			}}
		},
		Decide: decideReset,
	}
}

func decideReset(d plan.Decision) plan.Verdict {
	if d.Scope.Parameters.ForceBMCRestart {
		v := plan.Compare(d)
		if v.Step != nil {
			v.Step.Action, v.Step.Reason, v.Step.Because = plan.ActionRun, plan.ReasonForced, []string{"--force-bmc-restart"}
		}
		return v
	}
	if s := owed(d); s != nil {
		return plan.Verdict{Step: s}
	}
	changed := d.Planned("bmc.credential")
	wanted := plan.Satisfies(plan.Obj(map[string]plan.Value{"AfterRotation": plan.Bool(true)}), d.Live.Value)
	if changed == nil || !changed.Action.Mutates() || d.Live.Presence == plan.Present && !wanted {
		return plan.Nothing()
	}
	// Whether it is due is known when the password was changed; a BMC that turns out
	// to take the stored one is not restarted.
	return plan.Verdict{Step: &plan.Step{
		Action: plan.ActionRun, Reason: plan.ReasonChanged, Because: []string{changed.Address.String()},
		Before: plan.Unknown, BeforeUnknown: true, After: plan.Obj(map[string]plan.Value{"Due": plan.Bool(false)}),
	}}
}

// owed is the restart that an earlier run left; nil where there is none.
func owed(d plan.Decision) *plan.Step {
	due := plan.Obj(map[string]plan.Value{"Due": plan.Bool(true)})
	if d.Live.Presence != plan.Present || !plan.Satisfies(due, d.Live.Value) {
		return nil
	}
	return &plan.Step{
		Action: plan.ActionRun, Reason: plan.ReasonPending, Because: []string{"password changed " + d.Live.Evidence["password_changed"]},
		Before: plan.Restrict(d.Live.Value, due), After: plan.Obj(map[string]plan.Value{"Due": plan.Bool(false)}),
	}
}

// readReset tells whether this run has restarted the BMC, and whether a changed
// password wants it. No BMC knows who asked for its last restart.
func readReset(ctx context.Context, k *conn, _ *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	m, fault := k.manager(ctx)
	if fault != nil {
		return plan.Null, nil, fault
	}
	due := k.dueRestart()
	seen := evidence{"url": k.base + m.path}
	if due.Due() {
		seen["password_changed"] = due.Since.Format(time.RFC3339)
	}
	return plan.Obj(map[string]plan.Value{
		"Restarted": plan.Bool(k.restarted), "AfterRotation": plan.Bool(k.family.resets), "Due": plan.Bool(due.Due()),
	}), seen, nil
}

// What a reset of a BMC remembers between two looks.
const (
	memoRestart = "restart" // when it was asked for
	memoTold    = "told"    // by this step, not by an earlier run
	memoDown    = "down"    // it was seen to be away
	memoReady   = "ready"   // how many looks in a row found it ready
	memoRefused = "refused" // how many logins it refused while it started
)

// The patience with a BMC that starts. Logins are far apart: some count those
// that fail while they start.
const (
	settleTime   = 30 * time.Second // services answer for a while while they go down
	restartPause = 15 * time.Second
	readyLooks   = 2
	ignoredTime  = 3 * time.Minute // a restart that has not begun by then does not come
	// While it starts, a refused login is no proof of a wrong password. One more is
	// tried, a minute later: two lock and block nothing.
	refusedLogins = 1
	refusedPause  = time.Minute
)

// runReset asks for the restart, waits until the BMC is gone or a settle time is
// over, and then until an authenticated reading of what is needed has worked
// twice in a row: a root that answers is no BMC that is ready.
func runReset(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
	now := k.client.opt.Now()
	if memo[memoRestart] == "" {
		var r plan.Result
		fault := k.use(ctx, t, func() *plan.Fault { r = k.begin(ctx, step, now); return nil }, nil)
		if fault != nil {
			return plan.Failed(fault)
		}
		return r
	}
	memo = without(memo)
	fault := k.use(ctx, t, func() *plan.Fault { return k.ready(ctx) }, nil)
	switch {
	case fault == nil:
	case isCode(fault, plan.CodeBMCIdentity), isCode(fault, plan.CodeBMCPasswordChange), isCode(fault, plan.CodeBMCLocked), isCode(fault, plan.CodeBMCTLS), isCode(fault, plan.CodeInterrupted):
		return plan.Failed(fault)
	default:
		pause := restartPause
		if isCode(fault, plan.CodeBMCCredential) {
			refused, _ := strconv.Atoi(memo[memoRefused])
			if refused >= refusedLogins {
				return plan.Failed(fault)
			}
			memo[memoRefused], pause = strconv.Itoa(refused+1), refusedPause
		}
		k.forgive()
		memo[memoDown], memo[memoReady] = "yes", ""
		return plan.Wait(pause, "the BMC is restarting: "+string(fault.Code), memo)
	}
	if memo[memoDown] == "" && now.Sub(memoTime(memo, memoRestart)) < settleTime {
		return plan.Wait(restartPause/3, "the BMC was told to restart and still answers", memo)
	}
	if asked := memoTime(memo, memoRestart); memo[memoTold] != "" && memo[memoDown] == "" && k.outlived(asked) {
		if now.Sub(asked) < ignoredTime {
			return plan.Wait(restartPause, "the BMC was told to restart and still knows the session", memo)
		}
		return plan.Failed(plan.NewFault(plan.CodeNotApplied, "the BMC of %s was told to restart and has not: after %s it still knows the session from before", k.device, ignoredTime).With("url", k.base))
	}
	looks, _ := strconv.Atoi(memo[memoReady])
	if looks++; looks < readyLooks {
		memo[memoReady] = strconv.Itoa(looks)
		return plan.Wait(restartPause, "the BMC answers again; it is asked once more", memo)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restarted = true
	k.keepRestart(Restart{})
	return plan.Done()
}

// begin asks for the restart, unless the run that left it has: then it is waited for.
func (k *conn) begin(ctx context.Context, step *plan.Step, now time.Time) plan.Result {
	due := k.dueRestart()
	if step.Reason != plan.ReasonForced && !due.Asked.IsZero() {
		return plan.Wait(0, "an earlier run told the BMC to restart", plan.Memo{memoRestart: due.Asked.Format(time.RFC3339Nano)})
	}
	r := k.restart(ctx, now)
	if due.Due() && r.Outcome == plan.OutcomeWait {
		k.keepRestart(Restart{Since: due.Since, Asked: now.UTC()})
	}
	return r
}

// restart asks the manager to restart, gracefully where it takes that.
func (k *conn) restart(ctx context.Context, now time.Time) plan.Result {
	m, fault := k.freshManager(ctx)
	if fault != nil {
		return plan.Failed(fault)
	}
	target, types, fault := k.resetTypes(ctx, m, "#Manager.Reset")
	if fault != nil {
		return plan.Failed(fault)
	}
	kind := "GracefulRestart"
	if len(types) > 0 && !slices.Contains(types, kind) {
		kind = "ForceRestart"
		if !slices.Contains(types, kind) {
			return plan.Failed(k.lacks(m, "way to be restarted; it takes "+strings.Join(types, ", ")))
		}
	}
	k.shown.renew()
	_, fault = k.ask(ctx, http.MethodPost, target, map[string]any{"ResetType": kind})
	if fault != nil && !isCode(fault, plan.CodeBMCUnreachable) { // it may go down before it answers
		return plan.Failed(fault)
	}
	k.tree = nil // whoever answers next has to prove that it is the same machine
	k.starting = true
	return plan.Wait(restartPause/3, "the BMC was told to restart ("+kind+")", plan.Memo{memoRestart: now.Format(time.RFC3339Nano), memoTold: "yes"})
}

// outlived tells that the session is one from before a moment. None outlives a
// restart of its BMC.
func (k *conn) outlived(moment time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.login.token != "" && !k.login.opened.After(moment)
}

// forgive lets the next look log in again after a refusal by a BMC that starts.
func (k *conn) forgive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused, k.login.unproven = nil, 0
}

// ready reads what later steps need. An iDRAC answers long before its Lifecycle
// Controller takes settings.
func (k *conn) ready(ctx context.Context) *plan.Fault {
	m, fault := k.freshManager(ctx)
	if fault != nil {
		return fault
	}
	if _, fault := k.ofManager(ctx, "NetworkProtocol"); fault != nil && !isCode(fault, plan.CodeBMCUnsupported) {
		return fault
	}
	service := m.link("Links", "Oem", "Dell", "DellLCService")
	if service == "" {
		return nil
	}
	// It asks and changes nothing.
	ans, fault := k.authorized(ctx, request{method: http.MethodPost, path: strings.TrimSuffix(resolve(service), "/") + "/Actions/DellLCService.GetRemoteServicesAPIStatus", body: map[string]any{}})
	if fault == nil {
		fault = k.judge(ans)
	}
	if fault != nil {
		return unlessUnsupported(fault)
	}
	d, _ := parse(ans.path, "", ans.body)
	for _, key := range []string{"LCStatus", "RTStatus", "Status"} {
		if word := d.text(key); word != "" && word != "Ready" {
			return k.refusal(plan.CodeBMCBusy, ans, "the Lifecycle Controller of %s is not ready: %s is %s", k.device, key, word)
		}
	}
	return nil
}
