package postgres

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func compareUUIDs(a, b base.UUID) int { return bytes.Compare(a[:], b[:]) }

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Space, b.Space))
}

func compareDocs(a, b store.DocRef) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
}

// sortedByID returns a sorted copy, or the list itself if it is sorted.
func sortedByID(list []*core.Execution) []*core.Execution {
	order := func(a, b *core.Execution) int { return compareUUIDs(a.ID.UUID, b.ID.UUID) }
	if slices.IsSortedFunc(list, order) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, order)
	return list
}

var errNotNew = errors.New("an execution whose input is not loaded is no new one")

// checkInputs refuses executions that were loaded without their inputs instead of made: their ids exist already.
func checkInputs(list []*core.Execution) error {
	for _, x := range list {
		if x.Input.Data == nil && x.Input.Size > 0 {
			return &store.Fault{Kind: store.Conflict, Err: errNotNew}
		}
	}
	return nil
}

func (w *writer) executions(ch *store.Changes) {
	if len(ch.Insert) > 0 {
		w.insert(sortedByID(ch.Insert))
	}
	if changed := together(ch.Update, ch.Renew); len(changed) > 0 {
		w.update(sortedByID(changed))
	}
}

// together returns both lists as one, without a copy if one is empty.
func together(a, b []*core.Execution) []*core.Execution {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return slices.Concat(a, b)
}

func (w *writer) insert(list []*core.Execution) {
	n := len(list)
	id, class, partition, origin, changing, version := w.spare.uuids(n), w.spare.ints(n), w.spare.smallints(n), w.spare.blobs(n), newChangingColumns(w.spare, n), w.spare.ints(n)
	input := w.spare.column(pgtype.ByteaOID, n, inputBytes(list)/n)
	for _, x := range list {
		r := store.RowOf(x)
		id.uuid(r.ID)
		class.int(r.Class)
		partition.smallint(int(r.N))
		origin.blob(r.Origin)
		input.blob(r.Input)
		changing.add(&r)
		version.int(int32(r.Version>>32) + 1)
	}
	w.writeDrawn("insert_executions", id, class, partition, origin, input, changing.stage, changing.order, changing.state, version)
}

// inputBytes returns the total size of the inputs plus their number, which makes up for the rounding of a division by that number.
func inputBytes(list []*core.Execution) int {
	sum := len(list)
	for _, x := range list {
		sum += len(x.Input.Data)
	}
	return sum
}

// update writes locked rows by their place and the others by their key.
func (w *writer) update(list []*core.Execution) {
	locked, at := newChangingColumns(w.spare, len(list)), w.spare.places(len(list))
	others, id := newChangingColumns(w.spare, 0), w.spare.uuids(0)
	for _, x := range list {
		r := store.ChangedRowOf(x)
		if where, found := w.places.ofExecution(r.ID); found {
			at.place(where)
			locked.add(&r)
		} else {
			id.uuid(r.ID)
			others.add(&r)
		}
	}
	w.writeDrawn("update_locked_executions", at, locked.stage, locked.order, locked.state)
	w.writeDrawn("update_executions", id, others.stage, others.order, others.state)
}

// changingColumns are written with every change.
type changingColumns struct{ stage, order, state *column }

func newChangingColumns(s *spare, n int) changingColumns {
	return changingColumns{stage: s.smallints(n), order: s.bigints(n), state: s.blobs(n)}
}

func (c *changingColumns) add(r *store.Row) {
	c.stage.smallint(stageOf(r.Status, r.Reason, r.Next))
	c.order.bigint(r.Order)
	c.state.blob(r.State)
}

func (c *changingColumns) arguments() [][]byte { return arguments(c.stage, c.order, c.state) }

// stageOf combines status, reason and next into one column, so that the database checks the combination.
func stageOf(status core.Status, reason core.Reason, next core.Next) int {
	return int(status)*1000 + int(reason)*10 + int(next)
}

func fromStage(stage int) (core.Status, core.Reason, core.Next) {
	return core.Status(stage / 1000), core.Reason(stage / 10 % 100), core.Next(stage % 10)
}

func (w *writer) history(ch *store.Changes) {
	if len(ch.History) > 0 {
		w.records(ch.History)
	}
	if len(ch.Patches) > 0 {
		w.trip.add("patch_history", nil, patchColumns(ch.Patches)...)
	}
	w.dropHistory(ch.DropHistory)
}

func (w *writer) records(list []core.LeaseRecord) {
	fresh, replacing := newHistoryColumns(w.spare, len(list)), newHistoryColumns(w.spare, 0)
	for i := range list {
		if record := &list[i]; record.Replaces {
			replacing.add(record)
		} else {
			fresh.add(record)
		}
	}
	fresh.write(w, "insert_history")
	replacing.write(w, "replace_history")
}

