package core

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func momentOf(t tester, text string) base.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return base.TimeOf(moment)
}

func TestB35_boundaries_lie_on_the_schedule(t *testing.T) {
	t.Parallel()
	interval := BudgetReset{Type: ResetInterval, EveryMS: 90 * base.Minute, AnchorAt: momentOf(t, "2026-01-01T00:10:00Z")}
	calendar := func(unit, zone string) BudgetReset {
		return BudgetReset{Type: ResetCalendar, Unit: unit, Timezone: zone}
	}
	for _, c := range []struct {
		name            string
		reset           BudgetReset
		now, last, next string
	}{
		{"on the anchor", interval, "2026-01-01T00:10:00Z", "2026-01-01T00:10:00Z", "2026-01-01T01:40:00Z"},
		{"just before a boundary", interval, "2026-01-01T01:39:59.999Z", "2026-01-01T00:10:00Z", "2026-01-01T01:40:00Z"},
		{"before the anchor", interval, "2025-12-31T23:00:00Z", "2025-12-31T22:40:00Z", "2026-01-01T00:10:00Z"},
		{"february of 28", calendar(UnitMonth, "UTC"), "2026-02-15T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"february of 29", calendar(UnitMonth, "UTC"), "2028-02-29T23:59:59Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"a month of 30", calendar(UnitMonth, "UTC"), "2026-04-30T12:00:00Z", "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"},
		{"a month of 31", calendar(UnitMonth, "UTC"), "2026-01-31T12:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
		{"the end of a year", calendar(UnitMonth, "Asia/Tokyo"), "2026-12-31T14:59:59Z", "2026-11-30T15:00:00Z", "2026-12-31T15:00:00Z"},
		{"weeks begin on Monday", calendar(UnitWeek, "UTC"), "2026-03-01T12:00:00Z", "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"Monday itself", calendar(UnitWeek, "UTC"), "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"},
		{"a day of 23 hours", calendar(UnitDay, "Europe/Berlin"), "2026-03-29T10:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a day of 25 hours", calendar(UnitDay, "Europe/Berlin"), "2026-10-25T10:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"a week over a change", calendar(UnitWeek, "America/New_York"), "2026-03-08T12:00:00Z", "2026-03-02T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"midnight is skipped", calendar(UnitDay, "America/Sao_Paulo"), "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"midnight comes twice", calendar(UnitDay, "America/Havana"), "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"a day that is left out", calendar(UnitDay, "Pacific/Apia"), "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"half past the hour", calendar(UnitHour, "Asia/Kolkata"), "2026-05-05T10:00:00Z", "2026-05-05T09:30:00Z", "2026-05-05T10:30:00Z"},
		{"an hour that comes twice, first", calendar(UnitHour, "Europe/Berlin"), "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"an hour that comes twice, second", calendar(UnitHour, "Europe/Berlin"), "2026-10-25T01:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		{"the last day of a leap year that the tables of the zone do not list", calendar(UnitDay, "Europe/Berlin"), "2040-12-31T12:00:00Z", "2040-12-30T23:00:00Z", "2040-12-31T23:00:00Z"},
		{"a month that ends with that day", calendar(UnitMonth, "America/New_York"), "2040-12-31T12:00:00Z", "2040-12-01T05:00:00Z", "2041-01-01T05:00:00Z"},
		{"an hour of that day", calendar(UnitHour, "America/New_York"), "2040-12-31T12:30:00Z", "2040-12-31T12:00:00Z", "2040-12-31T13:00:00Z"},
		{"half an hour back", calendar(UnitHour, "Australia/Lord_Howe"), "2026-04-04T15:10:00Z", "2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z"},
	} {
		last, next := c.reset.around(momentOf(t, c.now))
		if last != momentOf(t, c.last) || next != momentOf(t, c.next) {
			t.Errorf("%s: %s..%s, want %s..%s", c.name, last, next, c.last, c.next)
		}
	}
}

func TestB35_BI9_the_next_boundary_of_any_moment_is_the_same_until_it_is_reached(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"}
	testseed.Check(t, func(t *rapid.T) {
		r := BudgetReset{Type: ResetCalendar, Unit: rapid.SampledFrom([]string{UnitHour, UnitDay, UnitWeek, UnitMonth}).Draw(t, "unit")}
		r.Timezone = rapid.SampledFrom(zones).Draw(t, "zone")
		if rapid.Bool().Draw(t, "interval") {
			r = BudgetReset{Type: ResetInterval, EveryMS: rapid.Int64Range(minResetEvery, 40*base.Day).Draw(t, "every")}
			r.AnchorAt = base.Time(rapid.Int64Range(0, int64(momentOf(t, "2030-01-01T00:00:00Z"))).Draw(t, "anchor"))
		}
		now := base.Time(rapid.Int64Range(int64(momentOf(t, "2011-01-01T00:00:00Z")), int64(momentOf(t, "2036-01-01T00:00:00Z"))).Draw(t, "now"))
		last, next := r.around(now)
		if last > now || next <= now {
			t.Fatalf("%s is not in %s..%s", now, last, next)
		}
		inside := base.Time(rapid.Int64Range(int64(last), int64(next)-1).Draw(t, "inside"))
		if again, then := r.around(inside); again != last || then != next {
			t.Fatalf("%s lies in %s..%s, %s in %s..%s", now, last, next, inside, again, then)
		}
		if again, _ := r.around(next); again != next {
			t.Fatalf("the boundary %s is none: %s", next, again)
		}
	})
}

const hourly = `{"name":"b","dimensions":{"tokens":{"hard":100,"soft":50}},"reset":{"type":"interval","every_ms":3600000,"anchor_at":"2023-11-14T00:00:00.000Z"}}`

func TestB36_a_reset_begins_anew_and_keeps_what_is_live(t *testing.T) {
	t.Parallel()
	k := openBank(t) // at 22:13:20
	id := k.open(hourly)
	first := k.budget(id).NextResetAt
	if first != momentOf(t, "2023-11-14T23:00:00Z") {
		t.Fatalf("next reset at %s", first)
	}
	s := k.running(`{"estimate":{"tokens":80}}`, id)
	o := must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 110), spent))
	if o.Outcome != UsageHardBreach || o.Overrun != 10 {
		t.Fatalf("%+v", o)
	}
	k.now = first - 1
	if refusal := k.claim(k.submit(`{}`), id); refusal == nil || refusal.NextFree != first {
		t.Fatalf("just before the boundary: %+v", refusal)
	}
	k.now = first // no sweep has run
	other := k.submit(`{"estimate":{"tokens":5}}`)
	if refusal := k.claim(other, id); refusal != nil {
		t.Fatalf("BI9: after the boundary: %s", refusal.Detail)
	}
	b := k.budget(id)
	if b.Epoch != 2 || b.EpochStarted != first || b.NextResetAt != first.Add(base.Hour) || b.LastBreach != nil || b.Breaches != 1 || b.SoftBreaches != 1 {
		t.Errorf("%+v", b)
	}
	k.want(id, "tokens", 0, 5, 0)
	want := EpochRecord{
		Budget: id, Epoch: 1, StartedAt: storyStart, EndedAt: first, Breaches: 1, SoftBreaches: 1,
		Dimensions: map[string]EpochUse{"tokens": {Used: 100, Overrun: 10}},
	}
	if len(k.epochs) != 1 || string(k.epochs[0].Encode()) != string(want.Encode()) {
		t.Errorf("%+v", k.epochs)
	}
	if _, err := DecodeEpochRecord(want.Encode()); err != nil {
		t.Error(err)
	}
	data := k.lastTold("budget.reset")
	if data["cause"] != "schedule" || data["epoch"] != 2.0 || data["used"].(map[string]any)["tokens"] != 100.0 {
		t.Errorf("%v", data)
	}
}

func TestB36_several_missed_boundaries_are_one_reset(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(hourly)
	must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 60)}, nil))
	k.now = momentOf(t, "2023-11-15T02:34:56.789Z")
	for range 2 {
		if err := k.do(func(*Effects) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	b := k.budget(id)
	if len(k.epochs) != 1 || b.Epoch != 2 || b.EpochStarted != momentOf(t, "2023-11-15T02:00:00Z") || b.NextResetAt != momentOf(t, "2023-11-15T03:00:00Z") {
		t.Errorf("%d epochs, %+v", len(k.epochs), b)
	}
	if k.told("budget.reset", id) != 1 {
		t.Error("told more than once")
	}
}

func TestB37_a_reset_by_hand_leaves_the_schedule(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(hourly)
	next := k.budget(id).NextResetAt
	must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 60)}, nil))
	k.now += 1000
	if err := k.do(func(fx *Effects) error { return k.books.Reset(fx, id) }); err != nil {
		t.Fatal(err)
	}
	if b := k.budget(id); b.Epoch != 2 || b.NextResetAt != next || b.EpochStarted != k.now || k.lastTold("budget.reset")["cause"] != "operator" {
		t.Errorf("%+v", b)
	}
	wantCode(t, k.do(func(fx *Effects) error { return k.books.Reset(fx, base.UUID{9}) }), base.CodeBudgetNotFound)
}

