package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric"
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
	handle(s, wire.ReportUsage, s.reportUsage)
	pass(s, wire.GetUsage)
	pass(s, wire.ListExecutionBudgets)
}

// createBudget makes a budget (U95).
func (s *Server) createBudget(ctx context.Context, r *wire.CreateBudgetRequest) (answer, error) {
	made, err := ask(ctx, s, wire.CreateBudget, r)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusCreated, body: made}
	if made.Outcome == api.BudgetExists {
		a.status = http.StatusOK
	}
	return a.with("Location", "/v1/budgets/"+made.ID), nil
}

// reportUsage reports what the work uses (U74). A report without a key of its own is known by that of its request, and its repeat has the
// first answer (U13).
func (s *Server) reportUsage(ctx context.Context, r *wire.ReportUsageRequest) (answer, error) {
	item, err := fenced(flowfabric.OpUsage, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.Usage = r.Body.Usage
	item.Usage.DedupKey = cmp.Or(item.Usage.DedupKey, exchangeOf(ctx).caller.OnceKey())
	a, err := s.do(ctx, item)
	if err != nil {
		return answer{}, asSent(err, "dedup_key", r.Body.DedupKey)
	}
	receipt := *a.Usage
	if r.Body.DedupKey == "" {
		receipt = receipt.First()
	}
	return shows(receipt), nil
}
