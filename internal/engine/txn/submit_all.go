package txn

import "github.com/flowfabric/flowfabric/internal/store"

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

func (s *submitAll) More(u *Tx, w *store.Want) {
	for _, cmd := range s.cmds {
		cmd.More(u, w)
	}
}

func (s *submitAll) Decide(u *Tx) error {
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
func (s *submitAll) registerNow(u *Tx) {
	for _, cmd := range s.cmds {
		if cmd.Later {
			cmd.Later = false
			if cmd.answer.Outcome == "" {
				u.Redo = &store.Fault{Kind: store.Stale, Err: ErrHeld}
			}
		}
	}
}

// Discard drops everything that a command which is alone in its unit did before it was refused.
func (u *Tx) Discard() {
	u.Changes = store.Changes{}
	u.Order, u.timers, u.After, u.Books, u.parts = nil, nil, nil, nil, [slots]any{}
}
