package store

import (
	"bytes"
	"cmp"
	"slices"
)

// Compare orders queue rows by (order key, UUID).
func (q QueueRow) Compare(other QueueRow) int {
	return cmp.Or(cmp.Compare(q.Order, other.Order), bytes.Compare(q.ID[:], other.ID[:]))
}

// BestRows keeps the best n of the rows, without reordering them, for stores (Want.PickBest).
func BestRows(rows []QueueRow, n int) []QueueRow {
	if len(rows) <= n {
		return rows
	}
	sorted := slices.SortedFunc(slices.Values(rows), QueueRow.Compare)
	last := sorted[n-1]
	return slices.DeleteFunc(rows, func(row QueueRow) bool { return row.Compare(last) > 0 })
}
