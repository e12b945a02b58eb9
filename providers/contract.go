// Package providers holds the contract that the four systems fulfil. A
// provider reads in bulk, judges nothing, and writes one bounded exchange at a
// time. Rules about what should be done stand in its kinds, which are pure.
package providers

import (
	"context"

	"github.com/enroll-dev/enroll/plan"
)

// Reader reads live values. Planning is handed Readers and nothing else.
type Reader interface {
	// Read answers every given resource of this system: one bulk read per system
	// where the system offers it, never a request per device that can be one per
	// site. It returns no error: what could not be read is in the snapshot with
	// its fault.
	Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot
}

// Runner executes steps.
type Runner interface {
	// Run performs one bounded exchange for the step: at most a few requests, no
	// waiting, no retry, no goroutine left behind. memo is what the previous
	// exchange of the same step returned, nil the first time.
	Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result
}

// Restorer puts back what a step left open (plan.Result.Opens).
type Restorer interface {
	// Restore performs one bounded exchange like Run. It looks first whether the
	// obligation still stands: Already when the world has moved on by itself.
	Restore(ctx context.Context, sc *plan.Scope, o plan.Obligation) plan.Result
}

// Owner tells who holds the devices' nodes. It is asked first in every plan,
// and again right before every mutation.
type Owner interface {
	Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership // by device name
}

// Closer releases sessions and connections. It is called on every way out,
// with a context that is not cancelled.
type Closer interface {
	Close(ctx context.Context) error
}

// Secrets resolves references. Every reference is read once per run.
type Secrets interface {
	// Read resolves all references in one batch; a missing one is a fault that
	// names item and field.
	Read(ctx context.Context, refs []plan.SecretRef) (map[plan.SecretRef]plan.Secret, error)
}

// Rotator changes a secret in two phases, so that whoever is interrupted between
// them finds the new value in the vault: first the new value is staged beside the
// current one, then the system that uses it is changed, then it is published.
type Rotator interface {
	Secrets
	// Stage stores value beside the current one. It refuses with SECRET_CONFLICT
	// while another value is staged, or when the item changes at the same time.
	Stage(ctx context.Context, ref plan.SecretRef, value plan.Secret) (plan.StagedSecret, error)
	// Publish makes the staged value the current one and gives the version that
	// holds it. It refuses with SECRET_CONFLICT when the item was changed since.
	Publish(ctx context.Context, staged plan.StagedSecret) (version string, err error)
}

// Finding is what a live check found out about one thing that a run needs.
type Finding struct {
	What  string      // the thing, for example "NetBox: view dcim.device"
	Fault *plan.Fault // nil: it is as it has to be
	Note  string      // more about what was seen, or what cannot be seen without writing
}

// Prober looks whether a system answers and whether the credential has the
// rights that a run needs. It writes nothing.
type Prober interface {
	Probe(ctx context.Context, site *plan.Site) []Finding
}
