package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Acquisition holds the arguments of an acquisition (S20). AttemptID is used only if a new attempt is made.
type Acquisition struct {
	LeaseID    base.UUID
	AttemptID  base.UUID
	WorkerID   string
	InstanceID string
	TTL        base.Millis
	RequestKey string
	GrantHash  []byte // of the grant that is consumed
	Forced     bool   // an operator skipped lane state and admission (S35)
}

// Acquired reports how an execution was acquired: fresh, resumed or reclaimed, and, if resumed, what it had waited for.
type Acquired struct {
	How         string
	ResumedFrom Interruption
}

// The values of Acquired.How (S21).
const (
	howFresh     = "fresh"
	howResumed   = "resumed"
	howReclaimed = "reclaimed"
)

// causeWorkerDead is the lineage cause of a takeover from a worker that was marked dead. The other causes are the words of the interruption (L28).
const causeWorkerDead = "worker_dead"

// Acquire leases x to a worker (S20, L31). It is the only place where the epoch grows and attempts are made. The caller has checked that x may be
// taken and has admitted it.
func (x *Execution) Acquire(fx *Effects, a Acquisition) Acquired {
	now := fx.Now
	x.LeaseEpoch++
	got := x.takeAttempt(fx, a)
	x.Attempt.LastEpoch = x.LeaseEpoch
	x.Attempt.WorkerID, x.Attempt.InstanceID = a.WorkerID, a.InstanceID
	x.Lease = &Lease{
		ID: a.LeaseID, AttemptID: x.Attempt.ID, WorkerID: a.WorkerID, InstanceID: a.InstanceID,
		AcquiredAt: now, RenewedAt: now, TTL: a.TTL, ExpiresAt: now.Add(a.TTL),
		RequestKey: a.RequestKey, GrantHash: a.GrantHash,
	}
	x.LastLease, x.ReplayLineage = nil, nil
	x.Grant = nil
	x.clearBlock()
	x.keepRates()
	x.Next = NextNone
	x.startClock(now)
	x.startWall()
	if x.StartedAt == 0 {
		x.StartedAt = now
	}
	if x.RunStartedAt == 0 {
		x.RunStartedAt = now
	}
	x.become(now, Running, ReasonNone)
	x.emitAcquired(fx, got.How, a.Forced)
	return got
}

// takeAttempt continues the interrupted attempt or makes the next one, depending on `next` (L13).
func (x *Execution) takeAttempt(fx *Effects, a Acquisition) Acquired {
	switch x.Next {
	case NextResume:
		x.Attempt.State, x.Attempt.UsageBefore = AttemptStarted, x.Attempt.Usage
		return Acquired{How: howResumed, ResumedFrom: x.Attempt.Interruption}
	case NextReclaim:
		lineage := x.reclaimLineage()
		x.closeAttempt(fx, InterruptedReclaimed, nil)
		x.emitTakenOver(fx)
		x.newAttempt(fx.Now, a.AttemptID, AttemptReclaim, lineage)
		return Acquired{How: howReclaimed}
	case NextRetry:
		x.newAttempt(fx.Now, a.AttemptID, AttemptRetry, x.retryLineage())
	case NextReplay:
		x.newAttempt(fx.Now, a.AttemptID, AttemptReplay, x.ReplayLineage)
	default:
		x.newAttempt(fx.Now, a.AttemptID, AttemptInitial, nil)
	}
	return Acquired{How: howFresh}
}

// newAttempt makes the attempt with the next index (L27).
func (x *Execution) newAttempt(now base.Time, id base.UUID, kind AttemptType, lineage *Lineage) {
	if x.Attempt != nil && x.Attempt.RunningMS > 0 {
		x.Usage = withWall(x.Usage, x.Attempt.RunningMS) // the running time of the new attempt is kept in the attempt itself, see Meters
	}
	x.Attempt = &Attempt{
		ID: id, Index: x.TotalAttempts, Type: kind, State: AttemptStarted,
		StartedAt: now, FirstEpoch: x.LeaseEpoch, Lineage: lineage,
	}
	x.TotalAttempts++
	x.AttemptRemaining = 0
}

func (x *Execution) retryLineage() *Lineage {
	lineage := &Lineage{PreviousIndex: x.Attempt.Index}
	if f := x.Attempt.Failure; f != nil {
		lineage.Class, lineage.Category = f.Class, f.Category
	}
	return lineage
}

func (x *Execution) reclaimLineage() *Lineage {
	if x.ReplayLineage != nil {
		return x.ReplayLineage
	}
	return &Lineage{PreviousIndex: x.Attempt.Index, Cause: x.Attempt.Interruption.String()}
}

// startClock arms the attempt's timeout with what an interruption left of it, else with the full timeout (L101).
func (x *Execution) startClock(now base.Time) {
	if x.Policy.AttemptTimeoutMS == 0 {
		return
	}
	remaining := x.AttemptRemaining
	if remaining == 0 {
		remaining = x.Policy.AttemptTimeoutMS
	}
	x.AttemptDeadline, x.AttemptRemaining = now.Add(remaining), 0
}
