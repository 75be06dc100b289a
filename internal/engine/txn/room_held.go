package txn

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// HeldRoom returns a row that others hold and that is needed to decide on an execution in a queue, or to end its reservation.
func (u *Tx) HeldRoom(x *core.Execution) (lock store.Lock, held bool) {
	if u.Engine.Held.Known.Load() == 0 {
		return store.Lock{}, false
	}
	var locks []store.Lock
	doc := func(ref store.DocRef) {
		if _, loaded := u.Docs[ref]; !loaded {
			locks = append(locks, store.Lock{Doc: ref})
		}
	}
	for _, id := range slices.Concat(u.BudgetsOf(x), x.ChargedTo()) {
		doc(BudgetDocRef(id))
	}
	if x.Reservation != nil {
		for _, taken := range x.Reservation.Rates {
			doc(RateRef(taken.Key))
		}
	}
	for _, use := range x.Policy.Quotas {
		if quota := u.Dict.Quotas[use.Quota]; quota != nil && quota.Settings.RateLimit > 0 && x.Next != core.NextResume {
			doc(RateRef(use.RateKey()))
		}
		if !u.locked[use.SlotsKey()] {
			locks = append(locks, store.Lock{Counter: use.SlotsKey()}) // it is counted also without a limit
		}
	}
	if found := u.Engine.Held.among(locks, nil); len(found) > 0 {
		return found[0], true
	}
	return store.Lock{}, false
}

// leavesReserved reports whether the unit of a pick leaves an execution as it is because others hold what it has reserved.
func (u *Tx) leavesReserved(ent *Row) bool {
	if !u.picks {
		return false
	}
	lock, held := u.HeldRoom(ent.Exec)
	if held {
		SetIn(&u.Passed, ent.Exec.ID.UUID, lock)
	}
	return held
}
