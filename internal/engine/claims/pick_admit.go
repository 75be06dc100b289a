package claims

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Each row that a pick would take passes admission (S19, S44). A row that is refused is blocked, and filed under the block number of the key that
// had no room for it. If the whole queue needs that key, the rows behind it are passed over unchanged. A queue that was passed over is not asked
// again until its key has room (S46). So no rows are moved when room appears, and nothing polls for it.

// loadRoom locks the budgets, rates and counters that admission needs for the rows that may be taken. Slots that are known to be plentiful are not
// locked here; the commit checks them when they are taken (slots_known.go).
func (k *pick) loadRoom(ctx context.Context, u *txn.Tx) error {
	var want store.Want
	asking := map[string]int64{}
	for _, a := range k.asked {
		if a.passed != "" || k.knowsRoom(u, a, asking) {
			continue
		}
		for _, row := range a.rows {
			if x := u.Entries[row.ID].Exec; limits.Limits(u, x) {
				limits.WantRoom(u, &want, x)
			}
		}
	}
	want.Docs, want.Counters = txn.Once(want.Docs), txn.Once(want.Counters)
	if k.late {
		k.lateLanes(u, &want)
	}
	if err := u.Load(ctx, want); err != nil {
		return err
	}
	limits.DropCachedSlots(u, want.Counters)
	limits.UseCachedSlots(u)
	limits.OpenBudgetSet(u)
	return nil
}

// lateLanes adds the lanes after the other admission keys (S73). If no key is locked, the commit locks and checks them (AssumeLanes).
func (k *pick) lateLanes(u *txn.Tx, want *store.Want) {
	var lanes store.Want
	k.wantLanes(u.Dict, &lanes)
	if len(want.Docs)+len(want.Counters)+len(lanes.Counters) == 0 {
		slices.Sort(lanes.ShareLanes)
		u.Changes.AssumeLanes, u.Changes.Dictionary = lanes.ShareLanes, u.Dict.Version
		return
	}
	want.ShareLanes = lanes.ShareLanes
	want.Counters = append(want.Counters, lanes.Counters...)
}

// knowsRoom reports whether the cache knows the slots that the rows of a queue ask for, and that there are enough for all of them. asking counts
// the rows for each key.
func (k *pick) knowsRoom(u *txn.Tx, a *askedQueue, asking map[string]int64) bool {
	if len(a.rows) == 0 {
		return true
	}
	if a.block != 0 || slices.ContainsFunc(a.rows, func(row store.QueueRow) bool { return !k.p.e.Slots.Decides(u, u.Entries[row.ID].Exec) }) {
		return false
	}
	rows := int64(len(a.rows))
	bounds := u.Entries[a.rows[0].ID].Exec.SlotBounds(limits.Room(u)) // the same for the whole class
	for key, most := range bounds {
		if assumed, _ := limits.CachedSlots(u, key); assumed+asking[key]+rows > most {
			return false
		}
	}
	for key := range bounds {
		asking[key] += rows
	}
	return true
}

// admitted reports whether the execution may be taken. If not, it is blocked on the key that has no room for it.
func (k *pick) admitted(u *txn.Tx, a *askedQueue, ent *txn.Row) bool {
	if !limits.Limits(u, ent.Exec) {
		return true
	}
	fx := u.EngineEffects()
	fx.Now = max(fx.Now, ent.Exec.LastMutationAt)
	why := ent.Exec.Admission(limits.Room(u), limits.BudgetsOf(u.Dict, ent.Exec), fx.Now)
	switch {
	case why == nil:
		return true
	case k.assumed != nil: // a hand-over: the execution is queued, and a pick decides
		a.passed = why.Key
	default:
		k.refuse(u, a, ent, fx, why)
	}
	return false
}

// refuse blocks the execution, and passes over the rest of its queue if that needs the same key.
func (k *pick) refuse(u *txn.Tx, a *askedQueue, ent *txn.Row, fx *core.Effects, why *core.Refusal) {
	if !k.beyond { // otherwise the look is repeated
		limits.Of(u).CountRefusal(why)
	}
	// Blocking a row writes it. If everything behind it needs the same key, one row is blocked to say so, and the others stay as they are; else
	// each refused row is blocked under its own key, so that the rows behind it are reached.
	passes := k.passes(u, a, ent.Exec, why.Key)
	if first := (blockedFirst{a.class.ID, why.Key}); !passes || !k.stands[first] {
		if ent.Exec.Refuse(fx, why) {
			u.Touch(ent)
			u.Keep(fx)
			limits.SuspectGone(u, ent.Exec, why)
		}
		txn.SetIn(&k.stands, first, true)
	}
	if k.full[why.Key] == nil && why.NextFree != 0 && strings.HasPrefix(why.Key, "rate:") && !k.p.looksAt(why.Key, why.NextFree) {
		timer := u.TimerAt(limits.TimerRates, txn.RoundUp(why.NextFree, txn.TimerGrid)) // by the clock of the store, which decides (S47)
		timer.Texts = append(timer.Texts, why.Key)
	}
	txn.SetIn(&k.full, why.Key, why)
	if passes {
		a.passed = why.Key
	} else {
		a.refused = true
	}
}

// turnedAway reports whether the next row for a call that has nothing yet is unknown: all rows that were read of a queue were refused, and the one
// behind them may be the best (S18). The call then looks again at once.
func (k *pick) turnedAway(call *claim) bool {
	return len(k.given[call]) == 0 && slices.ContainsFunc(k.asked, func(a *askedQueue) bool { return a.allRefused() && a.users[call.filter] })
}

