package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) executions() {
	on(s, wire.ListExecutions, s.listExecutions)
	on(s, wire.CountExecutions, s.countExecutions)
	on(s, wire.GetExecution, s.getExecution)
	on(s, wire.GetExecutionState, s.getState)
	on(s, wire.GetExecutionInput, s.getInput)
	on(s, wire.GetExecutionResult, s.getResult)
	on(s, wire.ReadInput, s.readInput)
	on(s, wire.ListAttempts, s.listAttempts)
	on(s, wire.GetAttempt, s.getAttempt)
	on(s, wire.ListLeases, s.listLeases)
	on(s, wire.ListSteps, s.listSteps)
	on(s, wire.ExplainExecution, s.explain)
	on(s, wire.PatchTags, s.patchTags)
	on(s, wire.ListWorkerLeases, s.listWorkerLeases)
}

// listExecutions lists the executions that match, with complete records (U34).
func (s *Service) listExecutions(ctx context.Context, c Caller, r *wire.ListExecutionsRequest) (api.Page[*api.Execution], error) {
	order, ok := engine.OrderNamed(r.Order)
	if !ok {
		err := base.Invalid("order", "%q is not an order", r.Order).WithHint("use created_desc, created_asc, completed_desc or id_asc")
		return api.Page[*api.Execution]{}, err
	}
	var asOf time.Time
	shown, err := page(r.PageFields, ExecutionOf, func(cursor string, limit *int) ([]engine.View, string, error) {
		found, err := s.engine.List(ctx, c.client(), engine.ListRequest{Filter: filterOf(r.FilterFields), Order: order, Cursor: cursor, Limit: limit})
		asOf = found.AsOf.Std()
		return found.Items, found.Next, err
	})
	if err == nil && (r.Limit == nil || *r.Limit != 0) {
		shown.AsOf = asOf
	}
	return shown, err
}

func filterOf(f wire.FilterFields) core.Filter {
	filter := core.Filter{
		Status: f.Status, PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Lane: f.Lane, Kind: f.Kind,
		Created: rangeOf(f.CreatedFrom, f.CreatedTo), Completed: rangeOf(f.CompletedFrom, f.CompletedTo), Updated: rangeOf(f.UpdatedFrom, f.UpdatedTo),
		FlowID: f.FlowID, ParentID: f.ParentID, InstanceID: f.WorkerInstanceID, Creator: f.Creator,
		IdempotencyKey: f.IdempotencyKey, PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	for _, key := range slices.Sorted(maps.Keys(f.Tags)) {
		filter.Tags = append(filter.Tags, core.TagFilter{Key: key, Value: f.Tags[key]})
	}
	return filter
}

func rangeOf(from, to wire.Time) core.TimeRange {
	return core.TimeRange{From: base.TimeOf(from.Time), To: base.TimeOf(to.Time)}
}

// countExecutions counts the executions that match (U35).
func (s *Service) countExecutions(ctx context.Context, c Caller, r *wire.CountRequest) (api.Count, error) {
	var answer engine.CountAnswer
	var err error
	if r.By == "" {
		answer, err = s.engine.Count(ctx, c.client(), filterOf(r.FilterFields))
	} else {
		answer, err = s.engine.CountBy(ctx, c.client(), filterOf(r.FilterFields), r.By)
	}
	if err != nil {
		return api.Count{}, err
	}
	return api.Count{Total: answer.Total, AtLeast: answer.AtLeast, Counts: answer.Counts, AsOf: answer.AsOf.Std()}, nil
}

// getInput returns the input unchanged (U39).
func (s *Service) getInput(ctx context.Context, c Caller, r *wire.ByID) (wire.Raw, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return wire.Raw{}, err
	}
	input, err := s.engine.Input(ctx, c.client(), id)
	return wire.Raw{Data: input.Data, ContentType: input.ContentType}, err
}

// getResult returns the result unchanged; nothing if there is none. It does not wait (U40).
func (s *Service) getResult(ctx context.Context, c Caller, r *wire.GetResultRequest) (wire.Raw, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return wire.Raw{}, err
	}
	result, err := s.engine.Result(ctx, c.client(), id)
	if err != nil || result == nil {
		return wire.Raw{}, err
	}
	return wire.Raw{Data: result.Data, ContentType: result.ContentType}, nil
}

// readInput returns what a member of a flow received from another (F34).
func (s *Service) readInput(ctx context.Context, c Caller, r *wire.ReadInputRequest) (wire.Raw, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return wire.Raw{}, err
	}
	input, err := s.engine.ReadInput(ctx, c.client(), id, r.Name)
	if err != nil {
		return wire.Raw{}, err
	}
	result := NamedInputOf(input).Result
	return wire.Raw{Data: result.Data, ContentType: result.ContentType}, nil
}

// listAttempts lists all attempts by index: callers that need a part of them select it (U41).
func (s *Service) listAttempts(ctx context.Context, c Caller, r *wire.ListAttemptsRequest) (api.Page[api.Attempt], error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Page[api.Attempt]{}, err
	}
	all, err := s.engine.AttemptStreams(ctx, c.client(), id)
	return api.Page[api.Attempt]{Items: each(all, attemptStreamOf)}, err
}

// latest selects the index of the last attempt.
const latest = "latest"

