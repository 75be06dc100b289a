package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedOperate struct{ *embedded }

func (embeddedOperate) sealed() {}

// operation converts what an operator's command carries and gives it a request key, so that it can be repeated.
func (e *embedded) operation(id ID, a Action) (core.GivenID, engine.Operator, error) {
	given, err := id.given()
	if err != nil {
		return core.GivenID{}, engine.Operator{}, err
	}
	expect, err := a.Expect.core()
	if err != nil {
		return core.GivenID{}, engine.Operator{}, err
	}
	op := engine.Operator{Reason: a.Reason, RequestKey: a.RequestKey, Expect: expect}
	if op.RequestKey == "" {
		op.RequestKey = e.mintKey()
	}
	return given, op, nil
}

func (x Expect) core() (core.Expect, error) {
	var expect core.Expect
	if x.Status != "" {
		status, ok := core.ParseStatus(string(x.Status))
		if !ok {
			return expect, newError(core.CodeInvalidArgument, "%q is not a status", x.Status).at("expect.status", "use one of the Status constants")
		}
		expect.Status = &status
	}
	if x.LeaseID != "" {
		lease, ok := core.ParseUUID(x.LeaseID)
		if !ok {
			return expect, newError(core.CodeInvalidArgument, "%q is not a lease id", x.LeaseID).at("expect.lease_id", "give it as the lease shows it")
		}
		expect.LeaseID = &lease
	}
	if x.LeaseEpoch != 0 {
		expect.LeaseEpoch = &x.LeaseEpoch
	}
	return expect, nil
}

// act runs an operator's command on one execution until its outcome is known.
func (e embeddedOperate) act(ctx context.Context, id ID, a Action, do func(core.GivenID, engine.Operator) (engine.View, error)) (*Execution, error) {
	given, op, err := e.operation(id, a)
	if err != nil {
		return nil, err
	}
	view, err := untilKnown(ctx, e.clock, func() (engine.View, error) { return do(given, op) })
	if err != nil {
		return nil, err
	}
	return executionOf(view), nil
}

func (e embeddedOperate) Replay(ctx context.Context, id ID, o ...ReplayOptions) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := engine.ReplayRequest{DeadlineAt: core.TimeOf(options.Deadline), KeepSteps: options.KeepSteps}
	return e.act(ctx, id, options.Action, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.engine.Replay(ctx, e.operator, given, request, op)
	})
}

func (e embeddedOperate) SetPriority(ctx context.Context, id ID, priority int, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.engine.SetPriority(ctx, e.operator, given, priority, op)
	})
}

func (e embeddedOperate) Hold(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.engine.Hold(ctx, e.operator, given, op)
	})
}

func (e embeddedOperate) ReleaseHold(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.engine.ReleaseHold(ctx, e.operator, given, op)
	})
}

func (e embeddedOperate) Revoke(ctx context.Context, id ID, o ...RevokeOptions) (Revocation, error) {
	options, err := single(o)
	if err != nil {
		return Revocation{}, err
	}
	given, op, err := e.operation(id, options.Action)
	if err != nil {
		return Revocation{}, err
	}
	answer, err := untilKnown(ctx, e.clock, func() (core.RevokeAnswer, error) {
		return e.engine.Revoke(ctx, e.operator, given, options.Hold, op)
	})
	if err != nil {
		return Revocation{}, err
	}
	return Revocation{Outcome: answer.Outcome, Cause: answer.Cause, LeaseID: answer.LeaseID.String(), Epoch: answer.Epoch}, nil
}

// operatorWorker is whom an operator's claim is for unless it says otherwise (S35).
const operatorWorker = "operator"

func (e embeddedOperate) Claim(ctx context.Context, id ID, o ...OperatorClaim) (*Claimed, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, op, err := e.operation(id, options.Action)
	if err != nil {
		return nil, err
	}
	request := engine.TargetedRequest{
		WorkerID: options.WorkerID, InstanceID: options.InstanceID, TTL: millis(options.LeaseTTL),
		RequestKey: op.RequestKey, Force: options.Force, Reason: op.Reason,
	}
	if request.WorkerID == "" {
		request.WorkerID = operatorWorker
	}
	if request.InstanceID == "" {
		request.InstanceID = operatorWorker
	}
	task, err := untilKnown(ctx, e.clock, func() (engine.Task, error) {
		return e.engine.OperatorClaim(ctx, e.operator, given, request)
	})
	if err != nil {
		return nil, err
	}
	return claimedOf(task), nil
}

