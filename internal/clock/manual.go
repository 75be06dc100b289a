package clock

import (
	"slices"
	"sync"
	"time"
)

// Manual is a clock that only its owner turns.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	timers []*manualTimer // by due time
}

type manualTimer struct {
	at time.Time
	c  chan time.Time
}

// NewManual returns a clock that stands at start.
func NewManual(start time.Time) *Manual { return &Manual{now: start} }

// Now is the moment the clock was last turned to.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// NewTimer fires when the clock is turned past d from now; at once when d is not positive.
func (m *Manual) NewTimer(d time.Duration) *Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.timerAt(m.now.Add(d))
}

// NewTimerAt fires when the clock is turned to that moment; at once when it was.
func (m *Manual) NewTimerAt(at time.Time) *Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.timerAt(at)
}

// timerAt makes a timer. The lock is held.
func (m *Manual) timerAt(at time.Time) *Timer {
	t := &manualTimer{at: at, c: make(chan time.Time, 1)}
	if !at.After(m.now) {
		t.c <- m.now
	} else {
		at, _ := slices.BinarySearchFunc(m.timers, t, func(a, b *manualTimer) int {
			if c := a.at.Compare(b.at); c != 0 {
				return c
			}
			return -1
		})
		m.timers = slices.Insert(m.timers, at, t)
	}
	return &Timer{C: t.c, stop: func() bool { return m.forget(t) }}
}

func (m *Manual) forget(t *manualTimer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.Index(m.timers, t)
	if at < 0 {
		return false
	}
	m.timers = slices.Delete(m.timers, at, at+1)
	return true
}

// Next is the earliest pending timer; false when none is pending.
func (m *Manual) Next() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.timers) == 0 {
		return time.Time{}, false
	}
	return m.timers[0].at, true
}

// TurnTo moves the clock forward to t and fires every timer due by then, in order. A moment in the past changes nothing.
func (m *Manual) TurnTo(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.After(m.now) {
		m.now = t
	}
	for len(m.timers) > 0 && !m.timers[0].at.After(m.now) {
		m.timers[0].c <- m.now
		m.timers = m.timers[1:]
	}
}
