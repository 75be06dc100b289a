package claims

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
)

// unseen returns the block numbers, besides 0, under which ready executions may be filed (core.ReadyBlocks) and for which there is no queue yet.
// Creating them for every class would cost two empty queues for each user. A survey finds rows there, and dropping what is cached of a queue
// includes these.
func (q *classQueue) unseen() (blocks []int32) {
	if q.block != 0 || q.class.Needs == "" {
		return nil
	}
	for _, block := range core.ReadyBlocks() {
		if !slices.ContainsFunc(q.behind, func(other *classQueue) bool { return other.block == block }) {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// doubtReady makes the class be surveyed again if it may have rows in queues that were not created. The lock is held.
func (p *picker) doubtReady(q *classQueue) {
	if q.surveyed && len(q.unseen()) > 0 {
		q.surveyed = false
		p.announce(q)
	}
}

// notFull removes a queue from those that wait for room. The lock is held.
func (p *picker) notFull(q *classQueue) {
	if delete(p.full[q.full], q); len(p.full[q.full]) == 0 {
		delete(p.full, q.full)
		p.lapses.forget(q.full)
	}
}
