package engine

import (
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Rows of admission that other transactions hold (S73).
//
// A pick locks the budgets, rates and slots of what it may take. If another transaction holds one of them for longer than a lock timeout
// the pick is given up, and the row is remembered (held_rows.go). The next pick passes over what needs a remembered row, as if it had no
// room, and serves everything else; what was passed over is neither blocked nor changed in any other way. When the row is free, or after
// some seconds, it is forgotten, and what was passed over is looked at again.
//
// A row may become free between the moment when the pick asks what is remembered and the moment when the picker learns what was passed
// over. The picker notes the keys that were freed during a pick (picker.freed), and looks at their queues again at once.
//
// A call that does not wait, and would be answered with nothing because of such a row or lane, waits for up to longestPick: most rows are
// held for some milliseconds only.

// heldKey stands for a row that others hold, among the admission keys that queues wait for.
func heldKey(lock store.Lock) string {
	if lock.Counter != "" {
		return "held:" + lock.Counter
	}
	return fmt.Sprintf("held:%d:%s", lock.Doc.Kind, lock.Doc.Key)
}

// ofRoom reports whether picks lock the row for admission, or to hold a lane.
func ofRoom(lock store.Lock) bool {
	return lock.Shared || lock.Counter != "" || lock.Doc.Kind == docBudget || lock.Doc.Kind == docRate
}

// admissionKey is the key of admission that the row is of.
func admissionKey(lock store.Lock) string {
	if lock.Doc.Kind == docBudget {
		if id, ok := core.ParseUUID(lock.Doc.Key); ok {
			return core.BudgetKey(id)
		}
	}
	return lock.Counter + lock.Doc.Key // one of them is set
}

// watchRoom remembers the rows that kept a pick waiting.
func (h *heldRows) watchRoom(locks []store.Lock) {
	h.watch(slices.DeleteFunc(slices.Clone(locks), func(lock store.Lock) bool { return !ofRoom(lock) }))
}

// holdsAny reports whether one of the rows is held.
func (h *heldRows) holdsAny(locks ...store.Lock) bool {
	return h.known.Load() > 0 && len(h.among(locks, nil)) > 0
}

// holdsRoom reports whether any row is held that work might need which is handed over.
func (h *heldRows) holdsRoom() bool {
	if h.known.Load() == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for lock := range h.lines {
		if lock.Shared || lock.Counter != "" {
			return true
		}
	}
	return false
}

// heldRoom finds a row that others hold and that is needed to decide about an execution in a queue, or to end what it has reserved.
func (u *unit) heldRoom(x *core.Execution) (lock store.Lock, held bool) {
	if u.e.held.known.Load() == 0 {
		return store.Lock{}, false
	}
	var locks []store.Lock
	doc := func(ref store.DocRef) {
		if _, loaded := u.docs[ref]; !loaded {
			locks = append(locks, store.Lock{Doc: ref})
		}
	}
	for _, id := range slices.Concat(u.budgetsOf(x), x.ChargedTo()) {
		doc(budgetRef(id))
	}
	if x.Reservation != nil {
		for _, taken := range x.Reservation.Rates {
			doc(rateRef(taken.Key))
		}
	}
	for _, use := range x.Policy.Quotas {
		if quota := u.dict.quotas[use.Quota]; quota != nil && quota.Settings.RateLimit > 0 && x.Next != core.NextResume {
			doc(rateRef(use.RateKey()))
		}
		if !u.locked[use.SlotsKey()] {
			locks = append(locks, store.Lock{Counter: use.SlotsKey()}) // also without a limit it is counted
		}
	}
	if found := u.e.held.among(locks, nil); len(found) > 0 {
		return found[0], true
	}
	return store.Lock{}, false
}

// leavesReserved reports whether the unit of a pick leaves an execution alone because others hold what it has reserved.
func (u *unit) leavesReserved(ent *entry) bool {
	if !u.picks {
		return false
	}
	lock, held := u.heldRoom(ent.x)
	if held {
		setIn(&u.passed, ent.x.ID.UUID, lock)
	}
	return held
}

// passHeldRoom passes over the rows that need what others hold: a whole queue if all of it does.
func (k *pick) passHeldRoom(u *unit) {
	if u.e.held.known.Load() == 0 && len(u.passed) == 0 {
		return
	}
	for _, a := range k.asked {
		a.rows = slices.DeleteFunc(slices.Clone(a.rows), func(row store.QueueRow) bool {
			x := u.entries[row.ID].x
			lock, held := u.passed[row.ID]
			if !held {
				lock, held = u.heldRoom(x)
			}
			if !held || a.passed != "" {
				return false
			}
			k.heldBack = append(k.heldBack, a)
			if k.passes(u, a, x, admissionKey(lock)) {
				a.passed = heldKey(lock)
				return false
			}
			a.skipped = appendNew(a.skipped, heldKey(lock))
			a.refused = true
			return true
		})
		k.noteDry(a)
	}
}

// learnSkipped remembers of which queues rows were passed over alone. The picker's lock is held.
func (k *pick) learnSkipped() {
	p := k.p
	for _, a := range k.heldBack {
		for _, key := range a.skipped {
			if p.freed[key] || p.freed["*"] {
				p.reset(a.classQueue)
				k.found = true
				continue
			}
			if p.skipped[key] == nil {
				setIn(&p.skipped, key, map[*classQueue]bool{})
			}
			p.skipped[key][a.classQueue] = true
		}
	}
}

// free tells that a row which others held may be free.
func (p *picker) free(lock store.Lock) {
	if lock.Shared {
		p.lookAgain()
		return
	}
	if !ofRoom(lock) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := heldKey(lock)
	p.roomy(key)
	for q := range p.skipped[key] {
		p.reset(q)
	}
	delete(p.skipped, key)
	if len(p.waiting) > 0 {
		p.wake()
	}
}

// outwaits lets a call whose time is over wait once for what others hold. passed: a pick has passed over what the call might have got. The
// lock is held.
func (p *picker) outwaits(call *claim, passed bool) bool {
	if call.outwaited || !passed && !p.lanesHeld(call) {
		return false
	}
	call.outwaited = true
	until := call.deadline.Add(longestPick - call.req.Wait)
	if !until.After(p.e.cfg.Clock.Now()) {
		return false
	}
	call.deadline = until
	return true
}

// lanesHeld reports whether a lane of the call cannot be looked at.
func (p *picker) lanesHeld(call *claim) bool {
	if p.e.held.known.Load() == 0 {
		return false
	}
	return slices.ContainsFunc(call.req.Lanes, func(name string) bool {
		lane := p.e.dict.now().lanes[name]
		return lane != nil && p.heldLane(lane)
	})
}

// heldLane reports whether others hold the lane or its places, so that no pick may look at it now.
func (p *picker) heldLane(lane *core.Lane) bool {
	return p.e.held.holdsAny(store.Lock{Lane: lane.ID, Shared: true}, store.Lock{Counter: laneCounter(lane.Name)})
}

// passedFor reports whether something that the call might have got was passed over because of what others hold. A lane that was held when
// the queues were chosen may be free by now: then nobody wakes the call any more, and the next look is at once. The lock is held.
func (k *pick) passedFor(call *claim) bool {
	if k.shut[call] {
		if !k.p.lanesHeld(call) {
			call.check, k.found = true, true
		}
		return true
	}
	return slices.ContainsFunc(k.heldBack, func(a *askedQueue) bool { return a.users[call.filter] })
}

// endPatience answers calls whose time was over long ago, and of which nobody knows how to serve them without what others hold. The lock is
// held.
func (p *picker) endPatience(k *pick, err error) {
	now := p.e.cfg.Clock.Now()
	for _, call := range k.calls {
		if !call.gone && now.Sub(call.deadline) >= heldOnce {
			p.finish(call, publicFault(err))
		}
	}
}
