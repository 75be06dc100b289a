package postgres

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// How long the row of an execution is waited for, and how long the pauses between two tries are at most.
const (
	rowPatience = 3 * time.Second
	rowPause    = 50 * time.Millisecond
)

// LockTx locks the row of an execution in the user's own transaction. Codes: invalid_argument (unsupported type of transaction), wrong_database,
// store_unavailable (others hold the row).
func (s *Store) LockTx(ctx context.Context, tx any, id base.UUID, docs []store.DocRef, owned []store.Owned) (*store.LockedTx, error) {
	return s.externalTx().LockTx(ctx, tx, id, docs, owned)
}

// LeaveTx writes a doc of an execution in the user's own transaction, and marks the execution.
func (s *Store) LeaveTx(ctx context.Context, tx any, id base.ID, doc store.Doc) error {
	return s.externalTx().LeaveTx(ctx, tx, id, doc)
}

// LockTx locks the row of an execution, like that of an open store.
func (g *externalTx) LockTx(ctx context.Context, tx any, id base.UUID, docs []store.DocRef, owned []store.Owned) (*store.LockedTx, error) {
	ctx, cancel := context.WithTimeout(ctx, externalTxTimeout)
	defer cancel()
	v, err := g.enter(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := v.checkOutcomes(); err != nil {
		return nil, err
	}
	locked, err := v.lockRow(ctx, id)
	if locked == nil || err != nil {
		return nil, fault(err)
	}
	// The row is locked, and this statement sees what was committed until now: the docs are as the previous holder of the lock left them.
	return locked, fault(v.ownDocs(ctx, id, docs, owned, locked))
}

// lockRow tries to lock the row until it is free. It returns nil if there is none.
func (v *visit) lockRow(ctx context.Context, id base.UUID) (*store.LockedTx, error) {
	waited := time.Duration(0)
	for pause := time.Millisecond; ; pause = min(2*pause, rowPause) {
		locked, err := v.tryRow(ctx, id)
		if !errors.Is(err, sql.ErrNoRows) { // both libraries return it
			return locked, err
		}
		var there bool
		if err := v.query(ctx, v.texts["is_there"], id.String()).Scan(&there); err != nil || !there {
			return nil, err
		}
		if waited += pause; waited > rowPatience {
			return nil, base.Errorf(base.CodeStoreUnavailable, "another transaction holds the execution").WithRetryAfter(rowPause.Milliseconds()).
				WithHint("the transaction can go on: try again, or roll it back and run it again")
		}
		again := v.clock.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// tryRow locks the row if it is free.
func (v *visit) tryRow(ctx context.Context, id base.UUID) (*store.LockedTx, error) {
	r, class := store.Row{ID: id}, core.Class{}
	var n, stage int16
	var version, draw int32
	var now int64
	err := v.query(ctx, v.texts["lock_own"], id.String()).Scan(&r.Class, &n, &r.Origin, &stage, &r.Order, &version, &draw, &r.State,
		&class.Namespace, &class.Lane, &class.Kind, &class.FairnessKey, &class.Needs, &now)
	if err != nil {
		return nil, err
	}
	class.ID, r.N, r.Version = r.Class, uint8(n), versionOf(version, draw)
	r.Status, r.Reason, r.Next = fromStage(int(stage))
	x, err := r.Execution(&class, &v.policies)
	if err != nil {
		return nil, err
	}
	locked := &store.LockedTx{Now: base.Time(now), Execution: x}
	if v.now != nil {
		locked.Now = v.now()
	}
	return locked, nil
}

// ownDocs reads docs of an execution.
func (v *visit) ownDocs(ctx context.Context, id base.UUID, docs []store.DocRef, owned []store.Owned, into *store.LockedTx) error {
	type wanted struct {
		Kind store.DocKind `json:"kind"`
		Key  *string       `json:"key"`
	}
	all, whole := make([]wanted, 0, len(docs)+len(owned)), map[store.DocKind]bool{}
	for _, ref := range docs {
		key := base64.StdEncoding.EncodeToString([]byte(ref.Key))
		all = append(all, wanted{ref.Kind, &key})
	}
	for _, one := range owned {
		all, whole[one.Kind] = append(all, wanted{Kind: one.Kind}), true
	}
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	into.Docs, into.Owned = map[store.DocRef]store.Doc{}, map[store.Owned][]store.Doc{}
	owner := id.String()
	return v.each(ctx, func(row scanner) error {
		doc := store.Doc{DocRef: store.DocRef{Owner: owner}}
		var kind int16
		var key []byte
		if err := row.Scan(&kind, &key, &doc.Body, &doc.Data, (*int64)(&doc.ExpiresAt)); err != nil {
			return err
		}
		doc.Kind, doc.Key = store.DocKind(kind), string(key)
		if doc = doc.Unsealed(); whole[doc.Kind] {
			of := store.Owned{Kind: doc.Kind, Owner: owner}
			into.Owned[of] = append(into.Owned[of], doc)
		} else {
			into.Docs[doc.DocRef] = doc
		}
		return nil
	}, v.texts["own_docs"], owner, string(list))
}

// LeaveTx writes a doc and marks the execution, like that of an open store.
func (g *externalTx) LeaveTx(ctx context.Context, tx any, id base.ID, doc store.Doc) error {
	ctx, cancel := context.WithTimeout(ctx, externalTxTimeout)
	defer cancel()
	v, err := g.enter(ctx, tx)
	if err != nil {
		return err
	}
	var data any
	if doc.Data != nil {
		data = doc.Data
	}
	err = v.each(ctx, func(scanner) error { return nil }, v.texts["leave_doc"],
		int16(doc.Kind), doc.Owner, []byte(doc.Key), doc.StoredBody(), data, int64(doc.ExpiresAt))
	if err != nil {
		return fault(err)
	}
	var marked int
	err = v.query(ctx, v.texts["leave"], id.UUID.String(), int16(id.N), int32(rand.Uint32()), v.channel(), commitNote()). //nolint:gosec // G404: it tells writes apart
																Scan(&marked, new(sql.NullString))
	if err == nil && marked != 1 {
		err = base.Errorf(base.CodeInternal, "execution %s was not locked in this transaction", id)
	}
	return fault(err)
}
