package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Each row that a pick would take passes admission (S19, S44). One that is refused is blocked, and filed under the number of the key
// that had no room for it; if the whole queue needs that key, the rows behind it are passed over as they are. A queue that was passed
// over is not asked again until its key has room (S46): nothing is moved then, and nothing looks for it in between.

// loadRoom locks what admission looks at, for the rows that may be taken. Of slots of which there are known to be plenty it is checked
// when they are taken (slots_known.go).
func (k *pick) loadRoom(ctx context.Context, u *unit) error {
	var want store.Want
	asking := map[string]int64{}
	for _, a := range k.asked {
		if a.passed != "" || k.knowsRoom(u, a, asking) {
			continue
		}
		for _, row := range a.rows {
			if x := u.entries[row.ID].x; u.limits(x) {
				u.wantRoom(&want, x)
			}
		}
	}
	want.Docs, want.Counters = once(want.Docs), once(want.Counters)
	if k.late {
		k.lateLanes(u, &want)
	}
	if err := u.load(ctx, want); err != nil {
		return err
	}
	for _, key := range want.Counters {
		delete(u.believed, key)
	}
	u.believeSlots()
	u.openBooks()
	return nil
}

// lateLanes adds the lanes behind the keys of admission (S73). Where no key is locked they are held when the pick is written.
func (k *pick) lateLanes(u *unit, want *store.Want) {
	var lanes store.Want
	k.wantLanes(u.dict, &lanes)
	if len(want.Docs)+len(want.Counters)+len(lanes.Counters) == 0 {
		slices.Sort(lanes.ShareLanes)
		u.ch.AssumeLanes, u.ch.Dictionary = lanes.ShareLanes, u.dict.version
		return
	}
	want.ShareLanes = lanes.ShareLanes
	want.Counters = append(want.Counters, lanes.Counters...)
}

// knowsRoom reports whether the slots are known that the rows of a queue ask for, and that there are enough for all of them. asking counts
// the rows for each key.
func (k *pick) knowsRoom(u *unit, a *askedQueue, asking map[string]int64) bool {
	if len(a.rows) == 0 {
		return true
	}
	if a.block != 0 || slices.ContainsFunc(a.rows, func(row store.QueueRow) bool { return !u.e.slots.decides(u, u.entries[row.ID].x) }) {
		return false
	}
	rows := int64(len(a.rows))
	bounds := u.entries[a.rows[0].ID].x.SlotBounds(u.room()) // of the whole class
	for key, most := range bounds {
		if u.believed[key]+asking[key]+rows > most {
			return false
		}
	}
	for key := range bounds {
		asking[key] += rows
	}
	return true
}

// admitted reports whether the execution may be taken; else it is blocked on the key that has no room for it.
func (k *pick) admitted(u *unit, a *askedQueue, ent *entry) bool {
	if !u.limits(ent.x) {
		return true
	}
	fx := u.engineEffects()
	fx.Now = max(fx.Now, ent.x.LastMutationAt)
	why := ent.x.Admission(u.room(), u.budgetsOf(ent.x), fx.Now)
	switch {
	case why == nil:
		return true
	case k.believed != nil: // it is queued, and a pick finds out
		a.passed = why.Key
	default:
		k.refuse(u, a, ent, fx, why)
	}
	return false
}

// refuse blocks the execution, and passes over the rest of its queue if that needs the same key.
func (k *pick) refuse(u *unit, a *askedQueue, ent *entry, fx *core.Effects, why *core.Refusal) {
	if !k.beyond { // else the look begins anew
		u.e.meter.refusedAdmission(why)
	}
	passes := k.passes(u, a, ent.x, why.Key)
	if first := (blockedFirst{a.class.ID, why.Key}); !passes || !k.stands[first] {
		if ent.x.Refuse(fx, why) {
			u.touch(ent)
			u.keep(fx)
			u.suspectGone(ent.x, why)
		}
		setIn(&k.stands, first, true)
	}
	if k.full[why.Key] == nil && why.NextFree != 0 && strings.HasPrefix(why.Key, "rate:") && !k.p.looksAt(why.Key, why.NextFree) {
		timer := u.timerAt(timerRates, roundUp(why.NextFree, timerGrid)) // by the store's clock, which decides (S47)
		timer.Texts = append(timer.Texts, why.Key)
	}
	setIn(&k.full, why.Key, why)
	if passes {
		a.passed = why.Key
	} else {
		a.refused = true
	}
}

// turnedAway tells that a call which has nothing yet does not know what comes next: all rows that were seen of a queue were refused, and the
// one behind them may be the best (S18). It looks again at once.
func (k *pick) turnedAway(call *claim) bool {
	return len(k.given[call]) == 0 && slices.ContainsFunc(k.asked, func(a *askedQueue) bool { return a.allRefused() && a.users[call.filter] })
}

// allRefused tells that nothing is left of what was asked for, that some of it was refused, and that there may be more.
func (a *askedQueue) allRefused() bool { return a.refused && len(a.rows) == 0 && a.got >= a.limit }

// learnRefused lets the next look see further, each time twice as far: a long row of those who are refused is soon at its end. The
// picker's lock is held.
func (a *askedQueue) learnRefused() {
	a.more = 0
	if a.allRefused() {
		a.more = int32(min(2*a.got, maxClaimTasks))
	}
}

// passes reports whether the refusal of an execution speaks for those behind it in its queue (S19). Of what lies blocked on a key each
// needs that; what it needs besides depends on how far it has come.
func (k *pick) passes(u *unit, a *askedQueue, x *core.Execution, key string) bool {
	if core.KeyBlock(a.block) {
		return x.BlockedOn == key
	}
	return u.dict.everyoneNeeds(a.class, key)
}

