package core

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// scene is a room with quotas, as the rows of a store would give it.
type scene struct {
	quotas map[string]*Quota
	room   *Room
}

func newScene(quotas ...*Quota) *scene {
	c := &scene{quotas: map[string]*Quota{}}
	for _, q := range quotas {
		c.quotas[q.ID] = q
	}
	c.room = &Room{
		Quotas: func(id string) *Quota { return c.quotas[id] },
		Slots:  map[string]int64{}, Rates: map[string]*RateWindow{}, Budgets: NewBudgetSet(), Unreadable: map[string]bool{},
	}
	return c
}

func quotaOf(id string, rate, slots int) *Quota {
	return &Quota{ID: id, Settings: QuotaSettings{RateLimit: rate, WindowMS: base.Minute, ConcurrencyLimit: slots}}
}

// admit tests admission as a claim does, lets an admitted execution go on by then, and tells the key that refused.
func (c *scene) admit(s *story, then func(fx *Effects)) (refusedBy string) {
	s.t.Helper()
	_ = s.do(func(fx *Effects) error {
		why := s.x.Admission(c.room, nil, fx.Now)
		if why != nil {
			refusedBy = why.Key
			s.x.Refuse(fx, why)
			return nil
		}
		s.x.TakeRoom(fx, c.room, nil)
		then(fx)
		return nil
	})
	return refusedBy
}

func (c *scene) claim(s *story) (refusedBy string) {
	s.t.Helper()
	return c.admit(s, func(fx *Effects) {
		s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-1", TTL: 30 * base.Second})
	})
}

func (c *scene) grant(s *story, ttl base.Millis) (refusedBy string) {
	s.t.Helper()
	return c.admit(s, func(fx *Effects) {
		if _, err := s.x.IssueGrant(fx, s.keys, GrantCommand{WorkerID: "w", InstanceID: "w-1", TTL: ttl}); err != nil {
			s.t.Fatalf("%v", err)
		}
	})
}

// free brings the slots in step with what the execution holds, as the store's counters are.
func (c *scene) free(before []string, s *story) {
	for _, key := range before {
		if !slices.Contains(s.x.Holds, key) {
			c.room.Slots[key]--
		}
	}
}

func TestS44_rates_are_asked_before_slots_each_in_the_order_of_the_policy(t *testing.T) {
	t.Parallel()
	const policy = `{"quotas":[{"quota":"b"},{"quota":"a","key":"k"}]}`
	full := func(c *scene, keys ...string) {
		for _, key := range keys {
			if key[:4] == "rate" {
				c.room.Rates[key] = windowOf(storyStart)
			} else {
				c.room.Slots[key] = 1
			}
		}
	}
	for _, want := range [][]string{
		{"rate:b", "rate:a/k", "slots:b", "slots:a/k"}, {"rate:a/k", "slots:b", "slots:a/k"}, {"slots:b", "slots:a/k"}, {"slots:a/k"},
	} {
		c, s := newScene(quotaOf("a", 1, 1), quotaOf("b", 1, 1)), begin(t, policy)
		full(c, want...)
		if got := c.claim(s); got != want[0] {
			t.Errorf("full are %v: refused by %q", want, got)
		}
		s.want(Blocked, WaitingForQuota, NextInitial)
		if s.x.BlockedOn != want[0] || len(s.x.Holds) > 0 || s.x.Reservation != nil {
			t.Errorf("blocked on %q with %v, %+v", s.x.BlockedOn, s.x.Holds, s.x.Reservation)
		}
	}
}

