package core

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// LC8.
func TestL92_the_first_matching_rule_decides_about_a_retry(t *testing.T) {
	t.Parallel()
	ms := func(n base.Millis) *base.Millis { return &n }
	for _, c := range []struct {
		name            string
		policy          string
		class, category string
		retryAfter      *base.Millis
		retries         int
		reason          Reason
		after           base.Millis
	}{
		{name: "permanent", policy: `{"retry_policy":{}}`, class: "permanent", reason: Permanent},
		{name: "cancelled", policy: `{}`, class: "cancelled", reason: Permanent},
		{name: "no policy", policy: `{}`, after: 1000},
		{name: "no policy, the last retry", policy: `{}`, retries: 24, after: 21_600_000},
		{name: "no policy, exhausted", policy: `{}`, retries: 25, reason: RetriesExhausted},
		{name: "left out in a policy", policy: `{"retry_policy":{"retryable_categories":["net"]}}`, category: "net", retries: 24, after: 21_600_000},
		{name: "category not listed", policy: `{"retry_policy":{"max_retries":0,"retryable_categories":["net"]}}`, category: "db", reason: NotRetryable},
		{name: "category listed", policy: `{"retry_policy":{"retryable_categories":["net"]}}`, category: "net", after: 1000},
		{name: "class listed", policy: `{"retry_policy":{"retryable_categories":["transient"]}}`, category: "db", after: 1000},
		{name: "max_retries 0", policy: `{"retry_policy":{"max_retries":0}}`, reason: RetriesExhausted},
		{name: "exhausted", policy: `{"retry_policy":{"max_retries":2}}`, retries: 2, reason: RetriesExhausted},
		{name: "third retry", policy: `{"retry_policy":{}}`, retries: 2, after: 4000},
		{name: "fixed", policy: `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":70}}}`, retries: 2, after: 70},
		{name: "retry_after replaces the backoff", policy: `{"retry_policy":{"backoff":{"jitter":1}}}`, retryAfter: ms(123), after: 123},
		{name: "retry_after 0", policy: `{"retry_policy":{}}`, retryAfter: ms(0), after: 0},
		{name: "window just open", policy: `{"retry_policy":{"max_elapsed_ms":1000}}`, after: 1000},
		{name: "window closed", policy: `{"retry_policy":{"max_elapsed_ms":999}}`, reason: RetryWindowElapsed},
		{name: "retry_after beyond the window", policy: `{"retry_policy":{"max_elapsed_ms":5000}}`, retryAfter: ms(5001), reason: RetryWindowElapsed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, c.policy)
			s.jitter = 0.5
			f := s.claim()
			s.x.RetryCount = c.retries
			answer := must[FailAnswer](t)(s.failWith(FailCommand{Fence: f, Class: c.class, Category: c.category, Message: "m", RetryAfter: c.retryAfter}))
			if s.x.Failure == nil || s.x.Failure != s.x.Attempt.Failure || s.x.Attempt.State != EndedFailure {
				t.Errorf("L90: failure %+v, attempt %+v", s.x.Failure, s.x.Attempt)
			}
			if c.reason != ReasonNone {
				s.want(Failed, c.reason, NextNone)
				if answer.Outcome != OutcomeFailed || answer.Reason != c.reason || s.x.RetryCount != c.retries {
					t.Errorf("%+v", answer)
				}
				return
			}
			at := s.now.Add(c.after)
			if answer.Outcome != OutcomeRetryScheduled || answer.RetryAt != at || s.x.RetryCount != c.retries+1 || s.x.QueuedAt != at || s.x.Next != NextRetry {
				t.Errorf("%+v, %+v", answer, s.x)
			}
			if c.after > 0 {
				s.want(Delayed, WaitingForRetryBackoff, NextRetry)
			} else {
				s.want(Ready, WaitingForWorker, NextRetry)
			}
			if data := s.last("attempt.ended"); data["retry_at"] != at.String() || data["state"] != "ended_failure" || data["retry_count"] != float64(c.retries+1) {
				t.Errorf("%v", data)
			}
		})
	}
}

