package core

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// retries fails attempts until none follows, and returns the delays before the retries.
func (s *story) retries(class, category string, most int) (delays []base.Millis) {
	s.t.Helper()
	for range most {
		answer := must[FailAnswer](s.t)(s.failWith(FailCommand{Fence: s.claim(), Class: class, Category: category, Message: "m"}))
		if answer.Outcome == OutcomeFailed {
			break
		}
		delays = append(delays, answer.RetryAt.Sub(s.now))
		s.now = answer.RetryAt
	}
	return delays
}

func TestL92_without_any_policy_a_failure_is_retried_for_days_and_then_no_more(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	delays := s.retries("transient", "", 100)
	s.want(Failed, RetriesExhausted, NextNone)
	var all base.Millis
	for _, d := range delays {
		all += d
	}
	if len(delays) != base.DefaultMaxRetries || delays[0] != 1000 || delays[1] != 2000 || delays[24] != 6*base.Hour || all < 2*base.Day || all > 4*base.Day {
		t.Errorf("%d retries after %v, %d ms in all", len(delays), delays, all)
	}
}

func TestL92_a_permanent_failure_is_not_retried_by_default(t *testing.T) {
	t.Parallel()
	for _, class := range []string{classPermanent, classCancelled} {
		s := begin(t, `{}`)
		if delays := s.retries(class, "", 5); len(delays) != 0 {
			t.Errorf("%s is retried after %v", class, delays)
		}
		s.want(Failed, Permanent, NextNone)
	}
}

func TestL12_an_execution_from_before_there_were_defaults_keeps_its_policy(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]int{"": 0, `{"retry_policy":{}}`: 3, `{"retry_policy":{"max_retries":2}}`: 2} {
		policy, err := DecodePolicy([]byte(stored))
		if err != nil {
			t.Fatal(err)
		}
		s := begin(t, `{}`)
		s.x.Policy, s.x.RetryOrigin, s.x.RetryLeftOut = policy, RetryGiven, 0
		if delays := s.retries("transient", "", 10); len(delays) != want {
			t.Errorf("%q: retried after %v, want %d retries", stored, delays, want)
		}
	}
}

