package core

// ending states how an execution ends.
type ending struct {
	status       Status
	reason       Reason
	attempt      AttemptState  // final state of the open attempt (L30)
	lease        LeaseEnd      // how the lease ends, if one is held or a late command replaces its end
	lapse        *LeaseRecord  // of a late command (L36)
	failure      *Failure      // recorded on execution and open attempt
	cancellation *Cancellation // recorded on the execution
	result       *Payload      // recorded on the execution
	edges        []string      // names of the upstreams that made it impossible (skipped)
	timedOut     bool          // by the timeout of its suspension (W76)
	denied       *Signal       // the signal that denied more of a budget (B31)
}

// end is the only way into a terminal status (L16). It emits exactly one execution.completed.
func (x *Execution) end(fx *Effects, e ending) {
	held := x.endAttempt(fx, e)
	x.endWaits(fx, &e)
	x.dropGrant(fx)
	x.Holds = nil
	x.Held, x.Dependency = nil, ReasonNone
	x.DelayUntil, x.DelayReason = 0, ReasonNone
	x.clearBlock()
	x.AttemptRemaining, x.ReplayLineage = 0, nil
	x.Next = NextNone
	if e.failure != nil {
		x.Failure = e.failure
	}
	x.Cancellation = e.cancellation
	if e.result != nil {
		x.Result, x.ResultEpoch = e.result, x.LeaseEpoch
	}
	x.CompletedAt = fx.Now
	x.become(fx.Now, e.status, e.reason)
	x.emitCompleted(fx, held, e.edges)
}

// endAttempt leaves running or, for an attempt that waits, writes the final state where its last lease is recorded (L30).
func (x *Execution) endAttempt(fx *Effects, e ending) *heldLease {
	if x.Lease != nil || e.lapse != nil {
		held := x.leave(fx, exit{end: e.lease, state: e.attempt, failure: e.failure, result: e.result, lapse: e.lapse})
		return &held
	}
	x.closeAttempt(fx, e.attempt, e.failure)
	return nil
}

// closeAttempt sets the final state of an attempt that holds no lease, unless it has one.
func (x *Execution) closeAttempt(fx *Effects, state AttemptState, failure *Failure) {
	a := x.Attempt
	if a == nil || a.State.Final() {
		return
	}
	a.State, a.EndedAt, a.Failure = state, fx.Now, failure
	fx.Patches = append(fx.Patches, AttemptPatch{
		ExecutionID: x.ID, Epoch: a.LastEpoch, State: state, EndedAt: fx.Now, Failure: failure,
	})
}
