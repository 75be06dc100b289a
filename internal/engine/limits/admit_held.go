package limits

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// HeldRoom returns a row that others hold and that is needed to decide on an execution in a queue, or to end its reservation.
func HeldRoom(u *txn.Tx, x *core.Execution) (lock store.Lock, held bool) {
	if u.Engine.Held.Known.Load() == 0 {
		return store.Lock{}, false
	}
	var locks []store.Lock
	doc := func(ref store.DocRef) {
		if _, loaded := u.Docs[ref]; !loaded {
			locks = append(locks, store.Lock{Doc: ref})
		}
	}
	for _, id := range slices.Concat(BudgetsOf(u.Dict, x), x.ChargedTo()) {
		doc(BudgetDocRef(id))
	}
	if x.Reservation != nil {
		for _, taken := range x.Reservation.Rates {
			doc(RateRef(taken.Key))
		}
	}
	for _, use := range x.Policy.Quotas {
		if quota := RulesOf(u.Dict).Quotas[use.Quota]; quota != nil && quota.Settings.RateLimit > 0 && x.Next != core.NextResume {
			doc(RateRef(use.RateKey()))
		}
		if !u.Locked[use.SlotsKey()] {
			locks = append(locks, store.Lock{Counter: use.SlotsKey()}) // it is counted also without a limit
		}
	}
	if found := u.Engine.Held.Among(locks, nil); len(found) > 0 {
		return found[0], true
	}
	return store.Lock{}, false
}

// leavesReserved reports whether the transaction of a pick leaves an execution as it is because others hold what it has reserved.
func leavesReserved(u *txn.Tx, ent *txn.Row) bool {
	if !u.Picks {
		return false
	}
	lock, held := HeldRoom(u, ent.Exec)
	if held {
		txn.SetIn(&u.Passed, ent.Exec.ID.UUID, lock)
	}
	return held
}

// needsRow reports whether what was done to an execution needs a budget or rate that its lease is or was charged to.
func needsRow(ent *txn.Row, lock store.Lock) bool {
	switch lock.Doc.Kind {
	case DocBudget:
		return slices.ContainsFunc(ent.Exec.ChargedTo(), func(id base.UUID) bool { return BudgetDocRef(id) == lock.Doc }) || reserves(ent, lock)
	case DocRate:
		return chargesRate(ent.Exec.Reservation, lock) || chargesRate(ent.Reserved, lock)
	}
	return false
}

// reserves reports whether the execution was charged to the budget when it was loaded.
func reserves(ent *txn.Row, lock store.Lock) bool {
	return ent.Reserved != nil && slices.ContainsFunc(ent.Reserved.Holds, func(h core.BudgetHold) bool { return BudgetDocRef(h.Budget) == lock.Doc })
}

func chargesRate(r *core.Reservation, lock store.Lock) bool {
	if r == nil {
		return false
	}
	for _, taken := range r.Rates {
		if RateRef(taken.Key) == lock.Doc {
			return true
		}
	}
	return false
}
