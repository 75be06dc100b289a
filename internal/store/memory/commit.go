package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// encoded are the rows of changes as they are kept.
type encoded struct {
	insert, update, assume []store.Row
	history                []*store.HistoryRow
	patches                [][]byte
	events                 []byte
}

// encode turns changes into rows. A panic is returned as an error: nothing is written yet, so the fault is Broken.
func encode(ch *store.Changes) (e encoded, err error) {
	defer func() { err = store.Caught(recover(), err) }()
	for _, x := range ch.Insert {
		if x.Input.Data == nil && x.Input.Size > 0 {
			return e, &store.Fault{Kind: store.Conflict, Err: errors.New("an execution whose input is not loaded is no new one")}
		}
		row := store.RowOf(x)
		row.Input = append([]byte{}, row.Input...)
		e.insert = append(e.insert, row)
	}
	for _, list := range [...][]*core.Execution{ch.Update, ch.Renew} {
		for _, x := range list {
			_ = x.Class.ID // an execution without a class cannot be written
			e.update = append(e.update, store.ChangedRowOf(x))
		}
	}
	for _, x := range ch.Assume {
		_ = x.Class.ID
		e.assume = append(e.assume, store.ChangedRowOf(x))
	}
	for i := range ch.History {
		row := store.HistoryRowOf(&ch.History[i])
		row.Result = slices.Clone(row.Result)
		e.history = append(e.history, &row)
	}
	for _, p := range ch.Patches {
		e.patches = append(e.patches, store.EncodePatch(p))
	}
	if len(ch.Events) > 0 {
		e.events = store.EncodeCommit(ch.Events)
	}
	for _, list := range [...][]store.Row{e.insert, e.update, e.assume} {
		for i := range list {
			if err := checkState(&list[i]); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

// checkState is what constraints of a database are: it refuses statuses that do not exist.
func checkState(r *store.Row) error {
	if r.Next > lastNext || !slices.Contains(core.ReasonsOf(r.Status), r.Reason) {
		return &store.Fault{Kind: store.Broken, Err: fmt.Errorf("execution %s cannot be %d with the reason %d and next %d", r.ID, r.Status, r.Reason, r.Next)}
	}
	return nil
}

// Commit writes the changes and commits. It ends the transaction regardless of its result.
func (t *tx) Commit(ctx context.Context, ch *store.Changes) error {
	defer t.Rollback(ctx)
	if err := t.s.usable(ctx); err != nil {
		return err
	}
	e, err := encode(ch)
	if err != nil {
		return err
	}
	if err := t.commit(ctx, ch, &e); err != nil {
		return err
	}
	if ch.Safe != nil {
		ch.Safe(nil)
	}
	return nil
}

func (t *tx) commit(ctx context.Context, ch *store.Changes, e *encoded) error {
	d := t.s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := t.start(); err != nil {
		return err
	}
	for _, locks := range d.rows.locksOf(ch) {
		if err := d.acquire(ctx, t.h, locks, t.patience); err != nil {
			return err
		}
	}
	ch.Draw = d.random.Uint32()
	seq, err := t.write(ch, e)
	t.end() // before anybody learns of it
	if store.FaultOf(err) == store.Stale || err == nil && ch.RaisesDictionary() {
		t.s.carried = reading{}
	}
	if err != nil {
		return err
	}
	ch.Seq = seq
	if !ch.NewLogID.IsZero() {
		t.s.logID = ch.NewLogID
	}
	return nil
}

// write checks the changes, draws the position of their events, and writes everything at once.
func (t *tx) write(ch *store.Changes, e *encoded) (seq int64, err error) {
	d := t.s.d
	if err := d.check(ch, e); err != nil {
		return 0, err
	}
	if e.events != nil {
		m := d.rows
		seq = m.draw()
		d.mu.Unlock()
		t.h.gate(Drawn)
		d.mu.Lock()
		if err = ended(t.h); err == nil {
			err = d.check(ch, e) // what is not locked may have changed
		}
		if err != nil {
			m.settle(seq, void, 0, nil)
			return 0, err
		}
	}
	d.rows.apply(ch, e, d.cfg.Now())
	if e.events != nil {
		d.rows.settle(seq, committed, d.cfg.Now(), e.events)
	}
	return seq, nil
}

// locksOf returns what changes write, group by group in the order in which they are written. Rows of the transaction are locked already.
func (m *image) locksOf(ch *store.Changes) [][]store.Lock {
	var keys, executions, docs, counters, lanes []store.Lock
	for _, rows := range [...][]store.KeyRow{ch.NewKeys, ch.ReplaceKeys} {
		for i := range rows {
			keys = append(keys, store.Lock{Key: rows[i].Key})
		}
	}
	for _, key := range ch.DropKeys {
		keys = append(keys, store.Lock{Key: key})
	}
	for _, list := range [...][]*core.Execution{ch.Insert, ch.Update, ch.Renew, ch.Assume} {
		for _, x := range list {
			executions = append(executions, store.Lock{Execution: x.ID.UUID})
		}
	}
	for _, list := range [...][]base.UUID{ch.Remove, ch.Strip} {
		for _, id := range list {
			executions = append(executions, store.Lock{Execution: id})
		}
	}
	doc := func(ref store.DocRef) {
		if ref.Owner == "" { // the locks of their executions protect the others
			docs = append(docs, store.Lock{Doc: ref})
		}
	}
	for _, list := range [...][]store.Doc{ch.PutDocs, ch.NewDocs} {
		for i := range list {
			doc(list[i].DocRef)
		}
	}
	for _, ref := range ch.DropDocs {
		doc(ref)
	}
	for _, key := range slices.Sorted(maps.Keys(ch.Counters)) {
		counters = append(counters, store.Lock{Counter: key})
	}
	for _, lane := range ch.AssumeLanes {
		lanes = append(lanes, store.Lock{Lane: lane, Shared: true})
	}
	return [][]store.Lock{sortedLocks(keys), sortedLocks(executions), sortedLocks(docs), counters, sortedLocks(lanes)}
}

func sortedLocks(locks []store.Lock) []store.Lock {
	slices.SortFunc(locks, func(a, b store.Lock) int {
		return cmp.Or(compareKeys(a.Key, b.Key), compareUUIDs(a.Execution, b.Execution), compareRefs(a.Doc, b.Doc), strings.Compare(a.Counter, b.Counter), cmp.Compare(a.Lane, b.Lane))
	})
	return slices.Compact(locks)
}

func refuse(kind store.FaultKind, format string, args ...any) error {
	return &store.Fault{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// check refuses changes that do not fit what is stored.
func (d *Database) check(ch *store.Changes, e *encoded) error {
	m := d.rows
	switch {
	case ch.Dictionary != 0 && ch.Dictionary != m.version:
		return refuse(store.Stale, "decided by dictionary %d, which is now %d", ch.Dictionary, m.version)
	case ch.Incarnation != "" && ch.Incarnation != m.name():
		return refuse(store.Stale, "decided on incarnation %s, which is now %s", ch.Incarnation, m.name())
	case ch.AssumeUntil != 0 && d.cfg.Now() >= ch.AssumeUntil:
		return refuse(store.Conflict, "a timer of a remembered execution is due")
	}
	for _, check := range [...]func(*store.Changes, *encoded) error{
		func(ch *store.Changes, _ *encoded) error { return m.checkKeys(ch, d.cfg.Now()) }, m.checkExecutions, m.checkHistory, m.checkAssumed, m.checkDocs,
	} {
		if err := check(ch, e); err != nil {
			return err
		}
	}
	return nil
}

func (m *image) checkKeys(ch *store.Changes, now base.Time) error {
	seen := map[store.Key]bool{}
	for i := range ch.NewKeys {
		key := ch.NewKeys[i].Key
		row, there := m.keys[key]
		dropped := there && row.ExpiresAt <= now && slices.Contains(ch.DropKeys, key)
		if there && !dropped || seen[key] {
			return refuse(store.Conflict, "the key %q exists", key.Text)
		}
		seen[key] = true
	}
	return nil
}

func (m *image) checkExecutions(ch *store.Changes, e *encoded) error {
	seen := map[base.UUID]bool{}
	for i := range e.insert {
		id := e.insert[i].ID
		if m.executions[id] != nil || seen[id] || m.notIngested(id) >= 0 && !slices.Contains(ch.DropInbox, id) {
			return refuse(store.Conflict, "execution %s exists", id)
		}
		if m.class(e.insert[i].Class) == nil {
			return refuse(store.Broken, "execution %s has class %d, which does not exist", id, e.insert[i].Class)
		}
		seen[id] = true
	}
	for i := range e.update {
		if id := e.update[i].ID; m.executions[id] == nil && !seen[id] {
			return refuse(store.Broken, "execution %s is changed, but it is not there", id)
		}
	}
	for i := range e.assume {
		if row := m.executions[e.assume[i].ID]; row == nil || row.Version != e.assume[i].Version {
			return refuse(store.Conflict, "execution %s is no longer as remembered", e.assume[i].ID)
		}
	}
	return nil
}

func (m *image) checkHistory(ch *store.Changes, e *encoded) error {
	type entry struct {
		id    base.UUID
		epoch int64
	}
	seen := map[entry]bool{}
	for i, row := range e.history {
		at := entry{row.ID, row.Epoch}
		if !ch.History[i].Replaces && (seen[at] || m.entry(row.ID, row.Epoch) != nil) {
			return refuse(store.Conflict, "epoch %d of %s has an entry", row.Epoch, row.ID)
		}
		seen[at] = true
	}
	return nil
}

func (m *image) checkAssumed(ch *store.Changes, _ *encoded) error {
	for _, q := range ch.AssumeEmpty {
		if len(m.from(q)) > 0 {
			return refuse(store.Conflict, "the queue of class %d is not empty", q.Class)
		}
	}
	for i := range ch.AssumeDocs {
		assumed := &ch.AssumeDocs[i]
		if doc := m.doc(store.DocRef{Kind: assumed.Kind, Key: assumed.Key}); doc == nil || !bytes.Equal(doc.StoredBody(), assumed.StoredBody()) {
			return refuse(store.Conflict, "a small record is not what was assumed")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(ch.AssumeCounters)) {
		if n := m.counters[key] + ch.Counters[key]; n > ch.AssumeCounters[key] {
			return refuse(store.Conflict, "%d are counted under %q", n, key)
		}
	}
	return nil
}

func (m *image) checkDocs(ch *store.Changes, _ *encoded) error {
	seen := map[store.DocRef]bool{}
	for i := range ch.PutDocs {
		seen[ch.PutDocs[i].DocRef] = true
	}
	for i := range ch.NewDocs {
		ref := ch.NewDocs[i].DocRef
		if seen[ref] || m.doc(ref) != nil && !slices.Contains(ch.DropDocs, ref) {
			return refuse(store.Conflict, "the record %d %q of %q exists", ref.Kind, ref.Key, ref.Owner)
		}
		seen[ref] = true
	}
	for i := range ch.Lanes {
		if m.lane(ch.Lanes[i].ID) == nil {
			return refuse(store.Broken, "lane %d is changed, but it is not there", ch.Lanes[i].ID)
		}
	}
	return nil
}
