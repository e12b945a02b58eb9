package bmc

import (
	"context"
	"errors"

	"github.com/enroll-dev/enroll/plan"
)

// The kinds of this version.
const (
	kindCredential = "bmc.credential"
	kindHostname   = "bmc.hostname"
	kindNTP        = "bmc.ntp"
	kindBootOrder  = "bmc.boot_order"
)

// Kinds are the settings of a BMC that enroll keeps: one file each.
func Kinds() []plan.Kind {
	return []plan.Kind{credentialKind(), hostnameKind(), ntpKind(), bootOrderKind()}
}

// configured tells whether BMCs of the target's site are kept.
func configured(t *plan.Target) bool { return t.Site.BMC != nil && t.Site.ConfigureBMC }

// readFunc reads one resource from a BMC that was proven.
type readFunc func(ctx context.Context, k *conn, t *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault)

// evidence is where a value was seen.
type evidence map[string]string

// setFunc writes what differs from the wanted value.
type setFunc func(ctx context.Context, k *conn, t *plan.Target, want plan.Value) plan.Result

func readerOf(kind string) readFunc {
	switch kind {
	case kindCredential:
		return readCredential
	case kindHostname:
		return readHostname
	case kindNTP:
		return readNTP
	case kindBootOrder:
		return readBootOrder
	}
	return nil
}

func setterOf(kind string) setFunc {
	switch kind {
	case kindHostname:
		return setHostname
	case kindNTP:
		return setNTP
	}
	return nil
}

// Read answers every resource. BMCs are asked in parallel, each one request at
// a time and only for what its resources need. A BMC at whose address nothing
// answers is Unreachable; one that answers and cannot be read is Unreadable; a
// setting that it does not have is Unsupported.
func (c *Client) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	byDevice := map[string][]plan.Resource{}
	var devices []string
	for _, r := range resources {
		if sc.Target(r.Address.Device) == nil || readerOf(r.Address.KindName()) == nil {
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
	each(index, func(i int) { parts[i] = c.readDevice(ctx, sc.Target(devices[i]), byDevice[devices[i]]) })
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
	value, seen, fault := readerOf(r.Address.KindName())(ctx, k, t, r.Want)
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
		if k.tree != nil {
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
	if step.Address.KindName() == kindCredential {
		return runCredential(ctx, k, t, step, memo)
	}
	set := setterOf(step.Address.KindName())
	if set == nil {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s cannot be run by this version", step.Address))
	}
	var result plan.Result
	fault = k.use(ctx, t, func() *plan.Fault {
		if memo[memoTask] != "" {
			result = k.followTask(ctx, memo)
		} else {
			result = set(ctx, k, t, step.After)
		}
		return nil
	}, nil)
	if fault != nil {
		return plan.Failed(fault)
	}
	return result
}

// isCode tells that a fault has a code; nil has none.
func isCode(f *plan.Fault, code plan.Code) bool { return f != nil && errors.Is(f, code) }