func TestB36_a_raise_ends_at_the_reset_down_to_what_live_holds_need(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(hourly)
	must[UsageOutcome](t)(k.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 1)}, nil))
	k.stored[id] = func() []byte { b := k.budget(id); b.Dimensions["tokens"].Raised = 200; return b.Encode() }()
	a, b := k.running(`{"estimate":{"tokens":90}}`, id), k.running(`{"estimate":{"tokens":70}}`, id)
	k.now = k.budget(id).NextResetAt
	if err := k.do(func(*Effects) error { return nil }); err != nil {
		t.Fatal(err)
	}
	effective := func(want int64) {
		t.Helper()
		if got := *k.budget(id).View("tokens").EffectiveHard; got != want {
			t.Fatalf("effective limit %d, want %d", got, want)
		}
	}
	effective(160)
	must[UsageOutcome](t)(k.report(a, a.fence(), amounts("tokens", 20)))
	effective(160) // the rest of the holds is still promised
	k.on(b, func() { must[LeaveAnswer](t)(b.release(b.fence())) })
	effective(100)
	k.want(id, "tokens", 20, 70, 0)
	k.on(a, func() { must[CompleteAnswer](t)(a.complete(a.fence(), nil)) })
	k.want(id, "tokens", 20, 0, 0)
}
