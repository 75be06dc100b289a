package server

import (
	"context"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveExecutions() {
	handle(s, wire.ListExecutions, s.listExecutions)
	handle(s, wire.CountExecutions, s.countExecutions)
	handle(s, wire.ExportExecutions, s.exportExecutions)
	handle(s, wire.GetExecution, s.getExecution)
	handle(s, wire.GetExecutionState, s.getState)
	handle(s, wire.GetExecutionInput, s.getInput)
	handle(s, wire.GetExecutionResult, s.getResult)
	handle(s, wire.ListAttempts, s.listAttempts)
	handle(s, wire.GetAttempt, s.getAttempt)
	handle(s, wire.ListLeases, s.listLeases)
	handle(s, wire.ListSteps, s.listSteps)
	handle(s, wire.ExplainExecution, s.explain)
}

// getExecution shows an execution, or waits for its end (U37).
func (s *Server) getExecution(ctx context.Context, r *wire.GetExecutionRequest) (answer, error) {
	if r.View == wire.ViewIDs {
		return answer{}, refuse("invalid_argument", "this view is for lists").at("query.view").hint("use summary or full")
	}
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	execution, err := s.executionNow(ctx, flowfabric.ID(r.ID), wait.atMost)
	if err != nil {
		return answer{}, err
	}
	return wait.told(shows(shown(execution, r.View, r.Encoding))), nil
}

// executionNow is the execution when it has ended, or as it is when the wait is over.
func (s *Server) executionNow(ctx context.Context, id flowfabric.ID, wait time.Duration) (*flowfabric.Execution, error) {
	execution, err := s.client.Get(ctx, id)
	if err != nil || wait <= 0 || execution.Status.Terminal() {
		return execution, err
	}
	ended, err := s.until(ctx, s.readers, wait, func(ctx context.Context) (err error) {
		execution, err = s.client.Wait(ctx, id)
		return err
	})
	if ended {
		return s.client.Get(ctx, id)
	}
	return execution, err
}

// shown is as much of an execution as a view has (U26).
func shown(x *flowfabric.Execution, view wire.View, encoding wire.Encoding) any {
	part := *x
	switch view {
	case wire.ViewIDs:
		return wire.ExecutionID{ExecutionID: string(x.ID)}
	case wire.ViewSummary:
		part = *summaryOf(x)
	case wire.ViewFull:
	default:
		part = *withoutFull(&part)
	}
	if encoding == wire.EncodingBytes {
		part.Input, part.Result = part.Input.AsBytes(), part.Result.AsBytes()
		part.Failure = failureAsBytes(part.Failure)
		if part.Attempt != nil {
			attempt := attemptAsBytes(*part.Attempt)
			part.Attempt = &attempt
		}
	}
	return part
}

// summaryOf is an execution without payloads, failure detail and what only the full view has.
func summaryOf(x *flowfabric.Execution) *flowfabric.Execution {
	part := *x
	part.Input, part.Result = leftOut(x.Input), leftOut(x.Result)
	part.Failure = withoutDetail(x.Failure)
	if x.Attempt != nil {
		attempt := *x.Attempt
		attempt.Failure = withoutDetail(attempt.Failure)
		part.Attempt = &attempt
	}
	return withoutFull(&part)
}

// withoutFull leaves out what only the full view has.
func withoutFull(x *flowfabric.Execution) *flowfabric.Execution {
	part := *x
	part.StateVector, part.Suspension, part.Join, part.Inputs = flowfabric.StateVector{}, nil, nil, nil
	part.Policy, part.Budgets, part.Traceparent = nil, nil, ""
	part.Next, part.BlockedOn, part.DelayReason, part.Grant, part.LastLease, part.LeaseEpoch, part.Slots = "", "", "", nil, nil, 0, nil
	part.RunStartedAt, part.AttemptDeadlineAt, part.AttemptRemaining, part.WakeAt = time.Time{}, time.Time{}, 0, time.Time{}
	return &part
}

// leftOut is a payload of which only type and size are shown (U10).
func leftOut(p flowfabric.Payload) flowfabric.Payload {
	return flowfabric.Payload{ContentType: p.ContentType}
}

// attemptAsBytes shows the payloads of an attempt as base64 (U9).
func attemptAsBytes(a flowfabric.Attempt) flowfabric.Attempt {
	a.Failure = failureAsBytes(a.Failure)
	return a
}

func failureAsBytes(f *flowfabric.Failure) *flowfabric.Failure {
	if f == nil {
		return nil
	}
	exact := *f
	exact.Detail = f.Detail.AsBytes()
	return &exact
}

func withoutDetail(f *flowfabric.Failure) *flowfabric.Failure {
	if f == nil {
		return nil
	}
	brief := *f
	brief.Detail = flowfabric.Payload{}
	return &brief
}

// getState shows the status alone (U38).
func (s *Server) getState(ctx context.Context, r *wire.ByID) (answer, error) {
	execution, err := s.outline(ctx, flowfabric.ID(r.ID))
	if err != nil {
		return answer{}, err
	}
	return shows(wire.ExecutionState{Status: string(execution.Status), PublicState: execution.PublicState}), nil
}

// getInput delivers the input bit for bit (U39).
func (s *Server) getInput(ctx context.Context, r *wire.ByID) (answer, error) {
	input, err := s.client.Executions().Input(ctx, flowfabric.ID(r.ID))
	if err != nil {
		return answer{}, err
	}
	return delivers(input), nil
}

// getResult delivers the result bit for bit, or waits for it (U40).
func (s *Server) getResult(ctx context.Context, r *wire.GetResultRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	id := flowfabric.ID(r.ID)
	result, err := s.client.Executions().Result(ctx, id)
	if flowfabric.CodeOf(err) == "execution_not_terminal" && wait.atMost > 0 {
		if _, err = s.executionNow(ctx, id, wait.atMost); err == nil {
			result, err = s.client.Executions().Result(ctx, id)
		}
	}
	if err != nil {
		return answer{}, err
	}
	return wait.told(delivers(result)), nil
}

// delivers answers with the bytes of a payload; the absent one is 204.
func delivers(p flowfabric.Payload) answer {
	if p.Data == nil && p.ContentType == "" {
		return nothing()
	}
	contentType := p.ContentType
	if contentType == "" {
		contentType = wire.ContentBytes
	}
	return answer{raw: &wire.Raw{Data: p.Data, ContentType: contentType}}
}

// listAttempts lists the attempts by index (U41).
func (s *Server) listAttempts(ctx context.Context, r *wire.ListAttemptsRequest) (answer, error) {
	all, err := s.client.Executions().Attempts(ctx, flowfabric.ID(r.ID))
	if err != nil {
		return answer{}, err
	}
	if r.Encoding == wire.EncodingBytes {
		for i := range all {
			all[i] = attemptAsBytes(all[i])
		}
	}
	page, err := cutPage(all, r.PageFields, "attempts "+r.ID, func(a flowfabric.Attempt) int {
		if a.Failure == nil {
			return 0
		}
		return len(a.Failure.Detail.Data)
	})
	return shows(page), err
}

// getAttempt shows one attempt (U41).
func (s *Server) getAttempt(ctx context.Context, r *wire.GetAttemptRequest) (answer, error) {
	index := flowfabric.LatestAttempt
	if r.N != "latest" {
		n, err := strconv.Atoi(r.N)
		if err != nil || n < 0 {
			return answer{}, refuse("invalid_argument", "this is not the index of an attempt").at("path.n").hint("use 0, 1, ... or latest")
		}
		index = n
	}
	attempt, err := s.client.Executions().Attempt(ctx, flowfabric.ID(r.ID), index)
	if err != nil {
		return answer{}, err
	}
	if r.Encoding == wire.EncodingBytes {
		return shows(attemptAsBytes(*attempt)), nil
	}
	return shows(attempt), nil
}

// listLeases lists the lease history by epoch (U41).
func (s *Server) listLeases(ctx context.Context, r *wire.PageByID) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[flowfabric.LeaseRecord], error) {
		return s.client.Executions().LeasesPage(ctx, flowfabric.ID(r.ID), o)
	})
}

