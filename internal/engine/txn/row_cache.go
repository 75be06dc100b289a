package txn

import (
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// maxCached bounds how many executions a process caches.
const maxCached = 16_384

// rowCache is the cache of running executions, as this process last wrote them. The next command on such an execution nearly always comes from the
// worker that claimed it here, and finds it unchanged. It is decided on the cached row without loading it, which saves a round trip.
//
// A cached row may be stale: another process may have changed it, or one of its timers may be due. This is noticed when the transaction is written.
// The store writes a cached row only if the version in the database is the cached one, if its own clock is before the row's next timer
// (store.Changes.Assume, AssumeUntil), and if the dictionary and the incarnation are the ones that the transaction used. Otherwise nothing is
// written, the rows are dropped from the cache, and the batch is tried again with loaded rows.
//
// A write is checked that way; an answer without a write is not. Therefore a command that is refused, or that changes nothing, is never answered from
// the cache (Tx.Doubted): the batch is tried again with loaded rows.
type rowCache struct {
	mu   sync.Mutex
	rows map[base.UUID]*core.Execution // without inputs; must not be changed
}

func newRowCache() *rowCache { return &rowCache{rows: map[base.UUID]*core.Execution{}} }

func (r *rowCache) of(id base.UUID) *core.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows[id]
}

// note caches what a committed transaction has left running, and drops the other rows that it wrote. draw holds the random bits of the versions
// that the commit wrote.
func (r *rowCache) note(written []*Row, draw uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ent := range written {
		id := ent.Exec.ID.UUID
		if ent.Removed || ent.Exec.Status != core.Running || ent.Exec.Reservation != nil { // what it reserved is settled under locks, so the row must be loaded
			delete(r.rows, id)
			continue
		}
		// The copy in the cache is never changed, so that readers need no lock after they have it: a transaction that decides on it clones it first
		// (addCached). Versions are counts of writes with random bits of the writer, so a row that another process wrote as often differs all the
		// same.
		x := *ent.Exec // a shallow copy: what it points to is not changed any more
		x.Version = store.NextVersion(x.Version, draw)
		x.Input.Data = nil
		if known := r.rows[id]; known != nil && known.Version>>32 > x.Version>>32 {
			continue // a later transaction published first; if that was another execution with this id, the next command drops it
		}
		if len(r.rows) >= maxCached {
			r.forgetAny()
		}
		r.rows[id] = &x
	}
}

func (r *rowCache) forgetAny() {
	for id := range r.rows {
		delete(r.rows, id)
		return
	}
}

func (r *rowCache) forget(id base.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rows, id)
}

func (r *rowCache) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.rows)
}

// byWorker is a command of the holder of a lease. It needs only the row of its target.
type byWorker interface {
	Command
	Target() base.UUID
}

// useCached returns the cached rows that the commands of a batch can use, and adds to want what must be loaded.
func (e *Engine) useCached(batch []*Request, mode BatchMode, want *store.Want) (cached []*core.Execution) {
	for _, r := range batch {
		// Only a worker's command names a row that it needs and no other. Everything else, and every command once something cached was wrong
		// (careful), loads its rows under locks.
		if cmd, ok := r.Command.(byWorker); ok && !mode.Careful {
			if x := e.rows.of(cmd.Target()); x != nil {
				cached = append(cached, x)
				continue
			}
		}
		r.Want(want, mode.Careful)
	}
	return cached
}

// invalidate drops the rows of a batch from the cache, because something was not as cached.
func (e *Engine) invalidate(batch []*Request) {
	for _, r := range batch {
		if cmd, ok := r.Command.(byWorker); ok {
			e.rows.forget(cmd.Target())
		}
	}
}

// addCached adds cached rows to the transaction, except those that it has loaded.
func (u *Tx) addCached(cached []*core.Execution) {
	for _, x := range cached {
		if u.Entries[x.ID.UUID] != nil {
			continue
		}
		// A due timer must be settled before a command decides (L18), which takes the row under its lock. Whether one is due is asked here by the
		// clock of begin, and by the store again when it writes (AssumeUntil).
		if x.WakeAt != 0 {
			u.Doubted = u.Doubted || x.WakeAt <= u.Now // its timers must be settled under its lock (L18)
			u.Changes.AssumeUntil = Earlier(u.Changes.AssumeUntil, x.WakeAt)
		}
		// Several commands of the batch may be about this row. They share this one entry, so that each sees what those before it did, and one write
		// has it all.
		ent := loadedEntry(x.Clone())
		ent.cached = x
		u.Entries[x.ID.UUID] = ent
		u.Changes.Dictionary = u.Dict.Version
	}
}
