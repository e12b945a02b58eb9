// Package apply is the interpreter of a plan: it decides when each step runs,
// and whether it still may.
//
// One loop owns all state. A step is visited: ownership and the guard are read
// again, the begin is journalled, the runner performs one bounded exchange, and
// the value is read back. Between visits a step is an entry with a due time and
// holds no slot. Nothing here knows a system; nothing here writes but through a
// Runner.
//
// Recovery is always the same: read live, plan again. The journal explains and
// enforces that a plan is applied once; it is never truth.
package apply