func TestS44_admission_takes_all_or_nothing(t *testing.T) {
	t.Parallel()
	const policy = `{"quotas":[{"quota":"a"},{"quota":"b"}]}`
	c := newScene(quotaOf("a", 5, 5), quotaOf("b", 5, 1))
	first, second := begin(t, policy), begin(t, policy)
	if c.claim(first) != "" || c.claim(second) != "slots:b" {
		t.Fatal("one place for one of two")
	}
	if diff := cmp.Diff(map[string]int64{"slots:a": 1, "slots:b": 1}, c.room.Slots); diff != "" {
		t.Error(diff)
	}
	if n := c.room.Rates["rate:a"].Count(storyStart, base.Minute); n != 1 {
		t.Errorf("%d admissions of a", n)
	}
	if diff := cmp.Diff([]string{"slots:a", "slots:b"}, first.x.Holds); diff != "" {
		t.Error(diff)
	}
}

func TestS44_a_quota_named_twice_is_taken_once(t *testing.T) {
	t.Parallel()
	c, s := newScene(quotaOf("a", 1, 1)), begin(t, `{"quotas":[{"quota":"a"},{"quota":"a"}]}`)
	if key := c.claim(s); key != "" {
		t.Fatal(key)
	}
	if c.room.Slots["slots:a"] != 1 || c.room.Rates["rate:a"].Count(storyStart, base.Minute) != 1 {
		t.Errorf("%v %+v", c.room.Slots, c.room.Rates["rate:a"])
	}
}

func TestS38_a_quota_that_is_gone_limits_nothing(t *testing.T) {
	t.Parallel()
	c, s := newScene(), begin(t, `{"quotas":[{"quota":"a"}]}`)
	c.room.Slots["slots:a"] = 7
	if key := c.claim(s); key != "" || len(s.x.Holds) > 0 {
		t.Errorf("%q, holds %v", key, s.x.Holds)
	}
}

func TestS40_a_rate_refuses_until_next_free_and_says_when_that_is(t *testing.T) {
	t.Parallel()
	const policy = `{"quotas":[{"quota":"a"}]}`
	c := newScene(quotaOf("a", 1, 0))
	first, second := begin(t, policy), begin(t, policy)
	second.now += 10
	if c.claim(first) != "" || c.claim(second) != "rate:a" {
		t.Fatal("one admission a minute")
	}
	const detail = `{"limit":1,"window_ms":60000,"next_free":"2023-11-14T22:14:20.000Z"}`
	if got := string(second.x.BlockingDetail); got != detail {
		t.Error(got)
	}
	if why := second.x.Admission(c.room, nil, storyStart.Add(base.Minute)-1); why == nil || why.NextFree != storyStart.Add(base.Minute) {
		t.Errorf("%+v", why)
	}
	second.now = storyStart.Add(base.Minute)
	if key := c.claim(second); key != "" {
		t.Error(key)
	}
}

func TestS40_a_new_attempt_is_an_admission_and_a_resume_is_none(t *testing.T) {
	t.Parallel()
	const policy = `{"quotas":[{"quota":"a"}],"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":1}}}`
	c, s := newScene(quotaOf("a", 2, 0)), begin(t, policy)
	if key := c.claim(s); key != "" {
		t.Fatal(key)
	}
	s.waitForChildren()
	s.satisfy()
	if key := c.claim(s); key != "" || c.room.Rates["rate:a"].Count(s.now, base.Minute) != 1 {
		t.Fatalf("resumed: %q, %d admissions", key, c.room.Rates["rate:a"].Count(s.now, base.Minute))
	}
	must[FailAnswer](t)(s.fail(s.fence(), ""))
	s.pass(10)
	if key := c.claim(s); key != "" || c.room.Rates["rate:a"].Count(s.now, base.Minute) != 2 {
		t.Fatalf("retried: %q, %d admissions", key, c.room.Rates["rate:a"].Count(s.now, base.Minute))
	}
	must[FailAnswer](t)(s.fail(s.fence(), ""))
	s.pass(10)
	if key := c.claim(s); key != "rate:a" {
		t.Fatalf("a third attempt within the window was refused by %q", key)
	}
}

