package postgres

import (
	"cmp"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

func compareUUIDs(a, b core.UUID) int { return slices.Compare(a[:], b[:]) }

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Space, b.Space))
}

func compareDocs(a, b store.DocRef) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
}

// sortedByID is a sorted copy, unless the list is sorted already.
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

// checkInputs refuses executions that were loaded, without their inputs, and not made: their ids are there already.
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
		w.trip.add("insert_executions", nil, insertColumns(sortedByID(ch.Insert))...)
	}
	if changed := slices.Concat(ch.Update, ch.Renew); len(changed) > 0 {
		w.trip.add("update_executions", nil, updateColumns(sortedByID(changed))...)
	}
}

func insertColumns(list []*core.Execution) [][]byte {
	n := len(list)
	class, partition, origin, input := ints(n), smallints(n), blobs(n), blobs(n)
	changing := newChangingColumns(n)
	for _, x := range list {
		r := store.RowOf(x)
		class.int(r.Class)
		partition.smallint(int(r.N))
		origin.blob(r.Origin)
		input.blob(r.Input)
		changing.add(&r)
	}
	return slices.Concat(arguments(changing.id, class, partition, origin, input), changing.arguments())
}

func updateColumns(list []*core.Execution) [][]byte {
	changing := newChangingColumns(len(list))
	for _, x := range list {
		r := store.ChangedRowOf(x)
		changing.add(&r)
	}
	return slices.Concat(arguments(changing.id), changing.arguments())
}

// changingColumns are written with every change.
type changingColumns struct{ id, status, reason, next, order, state *column }

func newChangingColumns(n int) *changingColumns {
	return &changingColumns{id: uuids(n), status: smallints(n), reason: smallints(n), next: smallints(n), order: bigints(n), state: blobs(n)}
}

func (c *changingColumns) add(r *store.Row) {
	c.id.uuid(r.ID)
	c.status.smallint(int(r.Status))
	c.reason.smallint(int(r.Reason))
	c.next.smallint(int(r.Next))
	c.order.bigint(r.Order)
	c.state.blob(r.State)
}

// arguments are all but the id.
func (c *changingColumns) arguments() [][]byte {
	return arguments(c.status, c.reason, c.next, c.order, c.state)
}

func (w *writer) history(ch *store.Changes) {
	fresh, replacing := newHistoryColumns(len(ch.History)), newHistoryColumns(0)
	for i := range ch.History {
		record := &ch.History[i]
		if record.Replaces {
			replacing.add(record)
		} else {
			fresh.add(record)
		}
	}
	if fresh.id.count > 0 {
		w.trip.add("insert_history", nil, fresh.arguments()...)
	}
	if replacing.id.count > 0 {
		w.trip.add("replace_history", nil, replacing.arguments()...)
	}
	if len(ch.Patches) > 0 {
		w.trip.add("patch_history", nil, patchColumns(ch.Patches)...)
	}
}

type historyColumns struct{ id, epoch, lease, ended, n, by, body, result *column }

func newHistoryColumns(n int) historyColumns {
	return historyColumns{uuids(n), bigints(n), uuids(n), bigints(n), smallints(n), smallints(n), blobs(n), blobs(n)}
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

func (c *historyColumns) arguments() [][]byte {
	return arguments(c.id, c.epoch, c.lease, c.ended, c.n, c.by, c.body, c.result)
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

// lastOfEach leaves out docs that are replaced again by the same changes: a statement may write a row only once.
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
		body.blob(d.Body)
		data.blob(d.Data)
		expires.time(d.ExpiresAt)
	}
	return arguments(kind, owner, key, body, data, expires)
}

func (w *writer) remove(ch *store.Changes) {
	if len(ch.DropInbox) > 0 {
		w.trip.add("drop_inbox", nil, uuidColumn(ch.DropInbox))
	}
	if len(ch.Remove) == 0 {
		return
	}
	ids := slices.Clone(ch.Remove)
	slices.SortFunc(ids, compareUUIDs)
	owners := make([]string, len(ids))
	for i, id := range ids {
		owners[i] = id.String()
	}
	column := uuidColumn(ids)
	w.trip.add("remove_executions", nil, column)
	w.trip.add("remove_history", nil, column)
	w.trip.add("remove_docs", nil, textColumn(owners))
	w.trip.add("remove_search", nil, column)
}
