package engine

import (
	"context"
	"errors"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// releaseBudget is release_budget on its way. The rows of the ledger that it needs are named by the epochs of the budgets, which it
// looks up without a lock and finds confirmed, or not, under it.
type releaseBudget struct {
	budgetCommand
	e         *Engine
	execution core.GivenID
	epochs    map[core.UUID]int64
	released  map[string]int64
}

// ReleaseBudget gives back what an execution has used of a budget in its present epoch, and of those above it at most what it has used
// of them (B25). To repeat it does nothing.
func (e *Engine) ReleaseBudget(ctx context.Context, c Caller, ref BudgetRef, execution core.GivenID, how AdminAction) (map[string]int64, error) {
	found, err := e.findBudget(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	cmd := &releaseBudget{e: e, execution: execution}
	cmd.budgetCommand = budgetCommand{
		op: "release_budget", caller: c, how: how, target: ref, budget: found, locks: found.Ancestors, answer: &cmd.released, act: cmd.release,
	}
	if err := core.CheckReason("reason", how.Reason); err != nil {
		return nil, err
	}
	if err := core.CheckRequestKey(how.RequestKey); err != nil {
		return nil, err
	}
	if how.RequestKey != "" {
		cmd.request = ref.request(c, cmd.op, how.RequestKey)
		cmd.fingerprint = fingerprint(execution.UUID, how.Reason)
	}
	if err := e.do(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.released, nil
}

func (r *releaseBudget) line() []core.UUID { return append([]core.UUID{r.budget.ID}, r.locks...) }

// want looks up the epochs: a failure is one of the next try, which finds nothing confirmed.
func (r *releaseBudget) want(w *store.Want, careful bool) {
	r.budgetCommand.want(w, careful)
	r.epochs = map[core.UUID]int64{}
	var refs []store.DocRef
	for _, id := range r.line() {
		refs = append(refs, budgetRef(id))
	}
	docs, err := r.e.readDocs(r.e.background(), refs...)
	if err != nil {
		return
	}
	for _, doc := range docs {
		if b, err := decodeBudget(&doc); err == nil {
			r.epochs[b.ID] = b.Epoch
		}
	}
}

func (r *releaseBudget) behind(u *unit, w *store.Want) {
	r.budgetCommand.behind(u, w)
	for id, epoch := range r.epochs {
		u.wantDoc(w, ledgerRef(id, epoch, r.execution.UUID))
	}
}

var errEpochMoved = errors.New("a budget has begun anew meanwhile")

func (r *releaseBudget) release(u *unit, fx *core.Effects) (bool, error) {
	r.released = nil
	b, err := u.budget(r.caller, r.budget.ID)
	if err != nil {
		return false, err
	}
	if err := checkBudgetRevision(r.how.Revision, b); err != nil {
		return false, err
	}
	var ledger []core.LedgerRow
	for _, id := range r.line() {
		b := u.books.Get(id)
		if b == nil {
			continue // of one that cannot be read nothing is given back
		}
		row, known, err := u.ledgerOf(b, r.execution)
		if err != nil {
			return false, err
		}
		if !known {
			u.redo = &store.Fault{Kind: store.Conflict, Err: errEpochMoved}
			return false, nil
		}
		ledger = append(ledger, core.LedgerRow{Budget: b.ID, Epoch: b.Epoch, Used: row})
	}
	released, err := u.books.ReleaseSpend(fx, r.budget.ID, r.execution.UUID, ledger)
	if err != nil {
		return false, err
	}
	r.released = released
	return len(released) > 0, nil
}

// ledgerOf is what the execution has used of a budget in its present epoch, with what this transaction has booked. known reports whether
// that was looked up: an epoch that this very transaction began has no rows yet.
func (u *unit) ledgerOf(b *core.Budget, execution core.GivenID) (used map[string]int64, known bool, err error) {
	ref := ledgerRef(b.ID, b.Epoch, execution.UUID)
	doc, known := u.docs[ref]
	if !known && u.budgets.epochs[b.ID] == b.Epoch {
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
	for _, spend := range u.books.Spends() {
		if spend.Budget == b.ID && spend.Epoch == b.Epoch && spend.Execution == execution.UUID {
			used[spend.Dimension] += spend.Amount
		}
	}
	return used, true, nil
}
