// Package limits decides what may be taken: by budgets, by the rates and slots of quotas, and by limits that processes share. It locks and loads what an
// execution is charged to (admit.go, state.go), tests and takes in the transaction of the lease, and writes the records back.
//
// Budgets are locked right behind executions: the room registers its phases at the place AtAdmission of the lock order (S73). Rules, which are quotas
// and the scopes of budgets, are part of the dictionary and read without a lock (rules.go).
package limits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Admission decides what may be taken: by budgets, rates, slots and quotas, and by limits that processes share.
type Admission struct {
	*admin.Admin
	Slots      slotsKnown
	allowances *allowances
	// askedBudget returns the budget that a suspended execution asks to be raised, without a read.
	askedBudget func(u *txn.Tx, row *txn.Row) (base.UUID, bool)
}

// New makes the room of limits, and registers it with the kernel.
func New(e *admin.Admin) *Admission {
	a := &Admission{Admin: e, allowances: newAllowances(e.Engine), askedBudget: func(*txn.Tx, *txn.Row) (base.UUID, bool) { return base.UUID{}, false }}
	txn.UseRoom(e.Engine, limitSlot, a)
	e.OnReborn(a.Slots.forgetAll)
	e.OnPhases(txn.Phases{
		At: txn.AtAdmission, Lock: a.loadBooks,
		Loaded:    loadReserved,
		Last:      loadLedger,
		Settle:    cancelHolders,
		Unsettled: ordersCancels,
		Keep:      func(u *txn.Tx, fx *core.Effects) { giveBack(u, fx.RatesBack) },
		Row:       func(u *txn.Tx, row *txn.Row) { markHolds(u, row) },
		Remove:    func(u *txn.Tx, row *txn.Row) { LeaveBudgets(u, row.Exec) },
		RowNeeds:  needsRow,
		Flush: func(u *txn.Tx) {
			writeRates(u)
			writeBooks(u)
		},
		Committed: a.Slots.learn,
	})
	e.UseDefaultCheck(checkDefaultQuotas)
	e.OnTimer(txn.TimerAllowances, a.sweepAllowances)
	e.OnTimer(txn.TimerRates, a.sweepRates)
	e.OnTimer(txn.TimerBudgets, a.sweepBudgets)
	e.OnTimer(txn.TimerUsageDedup, a.sweepUsageDedup)
	on := func(kind string, do func(context.Context, txn.FollowUp) error) {
		e.OnTask(kind, func(ctx context.Context, _ store.DocRef, t txn.FollowUp) error { return do(ctx, t) })
	}
	on(txn.TaskFreeQuota, a.freeQuota)
	on(txn.TaskCancelHolders, a.cancelRest)
	on(txn.TaskFreeBudget, a.freeBudget)
	on(txn.TaskFreeUnreached, a.freeUnreached)
	on(txn.TaskDropEpoch, a.dropEpoch)
	on(txn.TaskDropBudget, a.dropBudget)
	on(txn.TaskLeaveBudget, a.leaveBudget)
	on(txn.TaskUnmark, func(ctx context.Context, t txn.FollowUp) error { return a.unmark(ctx, t.Rule, t.Token) })
	e.OnPart("budgets", a.readBudgets)
	return a
}

// Of returns the room of limits of the transaction's engine.
func Of(u *txn.Tx) *Admission { return txn.Room[Admission](u.Engine, limitSlot) }

// UseAskedBudget sets what finds the budget that a suspended execution asks to be raised, without a read. It must be set before Start.
func (e *Admission) UseAskedBudget(find func(u *txn.Tx, row *txn.Row) (base.UUID, bool)) {
	e.askedBudget = find
}
