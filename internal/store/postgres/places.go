package postgres

import (
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// place is the location of the current version of a row (its ctid), as the server sends it. While the row is locked, no other transaction can move
// it, so that the locking transaction finds it there without an index.
type place [6]byte

// places records the locations of the rows that a transaction has locked.
type places struct {
	executions []executionPlace
	queue      []queuePlace
	sorted     bool
}

type executionPlace struct {
	id base.UUID
	place
}

type queuePlace struct {
	store.QueueRow
	place
}

func compareExecutionPlaces(a, b executionPlace) int { return compareUUIDs(a.id, b.id) }

func compareQueueRows(a, b store.QueueRow) int {
	return cmp.Or(compareUUIDs(a.ID, b.ID), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Order, b.Order))
}

func compareQueuePlaces(a, b queuePlace) int { return compareQueueRows(a.QueueRow, b.QueueRow) }

// sort is called before any lookup. Rows usually come sorted already.
func (p *places) sort() {
	if p.sorted {
		return
	}
	p.sorted = true
	if !slices.IsSortedFunc(p.executions, compareExecutionPlaces) {
		slices.SortFunc(p.executions, compareExecutionPlaces)
	}
	if !slices.IsSortedFunc(p.queue, compareQueuePlaces) {
		slices.SortFunc(p.queue, compareQueuePlaces)
	}
}

func (p *places) ofExecution(id base.UUID) (place, bool) {
	i, found := slices.BinarySearchFunc(p.executions, id, func(e executionPlace, id base.UUID) int { return compareUUIDs(e.id, id) })
	if !found {
		return place{}, false
	}
	return p.executions[i].place, true
}

func (p *places) ofQueueRow(r store.QueueRow) (place, bool) {
	i, found := slices.BinarySearchFunc(p.queue, r, func(e queuePlace, r store.QueueRow) int { return compareQueueRows(e.QueueRow, r) })
	if !found {
		return place{}, false
	}
	return p.queue[i].place, true
}
