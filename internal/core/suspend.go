package core

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// SuspendCommand is the command suspend (section 5).
type SuspendCommand struct {
	Fence          Fence
	Waitpoints     []Binding // the first is the primary one
	Condition      *condition.Condition
	ReasonCode     string       // "": ReasonCodeSignal
	TimeoutAt      base.Time    // absent: TimeoutMS, else the policy's, else none
	TimeoutMS      *base.Millis // nil: none
	Behavior       string       // at the timeout; "": the policy's
	ResumeDelayMS  base.Millis
	Continuation   *Payload         // nil: none
	Usage          map[string]int64 // spent already (B16)
	IdempotencyKey string
	SuspensionID   base.UUID // the caller's; absent: one that Mint makes

	SpentHandle bool // the handle that was given belongs to a suspension (W44)
	Recorded    *LeaseRecord
	Keys        *keyring.Ring
	Mint        func() base.UUID     // makes ids for what the caller gave none
	Taken       func(base.UUID) bool // reports whether a waitpoint with that id exists in any execution; nil: none does
	unsigned    bool                 // only checked: no tokens are made
}

// Binding states where a suspension waits: at a waitpoint that it makes, or at a pending one that it adopts with its key, its token and its
// buffered signals.
type Binding struct {
	UsePending bool
	ID         base.UUID // of the pending one; for a fresh one the caller's, absent: one made by Mint
	Key        *string   // of a fresh one; nil: by W45
}

// SuspendAnswer is the answer to suspend (W49..W51). Tokens are made from the rows.
type SuspendAnswer struct {
	Satisfied    bool // the wait is passed: lease and attempt continue; else suspended
	SuspensionID base.UUID
	Waitpoints   []Waitpoint // in the order of the bindings; if the wait was passed, fresh ones were not made
	TimeoutAt    base.Time
	Cause        SuspensionCause // of a wait that is passed
	Signals      []Signal        // of a wait that is passed, without payload bytes
	Late         bool
	Repeated     bool
}

// Suspend hands the lease back until the condition is satisfied. If it already is, lease and attempt are left unchanged (W46..W50, W56). Errors:
// those of Check, idempotency_conflict, those of the fence, invalid_suspend, signing_key_missing, waitpoint_not_found, waitpoint_expired,
// waitpoint_not_pending, waitpoint_already_exists, waitpoint_limit_exceeded, suspension_already_exists.
func (x *Execution) Suspend(fx *Effects, d *WaitState, c SuspendCommand) (SuspendAnswer, error) {
	if err := c.Check(); err != nil {
		return SuspendAnswer{}, err
	}
	if known, err := x.suspendedBefore(d, &c); known != nil || err != nil {
		return valueOr(known), err
	}
	in, err := x.enter(fx, c.Fence, EndSuspend, c.Recorded)
	if err != nil {
		return SuspendAnswer{}, err
	}
	if in.repeat != nil {
		return x.repeatSuspend(d, in.repeat)
	}
	p, err := x.planSuspend(fx.Now, d, &c)
	if err != nil {
		return SuspendAnswer{}, err
	}
	p.record.Late = in.lapse != nil
	if p.condition.Evaluate(evidenceIn(p.buffered)).Satisfied() {
		answer := x.passSuspend(fx, p)
		x.spendOn(fx, c.Usage, in.lapse != nil)
		return answer, nil
	}
	x.spend(fx, c.Usage, in.lapse != nil)
	return x.suspend(fx, p, in.lapse), nil
}

// CheckSuspend checks a suspend that is applied later as Suspend checks it, except for the signing keys, on an execution that is settled. It returns
// the answer if the wait is known already. Errors: those of Suspend.
func (x *Execution) CheckSuspend(now base.Time, d *WaitState, c SuspendCommand) (*SuspendAnswer, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if known, err := x.suspendedBefore(d, &c); known != nil || err != nil {
		return known, err
	}
	if _, err := x.CheckKeep(nil, c.Fence); err != nil {
		return nil, err
	}
	c.unsigned = true
	_, err := x.planSuspend(now, d, &c)
	return nil, err
}

// suspend hands the lease back (W50).
func (x *Execution) suspend(fx *Effects, p *suspendPlan, lapse *LeaseRecord) SuspendAnswer {
	held := x.leave(fx, exit{end: EndSuspend, state: AttemptInterrupted, interruption: InterruptedSuspended, lapse: lapse})
	rows := x.park(fx, p, held)
	s := p.record
	o := base.NewObject(answerRoom)
	o.Num("suspension", int64(s.Seq))
	fx.recordAnswer(o.Done())
	return SuspendAnswer{SuspensionID: s.ID, Waitpoints: rows, TimeoutAt: s.TimeoutAt, Late: s.Late}
}

