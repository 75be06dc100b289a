package server

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveBudgets() {
	handle(s, wire.CreateBudget, s.createBudget)
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
