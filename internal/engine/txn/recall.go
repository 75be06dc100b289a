package txn

import (
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// maxRecalled bounds how many executions a process caches.
const maxRecalled = 16_384

// recollection is the cache of running executions, as this process last wrote them. The next command on such an execution nearly always comes from
// the worker that claimed it here, and finds it unchanged. It is decided on the cached row without loading it, which saves a round trip.
//
// A cached row may be stale: another process may have changed it, or one of its timers may be due. This is noticed when the unit is written. The
// store writes a cached row only if the version in the database is the cached one, if its own clock is before the row's next timer
// (store.Changes.Assume, AssumeUntil), and if the dictionary and the incarnation are the ones that the unit used. Otherwise nothing is written, the
// rows are dropped from the cache, and the batch is tried again with loaded rows.
//
// A write is checked that way; an answer without a write is not. Therefore a command that is refused, or that changes nothing, is never answered
// from the cache (unit.doubted): the batch is tried again with loaded rows.
type recollection struct {
	mu   sync.Mutex
	rows map[base.UUID]*core.Execution // without inputs; must not be changed
}

func newRecollection() *recollection { return &recollection{rows: map[base.UUID]*core.Execution{}} }

func (r *recollection) of(id base.UUID) *core.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows[id]
}

// note caches what a committed transaction has left running, and drops the other rows that it wrote. draw holds the random bits of the versions
// that the commit wrote.
func (r *recollection) note(written []*Row, draw uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ent := range written {
		id := ent.Exec.ID.UUID
		if ent.removed || ent.Exec.Status != core.Running || ent.Exec.Reservation != nil { // budgets are settled under their locks, so the row must be loaded
			delete(r.rows, id)
			continue
		}
		x := *ent.Exec // a shallow copy: what it points to is not changed any more
		x.Version = store.NextVersion(x.Version, draw)
		x.Input.Data = nil
		if known := r.rows[id]; known != nil && known.Version>>32 > x.Version>>32 {
			continue // a later transaction published first; if that was another execution with this id, the next command drops it
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

func (r *recollection) forget(id base.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rows, id)
}

func (r *recollection) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.rows)
}

// byWorker is a command of the holder of a lease. It needs only the row of its target.
type byWorker interface {
	command
	Target() base.UUID
}

// believe returns the cached rows that the commands of a batch can use, and adds to want what must be loaded.
func (e *Engine) believe(batch []*request, mode batchMode, want *store.Want) (recalled []*core.Execution) {
	for _, r := range batch {
		if cmd, ok := r.command.(byWorker); ok && !mode.careful {
			if x := e.recall.of(cmd.Target()); x != nil {
				recalled = append(recalled, x)
				continue
			}
		}
		r.Want(want, mode.careful)
	}
	return recalled
}

// disbelieve drops the rows of a batch from the cache, because something was not as cached.
func (e *Engine) disbelieve(batch []*request) {
	for _, r := range batch {
		if cmd, ok := r.command.(byWorker); ok {
			e.recall.forget(cmd.Target())
		}
	}
}

// assume adds cached rows to the unit, except those that it has loaded.
func (u *Tx) assume(recalled []*core.Execution) {
	for _, x := range recalled {
		if u.Entries[x.ID.UUID] != nil {
			continue
		}
		if x.WakeAt != 0 {
			u.doubted = u.doubted || x.WakeAt <= u.Now // its timers must be settled under its lock (L18)
			u.Changes.AssumeUntil = earlier(u.Changes.AssumeUntil, x.WakeAt)
		}
		ent := loadedEntry(x.Clone())
		ent.recalled = x
		u.Entries[x.ID.UUID] = ent
		u.Changes.Dictionary = u.dict.version
	}
}
