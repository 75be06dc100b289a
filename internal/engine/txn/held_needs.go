package txn

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// meets returns the fault that the store would return after a wait, if rows that the transaction is about to wait for are recorded as held.
func (u *Tx) meets(locks func() []store.Lock) error {
	if !u.heeds || u.Engine.Held.Known.Load() == 0 {
		return nil
	}
	if held := u.Engine.Held.Among(locks(), u.line); len(held) > 0 {
		return &store.Fault{Kind: store.Busy, Err: errRemembered, Held: held}
	}
	return nil
}

// MeetsLater is meets for rows that are loaded behind others: executions and keys among them are locked only if they are free.
func (u *Tx) MeetsLater(want *store.Want) error {
	return u.meets(func() []store.Lock {
		later := *want
		later.Executions, later.Keys = nil, nil
		return later.Locks()
	})
}

// writes returns the rows that the commit may wait for although the transaction has not locked them.
func (u *Tx) writes() (locks []store.Lock) {
	for i := range u.Changes.NewKeys {
		locks = append(locks, store.Lock{Key: u.Changes.NewKeys[i].Key})
	}
	for _, x := range slices.Concat(u.Changes.Insert, u.Changes.Assume) {
		locks = append(locks, store.Lock{Execution: x.ID.UUID})
	}
	for _, doc := range slices.Concat(u.Changes.NewDocs, u.Changes.PutDocs) {
		locks = append(locks, store.Lock{Doc: doc.DocRef})
	}
	for _, key := range slices.Sorted(maps.Keys(u.Changes.Counters)) {
		locks = append(locks, store.Lock{Counter: key})
	}
	if u.Changes.RaisesDictionary() {
		locks = append(locks, store.Lock{Dictionary: true})
	}
	return locks
}

// needs returns a row among those held that a command needs: one that the command names, or one that belongs to an execution which it changes. u is
// the transaction that met the rows, as far as it got; nil: it had not begun.
func (e *Engine) needs(u *Tx, r *Request, held []store.Lock) (lock store.Lock, found bool) {
	var own store.Want
	r.Want(&own, true)
	if u != nil {
		if n, ok := r.Command.(loadsMore); ok {
			n.More(u, &own)
		}
		if b, ok := r.Command.(Behind); ok {
			b.Behind(u, &own)
		}
	}
	own.LockDocs = true // if one command of a batch locks docs, all docs of the batch are locked
	if cmd, ok := r.Command.(byWorker); ok {
		own.Executions = append(own.Executions, cmd.Target())
	}
	named := own.Locks()
	changer, ok := r.Command.(ruleChanger)
	rules := ok && changer.ChangesRules()
	for _, lock := range held {
		switch {
		case slices.Contains(named, lock):
			return lock, true
		case lock.Lane != 0 && rules:
			return lock, true
		case lock.Dictionary && u != nil && (rules || len(own.LockLanes) > 0):
			return lock, true
		case u != nil && e.needsOfRoom(u, r, lock):
			return lock, true
		case u != nil && slices.ContainsFunc(own.Executions, func(id base.UUID) bool { return e.rowNeeds(u.Entries[id], lock) }):
			return lock, true
		}
	}
	return store.Lock{}, false
}

// needs reports whether what was done to the execution so far needs a row besides its own: one that it owns, or the
// counter of a slot that it takes or frees.
func (ent *Row) needs(lock store.Lock) bool {
	switch {
	case ent == nil:
		return false
	case lock.Doc.Owner != "":
		return lock.Doc.Owner == ent.Exec.ID.UUID.String()
	case lock.Counter != "":
		return Contains(ent.Holds, lock.Counter) != Contains(ent.Exec.Holds, lock.Counter)
	}
	return false
}

// needsOfRoom reports whether a command needs a row of a room.
func (e *Engine) needsOfRoom(u *Tx, r *Request, lock store.Lock) bool {
	for i := range e.phases {
		if needs := e.phases[i].Needs; needs != nil && needs(u, r.Command, lock) {
			return true
		}
	}
	return false
}

// rowNeeds reports whether what was done to an execution so far needs a row besides its own.
func (e *Engine) rowNeeds(ent *Row, lock store.Lock) bool {
	if ent == nil {
		return false
	}
	if ent.needs(lock) {
		return true
	}
	for i := range e.phases {
		if needs := e.phases[i].RowNeeds; needs != nil && needs(ent, lock) {
			return true
		}
	}
	return false
}
