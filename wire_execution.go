package flowfabric

import (
	"maps"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of executions and of what belongs to them, as the HTTP API has it (U26). What is written and what is read go through the
// same types as server and client do.

// MarshalJSON writes the execution as the HTTP API shows it. StateVector and Policy are left out when they are zero.
func (x Execution) MarshalJSON() ([]byte, error) { return wire.Marshal(x.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (x *Execution) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Execution](text)
	if err != nil {
		return err
	}
	*x = *executionFrom(w)
	return nil
}

func (x *Execution) wire() *wire.Execution {
	w := &wire.Execution{
		ExecutionID: string(x.ID), Partition: x.Partition, Namespace: x.Namespace, Kind: x.Kind, Lane: x.Lane, Status: string(x.Status), Reason: x.Reason,
		PublicState: x.PublicState, BlockingDetail: x.BlockingDetail, StatusSince: wireTime(x.StatusSince), Priority: x.Priority,
		Tags: x.Tags, Creator: x.Creator, IdempotencyKey: x.IdempotencyKey, FlowID: string(x.FlowID), RootFlowID: string(x.RootFlowID), Name: x.Name, ParentID: string(x.ParentID),
		RunIndex:  x.RunIndex,
		CreatedAt: wireTime(x.CreatedAt), QueuedAt: wireTime(x.QueuedAt), StartedAt: wireTime(x.StartedAt), CompletedAt: wireTime(x.CompletedAt),
		DeadlineAt: wireTime(x.DeadlineAt), DelayUntil: wireTime(x.DelayUntil), LastMutationAt: wireTime(x.LastMutationAt),
		TotalAttempts: x.TotalAttempts, RetryCount: x.RetryCount, ReclaimCount: x.ReclaimCount, ReplayCount: x.ReplayCount,
		Failure:     x.Failure.wire(),
		InputShown:  wire.ShowInput(x.Input.wire(x.InputSize), x.Input.encoding()),
		ResultShown: wire.ShowResult(x.Result.wire(x.ResultSize), x.Result.encoding()), HasResult: x.HasResult,
		Inputs: some(x.Inputs, NamedInput.wire), Policy: x.Policy, Budgets: x.Budgets, Traceparent: x.Traceparent,
	}
	x.writeRecord(w)
	if x.Attempt != nil {
		attempt := x.Attempt.wire()
		w.Attempt = &attempt
	}
	if x.Lease != nil {
		lease := x.Lease.wire()
		lease.Fence = "" // for workers alone (U26)
		w.Lease = &lease
	}
	if x.Held != nil {
		w.Held = &wire.Hold{By: x.Held.By, At: wireTime(x.Held.At), Reason: x.Held.Reason}
	}
	if x.Progress != nil {
		w.Progress = &wire.Progress{Percent: x.Progress.Percent, Message: x.Progress.Message, UpdatedAt: wireTime(x.Progress.UpdatedAt)}
	}
	w.Cancellation = (*wire.Cancellation)(x.Cancellation)
	if x.Retained != nil {
		w.Retained = &wire.Retained{Until: wireTime(x.Retained.Until), By: x.Retained.By, Reason: x.Retained.Reason}
	}
	if s := x.Suspension; s != nil {
		w.Suspension = &wire.OpenSuspension{
			SuspensionID: s.ID, SuspendedAt: wireTime(s.SuspendedAt), ReasonCode: s.ReasonCode, TimeoutAt: wireTime(s.TimeoutAt),
			TimeoutBehavior: string(s.OnTimeout), EscalatedAt: wireTime(s.EscalatedAt), Waitpoints: boundWire(s.Waitpoints),
		}
	}
	if x.Join != nil {
		join := x.Join.wire()
		w.Join = &join
	}
	if x.StateVector != (StateVector{}) {
		vector := wire.StateVector(x.StateVector)
		w.StateVector = &vector
	}
	return w
}

func executionFrom(w *wire.Execution) *Execution {
	input, result := w.InputShown.Payload(), w.ResultShown.Payload()
	x := &Execution{
		ID: ID(w.ExecutionID), Partition: w.Partition, Namespace: w.Namespace, Kind: w.Kind, Lane: w.Lane, Status: Status(w.Status), Reason: w.Reason,
		PublicState: w.PublicState, BlockingDetail: w.BlockingDetail, StatusSince: w.StatusSince.Time, Priority: w.Priority,
		Tags: maps.Clone(w.Tags), Creator: w.Creator, IdempotencyKey: w.IdempotencyKey, FlowID: ID(w.FlowID), RootFlowID: ID(w.RootFlowID), Name: w.Name, ParentID: ID(w.ParentID),
		RunIndex:  w.RunIndex,
		CreatedAt: w.CreatedAt.Time, QueuedAt: w.QueuedAt.Time, StartedAt: w.StartedAt.Time, CompletedAt: w.CompletedAt.Time,
		DeadlineAt: w.DeadlineAt.Time, DelayUntil: w.DelayUntil.Time, LastMutationAt: w.LastMutationAt.Time,
		TotalAttempts: w.TotalAttempts, RetryCount: w.RetryCount, ReclaimCount: w.ReclaimCount, ReplayCount: w.ReplayCount,
		Failure: failureFrom(w.Failure), Cancellation: (*Cancellation)(w.Cancellation),
		Input: payloadFrom(input), InputSize: input.Size, HasResult: w.HasResult, Result: payloadFrom(result), ResultSize: result.Size,
		Inputs: some(w.Inputs, namedInputFrom), Policy: w.Policy, Budgets: w.Budgets, Traceparent: w.Traceparent,
	}
	x.readRecord(w)
	if w.Attempt != nil {
		attempt := attemptFrom(w.Attempt)
		x.Attempt = &attempt
	}
	if w.Lease != nil {
		lease := leaseFrom(w.Lease)
		x.Lease = &lease
	}
	if w.Held != nil {
		x.Held = &Hold{By: w.Held.By, At: w.Held.At.Time, Reason: w.Held.Reason}
	}
	if w.Progress != nil {
		x.Progress = &Progress{Percent: w.Progress.Percent, Message: w.Progress.Message, UpdatedAt: w.Progress.UpdatedAt.Time}
	}
	if w.Retained != nil {
		x.Retained = &Retained{Until: w.Retained.Until.Time, By: w.Retained.By, Reason: w.Retained.Reason}
	}
	if s := w.Suspension; s != nil {
		x.Suspension = &OpenSuspension{
			ID: s.SuspensionID, SuspendedAt: s.SuspendedAt.Time, ReasonCode: s.ReasonCode, TimeoutAt: s.TimeoutAt.Time,
			OnTimeout: TimeoutBehavior(s.TimeoutBehavior), EscalatedAt: s.EscalatedAt.Time, Waitpoints: boundFrom(s.Waitpoints),
		}
	}
	if w.Join != nil {
		x.Join = joinViewFrom(w.Join)
	}
	if w.StateVector != nil {
		x.StateVector = StateVector(*w.StateVector)
	}
	return x
}

// executionsFrom are the executions of a list.
func executionsFrom(all []wire.Execution) []*Execution {
	executions := make([]*Execution, len(all))
	for i := range all {
		executions[i] = executionFrom(&all[i])
	}
	return executions
}

func (f *Failure) wire() *wire.Failure {
	if f == nil {
		return nil
	}
	w := &wire.Failure{Class: f.Class, Category: f.Category, Message: f.Message, At: wireTime(f.At)}
	w.DetailShown = wire.ShowDetail(f.Detail.wire(len(f.Detail.Data)), f.Detail.encoding())
	return w
}

func failureFrom(w *wire.Failure) *Failure {
	if w == nil {
		return nil
	}
	return &Failure{Class: w.Class, Category: w.Category, Message: w.Message, Detail: payloadFrom(w.DetailShown.Payload()), At: w.At.Time}
}

// MarshalJSON writes the attempt as the HTTP API shows it (U41).
func (a Attempt) MarshalJSON() ([]byte, error) { return wire.Marshal(a.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *Attempt) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Attempt](text)
	*a = attemptFrom(w)
	return err
}

