package service

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// ExecutionOf converts a record for readers.
func ExecutionOf(view engine.View) *api.Execution {
	x := view.Execution
	public, vector := core.Derive(x, view.Lane)
	shown := &api.Execution{
		ID: idOf(x.ID), Partition: int(x.ID.N), Namespace: x.Class.Namespace, Kind: x.Class.Kind, Lane: x.Class.Lane,
		Status: api.Status(x.Status.String()), Reason: ReasonText(x.Reason), PublicState: public, StateVector: api.StateVector(vector),
		BlockingDetail: x.BlockingDetail, StatusSince: x.StatusSince.Std(), Priority: x.Priority, Tags: maps.Clone(x.Tags),
		Creator: x.Creator, IdempotencyKey: x.IdempotencyKey, FlowID: idOf(x.FlowID), RootFlowID: idOf(x.RootFlowID()), ParentID: idOf(x.ParentID), RunIndex: x.RunIndex(),
		CreatedAt: x.CreatedAt.Std(), QueuedAt: x.QueuedAt.Std(), StartedAt: x.StartedAt.Std(), CompletedAt: x.CompletedAt.Std(),
		DeadlineAt: x.DeadlineAt.Std(), DelayUntil: x.DelayUntil.Std(), LastMutationAt: x.LastMutationAt.Std(),
		TotalAttempts: x.TotalAttempts, RetryCount: x.RetryCount, ReclaimCount: x.ReclaimCount, ReplayCount: x.ReplayCount,
		Lease: leaseOf(x), Failure: failureOf(x.Failure), Input: PayloadOf(x.Input),
	}
	showRecord(shown, x)
	if x.Attempt != nil {
		attempt := AttemptOf(*x.Attempt)
		shown.Attempt = &attempt
	}
	if x.Member != nil {
		shown.Name, shown.Join = x.Member.Name, JoinOf(engine.JoinView{Join: x.Member.Join})
	}
	if x.Waits != nil && x.Waits.Suspension != nil {
		shown.Suspension = openSuspensionOf(x.Waits)
	}
	if x.Held != nil {
		shown.Held = &api.Hold{By: x.Held.By, At: x.Held.At.Std(), Reason: x.Held.Reason}
	}
	if x.Progress != nil {
		shown.Progress = &api.Progress{Percent: x.Progress.Percent, Message: x.Progress.Message, UpdatedAt: x.Progress.UpdatedAt.Std()}
	}
	if x.Cancellation != nil {
		shown.Cancellation = &api.Cancellation{Source: x.Cancellation.Source, By: x.Cancellation.By, Reason: x.Cancellation.Reason}
	}
	if x.Retain != nil {
		shown.Retained = &api.Retained{Until: x.Retain.Until.Std(), By: x.Retain.By, Reason: x.Retain.Reason}
	}
	if x.Result != nil {
		shown.HasResult, shown.Result = true, PayloadOf(*x.Result)
	}
	return shown
}

// showRecord adds fields of the record that only the full view has (L120).
func showRecord(x *api.Execution, of *core.Execution) {
	if of.Next != core.NextNone {
		x.Next = of.Next.String()
	}
	x.BlockedOn, x.DelayReason, x.Slots = of.BlockedOn, ReasonText(of.DelayReason), slices.Clone(of.Holds)
	x.LeaseEpoch, x.RunStartedAt, x.WakeAt = of.LeaseEpoch, of.RunStartedAt.Std(), of.WakeAt.Std()
	x.AttemptDeadlineAt, x.AttemptRemaining = of.AttemptDeadline.Std(), duration(of.AttemptRemaining)
	if g := of.Grant; g != nil {
		x.Grant = &api.IssuedGrant{Kid: g.Kid, WorkerID: g.WorkerID, InstanceID: g.InstanceID, IssuedAt: g.IssuedAt.Std(), ExpiresAt: g.ExpiresAt.Std()}
	}
	if l := of.LastLease; l != nil {
		x.LastLease = &api.EndedLease{ID: l.ID.String(), Epoch: l.Epoch, AttemptID: l.AttemptID.String(), EndedAt: l.EndedAt.Std(), End: l.End.String()}
	}
}

// ReasonText returns the description of a reason; "" if there is none.
func ReasonText(r core.Reason) string {
	if r == core.ReasonNone {
		return ""
	}
	return r.String()
}

