package bmc

import (
	"context"
	"errors"
	"maps"

	"github.com/enroll-dev/enroll/plan"
)

// facet is one kind of setting: one file each, one row in facets.
type facet struct {
	kind plan.Kind
	read readFunc
	// set writes; nil for kinds that are never written. It is called with the BMC
	// proven and held.
	set setFunc
	// more: the step is several changes, one in each call; set is asked again after
	// each until it answers done or already.
	more bool
	// run stands for set where the step proves the BMC itself.
	run runFunc
}

// facets are all kinds of this package, in the order in which their steps run.
func facets() []facet {
	return []facet{
		credentialFacet(), resetFacet(), hostnameFacet(), networkFacet(), ntpFacet(), timeZoneFacet(), syslogFacet(), virtualMediaFacet(), biosFacet(), bootOrderFacet(), linkFacet(), ipmiUserFacet(), ipmiLANFacet(), securityFacet(), ipmiLoginFacet(),
	}
}

// Kinds are the settings of a BMC that enroll keeps.
func Kinds() []plan.Kind {
	var out []plan.Kind
	for _, f := range facets() {
		out = append(out, f.kind)
	}
	return out
}

// configured tells whether BMCs of the target's site are kept.
func configured(t *plan.Target) bool { return t.Site.BMC != nil && t.Site.ConfigureBMC }

// readFunc reads one resource from a BMC that was proven.
type readFunc func(ctx context.Context, k *conn, t *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault)

// evidence is where a value was seen.
type evidence map[string]string

// setFunc makes one change towards the wanted value of a step.
type setFunc func(ctx context.Context, k *conn, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result

// runFunc is a setFunc that proves and holds the BMC itself.
type runFunc setFunc

// Read answers every resource. BMCs are asked in parallel, each one request at
// a time and only for what its resources need. A BMC at whose address nothing
// answers is Unreachable; one that answers and cannot be read is Unreadable; a
// setting that it does not have is Unsupported.
func (c *Client) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	byDevice := map[string][]plan.Resource{}
	var devices []string
	for _, r := range resources {
		if sc.Target(r.Address.Device) == nil || c.facets[r.Address.KindName()].read == nil {
			out[r.Address] = plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeInternal, "%s cannot be read: no such kind, or the device is not in scope", r.Address))
			continue
		}
		if byDevice[r.Address.Device] == nil {
			devices = append(devices, r.Address.Device)
		}
		byDevice[r.Address.Device] = append(byDevice[r.Address.Device], r)
	}
	parts := make([]plan.Snapshot, len(devices))
	index := make([]int, len(devices))
	for i := range index {
		index[i] = i
	}
	each(c.opt.AtOnce, index, func(i int) { parts[i] = c.readDevice(ctx, sc.Target(devices[i]), byDevice[devices[i]]) })
	for _, p := range parts {
		out.Merge(p)
	}
	return out
}

func (c *Client) readDevice(ctx context.Context, t *plan.Target, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	answered := false
	k, fault := c.conn(t)
	if fault == nil {
		fault = k.use(ctx, t, func() *plan.Fault {
			k.readings = map[string]document{}
			defer func() { k.readings = nil }()
			var lost *plan.Fault
			for _, r := range resources {
				live := plan.LiveFault(k.presence(lost), lost)
				if lost == nil {
					live = k.readOne(ctx, t, r)
				}
				if k.tree == nil { // the connection or the session broke: the rest would fare the same
					lost = live.Fault
				}
				out[r.Address] = live
			}
			return nil
		}, &answered)
	}
	if fault != nil {
		presence := plan.Unreadable
		if isCode(fault, plan.CodeBMCUnreachable) && !answered {
			presence = plan.Unreachable
		}
		for _, r := range resources {
			out[r.Address] = plan.LiveFault(presence, fault)
			if r.Address.Kind != "credential" || k == nil {
				continue
			}
			if live, ok := k.unproven(ctx, fault); ok {
				out[r.Address] = live
			}
		}
	}
	return out
}

