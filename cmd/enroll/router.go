package main

import (
	"context"
	"sync"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
)

// system is what a router needs of one system.
type systemProvider interface {
	providers.Reader
	providers.Runner
}

// router sends each resource and step to the provider of its system.
type router struct {
	systems map[string]systemProvider // by system, or by kind where another serves one kind of it
	owner   providers.Owner           // nil: no Ironic, nothing can be owned
}

// Read asks every system at once for its part.
func (r *router) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	parts := map[string][]plan.Resource{}
	for _, res := range resources {
		parts[r.key(res.Address)] = append(parts[r.key(res.Address)], res)
	}
	// Two systems may be served by one provider (checks read Ironic's inventory):
	// it is asked once, for both.
	merged := map[systemProvider][]plan.Resource{}
	out := plan.Snapshot{}
	for system, list := range parts {
		p, ok := r.systems[system]
		if !ok {
			for _, res := range list {
				out[res.Address] = plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeInternal, "no provider serves %s", system))
			}
			continue
		}
		merged[p] = append(merged[p], list...)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for p, list := range merged {
		wg.Go(func() {
			snap := p.Read(ctx, sc, list)
			mu.Lock()
			defer mu.Unlock()
			out.Merge(snap)
		})
	}
	wg.Wait()
	return out
}

// key is under which name the provider of an address stands.
func (r *router) key(a plan.Address) string {
	if _, ok := r.systems[a.KindName()]; ok {
		return a.KindName()
	}
	return a.System
}

// Run hands the step to the provider of its system.
func (r *router) Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result {
	p, ok := r.systems[r.key(step.Address)]
	if !ok {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "no provider serves %s", step.Address.System))
	}
	return p.Run(ctx, sc, step, memo)
}

// Restore puts back what a step of a system left open.
func (r *router) Restore(ctx context.Context, sc *plan.Scope, o plan.Obligation) plan.Result {
	p, ok := r.systems[o.Address.System].(providers.Restorer)
	if !ok {
		return plan.Failed(plan.NewFault(plan.CodeInternal, "nobody puts back what %s left open", o.Address))
	}
	return p.Restore(ctx, sc, o)
}

// Ownership asks Ironic who holds the devices' nodes.
func (r *router) Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership {
	if r.owner == nil {
		return map[string]plan.Ownership{}
	}
	return r.owner.Ownership(ctx, sc)
}
