package bmc

import (
	"context"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Rotation is the vault's part in changing the password of a BMC: first the new
// one is staged beside the current one, then it is set, then it is published.
type Rotation interface {
	// Passwords gives what a device's BMC may take beside the host's credential.
	Passwords(ctx context.Context, device string) (Passwords, error)
	// Stage stores a new password beside the current one.
	Stage(ctx context.Context, device string, next plan.Secret) error
	// Publish makes the staged password the current one, which Credential gives from
	// then on.
	Publish(ctx context.Context, device string) error
}

// Passwords are what a BMC may take beside the host's credential; zero where the
// vault has none.
type Passwords struct {
	Staged  plan.Secret // of a rotation that was not finished
	Factory plan.Secret // the one that the maker set
	// Where they stand.
	StagedRef, FactoryRef plan.SecretRef
	ReadOnly              bool // the vault cannot be written: the BMC is given the current one
}

// candidate is one of the passwords that a BMC may have.
type candidate string

// The candidates, in the order in which they are tried.
const (
	stored  candidate = "stored"
	staged  candidate = "staged"
	factory candidate = "factory"
)

// triesAtOnce is how many passwords are tried without a pause: makers lock after
// three refusals, and who comes next wants one left.
const (
	triesAtOnce = 2
	tryPause    = 61 * time.Second // an iDRAC counts those of the last 60 s
)

// another takes the next password that was not tried, after one was refused. It
// gives none when too many were refused just now; left tells that one remains.
func (k *conn) another(ctx context.Context) (taken, left bool) {
	if k.client.opt.Rotation == nil || k.family.password.none {
		return false, false
	}
	if fault := k.lookUp(ctx); fault != nil {
		return false, false // the refusal is the fault; the vault's is told when it is needed
	}
	for _, c := range []candidate{staged, factory} {
		secret := map[candidate]plan.Secret{staged: k.passwords.Staged, factory: k.passwords.Factory}[c]
		if secret.Reveal() == "" || k.tried[c] {
			continue
		}
		h := k.refusedBefore(k.own(c, secret))
		switch {
		case h != nil && h.same:
			k.tried[c] = true
			k.refusals++ // it may have been just now
			continue
		case h != nil && h.until.After(k.client.opt.Now().Add(tryPause)):
			return false, false // no pause of this run is long enough
		case h != nil, k.refusals >= triesAtOnce:
			return false, true
		}
		k.turnTo(c, secret)
		return true, true
	}
	return false, false
}

// lookUp asks the vault once for the passwords that the BMC may have.
func (k *conn) lookUp(ctx context.Context) *plan.Fault {
	if k.looked {
		return nil
	}
	p, err := k.client.opt.Rotation.Passwords(ctx, k.device)
	if err != nil {
		return plan.AsFault(err)
	}
	k.passwords, k.looked = p, true
	return nil
}

// turnTo logs in with another password from now on.
func (k *conn) turnTo(c candidate, secret plan.Secret) {
	k.using, k.password, k.refused, k.tree = c, secret, nil, nil
	k.login.token, k.login.session, k.login.basic = "", "", false
}

// What a rotation remembers between two exchanges. Passwords stand in the vault
// only: who comes after a crash finds them there.
const (
	memoPhase = "phase"
	memoPause = "pause" // the pause before one more password is over
	memoLooks = "looks" // logins that refused the new password

	phaseSet   = "set"
	phaseProve = "prove"
)

// rotate makes one exchange of a rotation: the next password is staged in the vault;
// it is set with the login that works; a new login proves it; it is published.
// Wherever this ends, the BMC has the stored password, the staged one, or the one
// it had, and the next run tries them in that order.
func (k *conn) rotate(ctx context.Context, t *plan.Target, memo plan.Memo) plan.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client.opt.Rotation == nil {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "the password of the BMC of %s cannot be changed without a vault", k.device))
	}
	k.answered, k.expired = false, false
	if memo == nil {
		memo = plan.Memo{}
	}
	if memo[memoPhase] == phaseProve {
		return k.proveNext(ctx, t, memo)
	}
	if memo[memoPause] != "" {
		delete(memo, memoPause)
		if k.refusals = 0; k.refused != nil {
			k.another(ctx)
		}
	}
	demand := k.prove(ctx, t)
	switch {
	case k.expired:
		return plan.Wait(firstPause, "the BMC's session had ended", memo)
	case isCode(demand, plan.CodeBMCPasswordChange):
	case isCode(demand, plan.CodeBMCCredential):
		if _, left := k.another(ctx); left {
			memo[memoPause] = "over"
			return plan.Wait(tryPause, "the BMC refused two passwords; the next is tried after a pause, so as not to lock the account", memo)
		}
		return plan.Failed(demand)
	case demand != nil:
		return plan.Failed(demand)
	case k.using == stored:
		return plan.Already()
	case k.using == staged:
		return k.publish(ctx)
	}
	if fault := k.settable(ctx, map[bool]string{true: loginChange, false: loginFactory}[demand != nil]); fault != nil {
		return plan.Failed(fault)
	}
	if memo[memoPhase] == "" {
		if fault := k.choose(ctx, demand != nil); fault != nil {
			return k.unlessExpired(fault, memo)
		}
		return plan.Wait(firstPause, "the next password stands in the vault; it is set next", plan.Memo{memoPhase: phaseSet})
	}
	return k.setNext(ctx, t, demand)
}

