package server

import (
	"context"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveExecutions() {
	handle(s, wire.ListExecutions, s.listExecutions)
	handle(s, wire.ExportExecutions, s.exportExecutions)
	handle(s, wire.GetExecution, s.getExecution)
	deliver(s, wire.GetExecutionInput)
	handle(s, wire.GetExecutionResult, s.getResult)
	handle(s, wire.ListAttempts, s.listAttempts)
	handle(s, wire.GetAttempt, s.getAttempt)
	handle(s, wire.ListSteps, s.listSteps)
	handle(s, wire.ExplainExecution, s.explain)
}

// getExecution returns an execution, or waits for its end (U37).
func (s *Server) getExecution(ctx context.Context, x *exchange, r *wire.GetExecutionRequest) (answer, error) {
	if r.View == wire.ViewIDs {
		return answer{}, refuse("invalid_argument", "this view is for lists").at("query.view").hint("use summary or full")
	}
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	execution, err := s.executionNow(ctx, x, api.ID(r.ID), wait.atMost)
	if err != nil {
		return answer{}, err
	}
	return wait.applied(shows(shown(execution, r.View, r.Encoding))), nil
}

// executionNow is the execution when it has ended, or as it is when the wait is over.
func (s *Server) executionNow(ctx context.Context, x *exchange, id api.ID, wait time.Duration) (*api.Execution, error) {
	execution, err := s.execution(ctx, x, id, 0)
	if err != nil || wait <= 0 || execution.Status.Terminal() {
		return execution, err
	}
	ended, err := s.until(ctx, x, s.readers, wait, func(ctx context.Context) (err error) {
		execution, err = awaited(ctx, func() (*api.Execution, error) { return s.execution(ctx, x, id, longPoll) },
			func(x *api.Execution) bool { return x.Status.Terminal() })
		return err
	})
	if ended {
		return s.execution(ctx, x, id, 0)
	}
	return execution, err
}

// execution returns an execution; if wait is not 0, once it has ended or the wait is over.
func (s *Server) execution(ctx context.Context, x *exchange, id api.ID, wait time.Duration) (*api.Execution, error) {
	request := &wire.GetExecutionRequest{ByID: wire.ByID{ID: string(id)}, WaitFields: wire.WaitUpTo(wait), View: wire.ViewFull}
	return ask(ctx, s, x.by, wire.GetExecution, request)
}

// shown returns the part of an execution that a view has (U26).
func shown(x *api.Execution, view wire.View, encoding wire.Encoding) any {
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
	return &part // it is written with less effort than a value
}

// summaryOf is an execution without payloads, failure detail and what only the full view has.
func summaryOf(x *api.Execution) *api.Execution {
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
func withoutFull(x *api.Execution) *api.Execution {
	part := *x
	part.StateVector, part.Suspension, part.Join, part.Inputs = api.StateVector{}, nil, nil, nil
	part.Policy, part.Budgets, part.Traceparent = nil, nil, ""
	part.Next, part.BlockedOn, part.DelayReason, part.Grant, part.LastLease, part.LeaseEpoch, part.Slots = "", "", "", nil, nil, 0, nil
	part.RunStartedAt, part.AttemptDeadlineAt, part.AttemptRemaining, part.WakeAt = time.Time{}, time.Time{}, 0, time.Time{}
	return &part
}

// leftOut returns a payload with only its type and size (U10).
func leftOut(p api.Payload) api.Payload {
	if p.Size() == 0 {
		return p // there is nothing to leave out
	}
	return api.Unloaded(p.ContentType, p.Size())
}

// attemptAsBytes encodes the payloads of an attempt as base64 (U9).
func attemptAsBytes(a api.Attempt) api.Attempt {
	a.Failure = failureAsBytes(a.Failure)
	return a
}

func failureAsBytes(f *api.Failure) *api.Failure {
	if f == nil {
		return nil
	}
	exact := *f
	exact.Detail = f.Detail.AsBytes()
	return &exact
}

func withoutDetail(f *api.Failure) *api.Failure {
	if f == nil {
		return nil
	}
	brief := *f
	brief.Detail = api.Payload{}
	return &brief
}

// getResult delivers the result bit for bit, or waits for it (U40).
func (s *Server) getResult(ctx context.Context, x *exchange, r *wire.GetResultRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	result, err := ask(ctx, s, x.by, wire.GetExecutionResult, r)
	if api.CodeOf(err) == "execution_not_terminal" && wait.atMost > 0 {
		if _, err = s.executionNow(ctx, x, api.ID(r.ID), wait.atMost); err == nil {
			result, err = ask(ctx, s, x.by, wire.GetExecutionResult, r)
		}
	}
	if err != nil {
		return answer{}, err
	}
	return wait.applied(delivers(result)), nil
}

// deliver serves an operation that answers with bytes as the service does it. This much is compiled for each call.
func deliver[Req any](s *Server, call wire.Call[Req, wire.Raw]) {
	handle(s, call, func(ctx context.Context, x *exchange, r *Req) (answer, error) {
		raw, err := ask(ctx, s, x.by, call, r)
		if err != nil {
			return answer{}, err
		}
		return delivers(raw), nil
	})
}

// delivers answers with the bytes of a payload; the absent one is 204.
func delivers(raw *wire.Raw) answer {
	if raw.Data == nil && raw.ContentType == "" {
		return nothing()
	}
	if raw.ContentType == "" {
		raw.ContentType = wire.ContentBytes
	}
	return answer{raw: raw}
}

// listAttempts lists the attempts by index (U41).
func (s *Server) listAttempts(ctx context.Context, x *exchange, r *wire.ListAttemptsRequest) (answer, error) {
	all, err := ask(ctx, s, x.by, wire.ListAttempts, r)
	if err != nil {
		return answer{}, err
	}
	if r.Encoding == wire.EncodingBytes {
		for i := range all.Items {
			all.Items[i] = attemptAsBytes(all.Items[i])
		}
	}
	page, err := cutPage(all.Items, r.PageFields, "attempts "+r.ID, func(a api.Attempt) int {
		if a.Failure == nil {
			return 0
		}
		return len(a.Failure.Detail.Data)
	})
	return shows(page), err
}

// getAttempt returns one attempt (U41).
func (s *Server) getAttempt(ctx context.Context, x *exchange, r *wire.GetAttemptRequest) (answer, error) {
	attempt, err := ask(ctx, s, x.by, wire.GetAttempt, r)
	if err != nil {
		return answer{}, err
	}
	if r.Encoding == wire.EncodingBytes {
		return shows(attemptAsBytes(*attempt)), nil
	}
	return shows(attempt), nil
}

// listSteps lists what a run remembers (U42).
func (s *Server) listSteps(ctx context.Context, x *exchange, r *wire.ListStepsRequest) (answer, error) {
	bound := "steps " + r.ID
	if r.Run != nil {
		bound += " " + strconv.Itoa(*r.Run)
	}
	if err := checkLimit(r.PageFields); err != nil {
		return answer{}, err
	}
	from, err := positionOf(r.Cursor, bound)
	if err != nil {
		return answer{}, err
	}
	r.Cursor = strconv.Itoa(from)
	page, err := ask(ctx, s, x.by, wire.ListSteps, r)
	if err != nil {
		return answer{}, err
	}
	if page.NextCursor != "" {
		page.NextCursor = cursorAt(from+len(page.Items), bound)
	}
	if r.Encoding == wire.EncodingBytes {
		for i := range page.Items {
			page.Items[i].Result = page.Items[i].Result.AsBytes()
		}
	}
	return shows(page), nil
}

// inlineResult is the size up to which lists include results (U10).
const inlineResult = 64 << 10

// listExecutions lists what matches (U34).
func (s *Server) listExecutions(ctx context.Context, x *exchange, r *wire.ListExecutionsRequest) (answer, error) {
	view := r.View
	switch view {
	case "":
		view = wire.ViewSummary
	case wire.ViewFull:
		return answer{}, refuse("invalid_argument", "this view is for one execution").at("query.view").hint("use ids or summary")
	}
	page, err := ask(ctx, s, x.by, wire.ListExecutions, r)
	if err != nil {
		return answer{}, err
	}
	items := make([]any, len(page.Items))
	for i, x := range page.Items {
		items[i] = shown(x, view, "")
	}
	return shows(api.Page[any]{Items: items, NextCursor: page.NextCursor, AsOf: page.AsOf}), nil
}

// explain says why an execution is not running, or waits until that changes (U44).
func (s *Server) explain(ctx context.Context, x *exchange, r *wire.ExplainRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	now := &wire.ExplainRequest{ByID: r.ByID}
	if wait.atMost <= 0 {
		shown, err := ask(ctx, s, x.by, wire.ExplainExecution, now)
		if err != nil {
			return answer{}, err
		}
		return wait.applied(shows(shown)), nil
	}
	var shown *api.Explanation
	ended, err := s.until(ctx, x, s.readers, wait.atMost, func(ctx context.Context) (err error) {
		atMost := wait.atMost.Milliseconds()
		shown, err = ask(ctx, s, x.by, wire.ExplainExecution, &wire.ExplainRequest{ByID: r.ByID, WaitFields: wire.WaitFields{WaitMS: &atMost}})
		return err
	})
	if ended {
		shown, err = ask(ctx, s, x.by, wire.ExplainExecution, now)
	}
	if err != nil {
		return answer{}, err
	}
	return wait.applied(shows(shown)), nil
}
