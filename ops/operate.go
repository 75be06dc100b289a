package ops

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Operate is the group of operator commands on executions. Each of them may return execution_not_found, precondition_failed
// (Expect) and idempotency_conflict (the request key was used for another command).
type Operate struct {
	via   transport.Transport
	clock clock.Clock // used by WaitBulk to pause while a server does not wait
}

// Replay runs a finished execution again, with a new attempt; of a member of a flow, ReplayOptions.Cascade selects the dependent
// members that run again with it. A flow that had completed or failed is open again afterwards.
//
// Codes: execution_not_terminal, max_replays_exhausted, lane_not_accepting; for a member also flow_already_terminal if its flow
// was cancelled, dependencies_impossible with the members to replay first, descendant_active, replay_too_large above 1000
// members.
func (p Operate) Replay(ctx context.Context, id api.ID, o ...ReplayOptions) (*api.Execution, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.ReplayRequest{ByID: path}
	request.Body.ActionFields = options.wire()
	request.Body.ReplayFields = wire.ReplayFields{
		DeadlineAt: calls.Time(options.Deadline), KeepSteps: options.KeepSteps, Cascade: string(options.Cascade), IgnoreDependencies: options.IgnoreDependencies,
	}
	return transport.Call(ctx, p.via, wire.ReplayExecution, request, transport.Options{Key: options.RequestKey})
}

// SetPriority changes the priority of a waiting execution; it is clamped to 0..9000. Codes: execution_not_active.
func (p Operate) SetPriority(ctx context.Context, id api.ID, priority int, o ...Action) (*api.Execution, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.SetPriorityRequest{ByID: path}
	request.Body.ActionFields, request.Body.Priority = options.wire(), priority
	return transport.Call(ctx, p.via, wire.SetPriority, request, transport.Options{Key: options.RequestKey})
}

// Hold keeps the execution from starting until ReleaseHold; a running attempt continues. Codes: execution_not_active.
func (p Operate) Hold(ctx context.Context, id api.ID, o ...Action) (*api.Execution, error) {
	return act(ctx, p.via, wire.HoldExecution, id, o)
}

// ReleaseHold ends a hold. Codes: execution_not_active.
func (p Operate) ReleaseHold(ctx context.Context, id api.ID, o ...Action) (*api.Execution, error) {
	return act(ctx, p.via, wire.ReleaseHold, id, o)
}

// Revoke revokes the lease of the worker that runs the execution; another may claim it. Codes: no_active_lease,
// execution_not_active.
func (p Operate) Revoke(ctx context.Context, id api.ID, o ...RevokeOptions) (api.Revocation, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return api.Revocation{}, err
	}
	request := &wire.RevokeRequest{ByID: path}
	request.Body.ActionFields, request.Body.Hold, request.Body.Handoff = options.wire(), options.Hold, options.Handoff
	answer, err := transport.Call(ctx, p.via, wire.RevokeLease, request, transport.Options{Key: options.RequestKey})
	if err != nil {
		return api.Revocation{}, err
	}
	return answer.Concealed(), nil
}

// Claim leases the execution to an operator, whatever capabilities it requires. Codes: execution_not_eligible,
// lease_conflict, grant_outstanding, lane_not_claimable, execution_not_active.
func (p Operate) Claim(ctx context.Context, id api.ID, o ...OperatorClaim) (*api.Claimed, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.OperatorClaimRequest{ByID: path}
	body := &request.Body
	body.ActionFields, body.WorkerID, body.WorkerInstanceID = options.wire(), options.WorkerID, options.InstanceID
	body.LeaseTTLMS, body.Force = calls.Millis(options.LeaseTTL), options.Force
	return transport.Call(ctx, p.via, wire.ClaimExecution, request, transport.Options{Key: options.RequestKey})
}

// Resume ends a wait regardless of its condition. With ExpectedSuspensionID, repeating it succeeds.
//
// Codes: execution_not_suspended, suspension_mismatch, execution_not_active, invalid_argument.
func (p Operate) Resume(ctx context.Context, id api.ID, o ...ResumeOptions) (*api.Execution, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.ResumeRequest{ByID: path}
	request.Body.ActionFields = options.wire()
	request.Body.ResumeFields = wire.ResumeFields{DelayMS: calls.Millis(options.Delay), ExpectedSuspensionID: options.ExpectedSuspensionID}
	return transport.Call(ctx, p.via, wire.ResumeExecution, request, transport.Options{Key: options.RequestKey})
}

