package core

// emit appends an event about x: the envelope from the record, the data as given (E24).
func (x *Execution) emit(fx *Effects, kind string, o *dataBuilder) {
	event := x.envelope(fx, kind, o.done())
	if x.Lease != nil {
		event.InstanceID = x.Lease.InstanceID
	}
	fx.Events = append(fx.Events, event)
}

// emitFor is emit for an event about a worker that holds no lease of x now.
func (x *Execution) emitFor(fx *Effects, instanceID, kind string, o *dataBuilder) {
	event := x.envelope(fx, kind, o.done())
	event.InstanceID = instanceID
	fx.Events = append(fx.Events, event)
}

func (x *Execution) envelope(fx *Effects, kind string, data EventData) Event {
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
func addExit(b *dataBuilder, held heldLease) {
	b.num(fieldLeaseEpoch, held.epoch)
	b.open(fieldLease)
	b.uuid(fieldLeaseID, held.leaseID)
	b.str(fieldWorkerID, held.workerID)
	b.str(fieldInstanceID, held.instanceID)
	b.num(fieldHeldMS, held.heldMS)
	b.shut()
	b.flagIf(fieldLate, held.late)
}

func addPayload(b *dataBuilder, name field, p *Payload) {
	b.open(name)
	b.num(fieldSize, int64(p.Size))
	b.str(fieldContentType, p.ContentType)
	b.shut()
}

func (x *Execution) emitSubmitted(fx *Effects) {
	var o dataBuilder
	o.str(fieldStatus, x.Status.String())
	o.str(fieldReason, x.Reason.String())
	o.num(fieldPriority, int64(x.Priority))
	o.moment(fieldDelayUntil, x.DelayUntil)
	o.moment(fieldDeadlineAt, x.DeadlineAt)
	o.idIf(fieldParentID, x.ParentID)
	addPayload(&o, fieldInput, &x.Input)
	x.emit(fx, "execution.submitted", &o)
}

func (x *Execution) emitReady(fx *Effects, cause string) {
	var o dataBuilder
	o.str(fieldCause, cause)
	x.emit(fx, "execution.ready", &o)
}

func (x *Execution) emitDelayed(fx *Effects) {
	var o dataBuilder
	o.str(fieldReason, x.Reason.String())
	o.moment(fieldDelayUntil, x.DelayUntil)
	x.emit(fx, "execution.delayed", &o)
}

func (x *Execution) emitBlocked(fx *Effects) {
	var o dataBuilder
	o.str(fieldReason, x.Reason.String())
	o.strIf(fieldBlockedOn, x.BlockedOn)
	o.raw(fieldBlockingDetail, x.BlockingDetail)
	x.emit(fx, "execution.blocked", &o)
}

func (x *Execution) emitGrantIssued(fx *Effects) {
	var o dataBuilder
	o.str(fieldWorkerID, x.Grant.WorkerID)
	o.str(fieldInstanceID, x.Grant.InstanceID)
	o.moment(fieldExpiresAt, x.Grant.ExpiresAt)
	x.emitFor(fx, x.Grant.InstanceID, "grant.issued", &o)
}

func (x *Execution) emitGrantEnded(fx *Effects, grant *Grant, cause string) {
	var o dataBuilder
	o.str(fieldCause, cause)
	x.emitFor(fx, grant.InstanceID, "grant.ended", &o)
}

func (x *Execution) emitAcquired(fx *Effects, how string, forced bool) {
	var o dataBuilder
	o.num(fieldLeaseEpoch, x.LeaseEpoch)
	o.uuid(fieldLeaseID, x.Lease.ID)
	o.str(fieldWorkerID, x.Lease.WorkerID)
	o.moment(fieldExpiresAt, x.Lease.ExpiresAt)
	o.uuid(fieldAttemptID, x.Attempt.ID)
	o.num(fieldAttemptIndex, int64(x.Attempt.Index))
	o.str(fieldAttemptType, x.Attempt.Type.String())
	o.str(fieldHow, how)
	o.flagIf(fieldForced, forced)
	x.emit(fx, "lease.acquired", &o)
}

func (x *Execution) emitReleased(fx *Effects, held heldLease, by, reason string) {
	var o dataBuilder
	o.str(fieldBy, by)
	o.moment(fieldDelayUntil, x.DelayUntil)
	o.strIf(fieldReason, reason)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "lease.released", &o)
}

func (x *Execution) emitLeaseExpired(fx *Effects, held heldLease, cause string) {
	var o dataBuilder
	o.num(fieldReclaimCount, int64(x.ReclaimCount))
	o.strIf(fieldCause, cause)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "lease.expired", &o)
}

func (x *Execution) emitLeaseRevoked(fx *Effects, held heldLease, by, reason string) {
	var o dataBuilder
	o.str(fieldBy, by)
	o.strIf(fieldReason, reason)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "lease.revoked", &o)
}