// choose makes the next password and stages it, unless the vault has one that was
// staged and not set, or cannot be written: then it is the current one.
func (k *conn) choose(ctx context.Context, blind bool) *plan.Fault {
	rule, fault := k.passwordRule(ctx, blind)
	if fault != nil {
		return fault
	}
	switch {
	case k.passwords.Staged.Reveal() != "":
		k.next = k.passwords.Staged
		return nil
	case k.passwords.ReadOnly:
		_, current, err := k.client.credentials.Credential(ctx, k.device)
		k.next = current
		return plan.AsFault(err)
	}
	if fault := plan.Permit(ctx); fault != nil {
		return fault
	}
	text, err := rule.make()
	if err != nil {
		return plan.NewFault(plan.CodeInternal, "no random password can be made").Because(err)
	}
	k.next = plan.NewSecret(text, "")
	if err := k.client.opt.Rotation.Stage(ctx, k.device, k.next); err != nil {
		k.looked = false // it may have arrived: then it stands there
		return plan.AsFault(err)
	}
	k.passwords.Staged = k.next
	return nil
}

// passwordRule is the family's, narrowed to what the BMC says of itself where it
// shows anything.
func (k *conn) passwordRule(ctx context.Context, blind bool) (passwordRule, *plan.Fault) {
	rule := k.family.password
	if blind {
		return rule, nil
	}
	service, _, _, fault := k.accounts(ctx)
	if fault != nil {
		return rule, fault
	}
	if most, ok := service.number("MaxPasswordLength"); ok && most > 0 && (rule.most == 0 || most < rule.most) {
		rule.most = most
	}
	if least, ok := service.number("MinPasswordLength"); ok {
		rule.least = max(rule.least, least)
	}
	return rule, nil
}

// setNext changes the own account's password. A lost answer is no failure: the
// login that follows shows what became of it.
func (k *conn) setNext(ctx context.Context, t *plan.Target, demand *plan.Fault) plan.Result {
	if k.next.Reveal() == "" { // another process chose it
		if fault := k.choose(ctx, demand != nil); fault != nil {
			return plan.Failed(fault)
		}
	}
	if fault := k.identifyBlind(ctx, t, demand); fault != nil {
		return plan.Failed(fault)
	}
	first := k.oweRestart() // before it is sent: who comes after a crash cannot see that it was changed
	if fault := k.setPassword(ctx, k.next, demand); fault != nil && !isCode(fault, plan.CodeBMCUnreachable) {
		if first {
			k.keepRestart(Restart{})
		}
		return k.unlessExpired(fault, plan.Memo{memoPhase: phaseSet})
	}
	if k.login.token != "" && k.endOwn(ctx) != nil {
		k.login.left = true
	}
	k.login.token, k.login.session, k.tree = "", "", nil
	return plan.Wait(time.Second, "the new password was sent; a new login proves it next", plan.Memo{memoPhase: phaseProve})
}

