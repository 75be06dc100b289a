package claims

import (
	"fmt"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Rows of admission that other transactions hold (S73).
//
// A pick locks the budgets, rates and slots of the rows that it may take. If another transaction holds one of them for longer than a lock timeout,
// the pick is given up, and the row is recorded (held_rows.go). The next pick passes over work that needs a recorded row, as if there were no room
// for it, and serves everything else. Work that was passed over is neither blocked nor changed in any other way. When the row is free, or after
// some seconds, it is forgotten, and the work is looked at again.
//
// A row may become free between the time at which the pick asks what is recorded and the time at which the picker learns what was passed over. The
// picker notes the keys that were freed during a pick (picker.freed), and asks their queues again at once.
//
// A call that does not wait, and would be answered with nothing because of such a row or lane, or because others hold executions that it might have
// got, waits for up to longestPick: most rows are held for a few milliseconds only. Meanwhile it looks again every heldStep: nothing tells this
// process that another one has released a row without changing it.

// heldStep is how often a call looks again for what others hold, past its deadline.
const heldStep = 20 * time.Millisecond

// heldKey returns the key under which queues wait for a row that others hold, among the admission keys.
func heldKey(lock store.Lock) string {
	if lock.Counter != "" {
		return "held:" + lock.Counter
	}
	return fmt.Sprintf("held:%d:%s", lock.Doc.Kind, lock.Doc.Key)
}

// ofRoom reports whether picks lock the row for admission, or to keep a lane from changing.
func ofRoom(lock store.Lock) bool {
	return lock.Shared || lock.Counter != "" || lock.Doc.Kind == limits.DocBudget || lock.Doc.Kind == limits.DocRate
}

// admissionKey returns the admission key that the row belongs to.
func admissionKey(lock store.Lock) string {
	if lock.Doc.Kind == limits.DocBudget {
		if id, ok := base.ParseUUID(lock.Doc.Key); ok {
			return core.BudgetKey(id)
		}
	}
	return lock.Counter + lock.Doc.Key // one of them is set
}

// passHeldRoom passes over the rows that need what others hold, or over a whole queue if all of it does.
func (k *pick) passHeldRoom(u *txn.Tx) {
	if u.Engine.Held.Known.Load() == 0 && len(u.Passed) == 0 {
		return
	}
	for _, a := range k.asked {
		a.rows = slices.DeleteFunc(slices.Clone(a.rows), func(row store.QueueRow) bool {
			x := u.Entries[row.ID].Exec
			lock, held := u.Passed[row.ID]
			if !held {
				lock, held = limits.HeldRoom(u, x)
			}
			if !held || a.passed != "" {
				return false
			}
			k.heldBack = append(k.heldBack, a)
			if k.passes(u, a, x, admissionKey(lock)) {
				a.passed = heldKey(lock)
				return false
			}
			a.skipped = txn.AppendNew(a.skipped, heldKey(lock))
			a.refused = true
			return true
		})
		k.noteDry(a)
	}
}

// learnSkipped records the queues of which single rows were passed over. The picker's lock is held.
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
				txn.SetIn(&p.skipped, key, map[*classQueue]bool{})
			}
			p.skipped[key][a.classQueue] = true
		}
	}
}

// Freed makes claims look again at work that needs a row which may be free now.
func (p *picker) Freed(lock store.Lock) {
	if lock.Shared {
		p.Rescan()
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

// outwaits lets a call whose time is over wait a little more for what others hold. passed: a pick has passed over work that the call might have
// got. The lock is held.
func (p *picker) outwaits(call *claim, passed bool) bool {
	if !passed && !p.lanesHeld(call) {
		return false
	}
	if call.patient.IsZero() {
		call.patient = call.deadline.Add(longestPick - call.req.Wait)
	}
	now := p.e.Cfg.Clock.Now()
	if !call.patient.After(now) {
		return false
	}
	call.deadline = txn.Sooner(call.patient, now.Add(heldStep))
	return true
}

// looksOnceMore reports whether a call that waits past its deadline for what others hold is to look again. Its queues count as unread: what was held
// there may be free. The lock is held.
func (p *picker) looksOnceMore(call *claim, now time.Time) bool {
	if call.patient.IsZero() || call.deadline.After(now) {
		return false
	}
	p.each(call, func(q *classQueue) {
		if !q.maybe {
			p.reset(q)
		}
	})
	return true
}

// lanesHeld reports whether a lane of the call cannot be read now.
func (p *picker) lanesHeld(call *claim) bool {
	if p.e.Held.Known.Load() == 0 {
		return false
	}
	return slices.ContainsFunc(call.req.Lanes, func(name string) bool {
		lane := p.e.Dict.Now().Lanes[name]
		return lane != nil && p.heldLane(lane)
	})
}

// heldLane reports whether others hold the lane or its counter of places, so that no pick can use it now.
func (p *picker) heldLane(lane *core.Lane) bool {
	return p.e.Held.HoldsAny(store.Lock{Lane: lane.ID, Shared: true}, store.Lock{Counter: txn.LaneCounter(lane.Name)})
}

// passedFor reports whether work that the call might have got was passed over because of what others hold. A lane that was held when the queues
// were chosen may be free by now: then nothing wakes the call any more, and it looks again at once. The lock is held.
func (k *pick) passedFor(call *claim) bool {
	if k.shut[call] {
		if !k.p.lanesHeld(call) {
			call.check, k.found = true, true
		}
		return true
	}
	return slices.ContainsFunc(k.heldBack, func(a *askedQueue) bool { return a.users[call.filter] })
}

// endPatience answers calls that are long past their deadline and cannot be served without what others hold. The lock is held.
func (p *picker) endPatience(k *pick, err error) {
	now := p.e.Cfg.Clock.Now()
	for _, call := range k.calls {
		if !call.gone && now.Sub(call.deadline) >= txn.HeldOnce {
			p.finish(call, txn.PublicFault(err))
		}
	}
}

// Held records the rows of admission that made a transaction wait: the next pick leaves out work that needs them.
func (p *picker) Held(locks []store.Lock) {
	p.e.Held.Watch(slices.DeleteFunc(slices.Clone(locks), func(lock store.Lock) bool { return !ofRoom(lock) }))
}
