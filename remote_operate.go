package flowfabric

import (
	"cmp"
	"context"
	"iter"
	"reflect"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteOperate struct{ client *remote }

func (remoteOperate) sealed() {}

// wire is what the body of an operator's action carries.
func (a Action) wire() wire.ActionFields {
	return wire.ActionFields{Reason: a.Reason, Expect: a.Expect.wire()}
}

func (x Expect) wire() *wire.Expect {
	if x == (Expect{}) {
		return nil
	}
	return &wire.Expect{Status: string(x.Status), LeaseEpoch: x.LeaseEpoch, LeaseID: x.LeaseID}
}

// act makes a call that carries nothing but the action.
func (r remoteOperate) act(ctx context.Context, c wire.Call[wire.ActionRequest, Execution], id ID, o []Action) (*Execution, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	return oneExecution(ctx, r.client, c, &wire.ActionRequest{ByID: path, Body: options.wire()}, options.RequestKey)
}

func (r remoteOperate) Replay(ctx context.Context, id ID, o ...ReplayOptions) (*Execution, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.ReplayRequest{ByID: path}
	request.Body.ActionFields = options.wire()
	request.Body.ReplayFields = wire.ReplayFields{
		DeadlineAt: wireTime(options.Deadline), KeepSteps: options.KeepSteps, Cascade: string(options.Cascade), IgnoreDependencies: options.IgnoreDependencies,
	}
	return oneExecution(ctx, r.client, wire.ReplayExecution, request, options.RequestKey)
}

func (r remoteOperate) SetPriority(ctx context.Context, id ID, priority int, o ...Action) (*Execution, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.SetPriorityRequest{ByID: path}
	request.Body.ActionFields, request.Body.Priority = options.wire(), priority
	return oneExecution(ctx, r.client, wire.SetPriority, request, options.RequestKey)
}

func (r remoteOperate) Hold(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	return r.act(ctx, wire.HoldExecution, id, o)
}

func (r remoteOperate) ReleaseHold(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	return r.act(ctx, wire.ReleaseHold, id, o)
}

func (r remoteOperate) EndRetain(ctx context.Context, id ID, o ...Action) (*Execution, error) {
	return r.act(ctx, wire.EndRetain, id, o)
}

func (r remoteOperate) Revoke(ctx context.Context, id ID, o ...RevokeOptions) (Revocation, error) {
	options, path, err := target(id, o)
	if err != nil {
		return Revocation{}, err
	}
	request := &wire.RevokeRequest{ByID: path}
	request.Body.ActionFields, request.Body.Hold, request.Body.HandTo = options.wire(), options.Hold, options.HandTo.wire()
	answer, err := call(ctx, r.client, wire.RevokeLease, request, sending{key: options.RequestKey})
	if err != nil {
		return Revocation{}, err
	}
	return revocationFrom(answer), nil
}

func (r remoteOperate) Claim(ctx context.Context, id ID, o ...OperatorClaim) (*Claimed, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.OperatorClaimRequest{ByID: path}
	body := &request.Body
	body.ActionFields, body.WorkerID, body.WorkerInstanceID = options.wire(), options.WorkerID, options.InstanceID
	body.LeaseTTLMS, body.Force, body.Encoding = millis(options.LeaseTTL), options.Force, wire.EncodingBytes
	return oneTask(ctx, r.client, wire.ClaimExecution, request, options.RequestKey)
}

func (r remoteOperate) Retain(ctx context.Context, id ID, o RetainOptions) (*Execution, error) {
	if o.Reason == "" {
		return nil, newError(core.CodeInvalidArgument, "a reason is required").At("reason", "say why the execution must be kept")
	}
	path, err := byID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.RetainRequest{ByID: path}
	request.Body.Reason, request.Body.Expect, request.Body.Until = o.Reason, o.Expect.wire(), wireTime(o.Until)
	return oneExecution(ctx, r.client, wire.RetainExecution, request, o.RequestKey)
}

func (r remoteOperate) Delete(ctx context.Context, id ID, o ...Action) error {
	options, path, err := target(id, o)
	if err != nil {
		return err
	}
	request := &wire.ActionRequest{ByID: path, Body: options.wire()}
	_, err = call(ctx, r.client, wire.DeleteExecution, request, sending{key: options.RequestKey})
	return err
}

func (r remoteOperate) Bulk(ctx context.Context, b BulkRequest) (*BulkJob, error) {
	body := wire.BulkRequest{
		Action: b.Action, IDs: texts(b.IDs), All: b.All, DryRun: b.DryRun, MaxAffected: b.MaxAffected, RatePerSecond: b.RatePerSecond,
		Reason: b.Reason, Args: wire.BulkArgs{
			Tags: b.Tags, Until: wireTime(b.Until), DelayMS: millis(b.Delay),
			ReplayFields: wire.ReplayFields{
				DeadlineAt: wireTime(b.Deadline), KeepSteps: b.KeepSteps, Cascade: string(b.Cascade), IgnoreDependencies: b.IgnoreDependencies,
			},
		},
	}
	if s := b.Signal; s != nil {
		if err := s.Payload.Problem("payload"); err != nil {
			return nil, err
		}
		body.Args.Name, body.Args.Suffix, body.Args.Comment = cmp.Or(s.Name, signalApproved), s.Suffix, s.Comment
		body.Args.Lane = s.Lane
		body.Args.PayloadFields = wire.PayloadOf(wirePayload(s.Payload))
	}
	if filter := b.Filter.wire(); !reflect.ValueOf(filter).IsZero() {
		body.Filter = &filter
	}
	if b.Action == BulkPriority {
		body.Args.Priority = &b.Priority
	}
	return oneJob(ctx, r.client, wire.StartBulk, &wire.StartBulkRequest{Body: body}, sending{key: b.RequestKey})
}

func (r remoteOperate) BulkStatus(ctx context.Context, jobID string) (*BulkJob, error) {
	return r.status(ctx, jobID, sending{})
}

func (r remoteOperate) status(ctx context.Context, jobID string, how sending) (*BulkJob, error) {
	path, err := byJob(jobID)
	if err != nil {
		return nil, err
	}
	return oneJob(ctx, r.client, wire.GetBulk, &wire.GetBulkRequest{BulkByID: path, WaitFields: prefer(how.wait)}, how)
}

// jobRuns is the state of a job that is not at its end.
const jobRuns = "running"

func (r remoteOperate) WaitBulk(ctx context.Context, jobID string) (*BulkJob, error) {
	ask := func() (*BulkJob, error) { return r.status(ctx, jobID, sending{wait: longPoll}) }
	return untilDone(ctx, r.client, ask, func(job *BulkJob) bool { return job.State != jobRuns })
}

func (r remoteOperate) StopBulk(ctx context.Context, jobID string, o ...StopOptions) (*BulkJob, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	path, err := byJob(jobID)
	if err != nil {
		return nil, err
	}
	request := &wire.StopBulkRequest{BulkByID: path}
	request.Body.Reason = options.Reason
	return oneJob(ctx, r.client, wire.StopBulk, request, sending{})
}

func (r remoteOperate) BulkJobs(ctx context.Context) iter.Seq2[*BulkJob, error] {
	return walk(nil, "", func(cursor string) (Page[*BulkJob], error) { return r.BulkJobsPage(ctx, PageOptions{Cursor: cursor}) })
}

func (r remoteOperate) BulkJobsPage(ctx context.Context, o ...PageOptions) (Page[*BulkJob], error) {
	options, err := single(o)
	if err != nil {
		return Page[*BulkJob]{}, err
	}
	request := &wire.ListBulkRequest{PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListBulk, request, func(w wire.BulkJob) *BulkJob { return jobFrom(&w) })
}

func (r remoteOperate) BulkItems(ctx context.Context, jobID string, o ...BulkItemOptions) iter.Seq2[BulkItem, error] {
	options, err := single(o)
	return walk(err, options.Cursor, func(cursor string) (Page[BulkItem], error) {
		options.Cursor = cursor
		return r.BulkItemsPage(ctx, jobID, options)
	})
}

func (r remoteOperate) BulkItemsPage(ctx context.Context, jobID string, o ...BulkItemOptions) (Page[BulkItem], error) {
	options, err := single(o)
	if err != nil {
		return Page[BulkItem]{}, err
	}
	path, err := byJob(jobID)
	if err != nil {
		return Page[BulkItem]{}, err
	}
	request := &wire.ListBulkItemsRequest{BulkByID: path, PageFields: pageFields(options.Limit, options.Cursor), OK: options.OK}
	return onePage(ctx, r.client, wire.ListBulkItems, request, bulkItemFrom)
}

// byJob puts the id of a job into a path; invalid_id.
func byJob(jobID string) (wire.BulkByID, error) {
	if _, ok := core.ParseUUID(jobID); !ok {
		return wire.BulkByID{}, newError(core.CodeInvalidID, "%s is not a job id", core.QuoteID(jobID)).At("job_id", "give it as the job shows it")
	}
	return wire.BulkByID{ID: jobID}, nil
}

// oneJob makes a call that answers a job.
func oneJob[Req any](ctx context.Context, r *remote, c wire.Call[Req, wire.BulkJob], request *Req, how sending) (*BulkJob, error) {
	answer, err := call(ctx, r, c, request, how)
	if err != nil {
		return nil, err
	}
	return jobFrom(answer), nil
}
