package flowfabric

import (
	"context"
	"fmt"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/service"
)

type embeddedWork struct{ client *embedded }

func (embeddedWork) sealed() {}

func (e embeddedWork) Register(ctx context.Context, r Registration) (Registered, error) {
	registration := core.Registration{
		WorkerID: r.WorkerID, InstanceID: r.InstanceID, Namespaces: r.Namespaces, Lanes: r.Lanes, Kinds: r.Kinds,
		Capabilities: r.Capabilities, MaxConcurrent: r.MaxConcurrent, LivenessTTLMS: millis(r.LivenessTTL), Version: r.Version, Labels: r.Labels,
	}
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.RegisterAnswer, error) {
		return e.client.engine.Register(ctx, e.client.asWorker(ctx), registration)
	})
	if err != nil {
		return Registered{}, err
	}
	return Registered{Outcome: answer.Outcome, ExpiresAt: answer.ExpiresAt.Std(), Drain: answer.Drain}, nil
}

func (e embeddedWork) Heartbeat(ctx context.Context, instanceID string, leases []Lease) (Heartbeat, error) {
	refs := make([]engine.LeaseRef, len(leases))
	for i, lease := range leases {
		given, err := parseID(lease.ExecutionID)
		if err != nil {
			return Heartbeat{}, within(fmt.Sprintf("leases[%d].execution_id", i), err)
		}
		fence, err := fenceParts(lease)
		if err != nil {
			return Heartbeat{}, within(fmt.Sprintf("leases[%d]", i), err)
		}
		refs[i] = engine.LeaseRef{ID: given, Fence: fence}
	}
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.HeartbeatAnswer, error) {
		return e.client.engine.Heartbeat(ctx, e.client.asWorker(ctx), instanceID, refs)
	})
	if err != nil {
		return Heartbeat{}, err
	}
	beat := Heartbeat{Registered: answer.Registered, ExpiresAt: answer.ExpiresAt.Std(), Drain: answer.Drain, Leases: make([]Renewal, len(answer.Leases))}
	for i, item := range answer.Leases {
		beat.Leases[i] = renewalOf(item)
	}
	return beat, nil
}

func renewalOf(item engine.RenewItem) Renewal {
	return Renewal{ExpiresAt: item.Lease.ExpiresAt.Std(), TTL: duration(item.Lease.TTL), Drain: item.Drain, Err: publicError(item.Err)}
}

func (e embeddedWork) Claim(ctx context.Context, r ClaimRequest) (ClaimAnswer, error) {
	request := engine.ClaimRequest{
		WorkerID: r.WorkerID, InstanceID: r.InstanceID, Lanes: r.Lanes, Max: r.Max, Wait: r.Wait, Capabilities: r.Capabilities,
		Kinds: r.Kinds, Namespaces: r.Namespaces, LaneOrder: r.LaneOrder, TTL: millis(r.LeaseTTL), RequestKey: r.RequestKey,
		Repeat: r.Repeat,
	}
	if request.RequestKey == "" {
		request.RequestKey = e.client.requestKey(ctx)
	}
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.ClaimAnswer, error) { return e.client.engine.Claim(ctx, e.client.asWorker(ctx), request) })
	if err != nil {
		return ClaimAnswer{}, err
	}
	claimed := ClaimAnswer{Tasks: make([]*Claimed, len(answer.Tasks)), Drain: answer.Drain, ServerTime: answer.Now.Std()}
	for i, task := range answer.Tasks {
		if r.Brief {
			claimed.Tasks[i] = claimedOf(task)
			claimed.Tasks[i].brief = true
		} else {
			claimed.Tasks[i] = claimedWithPolicy(task)
		}
	}
	return claimed, nil
}

func (e embeddedWork) ClaimResumed(ctx context.Context, id ID, r TargetedClaim) (*Claimed, error) {
	return e.claimOne(ctx, id, r, e.client.engine.ClaimResumed)
}

func (e embeddedWork) Reclaim(ctx context.Context, id ID, r TargetedClaim) (*Claimed, error) {
	return e.claimOne(ctx, id, r, e.client.engine.Reclaim)
}

func (e embeddedWork) claimOne(
	ctx context.Context, id ID, r TargetedClaim,
	do func(context.Context, engine.Caller, core.GivenID, engine.TargetedRequest) (engine.Task, error),
) (*Claimed, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	request := engine.TargetedRequest{
		WorkerID: r.WorkerID, InstanceID: r.InstanceID, Capabilities: r.Capabilities, Lane: r.Lane, TTL: millis(r.LeaseTTL), RequestKey: r.RequestKey,
	}
	if request.RequestKey == "" {
		request.RequestKey = e.client.requestKey(ctx)
	}
	task, err := untilKnown(ctx, e.client.clock, func() (engine.Task, error) { return do(ctx, e.client.asWorker(ctx), given, request) })
	if err != nil {
		return nil, err
	}
	return claimedWithPolicy(task), nil
}

