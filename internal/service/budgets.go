package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) budgets() {
	on(s, wire.CreateBudget, s.createBudget)
	on(s, wire.ListBudgets, s.listBudgets)
	on(s, wire.GetBudget, s.getBudget)
	on(s, wire.ListBudgetEpochs, s.listEpochs)
	on(s, wire.ListBudgetSpend, s.listSpend)
	on(s, wire.UpdateBudget, s.updateBudget)
	on(s, wire.DeleteBudget, s.deleteBudget)
	on(s, wire.CloseBudget, s.closeBudget)
	on(s, wire.ReopenBudget, s.reopenBudget)
	on(s, wire.ResetBudget, s.resetBudget)
	on(s, wire.ChargeBudget, s.chargeBudget)
	on(s, wire.ReleaseBudget, s.releaseBudget)
	on(s, wire.GetUsage, s.getUsage)
	on(s, wire.ListExecutionBudgets, s.listExecutionBudgets)
}

// budget identifies a budget. A name is looked up in the namespace of the call; an id needs none.
func (c *Caller) budget(named wire.ByBudget) (engine.BudgetRef, error) {
	home, err := c.home()
	if _, isID := base.ParseUUID(named.ID); isID && base.CodeOf(err) == base.CodeNamespaceRequired {
		err = nil
	}
	return engine.BudgetRef{Namespace: home, Budget: named.ID}, err
}

// createBudget makes a budget (U95).
func (s *Service) createBudget(ctx context.Context, c Caller, r *wire.CreateBudgetRequest) (api.CreatedBudget, error) {
	if err := r.Body.CheckLimits(); err != nil {
		return api.CreatedBudget{}, err
	}
	home, err := c.home()
	if err != nil {
		return api.CreatedBudget{}, err
	}
	definition, err := budgetDefinition(&r.Body.Budget)
	if err != nil {
		return api.CreatedBudget{}, err
	}
	made, err := s.engine.CreateBudget(ctx, c.operator(), home, definition, c.action(r.Body.AdminFields, nil))
	if err != nil {
		return api.CreatedBudget{}, err
	}
	outcome := made.Outcome
	if !c.first() { // a try whose answer was lost may have created it
		outcome = api.BudgetCreated
	}
	return api.CreatedBudget{Outcome: outcome, BudgetStatus: *budgetOf(made.Budget)}, nil
}

// listBudgets lists the budgets and their numbers (U96).
func (s *Service) listBudgets(ctx context.Context, c Caller, r *wire.ListBudgetsRequest) (api.Page[*api.BudgetStatus], error) {
	return page(r.PageFields, budgetOf, func(cursor string, limit *int) ([]engine.BudgetView, string, error) {
		return s.engine.Budgets(ctx, c.client(), engine.BudgetQuery{Scope: r.Scope, Exhausted: r.Exhausted, State: r.State, Cursor: cursor, Limit: limit})
	})
}

// getBudget returns a budget and its numbers (U96).
func (s *Service) getBudget(ctx context.Context, c Caller, r *wire.ByBudget) (api.BudgetStatus, error) {
	ref, err := c.budget(*r)
	if err != nil {
		return api.BudgetStatus{}, err
	}
	return budgetShown(s.engine.Budget(ctx, c.client(), ref))
}

// listEpochs lists the past epochs of a budget (U96).
func (s *Service) listEpochs(ctx context.Context, c Caller, r *wire.BudgetEpochsRequest) (api.Page[api.BudgetEpoch], error) {
	return page(r.PageFields, epochOf, func(cursor string, limit *int) ([]core.EpochRecord, string, error) {
		ref, err := c.budget(r.ByBudget)
		if err != nil {
			return nil, "", err
		}
		return s.engine.BudgetEpochs(ctx, c.client(), ref, cursor, limit)
	})
}

// listSpend lists the usage of a budget by execution (U96).
func (s *Service) listSpend(ctx context.Context, c Caller, r *wire.BudgetSpendRequest) (api.Page[api.BudgetSpend], error) {
	return page(r.PageFields, spendOf, func(cursor string, limit *int) ([]engine.SpendRow, string, error) {
		ref, err := c.budget(r.ByBudget)
		if err != nil {
			return nil, "", err
		}
		execution, err := givenID(api.ID(r.ExecutionID))
		if err != nil {
			return nil, "", err
		}
		return s.engine.BudgetSpend(ctx, c.client(), ref, engine.SpendQuery{Epoch: r.Epoch, Execution: execution, Cursor: cursor, Limit: limit})
	})
}

// updateBudget changes a budget (U97).
func (s *Service) updateBudget(ctx context.Context, c Caller, r *wire.UpdateBudgetRequest) (api.BudgetStatus, error) {
	update, err := budgetUpdate(&r.Body.BudgetUpdate)
	if err != nil {
		return api.BudgetStatus{}, err
	}
	ref, err := c.budget(r.ByBudget)
	if err != nil {
		return api.BudgetStatus{}, err
	}
	return budgetShown(s.engine.UpdateBudget(ctx, c.operator(), ref, update, c.action(r.Body.AdminFields, r.IfMatch)))
}

