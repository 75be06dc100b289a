package core

import "encoding/json"

// emit appends an event about x: the envelope from the record, the data as given (E24).
func (x *Execution) emit(fx *Effects, kind string, o *jsonObject) {
	event := x.envelope(fx, kind, o.done())
	if x.Lease != nil {
		event.InstanceID = x.Lease.InstanceID
	}
	fx.Events = append(fx.Events, event)
}

// emitFor is emit for an event that concerns a worker who holds no lease of x now.
func (x *Execution) emitFor(fx *Effects, instanceID, kind string, o *jsonObject) {
	event := x.envelope(fx, kind, o.done())
	event.InstanceID = instanceID
	fx.Events = append(fx.Events, event)
}

func (x *Execution) envelope(fx *Effects, kind string, data json.RawMessage) Event {
	index := -1
	if x.Attempt != nil {
		index = x.Attempt.Index
	}
	return Event{
		Kind: kind, At: fx.Now, Namespace: x.Class.Namespace, ExecutionID: x.ID, Class: x.Class, FlowID: x.FlowID,
		AttemptIndex: index, Tags: x.Tags, Actor: fx.Actor, RequestID: fx.RequestID, Data: data,
	}
}

// exitFields writes what every exit event carries (E27).
func (o *jsonObject) exitFields(held heldLease) {
	o.num("lease_epoch", held.epoch)
	o.open("lease")
	o.uuid("lease_id", held.leaseID)
	o.str("worker_id", held.workerID)
	o.str("worker_instance_id", held.instanceID)
	o.num("held_ms", held.heldMS)
	o.shut()
	o.flagIf("late", held.late)
}

func (o *jsonObject) payload(name string, p *Payload) {
	o.open(name)
	o.num("size", int64(p.Size))
	o.str("content_type", p.ContentType)
	o.shut()
}

func (x *Execution) emitSubmitted(fx *Effects) {
	o := newObject()
	o.str("status", x.Status.String())
	o.str("reason", x.Reason.String())
	o.num("priority", int64(x.Priority))
	o.moment("delay_until", x.DelayUntil)
	o.moment("deadline_at", x.DeadlineAt)
	if !x.ParentID.IsZero() {
		o.str("parent_id", x.ParentID.String())
	}
	o.payload("input", &x.Input)
	x.emit(fx, "execution.submitted", o)
}

func (x *Execution) emitReady(fx *Effects, cause string) {
	o := newObject()
	o.str("cause", cause)
	x.emit(fx, "execution.ready", o)
}

func (x *Execution) emitDelayed(fx *Effects) {
	o := newObject()
	o.str("reason", x.Reason.String())
	o.moment("delay_until", x.DelayUntil)
	x.emit(fx, "execution.delayed", o)
}

func (x *Execution) emitBlocked(fx *Effects) {
	o := newObject()
	o.str("reason", x.Reason.String())
	o.strIf("blocked_on", x.BlockedOn)
	o.raw("blocking_detail", x.BlockingDetail)
	x.emit(fx, "execution.blocked", o)
}

func (x *Execution) emitGrantEnded(fx *Effects, grant *Grant, cause string) {
	o := newObject()
	o.str("cause", cause)
	x.emitFor(fx, grant.InstanceID, "grant.ended", o)
}

func (x *Execution) emitAcquired(fx *Effects, how string, forced bool) {
	o := newObject()
	o.num("lease_epoch", x.LeaseEpoch)
	o.uuid("lease_id", x.Lease.ID)
	o.str("worker_id", x.Lease.WorkerID)
	o.moment("expires_at", x.Lease.ExpiresAt)
	o.uuid("attempt_id", x.Attempt.ID)
	o.num("attempt_index", int64(x.Attempt.Index))
	o.str("attempt_type", x.Attempt.Type.String())
	o.str("how", how)
	o.flagIf("forced", forced)
	x.emit(fx, "lease.acquired", o)
}

func (x *Execution) emitReleased(fx *Effects, held heldLease, by, reason string) {
	o := newObject()
	o.str("by", by)
	o.moment("delay_until", x.DelayUntil)
	o.strIf("reason", reason)
	o.exitFields(held)
	x.emitFor(fx, held.instanceID, "lease.released", o)
}