// ratesBack runs the deed and collects what it gave back.
func ratesBack(s *story, deed func(fx *Effects) error) (back []RateAdmission) {
	s.t.Helper()
	fx := s.effects()
	s.x.Settle(fx)
	if err := deed(fx); err != nil {
		s.t.Fatalf("%v", err)
	}
	return fx.RatesBack
}

func TestS40_a_grant_that_ends_unused_gives_its_admission_back_however_it_ends(t *testing.T) {
	t.Parallel()
	none := func(*Effects) error { return nil }
	for name, end := range map[string]func(s *story) []RateAdmission{
		"expiry": func(s *story) []RateAdmission { s.now += 5000; return ratesBack(s, none) },
		"hold": func(s *story) []RateAdmission {
			return ratesBack(s, func(fx *Effects) error { _, err := s.x.PlaceHold(fx, "ann", ""); return err })
		},
		"cancel": func(s *story) []RateAdmission {
			return ratesBack(s, func(fx *Effects) error {
				_, err := s.x.Cancel(fx, CancelCommand{Source: "operator", By: "ann"})
				return err
			})
		},
		"deadline": func(s *story) []RateAdmission { s.now += 9000; return ratesBack(s, none) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := newScene(quotaOf("a", 1, 1)), begin(t, `{"quotas":[{"quota":"a"}],"timeout_policy":{"execution_deadline_ms":9000}}`)
			ttl := 5 * base.Second
			if name == "deadline" {
				ttl = 20 * base.Second
			}
			if key := c.grant(s, ttl); key != "" {
				t.Fatal(key)
			}
			if diff := cmp.Diff([]RateAdmission{{"rate:a", storyStart}}, end(s)); diff != "" {
				t.Error(diff)
			}
			if s.x.Reservation != nil || s.x.Holds != nil {
				t.Errorf("kept %+v, %v", s.x.Reservation, s.x.Holds)
			}
		})
	}
}

func TestS40_a_lease_never_gives_its_admission_back(t *testing.T) {
	t.Parallel()
	for name, departure := range departures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := newScene(quotaOf("a", 5, 5)), begin(t, `{"quotas":[{"quota":"a"}]}`)
			if key := c.claim(s); key != "" {
				t.Fatal(key)
			}
			if s.x.Reservation != nil {
				t.Fatalf("a lease remembers %+v", s.x.Reservation)
			}
			departure.leave(s)
			if c.room.Rates["rate:a"].Count(storyStart, base.Minute) != 1 {
				t.Error("the admission is gone")
			}
		})
	}
}

func TestS41_slots_that_were_kept_are_not_asked_for_again(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ policy, refusedBy string }{
		{`{"quotas":[{"quota":"a"}],"slots_while_waiting":"hold"}`, ""},
		{`{"quotas":[{"quota":"a"}]}`, "slots:a"},
	} {
		scene, s := newScene(quotaOf("a", 0, 1)), begin(t, c.policy)
		if key := scene.claim(s); key != "" {
			t.Fatal(key)
		}
		before := s.x.Holds
		s.waitForChildren()
		scene.free(before, s)
		s.satisfy()
		if c.refusedBy != "" {
			scene.room.Slots["slots:a"]++ // somebody else took it meanwhile
		}
		if key := scene.claim(s); key != c.refusedBy || scene.room.Slots["slots:a"] != 1 {
			t.Errorf("%s: refused by %q, %d in use", c.policy, key, scene.room.Slots["slots:a"])
		}
	}
}

func TestS43_a_lowered_limit_admits_no_work_until_enough_is_free(t *testing.T) {
	t.Parallel()
	const policy = `{"quotas":[{"quota":"a"}]}`
	c := newScene(quotaOf("a", 0, 0))
	running := []*story{begin(t, policy), begin(t, policy), begin(t, policy)}
	for _, s := range running {
		if key := c.claim(s); key != "" {
			t.Fatal(key)
		}
	}
	c.quotas["a"] = quotaOf("a", 0, 2)
	next := begin(t, policy)
	for i, s := range running {
		if key := c.claim(next); (key == "") != (i == 2) {
			t.Fatalf("%d still run: refused by %q", 3-i, key)
		}
		before := s.x.Holds
		must[CompleteAnswer](t)(s.complete(s.fence(), nil))
		c.free(before, s)
	}
}

