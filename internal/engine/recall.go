package engine

import (
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// maxRecalled bounds what a process remembers.
const maxRecalled = 16_384

// recollection is what this process remembers of running executions since it last wrote them: nearly always the next command
// on one comes from the worker that got it here, and finds it unchanged. Such a command is decided without loading the row; the
// store writes only if the row is still what was remembered (store.Changes.Assume). A command that would be refused, or would
// change nothing, is never answered from memory.
type recollection struct {
	mu   sync.Mutex
	rows map[core.UUID]*core.Execution // without inputs; nobody changes them
}

func newRecollection() *recollection { return &recollection{rows: map[core.UUID]*core.Execution{}} }

func (r *recollection) of(id core.UUID) *core.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows[id]
}

// note remembers what a committed transaction has left running, and forgets the rest of what it wrote. draw is that of its versions.
func (r *recollection) note(written []*entry, draw uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ent := range written {
		id := ent.x.ID.UUID
		if ent.removed || ent.x.Status != core.Running || ent.x.Reservation != nil { // budgets are settled under their locks
			delete(r.rows, id)
			continue
		}
		x := *ent.x // what it points to is not changed any more
		x.Version = store.NextVersion(x.Version, draw)
		x.Input.Data = nil
		if known := r.rows[id]; known != nil && known.Version>>32 > x.Version>>32 {
			continue // a later transaction was quicker to tell; if it was of another execution of this id, the next command forgets it
		}
		if len(r.rows) >= maxRecalled {
			r.forgetAny()
		}
		r.rows[id] = &x
	}
}

func (r *recollection) forgetAny() {
	for id := range r.rows {
		delete(r.rows, id)
		return
	}
}

func (r *recollection) forget(id core.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rows, id)
}

func (r *recollection) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.rows)
}

// byWorker is a command that comes from the holder of a lease.
type byWorker interface {
	command
	target() core.UUID
}

// believe finds what is remembered of the rows that a batch needs, and adds to want what must be loaded.
func (e *Engine) believe(batch []*request, mode batchMode, want *store.Want) (recalled []*core.Execution) {
	for _, r := range batch {
		if cmd, ok := r.command.(byWorker); ok && !mode.careful {
			if x := e.recall.of(cmd.target()); x != nil {
				recalled = append(recalled, x)
				continue
			}
		}
		r.want(want, mode.careful)
	}
	return recalled
}

// disbelieve forgets the rows of a batch: something was not as remembered.
func (e *Engine) disbelieve(batch []*request) {
	for _, r := range batch {
		if cmd, ok := r.command.(byWorker); ok {
			e.recall.forget(cmd.target())
		}
	}
}

// assume takes remembered rows into the unit, but for those that it has loaded.
func (u *unit) assume(recalled []*core.Execution) {
	for _, x := range recalled {
		if u.entries[x.ID.UUID] != nil {
			continue
		}
		if x.WakeAt != 0 {
			u.doubted = u.doubted || x.WakeAt <= u.now // its timers are to be settled under its lock (L18)
			u.ch.AssumeUntil = earlier(u.ch.AssumeUntil, x.WakeAt)
		}
		ent := loadedEntry(x.Clone())
		ent.recalled = x
		u.entries[x.ID.UUID] = ent
		u.ch.Dictionary = u.dict.version
	}
}
