package limits

import (
	"context"
	"errors"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// releaseBudget is the command release_budget. The rows of the ledger that it needs are named by the epochs of the budgets. It reads these without
// a lock and confirms them under the lock.
type releaseBudget struct {
	budgetCommand
	e         *Admission
	execution base.GivenID
	epochs    map[base.UUID]int64
	released  map[string]int64
}

// ReleaseBudget gives back what an execution has used of a budget in its current epoch, and of the budgets above it at most what it has used of
// them (B25). A repeat does nothing.
func (e *Admission) ReleaseBudget(ctx context.Context, c txn.Caller, ref BudgetRef, execution base.GivenID, how admin.AdminAction) (map[string]int64, error) {
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	cmd := &releaseBudget{e: e, execution: execution}
	cmd.budgetCommand = budgetCommand{
		op: "release_budget", caller: c, how: how, target: ref, budget: found, locks: found.Ancestors, answer: &cmd.released, act: cmd.release,
	}
	if err := base.CheckReason("reason", how.Reason); err != nil {
		return nil, err
	}
	if err := base.CheckRequestKey(how.RequestKey); err != nil {
		return nil, err
	}
	if how.RequestKey != "" {
		cmd.request = ref.request(c, cmd.op, how.RequestKey)
		cmd.fingerprint = txn.Fingerprint(execution.UUID, how.Reason)
	}
	if err := e.Do(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.released, nil
}

func (r *releaseBudget) line() []base.UUID { return append([]base.UUID{r.budget.ID}, r.locks...) }

// Want reads the epochs. If that fails, they are not confirmed, and the next try reads them again.
func (r *releaseBudget) Want(w *store.Want, careful bool) {
	r.budgetCommand.Want(w, careful)
	r.epochs = map[base.UUID]int64{}
	var refs []store.DocRef
	for _, id := range r.line() {
		refs = append(refs, BudgetDocRef(id))
	}
	docs, err := r.e.ReadDocs(r.e.Background(), refs...)
	if err != nil {
		return
	}
	for _, doc := range docs {
		if b, err := DecodeBudget(&doc); err == nil {
			r.epochs[b.ID] = b.Epoch
		}
	}
}

func (r *releaseBudget) Behind(u *txn.Tx, w *store.Want) {
	r.budgetCommand.Behind(u, w)
	for id, epoch := range r.epochs {
		wantDoc(u, w, ledgerRef(id, epoch, r.execution.UUID))
	}
}

var errEpochMoved = errors.New("a budget has begun anew meanwhile")

func (r *releaseBudget) release(u *txn.Tx, fx *core.Effects) (bool, error) {
	r.released = nil
	b, err := Budget(u, r.caller, r.budget.ID)
	if err != nil {
		return false, err
	}
	if err := checkBudgetRevision(r.how.Revision, b); err != nil {
		return false, err
	}
	var ledger []core.LedgerRow
	for _, id := range r.line() {
		b := u.Accounts.Get(id)
		if b == nil {
			continue // nothing is given back of one that cannot be read
		}
		row, known, err := ledgerOf(u, b, r.execution)
		if err != nil {
			return false, err
		}
		if !known {
			u.Redo = &store.Fault{Kind: store.Conflict, Err: errEpochMoved}
			return false, nil
		}
		ledger = append(ledger, core.LedgerRow{Budget: b.ID, Epoch: b.Epoch, Used: row})
	}
	released, err := u.Accounts.Refund(fx, r.budget.ID, r.execution.UUID, ledger)
	if err != nil {
		return false, err
	}
	r.released = released
	return len(released) > 0, nil
}

// ledgerOf returns what the execution has used of a budget in its current epoch, including what this transaction has booked. known reports whether
// that was loaded: an epoch that this transaction began has no rows yet.
func ledgerOf(u *txn.Tx, b *core.Budget, execution base.GivenID) (used map[string]int64, known bool, err error) {
	ref := ledgerRef(b.ID, b.Epoch, execution.UUID)
	doc, known := u.Docs[ref]
	if !known && partOf(u).epochs[b.ID] == b.Epoch {
		return nil, false, nil
	}
	used = map[string]int64{}
	if doc != nil {
		row, err := decodeLedgerRow(doc)
		if err != nil {
			return nil, false, err
		}
		if !execution.Names(row.ExecutionID) {
			return used, true, nil
		}
		maps.Copy(used, row.Used)
	}
	for _, spend := range u.Accounts.Spends() {
		if spend.Budget == b.ID && spend.Epoch == b.Epoch && spend.Execution == execution.UUID {
			used[spend.Dimension] += spend.Amount
		}
	}
	return used, true, nil
}