// Approve is an operator's signal to waiting work; it needs no token. Its Name is the decision: approved, rejected, or any other
// name.
//
// Codes: waitpoint_ambiguous without WaitpointID unless exactly one is active, waitpoint_not_found, waitpoint_closed,
// waitpoint_expired, lane_mismatch, principal_required, invalid_signal, reserved_name, payload_too_large, signal_limit_exceeded.
func (p Operate) Approve(ctx context.Context, id api.ID, a Approve) (api.SignalReceipt, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return api.SignalReceipt{}, err
	}
	request := &wire.ApproveRequest{ByID: path}
	request.Body.ActionFields = a.Action.wire()
	if request.Body.ApproveFields, err = a.wire(); err != nil {
		return api.SignalReceipt{}, err
	}
	return calls.Value(transport.Call(ctx, p.via, wire.ApproveExecution, request, transport.Options{Key: a.RequestKey}))
}

// wire converts the signal of an operator, without the action.
func (a *Approve) wire() (wire.ApproveFields, error) {
	return wire.ApproveFields{
		WaitpointID: a.WaitpointID, Name: cmp.Or(a.Name, calls.SignalApproved), Suffix: a.Suffix, Lane: a.Lane, Comment: a.Comment,
		PayloadField: wire.PayloadField{Payload: a.Payload},
	}, a.Payload.Problem("payload")
}

// Retain keeps the execution from retention and Delete. Codes: invalid_argument if the reason is missing.
func (p Operate) Retain(ctx context.Context, id api.ID, o RetainOptions) (*api.Execution, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.RetainRequest{ByID: path}
	request.Body.Reason, request.Body.Expect, request.Body.Until = o.Reason, o.Expect.wire(), calls.Time(o.Until)
	return transport.Call(ctx, p.via, wire.RetainExecution, request, transport.Options{Key: o.RequestKey})
}

// Unretain undoes Retain.
func (p Operate) Unretain(ctx context.Context, id api.ID, o ...Action) (*api.Execution, error) {
	return act(ctx, p.via, wire.Unretain, id, o)
}

// Delete removes a finished execution and all its data. A member of a flow can be deleted once the outermost flow has ended; it
// keeps its place in the graph (FlowMember.DeletedAt). Codes: execution_not_terminal, retained.
func (p Operate) Delete(ctx context.Context, id api.ID, o ...Action) error {
	_, err := act(ctx, p.via, wire.DeleteExecution, id, o)
	return err
}

// act makes a call whose only content is the action.
func act[Ans any](ctx context.Context, via transport.Transport, call wire.Call[wire.ActionRequest, Ans], id api.ID, o []Action) (*Ans, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, via, call, &wire.ActionRequest{ByID: path, Body: options.wire()}, transport.Options{Key: options.RequestKey})
}

// wire converts the action to the fields of a body.
func (a Action) wire() wire.ActionFields {
	return wire.ActionFields{Reason: a.Reason, Expect: a.Expect.wire()}
}

func (x Expect) wire() *wire.Expect { return calls.Expected(string(x.Status), x.LeaseID, x.LeaseEpoch) }

// Bulk starts a durable job that applies an action to many executions. Codes: invalid_argument, missing_field, unknown_field,
// invalid_filter, bulk_limit_exceeded.
func (p Operate) Bulk(ctx context.Context, r BulkRequest) (*api.BulkJob, error) {
	body, err := r.wire()
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, p.via, wire.StartBulk, &wire.StartBulkRequest{Body: body}, transport.Options{Key: r.RequestKey})
}