func TestS45_an_unreadable_record_blocks_and_is_tried_again_a_minute_later(t *testing.T) {
	t.Parallel()
	id := base.UUID{7}
	for _, c := range []struct {
		key    string
		reason Reason
		set    []base.UUID
	}{{"rate:a", WaitingForQuota, nil}, {"slots:a", WaitingForQuota, nil}, {BudgetKey(id), WaitingForBudget, []base.UUID{id}}} {
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			scene, s := newScene(), begin(t, `{"quotas":[{"quota":"a"}]}`)
			scene.room.Unreadable[c.key] = true
			why := s.x.Admission(scene.room, c.set, s.now)
			if why == nil || why.Key != c.key {
				t.Fatalf("refused by %+v", why)
			}
			_ = s.do(func(fx *Effects) error { s.x.Refuse(fx, why); return nil })
			s.want(Blocked, c.reason, NextInitial)
			if string(s.x.BlockingDetail) != `"unreadable"` || s.x.WakeAt != storyStart.Add(base.Minute) {
				t.Errorf("detail %s, wakes at %s", s.x.BlockingDetail, s.x.WakeAt)
			}
			s.pass(base.Minute - 1)
			s.want(Blocked, c.reason, NextInitial)
			told := len(s.events)
			s.pass(1)
			s.want(Ready, WaitingForWorker, NextInitial)
			if s.x.BlockedOn != "" || s.x.RetryAt != 0 || len(s.kinds(told)) > 0 {
				t.Errorf("blocked on %q, retry at %s, told %v", s.x.BlockedOn, s.x.RetryAt, s.kinds(told))
			}
		})
	}
}

func TestS45_a_key_that_turns_unreadable_is_tried_again_too(t *testing.T) {
	t.Parallel()
	c, s := newScene(quotaOf("a", 0, 1)), begin(t, `{"quotas":[{"quota":"a"}]}`)
	c.room.Slots["slots:a"] = 1
	c.claim(s)
	c.room.Unreadable["slots:a"] = true
	s.now += 5
	c.claim(s)
	if s.x.WakeAt != s.now.Add(base.Minute) || string(s.x.BlockingDetail) != `"unreadable"` {
		t.Errorf("wakes at %s, detail %s", s.x.WakeAt, s.x.BlockingDetail)
	}
	before := s.x.Clone()
	s.now += 5
	c.claim(s)
	if diff := cmp.Diff(before, s.x); diff != "" {
		t.Error(diff)
	}
}

func TestS48_blocked_on_the_same_key_again_changes_nothing_and_another_key_takes_its_place_silently(t *testing.T) {
	t.Parallel()
	c, s := newScene(quotaOf("a", 0, 1), quotaOf("b", 0, 1)), begin(t, `{"quotas":[{"quota":"a"},{"quota":"b"}]}`)
	c.room.Slots["slots:a"], c.room.Slots["slots:b"] = 1, 1
	c.claim(s)
	before, told := s.x.Clone(), len(s.events)
	s.now += 5
	c.claim(s)
	if diff := cmp.Diff(before, s.x); diff != "" {
		t.Error(diff)
	}
	c.room.Slots["slots:a"] = 0
	c.claim(s)
	if s.x.BlockedOn != "slots:b" || s.x.LastMutationAt != s.now || len(s.events) != told {
		t.Errorf("blocked on %q at %s, told %v", s.x.BlockedOn, s.x.LastMutationAt, s.kinds(told))
	}
}

