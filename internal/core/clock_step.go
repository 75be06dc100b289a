package core

// ClockStep is how far the store's clock may be set back without anybody doing anything about it: what was touched by the later clock then
// lasts so much longer (L5).
const ClockStep = 30 * Second

// A clock that was set forward and back again leaves executions behind whose times lie ahead. These never run backwards (L5), so that the
// present of such an execution is its latest moment until the clock has come that far again. What was measured from a moment ahead, such as
// a lease or the pause before a retry, must not last until then: it lasts as long as it was meant to, counted from the last change of the
// execution. Moments that somebody has named, such as a deadline, stay what they are.

// Ahead is the earliest timer that was measured from a moment more than ClockStep ahead of now, and how long it lasts from the latest moment
// of x on; absent: there is none.
func (x *Execution) Ahead(now Time) (due Time, rest Millis) {
	if t := x.aheadOf(now); t != nil {
		due = t.due(x)
		return due, max(due.Sub(x.Latest()), 0)
	}
	return 0, 0
}

func (x *Execution) aheadOf(now Time) (first *timer) {
	if x.Latest().Sub(now) <= ClockStep {
		return nil
	}
	for _, t := range timers() {
		if at := t.due(x); at == 0 || t.from == nil || t.from(x).Sub(now) <= ClockStep {
			continue
		}
		if first == nil || t.due(x) < first.due(x) {
			first = &t
		}
	}
	return first
}

// Elapse fires the timer that Ahead tells of: so much time has passed. It acts as of the latest moment of x and moves that no further ahead:
// moments that somebody has named would come too early.
func (x *Execution) Elapse(fx *Effects) {
	t := x.aheadOf(fx.Now)
	fx.Now = x.Latest()
	if x.Status == Delayed {
		x.DelayUntil = fx.Now // the pause is over
	}
	t.fire(x, fx)
	x.arm()
}

func (x *Execution) sinceStatus() Time { return x.StatusSince }

// sinceLease is when the lease began; absent: there is none.
func (x *Execution) sinceLease() Time {
	if x.Lease == nil {
		return 0
	}
	return x.Lease.AcquiredAt
}

// sinceRenewal is when the lease was last renewed, or began; absent: there is none.
func (x *Execution) sinceRenewal() Time {
	if x.Lease == nil {
		return 0
	}
	return later(x.Lease.RenewedAt, x.Lease.AcquiredAt)
}

// sinceDelay is when a pause began that the engine measures; absent: the delay may be until a moment that the caller named.
func (x *Execution) sinceDelay() Time {
	if x.DelayReason != WaitingForRetryBackoff && x.DelayReason != WaitingForResumeDelay {
		return 0
	}
	return x.StatusSince
}