// unlessExpired ends the step, or asks for a new login.
func (k *conn) unlessExpired(fault *plan.Fault, memo plan.Memo) plan.Result {
	if k.expired {
		return plan.Wait(firstPause, "the BMC's session had ended", memo)
	}
	return plan.Failed(fault)
}

// identifyBlind compares what a BMC that shows nothing else tells in its root: an
// iDRAC has its service tag there.
func (k *conn) identifyBlind(ctx context.Context, t *plan.Target, demand *plan.Fault) *plan.Fault {
	if demand == nil {
		return nil
	}
	root, fault := k.read(ctx, rootPath, k.anonymous)
	if fault != nil {
		return fault
	}
	tag := root.text("Oem", "Dell", "ServiceTag")
	if tag == "" || t.Intent.Serial == "" || strings.EqualFold(tag, strings.TrimSpace(t.Intent.Serial)) {
		return nil
	}
	return k.fault(plan.CodeBMCIdentity, request{method: "GET", path: rootPath}, "the BMC at %s belongs to the machine with serial number %s; NetBox records %s for %s", k.base, cut(tag, 100), t.Intent.Serial, k.device).With("device", t.Intent.URL)
}

// proveNext logs in anew with the password that was set.
func (k *conn) proveNext(ctx context.Context, t *plan.Target, memo plan.Memo) plan.Result {
	if fault := k.lookUp(ctx); fault != nil {
		return plan.Failed(fault)
	}
	if k.next.Reveal() == "" {
		if fault := k.choose(ctx, true); fault != nil {
			return plan.Failed(fault)
		}
	}
	to := staged
	if k.passwords.ReadOnly {
		to = stored
	}
	if fault := k.credential(ctx); fault != nil {
		return plan.Failed(fault)
	}
	if k.using != to || k.password.Reveal() != k.next.Reveal() || k.refused != nil {
		k.turnTo(to, k.next)
	}
	fault := k.proveOnce(ctx, t)
	switch {
	case k.expired:
		return plan.Wait(firstPause, "the BMC's session had ended", memo)
	case fault == nil && to == staged:
		return k.publish(ctx)
	case fault == nil:
		return k.settled()
	case !isCode(fault, plan.CodeBMCCredential):
		return plan.Failed(fault)
	case memo[memoLooks] == "":
		memo[memoLooks] = "1"
		return plan.Wait(tryPause, "the BMC does not take the new password yet; it is tried once more after a pause", memo)
	}
	return plan.Failed(plan.NewFault(plan.CodeNotApplied, "the BMC of %s took a new password and does not accept it", k.device).With("secret", k.client.credentials.Ref(k.device).String()).
		WithHint("The staged password stays in the vault. The next run tries it, and then the one that the BMC had."))
}

// publish makes the staged password, which the BMC takes, the current one.
func (k *conn) publish(ctx context.Context) plan.Result {
	if fault := plan.Permit(ctx); fault != nil {
		return plan.Failed(fault)
	}
	k.oweRestart() // the password may have been changed by a run of another machine
	if err := k.client.opt.Rotation.Publish(ctx, k.device); err != nil {
		return plan.Failed(plan.AsFault(err))
	}
	return k.settled()
}

func (k *conn) settled() plan.Result {
	k.using, k.passwords.Staged, k.tried, k.refusals = stored, plan.Secret{}, map[candidate]bool{}, 0
	return plan.Done()
}