func leaseOf(x *core.Execution) *api.Lease {
	l := x.Lease
	if l == nil {
		return nil
	}
	lease := &api.Lease{
		ExecutionID: idOf(x.ID), ID: l.ID.String(), Epoch: x.LeaseEpoch, AttemptID: l.AttemptID.String(),
		WorkerID: l.WorkerID, InstanceID: l.InstanceID,
		AcquiredAt: l.AcquiredAt.Std(), RenewedAt: l.RenewedAt.Std(), ExpiresAt: l.ExpiresAt.Std(), TTL: duration(l.TTL),
	}
	if x.Attempt != nil {
		lease.AttemptIndex = x.Attempt.Index
	}
	return lease
}

// AttemptOf converts an attempt.
func AttemptOf(a core.Attempt) api.Attempt {
	shown := api.Attempt{
		ID: a.ID.String(), Index: a.Index, Type: a.Type.String(), State: a.State.String(),
		StartedAt: a.StartedAt.Std(), EndedAt: a.EndedAt.Std(), Running: duration(a.RunningMS),
		FirstEpoch: a.FirstEpoch, LastEpoch: a.LastEpoch, WorkerID: a.WorkerID, InstanceID: a.InstanceID,
		Failure: failureOf(a.Failure), Usage: a.Meters(),
	}
	if kind := a.Interruption.String(); kind != "" {
		shown.Interruption = &api.Interruption{Kind: kind, At: a.InterruptAt.Std()}
	}
	if a.Lineage != nil {
		lineage := api.Lineage(*a.Lineage)
		shown.Lineage = &lineage
	}
	return shown
}

func failureOf(f *core.Failure) *api.Failure {
	if f == nil {
		return nil
	}
	return &api.Failure{Class: f.Class, Category: f.Category, Message: f.Message, Detail: detailOf(f), At: f.At.Std()}
}

// detailOf converts the detail of a failure, whose content type is stored only if it is not the default.
func detailOf(f *core.Failure) api.Payload {
	if f.Detail == nil {
		return api.Payload{}
	}
	if f.DetailType == "" {
		return api.Payload{Data: f.Detail, ContentType: wire.ContentBytes}
	}
	return api.Payload{Data: f.Detail, ContentType: f.DetailType}
}

func leaseRecordOf(r core.LeaseRecord) api.LeaseRecord {
	return api.LeaseRecord{
		Epoch: r.Epoch, LeaseID: r.LeaseID.String(), AttemptIndex: r.Attempt.Index, WorkerID: r.WorkerID, InstanceID: r.InstanceID,
		AcquiredAt: r.AcquiredAt.Std(), EndedAt: r.EndedAt.Std(), End: r.End.String(), Late: r.Late,
	}
}

// StepOf converts a step.
func StepOf(r core.StepRecord) api.StepRecord {
	result := api.Payload{Data: r.Result, ContentType: r.ContentType}
	if r.Size > 0 {
		result = api.Unloaded(r.ContentType, r.Size)
	}
	return api.StepRecord{
		Name: r.Name, RunIndex: r.RunIndex, AttemptIndex: r.AttemptIndex, LeaseEpoch: r.LeaseEpoch, CreatedAt: r.CreatedAt.Std(), Result: result,
	}
}

// openSuspensionOf converts the open suspension, as far as it is in the record of the execution.
func openSuspensionOf(w *core.Waits) *api.OpenSuspension {
	s := w.Suspension
	shown := &api.OpenSuspension{
		ID: s.ID.String(), SuspendedAt: s.At.Std(), ReasonCode: s.ReasonCode, TimeoutAt: s.TimeoutAt.Std(), OnTimeout: api.TimeoutBehavior(s.Behavior),
		EscalatedAt: s.EscalatedAt.Std(),
	}
	for _, open := range w.Open {
		if open.Active {
			shown.Waitpoints = append(shown.Waitpoints, api.BoundWaitpoint{WaitpointID: open.ID.String(), Key: open.Key})
		}
	}
	return shown
}

// JoinOf converts a join; nil for a member without inbound edges.
func JoinOf(j engine.JoinView) *api.JoinView {
	if j.State == core.JoinNone {
		return nil
	}
	return JoinShown(j)
}

// JoinShown converts a join, also that of a member without inbound edges.
func JoinShown(j engine.JoinView) *api.JoinView {
	return &api.JoinView{
		Join: api.Join{Policy: api.JoinPolicy(j.Policy.String()), K: j.K, CancelRemaining: j.OnSatisfied == core.CancelRemaining},
		JoinState: api.JoinState{
			N: j.N, Satisfied: j.Satisfied, Impossible: j.Impossible, State: j.State.String(), DecidedAt: j.DecidedAt.Std(), Detail: j.Detail,
			Waiting: some(j.Waiting, func(m core.NodeRef) api.Membership { return api.Membership{ID: idOf(m.ID), Name: m.Name} }),
		},
	}
}

