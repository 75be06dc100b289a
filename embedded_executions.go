package flowfabric

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

type embeddedExecutions struct{ client *embedded }

func (embeddedExecutions) sealed() {}

func (e embeddedExecutions) List(ctx context.Context, o ...ListOptions) iter.Seq2[*Execution, error] {
	return func(yield func(*Execution, error) bool) {
		options, err := single(o)
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			page, err := e.Page(ctx, options)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, x := range page.Items {
				if !yield(x, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			options.Cursor = page.NextCursor
		}
	}
}

func (e embeddedExecutions) Page(ctx context.Context, o ...ListOptions) (Page[*Execution], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Execution]{}, err
	}
	order, err := options.Order.store()
	if err != nil {
		return Page[*Execution]{}, err
	}
	request := engine.ListRequest{Filter: options.Filter.core(), Order: order, Cursor: options.Cursor}
	if options.Limit != 0 {
		request.Limit = &options.Limit
	}
	page, err := e.client.engine.List(ctx, e.client.asClient(ctx), request)
	if err != nil {
		return Page[*Execution]{}, publicError(err)
	}
	items := make([]*Execution, len(page.Items))
	for i, view := range page.Items {
		items[i] = executionOf(view)
	}
	return Page[*Execution]{Items: items, NextCursor: page.Next, AsOf: page.AsOf.Std()}, nil
}

func (e embeddedExecutions) Count(ctx context.Context, f Filter, o ...CountOptions) (Count, error) {
	options, err := single(o)
	if err != nil {
		return Count{}, err
	}
	var answer engine.CountAnswer
	if options.By == "" {
		answer, err = e.client.engine.Count(ctx, e.client.asClient(ctx), f.core())
	} else {
		answer, err = e.client.engine.CountBy(ctx, e.client.asClient(ctx), f.core(), options.By)
	}
	if err != nil {
		return Count{}, publicError(err)
	}
	return Count{Total: answer.Total, AtLeast: answer.AtLeast, Counts: answer.Counts, AsOf: answer.AsOf.Std()}, nil
}

func (e embeddedExecutions) Input(ctx context.Context, id ID) (Payload, error) {
	given, err := parseID(id)
	if err != nil {
		return Payload{}, err
	}
	input, err := e.client.engine.Input(ctx, e.client.asClient(ctx), given)
	return payloadOf(input), publicError(err)
}

func (e embeddedExecutions) Result(ctx context.Context, id ID) (Payload, error) {
	given, err := parseID(id)
	if err != nil {
		return Payload{}, err
	}
	result, err := e.client.engine.Result(ctx, e.client.asClient(ctx), given)
	if err != nil || result == nil {
		return Payload{}, publicError(err)
	}
	return payloadOf(*result), nil
}

func (e embeddedExecutions) Attempts(ctx context.Context, id ID) ([]Attempt, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	all, err := e.client.engine.Attempts(ctx, e.client.asClient(ctx), given)
	if err != nil {
		return nil, publicError(err)
	}
	attempts := make([]Attempt, len(all))
	for i, a := range all {
		attempts[i] = attemptOf(a)
	}
	return attempts, nil
}

func (e embeddedExecutions) Attempt(ctx context.Context, id ID, index int) (*Attempt, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	if index < LatestAttempt {
		return nil, newError(core.CodeInvalidArgument, "%d is not an index", index).At("n", "use an index from 0 on, or LatestAttempt")
	}
	attempt, err := e.client.engine.Attempt(ctx, e.client.asClient(ctx), given, index)
	if err != nil {
		return nil, publicError(err)
	}
	shown := attemptOf(attempt)
	return &shown, nil
}

// leasePage is how many entries of a lease history are fetched at a time.
const leasePage = 200

func (e embeddedExecutions) Leases(ctx context.Context, id ID) iter.Seq2[LeaseRecord, error] {
	return func(yield func(LeaseRecord, error) bool) {
		given, err := parseID(id)
		if err != nil {
			yield(LeaseRecord{}, err)
			return
		}
		for after, more := int64(0), true; more; {
			var records []core.LeaseRecord
			if records, more, err = e.client.engine.Leases(ctx, e.client.asClient(ctx), given, after, leasePage); err != nil {
				yield(LeaseRecord{}, publicError(err))
				return
			}
			for _, r := range records {
				after = r.Epoch
				if !yield(leaseRecordOf(r), nil) {
					return
				}
			}
		}
	}
}

func (e embeddedExecutions) LeasesPage(ctx context.Context, id ID, o ...PageOptions) (Page[LeaseRecord], error) {
	options, err := single(o)
	if err != nil {
		return Page[LeaseRecord]{}, err
	}
	given, err := parseID(id)
	if err != nil {
		return Page[LeaseRecord]{}, err
	}
	records, next, err := e.client.engine.LeasesPage(ctx, e.client.asClient(ctx), given, options.Cursor, limitOf(options.Limit))
	if err != nil {
		return Page[LeaseRecord]{}, publicError(err)
	}
	return pageOf(records, leaseRecordOf, next), nil
}

