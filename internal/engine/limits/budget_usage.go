package limits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// reportUsage is the command report_usage.
type reportUsage struct {
	caller  txn.Caller
	id      base.GivenID
	cmd     core.UsageCommand
	dedup   store.DocRef // zero: no dedup key
	outcome core.UsageOutcome
}

// ReportUsage books what the holder of a lease uses, or reports that it may not (B19..B23). A breach is an outcome, not an error.
func (e *Admission) ReportUsage(ctx context.Context, c txn.Caller, id base.GivenID, r UsageRequest) (core.UsageOutcome, error) {
	cmd := &reportUsage{caller: c, id: id, cmd: core.UsageCommand{Fence: r.Fence, Usage: r.Usage, DedupKey: r.DedupKey, AlreadySpent: r.AlreadySpent}}
	if err := cmd.cmd.Check(); err != nil {
		return core.UsageOutcome{}, err
	}
	if err := r.Fence.Validate(); err != nil {
		return core.UsageOutcome{}, err
	}
	if r.DedupKey != "" {
		cmd.dedup = usageDedupRef(id.UUID, r.DedupKey)
	}
	if err := e.Do(ctx, cmd); err != nil {
		return core.UsageOutcome{}, err
	}
	if cmd.outcome.Repeated {
		c.Again()
	}
	return cmd.outcome, nil
}

func (r *reportUsage) Name() string { return "report_usage" }

// Carried is the lease under which the command is sent; nil: none.
func (r *reportUsage) Carried() *core.Fence { return &r.cmd.Fence }

func (r *reportUsage) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, r.id.UUID)
	if r.dedup.Key != "" {
		w.Docs = append(w.Docs, r.dedup)
	}
}

func (r *reportUsage) Decide(u *txn.Tx) error {
	r.outcome = core.UsageOutcome{}
	return u.On(r.caller, r.id, func(x *core.Execution, fx *core.Effects) (bool, error) {
		r.caller.AsWorker(x, fx)
		cmd := r.cmd
		known, err := receipt(u, r.dedup)
		if err != nil {
			return false, err
		}
		cmd.Known = known
		outcome, receipt, err := x.ReportUsage(fx, cmd)
		if err != nil {
			return false, err
		}
		if r.outcome = outcome; receipt != nil {
			u.PutOrAdd(store.Doc{DocRef: r.dedup, Body: receipt.Encode()})
		}
		return !outcome.Repeated, nil
	})
}

// receipt returns the receipt under a dedup key, or nil. Codes: corruption.
func receipt(u *txn.Tx, ref store.DocRef) (*core.UsageReceipt, error) {
	doc := u.Doc(ref)
	if ref.Key == "" || doc == nil {
		return nil, nil
	}
	return core.DecodeUsageReceipt(doc.Body)
}

// chargeBudget is the command charge or record_spend.
type chargeBudget struct {
	caller  txn.Caller
	budget  core.BudgetEntry
	request ChargeRequest
	dedup   store.DocRef // zero: no dedup key
	outcome core.UsageOutcome
}

// Charge books usage against a budget and those above it, without a lease (B24). Codes: budget_not_found, unknown_dimension,
// budget_closed, execution_not_found, and those of the usage.
func (e *Admission) Charge(ctx context.Context, c txn.Caller, ref BudgetRef, r ChargeRequest) (core.UsageOutcome, error) {
	check := core.ChargeCommand{Usage: r.Usage, DedupKey: r.DedupKey}
	if err := check.Check(); err != nil {
		return core.UsageOutcome{}, err
	}
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return core.UsageOutcome{}, err
	}
	cmd := &chargeBudget{caller: c, budget: found, request: r}
	if r.DedupKey != "" {
		cmd.dedup = chargeDedupRef(found.ID, r.DedupKey)
	}
	err = e.Do(ctx, cmd)
	if r.Execution != nil && base.CodeOf(err) == base.CodeExecutionNotFound && e.Appeared(ctx, r.Execution.UUID) { // L88
		err = e.Do(ctx, cmd)
	}
	if err != nil {
		return core.UsageOutcome{}, err
	}
	if cmd.outcome.Repeated {
		c.Again()
	}
	return cmd.outcome, nil
}

func (b *chargeBudget) Name() string { return "charge_budget" }

func (b *chargeBudget) Want(w *store.Want, _ bool) {
	if b.request.Execution != nil {
		w.Executions = append(w.Executions, b.request.Execution.UUID)
	}
}

func (b *chargeBudget) Behind(u *txn.Tx, w *store.Want) {
	WantBudgets(u, w, append([]base.UUID{b.budget.ID}, b.budget.Ancestors...))
	if b.dedup.Key != "" {
		wantDoc(u, w, b.dedup)
	}
}

func (b *chargeBudget) Decide(u *txn.Tx) error {
	b.outcome = core.UsageOutcome{}
	if _, err := Budget(u, b.caller, b.budget.ID); err != nil {
		return err
	}
	if b.request.Execution != nil {
		return u.On(b.caller, *b.request.Execution, func(x *core.Execution, fx *core.Effects) (bool, error) {
			if x.Class.Namespace != b.budget.Namespace {
				return false, txn.NotFound(*b.request.Execution)
			}
			return b.charge(u, fx, x)
		})
	}
	mark, fx := u.Accounts.Mark(), u.Effects(b.caller)
	if _, err := b.charge(u, fx, nil); err != nil {
		u.Accounts.Back(mark)
		return err
	}
	u.Keep(fx)
	return nil
}

func (b *chargeBudget) charge(u *txn.Tx, fx *core.Effects, x *core.Execution) (changed bool, err error) {
	known, err := receipt(u, b.dedup)
	if err != nil {
		return false, err
	}
	outcome, receipt, err := u.Accounts.Charge(fx, core.ChargeCommand{
		Budget: b.budget.ID, Usage: b.request.Usage, DedupKey: b.request.DedupKey, AlreadySpent: b.request.AlreadySpent, Execution: x, Known: known,
	})
	if err != nil {
		return false, err
	}
	if b.outcome = outcome; receipt != nil {
		u.PutOrAdd(store.Doc{DocRef: b.dedup, Body: receipt.Encode(), ExpiresAt: receipt.ExpiresAt})
		timer := u.TimerAt(timerUsageDedup, txn.RoundUp(receipt.ExpiresAt, base.Minute))
		timer.Texts = append(timer.Texts, b.dedup.Key)
	}
	return !outcome.Repeated, nil
}

// sweepUsageDedup removes what is remembered of charges whose time is over (B26).
func (e *Admission) sweepUsageDedup(ctx context.Context, t store.Timer) error {
	return e.OnDocs(ctx, docUsageDedup, t.Texts, func(u *txn.Tx, doc *store.Doc) error {
		if doc.ExpiresAt <= u.Now {
			u.DropDoc(doc.DocRef)
		}
		return nil
	})
}
