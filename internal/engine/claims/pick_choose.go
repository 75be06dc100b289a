package claims

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// claimGroup is the calls of a pick that have the same filter.
type claimGroup struct {
	*matchedQueues
	max int // how many tasks they want together
}

// gather determines what the calls may take from and which classes must be surveyed.
func (k *pick) gather() {
	p := k.p
	p.mu.Lock()
	defer p.mu.Unlock()
	k.expect(p.e.Cfg.Clock.Now())
	k.known = p.e.Dict.Now().Version
	k.age = p.surveys
	// What is freed from here on is recorded for this pick: learnFull and learnSkipped compare, so that a key which gets room while the pick is
	// under way is not recorded as full afterwards.
	k.aside = p.asideNow(p.e.Cfg.Clock.Now())
	clear(p.freed)
	places := map[string]int{}
	for _, call := range k.calls {
		if p.lanesHeld(call) {
			txn.SetIn(&k.shut, call, true)
		}
		place, known := places[call.filter]
		if !known {
			place = len(k.groups)
			places[call.filter] = place
			k.groups = append(k.groups, &claimGroup{matchedQueues: p.matchedBy(call)})
		}
		k.groups[place].max += call.req.Max
	}
	surveyed := map[*classQueue]bool{}
	for _, g := range k.groups {
		for _, lane := range g.lanes {
			for _, q := range lane.unsurveyed {
				if !q.surveyed && !surveyed[q] {
					surveyed[q] = true
					k.survey = append(k.survey, q.class)
				}
			}
			lane.unsurveyed = nil // a class that is not surveyed by this pick is announced as news (putBack)
		}
	}
	slices.SortFunc(k.survey, func(a, b *core.Class) int { return cmp.Compare(a.ID, b.ID) })
}

// openLanes returns the candidates of the group in lanes that allow picks, in order of their names.
func (k *pick) openLanes(g *claimGroup) (lanes []*laneQueues) {
	for _, name := range slices.Sorted(maps.Keys(g.lanes)) {
		if k.p.openLane(name) {
			lanes = append(lanes, g.lanes[name])
		}
	}
	return lanes
}

// mostPeeks bounds how long the calls of one pick wait until the heads of their queues are known.
const mostPeeks = 64

// peek learns the heads of queues of which nothing is known, as after a start. It continues while most turns have more of them than can be asked: a
// queue with an unknown head keeps the rest of its turn from being served (S18), so a transaction would lock rows and keys to give nothing.
func (k *pick) peek() {
	for range mostPeeks {
		if !k.peekSome() || !k.manyUnknown() || k.p.e.Stopping() {
			return
		}
	}
}

// manyUnknown reports whether a lane has more queues with unknown heads than a pick may ask in addition to one of each turn.
func (k *pick) manyUnknown() bool {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	for _, g := range k.groups {
		for _, lane := range k.openLanes(g) {
			if len(lane.unknown) > len(lane.order)+askAll {
				return true
			}
		}
	}
	return false
}

// peekSome reads the heads of as many queues as one read takes, without locks, and without making a filing wait: what is filed meanwhile replaces
// what it saw. It reports whether it has learned anything.
func (k *pick) peekSome() bool {
	unknown, want := k.unknown()
	if len(unknown) == 0 {
		return false
	}
	ctx, cancel := k.p.e.Bounded()
	defer cancel()
	loaded, err := k.p.e.Store.Read(ctx, want) // if it fails, the transaction will fail in the same way
	heads := map[queueID]int64{}
	if err == nil {
		for _, row := range loaded.Picked {
			heads[queueID{row.Class, row.Block}] = row.Order
		}
	}
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	for _, u := range unknown {
		q := u.classQueue
		// A filing during the read has set the head itself, and knows better. After a failure the queue is announced again, or its head would stay
		// unknown without anything to look for it.
		if err == nil && q.filings == u.filings {
			q.head, q.maybe = heads[q.id()]
		} else {
			k.p.announce(q)
		}
	}
	return err == nil
}

// unknownQueue is a queue whose head is not known.
type unknownQueue struct {
	*classQueue
	filings uint64 // value of its filings before the read: hints may come at any time
}

// unknown returns queues whose heads are not known, and what to read of them. If there are few queues, or few of those, it returns none: they are
// simply asked.
func (k *pick) unknown() (unknown []unknownQueue, want store.Want) {
	p := k.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, few := k.few(askAll); few {
		return nil, want
	}
	most := 0
	for _, g := range k.groups {
		for _, lane := range k.openLanes(g) {
			most += len(lane.unknown)
		}
	}
	if most <= askAll {
		return nil, want
	}
	seen := map[*classQueue]bool{}
	for _, g := range k.groups {
		for _, lane := range k.openLanes(g) {
			for _, q := range lane.peek(peekAtMost - len(unknown)) {
				if !seen[q] {
					seen[q] = true
					unknown = append(unknown, unknownQueue{q, q.filings})
					want.Pick = append(want.Pick, store.Pick{Class: q.class.ID, Block: q.block, Floor: q.floor, Limit: 1})
				}
			}
		}
	}
	if len(unknown) > askAll {
		return unknown, want
	}
	for _, u := range unknown {
		p.announce(u.classQueue)
	}
	return nil, want
}