func (e embeddedExecutions) Steps(ctx context.Context, id ID, o ...StepsOptions) ([]StepRecord, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	records, err := e.client.engine.Steps(ctx, e.client.asClient(ctx), given, options.Run)
	if err != nil {
		return nil, publicError(err)
	}
	steps := make([]StepRecord, len(records))
	for i, r := range records {
		steps[i] = stepOf(r)
	}
	return steps, nil
}

func stepOf(r core.StepRecord) StepRecord {
	return StepRecord{
		Name: r.Name, RunIndex: r.RunIndex, AttemptIndex: r.AttemptIndex, LeaseEpoch: r.LeaseEpoch, CreatedAt: r.CreatedAt.Std(),
		Result: Payload{Data: r.Result, ContentType: r.ContentType},
	}
}

func (e embeddedExecutions) SetTags(ctx context.Context, id ID, changes map[string]*string, o ...Action) (map[string]string, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, op, err := e.client.operation(ctx, id, options)
	if err != nil {
		return nil, err
	}
	tags, err := untilKnown(ctx, e.client.clock, func() (core.Tags, error) {
		return e.client.engine.SetTags(ctx, e.client.asOperator(ctx), given, changes, op)
	})
	return maps.Clone(tags), err
}

// limitOf is how many items a page has; nil: by default.
func limitOf(given int) *int {
	if given == 0 {
		return nil
	}
	return &given
}

// pageOf shows a part of a list.
func pageOf[From, To any](all []From, show func(From) To, next string) Page[To] {
	items := make([]To, len(all))
	for i, one := range all {
		items[i] = show(one)
	}
	return Page[To]{Items: items, NextCursor: next}
}

// store looks the order up; invalid_argument.
func (o Order) store() (store.Order, error) {
	switch o {
	case "", CreatedDesc:
		return store.CreatedDesc, nil
	case CreatedAsc:
		return store.CreatedAsc, nil
	case CompletedDesc:
		return store.CompletedDesc, nil
	case IDAsc:
		return store.IDAsc, nil
	default:
		return 0, newError(core.CodeInvalidArgument, "%q is not an order", o).
			At("order", "use created_desc, created_asc, completed_desc or id_asc")
	}
}

func (f Filter) core() core.Filter {
	filter := core.Filter{
		Status: texts(f.Status), PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Lane: f.Lane, Kind: f.Kind,
		Created:   core.TimeRange{From: core.TimeOf(f.CreatedFrom), To: core.TimeOf(f.CreatedTo)},
		Completed: core.TimeRange{From: core.TimeOf(f.CompletedFrom), To: core.TimeOf(f.CompletedTo)},
		Updated:   core.TimeRange{From: core.TimeOf(f.UpdatedFrom), To: core.TimeOf(f.UpdatedTo)},
		FlowID:    texts(f.FlowID), ParentID: texts(f.ParentID), InstanceID: f.InstanceID, Creator: f.Creator,
		IdempotencyKey: f.IdempotencyKey, PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	for _, key := range slices.Sorted(maps.Keys(f.Tags)) {
		value := f.Tags[key]
		filter.Tags = append(filter.Tags, core.TagFilter{Key: key, Value: &value})
	}
	for _, key := range f.HasTags {
		filter.Tags = append(filter.Tags, core.TagFilter{Key: key})
	}
	return filter
}

func texts[T ~string](values []T) []string {
	if values == nil {
		return nil
	}
	plain := make([]string, len(values))
	for i, v := range values {
		plain[i] = string(v)
	}
	return plain
}

// workerLeases lists the executions that an instance runs.
func (e *embedded) workerLeases(ctx context.Context, instanceID string) ([]*Execution, error) {
	views, err := e.engine.WorkerLeases(ctx, e.asOperator(ctx), instanceID)
	if err != nil {
		return nil, publicError(err)
	}
	return each(views, executionOf), nil
}

func (e embeddedExecutions) Usage(ctx context.Context, id ID, o ...UsageOptions) (ExecutionUsage, error) {
	return executionUsage(ctx, e.client, id, o)
}

func (e embeddedExecutions) Budgets(ctx context.Context, id ID) (ApplicableBudgets, error) {
	return executionBudgets(ctx, e.client, id)
}

// budgetsOf are the budgets that the record of an execution tells of: those of its lease or grant, and those made for it.
func budgetsOf(x *core.Execution) (all []ExecutionBudget) {
	if x.Reservation != nil {
		for _, hold := range x.Reservation.Holds {
			all = append(all, ExecutionBudget{ID: hold.Budget.String(), Reserved: hold.Remaining})
		}
	}
	for _, scoped := range x.Budgets {
		id := scoped.ID.String()
		if !slices.ContainsFunc(all, func(b ExecutionBudget) bool { return b.ID == id }) {
			all = append(all, ExecutionBudget{ID: id})
		}
	}
	return all
}
