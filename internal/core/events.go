package core

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// emit appends an event about x: the envelope from the record, the data as given (E24).
func (x *Execution) emit(fx *Effects, kind string, o *eventdata.Builder) {
	event := x.envelope(fx, kind, o.Done())
	if x.Lease != nil {
		event.InstanceID = x.Lease.InstanceID
	}
	fx.Events = append(fx.Events, event)
}

// emitFor is emit for an event about a worker that holds no lease of x now.
func (x *Execution) emitFor(fx *Effects, instanceID, kind string, o *eventdata.Builder) {
	event := x.envelope(fx, kind, o.Done())
	event.InstanceID = instanceID
	fx.Events = append(fx.Events, event)
}

func (x *Execution) envelope(fx *Effects, kind string, data eventdata.Data) Event {
	index := -1
	if x.Attempt != nil {
		index = x.Attempt.Index
	}
	return Event{
		Kind: kind, At: fx.Now, Namespace: x.Class.Namespace, ExecutionID: x.ID, Class: x.Class, FlowID: x.FlowID, RootFlowID: x.RootFlowID(),
		AttemptIndex: index, Tags: x.Tags, Actor: fx.Actor, RequestID: fx.RequestID, Data: data,
	}
}

// addExit adds the fields that every exit event carries (E27).
func addExit(b *eventdata.Builder, held heldLease) {
	b.Num(eventdata.FieldLeaseEpoch, held.epoch)
	b.Open(eventdata.FieldLease)
	b.UUID(eventdata.FieldLeaseID, held.leaseID)
	b.Str(eventdata.FieldWorkerID, held.workerID)
	b.Str(eventdata.FieldInstanceID, held.instanceID)
	b.Num(eventdata.FieldHeldMS, held.heldMS)
	b.Shut()
	if len(held.usage) > 0 {
		b.Raw(eventdata.FieldUsage, amountsText(held.usage))
	}
	b.FlagIf(eventdata.FieldLate, held.late)
}

func addPayload(b *eventdata.Builder, name eventdata.Field, p *Payload) {
	b.Open(name)
	b.Num(eventdata.FieldSize, int64(p.Size))
	b.Str(eventdata.FieldContentType, p.ContentType)
	b.Shut()
}

func (x *Execution) emitSubmitted(fx *Effects) {
	var o eventdata.Builder
	o.Str(eventdata.FieldStatus, x.Status.String())
	o.Str(eventdata.FieldReason, x.Reason.String())
	o.Num(eventdata.FieldPriority, int64(x.Priority))
	o.Moment(eventdata.FieldDelayUntil, x.DelayUntil)
	o.Moment(eventdata.FieldDeadlineAt, x.DeadlineAt)
	if x.Member != nil {
		o.StrIf(eventdata.FieldName, x.Member.Name)
	}
	o.IDIf(eventdata.FieldParentID, x.ParentID)
	addPayload(&o, eventdata.FieldInput, &x.Input)
	x.emit(fx, "execution.submitted", &o)
}

func (x *Execution) emitReady(fx *Effects, cause string) {
	var o eventdata.Builder
	o.Str(eventdata.FieldCause, cause)
	x.emit(fx, "execution.ready", &o)
}

func (x *Execution) emitDelayed(fx *Effects) {
	var o eventdata.Builder
	o.Str(eventdata.FieldReason, x.Reason.String())
	o.Moment(eventdata.FieldDelayUntil, x.DelayUntil)
	x.emit(fx, "execution.delayed", &o)
}

func (x *Execution) emitBlocked(fx *Effects) {
	var o eventdata.Builder
	o.Str(eventdata.FieldReason, x.Reason.String())
	o.StrIf(eventdata.FieldBlockedOn, x.BlockedOn)
	o.Raw(eventdata.FieldBlockingDetail, x.BlockingDetail)
	x.emit(fx, "execution.blocked", &o)
}

