package engine

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
)

// unseen are the numbers, beside 0, under which what is ready may lie (core.ReadyBlocks) and of which there is no queue yet: as many classes
// as there are users would have two queues each that stay empty. A survey tells of rows there, and whoever doubts a queue doubts these.
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

// doubtReady lets the class be surveyed again if it may have rows in queues that were not made. The lock is held.
func (p *picker) doubtReady(q *classQueue) {
	if q.surveyed && len(q.unseen()) > 0 {
		q.surveyed = false
		p.tell(q)
	}
}

// notFull takes a queue from those that wait for room. The lock is held.
func (p *picker) notFull(q *classQueue) {
	if delete(p.full[q.full], q); len(p.full[q.full]) == 0 {
		delete(p.full, q.full)
		p.lapses.forget(q.full)
	}
}
