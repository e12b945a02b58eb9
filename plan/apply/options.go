package apply

import (
	"context"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Input is what is applied.
type Input struct {
	Scope  *plan.Scope
	Steps  []*plan.Step // as the plan has them; every need names one of them
	PlanID string
	// ContentHash is what was approved.
	ContentHash string
	// Begun are the steps that an earlier, unfinished run of this plan had begun:
	// their request may have arrived, so the live value may lie between before
	// and after.
	Begun map[string]bool
	// Done are the steps that such a run had finished. What left a value is read again,
	// and is done again only where that is still as it was before the step; checks are
	// made again. Nothing else is: later steps have moved on what they left.
	Done map[string]bool
	// Ledgers are what such a run had spent on the steps that it left unfinished.
	Ledgers map[string]Ledger
	// Held are devices that nothing is done to, with the reason: their record moved
	// since the plan, or the plan itself found a fault.
	Held map[string]*plan.Fault
	// Owed are the obligations that earlier runs left open on these devices. They
	// are taken over by the step that opened them when the plan has it again, else
	// settled first.
	Owed []plan.Obligation
	// HadNode are the devices that had a node in Ironic when the plan was made. One
	// whose node is gone has been renamed, or deleted: it is no longer known whose
	// the machine is.
	HadNode map[string]bool
	// Nodes are the UUIDs of those nodes, as far as the plan has them. A device whose
	// name another node has by then gets no write.
	Nodes map[string]string
}

// The parts of the providers' contract that a run needs. They stand here, as
// the consumer sees them, because this package may import plan alone.
type (
	// Reader reads live values; see providers.Reader.
	Reader interface {
		Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot
	}
	// Runner performs one bounded exchange; see providers.Runner.
	Runner interface {
		Run(ctx context.Context, sc *plan.Scope, step *plan.Step, memo plan.Memo) plan.Result
	}
	// Restorer puts back what a step left open; see providers.Restorer.
	Restorer interface {
		Restore(ctx context.Context, sc *plan.Scope, o plan.Obligation) plan.Result
	}
	// Owner tells who holds the devices' nodes; see providers.Owner.
	Owner interface {
		Ownership(ctx context.Context, sc *plan.Scope) map[string]plan.Ownership
	}
)

// Deps are a run's ties to the world.
type Deps struct {
	Reader Reader
	Runner Runner
	Owner  Owner
	// Restorer may be nil when no step opens obligations.
	Restorer Restorer
	Clock    Clock
	Journal  *Journal
	// Locked gives LOCK_LOST when the run does not hold the device any more; nil
	// when nothing was locked. It is asked before every mutation.
	Locked func(device string) *plan.Fault
	// Events is told what happens, one call at a time; nil for nobody.
	Events func(plan.Event)
	// Stop, when closed, starts nothing new, abandons waits and lets what is in
	// flight finish. Cancelling the context also cancels what is in flight.
	Stop <-chan struct{}
}

// heartbeat is how long a run is silent at most.
const heartbeat = 5 * time.Minute

// Options are the limits of a run.
type Options struct {
	Devices int // devices with an exchange in flight at once

	// Batches are the systems whose steps one exchange serves for many devices, with
	// the number of steps that may take part; they do not count against Devices.
	Batches map[string]int

	// Hosts that reboot at once, in the site and in one rack; 0 means no limit. A
	// host counts from the begin of its step to the end, at most RebootWindow.
	Reboots, RebootsPerRack int
	RebootWindow            time.Duration

	Limit     time.Duration // of the whole run, which then stops in good order; 0 means none
	Heartbeat time.Duration // a sign of life when nothing else was told for so long; 0 means none

	// CancelGrace is how long what is in flight may take to end once the run was
	// cancelled; after that it is in doubt. Five seconds are all that a cancelled
	// command has: a little of them is for the end of its sessions.
	CancelGrace time.Duration

	// Restoring what a step left open is tried for RestoreBudget, and for
	// RestoreGrace once the run was cancelled.
	RestoreBudget, RestoreGrace time.Duration

	Budget time.Duration // of a step that has none of its own, all its waits included

	// Busy faults (a locked node, a booting BMC) have a ledger of their own: pauses
	// doubling from BusyMin to BusyMax, together at most BusyBudget per step.
	BusyMin, BusyMax, BusyBudget time.Duration

	// An unreachable system is tried again Retries times, with pauses doubling
	// from RetryMin.
	Retries  int
	RetryMin time.Duration

	// A write that was accepted is read back up to ReadBacks times, ReadBackPause
	// apart, before it counts as not applied.
	ReadBacks     int
	ReadBackPause time.Duration

	// A value that cannot be read yet (a BMC that is still starting) is looked for
	// with pauses doubling from LookMin to LookMax, within the step's budget.
	LookMin, LookMax time.Duration
}

// DefaultOptions are the limits that fit one site.
func DefaultOptions() Options {
	return Options{
		Devices: 16, Budget: 15 * time.Minute, RebootWindow: 10 * time.Minute, Heartbeat: heartbeat,
		RestoreBudget: 2 * time.Minute, RestoreGrace: 4 * time.Second, CancelGrace: 4 * time.Second,
		BusyMin: 10 * time.Second, BusyMax: time.Minute, BusyBudget: 15 * time.Minute,
		Retries: 3, RetryMin: 2 * time.Second,
		ReadBacks: 3, ReadBackPause: time.Second,
		LookMin: 250 * time.Millisecond, LookMax: 5 * time.Second,
	}
}

// doubled is a pause that doubles with every use, up to a limit.
func doubled(least, most time.Duration, nth int) time.Duration {
	for d := least; ; d *= 2 {
		if d >= most {
			return most
		}
		if nth == 0 {
			return d
		}
		nth--
	}
}
