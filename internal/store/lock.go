package store

import (
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Lock names one row that transactions lock and wait for. Apart from Shared, exactly one of its fields is set.
type Lock struct {
	Execution  base.UUID
	Doc        DocRef
	Key        Key
	Counter    string
	Lane       int32
	Shared     bool // of a lane: to prevent changes, not to change it
	Dictionary bool // its version
}

// Held returns the rows that other transactions hold according to a Busy fault. It is empty for other errors, and if the store cannot determine the
// rows or they are free by now.
func Held(err error) []Lock {
	var f *Fault
	if errors.As(err, &f) {
		return f.Held
	}
	return nil
}

// WantOf returns a Want that loads the locked rows. The dictionary is omitted.
func WantOf(locks []Lock) (want Want) {
	for _, lock := range locks {
		switch {
		case lock.Execution != base.UUID{}:
			want.Executions = append(want.Executions, lock.Execution)
		case lock.Key != Key{}:
			want.Keys = append(want.Keys, lock.Key)
		case lock.Counter != "":
			want.Counters = append(want.Counters, lock.Counter)
		case lock.Lane != 0 && lock.Shared:
			want.ShareLanes = append(want.ShareLanes, lock.Lane)
		case lock.Lane != 0:
			want.LockLanes = append(want.LockLanes, lock.Lane)
		case lock.Doc != DocRef{}:
			want.Docs, want.LockDocs = append(want.Docs, lock.Doc), true
		}
	}
	return want
}

// Locks returns the rows that a transaction which loads the want may wait for.
func (w *Want) Locks() (locks []Lock) {
	for _, id := range w.Executions {
		locks = append(locks, Lock{Execution: id})
	}
	for _, key := range w.Keys {
		locks = append(locks, Lock{Key: key})
	}
	for _, counter := range w.Counters {
		locks = append(locks, Lock{Counter: counter})
	}
	for _, lane := range w.ShareLanes {
		locks = append(locks, Lock{Lane: lane, Shared: true})
	}
	for _, lane := range w.LockLanes { // a writer of a lane also waits where a reader of it would
		locks = append(locks, Lock{Lane: lane}, Lock{Lane: lane, Shared: true})
	}
	if w.LockDocs {
		for _, ref := range w.Docs {
			if ref.Owner == "" {
				locks = append(locks, Lock{Doc: ref})
			}
		}
	}
	return locks
}