// NamedInputOf converts an input that a member received from another.
func NamedInputOf(in core.NamedInput) api.NamedInput {
	shown := api.NamedInput{
		Name: in.Name, From: in.From.Name, FromID: idOf(in.From.ID), Outcome: api.Status(in.Outcome.String()), FailureReason: in.FailureReason,
	}
	if r := in.Result; r != nil {
		shown.Present = true
		shown.Result = PayloadOf(core.Payload{Data: in.Data, ContentType: r.ContentType, Size: r.Size})
		if in.Data == nil && r.Size == 0 {
			shown.Result.Data = []byte{}
		}
	}
	return shown
}

// BudgetsOf returns the budgets in the record of an execution: those of its lease or grant, and those created with it.
func BudgetsOf(x *core.Execution) (all []api.ExecutionBudget) {
	if x.Reservation != nil {
		for _, hold := range x.Reservation.Holds {
			all = append(all, api.ExecutionBudget{ID: hold.Budget.String(), Reserved: hold.Remaining})
		}
	}
	for _, scoped := range x.Budgets {
		id := scoped.ID.String()
		if !slices.ContainsFunc(all, func(b api.ExecutionBudget) bool { return b.ID == id }) {
			all = append(all, api.ExecutionBudget{ID: id})
		}
	}
	return all
}

// PolicyOf returns the complete policy of an execution as JSON: the frozen one, with the default retry policy of a worker if that applies.
func PolicyOf(x *core.Execution) json.RawMessage {
	policy := x.EffectivePolicy()
	if policy == core.DefaultRetriedPolicy() { // by far the most frequent case
		return defaultPolicy()
	}
	return policy.Canonical()
}

var defaultPolicy = sync.OnceValue(func() json.RawMessage { return core.DefaultRetriedPolicy().Canonical() })

// PayloadOf converts a stored payload.
func PayloadOf(p core.Payload) api.Payload {
	if p.Data == nil && p.Size > 0 {
		return api.Unloaded(p.ContentType, p.Size)
	}
	return api.Payload{Data: p.Data, ContentType: p.ContentType}
}

// CorePayload copies the payload: the caller may reuse its bytes, and the handler that gets them may change them.
func CorePayload(p api.Payload) core.Payload {
	return core.Payload{ContentType: p.ContentType, Data: bytes.Clone(p.Data), Size: len(p.Data)}
}

// payloadGiven converts an optional payload; nil means unset.
func payloadGiven(p api.Payload) *core.Payload {
	if p.IsNothing() {
		return nil
	}
	payload := CorePayload(p)
	return &payload
}

func explanationOf(e core.Explanation) api.Explanation {
	shown := api.Explanation{
		ExecutionID: idOf(e.ExecutionID), Status: api.Status(e.Status.String()), Reason: e.Reason.String(), Since: e.Since.Std(),
		Summary: e.Summary, NextEligibleAt: e.NextEligibleAt.Std(), Outcome: e.Outcome,
		Workers: api.CandidateWorkers{
			Live: e.Workers.Live, OnLane: e.Workers.OnLane, Matching: e.Workers.Matching,
			Nearest: some(e.Workers.Nearest, func(w core.CandidateWorker) api.CandidateWorker { return api.CandidateWorker(w) }),
		},
		Blockers: some(e.Blockers, func(b core.Blocker) api.Blocker {
			return api.Blocker{Code: b.Code, Message: b.Message, Since: b.Since.Std(), Until: b.Until.Std(), Data: b.Data}
		}),
		History: some(e.History, func(c core.StatusChange) api.StatusChange {
			return api.StatusChange{At: c.At.Std(), Status: api.Status(c.Status.String()), Reason: c.Reason.String(), Event: c.Event}
		}),
	}
	if e.Position != nil {
		place := api.QueuePosition(*e.Position)
		shown.Position = &place
	}
	if r := e.Running; r != nil {
		shown.Holder = &api.LeaseHolder{
			WorkerID: r.Lease.WorkerID, InstanceID: r.Lease.InstanceID, LeaseID: r.Lease.ID.String(), LeaseEpoch: r.Epoch,
			AcquiredAt: r.Lease.AcquiredAt.Std(), RenewedAt: r.Lease.RenewedAt.Std(), ExpiresAt: r.Lease.ExpiresAt.Std(), AttemptIndex: r.Attempt,
		}
	}
	return shown
}
