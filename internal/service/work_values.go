package service

import (
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// claimedOf shows a task as a worker needs it.
func claimedOf(t engine.Task) *api.Claimed {
	x := t.Execution
	claimed := &api.Claimed{
		ID: idOf(x.ID), Partition: int(x.ID.N), Kind: x.Class.Kind, Lane: x.Class.Lane, Namespace: x.Class.Namespace, Priority: x.Priority, Tags: maps.Clone(x.Tags),
		Input: PayloadOf(x.Input), How: t.How,
		DeadlineAt: x.DeadlineAt.Std(), AttemptDeadline: x.AttemptDeadline.Std(), RunIndex: x.RunIndex(), CreatedAt: x.CreatedAt.Std(),
		FlowID: idOf(x.FlowID), RootFlowID: idOf(x.RootFlowID()), ParentID: idOf(x.ParentID), TraceContext: traceOf(x.Trace), Resume: resumeOf(t.Resumed),
		Inputs:    some(t.Inputs, NamedInputOf),
		Remaining: Remaining(t.Remaining),
	}
	if x.Member != nil {
		claimed.Name = x.Member.Name
	}
	if t.ChildrenCause != "" {
		claimed.Resume = &api.Resume{Cause: t.ChildrenCause, Children: some(t.Children, childOf)}
	}
	if x.Attempt != nil {
		claimed.Attempt = AttemptOf(*x.Attempt)
	}
	claimed.Attempt.ResumedFrom = t.ResumedFrom.String()
	if l := x.Lease; l != nil {
		claimed.Lease = api.Lease{
			ExecutionID: claimed.ID, ID: l.ID.String(), Epoch: x.LeaseEpoch, AttemptID: claimed.Attempt.ID, AttemptIndex: claimed.Attempt.Index,
			WorkerID: l.WorkerID, InstanceID: l.InstanceID,
			AcquiredAt: l.AcquiredAt.Std(), RenewedAt: l.RenewedAt.Std(), ExpiresAt: l.ExpiresAt.Std(), TTL: duration(l.TTL),
		}
	}
	return claimed
}

// fillIn adds what a brief claim leaves out.
func fillIn(claimed *api.Claimed, t engine.Task) {
	claimed.Policy, claimed.EffectKey = PolicyOf(t.Execution), claimed.EffectKeyOf("")
}

// resumeOf returns what the worker of the next lease needs about the wait; nil if there was none.
func resumeOf(o *core.Observation) *api.Resume {
	if o == nil {
		return nil
	}
	resume := &api.Resume{SuspensionID: o.ID.String(), Cause: string(o.Cause), Signals: each(o.Signals, SignalOf)}
	if o.Continuation != nil {
		resume.Continuation = PayloadOf(*o.Continuation)
	}
	return resume
}

func traceOf(t *base.Trace) api.TraceContext {
	if t == nil {
		return api.TraceContext{}
	}
	return api.TraceContext{Traceparent: t.Parent, Tracestate: t.State, Baggage: t.Baggage}
}
