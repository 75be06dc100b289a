package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// cancelAtOnce is how many holders of a breached budget are cancelled in the transaction of the breach (B27).
const cancelAtOnce = 256

// cancelHolders carries out what breaches in this unit have ordered: everybody who holds a lease charged to the budget is cancelled.
// What cannot be done here is follow-up work.
func (u *unit) cancelHolders(ctx context.Context) error {
	for u.budgets.cancelled < len(u.books.CancelRunning()) {
		order := u.books.CancelRunning()[u.budgets.cancelled]
		u.budgets.cancelled++
		if err := u.cancelHoldersOf(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

func (u *unit) cancelHoldersOf(ctx context.Context, order core.CancelRunning) error {
	at := len(u.scanned)
	if err := u.load(ctx, store.Want{Scans: []store.Scan{{Kind: docBudgetHold, Prefix: budgetPrefix(order.Budget), Limit: cancelAtOnce + 1}}}); err != nil {
		return err
	}
	marks := u.scanned[at]
	left := len(marks) > cancelAtOnce
	want := store.Want{SkipLocked: true, SkipUnreadable: true}
	for i := range marks[:min(len(marks), cancelAtOnce)] {
		h, err := decodeHold(&marks[i])
		if err != nil {
			u.e.notes.Error("a holder of a breached budget cannot be read", "row", marks[i].Key, "error", err)
			continue
		}
		if u.entries[h.ExecutionID.UUID] == nil {
			want.Executions = append(want.Executions, h.ExecutionID.UUID)
		}
	}
	if err := u.load(ctx, want); err != nil {
		return err
	}
	for _, id := range want.Executions {
		left = left || u.held[id]
	}
	for _, ent := range u.holdersOf(order.Budget) {
		if ent.x.ID != order.Spare {
			u.cancelHolder(ent, order.Budget)
		}
	}
	if left {
		u.addTask(task{Kind: taskCancelHolders, Budget: order.Budget, Execution: order.Spare.UUID, Before: u.now})
	}
	return nil
}

// holdersOf are the executions at hand whose lease is charged to the budget.
func (u *unit) holdersOf(budget core.UUID) (holders []*entry) {
	for _, ent := range u.entries {
		if r := ent.x.Reservation; r != nil && !ent.removed && !ent.assumed() && r.Holds != nil && chargedTo(r, budget) {
			holders = append(holders, ent)
		}
	}
	return holders
}

func chargedTo(r *core.Reservation, budget core.UUID) bool {
	for i := range r.Holds {
		if r.Holds[i].Budget == budget {
			return true
		}
	}
	return false
}

func (u *unit) cancelHolder(ent *entry, budget core.UUID) {
	u.settle(ent)
	fx, held := u.engineEffects(), ent.x.Holds
	fx.Now = max(fx.Now, ent.x.Latest())
	if ent.x.CancelForBudget(fx, budget) {
		u.freed(held, ent.x.Holds)
		u.touch(ent)
		u.keep(fx)
	}
}

// cancelRest goes on with the holders of a breached budget: those that held their leases at the breach (B27).
func (e *Engine) cancelRest(ctx context.Context, t task) error {
	scan := store.Scan{Kind: docBudgetHold, Prefix: budgetPrefix(t.Budget), Limit: cancelAtOnce}
	for {
		loaded, err := e.store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return publicFault(err)
		}
		marks := loaded.Scanned[0]
		var cmds []command
		for i := range marks {
			if h, err := decodeHold(&marks[i]); err == nil && h.Since <= t.Before && h.ExecutionID.UUID != t.Execution {
				cmds = append(cmds, cancelFor(h, t.Budget))
			}
		}
		for _, err := range e.doAll(ctx, cmds) {
			if err != nil && core.CodeOf(err) != core.CodeExecutionNotFound {
				return err
			}
		}
		if len(marks) < scan.Limit {
			return nil
		}
		scan.After = marks[len(marks)-1].Key
	}
}

// cancelFor cancels one holder, unless its lease is another by now.
func cancelFor(h hold, budget core.UUID) command {
	return &onOne{
		op: "cancel_for_budget", caller: engineCaller, id: h.ExecutionID.Given(),
		act: func(_ *unit, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
			return x.LeaseEpoch == h.Epoch && x.CancelForBudget(fx, budget), nil
		},
	}
}
