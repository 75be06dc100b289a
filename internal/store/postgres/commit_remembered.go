package postgres

import (
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// remembered writes rows that this transaction has not looked at, if they are still what the caller remembers.
func (w *writer) remembered(ch *store.Changes) {
	if len(ch.Assume) == 0 {
		return
	}
	n := len(ch.Assume)
	id, version, changing := uuids(n), ints(n), newChangingColumns(n)
	for _, x := range sortedByID(ch.Assume) {
		r := store.ChangedRowOf(x)
		id.uuid(r.ID)
		version.int(int32(r.Version))
		changing.add(&r)
	}
	until := ch.AssumeUntil
	if until == 0 {
		until = core.Time(math.MaxInt64)
	}
	w.trip.add("update_remembered", nil, slices.Concat(arguments(id), changing.arguments(), arguments(version), [][]byte{bigint(int64(until))})...)
}
