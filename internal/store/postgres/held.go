package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/store"
)

// A statement that timed out waiting for a lock names many rows, and the server does not report which one it waited for. That is determined
// afterwards on the same connection. Visible executions, docs and keys that cannot be locked immediately are held. If there are none, half of the
// rows are tried with a very short timeout, then half of those, and so on. Each try is undone before the next, so that the rows found are held by
// others, and nothing is held here for longer than a trip.

const (
	hasty     = "1ms" // timeout of a try
	mostTries = 64    // bounds the duration of the search when many rows are held
)

// busy adds the rows that others hold to the fault of a statement that waited for one of these. The transaction has ended; its connection has not
// been released yet.
func (t *tx) busy(ctx context.Context, err error, among []store.Lock) error {
	failed := fault(err)
	if store.FaultOf(failed) != store.Busy || len(among) == 0 || t.conn == nil || t.conn.Conn().IsClosed() {
		return failed
	}
	search := &heldSearch{t: t, left: mostTries}
	if search.seen(ctx, among); len(search.held) == 0 {
		search.in(ctx, among, true)
	}
	search.end(ctx)
	return &store.Fault{Kind: store.Busy, Err: err, Held: search.held}
}

// heldSearch searches for rows that others hold.
type heldSearch struct {
	t     *tx
	left  int // remaining tries
	begun bool
	held  []store.Lock
}

// in searches some rows. known reports that one of them was held a moment ago, so that trying all of them at once is pointless.
func (s *heldSearch) in(ctx context.Context, among []store.Lock, known bool) {
	if len(among) == 0 || !(known && len(among) > 1) && s.free(ctx, among) {
		return
	}
	if len(among) == 1 {
		s.held = append(s.held, among[0])
		return
	}
	half := len(among) / 2
	s.in(ctx, among[:half], false)
	s.in(ctx, among[half:], false)
}

// try begins a trip that tries to lock rows, and undoes the previous try.
func (s *heldSearch) try() *trip {
	tr := s.t.s.trip(s.t.conn)
	if s.begun {
		tr.add("back_before_trying", nil)
		return tr
	}
	s.begun = true
	tr.add("begin", nil)
	tr.settings(hasty)
	tr.add("before_trying", nil)
	return tr
}

// seen finds the existing executions, docs and keys that cannot be locked immediately, all in one trip.
func (s *heldSearch) seen(ctx context.Context, among []store.Lock) {
	want := store.WantOf(among)
	there, free := map[store.Lock]bool{}, map[store.Lock]bool{}
	note := func(to map[store.Lock]bool, lock func(row) store.Lock) func(row) error {
		return func(r row) error {
			to[lock(r)] = true
			return nil
		}
	}
	tr := s.try()
	if len(want.Executions) > 0 {
		ids := uuidColumn(want.Executions)
		tr.add("lock_free_executions", note(free, func(r row) store.Lock { return store.Lock{Execution: r.uuid(1)} }), ids, boolean(false))
		tr.add("existing_executions", note(there, func(r row) store.Lock { return store.Lock{Execution: r.uuid(0)} }), ids)
	}
	if len(want.Docs) > 0 {
		lock := func(r row) store.Lock {
			return store.Lock{Doc: store.DocRef{Kind: store.DocKind(r.smallint(0)), Owner: r.text(1), Key: r.text(2)}}
		}
		tr.add("lock_free_docs", note(free, lock), docRefColumns(want.Docs)...)
		tr.add("read_docs", note(there, lock), docRefColumns(want.Docs)...)
	}
	if len(want.Keys) > 0 {
		lock := func(r row) store.Lock {
			return store.Lock{Key: store.Key{Space: store.KeySpace(r.smallint(0)), Namespace: r.text(1), Text: r.text(2)}}
		}
		tr.add("lock_free_keys", note(free, lock), keyColumns(sortedKeys(want.Keys))...)
		tr.add("read_keys", note(there, lock), keyColumns(sortedKeys(want.Keys))...)
	}
	if err := tr.run(ctx); err != nil {
		return
	}
	for _, lock := range among {
		if there[lock] && !free[lock] && !slices.Contains(s.held, lock) {
			s.held = append(s.held, lock)
		}
	}
}