// listSteps lists what a run remembers (U42).
func (s *Server) listSteps(ctx context.Context, r *wire.ListStepsRequest) (answer, error) {
	all, err := s.client.Executions().Steps(ctx, flowfabric.ID(r.ID), flowfabric.StepsOptions{Run: r.Run})
	if err != nil {
		return answer{}, err
	}
	bound := "steps " + r.ID
	if r.Run != nil {
		bound += " " + strconv.Itoa(*r.Run)
	}
	page, err := cutPage(all, r.PageFields, bound, func(step flowfabric.StepRecord) int {
		if omits(r, step) {
			return 0
		}
		return len(step.Result.Data)
	})
	if err != nil {
		return answer{}, err
	}
	items := make([]any, len(page.Items))
	for i, step := range page.Items {
		switch {
		case omits(r, step):
			items[i] = withoutResult(step)
		case r.Encoding == wire.EncodingBytes:
			step.Result = step.Result.AsBytes()
			items[i] = step
		default:
			items[i] = step
		}
	}
	return shows(flowfabric.Page[any]{Items: items, NextCursor: page.NextCursor}), nil
}

// inlineResult is the size up to which lists show results (U10).
const inlineResult = 64 << 10

// omits reports whether a list of steps leaves out what a step remembers. A worker that goes on where another ended asks for all of it
// (U140).
func omits(r *wire.ListStepsRequest, step flowfabric.StepRecord) bool {
	return !r.Inline && len(step.Result.Data) > inlineResult
}

