package eventlog

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Placed returns an event of a commit with its id and cursor.
func (e *Reader) Placed(c *store.Commit, index int) Event {
	ev, at := &c.Events[index], place{seq: c.Seq, index: int32(index) + 1}
	return Event{Event: *ev, ID: e.eventID(at, ev.At), Cursor: e.cursor(at)}
}

// PlaceOf returns where reading continues behind a cursor, "start" or "end": behind so many events of a commit. Codes: invalid_cursor, cursor_too_old.
func (e *Reader) PlaceOf(ctx context.Context, cursor string) (seq int64, index int32, err error) {
	at, err := e.eventsFrom(ctx, &Request{After: cursor})
	return at.seq, at.index, err
}

// End is the position up to which all commits are final, those of other processes included.
func (e *Reader) End(ctx context.Context) (int64, error) { return e.logEnd(ctx) }

// Start is the position before the oldest commit that is retained.
func (e *Reader) Start(ctx context.Context) (int64, error) {
	seen, err := e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return 0, txn.PublicFault(err)
	}
	return seen.LogStart, nil
}
