package core

import "github.com/flowfabric/flowfabric/internal/core/base"

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
func (x *Execution) Resume(fx *Effects, d *Dossier, c ResumeCommand) (already bool, err error) {
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