func TestS48_while_blocked_by_admission_everything_else_still_acts(t *testing.T) {
	t.Parallel()
	blocked := func(t *testing.T) *story {
		c, s := newScene(quotaOf("a", 0, 1)), begin(t, `{"quotas":[{"quota":"a"}],"timeout_policy":{"execution_deadline_ms":9000}}`)
		c.room.Slots["slots:a"] = 1
		c.claim(s)
		return s
	}
	s := blocked(t)
	if _, err := s.hold(); err != nil {
		t.Fatal(err)
	}
	s.want(Blocked, PausedByOperator, NextInitial)
	if s.x.BlockedOn != "" {
		t.Errorf("still on %q", s.x.BlockedOn)
	}
	s = blocked(t)
	s.pass(9000)
	s.want(Expired, ExecutionDeadline, NextNone)
}

func TestL75_a_refusal_by_admission_names_the_key(t *testing.T) {
	t.Parallel()
	c, s := newScene(quotaOf("a", 0, 1)), begin(t, `{"quotas":[{"quota":"a"}]}`)
	c.room.Slots["slots:a"] = 1
	err := asError(t, s.x.Admission(c.room, nil, s.now).Err())
	if err.Code != base.CodeAdmissionRefused || err.Details["blocked_on"] != "slots:a" || err.Details["reason"] != "waiting_for_quota" {
		t.Errorf("%+v", err)
	}
}

func TestSI7_slots_in_use_are_the_executions_that_hold_them_and_never_above_the_limit(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		c := newScene(quotaOf("a", 0, limit))
		hold := rapid.SampledFrom([]string{"hold", "release"}).Draw(t, "slots while waiting")
		stories := make([]*story, 6)
		for i := range stories {
			stories[i] = begin(t, `{"quotas":[{"quota":"a"}],"slots_while_waiting":"`+hold+`"}`)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := stories[rapid.IntRange(0, len(stories)-1).Draw(t, "which")]
			before := s.x.Holds
			switch {
			case s.x.Queued():
				c.claim(s)
			case s.x.Status == Running:
				name := rapid.SampledFrom([]string{"children", "release", "lapse", "complete"}).Draw(t, "departure")
				map[string]func(){
					"children": s.waitForChildren,
					"release":  func() { must[LeaveAnswer](t)(s.release(s.fence())) },
					"lapse":    func() { s.pass(base.Hour) },
					"complete": func() { must[CompleteAnswer](t)(s.complete(s.fence(), nil)) },
				}[name]()
			case !s.x.Status.Terminal():
				s.satisfy()
			}
			c.free(before, s)
			holding := int64(0)
			for _, s := range stories {
				if slices.Contains(s.x.Holds, "slots:a") {
					holding++
				}
			}
			if used := c.room.Slots["slots:a"]; used != holding || used > int64(limit) {
				t.Fatalf("%d in use, %d hold one, the limit is %d", used, holding, limit)
			}
		}
	})
}

func TestS44_as_many_slots_may_be_in_use_after_an_admission_as_its_bounds_say(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(0, 5).Draw(rt, "limit") // 0: there is none
		used := rapid.Int64Range(0, 6).Draw(rt, "used")
		c := newScene(quotaOf("q", 0, limit), quotaOf("free", 0, 0))
		x := &Execution{Policy: &Policy{Quotas: []QuotaUse{{Quota: "q"}, {Quota: "free"}, {Quota: "gone"}, {Quota: "q"}}}}
		c.room.Slots["slots:q"] = used
		bounds := x.SlotBounds(c.room)
		most, limited := bounds["slots:q"]
		if limited != (limit > 0) || len(bounds) > 1 {
			rt.Fatalf("bounds %v with a limit of %d", bounds, limit)
		}
		admitted := x.Admission(c.room, nil, storyStart) == nil
		if fits := !limited || used+1 <= most; admitted != fits {
			rt.Fatalf("admitted: %v with %d in use and bounds %v", admitted, used, bounds)
		}
	})
}
