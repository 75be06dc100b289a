package claims

import (
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
)

// What tests wait for and count: nothing else needs it.

// Claimants returns how many calls wait for work, whether they have looked or not.
func (e *Claims) Claimants() int { return e.picker.waiters() }

// WaitingClaims returns how many calls have looked and wait for work.
func (e *Claims) WaitingClaims() (n int) {
	e.picker.mu.Lock()
	defer e.picker.mu.Unlock()
	for _, call := range e.picker.waiting {
		if call.looked && !call.serving {
			n++
		}
	}
	return n
}

// Kept says how much the picker keeps for queues and keys.
type Kept struct{ Queues, Candidates, Full, News int }

// KeptForKeys counts what the picker keeps.
func (e *Claims) KeptForKeys() (k Kept) {
	p := e.picker
	p.mu.Lock()
	defer p.mu.Unlock()
	k.Queues, k.Full, k.News = len(p.queues), len(p.full), len(p.news.list)
	for _, m := range p.matched {
		for _, lane := range m.lanes {
			lane.any() // leaves out what is worthless at the top
			k.Candidates += len(lane.turns)
		}
	}
	return k
}

// Polls returns how many polls of the sweep have begun. Each begins when the one before has been acted on.
func (e *Claims) Polls() uint64 {
	e.picker.mu.Lock()
	defer e.picker.mu.Unlock()
	return e.picker.polls
}

// IdleLooks is how many classes of a fairness key are looked at one by one to judge whether it is idle.
const IdleLooks = idleLooks

// ClassesUnder returns n classes that the picker knows under one fairness key: how many there are, and themselves.
func ClassesUnder(key string, n int) (count func() int, all iter.Seq[*core.Class]) {
	k := &keyedClasses{}
	for i := range n {
		k.add(key, &core.Class{ID: int32(i)})
	}
	return func() int { return k.count(key) }, k.of(key)
}
