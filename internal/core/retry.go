package core

import (
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// failing states how an attempt fails.
type failing struct {
	failure    *Failure
	retryAfter *base.Millis
	lease      LeaseEnd     // EndFail, or EndAttemptTimeout
	lapse      *LeaseRecord // of a late command (L36)
}

// failAttempt ends the attempt and either schedules a retry or fails x (L90..L93).
func (x *Execution) failAttempt(fx *Effects, f failing) FailAnswer {
	retryAt, reason := x.decideRetry(fx, f)
	late := f.lapse != nil
	if reason != ReasonNone {
		if f.lease == EndAttemptTimeout {
			reason = AttemptTimeout
		}
		x.end(fx, ending{
			status: Failed, reason: reason, attempt: EndedFailure, lease: f.lease, lapse: f.lapse, failure: f.failure,
		})
		return FailAnswer{Outcome: OutcomeFailed, Reason: reason, Late: late}
	}
	held := x.leave(fx, exit{end: f.lease, state: EndedFailure, failure: f.failure, lapse: f.lapse})
	x.Failure = f.failure
	x.RetryCount++
	x.Next = NextRetry
	x.DelayUntil, x.DelayReason = retryAt, WaitingForRetryBackoff
	x.QueuedAt = retryAt
	x.gate(fx.Now)
	x.emitRetrying(fx, held, retryAt)
	return FailAnswer{Outcome: OutcomeRetryScheduled, RetryAt: retryAt, Late: late}
}

// decideRetry is L92: it returns the time of the retry, or the reason why there is none.
func (x *Execution) decideRetry(fx *Effects, f failing) (retryAt base.Time, reason Reason) {
	class, retry := f.failure.Class, x.Policy.Retry
	switch {
	case class == classPermanent || class == classCancelled:
		return 0, Permanent
	case retry == nil:
		return 0, NoRetryPolicy
	case !retry.covers(class, f.failure.Category):
		return 0, NotRetryable
	case x.RetryCount >= retry.MaxRetries:
		return 0, RetriesExhausted
	}
	delay := retry.backoff(x.RetryCount, fx.Jitter)
	if f.retryAfter != nil {
		delay = *f.retryAfter
	}
	retryAt = fx.Now.Add(delay)
	if retry.MaxElapsedMS > 0 && retryAt > x.RunStartedAt.Add(retry.MaxElapsedMS) {
		return 0, RetryWindowElapsed
	}
	return retryAt, ReasonNone
}

// covers reports whether a failure of that class and category may be retried at all.
func (r *RetryPolicy) covers(class, category string) bool {
	return len(r.Categories) == 0 || slices.Contains(r.Categories, class) || slices.Contains(r.Categories, category)
}

// backoff returns the delay before retry number n, counted from 0 (L94). u in [0,1) selects the jitter.
func (r *RetryPolicy) backoff(n int, u float64) base.Millis {
	d := r.DelayMS
	if r.Strategy != BackoffFixed {
		d = r.exponential(n)
	}
	return d - base.Millis(math.Floor(u*r.Jitter*float64(d)))
}

// exponential is min(max, initial x multiplier^n), rounded down. The comparison precedes the conversion to an integer, so that an overflow to
// infinity gives the maximum.
func (r *RetryPolicy) exponential(n int) base.Millis {
	if r.InitialMS == 0 {
		return 0
	}
	d := float64(r.InitialMS) * math.Pow(r.Multiplier, float64(n))
	if d >= float64(r.MaxMS) {
		return r.MaxMS
	}
	return base.Millis(d)
}