func (x *Execution) emitGrantIssued(fx *Effects) {
	var o eventdata.Builder
	o.Str(eventdata.FieldWorkerID, x.Grant.WorkerID)
	o.Str(eventdata.FieldInstanceID, x.Grant.InstanceID)
	o.Moment(eventdata.FieldExpiresAt, x.Grant.ExpiresAt)
	x.emitFor(fx, x.Grant.InstanceID, "grant.issued", &o)
}

func (x *Execution) emitGrantEnded(fx *Effects, grant *Grant, cause string) {
	var o eventdata.Builder
	o.Str(eventdata.FieldCause, cause)
	x.emitFor(fx, grant.InstanceID, "grant.ended", &o)
}

func (x *Execution) emitAcquired(fx *Effects, how string, forced bool) {
	var o eventdata.Builder
	o.Num(eventdata.FieldLeaseEpoch, x.LeaseEpoch)
	o.UUID(eventdata.FieldLeaseID, x.Lease.ID)
	o.Str(eventdata.FieldWorkerID, x.Lease.WorkerID)
	o.Moment(eventdata.FieldExpiresAt, x.Lease.ExpiresAt)
	o.UUID(eventdata.FieldAttemptID, x.Attempt.ID)
	o.Num(eventdata.FieldAttemptIndex, int64(x.Attempt.Index))
	o.Str(eventdata.FieldAttemptType, x.Attempt.Type.String())
	o.Str(eventdata.FieldHow, how)
	o.FlagIf(eventdata.FieldForced, forced)
	x.emit(fx, "lease.acquired", &o)
}

func (x *Execution) emitReleased(fx *Effects, held heldLease, by, reason string) {
	var o eventdata.Builder
	o.Str(eventdata.FieldBy, by)
	o.Moment(eventdata.FieldDelayUntil, x.DelayUntil)
	o.StrIf(eventdata.FieldReason, reason)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "lease.released", &o)
}

func (x *Execution) emitLeaseExpired(fx *Effects, held heldLease, cause string) {
	var o eventdata.Builder
	o.Num(eventdata.FieldReclaimCount, int64(x.ReclaimCount))
	o.StrIf(eventdata.FieldCause, cause)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "lease.expired", &o)
}

func (x *Execution) emitLeaseRevoked(fx *Effects, held heldLease, c *RevokeCommand) {
	var o eventdata.Builder
	o.Str(eventdata.FieldBy, c.By)
	o.StrIf(eventdata.FieldReason, c.Reason)
	o.StrIf(eventdata.FieldHandTo, c.HandTo)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "lease.revoked", &o)
}

// emitRetrying emits the end of an attempt that will be followed by another.
func (x *Execution) emitRetrying(fx *Effects, held heldLease, retryAt base.Time) {
	var o eventdata.Builder
	o.Str(eventdata.FieldState, x.Attempt.State.String())
	o.Str(eventdata.FieldClass, x.Failure.Class)
	o.Str(eventdata.FieldCategory, x.Failure.Category)
	o.Str(eventdata.FieldMessage, base.CutText(x.Failure.Message, 1024))
	o.Num(eventdata.FieldRetryCount, int64(x.RetryCount))
	o.Moment(eventdata.FieldRetryAt, retryAt)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "attempt.ended", &o)
}

// emitTakenOver emits the end of the attempt that a takeover ends. The end of its lease was emitted before, so the event names no lease.
func (x *Execution) emitTakenOver(fx *Effects) {
	var o eventdata.Builder
	o.Str(eventdata.FieldState, x.Attempt.State.String())
	o.Num(eventdata.FieldRetryCount, int64(x.RetryCount))
	x.emitFor(fx, x.Attempt.InstanceID, "attempt.ended", &o)
}