// deleteBudget removes a budget (U97).
func (s *Service) deleteBudget(ctx context.Context, c Caller, r *wire.ChangeBudgetRequest) (wire.None, error) {
	ref, err := c.budget(r.ByBudget)
	if err != nil {
		return wire.None{}, err
	}
	return wire.None{}, s.engine.DeleteBudget(ctx, c.operator(), ref, c.action(r.Body, r.IfMatch))
}

// closeBudget stops a budget from admitting work (U97).
func (s *Service) closeBudget(ctx context.Context, c Caller, r *wire.ChangeBudgetRequest) (api.BudgetStatus, error) {
	return s.changeBudget(ctx, c, r, s.engine.CloseBudget)
}

// reopenBudget undoes close (U97).
func (s *Service) reopenBudget(ctx context.Context, c Caller, r *wire.ChangeBudgetRequest) (api.BudgetStatus, error) {
	return s.changeBudget(ctx, c, r, s.engine.ReopenBudget)
}

// resetBudget starts a new epoch (U97).
func (s *Service) resetBudget(ctx context.Context, c Caller, r *wire.ChangeBudgetRequest) (api.BudgetStatus, error) {
	return s.changeBudget(ctx, c, r, s.engine.ResetBudget)
}

func (s *Service) changeBudget(
	ctx context.Context, c Caller, r *wire.ChangeBudgetRequest,
	change func(context.Context, engine.Caller, engine.BudgetRef, engine.AdminAction) (engine.BudgetView, error),
) (api.BudgetStatus, error) {
	ref, err := c.budget(r.ByBudget)
	if err != nil {
		return api.BudgetStatus{}, err
	}
	return budgetShown(change(ctx, c.operator(), ref, c.action(r.Body, r.IfMatch)))
}

// chargeBudget books usage outside a lease (U98). A charge without a key of its own is identified by that of its request, and its
// repeat returns the first answer (U13).
func (s *Service) chargeBudget(ctx context.Context, c Caller, r *wire.ChargeBudgetRequest) (api.UsageReceipt, error) {
	ref, err := c.budget(r.ByBudget)
	if err != nil {
		return api.UsageReceipt{}, err
	}
	b := &r.Body
	execution, err := givenID(b.ExecutionID)
	if err != nil {
		return api.UsageReceipt{}, err
	}
	request := engine.ChargeRequest{Usage: b.Amounts, DedupKey: b.DedupKey, AlreadySpent: b.AlreadySpent, Execution: execution}
	if request.DedupKey == "" {
		request.DedupKey = c.once()
	}
	outcome, err := s.engine.Charge(ctx, c.operator(), ref, request)
	if err != nil {
		return api.UsageReceipt{}, ofRequestKey(err, "dedup_key", b.DedupKey)
	}
	receipt := UsageReceipt(outcome)
	if b.DedupKey == "" {
		return receipt.First(), nil
	}
	return receipt, nil
}

// releaseBudget returns to a budget what an execution has used (U98).
func (s *Service) releaseBudget(ctx context.Context, c Caller, r *wire.ReleaseBudgetRequest) (api.ReleasedSpend, error) {
	ref, err := c.budget(r.ByBudget)
	if err != nil {
		return api.ReleasedSpend{}, err
	}
	execution, err := base.ParseID(string(r.Body.ExecutionID))
	if err != nil {
		return api.ReleasedSpend{}, err
	}
	released, err := s.engine.ReleaseBudget(ctx, c.operator(), ref, execution, c.action(r.Body.AdminFields, nil))
	return api.ReleasedSpend{Released: amounts(released)}, err
}

// getUsage returns the usage of an execution (U42).
func (s *Service) getUsage(ctx context.Context, c Caller, r *wire.GetUsageRequest) (api.ExecutionUsage, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.ExecutionUsage{}, err
	}
	view, err := s.engine.Usage(ctx, c.client(), id, r.Attempt)
	if err != nil {
		return api.ExecutionUsage{}, err
	}
	return api.ExecutionUsage{ExecutionID: idOf(view.ExecutionID), Attempt: view.Attempt, Amounts: amounts(view.Usage)}, nil
}

// listExecutionBudgets lists the budgets that decide about an execution (U42).
func (s *Service) listExecutionBudgets(ctx context.Context, c Caller, r *wire.ByID) (api.ApplicableBudgets, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.ApplicableBudgets{}, err
	}
	found, err := s.engine.ApplicableBudgets(ctx, c.client(), id)
	if err != nil {
		return api.ApplicableBudgets{}, err
	}
	shown := api.ApplicableBudgets{Budgets: each(found.Budgets, budgetOf), Admitted: found.Refusal == nil}
	if refusal := found.Refusal; refusal != nil {
		shown.Refusal = &api.BudgetRefusal{BlockedOn: refusal.Key, Detail: refusal.Detail}
	}
	return shown, nil
}