// few returns the queues that the calls may take from, each once, if there are no more than most. The lock is held.
func (k *pick) few(most int) (all []*classQueue, ok bool) {
	seen := map[*classQueue]bool{}
	for _, g := range k.groups {
		for _, lane := range k.openLanes(g) {
			some, ok := lane.few(most)
			if !ok {
				return nil, false
			}
			for _, q := range some {
				if !seen[q] {
					seen[q] = true
					all = append(all, q)
				}
			}
		}
	}
	slices.SortFunc(all, (*classQueue).compare) // queues are announced in any order
	return all, len(all) <= most
}

// choose asks all queues if there are few. Otherwise it asks those that their lanes serve first, the same number for every lane, and records up to
// which order key their rows may be taken.
func (k *pick) choose() {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	if all, few := k.few(askFew); few {
		for _, q := range all {
			k.ask(q)
		}
		return
	}
	// Queues are taken out of the order of their lanes while they are asked. putBack announces them again, whatever becomes of the pick.
	k.taken = map[*classQueue]bool{}
	txn.SetIn(&k.p.taking, k, true)
	lanes := k.serving()
	k.p.turning.Lock()
	defer k.p.turning.Unlock()
	for _, lane := range lanes {
		k.enter(lane)
	}
	k.takeTurns(lanes)
	k.noteLeft(lanes)
}

// takeTurns asks the first queue of each lane, then the second, and so on. Both locks are held.
func (k *pick) takeTurns(lanes []*servedLane) {
	for most, more := k.askable(), true; more; {
		more = false
		for _, lane := range lanes {
			if len(k.asked) == most {
				return
			}
			if q := k.takeFirst(lane); q != nil {
				k.ask(q)
				more = true
			}
		}
	}
}

// askable returns the maximum number of queues to ask: each row that is taken may come from another queue.
func (k *pick) askable() int {
	wanted := 0
	for _, g := range k.groups {
		wanted += g.max
	}
	return min(max(wanted+wanted/4, leastOfMany), askAtMost)
}

// ask adds a queue to those that are asked. The lock is held.
func (k *pick) ask(q *classQueue) {
	a := &askedQueue{classQueue: q, turn: k.p.turnOf(q.class), filingsThen: q.filings, from: q.floor, last: q.floor, headThen: q.head, users: map[string]bool{}}
	for _, g := range k.groups {
		if g.lanes[q.class.Lane] != nil && g.matches(q.class) {
			a.users[g.filter] = true
			a.limit = min(a.limit+g.max, maxClaimTasks)
		}
	}
	k.asked = append(k.asked, a)
}

// servedLane is one lane with its candidates for each group of calls that may take from it.
type servedLane struct {
	name   string
	groups []*laneQueues
	of     []*claimGroup
}

// serving returns the lanes that are open, in order of their names.
func (k *pick) serving() (lanes []*servedLane) {
	places := map[string]*servedLane{}
	for _, g := range k.groups {
		for _, l := range k.openLanes(g) {
			if places[l.name] == nil {
				places[l.name] = &servedLane{name: l.name}
				lanes = append(lanes, places[l.name])
			}
			lane := places[l.name]
			lane.groups, lane.of = append(lane.groups, l), append(lane.of, g)
		}
	}
	slices.SortFunc(lanes, func(a, b *servedLane) int { return cmp.Compare(a.name, b.name) })
	return lanes
}

// enter lets the turns that may have been idle take part, as in one round of all keys with candidates (S24): the v with which a key enters depends
// on the smallest v among the others, which belongs to one of those that stand first. Both locks are held.
func (k *pick) enter(lane *servedLane) {
	var keys []string
	entering := map[string]bool{}
	add := func(key string) {
		if !entering[key] {
			entering[key] = true
			keys = append(keys, key)
		}
	}
	for _, l := range lane.groups {
		for _, t := range l.entering {
			if _, any := t.first(); any && l.turns[t.key] == t {
				add(t.key)
			}
		}
		if first := k.standing(l); first != nil && first.key != "" {
			add(first.key)
		}
	}
	if len(keys) > 0 {
		k.p.turns.Round(lane.name, keys, weightsOf(k.p.e.Dict.Now().Lanes[lane.name]))
	}
	for _, l := range lane.groups {
		for _, t := range l.entering {
			if t.entering = false; l.turns[t.key] == t {
				t.v, _ = k.p.turns.Standing(lane.name, t.key)
				heap.Fix(l, t.pos)
			}
		}
		l.entering = nil
	}
}

