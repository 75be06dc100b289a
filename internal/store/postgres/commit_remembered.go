package postgres

import (
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// remembered writes rows that this transaction has not loaded, provided that they still have the version that the caller remembers.
func (w *writer) remembered(ch *store.Changes) {
	if len(ch.Assume) == 0 {
		return
	}
	n := len(ch.Assume)
	id, version, draw, changing := w.spare.uuids(n), w.spare.ints(n), w.spare.ints(n), newChangingColumns(w.spare, n)
	for _, x := range sortedByID(ch.Assume) {
		r := store.ChangedRowOf(x)
		id.uuid(r.ID)
		version.int(int32(r.Version >> 32))
		draw.int(int32(r.Version))
		changing.add(&r)
	}
	until := ch.AssumeUntil
	if until == 0 {
		until = base.Time(math.MaxInt64)
	}
	w.trip.add("update_remembered", nil, slices.Concat(arguments(id), changing.arguments(), arguments(version, draw), [][]byte{bigint(int64(until)), w.draw})...)
	w.trip.columns = append(w.trip.columns, id, version, draw, changing.stage, changing.order, changing.state)
}

// held verifies that the lanes are as the caller assumes and locks them against changes. It comes after the counters (S73).
func (w *writer) held(ch *store.Changes) {
	if len(ch.AssumeLanes) > 0 {
		w.trip.add("hold_lanes", nil, intColumn(ch.AssumeLanes))
		w.standing(ch) // changes made before the lanes were locked are visible now
	}
}

// assumed verifies that the queues and docs are as the caller assumes. It comes before anything is filed.
func (w *writer) assumed(ch *store.Changes) {
	if len(ch.AssumeEmpty) > 0 {
		n := len(ch.AssumeEmpty)
		class, block, floor := ints(n), ints(n), bigints(n)
		for _, q := range ch.AssumeEmpty {
			class.int(q.Class)
			block.int(q.Block)
			floor.bigint(q.Floor)
		}
		w.trip.add("assume_empty", nil, arguments(class, block, floor)...)
	}
	if len(ch.AssumeDocs) > 0 {
		n := len(ch.AssumeDocs)
		kind, key, body := smallints(n), blobs(n), blobs(n)
		for i := range ch.AssumeDocs {
			doc := &ch.AssumeDocs[i]
			kind.smallint(int(doc.Kind))
			key.text(doc.Key)
			body.blob(doc.StoredBody())
		}
		w.trip.add("assume_docs", nil, arguments(kind, key, body)...)
	}
}