func claimedWithPolicy(t engine.Task) *Claimed {
	claimed := claimedOf(t)
	claimed.Policy = service.PolicyOf(t.Execution)
	return claimed
}

func claimedOf(t engine.Task) *Claimed {
	x := t.Execution
	claimed := &Claimed{
		ID: idOf(x.ID), Partition: int(x.ID.N), Kind: x.Class.Kind, Lane: x.Class.Lane, Namespace: x.Class.Namespace, Priority: x.Priority, Tags: maps.Clone(x.Tags),
		Input: service.PayloadOf(x.Input), How: t.How, ResumedFrom: t.ResumedFrom.String(),
		DeadlineAt: x.DeadlineAt.Std(), AttemptDeadline: x.AttemptDeadline.Std(), RunIndex: x.RunIndex(), CreatedAt: x.CreatedAt.Std(),
		FlowID: idOf(x.FlowID), RootFlowID: idOf(x.RootFlowID()), ParentID: idOf(x.ParentID), Trace: traceContextOf(x.Trace), Resume: resumeOf(t.Resumed),
		Inputs:    some(t.Inputs, service.NamedInputOf),
		Remaining: service.Remaining(t.Remaining),
	}
	if x.Member != nil {
		claimed.Name = x.Member.Name
	}
	if t.ChildrenCause != "" {
		claimed.Resume = &Resume{Cause: t.ChildrenCause, Children: some(t.Children, service.ChildOf)}
	}
	if x.Attempt != nil {
		claimed.Attempt = service.AttemptOf(*x.Attempt)
	}
	if l := x.Lease; l != nil {
		claimed.Lease = Lease{
			ExecutionID: claimed.ID, ID: l.ID.String(), Epoch: x.LeaseEpoch, AttemptID: claimed.Attempt.ID, AttemptIndex: claimed.Attempt.Index,
			WorkerID: l.WorkerID, InstanceID: l.InstanceID,
			AcquiredAt: l.AcquiredAt.Std(), RenewedAt: l.RenewedAt.Std(), ExpiresAt: l.ExpiresAt.Std(), TTL: duration(l.TTL),
		}
	}
	return claimed
}

// do sends one command until its outcome is known. All of them recognise their repeats (L117).
func (e embeddedWork) do(ctx context.Context, item *WorkItem) WorkAnswer {
	switch {
	case item.Override:
	case item.Op == OpSuspend:
		return answered(e.suspend(ctx, item))
	case item.Op == OpWaitpoint:
		return answered(e.newWaitpoint(ctx, item))
	}
	keyed := e.keyed(ctx, item)
	answer, err := untilKnown(ctx, e.client.clock, func() (WorkAnswer, error) { return e.send(ctx, keyed) })
	answer.Err = err
	answer.forget(item)
	return answer
}

// answered is the answer to a command that the service does.
func answered(answer WorkAnswer, err error) WorkAnswer {
	answer.Err = err
	return answer
}

func (e embeddedWork) send(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	id, err := parseID(item.ID)
	if err != nil {
		return WorkAnswer{}, err
	}
	if item.Override {
		return e.override(ctx, id, item)
	}
	fence, err := fenceOf(item.Lease)
	if err != nil {
		return WorkAnswer{}, err
	}
	switch item.Op {
	case OpRenew:
		return e.renew(ctx, engine.LeaseRef{ID: id, Fence: fence, TTL: millis(item.TTL)})
	case OpProgress:
		return WorkAnswer{}, e.client.engine.Progress(ctx, e.client.asWorker(ctx), id, fence, item.Percent, given(item.Message))
	case OpComplete:
		result, err := item.result()
		if err != nil {
			return WorkAnswer{}, err
		}
		a, err := e.client.engine.CompleteWith(ctx, e.client.asWorker(ctx), id, core.Completion{Fence: fence, Result: result, Usage: item.Usage.Amounts})
		return completed(a), err
	case OpFail:
		cmd, err := item.failure(fence)
		if err != nil {
			return WorkAnswer{}, err
		}
		return failed(e.client.engine.Fail(ctx, e.client.asWorker(ctx), id, cmd))
	case OpRelease:
		return left(e.client.engine.Release(ctx, e.client.asWorker(ctx), id, fence, item.Reason))
	case OpDelay:
		return e.delay(ctx, id, fence, item)
	case OpUsage:
		return e.usage(ctx, id, fence, item)
	case OpStep:
		return e.step(ctx, id, fence, item)
	case OpCancel:
		view, err := e.client.engine.Cancel(ctx, e.client.asWorker(ctx), id, &fence, "worker", engine.Operator{Reason: item.Reason})
		if err != nil {
			return WorkAnswer{}, err
		}
		return WorkAnswer{Status: Status(view.Execution.Status.String())}, nil
	case OpSpawn:
		return e.spawn(ctx, id, fence, item)
	case OpWaitChildren:
		return e.waitChildren(ctx, id, fence, item)
	default:
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "%q is not a command", item.Op).At("op", "use one of the Op constants")
	}
}