func TestL92_the_submission_precedes_the_worker_and_the_worker_the_lane(t *testing.T) {
	t.Parallel()
	lane, err := ParseDefaultPolicy([]byte(`{"retry_policy":{"max_retries":7,"backoff":{"strategy":"fixed","delay_ms":7}}}`))
	if err != nil {
		t.Fatal(err)
	}
	worker, err := ParseDefaultPolicy([]byte(`{"retry_policy":{"max_retries":9,"backoff":{"strategy":"fixed","delay_ms":9}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, policy string
		lane, worker *RetryPolicy
		delay        base.Millis
		from         string
	}{
		{"nothing", `{}`, nil, nil, 1000, "default"},
		{"lane", `{}`, lane, nil, 7, "lane"},
		{"worker over lane", `{}`, lane, worker, 9, "worker"},
		{"worker over default", `{"lease_grace_ms":5}`, nil, worker, 9, "worker"},
		{"submission over all", `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":3}}}`, lane, worker, 3, "submission"},
		{"an empty retry policy over all", `{"retry_policy":{}}`, lane, worker, 1000, "submission"},
	} {
		s := begin(t, c.policy, func(s *Submission) { s.LaneRetry = c.lane })
		answer := must[FailAnswer](t)(s.failWith(FailCommand{Fence: s.claim(), Message: "m", Default: c.worker}))
		if _, from := s.x.Retry(); from != c.from || answer.RetryAt.Sub(s.now) != c.delay {
			t.Errorf("%s: after %d ms from %s", c.name, answer.RetryAt.Sub(s.now), from)
		}
		if shown := s.x.EffectivePolicy().Retry; shown.backoff(0, 0) != c.delay {
			t.Errorf("%s: shown as %+v", c.name, shown)
		}
	}
}

func TestL110_a_replay_forgets_the_default_of_the_worker_and_what_was_counted(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	none, err := ParseDefaultPolicy([]byte(`{"retry_policy":{"max_retries":0,"by_category":{"net":{"max_retries":0}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	must[FailAnswer](t)(s.failWith(FailCommand{Fence: s.claim(), Message: "m", Default: none}))
	s.want(Failed, RetriesExhausted, NextNone)
	fx := s.effects()
	if err := s.x.Replay(fx, ReplayCommand{Lane: s.lane}); err != nil {
		t.Fatal(err)
	}
	s.keep(fx)
	if _, from := s.x.Retry(); from != "default" || s.x.Retries != nil {
		t.Errorf("from %s, %+v", from, s.x.Retries)
	}
}

func TestL92_a_category_with_an_entry_is_counted_and_delayed_apart(t *testing.T) {
	t.Parallel()
	const policy = `{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":10},
		"by_category":{"timeout":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":20}},"net":{"max_retries":3,"backoff":{"initial_ms":5}},"slow":{"backoff":{"strategy":"fixed","delay_ms":40}}}}}`
	type failure struct {
		class, category string
		delay           base.Millis // -1: none follows
	}
	for name, failures := range map[string][]failure{
		"the class":                     {{"timeout", "", 20}, {"timeout", "other", 20}, {"timeout", "", -1}},
		"the category before the class": {{"timeout", "net", 5}, {"timeout", "net", 10}, {"transient", "net", 20}, {"timeout", "net", -1}},
		"each by itself":                {{"timeout", "", 20}, {"transient", "", 10}, {"transient", "net", 5}, {"timeout", "", 20}, {"transient", "", -1}},
		"the count of the policy":       {{"transient", "slow", 40}, {"transient", "", 10}, {"transient", "slow", -1}},
	} {
		s := begin(t, policy)
		for i, f := range failures {
			answer := must[FailAnswer](t)(s.failWith(FailCommand{Fence: s.claim(), Class: f.class, Category: f.category, Message: "m"}))
			switch {
			case f.delay < 0 && answer.Reason != RetriesExhausted, f.delay >= 0 && answer.RetryAt.Sub(s.now) != f.delay:
				t.Errorf("%s: failure %d: %+v after %d ms", name, i, answer, answer.RetryAt.Sub(s.now))
			}
			s.now = base.Later(s.now, answer.RetryAt)
		}
	}
}

func TestL11_a_bad_entry_of_a_category_is_refused_with_its_path(t *testing.T) {
	t.Parallel()
	for entry, field := range map[string]string{
		`"permanent":{"max_retries":1}`:               "by_category.permanent",
		`"cancelled":{"max_retries":1}`:               "by_category.cancelled",
		`"A":{"max_retries":1}`:                       "by_category.A",
		`"a":{}`:                                      "by_category.a",
		`"a":{"max_retries":10001}`:                   "by_category.a.max_retries",
		`"a":{"max_retries":1,"x":1}`:                 "by_category.a.x",
		`"a":{"backoff":{"delay_ms":5}}`:              "by_category.a.backoff.delay_ms",
		`"a":{"max_retries":1},"a":{"max_retries":1}`: "by_category.a",
	} {
		_, err := ParsePolicy([]byte(`{"retry_policy":{"by_category":{` + entry + `}}}`))
		expect(t, err, base.CodeInvalidPolicy, "retry_policy."+field)
	}
}

func TestL83_a_default_is_not_part_of_the_fingerprint(t *testing.T) {
	t.Parallel()
	lane := &RetryPolicy{MaxRetries: 4, Strategy: BackoffFixed, DelayMS: 5}
	for _, text := range append(samplePolicies(), `{"lease_grace_ms":9}`, `{"retry_policy":{"max_retries":3}}`) {
		for _, byLane := range []*RetryPolicy{nil, lane} {
			submission := &Submission{Kind: "k", PolicyJSON: []byte(text), LaneRetry: byLane}
			if err := submission.Normalize(base.DefaultLimits()); err != nil {
				t.Fatal(err)
			}
			class := submission.Class()
			x := NewExecution(&Effects{Now: storyStart}, submission, base.ID{}, &class)
			if got := x.GivenPolicy().Canonical(); !bytes.Equal(got, submission.Policy.Canonical()) {
				t.Errorf("%q, lane %v: of the record %s, of the submission %s", text, byLane != nil, got, submission.Policy.Canonical())
			}
			back, err := DecodePolicy(x.Policy.Encode())
			if err != nil || !bytes.Equal(back.Canonical(), x.Policy.Canonical()) {
				t.Errorf("%q is stored as %s: %v", text, x.Policy.Encode(), err)
			}
		}
	}
}

func TestS2_the_default_policy_of_a_lane_states_retries_and_nothing_else(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"lease_grace_ms":5}`:                     "policy",
		`{"retry_policy":{},"max_replay_count":3}`: "policy",
		`{"retry_policy":{"max":1}}`:               "retry_policy.max",
		`[]`:                                       "policy",
	} {
		_, err := ParseDefaultPolicy([]byte(text))
		expect(t, err, base.CodeInvalidPolicy, field)
	}
	for _, text := range []string{"", "{}"} {
		if retry, err := ParseDefaultPolicy([]byte(text)); retry != nil || err != nil {
			t.Errorf("%q: %+v, %v", text, retry, err)
		}
	}
	settings := LaneSettings{State: LaneActive, Retry: mustParsePolicy(t, `{"retry_policy":{"max_retries":4}}`).Retry}
	var back LaneSettings
	if err := json.Unmarshal(EncodeLaneSettings(settings), &back); err != nil || back.Retry.MaxRetries != 4 || back.Retry.LeftOut != settings.Retry.LeftOut {
		t.Errorf("%s came back as %+v, %v", EncodeLaneSettings(settings), back.Retry, err)
	}
}
