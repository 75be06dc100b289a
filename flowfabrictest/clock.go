package flowfabrictest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// turned is a clock that only the test moves. It fires one timer at a time, so that everything can settle in between; the seed
// decides the order of timers that are due at the same time.
type turned struct {
	mu     sync.Mutex
	now    time.Time
	order  *rand.Rand
	timers []*pending // ordered by time
}

type pending struct {
	at   time.Time
	rank uint64
	c    chan time.Time
}

func newTurned(start time.Time, seed uint64) *turned {
	return &turned{now: start, order: rand.New(rand.NewPCG(seed, seed))}
}

// Now is the current time of the clock.
func (t *turned) Now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// NewTimer fires when the clock has moved by d; at once if d is not positive.
func (t *turned) NewTimer(d time.Duration) *clock.Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timerAt(t.now.Add(d))
}

// NewTimerAt fires when the clock reaches the time; at once if it has.
func (t *turned) NewTimerAt(at time.Time) *clock.Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timerAt(at)
}

// timerAt adds a timer. The lock must be held.
func (t *turned) timerAt(at time.Time) *clock.Timer {
	p := &pending{at: at, rank: t.order.Uint64(), c: make(chan time.Time, 1)}
	if !at.After(t.now) {
		p.c <- t.now
	} else {
		place, _ := slices.BinarySearchFunc(t.timers, p, (*pending).compare)
		t.timers = slices.Insert(t.timers, place, p)
	}
	return clock.NewTimer(p.c, func() bool { return t.forget(p) })
}

func (p *pending) compare(other *pending) int {
	if c := p.at.Compare(other.at); c != 0 {
		return c
	}
	if p.rank < other.rank {
		return -1
	}
	return 1
}

func (t *turned) forget(p *pending) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	place := slices.Index(t.timers, p)
	if place < 0 {
		return false
	}
	t.timers = slices.Delete(t.timers, place, place+1)
	return true
}

// next returns the time of the earliest pending timer; false if there is none.
func (t *turned) next() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.timers) == 0 {
		return time.Time{}, false
	}
	return t.timers[0].at, true
}

// turnTo moves the clock forward without firing timers. A time in the past changes nothing.
func (t *turned) turnTo(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.After(t.now) {
		t.now = at
	}
}

// fire fires the first due timer, and reports whether there was one.
func (t *turned) fire() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.timers) == 0 || t.timers[0].at.After(t.now) {
		return false
	}
	t.timers[0].c <- t.now
	t.timers = slices.Delete(t.timers, 0, 1)
	return true
}
