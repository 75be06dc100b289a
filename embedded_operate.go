package flowfabric

import (
	"context"
	"fmt"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

type embeddedOperate struct{ client *embedded }

func (embeddedOperate) sealed() {}

// operation converts what an operator's command carries and gives it a request key, so that it can be repeated.
func (e *embedded) operation(ctx context.Context, id ID, a Action) (core.GivenID, engine.Operator, error) {
	given, err := parseID(id)
	if err != nil {
		return core.GivenID{}, engine.Operator{}, err
	}
	expect, err := a.Expect.core()
	if err != nil {
		return core.GivenID{}, engine.Operator{}, err
	}
	op := engine.Operator{Reason: a.Reason, RequestKey: a.RequestKey, Expect: expect}
	if op.RequestKey == "" {
		op.RequestKey = e.requestKey(ctx)
	}
	return given, op, nil
}

func (x Expect) core() (core.Expect, error) {
	expect, err := service.ExpectOf(x.wire())
	return expect, publicError(err)
}

// act runs an operator's command on one execution until its outcome is known.
func (e embeddedOperate) act(ctx context.Context, id ID, a Action, do func(core.GivenID, engine.Operator) (engine.View, error)) (*Execution, error) {
	given, op, err := e.client.operation(ctx, id, a)
	if err != nil {
		return nil, err
	}
	view, err := untilKnown(ctx, e.client.clock, func() (engine.View, error) { return do(given, op) })
	if err != nil {
		return nil, err
	}
	return service.ExecutionOf(view), nil
}

func (e embeddedOperate) Replay(ctx context.Context, id ID, o ...ReplayOptions) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := engine.ReplayRequest{
		DeadlineAt: core.TimeOf(options.Deadline), KeepSteps: options.KeepSteps, Cascade: string(options.Cascade), IgnoreDependencies: options.IgnoreDependencies,
	}
	return e.act(ctx, id, options.Action, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.client.engine.Replay(ctx, e.client.asOperator(ctx), given, request, op)
	})
}

func (e embeddedOperate) SetPriority(ctx context.Context, id ID, priority int, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.client.engine.SetPriority(ctx, e.client.asOperator(ctx), given, priority, op)
	})
}

func (e embeddedOperate) Hold(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.client.engine.Hold(ctx, e.client.asOperator(ctx), given, op)
	})
}

func (e embeddedOperate) ReleaseHold(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.client.engine.ReleaseHold(ctx, e.client.asOperator(ctx), given, op)
	})
}

func (e embeddedOperate) Revoke(ctx context.Context, id ID, o ...RevokeOptions) (Revocation, error) {
	options, err := single(o)
	if err != nil {
		return Revocation{}, err
	}
	given, op, err := e.client.operation(ctx, id, options.Action)
	if err != nil {
		return Revocation{}, err
	}
	request := engine.RevokeRequest{Hold: options.Hold, HandTo: handTo(options.HandTo)}
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.Revoked, error) {
		return e.client.engine.Revoke(ctx, e.client.asOperator(ctx), given, request, op)
	})
	if err != nil {
		return Revocation{}, err
	}
	return revocationOf(answer), nil
}

// operatorWorker is whom an operator's claim is for unless it says otherwise (S35).
const operatorWorker = "operator"

func (e embeddedOperate) Claim(ctx context.Context, id ID, o ...OperatorClaim) (*Claimed, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, op, err := e.client.operation(ctx, id, options.Action)
	if err != nil {
		return nil, err
	}
	request := engine.TargetedRequest{
		WorkerID: options.WorkerID, InstanceID: options.InstanceID, TTL: millis(options.LeaseTTL),
		RequestKey: op.RequestKey, Force: options.Force, Reason: op.Reason, Expect: op.Expect,
	}
	if request.WorkerID == "" {
		request.WorkerID = operatorWorker
	}
	if request.InstanceID == "" {
		request.InstanceID = operatorWorker
	}
	task, err := untilKnown(ctx, e.client.clock, func() (engine.Task, error) {
		return e.client.engine.OperatorClaim(ctx, e.client.asOperator(ctx), given, request)
	})
	if err != nil {
		return nil, err
	}
	return claimedWithPolicy(task), nil
}

func (e embeddedOperate) Retain(ctx context.Context, id ID, o RetainOptions) (*Execution, error) {
	if o.Reason == "" {
		return nil, newError(core.CodeInvalidArgument, "a reason is required").At("reason", "say why the execution must be kept")
	}
	return e.act(ctx, id, o.Action, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.client.engine.Retain(ctx, e.client.asOperator(ctx), given, core.TimeOf(o.Until), op)
	})
}

func (e embeddedOperate) EndRetain(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.act(ctx, id, options, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		return e.client.engine.EndRetain(ctx, e.client.asOperator(ctx), given, op)
	})
}

func (e embeddedOperate) Delete(ctx context.Context, id ID, o ...Action) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	given, op, err := e.client.operation(ctx, id, options)
	if err != nil {
		return err
	}
	_, err = untilKnown(ctx, e.client.clock, func() (None, error) { return None{}, e.client.engine.Delete(ctx, e.client.asOperator(ctx), given, op) })
	return err
}

