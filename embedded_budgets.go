package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedBudgets struct{ client *embedded }

func (embeddedBudgets) sealed() {}

func (e *embedded) Budgets() Budgets { return embeddedBudgets{e} }

// ref names a budget. A name is looked for in the namespace of the call; an id needs none.
func (e embeddedBudgets) ref(ctx context.Context, budget string) (engine.BudgetRef, error) {
	home, err := e.client.home(ctx)
	if _, isID := core.ParseUUID(budget); isID && CodeOf(err) == string(core.CodeNamespaceRequired) {
		err = nil
	}
	return engine.BudgetRef{Namespace: home, Budget: budget}, err
}

func (e embeddedBudgets) Create(ctx context.Context, b Budget, o ...AdminAction) (*BudgetStatus, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	home, err := e.client.home(ctx)
	if err != nil {
		return nil, err
	}
	definition, err := b.core()
	if err != nil {
		return nil, err
	}
	how, tries := e.client.action(ctx, options), 0
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.BudgetAnswer, error) {
		tries++
		return e.client.engine.CreateBudget(ctx, e.client.asOperator(ctx), home, definition, how)
	})
	if err != nil {
		return nil, err
	}
	status := budgetOf(answer.Budget)
	status.Existed = answer.Outcome == outcomeExists && tries == 1 // a try whose answer was lost had made it
	return status, nil
}

// outcomeExists is that of a create of what there was.
const outcomeExists = "already_exists"

func (e embeddedBudgets) Get(ctx context.Context, budget string) (*BudgetStatus, error) {
	ref, err := e.ref(ctx, budget)
	if err != nil {
		return nil, err
	}
	view, err := e.client.engine.Budget(ctx, e.client.asClient(ctx), ref)
	if err != nil {
		return nil, publicError(err)
	}
	return budgetOf(view), nil
}

func (e embeddedBudgets) List(ctx context.Context, q ...BudgetQuery) iter.Seq2[*BudgetStatus, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[*BudgetStatus], error) {
		query.Cursor = cursor
		return e.Page(ctx, query)
	})
}

func (e embeddedBudgets) Page(ctx context.Context, q ...BudgetQuery) (Page[*BudgetStatus], error) {
	query, err := single(q)
	if err != nil {
		return Page[*BudgetStatus]{}, err
	}
	views, next, err := e.client.engine.Budgets(ctx, e.client.asClient(ctx), engine.BudgetQuery{
		Scope: query.Scope, Exhausted: query.Exhausted, State: query.State, Cursor: query.Cursor, Limit: limitOf(query.Limit),
	})
	if err != nil {
		return Page[*BudgetStatus]{}, publicError(err)
	}
	return pageOf(views, budgetOf, next), nil
}

func (e embeddedBudgets) Update(ctx context.Context, budget string, u BudgetUpdate, o ...AdminAction) (*BudgetStatus, error) {
	update, err := u.core()
	if err != nil {
		return nil, err
	}
	return e.change(ctx, budget, o, func(ref engine.BudgetRef, how engine.AdminAction) (engine.BudgetView, error) {
		return e.client.engine.UpdateBudget(ctx, e.client.asOperator(ctx), ref, update, how)
	})
}

func (e embeddedBudgets) Close(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error) {
	return e.change(ctx, budget, o, func(ref engine.BudgetRef, how engine.AdminAction) (engine.BudgetView, error) {
		return e.client.engine.CloseBudget(ctx, e.client.asOperator(ctx), ref, how)
	})
}

func (e embeddedBudgets) Reopen(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error) {
	return e.change(ctx, budget, o, func(ref engine.BudgetRef, how engine.AdminAction) (engine.BudgetView, error) {
		return e.client.engine.ReopenBudget(ctx, e.client.asOperator(ctx), ref, how)
	})
}

func (e embeddedBudgets) Reset(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error) {
	return e.change(ctx, budget, o, func(ref engine.BudgetRef, how engine.AdminAction) (engine.BudgetView, error) {
		return e.client.engine.ResetBudget(ctx, e.client.asOperator(ctx), ref, how)
	})
}

// change makes a change of a budget and shows it.
func (e embeddedBudgets) change(
	ctx context.Context, budget string, o []AdminAction, do func(engine.BudgetRef, engine.AdminAction) (engine.BudgetView, error),
) (*BudgetStatus, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	ref, err := e.ref(ctx, budget)
	if err != nil {
		return nil, err
	}
	how := e.client.action(ctx, options)
	view, err := untilKnown(ctx, e.client.clock, func() (engine.BudgetView, error) { return do(ref, how) })
	if err != nil {
		return nil, err
	}
	return budgetOf(view), nil
}

func (e embeddedBudgets) Delete(ctx context.Context, budget string, o ...AdminAction) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	ref, err := e.ref(ctx, budget)
	if err != nil {
		return err
	}
	how := e.client.action(ctx, options)
	_, err = untilKnown(ctx, e.client.clock, func() (None, error) {
		return None{}, e.client.engine.DeleteBudget(ctx, e.client.asOperator(ctx), ref, how)
	})
	return err
}

