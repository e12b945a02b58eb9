package bmc

import (
	"slices"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Refusals is what outlives a run of the logins that BMCs refused. Nothing in it is
// made of a password. No method fails: a run whose memory is gone plans as one
// that has none.
type Refusals interface {
	// Refused gives what is remembered of a BMC (scheme://host[:port]) and account.
	Refused(bmc, account string) []Refusal
	// Update changes it; no other process changes it meanwhile.
	Update(bmc, account string, change func([]Refusal) []Refusal)
	// Place names where it is kept, for people.
	Place(bmc, account string) string
}

// Refusal is a secret with which a BMC refused to log in. Another version of it is
// another secret.
type Refusal struct {
	Secret  plan.SecretRef `json:"secret"`
	Version string         `json:"version,omitempty"` // "" where the vault has none: nobody can tell whether it changed
	At      time.Time      `json:"at"`                // the last time
	Count   int            `json:"count"`             // within the family's window
}

// lockoutRule is when a family shuts an account out, or an address (reference 3.2).
type lockoutRule struct {
	after   int           // refused logins, unless the site has another number
	window  time.Duration // for how long they count or it shuts out, whichever is longer
	address bool          // an address is shut out; how long the site wants that has nothing to do with how long they count
}

// lockoutUnknown is for BMCs that do not tell their family before a login: the
// strictest that lets a rotation try its three passwords.
var lockoutUnknown = lockoutRule{after: 4, window: time.Hour}

// lockout is the family's rule, and what the site sets.
func (k *conn) lockout() lockoutRule {
	rule := k.family.lockout
	if rule.after == 0 {
		return lockoutUnknown
	}
	if site := k.client.settings.Security; site != nil {
		if site.LockoutAttempts != nil && *site.LockoutAttempts > 0 {
			rule.after = min(rule.after, *site.LockoutAttempts)
		}
		if !rule.address {
			rule.window = max(rule.window, site.LockoutDuration)
		}
	}
	return rule
}

// secretOf names the secret of a password that the BMC may have.
func (k *conn) secretOf(c candidate) plan.SecretRef {
	switch c {
	case staged:
		return k.passwords.StagedRef
	case factory:
		return k.passwords.FactoryRef
	case stored:
	}
	return k.client.credentials.Ref(k.device)
}

// held is why a password is not tried.
type held struct {
	fault *plan.Fault
	until time.Time
	same  bool // an earlier run was refused with it; else any refusal could lock the account
}

// refusedBefore looks whether a password may be tried, after what earlier runs, and
// this one, were refused; nil: it may.
func (k *conn) refusedBefore(c candidate, password plan.Secret) *held {
	if k.client.opt.Refusals == nil {
		return nil
	}
	ref, rule, now := k.secretOf(c), k.lockout(), k.client.opt.Now()
	count, last := 0, time.Time{}
	for _, r := range k.client.opt.Refusals.Refused(k.base, k.user) {
		if !counts(r, rule, now) {
			continue
		}
		if r.Secret == ref && r.Version == password.Version && r.Version != "" && !k.mine[r.At.UnixNano()] {
			return k.hold(ref, rule, r.At, true, "it is not tried again before %s, unless the secret is changed")
		}
		count += r.Count
		if r.At.After(last) {
			last = r.At
		}
	}
	if count >= max(1, rule.after-1) {
		return k.hold(ref, rule, last, false, "one more could lock the account: none is tried before %s")
	}
	return nil
}

// counts tells that the BMC may still hold a refusal against the account. One of the
// future was written by a clock that was wrong.
func counts(r Refusal, rule lockoutRule, now time.Time) bool {
	return now.Before(r.At.Add(rule.window)) && !r.At.After(now.Add(time.Minute))
}

func (k *conn) hold(ref plan.SecretRef, rule lockoutRule, at time.Time, same bool, why string) *held {
	const clock = "15:04:05 UTC"
	until := at.Add(rule.window)
	fault := plan.NewFault(plan.CodeBMCCredential, "the BMC of %s at %s refused the login at %s; "+why, k.device, k.base, at.UTC().Format(clock), until.UTC().Format(clock)).
		With("secret", ref.String()).With("account", k.user).With("remembered in", k.client.opt.Refusals.Place(k.base, k.user)).
		WithHint("Correct the password in the vault. If the BMC's was set instead, wait until then, or remove the file in which it is remembered.")
	return &held{fault: fault, until: until, same: same}
}

// remember keeps for the next runs that the password was refused.
func (k *conn) remember() {
	if k.client.opt.Refusals == nil {
		return
	}
	ref, rule, now := k.secretOf(k.using), k.lockout(), k.client.opt.Now().UTC()
	if k.mine == nil {
		k.mine = map[int64]bool{}
	}
	k.mine[now.UnixNano()] = true
	version := k.password.Version
	if k.starting || !k.client.opt.Restarts.Restart(k.device).Asked.IsZero() {
		version = "" // no proof against the password; it counts all the same
	}
	k.client.opt.Refusals.Update(k.base, k.user, func(all []Refusal) []Refusal {
		all = slices.DeleteFunc(slices.Clone(all), func(r Refusal) bool { return !counts(r, rule, now) })
		for i := range all {
			if all[i].Secret == ref && all[i].Version == version {
				all[i].At, all[i].Count = now, all[i].Count+1
				return all
			}
		}
		return append(all, Refusal{Secret: ref, Version: version, At: now, Count: 1})
	})
}

// forget follows a login that the BMC took: it counts from nought again.
func (k *conn) forget() {
	k.starting = false
	if k.client.opt.Refusals == nil || len(k.client.opt.Refusals.Refused(k.base, k.user)) == 0 {
		return
	}
	k.client.opt.Refusals.Update(k.base, k.user, func([]Refusal) []Refusal { return nil })
}