// standing returns the first turn that has entered and has candidates, or nil. Turns that have not entered stand before it and are skipped. Both
// locks are held.
func (k *pick) standing(l *laneQueues) *turnQueues {
	var aside []*turnQueues
	defer func() {
		for _, t := range aside {
			heap.Push(l, t)
		}
	}()
	for len(l.order) > 0 {
		t := l.order[0]
		if _, any := t.first(); !any {
			l.drop(t)
			continue
		}
		v, entered := k.p.turns.Standing(l.name, t.key)
		switch {
		case t.entering || t.key != "" && !entered:
			heap.Pop(l)
			aside = append(aside, t)
		case t.key != "" && v != t.v:
			t.v = v
			heap.Fix(l, 0)
		default:
			return t
		}
	}
	return nil
}

// takeFirst removes and returns the queue that the lane serves first of those that are left, or nil. Both locks are held.
func (k *pick) takeFirst(lane *servedLane) *classQueue {
	var best *turnQueues
	for _, l := range lane.groups {
		if t := k.firstTurn(l); t != nil && (best == nil || k.before(t, best)) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	q := heap.Pop(best).(placedQueue).classQueue
	k.taken[q] = true
	return q
}

// before reports whether the first queue of turn a is served before that of b. The two may have the same key, for different calls.
func (k *pick) before(a, b *turnQueues) bool {
	if order := cmp.Or(cmp.Compare(a.v, b.v), cmp.Compare(a.key, b.key)); order != 0 {
		return order < 0
	}
	return a.queues[0].compare(b.queues[0]) < 0
}

// firstTurn returns the turn that is served first of those with queues that are not taken yet, or nil. Both locks are held.
func (k *pick) firstTurn(l *laneQueues) *turnQueues {
	for len(l.order) > 0 {
		t := l.order[0]
		c, any := t.first()
		for any && k.taken[c.classQueue] {
			heap.Pop(t)
			c, any = t.first()
		}
		switch v, entered := k.p.turns.Standing(l.name, t.key); {
		case !any:
			l.drop(t)
		case t.key != "" && entered && v != t.v:
			t.v = v
			heap.Fix(l, 0)
		default:
			return t
		}
	}
	return nil
}

// noteLeft records, for each group, which turn comes first among the queues that were not asked, and the lowest head in it. Turns are taken as a
// whole, so of the turns that were asked only that one may have queues left. Both locks are held.
func (k *pick) noteLeft(lanes []*servedLane) {
	for _, lane := range lanes {
		for i, l := range lane.groups {
			t := k.firstTurn(l)
			if t == nil {
				continue
			}
			// The turn is only partly known. Serving stops before it would be next, and within it rows may be taken up to the best row that was not
			// read.
			txn.SetIn(&k.left, leftFor{lane.name, lane.of[i].filter}, t.key)
			k.bind(laneTurn{lane.name, t.key}, t.queues[0].head)
		}
	}
}

// bind records that rows of the turn may be taken only up to an order key: a queue that was not asked may have a row there.
func (k *pick) bind(turn laneTurn, head int64) {
	if bound, ok := k.bound[turn]; !ok || head < bound {
		txn.SetIn(&k.bound, turn, head)
	}
}

// bindTurn is bind for a turn of which no queue was asked. The lock is held.
func (k *pick) bindTurn(turn laneTurn) {
	for _, g := range k.groups {
		lane := g.lanes[turn.lane]
		if len(k.left) == 0 || lane == nil || lane.turns[turn.key] == nil {
			continue
		}
		if c, any := lane.turns[turn.key].first(); any {
			k.bind(turn, c.head)
		}
	}
}

// leftFor identifies the queues of a lane that calls of a filter may take from and that were not asked.
type leftFor struct{ lane, filter string }

func (l leftFor) compare(other leftFor) int {
	return cmp.Or(cmp.Compare(l.lane, other.lane), cmp.Compare(l.filter, other.filter))
}

// putBack puts the queues that were taken out of the order of their lanes back into it, and leaves classes that could not be surveyed to the next
// pick. It must be called when the pick is over, whatever its outcome. The picker's lock is held.
func (k *pick) putBack() {
	delete(k.p.taking, k)
	for _, a := range k.asked {
		if k.taken != nil || a.head < a.headThen {
			k.p.announce(a.classQueue)
		}
	}
	k.taken = nil
	for _, class := range k.survey {
		if first := k.p.queue(class); !first.surveyed {
			k.p.announce(first)
		}
	}
}
