package engine

import (
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

// The picker does not look everywhere each time. It believes of a queue that it is empty, or that no row stands below its floor, so that a
// look begins where the last one ended and does not step over all that was taken since the table was last vacuumed. Such a belief is wrong
// as soon as a row stands below of which this process has no notice:
//
//   - Another process filed it, and its hint was lost or is under way. A filing of this process lowers the floor itself (filed), and one
//     during a look makes what that look learns void (filings).
//   - Another transaction held it when the look passed by, and has let it go: a pick that was rolled back, a process that died, a command
//     that was refused. Those of this process are reported (letGo); for the others there is no hint, in any configuration.
//
// The second is prevented as far as a look can see: the store returns the first row of each queue, held or not, and the floor is not raised
// above it (keepBelow). That is one look behind what could be known, so that a row which was held in the midst of those that were taken
// is not passed by either: the next look begins at the first row of this one.
//
// Everything else is left to the poll (S68). Each asks, for the queues that claims have used since the last one, whether there is a row
// below what is believed of them, with one step into the index for each queue and one statement for all (doubted, found). What the poll
// has not asked about is not believed any more when the next claim comes (use), so that the cost of the poll goes with the queues in use
// and not with those that exist (S71). The classes of a filter that matches more than one poll asks for take turns, in polls and in being doubted.
// No belief is therefore older than two polls, or than two rounds of such turns, whatever was lost.

// heldLooks is how many looks in a row begin again at a row that others hold. If that lasts, its holder may be frozen: what was taken
// behind the row grows, and stepping over it in each look would cost more and more. It is then left to the poll.
const heldLooks = 16

// passHeld counts the rows of the i-th queue asked whose executions others hold as seen, and as refused: the queue does not end with them,
// and a call that has nothing yet looks further (S9).
func (k *pick) passHeld(i int, a *askedQueue) {
	if i < len(k.saw) && k.saw[i].Held > 0 {
		a.got += k.saw[i].Held
		a.refused = true
	}
}

// keepBelow keeps the floor of the i-th queue asked at the first row that the look saw, held or not. The picker's lock is held.
func (k *pick) keepBelow(i int, a *askedQueue) {
	if i >= len(k.saw) || k.saw[i].First >= a.floor {
		a.held = 0
		return
	}
	first := k.saw[i].First
	if first > a.from {
		a.held = 0
	} else if a.held++; a.held > heldLooks {
		return
	}
	a.floor = first
	if (a.came == 0 || first < a.first) && first < a.head {
		a.head = first
		k.p.tell(a.classQueue)
	}
}

// lookBelow lets calls that do not wait, and would be answered with nothing, look at their queues once more and from the start: a row may
// stand below the floors, and there is no poll within the time that they have (SI16). The picker's lock is held.
func (k *pick) lookBelow() {
	if !k.p.e.store.Info().Shared {
		return
	}
	for _, call := range k.calls {
		if call.req.Wait > 0 || call.whole || len(k.given[call]) > 0 || k.errs[call] != nil || k.drain[call] {
			continue
		}
		above := func(a *askedQueue) bool { return a.users[call.filter] && a.from > math.MinInt64 }
		if slices.ContainsFunc(k.asked, above) {
			call.whole, k.below = true, true
			k.p.each(call, func(q *classQueue) {
				if q.floor > math.MinInt64 { // the others were looked at from the start on behalf of this call
					k.p.reset(q)
				}
			})
		}
	}
}

// use notes that a call looks at its queues, and forgets what is believed of those that polls would have asked about had the filter been in
// use. The lock is held.
func (p *picker) use(call *claim) {
	m := p.matchedBy(call)
	m.used = true
	most := p.pollAtMost()
	round := m.pollRound(most)
	for missed := min(p.polls-m.fresh, round); missed > 0; missed-- {
		for _, q := range m.pollNext(most) {
			p.doubt(q, round)
			for _, other := range q.behind {
				p.doubt(other, round)
			}
		}
	}
	m.fresh = p.polls
}

// doubt forgets what is believed of a queue if none of the last polls has asked about it. The lock is held.
func (p *picker) doubt(q *classQueue, polls uint64) {
	if p.polls-q.asked >= polls {
		q.asked = p.polls
		p.reset(q)
		p.doubtReady(q)
	}
}

// doubted begins a poll: it lists what is believed of the queues that claims wait for or have used since the last one, as the rows that
// would disprove it. The list is never nil, which tells this poll from others, also where it asks about no queue.
func (p *picker) doubted() []store.Before {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polls++
	rows := []store.Before{}
	for _, call := range p.waiting {
		p.matchedBy(call).used = true
	}
	for _, m := range p.matched {
		if !m.used {
			continue
		}
		m.used, m.fresh = false, p.polls
		for _, q := range m.pollNext(p.pollAtMost()) {
			rows = p.disproofs(q, rows)
			for _, other := range q.behind {
				rows = p.disproofs(other, rows)
			}
		}
	}
	return rows
}

// disproofs adds the rows that would disprove what is believed of a queue, and, if it is one for what is ready, of those of its class that
// were not made. A queue that was added for another filter is left out. The lock is held.
func (p *picker) disproofs(q *classQueue, rows []store.Before) []store.Before {
	if q.asked == p.polls {
		return rows
	}
	q.asked = p.polls
	if before := q.believed(); before > math.MinInt64 {
		rows = append(rows, store.Before{Class: q.class.ID, Block: q.block, Order: before})
	}
	for _, block := range q.unseen() {
		rows = append(rows, store.Before{Class: q.class.ID, Block: block, Order: math.MaxInt64})
	}
	return rows
}

// believed is the order key below which the queue is believed to have no row: none has the highest that there is.
func (q *classQueue) believed() int64 {
	if !q.maybe {
		return math.MaxInt64
	}
	return max(q.floor, q.head)
}

// found notes that the poll saw a row where none was believed to be.
func (p *picker) found(row store.Before) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.queues[queueID{class: row.Class}]; first != nil {
		p.reset(p.queueOf(first.class, row.Block))
	}
	p.wake()
}
