package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// ClockStep is how far the store's clock may be set back without any correction. What was touched under the later clock then lasts that much longer
// (L5).
const ClockStep = 30 * base.Second

// A clock that was set forward and back again leaves executions with times in the future. The times of an execution never run backwards (L5), so
// its present is its latest moment until the clock has reached that moment again. Durations measured from a moment in the future, such as a lease
// or the delay before a retry, must not last until then: they last as long as intended, counted from the last change of the execution. Moments
// named by a caller, such as a deadline, are not changed.

// Ahead returns the earliest timer that was measured from a moment more than ClockStep ahead of now, and how long it lasts counted from the latest
// moment of x; absent if there is none.
func (x *Execution) Ahead(now base.Time) (due base.Time, rest base.Millis) {
	if t := x.aheadOf(now); t != nil {
		due = t.due(x)
		return due, max(due.Sub(x.Latest()), 0)
	}
	return 0, 0
}

func (x *Execution) aheadOf(now base.Time) (first *timer) {
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

// Elapse fires the timer that Ahead returned, because its duration has passed. It acts as of the latest moment of x and does not move that further
// ahead: otherwise moments named by callers would come too early.
func (x *Execution) Elapse(fx *Effects) {
	t := x.aheadOf(fx.Now)
	fx.Now = x.Latest()
	if x.Status == Delayed {
		x.DelayUntil = fx.Now // the delay is over
	}
	t.fire(x, fx)
	x.arm()
}

func (x *Execution) sinceStatus() base.Time { return x.StatusSince }

// sinceLease returns when the lease began, absent if there is none.
func (x *Execution) sinceLease() base.Time {
	if x.Lease == nil {
		return 0
	}
	return x.Lease.AcquiredAt
}

// sinceRenewal returns when the lease was last renewed or began, absent if there is none.
func (x *Execution) sinceRenewal() base.Time {
	if x.Lease == nil {
		return 0
	}
	return base.Later(x.Lease.RenewedAt, x.Lease.AcquiredAt)
}

// sinceDelay returns when a delay measured by the engine began; absent if the delay may last until a moment named by the caller.
func (x *Execution) sinceDelay() base.Time {
	if x.DelayReason != WaitingForRetryBackoff && x.DelayReason != WaitingForResumeDelay {
		return 0
	}
	return x.StatusSince
}
