package postgres

import "github.com/flowfabric/flowfabric/internal/store"

// dropHistory removes entries of the lease history.
func (w *writer) dropHistory(refs []store.HistoryRef) {
	if len(refs) == 0 {
		return
	}
	id, epoch := uuids(len(refs)), bigints(len(refs))
	for _, ref := range refs {
		id.uuid(ref.ID)
		epoch.bigint(ref.Epoch)
	}
	w.trip.add("drop_history", nil, arguments(id, epoch)...)
}
