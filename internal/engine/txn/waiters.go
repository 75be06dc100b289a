package txn

import (
	"sync"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// waiters are the calls that wait for executions to end (S70).
type waiters struct {
	mu sync.Mutex
	of map[base.UUID]map[chan struct{}]struct{}
}

func newWaiters() *waiters { return &waiters{of: map[base.UUID]map[chan struct{}]struct{}{}} }

// enter returns a channel that is closed when the execution ends, and a function to call when the caller stops waiting.
func (w *waiters) enter(id base.UUID) (<-chan struct{}, func()) {
	ended := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[id] == nil {
		w.of[id] = map[chan struct{}]struct{}{}
	}
	w.of[id][ended] = struct{}{}
	return ended, func() { w.leave(id, ended) }
}

func (w *waiters) leave(id base.UUID, ended chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of[id], ended)
	if len(w.of[id]) == 0 {
		delete(w.of, id)
	}
}

// Wake wakes the calls that wait for the execution: it has ended.
func (w *waiters) Wake(id base.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(id)
}

// wakeAll wakes all calls: those whose execution has not ended wait again.
func (w *waiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.of {
		w.end(id)
	}
}

// end wakes the calls that wait for the execution. The lock is held.
func (w *waiters) end(id base.UUID) {
	for ended := range w.of[id] {
		close(ended)
	}
	delete(w.of, id)
}