// presence judges a fault of reading. Only a BMC that has answered nothing in
// this call is Unreachable: that may be forgiven when its address is still to
// come.
func (k *conn) presence(f *plan.Fault) plan.Presence {
	switch {
	case isCode(f, plan.CodeBMCUnsupported):
		return plan.Unsupported
	case isCode(f, plan.CodeBMCUnreachable) && !k.answered:
		return plan.Unreachable
	}
	return plan.Unreadable
}

func (k *conn) readOne(ctx context.Context, t *plan.Target, r plan.Resource) plan.Live {
	value, seen, fault := k.client.facets[r.Address.KindName()].read(ctx, k, t, r.Want)
	if fault != nil {
		return plan.LiveFault(k.presence(fault), fault)
	}
	live := plan.LiveValue(value)
	live.Evidence = seen
	return live
}

// use runs work with the BMC proven and held, once more with a new session when
// the BMC has forgotten the old one. answered, where given, is set when anything
// answered for the BMC.
func (k *conn) use(ctx context.Context, t *plan.Target, work func() *plan.Fault, answered *bool) *plan.Fault {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answered = false
	if answered != nil {
		defer func() { *answered = k.answered }()
	}
	for attempt := 1; ; attempt++ {
		k.expired = false
		switch {
		case k.login.basic:
			k.tree = nil // no session that another machine at this address would not know
		case k.tree != nil:
			k.tree.fresh = false
		}
		fault := k.prove(ctx, t)
		if fault == nil {
			fault = work()
		}
		if !k.expired {
			return fault
		}
		if attempt == 2 {
			return plan.NewFault(plan.CodeBMCRefused, "the BMC of %s accepts the login and does not know the session that it gives", k.device).With("url", k.base)
		}
	}
}

// Run executes a step: one bounded exchange. A verify step proves login and
// identity and asks to be called again until the BMC answers.
func (c *Client) Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result {
	t := sc.Target(step.Address.Device)
	if t == nil {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s cannot be run: the device is not in scope", step.Address))
	}
	k, fault := c.conn(t)
	if fault != nil {
		return plan.Failed(fault)
	}
	f := c.facets[step.Address.KindName()]
	switch {
	case f.run != nil:
		return f.run(ctx, k, t, step, memo)
	case f.set == nil:
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s cannot be run by this version", step.Address))
	}
	var result plan.Result
	fault = k.use(ctx, t, func() *plan.Fault {
		result = k.step(ctx, f, t, step, memo)
		return nil
	}, nil)
	if fault != nil {
		return plan.Failed(fault)
	}
	return result
}

// step follows the task of the last change, or makes the next one.
func (k *conn) step(ctx context.Context, f facet, t *plan.Target, step *plan.Step, memo plan.Memo) plan.Result {
	memo = maps.Clone(memo) // a session that ended lets this run twice
	if memo[memoTask] != "" {
		r := k.followTask(ctx, memo)
		if r.Outcome != plan.OutcomeDone || !f.more {
			return keepMemo(r, memo)
		}
		memo = without(memo, memoTask, memoPauses)
	}
	k.made = madeBefore(memo)
	r := f.set(ctx, k, t, step, memo)
	made := k.made
	k.made = nil
	if r.Outcome == plan.OutcomeFailed && r.Fault == repeated {
		return unmoved(memo)
	}
	r = rememberMade(r, made)
	if r.Outcome == plan.OutcomeAlready && memo != nil {
		return plan.Done() // an earlier exchange of this step was the last of it
	}
	if r.Outcome == plan.OutcomeWait && r.Memo == nil {
		r.Memo = plan.Memo{}
	}
	return keepMemo(r, memo)
}

// keepMemo carries on what the kind keeps through the task of one change.
func keepMemo(r plan.Result, memo plan.Memo) plan.Result {
	for key, value := range memo {
		if _, ok := r.Memo[key]; r.Outcome == plan.OutcomeWait && !ok && key != memoTask && key != memoPauses {
			r.Memo[key] = value
		}
	}
	return r
}

func without(memo plan.Memo, keys ...string) plan.Memo {
	out := plan.Memo{}
	for k, v := range memo {
		out[k] = v
	}
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

// isCode tells that a fault has a code; nil has none.
func isCode(f *plan.Fault, code plan.Code) bool { return f != nil && errors.Is(f, code) }
