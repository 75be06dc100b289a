package memory

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

var _ store.TxOutcomes = (*Store)(nil)

// ownPatience is how long a transaction of the user waits for a row.
const ownPatience = 3 * time.Second

// left is what a transaction of the user leaves to an execution.
type left struct {
	id  base.ID
	doc store.Doc
}

// own returns the transaction of the user, if it is one on this database. Codes: invalid_argument, wrong_database.
func (s *Store) own(tx any) (*OwnTx, error) {
	own, ok := tx.(*OwnTx)
	switch {
	case !ok:
		return nil, base.Invalid("tx", "%T is no transaction of this store", tx)
	case own.d != s.d:
		return nil, base.Errorf(base.CodeWrongDatabase, "the transaction is on another database")
	}
	return own, nil
}

// LockTx locks and loads an execution in a transaction of the user. Codes: invalid_argument, wrong_database, store_unavailable (the row is held).
func (s *Store) LockTx(ctx context.Context, tx any, id base.UUID, docs []store.DocRef, owned []store.Owned) (locked *store.LockedTx, err error) {
	own, err := s.own(tx)
	if err != nil {
		return nil, err
	}
	err = s.during(ctx, func() error {
		if s.d.rows.executions[id] == nil {
			return nil
		}
		if err := s.d.acquire(ctx, own.h, []store.Lock{{Execution: id}}, ownPatience); err != nil {
			return base.Errorf(base.CodeStoreUnavailable, "another transaction holds the execution: %w", err)
		}
		if row := s.d.rows.executions[id]; row != nil { // it may be gone by now
			locked, err = own.load(s, row, docs, owned)
		}
		return err
	})
	return locked, err
}

// load reads an execution and docs, as the transaction itself has left them.
func (o *OwnTx) load(s *Store, row *store.Row, docs []store.DocRef, owned []store.Owned) (*store.LockedTx, error) {
	r := *row
	var own []store.Doc
	for _, l := range o.left {
		if l.id.UUID == row.ID {
			r.Version, own = store.Carrying(r.Version, 0), append(own, l.doc)
		}
	}
	l := newLoad(s, nil, &store.Want{})
	x, err := l.read(&r, false, false)
	if err != nil {
		return nil, err
	}
	locked := &store.LockedTx{Now: s.observe().now, Execution: x, Docs: map[store.DocRef]store.Doc{}, Owned: map[store.Owned][]store.Doc{}}
	l.addDocs(docs)
	locked.Docs = l.out.Docs
	for _, doc := range own {
		if slices.Contains(docs, doc.DocRef) {
			locked.Docs[doc.DocRef] = copyDoc(&doc)
		}
	}
	for _, of := range owned {
		for i := range s.d.rows.docs[of] {
			locked.Owned[of] = append(locked.Owned[of], copyDoc(&s.d.rows.docs[of][i]))
		}
	}
	return locked, nil
}

// LeaveTx leaves a doc to an execution that LockTx has locked in this transaction. Codes: invalid_argument, wrong_database.
func (s *Store) LeaveTx(ctx context.Context, tx any, id base.ID, doc store.Doc) error {
	own, err := s.own(tx)
	if err != nil {
		return err
	}
	return s.during(ctx, func() error {
		if !slices.Contains(own.h.rows, store.Lock{Execution: id.UUID}) {
			return base.Errorf(base.CodeInternal, "execution %s was not locked in this transaction", id)
		}
		own.left = append(own.left, left{id, copyDoc(&doc)})
		return nil
	})
}

// leave writes what the transaction has left to executions.
func (o *OwnTx) leave() {
	m := o.d.rows
	for _, l := range o.left {
		m.putDoc(&l.doc)
		row := *m.executions[l.id.UUID]
		row.Version = store.Carrying(row.Version, o.d.random.Uint32())
		m.executions[row.ID] = &row
		if !slices.ContainsFunc(m.inbox, func(in store.InboxRow) bool { return in.ID.UUID == l.id.UUID }) {
			m.inbox = append(m.inbox, store.InboxRow{ID: l.id})
		}
	}
}

// hint tells every process of what a transaction of the user has left.
func (o *OwnTx) hint() {
	for _, s := range o.d.stores {
		for _, e := range s.ears {
			e.hear(store.Hint{Inbox: true})
		}
	}
}
