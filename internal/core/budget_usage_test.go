package core

import (
	"math"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

const oneHundred = `{"name":"b","dimensions":{"tokens":{"hard":100,"soft":50}}}`

func TestB9_B10_admission_reserves_the_estimate_else_the_default(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"tokens":{"hard":100,"default_reserve":40},"free":{"default_reserve":7}}}`)
	a := k.running(`{}`, id)
	k.want(id, "tokens", 0, 40, 0)
	k.want(id, "free", 0, 7, 0)
	k.running(`{"estimate":{"tokens":60}}`, id)
	k.want(id, "tokens", 0, 100, 0)
	refusal := k.claim(k.submit(`{"estimate":{"tokens":0}}`), id)
	if refusal == nil || refusal.Reason != WaitingForBudget || refusal.Key != BudgetKey(id) ||
		string(refusal.Detail) != `{"dimension":"tokens","need":1,"available":0}` {
		t.Fatalf("%+v %s", refusal, refusal.Detail)
	}
	k.on(a, func() { must[LeaveAnswer](t)(a.release(a.fence())) })
	k.want(id, "tokens", 0, 60, 0)
	if !slices.Contains(k.freed, id) {
		t.Error("B33: the room is not announced")
	}
	if refusal := k.claim(k.submit(`{"estimate":{"tokens":41}}`), id); refusal == nil || string(refusal.Detail) != `{"dimension":"tokens","need":41,"available":40}` {
		t.Errorf("%+v", refusal)
	}
	k.running(`{"estimate":{"tokens":40}}`, id)
}

func TestB9_every_budget_and_every_dimension_is_asked_and_all_or_nothing_is_taken(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	outer := k.open(`{"name":"outer","dimensions":{"tokens":{"hard":100},"calls":{"hard":1}}}`)
	inner := k.open(`{"name":"inner","dimensions":{"tokens":{"hard":50}}}`, outer)
	k.running(`{"estimate":{"tokens":10,"calls":1}}`, inner, outer)
	refusal := k.claim(k.submit(`{"estimate":{"tokens":10}}`), inner, outer)
	if refusal == nil || refusal.Key != BudgetKey(outer) || string(refusal.Detail) != `{"dimension":"calls","need":1,"available":0}` {
		t.Fatalf("%+v", refusal)
	}
	k.want(inner, "tokens", 0, 10, 0)
	if refusal := k.claim(k.submit(`{"estimate":{"tokens":41}}`), inner, outer); refusal.Key != BudgetKey(inner) {
		t.Errorf("B11: the first in the order of B8 is named, not %s", refusal.Key)
	}
}

func TestB12_soft_limits_never_block(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"tokens":{"soft":5}}}`)
	s := k.running(`{"estimate":{"tokens":1000}}`, id)
	o := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 1000)))
	if o.Outcome != UsageSoftBreach || o.Soft != 5 || o.Used != 1000 || len(o.Remaining) != 0 {
		t.Errorf("%+v", o)
	}
	k.running(`{}`, id)
}

