package bmc

import (
	"slices"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Refusals is what outlives a run of the logins that BMCs refused. Nothing in it is
// made of a password. No method fails: a run whose memory is gone plans as one that
// has none.
type Refusals interface {
	// Refused gives what is remembered of a BMC (scheme://host[:port]).
	Refused(bmc string) []Refusal
	// Update changes it; no other process changes it meanwhile.
	Update(bmc string, change func([]Refusal) []Refusal)
	// Place names where it is kept, for people.
	Place(bmc string) string
}

// Refusal is a secret with which a BMC refused to log in. Another version of it is
// another secret.
type Refusal struct {
	Account string         `json:"account"`
	IPMI    bool           `json:"ipmi,omitempty"` // over IPMI, where an account may lack more than its password
	Secret  plan.SecretRef `json:"secret"`
	Version string         `json:"version,omitempty"` // "" where nobody can tell whether it is still the same, or what the BMC has
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

// attempt is a login that may be refused.
type attempt struct {
	account string
	ipmi    bool
	secret  plan.SecretRef
	version string
}

// own is a login of the own account with a password that the BMC may have.
func (k *conn) own(c candidate, password plan.Secret) attempt {
	a := attempt{account: k.user, version: password.Version}
	switch c {
	case staged:
		a.secret = k.passwords.StagedRef
	case factory:
		a.secret = k.passwords.FactoryRef
	case stored:
		a.secret = k.client.credentials.Ref(k.device)
	}
	return a
}

// monitors is a login of the monitoring account.
func (k *conn) monitors(user string, password plan.Secret, ipmi bool) attempt {
	return attempt{account: user, ipmi: ipmi, secret: k.client.settings.Monitoring, version: password.Version}
}

// against tells that a refusal counts together with an attempt.
func (rule lockoutRule) against(r Refusal, account string) bool {
	return rule.address || r.Account == account
}

// held is why a login is not tried.
type held struct {
	fault *plan.Fault
	until time.Time
	same  bool // an earlier run was refused with it; else any refusal could lock the account
}

// refusedBefore looks whether a login may be tried, after what earlier runs, and
// this one, were refused; nil: it may.
func (k *conn) refusedBefore(a attempt) *held {
	if k.client.opt.Refusals == nil {
		return nil
	}
	rule, now := k.lockout(), k.client.opt.Now()
	k.untilNow(now)
	count, last := 0, time.Time{}
	for _, r := range rule.counting(k.client.opt.Refusals.Refused(k.base), now) {
		if !rule.against(r, a.account) {
			continue
		}
		if rule.fresh(r, now) && r.Account == a.account && r.IPMI == a.ipmi && r.Secret == a.secret && r.Version == a.version && r.Version != "" && !k.mine[a] {
			return k.hold(a, rule, r.At, true, "it is not tried again before %s, unless the secret is changed")
		}
		count += r.Count
		if r.At.After(last) {
			last = r.At
		}
	}
	most := rule.after - 1
	if rule.address && a.account != k.user {
		most-- // where all share one count, the own account keeps a try
	}
	if count >= max(1, most) {
		return k.hold(a, rule, last, false, "one more could lock the account: none is tried before %s")
	}
	return nil
}

// untilNow gives refusals of the future the present time. A clock was wrong when they
// were written, or is: when the BMC refused is not known, so they count from now on,
// and no longer than others do.
func (k *conn) untilNow(now time.Time) {
	late := func(r Refusal) bool { return r.At.After(now.Add(time.Minute)) }
	if !slices.ContainsFunc(k.client.opt.Refusals.Refused(k.base), late) {
		return
	}
	k.client.opt.Refusals.Update(k.base, func(all []Refusal) []Refusal {
		all = slices.Clone(all)
		for i := range all {
			if late(all[i]) {
				all[i].At = now.UTC()
			}
		}
		return all
	})
}

// fresh tells that a refusal is not older than the window.
func (rule lockoutRule) fresh(r Refusal, now time.Time) bool {
	return now.Before(r.At.Add(rule.window))
}

// counting are the refusals that the BMC may still hold against an account: each
// begins the window anew for those before it.
func (rule lockoutRule) counting(all []Refusal, now time.Time) []Refusal {
	return slices.DeleteFunc(slices.Clone(all), func(r Refusal) bool {
		return r.At.After(now.Add(time.Minute)) || !slices.ContainsFunc(all, func(other Refusal) bool { return rule.against(other, r.Account) && rule.fresh(other, now) })
	})
}

func (k *conn) hold(a attempt, rule lockoutRule, at time.Time, same bool, why string) *held {
	const clock = "15:04:05 UTC"
	until := at.Add(rule.window)
	fault := plan.NewFault(plan.CodeBMCCredential, "the BMC of %s at %s refused the login at %s; "+why, k.device, k.base, at.UTC().Format(clock), until.UTC().Format(clock)).
		With("secret", a.secret.String()).With("account", a.account).With("remembered in", k.client.opt.Refusals.Place(k.base)).
		WithHint("Correct the password in the vault. If the BMC's was set instead, wait until then, or remove the file in which it is remembered.")
	return &held{fault: fault, until: until, same: same}
}

// remember keeps for the next runs that a login was refused.
func (k *conn) remember(a attempt) {
	if k.client.opt.Refusals == nil {
		return
	}
	rule, now := k.lockout(), k.client.opt.Now().UTC()
	if k.mine == nil {
		k.mine = map[attempt]bool{}
	}
	k.mine[a] = true
	if k.starting || !k.client.opt.Restarts.Restart(k.device).Asked.IsZero() {
		a.version = "" // no proof against the password; it counts all the same
	}
	k.client.opt.Refusals.Update(k.base, func(all []Refusal) []Refusal {
		all = rule.counting(all, now)
		for i := range all {
			if r := &all[i]; r.Account == a.account && r.IPMI == a.ipmi && r.Secret == a.secret && r.Version == a.version {
				r.At, r.Count = now, r.Count+1
				return all
			}
		}
		return append(all, Refusal{Account: a.account, IPMI: a.ipmi, Secret: a.secret, Version: a.version, At: now, Count: 1})
	})
}

// forget follows a login that the BMC took: the account counts from nought again.
// Whether an address does is not known.
func (k *conn) forget(account string) {
	rule := k.lockout()
	k.revise(account, func(r *Refusal) (keep bool) {
		r.Version = ""
		return rule.address
	})
}

// doubt follows a password that was written: what the BMC refused before proves
// nothing, and counts all the same.
func (k *conn) doubt(account string) {
	k.revise(account, func(r *Refusal) bool {
		r.Version = ""
		return true
	})
}

// revise changes what is remembered of an account, and drops what does not count
// any more.
func (k *conn) revise(account string, change func(*Refusal) (keep bool)) {
	if k.client.opt.Refusals == nil || len(k.client.opt.Refusals.Refused(k.base)) == 0 {
		return
	}
	rule, now := k.lockout(), k.client.opt.Now()
	k.client.opt.Refusals.Update(k.base, func(all []Refusal) []Refusal {
		var out []Refusal
		for _, r := range rule.counting(all, now) {
			if r.Account != account || change(&r) {
				out = append(out, r)
			}
		}
		return out
	})
}