// park opens the suspension of an execution that has left running.
func (x *Execution) park(fx *Effects, p *suspendPlan, held heldLease) []Waitpoint {
	s := p.record
	w := x.ownWaits()
	w.Suspensions++
	s.Seq = w.Suspensions
	w.Suspension = &OpenSuspension{
		Seq: s.Seq, ID: s.ID, At: s.At, TimeoutAt: s.TimeoutAt, Behavior: s.Behavior, ResumeDelay: s.ResumeDelay, ReasonCode: s.ReasonCode,
	}
	rows := p.rows()
	for i := range rows {
		rows[i].SuspensionID, rows[i].ActivatedAt, rows[i].ExpiresAt = s.ID, fx.Now, s.TimeoutAt
		rows[i].RequiredNames = p.condition.RequiredNames(rows[i].Key)
		w.activate(&rows[i])
		x.noteWait(fx, &rows[i])
		if p.bound[i].fresh {
			x.emitWaitpointCreated(fx, &rows[i])
		}
	}
	if len(rows) > 0 {
		w.Suspension.PrimaryID, w.Suspension.PrimaryKey = rows[0].ID, rows[0].Key
	}
	x.noteWait(fx, s)
	x.Next = NextResume
	x.clearBlock()
	x.become(fx.Now, Suspended, reasonCodes[s.ReasonCode])
	x.emitSuspended(fx, held, s, rows)
	return rows
}

// activate binds a waitpoint to the suspension: an open one changes its state, any other is added.
func (w *Waits) activate(row *Waitpoint) {
	active := OpenWaitpoint{ID: row.ID, Key: row.Key, Active: true}
	for i := range w.Open {
		if w.Open[i].ID == row.ID {
			w.Open[i] = active
			return
		}
	}
	w.Open = append(w.Open, active)
}

// passSuspend passes a wait whose condition the buffered signals satisfy (W49). Lease and attempt are not changed.
func (x *Execution) passSuspend(fx *Effects, p *suspendPlan) SuspendAnswer {
	s := p.record
	s.Early, s.Waitpoints = true, nil
	var rows []Waitpoint
	for _, row := range p.bound {
		if !row.fresh {
			row.SuspensionID, row.RequiredNames = s.ID, p.condition.RequiredNames(row.Key)
			rows = append(rows, row.Waitpoint)
			s.Waitpoints = append(s.Waitpoints, BoundWaitpoint{row.ID, row.Key})
		}
	}
	w := x.ownWaits()
	w.Suspensions++
	s.Seq = w.Suspensions
	for i := range rows {
		x.noteWait(fx, &rows[i])
	}
	x.noteWait(fx, s)
	x.noteWait(fx, &SuspensionEnd{Seq: s.Seq, Cause: CauseEarlySignals, Resumed: true, At: fx.Now})
	x.closeWaitpoints(fx, func(w OpenWaitpoint) CloseReason {
		if s.binds(w.ID) {
			return ClosedResumed
		}
		return ""
	})
	x.LastMutationAt = fx.Now
	x.arm()
	x.emitSuspendSatisfied(fx, s, p.buffered)
	return SuspendAnswer{
		Satisfied: true, SuspensionID: s.ID, Waitpoints: rows, TimeoutAt: s.TimeoutAt,
		Cause: CauseEarlySignals, Signals: p.judged(), Late: s.Late,
	}
}

// maxResumeDelay bounds the delay of a resume (section 5).
const maxResumeDelay = 30 * base.Day

// resume ends the suspension and sends x through the gate to continue the same attempt (W62). queued_at is kept (W80).
func (x *Execution) resume(fx *Effects, c closing, delay base.Millis) {
	c.resumed, c.active = true, ClosedResumed
	suspension := x.openSuspension().ID
	x.endSuspension(fx, c)
	if delay > 0 {
		x.DelayUntil, x.DelayReason = fx.Now.Add(delay), WaitingForResumeDelay
	}
	x.Next = NextResume
	x.gate(fx.Now)
	x.emitResumed(fx, suspension, c)
}

// ResumeCommand is an operator's resume (W78). The delay of the suspend is not used.
type ResumeCommand struct {
	By                   string
	DelayMS              base.Millis
	Reason               string
	ExpectedSuspensionID base.UUID // absent: any open one
}

// Check checks the arguments: invalid_argument.
func (c *ResumeCommand) Check() error {
	if c.DelayMS < 0 || c.DelayMS > maxResumeDelay {
		return base.Invalid("delay_ms", "must be in 0..%d", maxResumeDelay)
	}
	return base.CheckReason("reason", c.Reason)
}

// Resume ends the suspension on request of an operator, regardless of its condition. already reports that the expected one was resumed before.
// Errors: invalid_argument, suspension_mismatch, execution_not_active, execution_not_suspended.
func (x *Execution) Resume(fx *Effects, d *WaitState, c ResumeCommand) (already bool, err error) {
	if err := c.Check(); err != nil {
		return false, err
	}
	open := x.openSuspension()
	if expected := c.ExpectedSuspensionID; !expected.IsZero() {
		if s := d.suspensionByID(expected); s != nil {
			if end := d.suspensionEnd(s.Seq); end != nil && end.Resumed {
				return true, nil
			}
		}
		if open != nil && open.ID != expected {
			return false, base.Errorf(base.CodeSuspensionMismatch, "another suspension is open").WithField("expected_suspension_id").
				With("suspension_id", open.ID.String()).WithHint("look at the execution again and decide anew")
		}
	}
	switch {
	case x.Status.Terminal():
		return false, x.NotActive()
	case x.Status != Suspended:
		return false, x.refuse(base.CodeExecutionNotSuspended)
	}
	x.resume(fx, closing{cause: CauseOperator, by: c.By}, c.DelayMS)
	return false, nil
}
