package ironic

import (
	"context"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// run is one exchange of one step.
type run struct {
	service *service
	scope   *plan.Scope
	target  *plan.Target
	step    *plan.Step
	memo    plan.Memo
	links   Links // nil: nobody watches
	client  *Client
	now     func() time.Time
}

// Run performs one bounded exchange for the step: a look at the node, and at
// most one write. It never waits and never sends a request twice.
func (c *Client) Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result {
	t := sc.Target(step.Address.Device)
	if t == nil || t.Ironic == nil {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "%s: no Ironic manages the device of this step", step.Address))
	}
	s, f := c.service(t.Ironic.Name)
	if f != nil {
		return plan.Failed(f)
	}
	r := run{service: s, scope: sc, target: t, step: step, memo: memo, links: c.opt.Links, now: c.now, client: c}
	switch step.Address.KindName() {
	case systemIronic + "." + kindNode:
		return c.runNode(ctx, r)
	case systemIronic + "." + kindPortgroup:
		return c.runPortgroup(ctx, r)
	case systemIronic + "." + kindPort:
		return c.runPort(ctx, r)
	case systemIronic + "." + kindProvision:
		return c.runProvision(ctx, r)
	case systemIronic + "." + kindMaintenance:
		return c.runMaintenance(ctx, r)
	case systemIronic + "." + kindCredential:
		return c.runCredential(ctx, r)
	case systemIronic + "." + kindTrait:
		return c.runTrait(ctx, r)
	case systemIronic + "." + kindRAIDInterface:
		return c.runRAIDInterface(ctx, r)
	case systemIronic + "." + kindRAIDConfig:
		return c.runRAIDConfig(ctx, r)
	case systemIronic + "." + kindRootDevice:
		return c.runRootDevice(ctx, r)
	case systemIronic + "." + kindDriver:
		return c.runDriver(ctx, r)
	case systemIronic + "." + kindPower:
		return c.runPower(ctx, r)
	case systemCheck + "." + kindInspection, systemCheck + "." + kindLLDP:
		return c.runCheck(ctx, r)
	}
	return plan.Failed(plan.NewFault(plan.CodeInternal, "%s: there is no such kind", step.Address))
}

// unowned reads the node right before a write and refuses when somebody holds
// it by now. Ironic has no compare-and-set: whoever claims the node between this
// read and the write that follows it is not seen. That window is one exchange, and
// never more: nothing is asked between the two. A test holds all writes to that.
func (r run) unowned(ctx context.Context) (*node, *plan.Fault) {
	n, f := r.service.node(ctx, r.target.Name())
	if f != nil {
		return nil, f
	}
	if n == nil {
		return nil, plan.NewFault(plan.CodeIronicUnexpected, "node %s is gone", r.target.Name()).With("ironic", r.service.where())
	}
	if f := r.client.moved(r.target.Name(), n); f != nil {
		return nil, f
	}
	if o := own(n); o.Owned {
		return nil, plan.NewFault(plan.CodeNodeOwned, "node %s is held: %s", n.Name, o.Reason).With("node", n.UUID)
	}
	return n, nil
}