func (x *Execution) emitLeaseExpired(fx *Effects, held heldLease, cause string) {
	o := newObject()
	o.num("reclaim_count", int64(x.ReclaimCount))
	o.strIf("cause", cause)
	o.exitFields(held)
	x.emitFor(fx, held.instanceID, "lease.expired", o)
}

func (x *Execution) emitLeaseRevoked(fx *Effects, held heldLease, by, reason string) {
	o := newObject()
	o.str("by", by)
	o.strIf("reason", reason)
	o.exitFields(held)
	x.emitFor(fx, held.instanceID, "lease.revoked", o)
}

// emitRetrying tells the end of an attempt that will be followed by another.
func (x *Execution) emitRetrying(fx *Effects, held heldLease, retryAt Time) {
	o := newObject()
	o.str("state", x.Attempt.State.String())
	o.str("class", x.Failure.Class)
	o.str("category", x.Failure.Category)
	o.str("message", cutText(x.Failure.Message, 1024))
	o.num("retry_count", int64(x.RetryCount))
	o.moment("retry_at", retryAt)
	o.exitFields(held)
	x.emitFor(fx, held.instanceID, "attempt.ended", o)
}

// emitTakenOver tells the end of the attempt that a takeover ends. Its lease was told to be over before, so it names none.
func (x *Execution) emitTakenOver(fx *Effects) {
	o := newObject()
	o.str("state", x.Attempt.State.String())
	o.num("retry_count", int64(x.RetryCount))
	x.emitFor(fx, x.Attempt.InstanceID, "attempt.ended", o)
}

// emitCompleted tells the end of x (L145), and with it the end of the lease if one was held.
func (x *Execution) emitCompleted(fx *Effects, held *heldLease, edges []string) {
	o := newObject()
	o.str("outcome", terminalOutcome(x.Status))
	o.str("status", x.Status.String())
	o.str("reason", x.Reason.String())
	if x.Status == Failed && x.Failure != nil {
		o.open("failure")
		o.str("class", x.Failure.Class)
		o.str("category", x.Failure.Category)
		o.str("message", x.Failure.Message)
		o.shut()
	}
	if c := x.Cancellation; c != nil {
		o.open("cancellation")
		o.str("source", c.Source)
		o.str("by", c.By)
		o.strIf("reason", c.Reason)
		o.shut()
	}
	if len(edges) > 0 {
		o.strs("edges", edges)
	}
	if x.Result != nil {
		o.payload("result", x.Result)
	}
	o.open("totals")
	o.num("attempts", int64(x.TotalAttempts))
	o.num("retries", int64(x.RetryCount))
	o.num("reclaims", int64(x.ReclaimCount))
	o.shut()
	if held == nil {
		x.emit(fx, "execution.completed", o)
		return
	}
	o.exitFields(*held)
	x.emitFor(fx, held.instanceID, "execution.completed", o)
}

func (x *Execution) emitReplayed(fx *Effects, from Status, reason string) {
	o := newObject()
	o.str("from_status", from.String())
	o.num("replay_count", int64(x.ReplayCount))
	o.strs("reopened", nil)
	o.str("cascade", "none")
	o.strIf("reason", reason)
	x.emit(fx, "execution.replayed", o)
}

// emitReason tells an operator's deed whose data is the reason given (E29).
func (x *Execution) emitReason(fx *Effects, kind, reason string) {
	o := newObject()
	o.strIf("reason", reason)
	x.emit(fx, kind, o)
}

func (x *Execution) emitPriorityChanged(fx *Effects, old int) {
	o := newObject()
	o.num("old", int64(old))
	o.num("new", int64(x.Priority))
	x.emit(fx, "execution.priority_changed", o)
}

func (x *Execution) emitTagged(fx *Effects, keys []string) {
	o := newObject()
	o.strs("keys", keys)
	x.emit(fx, "execution.tagged", o)
}

func (x *Execution) emitRetained(fx *Effects, kind string, r *Retain) {
	o := newObject()
	o.moment("until", r.Until)
	o.strIf("reason", r.Reason)
	x.emit(fx, kind, o)
}