func (e embeddedOperate) Bulk(ctx context.Context, r BulkRequest) (*BulkJob, error) {
	request := engine.BulkRequest{
		Action: r.Action, Filter: r.Filter.core(), All: r.All, DryRun: r.DryRun, MaxAffected: r.MaxAffected,
		RequestKey: r.RequestKey, Reason: r.Reason, RatePerSecond: r.RatePerSecond,
		Args: engine.BulkArgs{
			Priority: r.Priority, Tags: r.Tags, Until: core.TimeOf(r.Until), DelayMS: millis(r.Delay),
			ReplayRequest: engine.ReplayRequest{
				DeadlineAt: core.TimeOf(r.Deadline), KeepSteps: r.KeepSteps, Cascade: string(r.Cascade), IgnoreDependencies: r.IgnoreDependencies,
			},
		},
	}
	if r.Signal != nil {
		cmd, err := r.Signal.command()
		if err != nil {
			return nil, within("args", err)
		}
		request.Args.Signal = &engine.BulkSignal{Name: cmd.Name, Suffix: cmd.Suffix, Lane: cmd.Lane, Comment: cmd.Comment, Payload: cmd.Payload}
	}
	for i, id := range r.IDs {
		given, err := parseID(id)
		if err != nil {
			return nil, within(fmt.Sprintf("ids[%d]", i), err)
		}
		request.IDs = append(request.IDs, given)
	}
	if request.RequestKey == "" {
		request.RequestKey = e.client.requestKey(ctx)
	}
	return e.job(ctx, func() (engine.BulkView, error) { return e.client.engine.Bulk(ctx, e.client.asOperator(ctx), request) })
}

func (e embeddedOperate) BulkStatus(ctx context.Context, jobID string) (*BulkJob, error) {
	return e.onJob(ctx, jobID, e.client.engine.BulkStatus)
}

func (e embeddedOperate) WaitBulk(ctx context.Context, jobID string) (*BulkJob, error) {
	for {
		job, err := e.onJob(ctx, jobID, func(ctx context.Context, c engine.Caller, id core.UUID) (engine.BulkView, error) {
			return e.client.engine.WaitBulk(ctx, c, id, waitPiece)
		})
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("flowfabric: waiting for bulk job %s: %w", jobID, context.Cause(ctx))
		case err != nil || job.State != "running":
			return job, err
		case e.client.closed.Load():
			return nil, e.client.shuttingDown()
		}
	}
}

func (e embeddedOperate) StopBulk(ctx context.Context, jobID string, o ...StopOptions) (*BulkJob, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.onJob(ctx, jobID, func(ctx context.Context, c engine.Caller, id core.UUID) (engine.BulkView, error) {
		return e.client.engine.StopBulk(ctx, c, id, options.Reason)
	})
}

func (e embeddedOperate) onJob(
	ctx context.Context, jobID string, do func(context.Context, engine.Caller, core.UUID) (engine.BulkView, error),
) (*BulkJob, error) {
	job, err := parseJob(jobID)
	if err != nil {
		return nil, err
	}
	return e.job(ctx, func() (engine.BulkView, error) { return do(ctx, e.client.asOperator(ctx), job) })
}

func parseJob(text string) (core.UUID, error) {
	id, ok := core.ParseUUID(text)
	if !ok {
		return id, newError(core.CodeInvalidID, "%s is not a job id", core.QuoteID(text)).At("job_id", "give it as the job shows it")
	}
	return id, nil
}

func (e embeddedOperate) job(ctx context.Context, do func() (engine.BulkView, error)) (*BulkJob, error) {
	view, err := untilKnown(ctx, e.client.clock, do)
	if err != nil {
		return nil, err
	}
	return jobOf(view), nil
}

func (e embeddedOperate) BulkJobs(ctx context.Context) iter.Seq2[*BulkJob, error] {
	return func(yield func(*BulkJob, error) bool) {
		views, err := e.client.engine.BulkJobs(ctx, e.client.asOperator(ctx))
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

func (e embeddedOperate) BulkJobsPage(ctx context.Context, o ...PageOptions) (Page[*BulkJob], error) {
	options, err := single(o)
	if err != nil {
		return Page[*BulkJob]{}, err
	}
	views, next, err := e.client.engine.BulkJobsPage(ctx, e.client.asOperator(ctx), options.Cursor, limitOf(options.Limit))
	if err != nil {
		return Page[*BulkJob]{}, publicError(err)
	}
	return pageOf(views, jobOf, next), nil
}

func (e embeddedOperate) BulkItems(ctx context.Context, jobID string, o ...BulkItemOptions) iter.Seq2[BulkItem, error] {
	options, err := single(o)
	return walk(err, options.Cursor, func(cursor string) (Page[BulkItem], error) {
		options.Cursor = cursor
		return e.BulkItemsPage(ctx, jobID, options)
	})
}

func (e embeddedOperate) BulkItemsPage(ctx context.Context, jobID string, o ...BulkItemOptions) (Page[BulkItem], error) {
	options, err := single(o)
	if err != nil {
		return Page[BulkItem]{}, err
	}
	job, err := parseJob(jobID)
	if err != nil {
		return Page[BulkItem]{}, err
	}
	items, next, err := e.client.engine.BulkItems(ctx, e.client.asOperator(ctx), job, engine.BulkItemsRequest{
		OK: options.OK, Limit: limitOf(options.Limit), Cursor: options.Cursor,
	})
	if err != nil {
		return Page[BulkItem]{}, publicError(err)
	}
	return pageOf(items, bulkItemOf, next), nil
}

func bulkItemOf(i engine.BulkItem) BulkItem {
	item := BulkItem{ID: idOf(i.ID), OK: i.Err == nil}
	if i.Err != nil {
		item.Err = publicError(i.Err)
	}
	return item
}

func jobOf(v engine.BulkView) *BulkJob {
	job := &BulkJob{
		Action: v.Action, State: v.State, DryRun: v.DryRun, Total: v.Total, Done: v.Done, Failed: v.Failed,
		StartedAt: v.StartedAt.Std(), EndedAt: v.EndedAt.Std(), RatePerSecond: v.RatePerSecond,
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