// speaksFor reports whether what was refused on the key speaks for those of the class that are blocked on it. Of a quota everybody takes one;
// of a budget another class may need less (S19), and of the same class some may not need it at all.
func (k *pick) speaksFor(class *core.Class, key string) bool {
	return !core.OfBudget(key) || k.stands[blockedFirst{class.ID, key}] && k.p.e.dict.now().everyoneNeeds(class, key)
}

// looksAt reports whether somebody looks at the rate when it has room at that moment.
func (p *picker) looksAt(key string, at core.Time) bool {
	armed, ok := p.armed.Load(key)
	return ok && armed == at
}

// blockedFirst tells of a class that one of its executions is blocked on a key: those behind it that need the same stay as they are
// (S19).
type blockedFirst struct {
	class int32
	key   string
}

// learnFull remembers which queues wait for room, unless it has come meanwhile, and which queues were found. The picker's lock is
// held.
func (k *pick) learnFull() {
	p := k.p
	p.apart = p.apart && len(k.full) > 0
	for _, a := range k.asked {
		if a.passed != "" {
			k.waitFor(a.classQueue, a.passed)
		}
		k.found = k.found || a.refused && !k.spent(a)
	}
	numbers := map[int32][]string{} // of the keys without room
	for key, why := range k.full {
		if why.NextFree != 0 && strings.HasPrefix(key, "rate:") {
			p.armed.Store(key, why.NextFree)
		}
		number := core.BlockNumber(key)
		numbers[number] = append(numbers[number], key)
	}
	for _, a := range k.asked {
		k.waitBehind(a, numbers)
	}
	k.learnBlocks()
}

// learnBlocks takes up the queues in which the survey saw rows. Those that were not asked are asked next: also one that something was
// filed in after the queues to be asked were chosen, and that is therefore known by now. The picker's lock is held.
func (k *pick) learnBlocks() {
	p := k.p
	var asked map[queueID]*askedQueue
	if len(k.blocks) > 0 {
		asked = k.byID()
	}
	for _, class := range k.survey {
		p.queue(class).surveyed = p.surveys == k.age
		for _, block := range k.blocks[class.ID] {
			q := p.queueOf(class, block)
			if asked[q.id()] != nil {
				continue
			}
			if !q.maybe {
				p.reset(q)
			}
			k.found = k.found || q.takes()
		}
	}
}

// waitBehind passes the queues over of what is blocked on one of the keys, of a class that was asked. The picker's lock is held.
func (k *pick) waitBehind(a *askedQueue, numbers map[int32][]string) {
	if first := k.p.queues[queueID{class: a.class.ID}]; first != nil && len(numbers) > 0 {
		for _, q := range first.behind {
			for _, key := range numbers[q.block] {
				if k.speaksFor(a.class, key) {
					k.waitFor(q, key)
				}
			}
		}
	}
}

// waitFor passes a queue over until its key has room.
func (k *pick) waitFor(q *classQueue, key string) {
	p := k.p
	if p.freed[key] || p.freed["*"] {
		k.found = true
		return
	}
	q.full = key
	if why := k.full[key]; why != nil && max(why.NextFree, why.Retry) != 0 {
		p.lapses.add(key, p.e.cfg.Clock.Now().Add(time.Duration(max(why.NextFree, why.Retry).Sub(k.now))*time.Millisecond))
	}
	if p.full[key] == nil {
		p.full[key] = map[*classQueue]bool{}
	}
	p.full[key][q] = true
}

// roomIn tells that admission keys may have room (S47): whoever waits for one is served. "*" is all of them.
func (p *picker) roomIn(keys []string) { p.committed(pickNews{keys: keys}) }

// room is roomIn for a caller that holds the lock. It reports whether somebody may be served now.
func (p *picker) room(keys []string) bool {
	if len(keys) == 0 {
		return false
	}
	if len(p.full) == 0 && keys[0] == "*" {
		p.freed["*"] = true
		return false
	}
	for _, key := range keys {
		p.roomy(key)
	}
	return true
}

// roomy lets queues that wait for the key be asked again. The lock is held.
func (p *picker) roomy(key string) {
	p.freed[key] = true
	if key == "*" {
		for other := range p.full {
			p.roomy(other)
		}
		return
	}
	for q := range p.full[key] {
		q.full = ""
		p.tell(q)
	}
	delete(p.full, key)
	p.lapses.forget(key)
	p.armed.Delete(key)
}

// lapseFull lets queues be asked again whose keys have room by now: a rate at its next free moment (S40), a budget at its reset. The
// lock is held.
func (p *picker) lapseFull(now time.Time) {
	for key, at := p.lapses.first(); key != "" && !at.After(now); key, at = p.lapses.first() {
		p.roomy(key)
	}
}

// blockedElsewhere tells that other processes may have blocked executions: nobody knows any more under which numbers there are rows.
func (p *picker) blockedElsewhere() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubtSurveys()
	p.wake()
}

// doubtSurveys is blockedElsewhere for a caller that holds the lock and wakes the picker.
func (p *picker) doubtSurveys() {
	p.surveys++
	for _, q := range p.queues {
		if q.block == 0 && q.surveyed {
			q.surveyed = false
			p.tell(q)
		}
	}
}

// doubtBudgets lets queues that wait for budgets be asked again. Room in a budget may come without an event in the log (B42), so that
// the poll, which is the safety net under all hints, has to look.
func (p *picker) doubtBudgets() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.full {
		if core.OfBudget(key) {
			p.roomy(key)
			p.wake()
		}
	}
}
