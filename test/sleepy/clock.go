// Package sleepy is a clock for tests that decide not only what time it is but also when goroutines notice: while none is woken,
// time passes and no loop of an engine runs. It knows nothing of engines.
package sleepy

import (
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Start is where clocks begin: on the grid of the due index (L19).
func Start() time.Time { return time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC) }

// Clock tells the present but wakes no goroutine before Wake is called.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*sleeper
}

type sleeper struct {
	at time.Time
	c  chan time.Time
}

var _ clock.Clock = (*Clock)(nil)

// New returns a clock that stands at Start.
func New() *Clock { return &Clock{now: Start()} }

// Now is the present.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// StoreNow is the present as stores tell it.
func (c *Clock) StoreNow() base.Time { return base.TimeOf(c.Now()) }

// Step moves the present, forward or back.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// NewTimer returns a timer that waits for Wake. Pauses of a few milliseconds are over at once: they only gather what comes in
// quick succession.
func (c *Clock) NewTimer(d time.Duration) *clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timerAt(c.now.Add(d))
}

// NewTimerAt is NewTimer for a moment.
func (c *Clock) NewTimerAt(at time.Time) *clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timerAt(at)
}

// timerAt makes a timer. The lock is held.
func (c *Clock) timerAt(at time.Time) *clock.Timer {
	s := &sleeper{at: at, c: make(chan time.Time, 1)}
	if d := at.Sub(c.now); d > 0 && d <= 10*time.Millisecond {
		s.c <- c.now
	} else {
		c.timers = append(c.timers, s)
	}
	return clock.NewTimer(s.c, func() bool { return c.forget(s) })
}

func (c *Clock) forget(s *sleeper) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.timers, s)
	if at < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, at, at+1)
	return true
}

// Wake wakes the goroutines that are due and reports whether there were any.
func (c *Clock) Wake() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []*sleeper
	c.timers = slices.DeleteFunc(c.timers, func(s *sleeper) bool {
		if s.at.After(c.now) {
			return false
		}
		due = append(due, s)
		return true
	})
	for _, s := range due {
		s.c <- c.now
	}
	return len(due) > 0
}
