package memory

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

// ear collects the hints for one listener.
type ear struct {
	hints []store.Hint
	more  chan struct{}
}

// Notify sends a hint to every other process. It is heard after Notify has returned.
func (s *Store) Notify(ctx context.Context, hint store.Hint) error {
	return s.during(ctx, func() error {
		for _, other := range s.d.stores {
			for _, e := range other.ears {
				if other != s {
					e.hear(copyHint(hint))
				}
			}
		}
		return nil
	})
}

func copyHint(h store.Hint) store.Hint {
	h.Lanes, h.Classes, h.Keys = slices.Clone(h.Lanes), slices.Clone(h.Classes), slices.Clone(h.Keys)
	return h
}

// hear adds a hint. d.mu is held.
func (e *ear) hear(hint store.Hint) {
	e.hints = append(e.hints, hint)
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// Listen receives hints until ctx ends.
func (s *Store) Listen(ctx context.Context, hear func(store.Hint)) error {
	e := &ear{more: make(chan struct{}, 1)}
	s.d.mu.Lock()
	s.ears = append(s.ears, e)
	s.d.mu.Unlock()
	defer func() {
		s.d.mu.Lock()
		s.ears = slices.DeleteFunc(s.ears, func(other *ear) bool { return other == e })
		s.d.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.more:
		}
		s.d.mu.Lock()
		hints := e.hints
		e.hints = nil
		s.d.mu.Unlock()
		for _, hint := range hints {
			hear(hint)
		}
	}
}
