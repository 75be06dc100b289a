package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// timer is a kind of timer of an execution: when it is due, absent while it is not armed, and its action. from returns the moment from which it was
// measured; nil if its due time was, or may have been, named by a caller.
type timer struct {
	name string
	due  func(x *Execution) base.Time
	fire func(x *Execution, fx *Effects)
	from func(x *Execution) base.Time
}

// timers lists every kind in the order in which those due at the same moment act (L18). Pending waitpoints come last: they affect only senders of
// signals.
func timers() [10]timer {
	return [...]timer{
		{"deadline", (*Execution).deadlineDue, (*Execution).expire, nil},
		{"attempt timeout", (*Execution).attemptTimeoutDue, (*Execution).timeOut, (*Execution).sinceLease},
		{"suspension timeout", (*Execution).suspensionDue, (*Execution).timeOutSuspension, nil},
		{"children timeout", (*Execution).childrenDue, (*Execution).timeOutChildren, nil},
		{"lease lapse", (*Execution).lapseDue, (*Execution).lapse, (*Execution).sinceRenewal},
		{"wall_ms hold", (*Execution).wallDue, (*Execution).endWall, nil},
		{"grant expiry", (*Execution).grantDue, (*Execution).expireGrant, (*Execution).sinceStatus},
		{"delay", (*Execution).delayDue, (*Execution).endDelay, (*Execution).sinceDelay},
		{"admission retry", (*Execution).retryDue, (*Execution).retryAdmission, nil},
		{"waitpoint expiry", (*Execution).waitpointDue, (*Execution).expireWaitpoints, nil},
	}
}

// arm sets WakeAt to the earliest of the armed timers (L19).
func (x *Execution) arm() {
	x.WakeAt = 0
	for _, t := range timers() {
		x.WakeAt = base.Earliest(x.WakeAt, t.due(x))
	}
}

func (x *Execution) deadlineDue() base.Time {
	if x.Status.Terminal() {
		return 0
	}
	return x.DeadlineAt
}

func (x *Execution) attemptTimeoutDue() base.Time {
	if x.Status != Running {
		return 0
	}
	return x.AttemptDeadline
}

// lapseDue returns the moment from which the lease is neither live nor in grace (L32).
func (x *Execution) lapseDue() base.Time {
	if x.Status != Running {
		return 0
	}
	return x.Lease.ExpiresAt.Add(x.Policy.LeaseGraceMS)
}

func (x *Execution) grantDue() base.Time {
	if x.Status != Granted {
		return 0
	}
	return x.Grant.ExpiresAt
}

func (x *Execution) delayDue() base.Time {
	if x.Status != Delayed {
		return 0
	}
	return x.DelayUntil
}

// expire ends x at its deadline, in any status (L102).
func (x *Execution) expire(fx *Effects) {
	x.end(fx, ending{status: Expired, reason: ExecutionDeadline, attempt: EndedFailure, lease: EndDeadline})
}

// timeOut fails an attempt that has used up its time, on behalf of the engine (L101).
func (x *Execution) timeOut(fx *Effects) {
	x.failAttempt(fx, failing{
		failure: &Failure{Class: classTimeout, Category: classTimeout, Message: "the attempt ran out of time", At: fx.Now},
		lease:   EndAttemptTimeout,
	})
	x.failedByEngine(fx)
}

// lapse ends a lease that was not renewed (L103).
func (x *Execution) lapse(fx *Effects) { x.loseLease(fx, "") }

// LapseNow ends the lease of a worker that was marked dead, as a lapse without grace (S52). It reports whether there was one.
func (x *Execution) LapseNow(fx *Effects) bool {
	if x.Status != Running {
		return false
	}
	x.loseLease(fx, causeWorkerDead)
	return true
}

// loseLease counts a lost lease against the cap and sends x back to the queue for a takeover, or ends it (L103). cause is given if it is not the
// lapse itself.
func (x *Execution) loseLease(fx *Effects, cause string) {
	if x.ReclaimCount >= x.Policy.MaxReclaims {
		x.end(fx, ending{
			status: Failed, reason: ReclaimsExhausted, attempt: EndedFailure, lease: EndExpired,
			failure: &Failure{Class: classInfraCrash, Category: "lease_lost", Message: "the worker lost its lease too often", At: fx.Now},
		})
		x.failedByEngine(fx)
		return
	}
	lost := x.leave(fx, exit{end: EndExpired, state: AttemptInterrupted, interruption: InterruptedLeaseExpired})
	x.ReclaimCount++
	x.Next = NextReclaim
	if cause != "" {
		x.ReplayLineage = &Lineage{PreviousIndex: x.Attempt.Index, Cause: cause}
	}
	x.gate(fx.Now)
	x.emitLeaseExpired(fx, lost, cause)
}

// expireGrant ends a grant that was not used in time (L105).
func (x *Execution) expireGrant(fx *Effects) { x.endGrant(fx, "expired") }

// endDelay runs the gate when the delay is over (L106). The reason of the delay is the cause in execution.ready.
func (x *Execution) endDelay(fx *Effects) {
	cause := "delay"
	switch x.DelayReason {
	case WaitingForRetryBackoff:
		cause = "retry"
	case WaitingForResumeDelay:
		cause = "resume_delay"
	}
	x.pass(fx, cause)
}

// Settle applies the due timers in order of their due times until none is due (L18). It precedes every command, and it is all that the sweep does.
// It reports whether the record changed, even if only its WakeAt did. It first raises fx.Now so that the times of x never run backwards (L5).
//
// Each timer acts as of its due time, so that no answer and no record depends on how late it was noticed (LI13): a backoff counts from the timeout,
// not from the sweep. Events carry the time of the transaction that writes them.
func (x *Execution) Settle(fx *Effects) (changed bool) {
	fx.Now = base.Later(fx.Now, x.Latest())
	if !x.WakeAt.Reached(fx.Now) {
		return false
	}
	now, actor, request, before := fx.Now, fx.Actor, fx.RequestID, len(fx.Events)
	fx.Actor, fx.RequestID, fx.settling = EngineActor(), "", now
	for x.wakeOnce(fx, now) {
	}
	fx.Now, fx.Actor, fx.RequestID = now, actor, request
	for i := range fx.Events[before:] {
		fx.Events[before+i].At = now
	}
	x.arm()
	return true
}

// wakeOnce fires the earliest timer if it is due at now; ties are decided by the order of the table.
func (x *Execution) wakeOnce(fx *Effects, now base.Time) bool {
	var first timer
	var due base.Time
	for _, t := range timers() {
		if at := t.due(x); at != 0 && (due == 0 || at < due) {
			first, due = t, at
		}
	}
	if !due.Reached(now) {
		return false
	}
	fx.Now = base.Later(due, x.Latest())
	first.fire(x, fx)
	return true
}

// Latest returns the newest moment in the record: no command on it acts earlier (L5). A renewal is not a mutation (L9), but its time is included.
func (x *Execution) Latest() base.Time {
	if x.Lease != nil {
		return base.Later(x.LastMutationAt, x.Lease.RenewedAt)
	}
	return x.LastMutationAt
}
