package service

import (
	"cmp"
	"context"
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// submissions registers the calls that submit. Those of one submission differ in how much of the result they return.
func (s *Service) submissions() {
	on(s, wire.SubmitBriefly, s.submit)
	brief := s.handlers[wire.SubmitBriefly.Operation]
	on(s, wire.SubmitAndShow, s.submitAndShow)
	shown := s.handlers[wire.SubmitAndShow.Operation]
	s.handlers[wire.SubmitExecution.Operation] = func(ctx context.Context, c Caller, request, answer any) error {
		if _, show := answer.(*wire.Submitted); show {
			return shown(ctx, c, request, answer)
		}
		return brief(ctx, c, request, answer)
	}
	on(s, wire.SubmitMany, s.submitMany)
}

// submit submits an execution (U32).
func (s *Service) submit(ctx context.Context, c Caller, r *wire.SubmitRequest) (api.SubmitResult, error) {
	result, _, err := s.submitBy(ctx, c, &r.Body, s.engine.Submit)
	return result, err
}

// submitAndShow submits an execution and returns it, as a read immediately afterwards would.
func (s *Service) submitAndShow(ctx context.Context, c Caller, r *wire.SubmitRequest) (wire.Submitted, error) {
	result, view, err := s.submitBy(ctx, c, &r.Body, s.engine.SubmitAndShow)
	if err != nil || view == nil {
		return wire.Submitted{SubmitResult: result}, err
	}
	created := FullExecutionOf(*view)
	if created.Input.Size() > InlinePayload {
		created.Input = api.Unloaded(created.Input.ContentType, created.Input.Size())
	}
	return wire.Submitted{SubmitResult: result, Created: created}, nil
}

// submitBy submits in one of the engine's ways, and returns a view of the result if that way has one.
func (s *Service) submitBy(
	ctx context.Context, c Caller, given *api.Submission, by func(context.Context, engine.Caller, core.Submission) (engine.SubmitAnswer, error),
) (api.SubmitResult, *engine.View, error) {
	home, err := c.home()
	if err != nil {
		return api.SubmitResult{}, nil, err
	}
	id, err := s.idOfOne(ctx, &c, home, given)
	if err != nil {
		return api.SubmitResult{}, nil, err
	}
	sub, err := coreSubmission(given, id.GivenID, home)
	if err != nil {
		return api.SubmitResult{}, nil, err
	}
	sub.Trace = s.cfg.trace(ctx)
	answer, err := by(ctx, c.submitter(id.derived), sub)
	if err != nil {
		return api.SubmitResult{}, nil, sameRequest(SubmissionAsGiven(err, given), id.derived)
	}
	result := submitResultOf(answer)
	if id.minted && (id.derived || !c.first()) && answer.ID.UUID == id.UUID {
		if id.derived && result.Duplicate && c.first() {
			who := c.client()
			who.Again()
		}
		result.Duplicate = false // a try whose answer was lost had created it
	}
	return result, answer.Created, nil
}

func submitResultOf(a engine.SubmitAnswer) api.SubmitResult {
	return api.SubmitResult{ID: idOf(a.ID), Duplicate: a.Outcome == "duplicate", PublicState: a.PublicState, Priority: a.Priority}
}

// CoreSubmission converts a submission for validation. Its id must be set.
func CoreSubmission(given *api.Submission, namespace string) (core.Submission, error) {
	id, err := base.ParseID(string(given.ID))
	if err != nil {
		return core.Submission{}, err
	}
	return coreSubmission(given, id, namespace)
}

func coreSubmission(given *api.Submission, id base.GivenID, namespace string) (core.Submission, error) {
	policy, err := policyOfSubmission(&given.SubmitOptions).text()
	if err != nil {
		return core.Submission{}, err
	}
	sub := core.Submission{
		ID: &id, Namespace: namespace, Lane: given.Lane, Kind: given.Kind, Input: CorePayload(given.Input), Priority: given.Priority,
		IdempotencyKey: given.IdempotencyKey, Tags: maps.Clone(given.Tags), PolicyJSON: policy,
		DelayUntil: base.TimeOf(given.StartAt), DeadlineAt: base.TimeOf(given.Deadline),
	}
	if given.Delay != 0 {
		delay := millis(given.Delay)
		sub.DelayMS = &delay
	}
	return sub, nil
}

// SubmitTx writes the submission, whose id must be set, to the store in the caller's transaction. Its outcome is decided by the
// caller's commit, so nothing is repeated.
func (s *Service) SubmitTx(ctx context.Context, c Caller, tx any, given *api.Submission) (*api.Execution, error) {
	home, err := c.home()
	if err != nil {
		return nil, err
	}
	sub, err := CoreSubmission(given, home)
	if err != nil {
		return nil, err
	}
	sub.Trace = s.cfg.trace(ctx)
	answer, err := s.engine.SubmitTx(ctx, c.client(), tx, sub)
	if err != nil {
		return nil, SubmissionAsGiven(err, given)
	}
	return TxExecution(answer, &sub), nil
}

// TxExecution returns the execution that a transactional submit found or created.
func TxExecution(answer engine.TxAnswer, sub *core.Submission) *api.Execution {
	if answer.View.Execution == nil { // for an old key only the id is left
		return &api.Execution{
			ID: idOf(answer.ID), Partition: int(answer.ID.N), Namespace: sub.Namespace, Kind: sub.Kind, Lane: cmp.Or(sub.Lane, base.DefaultLane),
			IdempotencyKey: sub.IdempotencyKey,
		}
	}
	return ExecutionOf(answer.View)
}