func (e embeddedBudgets) Charge(ctx context.Context, budget string, c Charge) (UsageReceipt, error) {
	ref, err := e.ref(ctx, budget)
	if err != nil {
		return UsageReceipt{}, err
	}
	usage, minted := c.keyed(e.client.clock)
	request := engine.ChargeRequest{Usage: usage.Amounts, DedupKey: usage.DedupKey, AlreadySpent: usage.AlreadySpent}
	if c.ExecutionID != "" {
		given, err := parseID(c.ExecutionID)
		if err != nil {
			return UsageReceipt{}, err
		}
		request.Execution = &given
	}
	outcome, err := untilKnown(ctx, e.client.clock, func() (core.UsageOutcome, error) {
		return e.client.engine.Charge(ctx, e.client.asOperator(ctx), ref, request)
	})
	return usageReceiptOf(outcome, minted), err
}

func (e embeddedBudgets) ReleaseSpend(ctx context.Context, budget string, execution ID, o ...AdminAction) (map[string]int64, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	ref, err := e.ref(ctx, budget)
	if err != nil {
		return nil, err
	}
	given, err := parseID(execution)
	if err != nil {
		return nil, err
	}
	how := e.client.action(ctx, options)
	return untilKnown(ctx, e.client.clock, func() (map[string]int64, error) {
		return e.client.engine.ReleaseBudget(ctx, e.client.asOperator(ctx), ref, given, how)
	})
}

func (e embeddedBudgets) Epochs(ctx context.Context, budget string) iter.Seq2[BudgetEpoch, error] {
	return walk(nil, "", func(cursor string) (Page[BudgetEpoch], error) {
		return e.EpochsPage(ctx, budget, PageOptions{Cursor: cursor})
	})
}

func (e embeddedBudgets) EpochsPage(ctx context.Context, budget string, o ...PageOptions) (Page[BudgetEpoch], error) {
	options, err := single(o)
	if err != nil {
		return Page[BudgetEpoch]{}, err
	}
	ref, err := e.ref(ctx, budget)
	if err != nil {
		return Page[BudgetEpoch]{}, err
	}
	epochs, next, err := e.client.engine.BudgetEpochs(ctx, e.client.asClient(ctx), ref, options.Cursor, limitOf(options.Limit))
	if err != nil {
		return Page[BudgetEpoch]{}, publicError(err)
	}
	return pageOf(epochs, epochOf, next), nil
}

func (e embeddedBudgets) Spend(ctx context.Context, budget string, q ...SpendQuery) iter.Seq2[BudgetSpend, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[BudgetSpend], error) {
		query.Cursor = cursor
		return e.SpendPage(ctx, budget, query)
	})
}

func (e embeddedBudgets) SpendPage(ctx context.Context, budget string, q ...SpendQuery) (Page[BudgetSpend], error) {
	query, err := single(q)
	if err != nil {
		return Page[BudgetSpend]{}, err
	}
	ref, err := e.ref(ctx, budget)
	if err != nil {
		return Page[BudgetSpend]{}, err
	}
	request := engine.SpendQuery{Epoch: query.Epoch, Cursor: query.Cursor, Limit: limitOf(query.Limit)}
	if query.ExecutionID != "" {
		given, err := parseID(query.ExecutionID)
		if err != nil {
			return Page[BudgetSpend]{}, err
		}
		request.Execution = &given
	}
	rows, next, err := e.client.engine.BudgetSpend(ctx, e.client.asClient(ctx), ref, request)
	if err != nil {
		return Page[BudgetSpend]{}, publicError(err)
	}
	return pageOf(rows, spendOf, next), nil
}

func (e embeddedExecutions) Usage(ctx context.Context, id ID, o ...UsageOptions) (ExecutionUsage, error) {
	options, err := single(o)
	if err != nil {
		return ExecutionUsage{}, err
	}
	given, err := parseID(id)
	if err != nil {
		return ExecutionUsage{}, err
	}
	view, err := e.client.engine.Usage(ctx, e.client.asClient(ctx), given, options.Attempt)
	if err != nil {
		return ExecutionUsage{}, publicError(err)
	}
	return ExecutionUsage{ExecutionID: idOf(view.ExecutionID), Attempt: view.Attempt, Amounts: view.Usage}, nil
}

func (e embeddedExecutions) Budgets(ctx context.Context, id ID) (ApplicableBudgets, error) {
	given, err := parseID(id)
	if err != nil {
		return ApplicableBudgets{}, err
	}
	found, err := e.client.engine.ApplicableBudgets(ctx, e.client.asClient(ctx), given)
	if err != nil {
		return ApplicableBudgets{}, publicError(err)
	}
	shown := ApplicableBudgets{Budgets: each(found.Budgets, budgetOf)}
	if r := found.Refusal; r != nil {
		shown.Refusal = &BudgetRefusal{BlockedOn: r.Key, Detail: r.Detail}
	}
	return shown, nil
}