func TestB13_a_grant_reserves_and_gives_back_when_it_is_not_used(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(k *bank, s *story){
		"expired": func(k *bank, s *story) { k.pass(6 * base.Second) },
		"held":    func(k *bank, s *story) { k.on(s, func() { must[bool](t)(s.hold()) }) },
		"cancel":  func(k *bank, s *story) { k.on(s, func() { must[bool](t)(s.cancel(nil)) }) },
	} {
		k := openBank(t)
		id := k.open(oneHundred)
		s := k.submit(`{"estimate":{"tokens":30}}`)
		k.on(s, func() {
			_ = s.do(func(fx *Effects) error {
				fx.Budgets.Reserve(fx, s.x, []base.UUID{id}, s.x.Policy.Estimate)
				return s.issue(fx)
			})
		})
		k.want(id, "tokens", 0, 30, 0)
		finish(k, s)
		if d := k.budget(id).Dimensions["tokens"]; d.Reserved != 0 || s.x.Reservation != nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// issue makes a grant for who was admitted.
func (s *story) issue(fx *Effects) error {
	_, err := s.x.IssueGrant(fx, s.keys, GrantCommand{WorkerID: "w", InstanceID: "w-2", TTL: 5 * base.Second})
	return err
}

func TestB14_every_exit_from_running_gives_back_what_remains(t *testing.T) {
	t.Parallel()
	const policy = `{"estimate":{"tokens":30},"retry_policy":{"max_retries":1},"timeout_policy":{"attempt_timeout_ms":5000}}`
	exits := map[string]func(k *bank, s *story){
		"complete":          func(k *bank, s *story) { must[CompleteAnswer](t)(s.complete(s.fence(), nil)) },
		"fail":              func(k *bank, s *story) { must[FailAnswer](t)(s.fail(s.fence(), "permanent")) },
		"retry":             func(k *bank, s *story) { must[FailAnswer](t)(s.fail(s.fence(), "")) },
		"suspend":           func(k *bank, s *story) { s.suspend() },
		"delay":             func(k *bank, s *story) { must[LeaveAnswer](t)(s.delay(s.fence(), s.now+1000)) },
		"wait for children": func(k *bank, s *story) { s.waitForChildren() },
		"cancel":            func(k *bank, s *story) { must[bool](t)(s.cancel(nil)) },
		"hand back":         func(k *bank, s *story) { must[LeaveAnswer](t)(s.release(s.fence())) },
		"revoke":            func(k *bank, s *story) { must[RevokeAnswer](t)(s.revoke(false)) },
		"worker dead":       func(k *bank, s *story) { _ = s.do(func(fx *Effects) error { s.x.LapseNow(fx); return nil }) },
		"attempt timeout":   func(k *bank, s *story) { s.pass(5 * base.Second) },
	}
	for name, leave := range exits {
		k := openBank(t)
		id := k.open(oneHundred)
		s := k.running(policy, id)
		must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 10)))
		k.want(id, "tokens", 10, 20, 0)
		k.on(s, func() { leave(k, s) })
		if s.x.Status == Running {
			t.Fatalf("%s: still running", name)
		}
		k.want(id, "tokens", 10, 0, 0)
	}
}

func TestB15_a_lost_lease_forfeits_where_the_budget_says_so(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(k *bank, s *story){
		"lapse":  func(k *bank, s *story) { k.pass(25 * base.Hour) },
		"revoke": func(k *bank, s *story) { k.on(s, func() { must[RevokeAnswer](t)(s.revoke(false)) }) },
	} {
		k := openBank(t)
		strict := k.open(`{"name":"b","dimensions":{"tokens":{"hard":100,"soft":20}},"on_lease_loss":"forfeit"}`)
		mild := k.open(oneHundred)
		s := k.running(`{"estimate":{"tokens":30}}`, strict, mild)
		must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 10)))
		lose(k, s)
		k.want(strict, "tokens", 30, 0, 0)
		k.want(mild, "tokens", 10, 0, 0)
		if k.budget(strict).SoftBreaches != 1 {
			t.Errorf("%s: a forfeit passes a soft limit as well", name)
		}
		if s.x.Usage["tokens"] != 10 {
			t.Errorf("%s: what was not used is not metered: %v", name, s.x.Usage)
		}
	}
}