// emitCompleted emits the end of x (L145), and with it the end of the lease if one was held.
func (x *Execution) emitCompleted(fx *Effects, held *heldLease, edges []string) {
	var o eventdata.Builder
	o.Str(eventdata.FieldOutcome, x.Status.Outcome())
	o.Str(eventdata.FieldStatus, x.Status.String())
	o.Str(eventdata.FieldReason, x.Reason.String())
	if x.Status == Failed && x.Failure != nil {
		o.Open(eventdata.FieldFailure)
		o.Str(eventdata.FieldClass, x.Failure.Class)
		o.Str(eventdata.FieldCategory, x.Failure.Category)
		o.Str(eventdata.FieldMessage, x.Failure.Message)
		o.Shut()
	}
	if c := x.Cancellation; c != nil {
		o.Open(eventdata.FieldCancellation)
		o.Str(eventdata.FieldSource, c.Source)
		o.Str(eventdata.FieldBy, c.By)
		o.StrIf(eventdata.FieldReason, c.Reason)
		o.Shut()
	}
	if len(edges) > 0 {
		o.Strs(eventdata.FieldEdges, edges)
	}
	if x.Result != nil {
		addPayload(&o, eventdata.FieldResult, x.Result)
	}
	o.Open(eventdata.FieldTotals)
	o.Num(eventdata.FieldAttempts, int64(x.TotalAttempts))
	o.Num(eventdata.FieldRetries, int64(x.RetryCount))
	o.Num(eventdata.FieldReclaims, int64(x.ReclaimCount))
	if len(x.Usage) > 0 { // else it is the time of one attempt, which the events of its leases contain
		o.Raw(eventdata.FieldUsage, amountsText(x.Meters()))
	}
	o.Shut()
	if held == nil {
		x.emit(fx, "execution.completed", &o)
		return
	}
	addExit(&o, *held)
	x.emitFor(fx, held.instanceID, "execution.completed", &o)
}

func (x *Execution) emitReplayed(fx *Effects, from Status, reason string, reopened []string, cascade string) {
	var o eventdata.Builder
	o.Str(eventdata.FieldFromStatus, from.String())
	o.Num(eventdata.FieldReplayCount, int64(x.ReplayCount))
	o.Strs(eventdata.FieldReopened, reopened)
	o.Str(eventdata.FieldCascade, cascade)
	o.StrIf(eventdata.FieldReason, reason)
	x.emit(fx, "execution.replayed", &o)
}

// emitReason emits an operator command whose event data is the given reason (E29).
func (x *Execution) emitReason(fx *Effects, kind, reason string) {
	var o eventdata.Builder
	o.StrIf(eventdata.FieldReason, reason)
	x.emit(fx, kind, &o)
}

func (x *Execution) emitPriorityChanged(fx *Effects, old int) {
	var o eventdata.Builder
	o.Num(eventdata.FieldOld, int64(old))
	o.Num(eventdata.FieldNew, int64(x.Priority))
	x.emit(fx, "execution.priority_changed", &o)
}

func (x *Execution) emitTagged(fx *Effects, keys []string) {
	var o eventdata.Builder
	o.Strs(eventdata.FieldKeys, keys)
	x.emit(fx, "execution.tagged", &o)
}

func (x *Execution) emitRetained(fx *Effects, kind string, r *Retain) {
	var o eventdata.Builder
	o.Moment(eventdata.FieldUntil, r.Until)
	o.StrIf(eventdata.FieldReason, r.Reason)
	x.emit(fx, kind, &o)
}

// KeyTime is the time of changes of the key set.
func (fx *Effects) KeyTime() base.Time { return fx.Now }

// EmitKey emits a change of the key set (W25), which belongs to no namespace.
func (fx *Effects) EmitKey(c keyring.KeyChange) {
	var o eventdata.Builder
	o.Str(eventdata.FieldKid, c.Kid)
	o.StrIf(eventdata.FieldPreviousKid, c.PreviousKid)
	o.Moment(eventdata.FieldVerifyUntil, c.VerifyUntil)
	fx.Events = append(fx.Events, Event{
		Kind: c.Kind, At: fx.Now, AttemptIndex: -1, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.Done(),
	})
}
