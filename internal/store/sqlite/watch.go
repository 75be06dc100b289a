package sqlite

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// SQLite has no notifications. The store knows when a user's own transaction has left a submission through this process, and from then on looks
// for it: after a millisecond, and later whenever the wait has become an eighth longer. So work starts at most an eighth of the time late
// for which the transaction was open after its submission. Transactions that are open for longer than eight seconds, or that submit in another process,
// are left to the poll.
const (
	firstLook   = time.Millisecond
	lastLook    = time.Second // the interval of the poll
	lookPortion = 8
)

// await has the listener look for a submission of a transaction that is still open. A later one replaces it: only one transaction can write, so that all
// earlier ones have ended, and are visible when the later one is.
func (s *Store) await(id base.UUID) {
	for {
		select {
		case s.awaited <- id:
			return
		default:
		}
		select {
		case <-s.awaited:
		default:
		}
	}
}

// Listen reports what transactions of the user in this process have committed, until ctx ends: no other process has the file open.
func (s *Store) Listen(ctx context.Context, hear func(store.Hint)) error {
	var id base.UUID
	var waited time.Duration
	timer := time.NewTimer(lastLook)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return ctx.Err()
		case id = <-s.awaited:
			waited = 0
		case <-timer.C:
			if s.isCommitted(ctx, id) {
				hear(store.Hint{Inbox: true})
				continue
			}
		}
		if pause := max(firstLook, waited/lookPortion); pause < lastLook {
			waited += pause
			timer.Reset(pause)
		}
	}
}

// isCommitted reports whether an id of a submission is visible. If that cannot be found out, the next look tries again.
func (s *Store) isCommitted(ctx context.Context, id base.UUID) (found bool) {
	_ = s.read(ctx, func(c *conn) error {
		return c.each("find id", func(row) error { found = true; return nil }, id[:])
	})
	return found
}
