package model

import (
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
)

// start is where every clock begins. All durations of this test are multiples of the grid of the due index (L19), so that a
// sweep acts on exactly what is due.
var start = time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC)

// sleepyClock tells the present but lets nobody wake up before fire is called: so time passes while no sweep runs.
type sleepyClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*sleeper
}

type sleeper struct {
	at time.Time
	c  chan time.Time
}

var _ clock.Clock = (*sleepyClock)(nil)

func (c *sleepyClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *sleepyClock) storeNow() core.Time { return core.TimeOf(c.Now()) }

func (c *sleepyClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// NewTimer returns a timer that waits for fire. Pauses of a few milliseconds are over at once: they only gather what comes in
// quick succession.
func (c *sleepyClock) NewTimer(d time.Duration) *clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &sleeper{at: c.now.Add(d), c: make(chan time.Time, 1)}
	if d > 0 && d <= 10*time.Millisecond {
		s.c <- c.now
	} else {
		c.timers = append(c.timers, s)
	}
	return clock.NewTimer(s.c, func() bool { return c.forget(s) })
}

func (c *sleepyClock) forget(s *sleeper) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.timers, s)
	if at < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, at, at+1)
	return true
}

// fire wakes whoever is due and tells whether there was anybody.
func (c *sleepyClock) fire() bool {
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