// allRefused reports whether nothing is left of the rows that were asked for, some of them were refused, and there may be more.
func (a *askedQueue) allRefused() bool { return a.refused && len(a.rows) == 0 && a.got >= a.limit }

// learnRefused makes the next look read twice as many rows, so that a long run of refused rows is soon passed. Until no row is refused it reads as
// many again: if it read fewer, it would see nothing behind those rows, and no call could be served while the looks at several queues took turns
// in that. The picker's lock is held.
func (a *askedQueue) learnRefused() {
	switch {
	case a.allRefused():
		a.more = int32(min(2*a.got, maxClaimTasks))
	case !a.refused:
		a.more = 0
	}
}

// passes reports whether the refusal of an execution holds for those behind it in its queue (S19). Each execution in the queue of a key needs that
// key; what else it needs depends on how far it has come.
func (k *pick) passes(u *txn.Tx, a *askedQueue, x *core.Execution, key string) bool {
	if core.KeyBlock(a.block) {
		return x.BlockedOn == key
	}
	return limits.EveryoneNeeds(u.Dict, a.class, key)
}

// speaksFor reports whether a refusal on the key holds for the executions of the class that are blocked on it. Of a quota each takes one. Of a
// budget another class may need less (S19), and some executions of the same class may not need it at all.
func (k *pick) speaksFor(class *core.Class, key string) bool {
	return !core.OfBudget(key) || k.stands[blockedFirst{class.ID, key}] && limits.EveryoneNeeds(k.p.e.Dict.Now(), class, key)
}

// looksAt reports whether a timer is armed for the time at which the rate has room.
func (p *picker) looksAt(key string, at base.Time) bool {
	armed, ok := p.armed.Load(key)
	return ok && armed == at
}

// blockedFirst says that an execution of the class is blocked on the key. The ones behind it that need the same key stay as they are (S19).
type blockedFirst struct {
	class int32
	key   string
}

// learnFull records which queues wait for room, unless their key got room meanwhile, and which queues were found. The picker's lock is held.
func (k *pick) learnFull() {
	p := k.p
	p.apart = p.apart && len(k.full) > 0 || k.bestHeld()
	for _, a := range k.asked {
		if a.passed != "" {
			k.waitFor(a.classQueue, a.passed)
		}
		k.found = k.found || a.refused && !k.spent(a)
	}
	numbers := map[int32][]string{} // block numbers of the keys without room
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

// learnBlocks adds the queues in which the survey saw rows. Those that were not asked are asked next, including a queue that is known by now
// because something was filed there after the queues to ask were chosen. The picker's lock is held.
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

// errLookBlocked is why a look is repeated whose survey has found blocked executions that may come first. What the survey saw is kept.
var errLookBlocked = errors.New("what is blocked may come before what was found")

// overtakes reports whether the look has given out rows although its survey found rows of the same calls under block numbers that it did not ask,
// as after a start, or when another process has blocked them. Their key may have room by now, and they may come first (S6).
func (k *pick) overtakes() bool {
	if len(k.given) == 0 || len(k.blocks) == 0 {
		return false
	}
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	if k.p.repeated { // not twice in a row, whatever keeps the queue from being asked
		return false
	}
	asked := k.byID()
	return slices.ContainsFunc(k.survey, func(class *core.Class) bool {
		return k.p.openLane(class.Lane) && slices.ContainsFunc(k.blocks[class.ID], func(block int32) bool {
			id := queueID{class.ID, block}
			q := k.p.queues[id]
			return asked[id] == nil && (q == nil || q.full == "") && k.givesBeside(class)
		})
	})
}

// givesBeside reports whether a call got something that may take from the class too.
func (k *pick) givesBeside(class *core.Class) bool {
	for call, tasks := range k.given {
		if len(tasks) > 0 && call.matches(class) && txn.Contains(call.req.Lanes, class.Lane) {
			return true
		}
	}
	return false
}

// waitBehind passes over the queues, of a class that was asked, whose executions are blocked on one of the keys. The picker's lock is held.
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

// waitFor passes a queue over until its key has room. If the key got room during this pick, the queue is asked again at once.
func (k *pick) waitFor(q *classQueue, key string) {
	p := k.p
	if p.freed[key] || p.freed["*"] {
		k.found = true
		return
	}
	q.full = key
	if why := k.full[key]; why != nil && max(why.NextFree, why.Retry) != 0 {
		p.lapses.add(key, p.e.Cfg.Clock.Now().Add(time.Duration(max(why.NextFree, why.Retry).Sub(k.now))*time.Millisecond))
	}
	if p.full[key] == nil {
		p.full[key] = map[*classQueue]bool{}
	}
	p.full[key][q] = true
}

// Room records that admission keys may have room (S47), so that queues which wait for one are asked again. "*" stands for all keys.
func (p *picker) Room(keys []string) { p.Filed(txn.News{Keys: keys}) }

// room is Room for a caller that holds the lock. It reports whether a call may be served now.
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
		p.announce(q)
	}
	delete(p.full, key)
	p.lapses.forget(key)
	p.armed.Delete(key)
}

// lapseFull lets queues be asked again whose keys have room by now: a rate at its next free time (S40), a budget at its reset. The lock is held.
func (p *picker) lapseFull(now time.Time) {
	for key, at := p.lapses.first(); key != "" && !at.After(now); key, at = p.lapses.first() {
		p.roomy(key)
	}
}

// blockedElsewhere records that other processes may have blocked executions: classes must be surveyed again for block numbers with rows.
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
			p.announce(q)
		}
	}
}

// doubtBudgets lets queues that wait for budgets be asked again. A budget may get room without an event in the log (B42), so the poll, which backs
// up all hints, has to look.
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
