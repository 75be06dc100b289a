package claims

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// longestHold bounds how many picks in a row new work waits for.
const longestHold = 3

// wantedBy reports whether one of the calls may take work of the class.
func wantedBy(calls []*claim, class *core.Class) bool {
	for _, call := range calls {
		if txn.Contains(call.req.Lanes, class.Lane) && call.matches(class) {
			return true
		}
	}
	return false
}

// Excess returns a function that counts new work against the waiting claims. For each command it reports whether no claim is left for it although
// nothing of its class is queued.
func (p *picker) Excess() func(class *core.Class) bool {
	given := map[*claim]int{}
	known := map[int32]takers{}
	return func(class *core.Class) bool {
		t, ok := known[class.ID]
		if !ok {
			t = p.takersOf(class)
			known[class.ID] = t
		}
		for _, call := range t.calls {
			if given[call] < call.req.Max {
				given[call]++
				return false
			}
		}
		return !t.queued
	}
}

// takers are the claims that would take new work of a class.
type takers struct {
	calls  []*claim
	queued bool // such work is queued in any case
}

func (p *picker) takersOf(class *core.Class) (t takers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[queueID{class: class.ID}]; q == nil || q.maybe {
		return takers{queued: true}
	}
	for _, call := range p.waiting {
		if !call.serving && wantedBy([]*claim{call}, class) {
			t.calls = append(t.calls, call)
		}
	}
	return t
}
