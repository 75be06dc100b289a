package claims

import (
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The picker does not look everywhere each time. It caches for a queue that it is empty, or that it has no row below its floor, so that a look
// begins where the last one ended and does not step over all index entries that were taken since the table was last vacuumed. Such an entry is
// wrong as soon as there is a row below the floor that this process has not noticed:
//
//   - Another process filed it, and its hint was lost or has not arrived. A filing of this process lowers the floor itself (filed), and one during
//     a look voids what that look learns (filings).
//   - Another transaction held it when the look passed by, and has released it: a pick that was rolled back, a process that died, a command that
//     was refused. Those of this process are reported (letGo); for the others there is no hint, in any configuration.
//
// The second case is prevented as far as a look can see: the store returns the first row of each queue, held or not, and the floor is not raised
// above it (keepBelow). The floor is thereby one look behind what could be known, so that a row that was held in the middle of those that were
// taken is not missed either: the next look begins at the first row of this one.
//
// Everything else is left to the poll (S68). Each poll asks, for the queues that claims have used since the last one, whether there is a row below
// what is cached, with one index probe for each queue and one statement for all (doubted, found). What the poll has not asked about is dropped from
// the cache when the next claim comes (use), so that the cost of the poll depends on the queues in use and not on those that exist (S71). If a
// filter matches more classes than one poll asks for, they take turns, in polls and in being dropped. No cached value is therefore older than two
// polls, or than two rounds of such turns, whatever was lost.

// heldLooks is how many looks in a row begin again at a row that others hold. If that lasts, its holder may be frozen: what was taken behind the
// row grows, and each look would step over more of it. The row is then left to the poll.
const heldLooks = 16

// passHeld counts the rows of the i-th queue whose executions others hold as seen and as refused: the queue does not end with them, and a call that
// has nothing yet looks further (S9).
func (k *pick) passHeld(i int, a *askedQueue) {
	if i < len(k.saw) && k.saw[i].Held > 0 {
		a.got += k.saw[i].Held
		a.refused = true
		k.heldBack = append(k.heldBack, a)
	}
}

// bestHeld reports whether others hold rows that the look saw. A look at the best rows of all queues together brings no others in their place, so the
// next ones ask each queue separately, as long as this lasts: otherwise nothing behind those rows would be served, and each look would ask for
// another one at once.
func (k *pick) bestHeld() bool {
	return slices.ContainsFunc(k.saw, func(look store.QueueLook) bool { return look.Held > 0 })
}

// keepBelow keeps the floor of the i-th queue at the first row that the look saw, held or not. The picker's lock is held.
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
		k.p.announce(a.classQueue)
	}
}

// lookBelow lets calls that do not wait, and would be answered with nothing, look at their queues once more and from the start: there may be a row
// below the floors, and no poll comes within the time that they have (SI16). The picker's lock is held.
func (k *pick) lookBelow() {
	if !k.p.e.Store.Info().Shared {
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
				if q.floor > math.MinInt64 { // the others were read from the start for this call
					k.p.reset(q)
				}
			})
		}
	}
}

// use records that a call uses its queues, and drops what is cached of those that polls would have asked about if the filter had been in use. The
// lock is held.
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

// doubt drops what is cached of a queue if none of the last polls has asked about it. The lock is held.
func (p *picker) doubt(q *classQueue, polls uint64) {
	if p.polls-q.asked >= polls {
		q.asked = p.polls
		p.reset(q)
		p.doubtReady(q)
	}
}

// doubted begins a poll: it returns what is cached of the queues that claims wait for or have used since the last poll, as the rows that would
// disprove it. The list is never nil, not even if it is empty: that distinguishes this poll from others.
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

// disproofs adds the rows that would disprove what is cached of a queue and, if it is one for ready executions, of the queues of its class that
// were not created. A queue that was added for another filter is left out. The lock is held.
func (p *picker) disproofs(q *classQueue, rows []store.Before) []store.Before {
	if q.asked == p.polls {
		return rows
	}
	q.asked = p.polls
	if before := q.assumed(); before > math.MinInt64 {
		rows = append(rows, store.Before{Class: q.class.ID, Block: q.block, Order: before})
	}
	for _, block := range q.unseen() {
		rows = append(rows, store.Before{Class: q.class.ID, Block: block, Order: math.MaxInt64})
	}
	return rows
}

// assumed returns the order key below which the queue has no row according to the cache. No row has the highest order key.
func (q *classQueue) assumed() int64 {
	if !q.maybe {
		return math.MaxInt64
	}
	return max(q.floor, q.head)
}

// found records that the poll saw a row which contradicts the cache.
func (p *picker) found(row store.Before) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.queues[queueID{class: row.Class}]; first != nil {
		p.reset(p.queueOf(first.class, row.Block))
	}
	p.wake()
}

// Poll asks whether rows stand below the floors of queues, and whether waiting calls repeat one that was answered before.
func (p *picker) Poll(queues bool) (ask store.PollAsk, learn func(seen *store.PollAnswer)) {
	if queues {
		ask.Queues = p.doubted()
	}
	calls, refs := p.unknownRequests()
	ask.Docs = refs
	return ask, func(seen *store.PollAnswer) {
		p.knownRequests(calls, seen.Docs)
		if p.e.Store.Info().Shared {
			p.doubtBudgets()
		}
		for i, found := range seen.Queues {
			if found {
				p.e.Meter.Woken(txn.WokenByPoll)
				p.found(ask.Queues[i])
			}
		}
	}
}