func TestB16_commands_that_leave_carry_usage_and_never_fail_by_a_budget(t *testing.T) {
	t.Parallel()
	usage := amounts("tokens", 120)
	for name, leave := range map[string]func(s *story) error{
		"complete": func(s *story) error {
			return s.do(func(fx *Effects) error {
				_, err := s.x.Complete(fx, Completion{Fence: s.fence(), Usage: usage})
				return err
			})
		},
		"fail": func(s *story) error {
			_, err := s.failWith(FailCommand{Fence: s.fence(), Usage: usage})
			return err
		},
		"delay": func(s *story) error {
			return s.do(func(fx *Effects) error {
				_, err := s.x.Delay(fx, DelayCommand{Fence: s.fence(), Until: s.now + 5, Usage: usage})
				return err
			})
		},
		"suspend": func(s *story) error {
			_, err := s.suspendFor(s.fence(), operatorOnly, func(c *SuspendCommand) { c.Usage = usage })
			return err
		},
	} {
		for _, onHard := range []string{OnHardFail, OnHardSuspendForApproval, OnHardCancelRunning} {
			k := openBank(t)
			id := k.open(`{"name":"b","on_hard":"` + onHard + `","dimensions":{"tokens":{"hard":100}}}`)
			s := k.running(`{"estimate":{"tokens":30}}`, id)
			k.on(s, func() {
				if err := leave(s); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			})
			k.want(id, "tokens", 100, 0, 20)
			if s.x.Reason == BudgetExceeded || k.budget(id).Breaches != 1 || k.lastTold("budget.hard_breach")["action"] != "none" {
				t.Errorf("B28: %s under %s: %s", name, onHard, s.x.Reason)
			}
			if spare := []CancelRunning{{id, s.x.ID}}; (onHard == OnHardCancelRunning) != slices.Equal(k.cancels, spare) {
				t.Errorf("%s: cancels %v", onHard, k.cancels)
			}
			sameAmounts(t, "meter", s.x.Usage, usage)
		}
	}
	s := begin(t, `{}`)
	f := s.claim()
	err := s.do(func(fx *Effects) error {
		_, err := s.x.Complete(fx, Completion{Fence: f, Usage: amounts("wall_ms", 1)})
		return err
	})
	wantCode(t, err, base.CodeReservedDimension)
}

