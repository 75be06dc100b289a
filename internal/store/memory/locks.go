package memory

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	hasty   = 50 * time.Millisecond // how long a batch, which others wait behind, waits for each lock
	patient = time.Second           // how long a single command does (L82)
)

// holder is a transaction as its locks see it.
type holder struct {
	rows   []store.Lock     // locked, without Shared
	queue  []store.QueueRow // locked by a Pick
	gate   func(Point)
	broken chan struct{} // closed when the process or its connection ends
}

// rowLock is the lock of one row. It exists as long as somebody holds it or waits for it.
type rowLock struct {
	holders []*holder
	shared  bool // by all holders
	waiters []*waiter
}

type waiter struct {
	h       *holder
	shared  bool
	granted chan struct{}
}

var (
	errHeld   = errors.New("another transaction holds a row")
	errBroken = errors.New("the connection was lost")
	errEnded  = errors.New("the transaction has ended")
)

// rowOf returns the row of a lock, without the way it is locked.
func rowOf(lock store.Lock) store.Lock {
	lock.Shared = false
	return lock
}

// free reports whether h could have the lock now.
func (l *rowLock) free(h *holder, shared bool) bool {
	if l == nil || len(l.holders) == 0 || shared && l.shared {
		return true
	}
	return len(l.holders) == 1 && l.holders[0] == h
}

// take gives the lock to h if no other transaction holds it or has waited for it longer.
func (d *Database) take(h *holder, lock store.Lock) bool {
	row := rowOf(lock)
	l := d.locks[row]
	owns := l != nil && slices.Contains(l.holders, h)
	switch {
	case owns && (lock.Shared || !l.shared):
		return true
	case !l.free(h, lock.Shared), l != nil && len(l.waiters) > 0 && !owns:
		return false
	case l == nil:
		l = &rowLock{}
		d.locks[row] = l
	}
	d.grant(l, h, row, lock.Shared)
	return true
}

func (d *Database) grant(l *rowLock, h *holder, row store.Lock, shared bool) {
	l.shared = shared
	if !slices.Contains(l.holders, h) {
		l.holders = append(l.holders, h)
		h.rows = append(h.rows, row)
	}
}

// release gives up everything that h holds. Rows go to those that have waited longest.
func (d *Database) release(h *holder) {
	for _, row := range h.queue {
		delete(d.picked, row)
	}
	rows := h.rows
	h.rows, h.queue = nil, nil
	for _, row := range rows {
		l := d.locks[row]
		l.holders = slices.DeleteFunc(l.holders, func(other *holder) bool { return other == h })
		d.pass(l, row)
	}
}

// pass gives a lock to the first that wait for it, as far as they can have it.
func (d *Database) pass(l *rowLock, row store.Lock) {
	for len(l.waiters) > 0 && l.free(l.waiters[0].h, l.waiters[0].shared) {
		w := l.waiters[0]
		l.waiters = l.waiters[1:]
		d.grant(l, w.h, row, w.shared)
		close(w.granted)
	}
	if len(l.holders)+len(l.waiters) == 0 {
		delete(d.locks, row)
	}
}

// acquire takes locks one after the other in the given order and waits for each. d.mu is held, but not while it waits. A lock that does not come in
// time is the fault Busy, which names all of these that others hold.
func (d *Database) acquire(ctx context.Context, h *holder, locks []store.Lock, patience time.Duration) error {
	for _, lock := range locks {
		if d.take(h, lock) {
			continue
		}
		if err := d.wait(ctx, h, lock, patience); err != nil {
			if errors.Is(err, errHeld) {
				err = &store.Fault{Kind: store.Busy, Err: err, Held: d.heldByOthers(h, locks)}
			}
			return err
		}
	}
	return nil
}

// wait waits for a lock. d.mu is held, but not meanwhile.
func (d *Database) wait(ctx context.Context, h *holder, lock store.Lock, patience time.Duration) error {
	row := rowOf(lock)
	l, w := d.locks[row], &waiter{h: h, shared: lock.Shared, granted: make(chan struct{})}
	l.waiters = append(l.waiters, w)
	d.mu.Unlock()
	timer := d.cfg.Clock.NewTimer(patience)
	var err error
	select {
	case <-w.granted:
	case <-timer.C:
		err = errHeld
	case <-ctx.Done():
		err = &store.Fault{Kind: store.Unavailable, Err: context.Cause(ctx)}
	case <-h.broken:
		err = &store.Fault{Kind: store.Retry, Err: errBroken}
	}
	timer.Stop()
	h.gate(Waited)
	d.mu.Lock()
	if at := slices.Index(l.waiters, w); at >= 0 {
		l.waiters = slices.Delete(l.waiters, at, at+1)
		d.pass(l, row) // those behind it may share what it could not have
		return err
	}
	return ended(h) // it was granted, if only at the last moment
}

// ended returns a fault if the connection of h was lost.
func ended(h *holder) error {
	select {
	case <-h.broken:
		return &store.Fault{Kind: store.Retry, Err: errBroken}
	default:
		return nil
	}
}

// heldByOthers returns those of the locks that h cannot have now.
func (d *Database) heldByOthers(h *holder, locks []store.Lock) (held []store.Lock) {
	for _, lock := range locks {
		if l := d.locks[rowOf(lock)]; !l.free(h, lock.Shared) && !(lock.Shared && slices.Contains(l.holders, h)) {
			held = append(held, lock)
		}
	}
	return held
}

// Await waits until no other transaction holds the row.
func (s *Store) Await(ctx context.Context, lock store.Lock, patience time.Duration) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	h := s.holder()
	defer s.leave(h)
	if lock.Dictionary { // its version is locked only while d.mu is
		return nil
	}
	return s.d.acquire(ctx, h, []store.Lock{lock}, patience)
}
