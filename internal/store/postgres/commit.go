package postgres

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Commit writes the changes and commits in one trip. Tables are written in a fixed order and rows sorted, so that transactions that wait for each
// other's unique keys cannot deadlock.
func (t *tx) Commit(ctx context.Context, ch *store.Changes) error {
	ctx, cancel := t.s.bounded(ctx)
	defer cancel()
	if err := checkInputs(ch.Insert); err != nil {
		t.Rollback(ctx)
		return err
	}
	if t.loaded && ch.Incarnation != "" && ch.Incarnation != t.m.incarnation { // the incarnation stays the same until the transaction ends
		t.Rollback(ctx)
		return &store.Fault{Kind: store.Stale, Err: errOther}
	}
	tr, err := t.start(ctx)
	if err != nil {
		t.Rollback(ctx)
		return err
	}
	ch.Draw = rand.Uint32() //nolint:gosec // G404: it distinguishes commits; predicting it gives no advantage
	w := writer{trip: tr, now: t.now, places: &t.places, spare: &tr.frame.spare, draw: integer(int32(ch.Draw))}
	if err := t.write(&w, ch); err != nil {
		t.Rollback(ctx)
		return err
	}
	if err = tr.run(ctx); isCode(err, busyCode) {
		err = t.endBy(ctx, tr, err, func(statement string) []store.Lock { return writesOf(ch, statement) })
	}
	t.Rollback(ctx)
	stale := isCode(err, staleCode) && (ch.Dictionary != 0 || ch.Incarnation != "")
	if stale || ch.RaisesDictionary() {
		t.m.carry.forget()
	}
	if err == nil {
		if !ch.NewLogID.IsZero() {
			t.s.logID.Store(&ch.NewLogID)
		}
		ch.Seq = w.seq
		t.s.afterAppend(ctx, w.seq)
		if ch.Safe != nil {
			ch.Safe(nil)
		}
		return nil
	}
	if stale {
		return &store.Fault{Kind: store.Stale, Err: err}
	}
	if len(ch.Assume)+len(ch.AssumeEmpty)+len(ch.AssumeDocs)+len(ch.AssumeCounters) > 0 && isCode(err, mistakenCode) {
		return &store.Fault{Kind: store.Conflict, Err: err}
	}
	err = commitFault(err, tr.done+1 >= len(tr.asked))
	if w.seq != 0 && store.FaultOf(err) != store.Unknown {
		t.s.fillDrawn(ctx, w.seq, t.now)
	}
	return err
}

// write adds the statements of all changes and of the commit. A panic is returned as an error: nothing has been sent, so the fault is Broken.
func (t *tx) write(w *writer, ch *store.Changes) (err error) {
	defer func() { err = store.Caught(recover(), err) }()
	t.s.ownTime(ch)
	t.places.sort()
	w.standing(ch)
	w.keys(ch)
	w.inbox(ch)
	w.executions(ch)
	w.remembered(ch)
	w.history(ch)
	w.assumed(ch)
	w.queue(ch)
	w.timers(ch)
	w.docs(ch)
	w.remove(ch)
	w.counters(ch, t.counters)
	w.held(ch)
	w.lanes(ch)
	w.events(ch)
	w.trip.add("commit", nil)
	return nil
}

// writer turns changes into the statements of a trip.
type writer struct {
	trip   *trip
	now    base.Time
	places *places // of the rows that the transaction has locked
	spare  *spare  // columns for reuse
	draw   []byte  // random bits of the versions, as an argument
	seq    int64   // position in the log, once drawn
}

// write adds a statement with these columns, unless they are empty.
func (w *writer) write(name string, columns ...*column) {
	if columns[0].count > 0 {
		w.trip.add(name, nil, arguments(columns...)...)
	}
	w.trip.columns = append(w.trip.columns, columns...)
}

var errOther = errors.New("the database has another incarnation")

// standing refuses changes that were decided with another dictionary or on another incarnation.
func (w *writer) standing(ch *store.Changes) {
	if ch.Dictionary != 0 || ch.Incarnation != "" {
		w.trip.add("check_standing", nil, bigint(ch.Dictionary), text(ch.Incarnation))
	}
}

// writeDrawn is write for a statement that also takes the random bits of new versions.
func (w *writer) writeDrawn(name string, columns ...*column) {
	if columns[0].count > 0 {
		w.trip.add(name, nil, append(arguments(columns...), w.draw)...)
	}
	w.trip.columns = append(w.trip.columns, columns...)
}

func (w *writer) keys(ch *store.Changes) {
	if len(ch.DropKeys) > 0 {
		w.trip.add("drop_keys", nil, append(keyColumns(sortedKeys(ch.DropKeys)), bigint(int64(w.now)))...)
	}
	if len(ch.ReplaceKeys) > 0 {
		w.trip.add("replace_keys", nil, keyRowColumns(ch.ReplaceKeys)...)
	}
	if len(ch.NewKeys) > 0 {
		w.trip.add("insert_keys", nil, keyRowColumns(ch.NewKeys)...)
	}
}

func sortedKeys(keys []store.Key) []store.Key {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, compareKeys)
	return keys
}