// emitRetrying emits the end of an attempt that will be followed by another.
func (x *Execution) emitRetrying(fx *Effects, held heldLease, retryAt Time) {
	var o dataBuilder
	o.str(fieldState, x.Attempt.State.String())
	o.str(fieldClass, x.Failure.Class)
	o.str(fieldCategory, x.Failure.Category)
	o.str(fieldMessage, cutText(x.Failure.Message, 1024))
	o.num(fieldRetryCount, int64(x.RetryCount))
	o.moment(fieldRetryAt, retryAt)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "attempt.ended", &o)
}

// emitTakenOver emits the end of the attempt that a takeover ends. The end of its lease was emitted before, so the event names no lease.
func (x *Execution) emitTakenOver(fx *Effects) {
	var o dataBuilder
	o.str(fieldState, x.Attempt.State.String())
	o.num(fieldRetryCount, int64(x.RetryCount))
	x.emitFor(fx, x.Attempt.InstanceID, "attempt.ended", &o)
}

// emitCompleted emits the end of x (L145), and with it the end of the lease if one was held.
func (x *Execution) emitCompleted(fx *Effects, held *heldLease, edges []string) {
	var o dataBuilder
	o.str(fieldOutcome, terminalOutcome(x.Status))
	o.str(fieldStatus, x.Status.String())
	o.str(fieldReason, x.Reason.String())
	if x.Status == Failed && x.Failure != nil {
		o.open(fieldFailure)
		o.str(fieldClass, x.Failure.Class)
		o.str(fieldCategory, x.Failure.Category)
		o.str(fieldMessage, x.Failure.Message)
		o.shut()
	}
	if c := x.Cancellation; c != nil {
		o.open(fieldCancellation)
		o.str(fieldSource, c.Source)
		o.str(fieldBy, c.By)
		o.strIf(fieldReason, c.Reason)
		o.shut()
	}
	if len(edges) > 0 {
		o.strs(fieldEdges, edges)
	}
	if x.Result != nil {
		addPayload(&o, fieldResult, x.Result)
	}
	o.open(fieldTotals)
	o.num(fieldAttempts, int64(x.TotalAttempts))
	o.num(fieldRetries, int64(x.RetryCount))
	o.num(fieldReclaims, int64(x.ReclaimCount))
	if len(x.Usage) > 0 { // else it is the time of one attempt, which the events of its leases contain
		o.raw(fieldUsage, amountsText(x.Meters()))
	}
	o.shut()
	if held == nil {
		x.emit(fx, "execution.completed", &o)
		return
	}
	addExit(&o, *held)
	x.emitFor(fx, held.instanceID, "execution.completed", &o)
}

func (x *Execution) emitReplayed(fx *Effects, from Status, reason string, reopened []string, cascade string) {
	var o dataBuilder
	o.str(fieldFromStatus, from.String())
	o.num(fieldReplayCount, int64(x.ReplayCount))
	o.strs(fieldReopened, reopened)
	o.str(fieldCascade, cascade)
	o.strIf(fieldReason, reason)
	x.emit(fx, "execution.replayed", &o)
}

// emitReason emits an operator command whose event data is the given reason (E29).
func (x *Execution) emitReason(fx *Effects, kind, reason string) {
	var o dataBuilder
	o.strIf(fieldReason, reason)
	x.emit(fx, kind, &o)
}

func (x *Execution) emitPriorityChanged(fx *Effects, old int) {
	var o dataBuilder
	o.num(fieldOld, int64(old))
	o.num(fieldNew, int64(x.Priority))
	x.emit(fx, "execution.priority_changed", &o)
}

func (x *Execution) emitTagged(fx *Effects, keys []string) {
	var o dataBuilder
	o.strs(fieldKeys, keys)
	x.emit(fx, "execution.tagged", &o)
}

func (x *Execution) emitRetained(fx *Effects, kind string, r *Retain) {
	var o dataBuilder
	o.moment(fieldUntil, r.Until)
	o.strIf(fieldReason, r.Reason)
	x.emit(fx, kind, &o)
}

// KeyTime is the time of changes of the key set.
func (fx *Effects) KeyTime() Time { return fx.Now }

// EmitKey emits a change of the key set (W25), which belongs to no namespace.
func (fx *Effects) EmitKey(c KeyChange) {
	var o dataBuilder
	o.str(fieldKid, c.Kid)
	o.strIf(fieldPreviousKid, c.PreviousKid)
	o.moment(fieldVerifyUntil, c.VerifyUntil)
	fx.Events = append(fx.Events, Event{
		Kind: c.Kind, At: fx.Now, AttemptIndex: -1, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.done(),
	})
}
