package apply

import "time"

// Clock is the time of a run.
type Clock interface {
	Now() time.Time
	// Timer fires once, not before d has passed; stop releases it. inFlight is how
	// many visits are under way: a virtual clock lets time pass while there are none.
	Timer(d time.Duration, inFlight int) (fired <-chan time.Time, stop func() bool)
}

// RealClock is the machine's clock.
type RealClock struct{}

// Now is the current time.
func (RealClock) Now() time.Time { return time.Now() } //nolint:forbidigo // the one place where apply asks the machine

// Timer is time.NewTimer.
func (RealClock) Timer(d time.Duration, _ int) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}
