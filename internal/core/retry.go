package core

import (
	"maps"
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
	byDefault  *RetryPolicy // of the worker, used if the submission does not state the retries; nil: it has none
}

// failAttempt ends the attempt and either schedules a retry or fails x (L90..L93).
func (x *Execution) failAttempt(fx *Effects, f failing) FailAnswer {
	x.applyRetryDefault(f.byDefault)
	retryAt, rule, reason := x.decideRetry(fx, f)
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
	x.countRetry(rule)
	x.Next = NextRetry
	x.DelayUntil, x.DelayReason = retryAt, WaitingForRetryBackoff
	x.QueuedAt = retryAt
	x.gate(fx.Now)
	x.emitRetrying(fx, held, retryAt)
	return FailAnswer{Outcome: OutcomeRetryScheduled, RetryAt: retryAt, Late: late}
}

// decideRetry is L92: it returns the time of the retry, or the reason why there is none.
func (x *Execution) decideRetry(fx *Effects, f failing) (retryAt base.Time, rule retryRule, reason Reason) {
	class, category := f.failure.Class, f.failure.Category
	retry, _ := x.Retry()
	switch {
	case class == classPermanent || class == classCancelled:
		return 0, rule, Permanent
	case retry == nil:
		return 0, rule, NoRetryPolicy
	case !retry.covers(class, category):
		return 0, rule, NotRetryable
	}
	rule = x.ruleFor(retry, class, category)
	if rule.made >= rule.most {
		return 0, rule, RetriesExhausted
	}
	delay := rule.wait.backoff(rule.made, fx.Jitter)
	if f.retryAfter != nil {
		delay = *f.retryAfter
	}
	retryAt = fx.Now.Add(delay)
	if retry.MaxElapsedMS > 0 && retryAt > x.RunStartedAt.Add(retry.MaxElapsedMS) {
		return 0, rule, RetryWindowElapsed
	}
	return retryAt, rule, ReasonNone
}

// applyRetryDefault makes the default of the worker whose attempt fails apply from now on in this run, unless the submission states the retries.
func (x *Execution) applyRetryDefault(byDefault *RetryPolicy) {
	if byDefault == nil || x.RetryOrigin == RetryGiven {
		return
	}
	changed := Retries{Worker: byDefault.Filled()}
	if x.Retries != nil {
		changed.Counts = x.Retries.Counts
	}
	x.Retries = &changed
}

// countRetry counts a retry by its rule if that has a count of its own.
func (x *Execution) countRetry(rule retryRule) {
	if rule.name == "" {
		return
	}
	var changed Retries
	if x.Retries != nil {
		changed = *x.Retries
	}
	changed.Counts = maps.Clone(changed.Counts)
	if changed.Counts == nil {
		changed.Counts = map[string]int{}
	}
	changed.Counts[rule.name]++
	x.Retries = &changed
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