func (a Attempt) wire() wire.Attempt {
	w := wire.Attempt{
		AttemptID: a.ID, AttemptIndex: a.Index, Type: a.Type, State: a.State, StartedAt: wireTime(a.StartedAt), EndedAt: wireTime(a.EndedAt),
		RunningMS: millis(a.Running), FirstLeaseEpoch: a.FirstEpoch, LastLeaseEpoch: a.LastEpoch, WorkerID: a.WorkerID,
		WorkerInstanceID: a.InstanceID, Failure: a.Failure.wire(), Lineage: (*wire.Lineage)(a.Lineage), Usage: a.Usage,
	}
	if a.Interruption != "" {
		w.Interruption = &wire.Interruption{Kind: a.Interruption, At: wireTime(a.InterruptedAt)}
	}
	return w
}

func attemptFrom(w *wire.Attempt) Attempt {
	a := Attempt{
		ID: w.AttemptID, Index: w.AttemptIndex, Type: w.Type, State: w.State, StartedAt: w.StartedAt.Time, EndedAt: w.EndedAt.Time,
		Running: duration(w.RunningMS), FirstEpoch: w.FirstLeaseEpoch, LastEpoch: w.LastLeaseEpoch, WorkerID: w.WorkerID,
		InstanceID: w.WorkerInstanceID, Failure: failureFrom(w.Failure), Lineage: (*Lineage)(w.Lineage), Usage: w.Usage,
	}
	if w.Interruption != nil {
		a.Interruption, a.InterruptedAt = w.Interruption.Kind, w.Interruption.At.Time
	}
	return a
}

