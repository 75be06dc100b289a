package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveBudgets() {
	handle(s, wire.CreateBudget, s.createBudget)
	handle(s, wire.ListBudgets, s.listBudgets)
	handle(s, wire.GetBudget, s.getBudget)
	handle(s, wire.ListBudgetEpochs, s.listEpochs)
	handle(s, wire.ListBudgetSpend, s.listSpend)
	handle(s, wire.UpdateBudget, s.updateBudget)
	handle(s, wire.DeleteBudget, s.deleteBudget)
	handle(s, wire.CloseBudget, s.closeBudget)
	handle(s, wire.ReopenBudget, s.reopenBudget)
	handle(s, wire.ResetBudget, s.resetBudget)
	handle(s, wire.ChargeBudget, s.chargeBudget)
	handle(s, wire.ReleaseBudget, s.releaseBudget)
	handle(s, wire.ReportUsage, s.reportUsage)
	handle(s, wire.GetUsage, s.getUsage)
	handle(s, wire.ListExecutionBudgets, s.listExecutionBudgets)
}

// createBudget makes a budget (U95).
func (s *Server) createBudget(ctx context.Context, r *wire.CreateBudgetRequest) (answer, error) {
	var definition flowfabric.Budget
	if err := through(r.Body.NewBudget, &definition); err != nil {
		return answer{}, err
	}
	made, err := s.client.Budgets().Create(ctx, definition, adminAction(r.Body.AdminFields, nil))
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusCreated, body: flat{outcomeOnly{"created"}, made}}
	if made.Existed {
		a = answer{status: http.StatusOK, body: flat{outcomeOnly{"already_exists"}, made}}
	}
	return a.with("Location", "/v1/budgets/"+made.ID), nil
}

// listBudgets lists the budgets and their numbers (U96).
func (s *Server) listBudgets(ctx context.Context, r *wire.ListBudgetsRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.BudgetStatus], error) {
		return s.client.Budgets().Page(ctx, flowfabric.BudgetQuery{Scope: r.Scope, Exhausted: r.Exhausted, State: r.State, PageOptions: o})
	})
}

// getBudget shows a budget and its numbers (U96).
func (s *Server) getBudget(ctx context.Context, r *wire.ByBudget) (answer, error) {
	return budgetShown(s.client.Budgets().Get(ctx, r.ID))
}

func budgetShown(budget *flowfabric.BudgetStatus, err error) (answer, error) {
	return shows(budget), err
}

// listEpochs lists the epochs of a budget that are over (U96).
func (s *Server) listEpochs(ctx context.Context, r *wire.BudgetEpochsRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[flowfabric.BudgetEpoch], error) {
		return s.client.Budgets().EpochsPage(ctx, r.ID, o)
	})
}

// listSpend lists what executions have used of a budget (U96).
func (s *Server) listSpend(ctx context.Context, r *wire.BudgetSpendRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[flowfabric.BudgetSpend], error) {
		return s.client.Budgets().SpendPage(ctx, r.ID, flowfabric.SpendQuery{Epoch: r.Epoch, ExecutionID: flowfabric.ID(r.ExecutionID), PageOptions: o})
	})
}

// updateBudget changes a budget (U97).
func (s *Server) updateBudget(ctx context.Context, r *wire.UpdateBudgetRequest) (answer, error) {
	b := r.Body
	update := flowfabric.BudgetUpdate{
		Name: b.Name, RemoveDimensions: b.RemoveDimensions, OnHard: (*flowfabric.HardAction)(b.OnHard), OnLeaseLoss: (*flowfabric.LossAction)(b.OnLeaseLoss),
	}
	for name, change := range b.Dimensions {
		if update.Dimensions == nil {
			update.Dimensions = map[string]flowfabric.LimitChange{}
		}
		update.Dimensions[name] = flowfabric.LimitChange{Hard: change.Hard, Soft: change.Soft, DefaultReserve: change.DefaultReserve, Remove: change.Remove}
	}
	if b.Reset != nil {
		update.Reset = &flowfabric.BudgetReset{
			Type: b.Reset.Type, Every: millis(b.Reset.EveryMS), AnchorAt: b.Reset.AnchorAt.Time, Unit: b.Reset.Unit, Timezone: b.Reset.Timezone,
		}
	}
	if b.Approval != nil {
		update.Approval = &flowfabric.BudgetApproval{
			Timeout: millis(b.Approval.TimeoutMS), OnTimeout: flowfabric.TimeoutBehavior(b.Approval.TimeoutBehavior), DefaultRaise: b.Approval.DefaultRaise,
		}
	}
	return budgetShown(s.client.Budgets().Update(ctx, r.ID, update, adminAction(b.AdminFields, r.IfMatch)))
}

