package memory

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// rank is the place of a kind of row in the lock order of S73.
type rank int

const (
	nothingTaken rank = iota
	keysTaken
	docsTaken
	executionsTaken
	countersTaken
	lanesTaken
)

// tx is a transaction. It has no holder before it loads something or commits.
type tx struct {
	s        *Store
	h        *holder
	patience time.Duration
	taken    rank
	now      base.Time
	ended    bool
}

// Begin opens a transaction, locks and loads what want names, and reads the clock. A want without rows uses the last reading.
func (s *Store) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	t := &tx{s: s, patience: hasty}
	if want.Patient {
		t.patience = patient
	}
	if wantsRows(&want) {
		loaded, err := t.Load(ctx, want)
		if err != nil {
			return nil, nil, err
		}
		return t, loaded, nil
	}
	if err := s.usable(ctx); err != nil {
		return nil, nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	l := newLoad(s, nil, &want)
	l.clock(s.extrapolate())
	t.now = l.out.Now
	return t, l.out, nil
}

// start gives the transaction a holder of locks. d.mu is held.
func (t *tx) start() error {
	switch {
	case t.ended:
		return &store.Fault{Kind: store.Broken, Err: errEnded}
	case t.h == nil:
		if err := t.s.open(); err != nil {
			return err
		}
		t.h = t.s.holder()
	}
	return ended(t.h)
}

// Load locks and loads more rows. A failure ends the transaction.
func (t *tx) Load(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	defer func() {
		if err != nil {
			t.Rollback(ctx)
		}
	}()
	if err := t.s.usable(ctx); err != nil {
		return nil, err
	}
	t.s.d.mu.Lock()
	defer t.s.d.mu.Unlock()
	if err := t.start(); err != nil {
		return nil, err
	}
	l := newLoad(t.s, t, &want)
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	t.now, t.taken = l.out.Now, max(t.taken, rankOf(&want))
	return l.out, nil
}

// Seen calls safe at once: what is visible is never lost.
func (t *tx) Seen(safe func(error)) { safe(nil) }

// Rollback ends the transaction without changes.
func (t *tx) Rollback(context.Context) {
	t.s.d.mu.Lock()
	defer t.s.d.mu.Unlock()
	t.end()
}

// end ends the transaction. d.mu is held.
func (t *tx) end() {
	if t.h != nil && !t.ended {
		t.s.leave(t.h)
	}
	t.ended = true
}

// Read loads committed rows of one snapshot.
func (s *Store) Read(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	err = s.during(ctx, func() error {
		l := newLoad(s, nil, &want)
		loaded = l.out
		return l.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	return loaded, nil
}

// wantsRows reports whether a want names anything.
func wantsRows(w *store.Want) bool {
	return len(w.Keys)+len(w.Executions)+len(w.Pick)+len(w.History)+len(w.Counters)+len(w.ShareLanes)+len(w.LockLanes)+
		len(w.Docs)+len(w.Scans)+len(w.Owned)+len(w.Blocks)+w.Inbox > 0
}

// rankOf returns the highest kind that a want locks.
func rankOf(w *store.Want) rank {
	switch {
	case len(w.ShareLanes)+len(w.LockLanes) > 0:
		return lanesTaken
	case len(w.Counters) > 0:
		return countersTaken
	case len(w.Executions)+len(w.Pick) > 0:
		return executionsTaken
	case w.LockDocs && len(w.Docs) > 0:
		return docsTaken
	case len(w.Keys) > 0:
		return keysTaken
	}
	return nothingTaken
}