func keyRowColumns(rows []store.KeyRow) [][]byte {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b store.KeyRow) int { return compareKeys(a.Key, b.Key) })
	n := len(rows)
	space, namespace, key, fingerprint := smallints(n), texts(n), texts(n), blobs(n)
	id, partition, expires := uuids(n), smallints(n), bigints(n)
	for _, r := range rows {
		space.smallint(int(r.Space))
		namespace.text(r.Namespace)
		key.text(r.Text)
		fingerprint.blob(blob(r.Fingerprint))
		id.uuid(r.ID.UUID)
		partition.smallint(int(r.ID.N))
		expires.time(r.ExpiresAt)
	}
	return arguments(space, namespace, key, fingerprint, id, partition, expires)
}

func (w *writer) queue(ch *store.Changes) {
	if len(ch.Dequeue) > 0 {
		w.dequeue(ch.Dequeue)
	}
	if len(ch.Enqueue) > 0 {
		added := newQueueColumns(w.spare, len(ch.Enqueue))
		for _, r := range ch.Enqueue {
			added.add(r)
		}
		added.write(w, "enqueue")
	}
}

// dequeue deletes picked rows by their place and the others by their key.
func (w *writer) dequeue(rows []store.QueueRow) {
	picked, others := w.spare.places(len(rows)), newQueueColumns(w.spare, 0)
	for _, r := range rows {
		if at, found := w.places.ofQueueRow(r); found {
			picked.place(at)
		} else {
			others.add(r)
		}
	}
	w.write("dequeue_picked", picked)
	others.write(w, "dequeue")
}

type queueColumns struct{ class, block, order, id *column }

func newQueueColumns(s *spare, n int) queueColumns {
	return queueColumns{s.ints(n), s.ints(n), s.bigints(n), s.uuids(n)}
}

func (c *queueColumns) add(r store.QueueRow) {
	c.class.int(r.Class)
	c.block.int(r.Block)
	c.order.bigint(r.Order)
	c.id.uuid(r.ID)
}

func (c *queueColumns) write(w *writer, name string) { w.write(name, c.class, c.block, c.order, c.id) }

func (w *writer) timers(ch *store.Changes) {
	if len(ch.DropTimers) > 0 {
		seq := bigints(len(ch.DropTimers))
		for _, timer := range ch.DropTimers {
			seq.bigint(timer.Seq)
		}
		w.trip.add("drop_timers", nil, seq.argument())
	}
	if len(ch.AddTimers) > 0 {
		w.trip.add("add_timers", nil, timerColumns(ch.AddTimers)...)
	}
}

// timerColumns puts the lists of all timers into one array each, with the range that belongs to each timer.
func timerColumns(timers []store.Timer) [][]byte {
	n := len(timers)
	at, kind, idFrom, idTo, textFrom, textTo := bigints(n), smallints(n), ints(n), ints(n), ints(n), ints(n)
	ids, strings := uuids(n), blobs(n)
	for _, timer := range timers {
		at.time(timer.At)
		kind.smallint(int(timer.Kind))
		idFrom.int(int32(ids.count) + 1)
		textFrom.int(int32(strings.count) + 1)
		for _, id := range timer.IDs {
			ids.uuid(id)
		}
		for _, one := range timer.Texts {
			strings.text(one)
		}
		idTo.int(int32(ids.count))
		textTo.int(int32(strings.count))
	}
	return arguments(at, kind, idFrom, idTo, ids, textFrom, textTo, strings)
}

func (w *writer) counters(ch *store.Changes, locked []string) {
	touched := slices.Concat(locked, slices.Collect(maps.Keys(ch.Counters)))
	if len(touched)+len(ch.AssumeCounters) == 0 {
		return
	}
	slices.Sort(touched)
	touched = slices.Compact(touched)
	key, change := blobs(len(touched)), bigints(len(touched))
	var zero []string // counters that may have fallen to zero
	for _, name := range touched {
		difference := ch.Counters[name]
		if difference != 0 {
			key.text(name)
			change.bigint(difference)
		}
		if difference <= 0 {
			zero = append(zero, name)
		}
	}
	if key.count > 0 {
		w.trip.add("change_counters", nil, arguments(key, change)...)
	}
	if len(zero) > 0 {
		w.trip.add("drop_counters", nil, counterColumn(zero))
	}
	if n := len(ch.AssumeCounters); n > 0 {
		key, most := blobs(n), bigints(n)
		for name, bound := range ch.AssumeCounters {
			key.text(name)
			most.bigint(bound)
		}
		w.trip.add("assume_counters", nil, arguments(key, most)...)
	}
}

func (w *writer) lanes(ch *store.Changes) {
	if len(ch.Lanes) > 0 {
		w.trip.add("update_lanes", nil, append([][]byte{laneNumbers(ch.Lanes)}, laneColumns(ch.Lanes)...)...)
	}
	if len(ch.RetireClasses) > 0 {
		w.trip.add("retire_classes", nil, retiredColumns(ch.RetireClasses)...)
	}
	if len(ch.DropClasses) > 0 {
		w.trip.add("drop_classes", nil, retiredColumns(ch.DropClasses)...)
	}
	if !ch.NewLogID.IsZero() {
		w.trip.add("name_log", nil, ch.NewLogID[:])
	}
	if ch.RaisesDictionary() {
		w.trip.add("raise_dictionary", nil)
	}
}

// events appends the commit to the log. It comes last: the number is drawn when every lock is held, and after it hardly anything can fail.
func (w *writer) events(ch *store.Changes) {
	if len(ch.Events) == 0 {
		return
	}
	w.trip.add("append_log", func(r row) error {
		w.seq = r.bigint(0)
		return nil
	}, bigint(int64(w.now)), store.EncodeCommit(ch.Events))
}
