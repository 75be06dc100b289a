package flowfabrictest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// turned is a clock that only the test turns. It fires one timer at a time, so that everything can come to rest in between; of
// timers that are due at the same moment the seed says which is the first.
type turned struct {
	mu     sync.Mutex
	now    time.Time
	order  *rand.Rand
	timers []*pending // the next one first
}

type pending struct {
	at   time.Time
	rank uint64
	c    chan time.Time
}

func newTurned(start time.Time, seed uint64) *turned {
	return &turned{now: start, order: rand.New(rand.NewPCG(seed, seed))}
}

// Now is the moment the clock was last turned to.
func (t *turned) Now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// NewTimer fires when the clock has been turned d from now; at once when d is not positive.
func (t *turned) NewTimer(d time.Duration) *clock.Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timerAt(t.now.Add(d))
}

// NewTimerAt fires when the clock has been turned to that moment; at once when it has.
func (t *turned) NewTimerAt(at time.Time) *clock.Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timerAt(at)
}

// timerAt makes a timer. The lock is held.
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

// next is the moment of the earliest pending timer; false when none is pending.
func (t *turned) next() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.timers) == 0 {
		return time.Time{}, false
	}
	return t.timers[0].at, true
}

// turnTo moves the clock forward and fires nothing. A moment in the past changes nothing.
func (t *turned) turnTo(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.After(t.now) {
		t.now = at
	}
}

// fire fires the first timer that is due, and reports whether there was one.
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
