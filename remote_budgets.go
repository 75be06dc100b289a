package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteBudgets struct{ client *remote }

func (remoteBudgets) sealed() {}

func (r *remote) Budgets() Budgets { return remoteBudgets{r} }

func (r remoteBudgets) Create(ctx context.Context, b Budget, o ...AdminAction) (*BudgetStatus, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	if err := b.Reset.check(); err != nil {
		return nil, err
	}
	var request wire.CreateBudgetRequest
	request.Body.Name, request.Body.BudgetFields, request.Body.AdminFields = b.Name, b.fields(), options.wire()
	if b.Scope != (BudgetScope{}) {
		request.Body.Scope = &wire.BudgetScope{Type: b.Scope.Type, Value: b.Scope.Value}
	}
	answer, err := call(ctx, r.client, wire.CreateBudget, &request, sending{key: options.RequestKey})
	if err != nil {
		return nil, err
	}
	status := budgetStatusFrom(answer.Budget)
	status.Existed = answer.Outcome == outcomeExists
	return status, nil
}

func (r remoteBudgets) Get(ctx context.Context, budget string) (*BudgetStatus, error) {
	return oneBudget(ctx, r.client, wire.GetBudget, &wire.ByBudget{ID: budget}, "")
}

func (r remoteBudgets) List(ctx context.Context, q ...BudgetQuery) iter.Seq2[*BudgetStatus, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[*BudgetStatus], error) {
		query.Cursor = cursor
		return r.Page(ctx, query)
	})
}

func (r remoteBudgets) Page(ctx context.Context, q ...BudgetQuery) (Page[*BudgetStatus], error) {
	query, err := single(q)
	if err != nil {
		return Page[*BudgetStatus]{}, err
	}
	request := &wire.ListBudgetsRequest{
		PageFields: pageFields(query.Limit, query.Cursor), Scope: query.Scope, Exhausted: query.Exhausted, State: query.State,
	}
	return onePage(ctx, r.client, wire.ListBudgets, request, budgetStatusFrom)
}

func (r remoteBudgets) Update(ctx context.Context, budget string, u BudgetUpdate, o ...AdminAction) (*BudgetStatus, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	if _, err := u.core(); err != nil {
		return nil, err
	}
	request := &wire.UpdateBudgetRequest{ByBudget: wire.ByBudget{ID: budget}, IfMatch: (*wire.Revision)(options.Revision)}
	body := &request.Body
	body.Name, body.OnHard, body.OnLeaseLoss, body.AdminFields = u.Name, (*string)(u.OnHard), (*string)(u.OnLeaseLoss), options.wire()
	body.RemoveDimensions = u.RemoveDimensions
	for name, change := range u.Dimensions {
		if body.Dimensions == nil {
			body.Dimensions = map[string]wire.LimitChange{}
		}
		body.Dimensions[name] = wire.LimitChange{
			BudgetLimits: wire.BudgetLimits{Hard: change.Hard, Soft: change.Soft, DefaultReserve: change.DefaultReserve}, Remove: change.Remove,
		}
	}
	if u.Reset != nil {
		reset := u.Reset.wire()
		body.Reset = &reset
	}
	if u.Approval != nil {
		approval := u.Approval.wire()
		body.Approval = &approval
	}
	return oneBudget(ctx, r.client, wire.UpdateBudget, request, options.RequestKey)
}

func (r remoteBudgets) Close(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error) {
	return changeBudget(ctx, r.client, wire.CloseBudget, budget, o)
}

func (r remoteBudgets) Reopen(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error) {
	return changeBudget(ctx, r.client, wire.ReopenBudget, budget, o)
}

func (r remoteBudgets) Reset(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error) {
	return changeBudget(ctx, r.client, wire.ResetBudget, budget, o)
}

func (r remoteBudgets) Delete(ctx context.Context, budget string, o ...AdminAction) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	_, err = call(ctx, r.client, wire.DeleteBudget, options.onBudget(budget), sending{key: options.RequestKey})
	return err
}

// onBudget is a request that changes a budget.
func (a AdminAction) onBudget(budget string) *wire.ChangeBudgetRequest {
	return &wire.ChangeBudgetRequest{ByBudget: wire.ByBudget{ID: budget}, IfMatch: (*wire.Revision)(a.Revision), Body: a.wire()}
}

func changeBudget(ctx context.Context, r *remote, c wire.Call[wire.ChangeBudgetRequest, wire.Budget], budget string, o []AdminAction) (*BudgetStatus, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return oneBudget(ctx, r, c, options.onBudget(budget), options.RequestKey)
}