func (e embeddedOperate) Retain(ctx context.Context, id ID, o RetainOptions) (*Execution, error) {
	if o.Reason == "" {
		return nil, newError(core.CodeInvalidArgument, "a reason is required").at("reason", "say why the execution must be kept")
	}
	return e.act(ctx, id, o.Action, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.engine.Retain(ctx, e.operator, given, core.TimeOf(o.Until), op)
	})
}

func (e embeddedOperate) EndRetain(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.engine.EndRetain(ctx, e.operator, given, op)
	})
}

func (e embeddedOperate) Delete(ctx context.Context, id ID, o ...Action) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	given, op, err := e.operation(id, options)
	if err != nil {
		return err
	}
	_, err = untilKnown(ctx, e.clock, func() (None, error) { return None{}, e.engine.Delete(ctx, e.operator, given, op) })
	return err
}

func (e embeddedOperate) Bulk(ctx context.Context, r BulkRequest) (*BulkJob, error) {
	request := engine.BulkRequest{
		Action: r.Action, Filter: r.Filter.core(), All: r.All, DryRun: r.DryRun, MaxAffected: r.MaxAffected,
		RequestKey: r.RequestKey, Reason: r.Reason,
		Args: engine.BulkArgs{Priority: r.Priority, Tags: r.Tags, KeepSteps: r.KeepSteps, Until: core.TimeOf(r.Until)},
	}
	for _, id := range r.IDs {
		given, err := id.given()
		if err != nil {
			return nil, err
		}
		request.IDs = append(request.IDs, given)
	}
	if request.RequestKey == "" {
		request.RequestKey = e.mintKey()
	}
	return e.job(ctx, func() (engine.BulkView, error) { return e.engine.Bulk(ctx, e.operator, request) })
}

func (e embeddedOperate) BulkStatus(ctx context.Context, jobID string) (*BulkJob, error) {
	return e.onJob(ctx, jobID, e.engine.BulkStatus)
}

func (e embeddedOperate) StopBulk(ctx context.Context, jobID string) (*BulkJob, error) {
	return e.onJob(ctx, jobID, e.engine.StopBulk)
}

func (e embeddedOperate) onJob(
	ctx context.Context, jobID string, do func(context.Context, engine.Caller, core.UUID) (engine.BulkView, error),
) (*BulkJob, error) {
	job, ok := core.ParseUUID(jobID)
	if !ok {
		return nil, newError(core.CodeInvalidID, "%q is not a job id", jobID).at("job_id", "give it as the job shows it")
	}
	return e.job(ctx, func() (engine.BulkView, error) { return do(ctx, e.operator, job) })
}

func (e embeddedOperate) job(ctx context.Context, do func() (engine.BulkView, error)) (*BulkJob, error) {
	view, err := untilKnown(ctx, e.clock, do)
	if err != nil {
		return nil, err
	}
	return jobOf(view), nil
}

func (e embeddedOperate) BulkJobs(ctx context.Context) iter.Seq2[*BulkJob, error] {
	return func(yield func(*BulkJob, error) bool) {
		views, err := e.engine.BulkJobs(ctx, e.operator)
		if err != nil {
			yield(nil, publicError(err))
			return
		}
		for _, view := range views {
			if !yield(jobOf(view), nil) {
				return
			}
		}
	}
}

func jobOf(v engine.BulkView) *BulkJob {
	job := &BulkJob{
		Action: v.Action, State: v.State, DryRun: v.DryRun, Total: v.Total, Done: v.Done, Failed: v.Failed,
		StartedAt: v.StartedAt.Std(), EndedAt: v.EndedAt.Std(),
	}
	if !v.JobID.IsZero() {
		job.ID = v.JobID.String()
	}
	if len(v.Refused) > 0 {
		job.Refused = make(map[string]int, len(v.Refused))
		for code, n := range v.Refused {
			job.Refused[string(code)] = n
		}
	}
	for _, id := range v.Sample {
		job.Sample = append(job.Sample, idOf(id))
	}
	return job
}