func (r *BulkRequest) wire() (wire.BulkRequest, error) {
	body := wire.BulkRequest{
		Action: r.Action, IDs: texts(r.IDs), All: r.All, DryRun: r.DryRun, MaxAffected: r.MaxAffected, RatePerSecond: r.RatePerSecond,
		Reason: r.Reason, Args: wire.BulkArgs{
			Tags: r.Tags, Until: calls.Time(r.Until), DelayMS: calls.Millis(r.Delay),
			ReplayFields: wire.ReplayFields{
				DeadlineAt: calls.Time(r.Deadline), KeepSteps: r.KeepSteps, Cascade: string(r.Cascade), IgnoreDependencies: r.IgnoreDependencies,
			},
		},
	}
	if s := r.Signal; s != nil {
		if err := s.Payload.Problem("payload"); err != nil {
			return body, api.Within("args", err)
		}
		body.Args.Name, body.Args.Suffix, body.Args.Lane, body.Args.Comment = cmp.Or(s.Name, calls.SignalApproved), s.Suffix, s.Lane, s.Comment
		body.Args.Payload = s.Payload
	}
	if filter := r.Filter.wire(); !reflect.ValueOf(filter).IsZero() {
		body.Filter = &filter
	}
	if r.Action == api.BulkPriority || r.Priority != 0 {
		body.Args.Priority = &r.Priority
	}
	return body, nil
}

// BulkStatus returns a job. Codes: job_not_found.
func (p Operate) BulkStatus(ctx context.Context, jobID string) (*api.BulkJob, error) {
	return p.job(ctx, jobID, 0)
}

// job returns a job; if wait is not 0, once it has ended or the wait is over.
func (p Operate) job(ctx context.Context, jobID string, wait time.Duration) (*api.BulkJob, error) {
	path, err := byJob(jobID)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, p.via, wire.GetBulk, &wire.GetBulkRequest{BulkByID: path, WaitFields: wire.WaitUpTo(wait)}, transport.Options{Wait: wait})
}

// jobRuns is the state of a job that has not ended.
const jobRuns = "running"

// WaitBulk returns the job when it is done or stopped. It waits as long as ctx allows. Codes: job_not_found.
func (p Operate) WaitBulk(ctx context.Context, jobID string) (*api.BulkJob, error) {
	var idle backoff.Idle
	for {
		began := p.clock.Now()
		job, err := p.job(ctx, jobID, calls.LongPoll)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("flowfabric: waiting for bulk job %s: %w", jobID, context.Cause(ctx))
		case err != nil || job.State != jobRuns:
			return job, err
		}
		idle.Pause(ctx, p.clock, began, calls.LongPoll)
	}
}

// StopBulk stops a job; its changes so far are kept. Codes: job_not_found.
func (p Operate) StopBulk(ctx context.Context, jobID string, o ...StopOptions) (*api.BulkJob, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	path, err := byJob(jobID)
	if err != nil {
		return nil, err
	}
	request := &wire.StopBulkRequest{BulkByID: path}
	request.Body.Reason = options.Reason
	return transport.Call(ctx, p.via, wire.StopBulk, request, transport.Options{})
}

// BulkJobs iterates over the jobs, newest first. A job is deleted seven days after its end.
func (p Operate) BulkJobs(ctx context.Context) iter.Seq2[*api.BulkJob, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[*api.BulkJob], error) {
		return p.BulkJobsPage(ctx, api.PageOptions{Cursor: cursor})
	})
}

// BulkJobsPage returns one page of the jobs. Codes: invalid_cursor.
func (p Operate) BulkJobsPage(ctx context.Context, o ...api.PageOptions) (api.Page[*api.BulkJob], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[*api.BulkJob]{}, err
	}
	request := &wire.ListBulkRequest{PageFields: calls.PageFields(options.Limit, options.Cursor)}
	return calls.Value(transport.Call(ctx, p.via, wire.ListBulk, request, transport.Options{}))
}

// BulkItems iterates over the results of a job, in the order in which they occurred. The first 10 000 executions that were
// refused and the first 10 000 that were changed are kept as long as the job; the others are only counted.
//
// Codes: job_not_found, invalid_cursor.
func (p Operate) BulkItems(ctx context.Context, jobID string, o ...BulkItemOptions) iter.Seq2[api.BulkItem, error] {
	options, err := transport.Single(o)
	return calls.Walk(err, options.Cursor, func(cursor string) (api.Page[api.BulkItem], error) {
		options.Cursor = cursor
		return p.BulkItemsPage(ctx, jobID, options)
	})
}

