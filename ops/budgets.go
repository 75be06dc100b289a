package ops

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Budgets limit what executions use: tokens, money, time, or anything that can be counted. A claim reserves an amount, reports
// book against it, the end of a lease returns the rest, and a breached limit triggers an action. A budget belongs to a namespace;
// every call takes its id or its name.
//
// A Revision in an AdminAction that differs from the budget's is stale_version.
type Budgets struct{ via transport.Transport }

// BudgetQuery filters a list of budgets. The zero value: all of them.
type BudgetQuery struct {
	Scope     string // a type, or type:value, such as lane:mail
	Exhausted *bool  // whether some dimension has no room for new work
	State     string // active, closed
	api.PageOptions
}

// SpendQuery filters the usage of a budget by execution. The zero value selects all usage of the current epoch.
type SpendQuery struct {
	Epoch       *int64
	ExecutionID api.ID
	api.PageOptions
}

// Create creates a budget. With the same definition again, by name or by id, it returns the existing one.
//
// Codes: invalid_budget with the field, budget_already_exists for another definition, budget_not_found for the parent,
// execution_not_found and flow_not_found for the scope, idempotency_conflict.
func (b Budgets) Create(ctx context.Context, definition api.Budget, o ...AdminAction) (*api.CreatedBudget, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	if definition.Dimensions == nil {
		definition.Dimensions = map[string]api.BudgetLimits{} // an empty map is rejected by validation
	}
	var request wire.CreateBudgetRequest
	request.Body.Budget, request.Body.AdminFields = definition, options.wire()
	return transport.Call(ctx, b.via, wire.CreateBudget, &request, transport.Options{Key: options.RequestKey})
}

// Get returns a budget and its numbers. Codes: budget_not_found.
func (b Budgets) Get(ctx context.Context, budget string) (*api.BudgetStatus, error) {
	return transport.Call(ctx, b.via, wire.GetBudget, &wire.ByBudget{ID: budget}, transport.Options{})
}

// List iterates over the budgets by id, the oldest first. Codes: invalid_argument, invalid_cursor.
func (b Budgets) List(ctx context.Context, q ...BudgetQuery) iter.Seq2[*api.BudgetStatus, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (api.Page[*api.BudgetStatus], error) {
		query.Cursor = cursor
		return b.Page(ctx, query)
	})
}

// Page returns one page of them. Codes: invalid_argument, invalid_cursor.
func (b Budgets) Page(ctx context.Context, q ...BudgetQuery) (api.Page[*api.BudgetStatus], error) {
	query, err := transport.Single(q)
	if err != nil {
		return api.Page[*api.BudgetStatus]{}, err
	}
	request := &wire.ListBudgetsRequest{
		PageFields: calls.PageFields(query.Limit, query.Cursor), Scope: query.Scope, Exhausted: query.Exhausted, State: query.State,
	}
	return calls.Value(transport.Call(ctx, b.via, wire.ListBudgets, request, transport.Options{}))
}

