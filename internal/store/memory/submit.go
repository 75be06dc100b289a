package memory

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// OwnTx is a transaction of the user on the database (L88).
type OwnTx struct {
	d    *Database
	h    *holder
	keys []store.KeyRow
	rows []store.InboxRow
	left []left
}

// BeginOwn begins a transaction of the user.
func (d *Database) BeginOwn() *OwnTx {
	return &OwnTx{d: d, h: &holder{broken: make(chan struct{}), gate: func(Point) {}}}
}

// Commit makes what was submitted visible.
func (o *OwnTx) Commit() error {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	for _, row := range o.keys {
		o.d.rows.keys[row.Key] = row
	}
	o.d.rows.inbox = append(o.d.rows.inbox, o.rows...)
	o.leave()
	if len(o.rows)+len(o.left) > 0 {
		o.hint()
	}
	o.end()
	return nil
}

// Rollback drops what was submitted.
func (o *OwnTx) Rollback() error {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	o.end()
	return nil
}

func (o *OwnTx) end() {
	o.keys, o.rows, o.left = nil, nil, nil
	o.d.release(o.h)
}

// SubmitTx inserts a key and a submission in the user's own transaction, an *OwnTx. Codes: invalid_argument (another type), wrong_database,
// idempotency_in_progress (another open transaction holds the key or the id).
func (s *Store) SubmitTx(ctx context.Context, tx any, key *store.KeyRow, row store.InboxRow) (existing *store.Existing, err error) {
	own, err := s.own(tx)
	if err != nil {
		return nil, err
	}
	err = s.during(ctx, func() error {
		var locks []store.Lock
		if key != nil {
			locks = append(locks, store.Lock{Key: key.Key})
		}
		for _, lock := range append(locks, store.Lock{Execution: row.ID.UUID}) {
			if existing = own.find(key, row.ID); existing != nil || row.Body == nil {
				return nil
			}
			if err := s.d.acquire(ctx, own.h, []store.Lock{lock}, time.Millisecond); err != nil {
				return base.Errorf(base.CodeIdempotencyInProgress, "another open transaction submits the same key or id")
			}
		}
		if existing = own.find(key, row.ID); existing != nil {
			return nil
		}
		own.insert(key, row)
		return nil
	})
	return existing, err
}

func (o *OwnTx) insert(key *store.KeyRow, row store.InboxRow) {
	if key != nil {
		own := *key
		own.Fingerprint = slices.Clone(key.Fingerprint)
		o.keys = append(o.keys, own)
	}
	o.rows = append(o.rows, store.InboxRow{ID: row.ID, Body: slices.Clone(row.Body)})
}

// find looks for the key, then for the id, in what is committed and in the transaction itself.
func (o *OwnTx) find(key *store.KeyRow, id base.ID) *store.Existing {
	if key != nil {
		row, there := o.d.rows.keys[key.Key]
		for _, own := range o.keys {
			if own.Key == key.Key {
				row, there = own, true
			}
		}
		if there && row.ExpiresAt > o.d.cfg.Now() {
			return &store.Existing{KeyRow: row, Body: o.body(row.ID.UUID)}
		}
	}
	if body := o.body(id.UUID); body != nil || o.d.rows.executions[id.UUID] != nil {
		return &store.Existing{KeyRow: store.KeyRow{ID: id}, Body: body}
	}
	return nil
}

// body returns a submission that is in the inbox; nil if it is not.
func (o *OwnTx) body(id base.UUID) []byte {
	for _, row := range slices.Concat(o.d.rows.inbox, o.rows) {
		if row.ID.UUID == id {
			return slices.Clone(row.Body)
		}
	}
	return nil
}