// BulkItemsPage returns one page of the results of a job. Codes: job_not_found, invalid_cursor.
func (p Operate) BulkItemsPage(ctx context.Context, jobID string, o ...BulkItemOptions) (api.Page[api.BulkItem], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[api.BulkItem]{}, err
	}
	path, err := byJob(jobID)
	if err != nil {
		return api.Page[api.BulkItem]{}, err
	}
	request := &wire.ListBulkItemsRequest{BulkByID: path, PageFields: calls.PageFields(options.Limit, options.Cursor), OK: options.OK}
	return calls.Value(transport.Call(ctx, p.via, wire.ListBulkItems, request, transport.Options{}))
}

// byJob formats the id of a job for a path; invalid_id.
func byJob(jobID string) (wire.BulkByID, error) {
	if _, ok := base.ParseUUID(jobID); !ok {
		return wire.BulkByID{}, calls.Refuse(base.CodeInvalidID, "%s is not a job id", base.QuoteID(jobID)).At("job_id", "give it as the job shows it")
	}
	return wire.BulkByID{ID: jobID}, nil
}

// ReplayOptions are the options of Replay.
type ReplayOptions struct {
	Action
	Deadline  time.Time // zero: by the policy, else the old deadline if it is still in the future, else none
	KeepSteps bool      // the new run skips the steps that the last one completed
	// Cascade selects the dependent members of its flow, direct or indirect, that run again with it; "": CascadeNone.
	Cascade Cascade
	// IgnoreDependencies lets a skipped member run although the members that it waits for had other outcomes.
	IgnoreDependencies bool
}

// Cascade says which dependent members of a flow a replay includes.
type Cascade string

// The values of Cascade.
const (
	CascadeNone    Cascade = "none"
	CascadeSkipped Cascade = "skipped" // those that were skipped
	CascadeAll     Cascade = "all"
)

// RevokeOptions are the options of Revoke.
type RevokeOptions struct {
	Action
	Hold    bool         // hold the execution in the same transaction, so that no worker claims it yet
	Handoff *api.Handoff // grant it to this worker in the same transaction; nil: any worker may claim it
}

// OperatorClaim holds the options of Operate.Claim.
type OperatorClaim struct {
	Action
	WorkerID   string        // "operator"
	InstanceID string        // "operator"
	LeaseTTL   time.Duration // 30 s
	Force      bool          // also from a paused or disabled lane, and without room in budgets and quotas
}

// RetainOptions say how long and why an execution is kept. The reason is required.
type RetainOptions struct {
	Action
	Until time.Time // zero: until Unretain
}

// BulkRequest selects the action and the executions of a bulk job: those of a filter, of a list of ids, or all of them.
type BulkRequest struct {
	Action      string // one of the Bulk constants
	Filter      Filter
	IDs         []api.ID
	All         bool // required if there is neither a filter nor a list
	DryRun      bool // count and return a sample, change nothing
	MaxAffected *int // refuse if more executions would be affected
	// RatePerSecond limits how many executions the job changes per second, also after a restart; 0: no limit.
	RatePerSecond int
	Reason        string
	RequestKey    string // generated by the client when empty

	// Arguments of other actions are refused as unknown_field.
	Priority int                // of BulkPriority
	Tags     map[string]*string // of BulkTag; nil deletes
	Until    time.Time          // of BulkRetain; zero: without end
	Delay    time.Duration      // of BulkResume
	Signal   *Approve           // of BulkSignal: its Name, Suffix, Lane, Payload and Comment, sent as Approve does

	// For BulkReplay, as in ReplayOptions.
	Deadline           time.Time
	KeepSteps          bool
	Cascade            Cascade
	IgnoreDependencies bool
}

// StopOptions are the options of StopBulk.
type StopOptions struct {
	Reason string // at most 1024 bytes; recorded in the audit log
}

// BulkItemOptions select results of a job. The zero value: all of them, in pages of 100.
type BulkItemOptions struct {
	OK     *bool  // only changed executions, or only refused ones
	Limit  int    // of a page; 0: 100, above 1000 counts as 1000
	Cursor string // NextCursor of the page before, of the same job with the same OK
}

// Action holds the options of every operator command.
type Action struct {
	Reason     string // at most 1024 bytes; recorded in the event
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
	Expect     Expect // refuse with precondition_failed when the execution is not as expected
}

// Expect is the expected state of an execution; zero fields are not compared.
type Expect struct {
	Status     api.Status
	LeaseID    string
	LeaseEpoch int64
}
