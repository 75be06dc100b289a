package limits

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// cancelAtOnce is how many holders of a breached budget are cancelled in the transaction of the breach (B27).
const cancelAtOnce = 256

// cancelHolders carries out the cancels that breaches in this transaction have ordered: every execution with a lease charged to the budget is
// cancelled. What cannot be done here is follow-up work. Ending a lease books its time, which may be a breach again.
func cancelHolders(ctx context.Context, u *txn.Tx) error {
	for ordersCancels(u) {
		orders := mergeCancels(u.Accounts.CancelRunning()[partOf(u).cancelled:])
		partOf(u).cancelled = len(u.Accounts.CancelRunning())
		if err := cancelHoldersOf(ctx, u, orders); err != nil {
			return err
		}
	}
	return nil
}

// ordersCancels reports whether a breach has ordered something that is not carried out yet.
func ordersCancels(u *txn.Tx) bool {
	return u.Accounts != nil && partOf(u).cancelled < len(u.Accounts.CancelRunning())
}

// mergeCancels makes one order per budget: in one transaction many holders may find that it is used up. An execution is spared only if all orders
// spare it.
func mergeCancels(orders []core.CancelRunning) (merged []core.CancelRunning) {
	for _, order := range orders {
		at := slices.IndexFunc(merged, func(m core.CancelRunning) bool { return m.Budget == order.Budget })
		switch {
		case at < 0:
			merged = append(merged, order)
		case merged[at].Spare != order.Spare:
			merged[at].Spare = base.ID{}
		}
	}
	return merged
}

func cancelHoldersOf(ctx context.Context, u *txn.Tx, orders []core.CancelRunning) error {
	left, err := loadHolders(ctx, u, orders)
	if err != nil {
		return err
	}
	for _, order := range orders {
		before := u.Now
		for _, ent := range holdersOf(u, order.Budget) {
			switch {
			case ent.Exec.ID == order.Spare:
			case ent.AcquiredAt != 0: // its worker does not have the lease yet: it ends with the next transaction
				left[order.Budget], before = true, max(before, ent.AcquiredAt)
			default:
				cancelHolder(u, ent, order.Budget)
			}
		}
		if left[order.Budget] {
			u.AddTask(taskCancelHolders, TaskArgs{Budget: order.Budget, Execution: order.Spare.UUID, Before: before})
		}
	}
	return nil
}

// loadHolders locks and loads the executions with leases charged to the budgets, as many as are cancelled at once. It returns which budgets have
// more.
func loadHolders(ctx context.Context, u *txn.Tx, orders []core.CancelRunning) (left map[base.UUID]bool, err error) {
	at := len(u.Scanned)
	var scans store.Want
	for _, order := range orders {
		scans.Scans = append(scans.Scans, store.Scan{Kind: DocBudgetHold, Prefix: BudgetPrefix(order.Budget), Limit: cancelAtOnce + 1})
	}
	if err := u.Load(ctx, scans); err != nil {
		return nil, err
	}
	left = map[base.UUID]bool{}
	want, of := store.Want{SkipLocked: true, SkipUnreadable: true}, map[base.UUID][]base.UUID{}
	for i, order := range orders {
		marks := u.Scanned[at+i]
		for j := range marks {
			h, err := DecodeHold(&marks[j])
			id := h.ExecutionID.UUID
			switch {
			case err != nil:
				u.Engine.QuietLog.Error("a holder of a breached budget cannot be read", "row", marks[j].Key, "error", err)
			case u.Entries[id] != nil:
			case of[id] == nil && len(want.Executions) >= cancelAtOnce:
				left[order.Budget] = true
			default:
				if of[id] == nil {
					want.Executions = append(want.Executions, id)
				}
				of[id] = append(of[id], order.Budget)
			}
		}
		left[order.Budget] = left[order.Budget] || len(marks) > cancelAtOnce
	}
	if err := u.Load(ctx, want); err != nil {
		return nil, err
	}
	for id, budgets := range of {
		for _, budget := range budgets {
			left[budget] = left[budget] || u.Held[id]
		}
	}
	return left, nil
}

// holdersOf are the executions at hand whose lease is charged to the budget.
func holdersOf(u *txn.Tx, budget base.UUID) (holders []*txn.Row) {
	for _, ent := range u.Entries {
		if r := ent.Exec.Reservation; r != nil && !ent.Removed && !ent.Assumed() && r.Holds != nil && chargedTo(r, budget) {
			holders = append(holders, ent)
		}
	}
	return holders
}

func chargedTo(r *core.Reservation, budget base.UUID) bool {
	for i := range r.Holds {
		if r.Holds[i].Budget == budget {
			return true
		}
	}
	return false
}

func cancelHolder(u *txn.Tx, ent *txn.Row, budget base.UUID) {
	u.Settle(ent)
	fx, held := u.EngineEffects(), ent.Exec.Holds
	fx.Now = max(fx.Now, ent.Exec.Latest())
	if ent.Exec.CancelForBudget(fx, budget) {
		u.Freed(held, ent.Exec.Holds)
		u.Touch(ent)
		u.Keep(fx)
	}
}

// cancelRest continues with the holders of a breached budget: those that held their leases at the breach (B27).
func (e *Admission) cancelRest(ctx context.Context, t TaskArgs) error {
	scan := store.Scan{Kind: DocBudgetHold, Prefix: BudgetPrefix(t.Budget), Limit: cancelAtOnce}
	var failed error // of one that cannot be read: it does not stop the others (S63)
	for {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return txn.PublicFault(err)
		}
		marks := loaded.Scanned[0]
		var cmds []txn.Command
		for i := range marks {
			if h, err := DecodeHold(&marks[i]); err == nil && h.Since <= t.Before && h.ExecutionID.UUID != t.Execution {
				cmds = append(cmds, cancelFor(h, t.Budget))
			}
		}
		for _, err := range e.DoAll(ctx, cmds) {
			switch base.CodeOf(err) {
			case "", base.CodeExecutionNotFound:
			case base.CodeCorruption:
				failed = err
			default:
				return err
			}
		}
		if len(marks) < scan.Limit {
			return failed
		}
		scan.After = marks[len(marks)-1].Key
	}
}

// cancelFor cancels one holder, unless it has another lease by now.
func cancelFor(h hold, budget base.UUID) txn.Command {
	return &txn.OnOne{
		Op: "cancel_for_budget", Caller: txn.EngineCaller, ID: h.ExecutionID.Given(),
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
			return x.LeaseEpoch == h.Epoch && x.CancelForBudget(fx, budget), nil
		},
	}
}
