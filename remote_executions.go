package flowfabric

import (
	"context"
	"iter"
	"maps"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteExecutions struct{ client *remote }

func (remoteExecutions) sealed() {}

func (r remoteExecutions) List(ctx context.Context, o ...ListOptions) iter.Seq2[*Execution, error] {
	options, err := single(o)
	return walk(err, options.Cursor, func(cursor string) (Page[*Execution], error) {
		options.Cursor = cursor
		return r.Page(ctx, options)
	})
}

func (r remoteExecutions) Page(ctx context.Context, o ...ListOptions) (Page[*Execution], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Execution]{}, err
	}
	if _, err := options.Order.store(); err != nil {
		return Page[*Execution]{}, err
	}
	request := &wire.ListExecutionsRequest{
		FilterFields: options.Filter.wire().Fields(), PageFields: pageFields(options.Limit, options.Cursor), Order: string(options.Order),
	}
	answer, err := call(ctx, r.client, wire.ListExecutions, request, sending{})
	if err != nil {
		return Page[*Execution]{}, err
	}
	return Page[*Execution]{Items: executionsFrom(answer.Items), NextCursor: answer.NextCursor, AsOf: answer.AsOf}, nil
}

func (r remoteExecutions) Count(ctx context.Context, f Filter, o ...CountOptions) (Count, error) {
	options, err := single(o)
	if err != nil {
		return Count{}, err
	}
	answer, err := call(ctx, r.client, wire.CountExecutions, &wire.CountRequest{FilterFields: f.wire().Fields(), By: options.By}, sending{})
	if err != nil {
		return Count{}, err
	}
	return countFrom(answer), nil
}

func (r remoteExecutions) Input(ctx context.Context, id ID) (Payload, error) {
	path, err := byID(id)
	if err != nil {
		return Payload{}, err
	}
	return raw(ctx, r.client, wire.GetExecutionInput, &path)
}

func (r remoteExecutions) Result(ctx context.Context, id ID) (Payload, error) {
	path, err := byID(id)
	if err != nil {
		return Payload{}, err
	}
	return raw(ctx, r.client, wire.GetExecutionResult, &wire.GetResultRequest{ByID: path})
}

func (r remoteExecutions) Attempts(ctx context.Context, id ID) ([]Attempt, error) {
	path, err := byID(id)
	return collect(walk(err, "", func(cursor string) (Page[Attempt], error) {
		request := &wire.ListAttemptsRequest{
			PageByID: wire.PageByID{ByID: path, PageFields: pageFields(fullPage, cursor)}, Encoding: wire.EncodingBytes,
		}
		return onePage(ctx, r.client, wire.ListAttempts, request, func(w wire.Attempt) Attempt { return attemptFrom(&w) })
	}))
}

func (r remoteExecutions) Attempt(ctx context.Context, id ID, index int) (*Attempt, error) {
	path, err := byID(id)
	if err != nil {
		return nil, err
	}
	n := "latest"
	if index != LatestAttempt {
		n = strconv.Itoa(index)
	}
	answer, err := call(ctx, r.client, wire.GetAttempt, &wire.GetAttemptRequest{ByID: path, N: n, Encoding: wire.EncodingBytes}, sending{})
	if err != nil {
		return nil, err
	}
	attempt := attemptFrom(answer)
	return &attempt, nil
}

func (r remoteExecutions) Leases(ctx context.Context, id ID) iter.Seq2[LeaseRecord, error] {
	return walk(nil, "", func(cursor string) (Page[LeaseRecord], error) {
		return r.LeasesPage(ctx, id, PageOptions{Limit: leasePage, Cursor: cursor})
	})
}

func (r remoteExecutions) LeasesPage(ctx context.Context, id ID, o ...PageOptions) (Page[LeaseRecord], error) {
	options, err := single(o)
	if err != nil {
		return Page[LeaseRecord]{}, err
	}
	path, err := byID(id)
	if err != nil {
		return Page[LeaseRecord]{}, err
	}
	request := &wire.PageByID{ByID: path, PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListLeases, request, leaseRecordFrom)
}

func (r remoteExecutions) Steps(ctx context.Context, id ID, o ...StepsOptions) ([]StepRecord, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	path, err := byID(id)
	return collect(walk(err, "", func(cursor string) (Page[StepRecord], error) {
		request := &wire.ListStepsRequest{
			PageByID: wire.PageByID{ByID: path, PageFields: pageFields(fullPage, cursor)}, Run: options.Run, Inline: true, Encoding: wire.EncodingBytes,
		}
		return onePage(ctx, r.client, wire.ListSteps, request, stepFrom)
	}))
}

func (r remoteExecutions) SetTags(ctx context.Context, id ID, changes map[string]*string, o ...Action) (map[string]string, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	path, err := byID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.PatchTagsRequest{
		ByID: path, Reason: options.Reason, ExpectStatus: string(options.Expect.Status), ExpectLeaseEpoch: options.Expect.LeaseEpoch,
		ExpectLeaseID: options.Expect.LeaseID, Body: changes,
	}
	answer, err := call(ctx, r.client, wire.PatchTags, request, sending{key: options.RequestKey})
	if err != nil {
		return nil, err
	}
	return maps.Clone(answer.Tags), nil
}

// wire is the selection in the form of bodies and, through Fields, of queries.
func (f Filter) wire() wire.Filter {
	w := wire.Filter{
		Status: texts(f.Status), PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Kind: f.Kind, Lane: f.Lane,
		WorkerInstanceID: f.InstanceID, FlowID: texts(f.FlowID), ParentID: texts(f.ParentID), Creator: f.Creator, IdempotencyKey: f.IdempotencyKey,
		CreatedFrom: wireTime(f.CreatedFrom), CreatedTo: wireTime(f.CreatedTo), CompletedFrom: wireTime(f.CompletedFrom),
		CompletedTo: wireTime(f.CompletedTo), UpdatedFrom: wireTime(f.UpdatedFrom), UpdatedTo: wireTime(f.UpdatedTo),
		PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	if len(f.Tags)+len(f.HasTags) > 0 {
		w.Tags = make(map[string]*string, len(f.Tags)+len(f.HasTags))
	}
	for _, key := range f.HasTags {
		w.Tags[key] = nil
	}
	for key, value := range f.Tags {
		w.Tags[key] = &value
	}
	return w
}

// workerLeases lists the executions that an instance runs.
func (r *remote) workerLeases(ctx context.Context, instanceID string) ([]*Execution, error) {
	return collect(walk(nil, "", func(cursor string) (Page[*Execution], error) {
		request := &wire.ListWorkerLeasesRequest{ByInstance: *byInstance(instanceID), PageFields: pageFields(fullPage, cursor)}
		return onePage(ctx, r, wire.ListWorkerLeases, request, func(w wire.Execution) *Execution { return executionFrom(&w) })
	}))
}

func (r remoteExecutions) Usage(ctx context.Context, id ID, o ...UsageOptions) (ExecutionUsage, error) {
	return executionUsage(ctx, r.client, id, o)
}

func (r remoteExecutions) Budgets(ctx context.Context, id ID) (ApplicableBudgets, error) {
	return executionBudgets(ctx, r.client, id)
}