// oneBudget makes a call that answers a budget.
func oneBudget[Req any](ctx context.Context, r *remote, c wire.Call[Req, wire.Budget], request *Req, key string) (*BudgetStatus, error) {
	answer, err := call(ctx, r, c, request, sending{key: key})
	if err != nil {
		return nil, err
	}
	return budgetStatusFrom(*answer), nil
}

func (r remoteBudgets) Charge(ctx context.Context, budget string, c Charge) (UsageReceipt, error) {
	usage, minted := c.keyed(r.client.clock)
	request := &wire.ChargeBudgetRequest{ByBudget: wire.ByBudget{ID: budget}}
	request.Body.Usage, request.Body.DedupKey, request.Body.AlreadySpent = amounts(usage.Amounts), usage.DedupKey, usage.AlreadySpent
	if c.ExecutionID != "" {
		if _, err := parseID(c.ExecutionID); err != nil {
			return UsageReceipt{}, err
		}
		request.Body.ExecutionID = string(c.ExecutionID)
	}
	answer, err := call(ctx, r.client, wire.ChargeBudget, request, sending{})
	if err != nil {
		return UsageReceipt{}, err
	}
	receipt := usageReceiptFrom(answer)
	receipt.Repeated = receipt.Repeated && !minted
	return receipt, nil
}

func (r remoteBudgets) ReleaseSpend(ctx context.Context, budget string, execution ID, o ...AdminAction) (map[string]int64, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	if _, err := parseID(execution); err != nil {
		return nil, err
	}
	request := &wire.ReleaseBudgetRequest{ByBudget: wire.ByBudget{ID: budget}}
	request.Body.ExecutionID, request.Body.AdminFields = string(execution), options.wire()
	answer, err := call(ctx, r.client, wire.ReleaseBudget, request, sending{key: options.RequestKey})
	if err != nil {
		return nil, err
	}
	return answer.Released, nil
}

func (r remoteBudgets) Epochs(ctx context.Context, budget string) iter.Seq2[BudgetEpoch, error] {
	return walk(nil, "", func(cursor string) (Page[BudgetEpoch], error) {
		return r.EpochsPage(ctx, budget, PageOptions{Cursor: cursor})
	})
}

func (r remoteBudgets) EpochsPage(ctx context.Context, budget string, o ...PageOptions) (Page[BudgetEpoch], error) {
	options, err := single(o)
	if err != nil {
		return Page[BudgetEpoch]{}, err
	}
	request := &wire.BudgetEpochsRequest{ByBudget: wire.ByBudget{ID: budget}, PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListBudgetEpochs, request, epochFrom)
}

func (r remoteBudgets) Spend(ctx context.Context, budget string, q ...SpendQuery) iter.Seq2[BudgetSpend, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[BudgetSpend], error) {
		query.Cursor = cursor
		return r.SpendPage(ctx, budget, query)
	})
}

func (r remoteBudgets) SpendPage(ctx context.Context, budget string, q ...SpendQuery) (Page[BudgetSpend], error) {
	query, err := single(q)
	if err != nil {
		return Page[BudgetSpend]{}, err
	}
	request := &wire.BudgetSpendRequest{
		ByBudget: wire.ByBudget{ID: budget}, PageFields: pageFields(query.Limit, query.Cursor), Epoch: query.Epoch, ExecutionID: string(query.ExecutionID),
	}
	return onePage(ctx, r.client, wire.ListBudgetSpend, request, spendFrom)
}

func (r remoteExecutions) Usage(ctx context.Context, id ID, o ...UsageOptions) (ExecutionUsage, error) {
	options, err := single(o)
	if err != nil {
		return ExecutionUsage{}, err
	}
	path, err := byID(id)
	if err != nil {
		return ExecutionUsage{}, err
	}
	answer, err := call(ctx, r.client, wire.GetUsage, &wire.GetUsageRequest{ByID: path, Attempt: options.Attempt}, sending{})
	if err != nil {
		return ExecutionUsage{}, err
	}
	return usageFrom(answer), nil
}

func (r remoteExecutions) Budgets(ctx context.Context, id ID) (ApplicableBudgets, error) {
	path, err := byID(id)
	if err != nil {
		return ApplicableBudgets{}, err
	}
	answer, err := call(ctx, r.client, wire.ListExecutionBudgets, &path, sending{})
	if err != nil {
		return ApplicableBudgets{}, err
	}
	return applicableFrom(answer), nil
}