// getAttempt returns one attempt (U41).
func (s *Service) getAttempt(ctx context.Context, c Caller, r *wire.GetAttemptRequest) (api.Attempt, error) {
	id, index, err := attemptOf(r.ID, r.N, "n")
	if err != nil {
		return api.Attempt{}, err
	}
	attempt, err := s.engine.AttemptStream(ctx, c.client(), id, index)
	if err != nil {
		return api.Attempt{}, err
	}
	return attemptStreamOf(attempt), nil
}

// listLeases lists the lease history by epoch (U41).
func (s *Service) listLeases(ctx context.Context, c Caller, r *wire.PageByID) (api.Page[api.LeaseRecord], error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Page[api.LeaseRecord]{}, err
	}
	return page(r.PageFields, leaseRecordOf, func(cursor string, limit *int) ([]core.LeaseRecord, string, error) {
		return s.engine.LeasesPage(ctx, c.client(), id, cursor, limit)
	})
}

// Steps with results above largeStep have them only on request (U10). A page ends before stepBytes are exceeded.
const (
	largeStep = 64 << 10
	stepBytes = 8 << 20
)

// listSteps lists all steps of a run: callers that need a part of them select it (U42).
func (s *Service) listSteps(ctx context.Context, c Caller, r *wire.ListStepsRequest) (api.Page[api.StepRecord], error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Page[api.StepRecord]{}, err
	}
	request := engine.StepsRequest{Run: r.Run, Bytes: stepBytes}
	if !r.Inline {
		request.Above = largeStep
	}
	return page(r.PageFields, StepOf, func(cursor string, limit *int) ([]core.StepRecord, string, error) {
		request.Limit = core.DefaultPage
		if limit != nil {
			request.Limit = min(*limit, core.MaxPage)
		}
		if cursor != "" {
			if request.From, err = strconv.Atoi(cursor); err != nil || request.From < 0 {
				return nil, "", base.Errorf(base.CodeInvalidCursor, "the cursor is no place in the list").WithField("cursor")
			}
		}
		found, err := s.engine.Steps(ctx, c.client(), id, request)
		next := ""
		if found.More {
			next = strconv.Itoa(request.From + len(found.Records))
		}
		return found.Records, next, err
	})
}

// longestExplain bounds the wait for a changed explanation (U18).
const longestExplain = time.Minute

// explain returns why an execution is not running, or waits until that changes (U44).
func (s *Service) explain(ctx context.Context, c Caller, r *wire.ExplainRequest) (api.Explanation, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Explanation{}, err
	}
	var wait time.Duration
	if r.WaitMS != nil {
		wait = min(duration(*r.WaitMS), longestExplain)
	}
	shown, err := s.engine.Explain(ctx, c.client(), id, wait)
	if err != nil {
		return api.Explanation{}, err
	}
	return explanationOf(shown), nil
}

// patchTags changes tags by merge patch (U53).
func (s *Service) patchTags(ctx context.Context, c Caller, r *wire.PatchTagsRequest) (wire.Tags, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return wire.Tags{}, err
	}
	op, err := c.operation(r.Reason, &wire.Expect{Status: r.ExpectStatus, LeaseEpoch: r.ExpectLeaseEpoch, LeaseID: r.ExpectLeaseID})
	if err != nil {
		return wire.Tags{}, err
	}
	tags, err := s.engine.SetTags(ctx, c.operator(), id, r.Body, op)
	if err != nil {
		return wire.Tags{}, err
	}
	all := map[string]string{}
	maps.Copy(all, tags)
	return wire.Tags{Tags: all}, nil
}

// operation converts the options of an operator's command on an execution. Its repeat is identified by the key of the request
// (U13).
func (c *Caller) operation(reason string, e *wire.Expect) (engine.Operator, error) {
	expect, err := ExpectOf(e)
	return engine.Operator{Reason: reason, RequestKey: cmp.Or(c.RequestKey, c.Key), Expect: expect}, err
}

// ExpectOf converts the expected state of an execution; invalid_argument.
func ExpectOf(e *wire.Expect) (expect core.Expect, err error) {
	if e == nil {
		return expect, nil
	}
	if e.Status != "" {
		status, ok := core.ParseStatus(e.Status)
		if !ok {
			return expect, base.Invalid("expect.status", "%q is not a status", e.Status).WithHint("use one of %s", statusList())
		}
		expect.Status = &status
	}
	if e.LeaseID != "" {
		lease, ok := base.ParseUUID(e.LeaseID)
		if !ok {
			return expect, base.Invalid("expect.lease_id", "%q is not a lease id", e.LeaseID).WithHint("give it as the lease shows it")
		}
		expect.LeaseID = &lease
	}
	if e.LeaseEpoch != 0 {
		expect.LeaseEpoch = &e.LeaseEpoch
	}
	return expect, nil
}

func statusList() string {
	var words []string
	for _, s := range core.Statuses() {
		words = append(words, s.String())
	}
	return strings.Join(words, ", ")
}

// listWorkerLeases lists all executions that the instance runs: callers that need a part of them select it (U102).
func (s *Service) listWorkerLeases(ctx context.Context, c Caller, r *wire.ListWorkerLeasesRequest) (api.Page[*api.Execution], error) {
	views, err := s.engine.WorkerLeases(ctx, c.operator(), r.Instance)
	return api.Page[*api.Execution]{Items: each(views, ExecutionOf)}, err
}