// deleteBudget removes a budget (U97).
func (s *Server) deleteBudget(ctx context.Context, r *wire.ChangeBudgetRequest) (answer, error) {
	return nothing(), s.client.Budgets().Delete(ctx, r.ID, adminAction(r.Body, r.IfMatch))
}

// closeBudget lets a budget admit nobody (U97).
func (s *Server) closeBudget(ctx context.Context, r *wire.ChangeBudgetRequest) (answer, error) {
	return budgetShown(s.client.Budgets().Close(ctx, r.ID, adminAction(r.Body, r.IfMatch)))
}

// reopenBudget undoes close (U97).
func (s *Server) reopenBudget(ctx context.Context, r *wire.ChangeBudgetRequest) (answer, error) {
	return budgetShown(s.client.Budgets().Reopen(ctx, r.ID, adminAction(r.Body, r.IfMatch)))
}

// resetBudget begins a new epoch (U97).
func (s *Server) resetBudget(ctx context.Context, r *wire.ChangeBudgetRequest) (answer, error) {
	return budgetShown(s.client.Budgets().Reset(ctx, r.ID, adminAction(r.Body, r.IfMatch)))
}

// chargeBudget books what was used without a lease (U98).
func (s *Server) chargeBudget(ctx context.Context, r *wire.ChargeBudgetRequest) (answer, error) {
	usage := usageOf(r.Body.Usage, r.Body.UsageFields, exchangeOf(ctx).onceKey())
	receipt, err := s.client.Budgets().Charge(ctx, r.ID, flowfabric.Charge{Usage: usage, ExecutionID: flowfabric.ID(r.Body.ExecutionID)})
	return receiptShown(receipt, r.Body.DedupKey), err
}

// releaseBudget gives back what an execution has used (U98).
func (s *Server) releaseBudget(ctx context.Context, r *wire.ReleaseBudgetRequest) (answer, error) {
	released, err := s.client.Budgets().ReleaseSpend(ctx, r.ID, flowfabric.ID(r.Body.ExecutionID), adminAction(r.Body.AdminFields, nil))
	if released == nil {
		released = map[string]int64{}
	}
	return shows(wire.ReleasedSpend{Released: released}), err
}

// reportUsage reports what the work uses (U74).
func (s *Server) reportUsage(ctx context.Context, r *wire.ReportUsageRequest) (answer, error) {
	item, err := fenced(flowfabric.OpUsage, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.Usage = usageOf(r.Body.Usage, r.Body.UsageFields, exchangeOf(ctx).onceKey())
	a, err := s.do(ctx, item)
	if err != nil {
		return answer{}, err
	}
	return receiptShown(*a.Usage, r.Body.DedupKey), nil
}

// usageOf is a report. One without a key of its own is known by that of its request.
func usageOf(amounts map[string]int64, f wire.UsageFields, once string) flowfabric.Usage {
	return flowfabric.Usage{Amounts: amounts, DedupKey: cmp.Or(f.DedupKey, once), AlreadySpent: f.AlreadySpent}
}

// receiptShown is the answer to a report. A repeat that was only known by the key of its request has the first answer (U13).
func receiptShown(receipt flowfabric.UsageReceipt, key string) answer {
	receipt.Repeated = receipt.Repeated && key != ""
	return shows(receipt)
}

// getUsage shows what an execution has used (U42).
func (s *Server) getUsage(ctx context.Context, r *wire.GetUsageRequest) (answer, error) {
	usage, err := s.client.Executions().Usage(ctx, flowfabric.ID(r.ID), flowfabric.UsageOptions{Attempt: r.Attempt})
	return shows(usage), err
}

// listExecutionBudgets shows the budgets that decide about an execution (U42).
func (s *Server) listExecutionBudgets(ctx context.Context, r *wire.ByID) (answer, error) {
	budgets, err := s.client.Executions().Budgets(ctx, flowfabric.ID(r.ID))
	return shows(budgets), err
}
