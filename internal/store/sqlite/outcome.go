package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// LockTx gives the user's own transaction the right to write, which no other transaction has then, and loads an execution. Codes: wrong_database,
// store_unavailable (the transaction may not write now, and perhaps never).
func (s *Store) LockTx(ctx context.Context, tx any, id base.UUID, docs []store.DocRef, owned []store.Owned) (*store.LockedTx, error) {
	locked, err := s.externalTx().LockTx(ctx, tx, id, docs, owned)
	if err == nil {
		err = s.settled(ctx) // the user's connection sees commits that are not durable yet
	}
	return locked, err
}

// LeaveTx writes a doc of an execution in the user's own transaction, and marks the execution.
func (s *Store) LeaveTx(ctx context.Context, tx any, id base.ID, doc store.Doc) error {
	return s.externalTx().LeaveTx(ctx, tx, id, doc)
}

// LockTx loads an execution in a writing transaction, like that of an open store.
func (g *externalTx) LockTx(ctx context.Context, tx any, id base.UUID, docs []store.DocRef, owned []store.Owned) (*store.LockedTx, error) {
	own, schema, err := g.enter(ctx, tx)
	switch {
	case err != nil:
		return nil, err
	case schema < outcomesSince:
		return nil, store.UpgradePending()
	}
	r, class := store.Row{ID: id}, core.Class{}
	err = own.QueryRowContext(ctx, g.statements["own execution"], id[:]).Scan(&r.N, &r.Class, &r.Version, &r.Status, &r.Reason, &r.Next, &r.Order,
		&r.State, &r.Origin, &class.Namespace, &class.Lane, &class.Kind, &class.FairnessKey, &class.Needs)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fault(err)
	}
	class.ID = r.Class
	locked := &store.LockedTx{Now: g.now(), Docs: map[store.DocRef]store.Doc{}, Owned: map[store.Owned][]store.Doc{}}
	if locked.Execution, err = r.Execution(&class, &g.policies); err != nil {
		return nil, err
	}
	for _, ref := range docs {
		doc := store.Doc{DocRef: ref}
		err := own.QueryRowContext(ctx, g.statements["load doc"], ref.Owner, int64(ref.Kind), ref.Key).Scan(&doc.Body, &doc.Data, (*int64)(&doc.ExpiresAt))
		switch {
		case err == nil:
			locked.Docs[ref] = doc.Unsealed()
		case !errors.Is(err, sql.ErrNoRows):
			return nil, fault(err)
		}
	}
	for _, of := range owned {
		if locked.Owned[of], err = g.ownDocs(ctx, own, of); err != nil {
			return nil, fault(err)
		}
	}
	return locked, nil
}

// ownDocs reads all docs of one kind and one owner.
func (g *externalTx) ownDocs(ctx context.Context, own *sql.Tx, of store.Owned) (docs []store.Doc, err error) {
	rows, err := own.QueryContext(ctx, g.statements["own docs"], of.Owner, int64(of.Kind))
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err has it
	for rows.Next() {
		doc := store.Doc{DocRef: store.DocRef{Kind: of.Kind, Owner: of.Owner}}
		if err := rows.Scan(&doc.Key, &doc.Body, &doc.Data, (*int64)(&doc.ExpiresAt)); err != nil {
			return nil, err
		}
		docs = append(docs, doc.Unsealed())
	}
	return docs, rows.Err()
}

// LeaveTx writes a doc and marks the execution, like that of an open store.
func (g *externalTx) LeaveTx(ctx context.Context, tx any, id base.ID, doc store.Doc) error {
	own, ok := tx.(*sql.Tx)
	if !ok {
		return base.Invalid("tx", "%T is no transaction that this store can use", tx)
	}
	if _, err := own.ExecContext(ctx, g.statements["put doc"], doc.Owner, int64(doc.Kind), doc.Key, doc.StoredBody(), doc.Data, int64(doc.ExpiresAt)); err != nil {
		return fault(err)
	}
	if _, err := own.ExecContext(ctx, g.statements["note in inbox"], id.UUID[:], int64(id.N)); err != nil {
		return fault(err)
	}
	done, err := own.ExecContext(ctx, g.statements["mark execution"], int64(rand.Uint32()), id.UUID[:]) //nolint:gosec // G404: it tells writes apart
	if err != nil {
		return fault(err)
	}
	if n, err := done.RowsAffected(); err == nil && n != 1 {
		return base.Errorf(base.CodeInternal, "execution %s was not locked in this transaction", id)
	}
	return nil
}
