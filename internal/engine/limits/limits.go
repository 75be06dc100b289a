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
)

// Admission decides what may be taken: by budgets, rates, slots and quotas, and by limits that processes share.
type Admission struct {
	*admin.Admin
	Slots        slotsKnown
	sharedLimits *sharedLimits
	flows        Flows
	meter        meter
	// askedBudget returns the budget that a suspended execution asks to be raised, without a read.
	askedBudget func(u *txn.Tx, row *txn.Row) (base.UUID, bool)
}

// New makes the room of limits, and registers it with the kernel.
func New(e *admin.Admin) *Admission {
	a := &Admission{Admin: e, sharedLimits: newSharedLimits(e.Engine), askedBudget: func(*txn.Tx, *txn.Row) (base.UUID, bool) { return base.UUID{}, false }}
	txn.UseRoom(e.Engine, limitSlot, a)
	e.OnReborn(a.Slots.forgetAll)
	e.OnPhases(txn.Phases{
		At: txn.AtAdmission, Lock: a.loadBudgetSet,
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
			writeBudgetSet(u)
		},
		Committed: a.Slots.learn,
	})
	e.UseDefaultCheck(checkDefaultQuotas)
	e.ListedBy(DocBudgetName, 0)
	a.registerWork()
	a.measure()
	return a
}

// registerWork registers what the timers and the follow-up work of the room do.
func (e *Admission) registerWork() {
	e.OnTimer(timerAllowances, txn.TimerRule{Label: "allowance", Do: e.sweepAllowances})
	e.OnTimer(TimerRates, txn.TimerRule{Label: "rate", Do: e.sweepRates})
	e.OnTimer(timerBudgets, txn.TimerRule{Label: "budget", Do: e.sweepBudgets})
	e.OnTimer(timerUsageDedup, txn.TimerRule{Label: "charge", Do: e.sweepUsageDedup})
	on := func(kind txn.TaskKind, do func(context.Context, TaskArgs) error) {
		txn.OnTask(e.Engine, kind, func(ctx context.Context, t *txn.FollowUp[TaskArgs]) error { return do(ctx, t.Args) })
	}
	on(taskFreeQuota, e.freeQuota)
	on(taskCancelHolders, e.cancelRest)
	on(taskFreeBudget, e.freeBudget)
	on(taskFreeUnreached, e.freeUnreached)
	on(taskDropEpoch, e.dropEpoch)
	on(taskDropBudget, e.dropBudget)
	on(TaskLeaveBudget, e.leaveBudget)
	on(taskUnmark, func(ctx context.Context, t TaskArgs) error { return e.unmark(ctx, t.Rule, t.Token) })
	e.CountRemoved(docUsageDedup, "charge")
	e.CountRemoved(DocLedger, "spend")
	e.CountRemoved(docEpoch, "epoch")
}

// TaskArgs are the arguments of the follow-up work of the room. Each kind uses some of them.
type TaskArgs struct {
	Quota  string    `json:"quota,omitempty"`
	Budget base.UUID `json:"budget,omitzero"`
	Gone   base.UUID `json:"gone,omitzero"`   // the budget below it that was deleted
	Before base.Time `json:"before,omitzero"` // what came later is not concerned

	Execution base.UUID `json:"execution,omitzero"`
	Epoch     int64     `json:"epoch,omitempty"`

	Rule  string    `json:"rule,omitempty"`
	Token base.UUID `json:"token,omitzero"`

	Flow base.UUID `json:"flow,omitzero"` // whose members a budget is to reach, or to leave
}

// Of returns the room of limits of the transaction's engine.
func Of(u *txn.Tx) *Admission { return txn.Room[Admission](u.Engine, limitSlot) }

// UseAskedBudget sets what finds the budget that a suspended execution asks to be raised, without a read. It must be set before Start.
func (e *Admission) UseAskedBudget(find func(u *txn.Tx, row *txn.Row) (base.UUID, bool)) {
	e.askedBudget = find
}