type historyColumns struct{ id, epoch, lease, ended, n, by, body, result *column }

func newHistoryColumns(s *spare, n int) historyColumns {
	return historyColumns{
		s.uuids(n), s.bigints(n), s.uuids(n), s.bigints(n), s.smallints(n), s.smallints(n), s.blobs(n), s.blobs(n),
	}
}

func (c *historyColumns) add(record *core.LeaseRecord) {
	r := store.HistoryRowOf(record)
	c.id.uuid(r.ID)
	c.epoch.bigint(r.Epoch)
	c.lease.uuid(r.LeaseID)
	c.ended.time(r.EndedAt)
	c.n.smallint(int(record.ExecutionID.N))
	c.by.smallint(int(r.End))
	c.body.blob(r.Body)
	c.result.blob(r.Result)
}

func (c *historyColumns) write(w *writer, name string) {
	w.write(name, c.id, c.epoch, c.lease, c.ended, c.n, c.by, c.body, c.result)
}

func patchColumns(patches []core.AttemptPatch) [][]byte {
	n := len(patches)
	id, epoch, state, body := uuids(n), bigints(n), smallints(n), blobs(n)
	for _, p := range patches {
		id.uuid(p.ExecutionID.UUID)
		epoch.bigint(p.Epoch)
		state.smallint(int(p.State))
		body.blob(store.EncodePatch(p))
	}
	return arguments(id, epoch, state, body)
}

func (w *writer) docs(ch *store.Changes) {
	if len(ch.DropDocs) > 0 {
		w.trip.add("drop_docs", nil, docRefColumns(ch.DropDocs)...)
	}
	if len(ch.PutDocs) > 0 {
		w.trip.add("put_docs", nil, docColumns(lastOfEach(ch.PutDocs))...)
	}
	if len(ch.NewDocs) > 0 {
		w.trip.add("insert_docs", nil, docColumns(ch.NewDocs)...)
	}
}

// lastOfEach drops docs that the same changes replace again: a statement may write a row only once.
func lastOfEach(docs []store.Doc) []store.Doc {
	last := make(map[store.DocRef]int, len(docs))
	for i, d := range docs {
		last[d.DocRef] = i
	}
	if len(last) == len(docs) {
		return docs
	}
	kept := make([]store.Doc, 0, len(last))
	for i, d := range docs {
		if last[d.DocRef] == i {
			kept = append(kept, d)
		}
	}
	return kept
}

func docColumns(docs []store.Doc) [][]byte {
	docs = slices.Clone(docs)
	slices.SortFunc(docs, func(a, b store.Doc) int { return compareDocs(a.DocRef, b.DocRef) })
	n := len(docs)
	kind, owner, key, body, data, expires := smallints(n), texts(n), blobs(n), blobs(n), blobs(n), bigints(n)
	for _, d := range docs {
		kind.smallint(int(d.Kind))
		owner.text(d.Owner)
		key.text(d.Key)
		body.blob(d.StoredBody())
		data.blob(d.Data)
		expires.time(d.ExpiresAt)
	}
	return arguments(kind, owner, key, body, data, expires)
}

// inbox removes submissions, so that executions can have their ids.
func (w *writer) inbox(ch *store.Changes) {
	if len(ch.DropInbox) == 0 {
		return
	}
	ids := sortedIDs(ch.DropInbox)
	w.trip.add("drop_inbox", nil, uuidColumn(ids))
	w.trip.add("free_ids", nil, uuidColumn(ids))
}

func sortedIDs(ids []base.UUID) []base.UUID {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, compareUUIDs)
	return ids
}

func (w *writer) remove(ch *store.Changes) {
	ids := sortedIDs(slices.Concat(ch.Remove, ch.Strip))
	if len(ids) == 0 {
		return
	}
	column := uuidColumn(ids)
	w.trip.add("remove_executions", nil, column)
	w.trip.add("remove_history", nil, column)
	if len(ch.Remove) > 0 {
		w.trip.add("remove_docs", nil, ownerColumn(ch.Remove))
	}
	if len(ch.Strip) > 0 {
		w.trip.add("strip_docs", nil, ownerColumn(ch.Strip), smallintColumn(ch.StripLeaves))
	}
	w.trip.add("remove_search", nil, column)
}

// ownerColumn returns the owners of the docs of executions.
func ownerColumn(ids []base.UUID) []byte {
	owners := make([]string, len(ids))
	for i, id := range sortedIDs(ids) {
		owners[i] = id.String()
	}
	return textColumn(owners)
}
