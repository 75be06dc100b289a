// Package clock is the only place that reads the host's clock. Engine code takes a Clock, so that tests can turn time by hand.
// It knows nothing of stores: the moments that decide anything come from the store, not from here.
package clock

import "time"

// Clock tells the time of this host and wakes those who wait.
type Clock interface {
	// Now is the present moment, with a monotonic reading where the clock has one.
	Now() time.Time
	// NewTimer fires once, d from now; at once when d is not positive.
	NewTimer(d time.Duration) *Timer
	// NewTimerAt fires once, when that moment has come; at once when it has. Who computes from Now when to wake up asks for the
	// moment: a clock that is turned in between makes a duration wrong, and nothing wakes.
	NewTimerAt(at time.Time) *Timer
}

// Timer is a pending wake-up. C receives one value when it fires.
type Timer struct {
	C    <-chan time.Time
	stop func() bool
}

// NewTimer makes the timer of a Clock: c receives one value when it fires, stop is what Stop does.
func NewTimer(c <-chan time.Time, stop func() bool) *Timer { return &Timer{C: c, stop: stop} }

// Stop forgets the wake-up. It reports whether it came before the timer fired.
func (t *Timer) Stop() bool { return t.stop() }

// System is the host's own clock.
func System() Clock { return system{} }

// Stopwatch tells how long ago it was made, by the host's monotonic clock alone: for what is only measured, where a whole reading of
// the clock would cost more than what it measures.
func Stopwatch() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) NewTimer(d time.Duration) *Timer {
	t := time.NewTimer(d)
	return &Timer{C: t.C, stop: t.Stop}
}

func (s system) NewTimerAt(at time.Time) *Timer { return s.NewTimer(time.Until(at)) }