func TestL94_exponential_backoff_follows_the_formula_and_saturates(t *testing.T) {
	t.Parallel()
	r := &RetryPolicy{Strategy: BackoffExponential, InitialMS: 100, MaxMS: 60_000, Multiplier: 1.5}
	for n := range 10_000 {
		want := min(60_000, math.Floor(100*math.Pow(1.5, float64(n))))
		if got := r.backoff(n, 0.999); got != base.Millis(want) {
			t.Fatalf("n=%d: %d, want %v", n, got, want)
		}
	}
	for _, r := range []RetryPolicy{
		{Strategy: BackoffExponential, InitialMS: 7 * base.Day, MaxMS: 30 * base.Day, Multiplier: 100},
		{Strategy: BackoffExponential, InitialMS: 1, MaxMS: 30 * base.Day, Multiplier: 100},
	} {
		if got := r.backoff(10_000, 0); got != 30*base.Day {
			t.Errorf("%+v: %d", r, got)
		}
	}
	none := RetryPolicy{Strategy: BackoffExponential, InitialMS: 0, MaxMS: 30 * base.Day, Multiplier: 100}
	if got := none.backoff(10_000, 0); got != 0 {
		t.Errorf("initial 0: %d", got)
	}
}

func TestL94_jitter_shortens_the_delay_within_its_band(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		r := RetryPolicy{Strategy: BackoffFixed, DelayMS: rapid.Int64Range(0, 30*base.Day).Draw(t, "d"), Jitter: rapid.Float64Range(0, 1).Draw(t, "j")}
		u := rapid.Float64Range(0, 1).Draw(t, "u")
		got, d := r.backoff(3, u), r.DelayMS
		if got > d || got < d-base.Millis(math.Floor(r.Jitter*float64(d))) {
			t.Fatalf("%d is outside the band of %d with %v", got, d, r.Jitter)
		}
		if r.Jitter == 0 && got != d {
			t.Fatalf("%d without jitter, want %d", got, d)
		}
	})
}

func TestL91_class_category_and_retry_after_are_checked_and_filled_in(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	over, negative := 30*base.Day+1, int64(-1)
	for field, c := range map[string]FailCommand{
		"class":          {Class: "weird"},
		"category":       {Category: "Not OK"},
		"retry_after_ms": {RetryAfter: &over},
	} {
		c.Fence = f
		if _, err := s.failWith(c); wantCode(t, err, base.CodeInvalidArgument).Field != field {
			t.Errorf("%v, want field %s", err, field)
		}
	}
	_, err := s.failWith(FailCommand{Fence: f, RetryAfter: &negative})
	wantCode(t, err, base.CodeInvalidArgument)
	long := make([]byte, 100_000)
	must[FailAnswer](t)(s.failWith(FailCommand{Fence: f, Message: "bad \xff" + string(long), Detail: long}))
	failure := s.x.Failure
	if failure.Class != "transient" || failure.Category != "transient" || len(failure.Message) != 16<<10 || len(failure.Detail) != 64<<10 || failure.At != s.now {
		t.Errorf("%s %s %d %d", failure.Class, failure.Category, len(failure.Message), len(failure.Detail))
	}
	if failure.Message[:7] != "bad \uFFFD" {
		t.Errorf("L6: %q", failure.Message[:7])
	}
}

func TestL93_retries_do_not_count_reclaims_and_return_to_zero_on_replay(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":0}}}`)
	for i := range 2 {
		s.claim()
		s.pass(30 * base.Second)
		f := s.claim()
		must[FailAnswer](t)(s.fail(f, ""))
		if s.x.RetryCount != i+1 || s.x.ReclaimCount != i+1 {
			t.Fatal(fmt.Sprint(s.x.RetryCount, s.x.ReclaimCount))
		}
	}
	must[FailAnswer](t)(s.fail(s.claim(), ""))
	s.want(Failed, RetriesExhausted, NextNone)
	must[int](t)(0, s.replay(ReplayCommand{}))
	if s.x.RetryCount != 0 || s.x.ReclaimCount != 0 {
		t.Errorf("%+v", s.x)
	}
}