func (e embeddedWork) delay(ctx context.Context, id core.GivenID, fence core.Fence, item *WorkItem) (WorkAnswer, error) {
	cmd := core.DelayCommand{Fence: fence, Usage: item.Usage.Amounts}
	if !item.Until.IsZero() {
		if item.Delay != 0 {
			return WorkAnswer{}, newError(core.CodeInvalidArgument, "both until and delay are given").At("until", "set Until or Delay")
		}
		cmd.Until = core.TimeOf(item.Until)
		return left(e.client.engine.DelayWith(ctx, e.client.asWorker(ctx), id, cmd, nil))
	}
	after := millis(item.Delay)
	return left(e.client.engine.DelayWith(ctx, e.client.asWorker(ctx), id, cmd, &after))
}

func (e embeddedWork) usage(ctx context.Context, id core.GivenID, fence core.Fence, item *WorkItem) (WorkAnswer, error) {
	u := item.Usage
	outcome, err := e.client.engine.ReportUsage(ctx, e.client.asWorker(ctx), id, engine.UsageRequest{
		Fence: fence, Usage: u.Amounts, DedupKey: u.DedupKey, AlreadySpent: u.AlreadySpent,
	})
	if err != nil {
		return WorkAnswer{}, err
	}
	receipt := service.UsageReceipt(outcome)
	return WorkAnswer{Usage: &receipt}, nil
}

func (e embeddedWork) renew(ctx context.Context, ref engine.LeaseRef) (WorkAnswer, error) {
	items, err := e.client.engine.Renew(ctx, e.client.asWorker(ctx), []engine.LeaseRef{ref})
	if err != nil {
		return WorkAnswer{}, err
	}
	return WorkAnswer{Renewal: renewalOf(items[0])}, items[0].Err
}

func (e embeddedWork) step(ctx context.Context, id core.GivenID, fence core.Fence, item *WorkItem) (WorkAnswer, error) {
	if err := item.Result.Problem("result"); err != nil {
		return WorkAnswer{}, err
	}
	a, err := e.client.engine.PutStep(ctx, e.client.asWorker(ctx), id, fence, item.Step, service.CorePayload(item.Result))
	if err != nil {
		return WorkAnswer{}, err
	}
	step := service.StepOf(a.Record)
	return WorkAnswer{Outcome: a.Outcome, Step: &step}, nil
}

// override is an operator's complete or fail (L37). It has no fence to be recognised by, so it has a request key.
func (e embeddedWork) override(ctx context.Context, id core.GivenID, item *WorkItem) (WorkAnswer, error) {
	if p, ok := principal.From(ctx); ok && !p.Operator {
		return WorkAnswer{}, newError(core.CodeRoleRequired, "only an operator ends the work of others").
			At("override", "use a key with the role operate, or send the lease of the execution")
	}
	op := engine.Operator{Reason: item.Reason, RequestKey: item.RequestKey}
	switch item.Op {
	case OpComplete:
		result, err := item.result()
		if err != nil {
			return WorkAnswer{}, err
		}
		a, err := e.client.engine.CompleteOverride(ctx, e.client.asOperator(ctx), id, result, op)
		return WorkAnswer{Status: Status(a.Status.String())}, err
	case OpFail:
		cmd, err := item.failure(core.Fence{})
		if err != nil {
			return WorkAnswer{}, err
		}
		return failed(e.client.engine.FailOverride(ctx, e.client.asOperator(ctx), id, cmd, op))
	default:
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "%q cannot be done without a lease", item.Op).At("override", "complete and fail can")
	}
}

// result is what complete stores; nil: nothing.
func (i *WorkItem) result() (*core.Payload, error) {
	if err := i.Result.Problem("result"); err != nil || i.Result.IsNothing() {
		return nil, err
	}
	result := service.CorePayload(i.Result)
	return &result, nil
}

func (i *WorkItem) failure(fence core.Fence) (core.FailCommand, error) {
	cmd := core.FailCommand{
		Fence: fence, Class: i.Class, Category: i.Category, Message: i.Message, Detail: i.Detail.Data, DetailType: i.Detail.ContentType,
		Usage: i.Usage.Amounts,
	}
	if err := i.Detail.Problem("detail"); err != nil {
		return cmd, err
	}
	if cmd.Detail == nil && cmd.DetailType != "" { // empty is not the same as absent
		cmd.Detail = []byte{}
	}
	if i.RetryAfter != nil {
		after := millis(*i.RetryAfter)
		cmd.RetryAfter = &after
	}
	return cmd, nil
}

func failed(a core.FailAnswer, err error) (WorkAnswer, error) {
	return WorkAnswer{Outcome: a.Outcome, RetryAt: a.RetryAt.Std(), Reason: service.ReasonText(a.Reason), Late: a.Late}, err
}

func left(a core.LeaveAnswer, err error) (WorkAnswer, error) {
	return WorkAnswer{Status: Status(a.Status.String()), Reason: service.ReasonText(a.Reason), Late: a.Late}, err
}

// given tells a text that was given from one that was not.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