// free reports whether all of the rows can be locked immediately. If that can no longer be determined, they count as free.
func (s *heldSearch) free(ctx context.Context, rows []store.Lock) bool {
	if s.left--; s.left < 0 {
		return true
	}
	tr := s.try()
	s.t.s.addTry(tr, rows)
	err := tr.run(ctx)
	if err != nil && !isCode(err, busyCode) {
		s.left = 0 // the connection is lost, or the rows cannot be tried
	}
	return !isCode(err, busyCode)
}

func (s *heldSearch) end(ctx context.Context) {
	if s.begun && !s.t.conn.Conn().IsClosed() {
		s.t.s.rollback(ctx, s.t.conn)
	}
}

// addTry adds statements that lock the rows and insert those that are not visible, whether they exist or not. They wait for any transaction that
// holds a row, or has inserted it and not committed yet.
func (s *Store) addTry(tr *trip, rows []store.Lock) {
	want := store.WantOf(rows)
	l := s.newLoad(s.memory.Load(), &want, true, nothingTaken)
	l.places = &places{}
	l.addKeys(tr)
	l.addDocs(tr)
	if len(want.Executions) > 0 {
		tr.add("lock_executions", nil, uuidColumn(want.Executions), boolean(false))
		tr.add("try_executions", nil, uuidColumn(want.Executions))
	}
	if len(want.Keys) > 0 {
		tr.add("try_keys", nil, keyColumns(sortedKeys(want.Keys))...)
	}
	if len(want.Docs) > 0 {
		tr.add("try_docs", nil, docRefColumns(want.Docs)...)
	}
	l.addCounters(tr)
	l.addLanes(tr)
	if slices.ContainsFunc(rows, func(lock store.Lock) bool { return lock.Dictionary }) {
		tr.add("raise_dictionary", nil)
	}
}

// Await waits until the row is free.
func (s *Store) Await(ctx context.Context, lock store.Lock, patience time.Duration) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tr := s.trip(conn)
	tr.add("begin", nil)
	tr.settings(milliseconds(patience))
	s.addTry(tr, []store.Lock{lock})
	tr.add("rollback", nil)
	if err := tr.run(ctx); err != nil {
		s.rollback(ctx, conn)
		return fault(err)
	}
	return nil
}

// waitsFor returns the rows of a want that one of its statements may wait for.
func waitsFor(want *store.Want, statement string) []store.Lock {
	var part store.Want
	switch statement {
	case "lock_keys":
		part.Keys = want.Keys
	case "lock_docs":
		part.Docs, part.LockDocs = want.Docs, true
	case "lock_executions":
		part.Executions = want.Executions
	case "make_counters", "lock_counters":
		part.Counters = want.Counters
	case "share_lanes":
		part.ShareLanes = want.ShareLanes
	case "lock_lanes":
		var locks []store.Lock
		for _, lane := range want.LockLanes {
			locks = append(locks, store.Lock{Lane: lane})
		}
		return locks
	}
	return part.Locks()
}

// writesOf returns the rows of changes that one of the writing statements may wait for.
func writesOf(ch *store.Changes, statement string) (locks []store.Lock) {
	switch statement {
	case "insert_keys", "replace_keys":
		for _, row := range slices.Concat(ch.NewKeys, ch.ReplaceKeys) {
			locks = append(locks, store.Lock{Key: row.Key})
		}
	case "drop_keys":
		for _, key := range ch.DropKeys {
			locks = append(locks, store.Lock{Key: key})
		}
	case "insert_executions", "update_remembered", "update_executions":
		for _, x := range slices.Concat(ch.Insert, ch.Assume, ch.Update, ch.Renew) {
			locks = append(locks, store.Lock{Execution: x.ID.UUID})
		}
	case "remove_executions":
		for _, id := range slices.Concat(ch.Remove, ch.Strip) {
			locks = append(locks, store.Lock{Execution: id})
		}
	case "insert_docs", "put_docs":
		for _, doc := range slices.Concat(ch.NewDocs, ch.PutDocs) {
			locks = append(locks, store.Lock{Doc: doc.DocRef})
		}
	case "drop_docs":
		for _, ref := range ch.DropDocs {
			locks = append(locks, store.Lock{Doc: ref})
		}
	case "change_counters", "drop_counters":
		for key := range ch.Counters {
			locks = append(locks, store.Lock{Counter: key})
		}
	case "hold_lanes":
		for _, lane := range ch.AssumeLanes {
			locks = append(locks, store.Lock{Lane: lane, Shared: true})
		}
	case "raise_dictionary":
		locks = append(locks, store.Lock{Dictionary: true})
	}
	return locks
}