// MarshalJSON writes the lease as the HTTP API shows it to workers (U27).
func (l Lease) MarshalJSON() ([]byte, error) { return wire.Marshal(l.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *Lease) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Lease](text)
	*l = leaseFrom(w)
	return err
}

func (l Lease) wire() wire.Lease {
	w := wire.Lease{
		ExecutionID: string(l.ExecutionID), LeaseID: l.ID, LeaseEpoch: l.Epoch, AttemptID: l.AttemptID, AttemptIndex: l.AttemptIndex,
		WorkerID: l.WorkerID, WorkerInstanceID: l.InstanceID, AcquiredAt: wireTime(l.AcquiredAt), LastRenewedAt: wireTime(l.RenewedAt),
		ExpiresAt: wireTime(l.ExpiresAt), TTLMS: millis(l.TTL),
	}
	if l.ID != "" && l.AttemptID != "" {
		w.Fence = l.Fence()
	}
	return w
}

func leaseFrom(w *wire.Lease) Lease {
	return Lease{
		ExecutionID: ID(w.ExecutionID), ID: w.LeaseID, Epoch: w.LeaseEpoch, AttemptID: w.AttemptID, AttemptIndex: w.AttemptIndex,
		WorkerID: w.WorkerID, InstanceID: w.WorkerInstanceID, AcquiredAt: w.AcquiredAt.Time, RenewedAt: w.LastRenewedAt.Time,
		ExpiresAt: w.ExpiresAt.Time, TTL: duration(w.TTLMS),
	}
}

// MarshalJSON writes the entry as the HTTP API shows it (U41).
func (r LeaseRecord) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.LeaseRecord{
		LeaseEpoch: r.Epoch, LeaseID: r.LeaseID, AttemptIndex: r.AttemptIndex, WorkerID: r.WorkerID, WorkerInstanceID: r.InstanceID,
		AcquiredAt: wireTime(r.AcquiredAt), EndedAt: wireTime(r.EndedAt), End: r.End, Late: r.Late,
	})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *LeaseRecord) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.LeaseRecord](text)
	*r = leaseRecordFrom(*w)
	return err
}

func leaseRecordFrom(w wire.LeaseRecord) LeaseRecord {
	return LeaseRecord{
		Epoch: w.LeaseEpoch, LeaseID: w.LeaseID, AttemptIndex: w.AttemptIndex, WorkerID: w.WorkerID, InstanceID: w.WorkerInstanceID,
		AcquiredAt: w.AcquiredAt.Time, EndedAt: w.EndedAt.Time, End: w.End, Late: w.Late,
	}
}

// MarshalJSON writes the step as the HTTP API shows it (U42).
func (s StepRecord) MarshalJSON() ([]byte, error) { return wire.Marshal(s.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *StepRecord) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Step](text)
	*s = stepFrom(*w)
	return err
}

func (s StepRecord) wire() wire.Step {
	return wire.Step{
		Name: s.Name, RunIndex: s.RunIndex, AttemptIndex: s.AttemptIndex, LeaseEpoch: s.LeaseEpoch, CreatedAt: wireTime(s.CreatedAt),
		ResultShown: wire.ShowResult(s.Result.wire(len(s.Result.Data)), s.Result.encoding()),
	}
}

func stepFrom(w wire.Step) StepRecord {
	return StepRecord{
		Name: w.Name, RunIndex: w.RunIndex, AttemptIndex: w.AttemptIndex, LeaseEpoch: w.LeaseEpoch, CreatedAt: w.CreatedAt.Time,
		Result: payloadFrom(w.ResultShown.Payload()),
	}
}