func TestB16_B7_late_commands_book_to_the_set_of_the_lapsed_lease_without_a_hold(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id, later := k.open(oneHundred), k.open(oneHundred)
	s := k.running(`{"estimate":{"tokens":30}}`, id)
	f := s.fence()
	k.pass(25 * base.Hour)
	if !slices.Equal(s.x.ChargedTo(), []base.UUID{id}) {
		t.Fatalf("charged to %v", s.x.ChargedTo())
	}
	must[UsageOutcome](t)(k.report(s, f, amounts("tokens", 10)))
	k.on(s, func() { // a grant under another set is out meanwhile
		_ = s.do(func(fx *Effects) error {
			fx.Budgets.Reserve(fx, s.x, []base.UUID{later}, s.x.Policy.Estimate)
			return s.issue(fx)
		})
	})
	k.on(s, func() {
		err := s.do(func(fx *Effects) error {
			_, err := s.x.Complete(fx, Completion{Fence: f, Usage: amounts("tokens", 5), Recorded: s.recorded(1)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	k.want(id, "tokens", 15, 0, 0)
	k.want(later, "tokens", 0, 0, 0)
	sameAmounts(t, "meter", s.x.Usage, amounts("tokens", 15))
}

func TestB17_time_is_measured_and_booked_at_the_exit(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"wall_ms":{"hard":100000}}}`)
	s := k.running(`{}`, id)
	k.want(id, WallMS, 0, 60_000, 0)
	k.pass(45_000)
	_, err := k.report(s, s.fence(), amounts(WallMS, 5))
	wantCode(t, err, base.CodeReservedDimension)
	k.on(s, func() { must[LeaveAnswer](t)(s.release(s.fence())) })
	k.want(id, WallMS, 45_000, 0, 0)
	sameAmounts(t, "meter", s.x.Meters(), amounts(WallMS, 45_000))
	sameAmounts(t, "meter of the attempt", s.x.Attempt.Meters(), amounts(WallMS, 45_000))
	if refusal := k.claim(s, id); refusal != nil {
		t.Fatal(refusal)
	}
	k.want(id, WallMS, 45_000, 55_000, 0) // at most what is available
	if refusal := k.claim(k.submit(`{}`), id); refusal == nil {
		t.Error("admitted without time")
	}
}

func TestB17_a_hold_of_time_that_is_used_up_is_extended_by_the_same_or_what_is_left(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"wall_ms":{"hard":2500}}}`)
	s := k.running(`{"estimate":{"wall_ms":1000}}`, id)
	k.pass(999)
	k.want(id, WallMS, 0, 1000, 0)
	k.pass(1)
	k.want(id, WallMS, 0, 2000, 0)
	k.pass(1000)
	k.want(id, WallMS, 0, 2500, 0)
	k.pass(499)
	if k.budget(id).Breaches != 0 {
		t.Fatal("a breach before the end")
	}
	k.pass(1)
	if b := k.budget(id); b.Breaches != 1 || b.LastBreach.Dimension != WallMS || b.LastBreach.ExecutionID != s.x.ID || s.x.Status != Running {
		t.Fatalf("%+v", b)
	}
	k.pass(700)
	if s.x.WallHoldAt != 0 || k.budget(id).Breaches != 1 {
		t.Fatal("it breaches once")
	}
	k.on(s, func() { must[CompleteAnswer](t)(s.complete(s.fence(), nil)) })
	k.want(id, WallMS, 2500, 0, 700)
}

func TestB17_LI13_extensions_that_are_noticed_late_come_to_the_same(t *testing.T) {
	t.Parallel()
	outcome := func(steps []base.Millis) (*Budget, base.Time) {
		k := openBank(t)
		id := k.open(`{"name":"b","on_hard":"fail","dimensions":{"wall_ms":{"hard":7000}}}`)
		s := k.running(`{"estimate":{"wall_ms":300}}`, id)
		for _, ms := range steps {
			k.pass(ms)
		}
		s.want(Failed, BudgetExceeded, NextNone)
		return k.budget(id), s.x.CompletedAt
	}
	punctual, end := outcome(slices.Repeat([]base.Millis{100}, 80))
	late, then := outcome([]base.Millis{8000})
	if end != storyStart+7000 || then != end {
		t.Errorf("ended at %s and %s", end, then)
	}
	if a, b := *punctual.Dimensions[WallMS], *late.Dimensions[WallMS]; a.Used != b.Used || a.Used != 7000 || a.Overrun != b.Overrun {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestB18_meters_count_with_and_without_budgets(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	s := k.running(`{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":0}}}`)
	o := must[UsageOutcome](t)(k.report(s, s.fence(), map[string]int64{"tokens": 5, "pages": 2}))
	if o.Outcome != UsageOK || !o.Applied || o.Action != ActionNone || o.Remaining != nil {
		t.Errorf("%+v", o)
	}
	k.pass(70)
	k.on(s, func() { must[FailAnswer](t)(s.fail(s.fence(), "")) })
	k.claim(s)
	must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 7)))
	sameAmounts(t, "attempt", s.x.Attempt.Usage, amounts("tokens", 7))
	k.pass(30)
	k.on(s, func() { must[CompleteAnswer](t)(s.complete(s.fence(), nil)) })
	want := map[string]int64{"tokens": 12, "pages": 2, WallMS: 100}
	sameAmounts(t, "execution", s.x.Meters(), want)
	usage := s.last("execution.completed")["totals"].(map[string]any)["usage"].(map[string]any)
	if usage["tokens"] != 12.0 || usage[WallMS] != 100.0 {
		t.Errorf("%v", usage)
	}
}

func TestB19_arguments_come_before_the_fence(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	s := k.running(`{}`)
	for name, usage := range map[string]map[string]int64{
		"empty": {}, "name": {"Tokens": 1}, "negative": {"tokens": -1}, "large": {"tokens": 1 << 53},
	} {
		if _, err := k.report(s, Fence{}, usage); base.CodeOf(err) != base.CodeInvalidUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := k.report(s, Fence{}, amounts("tokens", 1))
	wantCode(t, err, base.CodeFenceRequired)
	_, err = k.report(s, s.fence(), amounts("tokens", 1), under("a\x00b"))
	wantCode(t, err, base.CodeInvalidUsage)
}

func TestB20_B21_B22_B23_the_table_of_reports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		estimate       string
		before, delta  int64
		spent          bool
		outcome        string
		applied        bool
		used, reserved int64
		overrun        int64
	}{
		{"ok", `0`, 0, 40, false, UsageOK, true, 40, 0, 0},
		{"soft 60 of 50", `0`, 0, 60, false, UsageSoftBreach, true, 60, 0, 0},
		{"soft reached exactly", `0`, 0, 50, false, UsageOK, true, 50, 0, 0},
		{"40 + 70 of 100", `0`, 40, 70, false, UsageHardBreach, false, 40, 0, 0},
		{"the limit exactly", `0`, 40, 60, false, UsageSoftBreach, true, 100, 0, 0},
		{"spent beyond it", `0`, 40, 70, true, UsageHardBreach, true, 100, 0, 10},
		{"a hold that is larger", `30`, 0, 10, false, UsageOK, true, 10, 20, 0},
		{"a hold that is smaller", `30`, 0, 40, false, UsageOK, true, 40, 0, 0},
		{"a hold and all the rest", `30`, 0, 100, false, UsageSoftBreach, true, 100, 0, 0},
		{"a hold and one more", `30`, 0, 101, false, UsageHardBreach, false, 0, 30, 0},
		{"a hold and more is spent", `30`, 0, 130, true, UsageHardBreach, true, 100, 0, 30},
		{"nothing", `0`, 0, 0, false, UsageOK, true, 0, 0, 0},
	} {
		k := openBank(t)
		id := k.open(oneHundred)
		s := k.running(`{"estimate":{"tokens":`+c.estimate+`}}`, id)
		if c.before > 0 {
			must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", c.before)))
		}
		o := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", c.delta), func(r *UsageCommand) { r.AlreadySpent = c.spent }))
		if o.Outcome != c.outcome || o.Applied != c.applied || o.Overrun != c.overrun || o.Remaining[id]["tokens"] != 100-c.used {
			t.Errorf("%s: %+v", c.name, o)
		}
		k.want(id, "tokens", c.used, c.reserved, c.overrun)
		metered := c.before
		if c.applied {
			metered += c.delta
		}
		if s.x.Usage["tokens"] != metered {
			t.Errorf("%s: metered %d", c.name, s.x.Usage["tokens"])
		}
		if o.Outcome == UsageHardBreach && (o.Attempted != c.delta || o.Hard != 100 || o.Budget != id || o.Dimension != "tokens") {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}

func TestB20_BI6_one_breach_among_dimensions_or_budgets_books_nothing_anywhere(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	wide := k.open(`{"name":"wide","dimensions":{"tokens":{"hard":1000},"calls":{"hard":5}}}`)
	tight := k.open(`{"name":"tight","dimensions":{"tokens":{"hard":10}}}`)
	s := k.running(`{"estimate":{"tokens":3}}`, wide, tight)
	o := must[UsageOutcome](t)(k.report(s, s.fence(), map[string]int64{"tokens": 2, "calls": 6, "pages": 1}))
	if o.Applied || o.Budget != wide || o.Dimension != "calls" {
		t.Errorf("two dimensions: %+v", o)
	}
	o = must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 11)))
	if o.Applied || o.Budget != tight {
		t.Errorf("two budgets: %+v", o)
	}
	k.want(wide, "tokens", 0, 3, 0)
	k.want(wide, "calls", 0, 0, 0)
	k.want(tight, "tokens", 0, 3, 0)
	if s.x.Usage != nil || len(k.ledger) != 0 || k.budget(wide).Breaches != 1 || k.budget(tight).Breaches != 1 {
		t.Errorf("meters %v, ledger %v", s.x.Usage, k.ledger)
	}
}

