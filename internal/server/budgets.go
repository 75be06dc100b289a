package server

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveBudgets() {
	handle(s, wire.CreateBudget, s.createBudget)
	pass(s, wire.ListBudgets)
	pass(s, wire.GetBudget)
	pass(s, wire.ListBudgetEpochs)
	pass(s, wire.ListBudgetSpend)
	pass(s, wire.UpdateBudget)
	pass(s, wire.DeleteBudget)
	pass(s, wire.CloseBudget)
	pass(s, wire.ReopenBudget)
	pass(s, wire.ResetBudget)
	pass(s, wire.ChargeBudget)
	pass(s, wire.ReleaseBudget)
	pass(s, wire.ReportUsage)
	pass(s, wire.GetUsage)
	pass(s, wire.ListExecutionBudgets)
}

// createBudget makes a budget (U95).
func (s *Server) createBudget(ctx context.Context, x *exchange, r *wire.CreateBudgetRequest) (answer, error) {
	made, err := ask(ctx, s, x.by, wire.CreateBudget, r)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusCreated, body: made}
	if made.Outcome == api.BudgetExists {
		a.status = http.StatusOK
	}
	return a.with("Location", "/v1/budgets/"+made.ID), nil
}
