package work

import (
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// submitAll is an atomic bulk submit: one command, so that it is refused as a whole.
type submitAll struct{ cmds []*Submit }

func (s *submitAll) Name() string { return "submit_many" }

// WaitsOnce reports that it waits for a lock for one second at most (L82).
func (s *submitAll) WaitsOnce() {}

func (s *submitAll) Want(w *store.Want, careful bool) {
	for _, cmd := range s.cmds {
		cmd.Want(w, careful)
	}
}

func (s *submitAll) More(u *txn.Tx, w *store.Want) {
	for _, cmd := range s.cmds {
		cmd.More(u, w)
	}
}

func (s *submitAll) Decide(u *txn.Tx) error {
	for i, cmd := range s.cmds {
		if err := cmd.Decide(u); err != nil {
			u.Discard()
			return withIndex(err, i)
		}
		if u.Redo != nil {
			return nil
		}
	}
	s.registerNow(u)
	return nil
}

// registerNow has the classes registered of items that waited until it was known that no item is refused, and requests another try.
func (s *submitAll) registerNow(u *txn.Tx) {
	for _, cmd := range s.cmds {
		if cmd.Later {
			cmd.Later = false
			if cmd.answer.Outcome == "" {
				u.Redo = &store.Fault{Kind: store.Stale, Err: txn.ErrHeld}
			}
		}
	}
}