func TestB23_all_lists_every_soft_breach_in_order(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	first := k.open(`{"name":"x","dimensions":{"b":{"soft":1},"a":{"soft":1}}}`)
	second := k.open(`{"name":"y","dimensions":{"a":{"soft":1}}}`)
	s := k.running(`{}`, second, first)
	o := must[UsageOutcome](t)(k.report(s, s.fence(), map[string]int64{"a": 2, "b": 2}))
	var got []string
	for _, breach := range o.All {
		got = append(got, breach.Budget.String()[34:]+breach.Dimension)
	}
	if !slices.Equal(got, []string{"02a", "01a", "01b"}) || o.Budget != second {
		t.Errorf("%v", got)
	}
}

func TestB1_sums_never_leave_64_bits(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"tokens":{}}}`)
	k.stored[id] = func() []byte { b := k.budget(id); b.Dimensions["tokens"].Used = math.MaxInt64 - 10; return b.Encode() }()
	k.loose[Spend{Budget: id, Epoch: 1, Dimension: "tokens"}] = math.MaxInt64 - 10
	s := k.running(`{"estimate":{"tokens":4}}`, id)
	_, err := k.report(s, s.fence(), amounts("tokens", 11))
	wantCode(t, err, base.CodeAmountOutOfRange)
	_, err = k.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 7), AlreadySpent: true}, nil)
	wantCode(t, err, base.CodeAmountOutOfRange)
	must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 10)))
	if refusal := k.claim(k.submit(`{"estimate":{"tokens":1}}`), id); refusal == nil {
		t.Error("admitted where no number is left")
	}
	k.on(s, func() {
		_ = s.do(func(fx *Effects) error {
			_, err := s.x.Complete(fx, Completion{Fence: s.fence(), Usage: amounts("tokens", 5)})
			return err
		})
	})
	k.want(id, "tokens", math.MaxInt64, 0, 5)
}

func TestB24_a_charge_goes_to_the_budget_and_its_ancestors(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	top := k.open(`{"name":"top","dimensions":{"tokens":{"hard":100}}}`)
	low := k.open(`{"name":"low","on_hard":"fail","dimensions":{"tokens":{"hard":80},"calls":{}}}`, top)
	must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: low, Usage: map[string]int64{"tokens": 50, "calls": 1}}, nil))
	k.want(low, "tokens", 50, 0, 0)
	k.want(top, "tokens", 50, 0, 0)
	must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: top, Usage: amounts("tokens", 30)}, nil))
	o := must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: low, Usage: amounts("tokens", 30)}, nil))
	if o.Outcome != UsageHardBreach || o.Applied || o.Budget != top || o.Action != ActionNone {
		t.Errorf("%+v", o)
	}
	_, err := k.charge(ChargeCommand{Budget: top, Usage: amounts("calls", 1)}, nil)
	wantCode(t, err, base.CodeUnknownDimension)
	_, err = k.charge(ChargeCommand{Budget: base.UUID{9}, Usage: amounts("calls", 1)}, nil)
	wantCode(t, err, base.CodeBudgetNotFound)
	s := k.submit(`{}`)
	must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: low, Usage: amounts("tokens", 7), AlreadySpent: true}, s))
	sameAmounts(t, "record_spend meters", s.x.Usage, amounts("tokens", 7))
	if len(k.rows(s.x.ID)) != 2 {
		t.Errorf("record_spend has a ledger: %v", k.ledger)
	}
}

func TestB25_BI7_releases_touch_one_execution_and_the_current_epoch(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	top := k.open(`{"name":"top","dimensions":{"tokens":{"hard":100}}}`)
	low := k.open(`{"name":"low","dimensions":{"tokens":{"hard":80}}}`, top)
	a, b := k.running(`{}`, low, top), k.running(`{}`, low, top)
	must[UsageOutcome](t)(k.report(a, a.fence(), amounts("tokens", 30)))
	must[UsageOutcome](t)(k.report(b, b.fence(), amounts("tokens", 20)))
	must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: top, Usage: amounts("tokens", 5)}, a))
	sameAmounts(t, "released", k.release(low, a.x.ID), amounts("tokens", 30))
	k.want(low, "tokens", 20, 0, 0)
	k.want(top, "tokens", 25, 0, 0) // the charge to the top itself stays
	if again := k.release(low, a.x.ID)["tokens"]; again != 0 || !slices.Equal([]int64{k.budget(low).Dimensions["tokens"].Used}, []int64{20}) {
		t.Errorf("a second release gives %d back", again)
	}
	if err := k.do(func(fx *Effects) error { return k.books.Reset(fx, low) }); err != nil {
		t.Fatal(err)
	}
	must[UsageOutcome](t)(k.report(a, a.fence(), amounts("tokens", 4)))
	if released := k.release(low, b.x.ID)["tokens"]; released != 0 {
		t.Errorf("%d of the last epoch came back", released)
	}
	k.want(low, "tokens", 4, 0, 0)
	k.want(top, "tokens", 29, 0, 0)
	err := k.do(func(fx *Effects) error {
		_, err := k.books.Refund(fx, base.UUID{9}, a.x.ID.UUID, nil)
		return err
	})
	wantCode(t, err, base.CodeBudgetNotFound)
}

func TestB25_a_release_gives_an_ancestor_nothing_that_its_own_ledger_does_not_hold(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	top := k.open(`{"name":"top","dimensions":{"tokens":{"hard":100}}}`)
	low := k.open(`{"name":"low","dimensions":{"tokens":{"hard":80}}}`, top)
	a, b := k.running(`{}`, low, top), k.running(`{}`, low, top)
	must[UsageOutcome](t)(k.report(a, a.fence(), amounts("tokens", 30)))
	if err := k.do(func(fx *Effects) error { return k.books.Reset(fx, top) }); err != nil {
		t.Fatal(err)
	}
	must[UsageOutcome](t)(k.report(b, b.fence(), amounts("tokens", 20)))
	sameAmounts(t, "released", k.release(low, a.x.ID), amounts("tokens", 30))
	k.want(low, "tokens", 20, 0, 0)
	k.want(top, "tokens", 20, 0, 0) // what b used since the reset
}

func TestB26_BI5_a_dedup_key_books_once(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id, other := k.open(`{"name":"b","dimensions":{"tokens":{"hard":10}}}`), k.open(oneHundred)
	s := k.running(`{}`, id)
	first := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 4), under("k")))
	again := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 4), under("k")))
	if first.Repeated || !again.Repeated || again.Outcome != first.Outcome || again.Remaining[id]["tokens"] != 6 {
		t.Errorf("%+v, then %+v", first, again)
	}
	_, err := k.report(s, s.fence(), amounts("tokens", 5), under("k"))
	wantCode(t, err, base.CodeIdempotencyConflict)
	_, err = k.report(s, s.fence(), amounts("tokens", 4), under("k"), spent)
	wantCode(t, err, base.CodeIdempotencyConflict)
	k.want(id, "tokens", 4, 0, 0)

	if o := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 9), under("big"))); o.Applied {
		t.Fatalf("%+v", o)
	}
	must[bool](t)(k.update(id, hard("tokens", 20)))
	if o := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 9), under("big"))); o.Repeated || !o.Applied {
		t.Errorf("a refused report is judged afresh: %+v", o)
	}

	for _, budget := range []base.UUID{id, other} {
		c := ChargeCommand{Budget: budget, Usage: amounts("tokens", 1), DedupKey: "k"}
		if o := must[UsageOutcome](t)(k.charge(c, nil)); o.Repeated {
			t.Error("a key on another budget is another key")
		}
		if o := must[UsageOutcome](t)(k.charge(c, nil)); !o.Repeated {
			t.Error("a charge is booked twice")
		}
	}
	k.now = k.now.Add(7 * base.Day)
	c := ChargeCommand{Budget: other, Usage: amounts("tokens", 1), DedupKey: "k"}
	if o := must[UsageOutcome](t)(k.charge(c, nil)); o.Repeated {
		t.Error("an expired record counts")
	}
	k.want(other, "tokens", 2, 0, 0)
}