// Update changes the given settings. If that makes room, work that waits for it starts at once.
//
// Codes: budget_not_found, stale_version, invalid_budget, limit_below_usage with the minimum, budget_in_use for a dimension with
// reservations, budget_already_exists for a name in use.
func (b Budgets) Update(ctx context.Context, budget string, u api.BudgetUpdate, o ...AdminAction) (*api.BudgetStatus, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.UpdateBudgetRequest{ByBudget: wire.ByBudget{ID: budget}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.BudgetUpdate, request.Body.AdminFields = u, options.wire()
	return transport.Call(ctx, b.via, wire.UpdateBudget, request, transport.Options{Key: options.RequestKey})
}

// Close stops a budget from admitting work and accepting charges; running work can still book usage. Codes: budget_not_found,
// stale_version.
func (b Budgets) Close(ctx context.Context, budget string, o ...AdminAction) (*api.BudgetStatus, error) {
	return changeBudget(ctx, b, wire.CloseBudget, budget, o)
}

// Reopen undoes Close. Codes: budget_not_found, stale_version.
func (b Budgets) Reopen(ctx context.Context, budget string, o ...AdminAction) (*api.BudgetStatus, error) {
	return changeBudget(ctx, b, wire.ReopenBudget, budget, o)
}

// Reset starts a new epoch now and leaves the schedule unchanged. Codes: budget_not_found, stale_version.
func (b Budgets) Reset(ctx context.Context, budget string, o ...AdminAction) (*api.BudgetStatus, error) {
	return changeBudget(ctx, b, wire.ResetBudget, budget, o)
}

// Delete removes a budget. Codes: budget_not_found, stale_version, budget_in_use while it has children or unfinished work refers
// to it.
func (b Budgets) Delete(ctx context.Context, budget string, o ...AdminAction) error {
	_, err := changeBudget(ctx, b, wire.DeleteBudget, budget, o)
	return err
}

// changeBudget makes a change that needs only the name of a budget.
func changeBudget[Ans any](ctx context.Context, b Budgets, call wire.Call[wire.ChangeBudgetRequest, Ans], budget string, o []AdminAction) (*Ans, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.ChangeBudgetRequest{ByBudget: wire.ByBudget{ID: budget}, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire()}
	return transport.Call(ctx, b.via, call, request, transport.Options{Key: options.RequestKey})
}

// Charge books usage outside a lease, against the budget and its ancestors. A breach is reported in the receipt, not as an error.
//
// Codes: invalid_usage, reserved_dimension, unknown_dimension, amount_out_of_range, budget_not_found, budget_closed,
// execution_not_found, idempotency_conflict.
func (b Budgets) Charge(ctx context.Context, budget string, c api.Charge) (api.UsageReceipt, error) {
	if c.Amounts == nil {
		c.Amounts = map[string]int64{} // an empty map is rejected by validation
	}
	request := &wire.ChargeBudgetRequest{ByBudget: wire.ByBudget{ID: budget}}
	request.Body.Charge = c
	return calls.Value(transport.Call(ctx, b.via, wire.ChargeBudget, request, transport.Options{}))
}

// Refund returns to the budget what an execution has used of it in the current epoch, and returns the amounts by dimension.
// A second call has nothing to return. Codes: budget_not_found, stale_version.
func (b Budgets) Refund(ctx context.Context, budget string, execution api.ID, o ...AdminAction) (map[string]int64, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.ReleaseBudgetRequest{ByBudget: wire.ByBudget{ID: budget}}
	request.Body.ExecutionID, request.Body.AdminFields = execution, options.wire()
	answer, err := transport.Call(ctx, b.via, wire.ReleaseBudget, request, transport.Options{Key: options.RequestKey})
	if err != nil {
		return nil, err
	}
	return answer.Released, nil
}

// Epochs iterates over past epochs, newest first. Codes: budget_not_found.
func (b Budgets) Epochs(ctx context.Context, budget string) iter.Seq2[api.BudgetEpoch, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[api.BudgetEpoch], error) {
		return b.EpochsPage(ctx, budget, api.PageOptions{Cursor: cursor})
	})
}

// EpochsPage returns one page of them. Codes: budget_not_found, invalid_cursor.
func (b Budgets) EpochsPage(ctx context.Context, budget string, o ...api.PageOptions) (api.Page[api.BudgetEpoch], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[api.BudgetEpoch]{}, err
	}
	request := &wire.BudgetEpochsRequest{ByBudget: wire.ByBudget{ID: budget}, PageFields: calls.PageFields(options.Limit, options.Cursor)}
	return calls.Value(transport.Call(ctx, b.via, wire.ListBudgetEpochs, request, transport.Options{}))
}

// Spend iterates over the usage by execution, the largest first. Codes: budget_not_found.
func (b Budgets) Spend(ctx context.Context, budget string, q ...SpendQuery) iter.Seq2[api.BudgetSpend, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (api.Page[api.BudgetSpend], error) {
		query.Cursor = cursor
		return b.SpendPage(ctx, budget, query)
	})
}

// SpendPage returns one page of it. Codes: budget_not_found, invalid_cursor.
func (b Budgets) SpendPage(ctx context.Context, budget string, q ...SpendQuery) (api.Page[api.BudgetSpend], error) {
	query, err := transport.Single(q)
	if err != nil {
		return api.Page[api.BudgetSpend]{}, err
	}
	request := &wire.BudgetSpendRequest{
		ByBudget: wire.ByBudget{ID: budget}, PageFields: calls.PageFields(query.Limit, query.Cursor), Epoch: query.Epoch, ExecutionID: string(query.ExecutionID),
	}
	return calls.Value(transport.Call(ctx, b.via, wire.ListBudgetSpend, request, transport.Options{}))
}