// withoutResult shows a step with the size of its result.
func withoutResult(s flowfabric.StepRecord) wire.Step {
	return wire.Step{
		Name: s.Name, RunIndex: s.RunIndex, AttemptIndex: s.AttemptIndex, LeaseEpoch: s.LeaseEpoch, CreatedAt: wire.TimeOf(s.CreatedAt),
		ResultShown: wire.ShowResult(wire.Payload{ContentType: s.Result.ContentType, Size: len(s.Result.Data), Omitted: true}, ""),
	}
}

// countExecutions counts what matches (U35).
func (s *Server) countExecutions(ctx context.Context, r *wire.CountRequest) (answer, error) {
	count, err := s.client.Executions().Count(ctx, filterOf(r.Filter()), flowfabric.CountOptions{By: r.By})
	return shows(count), err
}

// listExecutions lists what matches (U34).
func (s *Server) listExecutions(ctx context.Context, r *wire.ListExecutionsRequest) (answer, error) {
	view := r.View
	switch view {
	case "":
		view = wire.ViewSummary
	case wire.ViewFull:
		return answer{}, refuse("invalid_argument", "this view is for one execution").at("query.view").hint("use ids or summary")
	}
	if err := checkLimit(r.PageFields); err != nil {
		return answer{}, err
	}
	page, err := s.client.Executions().Page(ctx, flowfabric.ListOptions{
		Filter: filterOf(r.Filter()), Order: flowfabric.Order(r.Order), Limit: limitOf(r.PageFields), Cursor: r.Cursor,
	})
	if err != nil {
		return answer{}, err
	}
	if isEmpty(r.PageFields) {
		return shows(flowfabric.Page[any]{}), nil
	}
	items := make([]any, len(page.Items))
	for i, x := range page.Items {
		items[i] = shown(x, view, "")
	}
	return shows(flowfabric.Page[any]{Items: items, NextCursor: page.NextCursor, AsOf: page.AsOf}), nil
}

func filterOf(f wire.Filter) flowfabric.Filter {
	filter := flowfabric.Filter{
		Status: texts[flowfabric.Status](f.Status), PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Kind: f.Kind, Lane: f.Lane,
		InstanceID: f.WorkerInstanceID, FlowID: texts[flowfabric.ID](f.FlowID), ParentID: texts[flowfabric.ID](f.ParentID),
		Creator: f.Creator, IdempotencyKey: f.IdempotencyKey,
		CreatedFrom: f.CreatedFrom.Time, CreatedTo: f.CreatedTo.Time, CompletedFrom: f.CompletedFrom.Time, CompletedTo: f.CompletedTo.Time,
		UpdatedFrom: f.UpdatedFrom.Time, UpdatedTo: f.UpdatedTo.Time, PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	for key, value := range f.Tags {
		if value == nil {
			filter.HasTags = append(filter.HasTags, key)
			continue
		}
		if filter.Tags == nil {
			filter.Tags = map[string]string{}
		}
		filter.Tags[key] = *value
	}
	return filter
}

// texts gives texts their type.
func texts[T ~string](plain []string) []T {
	var typed []T
	for _, text := range plain {
		typed = append(typed, T(text))
	}
	return typed
}
