package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// budgetMoment is a moment as answers have it.
func budgetMoment(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func TestB26_B35_B36_B37_B38_epochs_end_on_the_schedule_however_late_it_is_seen(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) { // it is Tuesday, 2030-01-01T00:00:00Z
		budgetSchedules(t, w, hand)
		budgetEpochs(t, &world{w.serving, "epochs", w.leases}, hand)
		budgetCalendar(t, w, hand)
	})
}

// budgetNext makes a budget with a reset and checks when the first one is.
func (w *world) budgetNext(t testing.TB, hand *clock.Manual, reset, want string) {
	t.Helper()
	name := fmt.Sprint("b", w.last.Add(1))
	w.budget(t, name, budgetTokens(10)+`,"reset":`+reset)
	w.budgetShows(t, name, fields{"next_reset_at": want, "epoch": 1, "epoch_started_at": budgetMoment(hand.Now())})
}

// budgetSchedules shows the boundaries of B35.
func budgetSchedules(t *testing.T, w *world, hand *clock.Manual) {
	const berlin = `{"type":"calendar","unit":"day","timezone":"Europe/Berlin"}`
	w.budgetNext(t, hand, `{"type":"interval","every_ms":3600000,"anchor_at":"2029-12-31T23:20:00Z"}`, "2030-01-01T00:20:00.000Z")
	w.budgetNext(t, hand, `{"type":"interval","every_ms":3600000,"anchor_at":"2030-03-01T00:07:00.500Z"}`, "2030-01-01T00:07:00.500Z")
	w.budgetNext(t, hand, `{"type":"interval","every_ms":3600000,"anchor_at":"2030-01-01T00:00:00Z"}`, "2030-01-01T01:00:00.000Z")
	w.budgetNext(t, hand, `{"type":"calendar","unit":"hour"}`, "2030-01-01T01:00:00.000Z")
	w.budgetNext(t, hand, `{"type":"calendar","unit":"day"}`, "2030-01-02T00:00:00.000Z")
	w.budgetNext(t, hand, `{"type":"calendar","unit":"week"}`, "2030-01-07T00:00:00.000Z")
	w.budgetNext(t, hand, `{"type":"calendar","unit":"month"}`, "2030-02-01T00:00:00.000Z")
	w.budgetNext(t, hand, `{"type":"calendar","unit":"month","timezone":"America/New_York"}`, "2030-01-01T05:00:00.000Z")
	w.budgetNext(t, hand, `{"type":"calendar","unit":"hour","timezone":"Asia/Kolkata"}`, "2030-01-01T00:30:00.000Z")
	w.budgetNext(t, hand, berlin, "2030-01-01T23:00:00.000Z")
	w.budget(t, "day", budgetTokens(10)+`,"reset":`+berlin)
}

// budgetCalendar shows that days and months are those of the calendar (B35).
func budgetCalendar(t *testing.T, w *world, hand *clock.Manual) {
	for _, c := range []struct{ at, day, month string }{
		{"2030-02-01T00:10:00Z", "2030-02-01T23:00:00.000Z", "2030-03-01T00:00:00.000Z"}, // 28 days
		{"2030-03-30T23:00:00Z", "2030-03-31T22:00:00.000Z", "2030-04-01T00:00:00.000Z"}, // a day of 23 hours
		{"2030-10-26T22:00:00Z", "2030-10-27T23:00:00.000Z", "2030-11-01T00:00:00.000Z"}, // one of 25
	} {
		moment, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		hand.TurnTo(moment)
		w.budgetShows(t, "day", fields{"next_reset_at": c.day})
		w.budgetNext(t, hand, `{"type":"calendar","unit":"month"}`, c.month)
	}
	w.budgetPatch(t, "day", `{"reset":{"type":"calendar","unit":"month"}}`).wants(t, 200).shows(t, fields{"next_reset_at": "2030-11-01T00:00:00.000Z"})
	w.budgetPatch(t, "day", `{"reset":{"type":"none"}}`).wants(t, 200).shows(t, fields{"next_reset_at": nil})
}

// budgetEpochs shows resets that are seen late, at once and by hand (B36..B38), and keys that are over (B26).
func budgetEpochs(t *testing.T, w *world, hand *clock.Manual) {
	start := hand.Now()
	turn := func(d time.Duration) { hand.TurnTo(start.Add(d)) }
	hourly := `,"reset":{"type":"interval","every_ms":3600000,"anchor_at":"2030-01-01T00:00:00Z"}`
	w.budget(t, "above", budgetTokens(1000)+`,"reset":{"type":"interval","every_ms":18000000,"anchor_at":"2030-01-01T00:00:00Z"}`)
	id := w.budget(t, "b", `"parent":"above","dimensions":{"tokens":{"hard":10,"soft":3}}`+hourly)
	w.submit(t, `{"kind":"k",`+costing(4, "b")+`}`)
	k := w.claims(t, `"lanes":["default"],"wait_ms":60000,"lease_ttl_ms":86400000`)[0]
	w.budgetCharge(t, "b", `{"tokens":5}`, `,"dedup_key":"once"`).wants(t, 200)
	w.budgetReport(t, k, `{"tokens":7}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"overrun": 2})
	w.budgetShows(t, "b", fields{"dimensions.tokens.used": 10, "dimensions.tokens.reserved": 0, "breach_count": 1, "soft_breach_count": 1})
	waiting := w.submit(t, `{"kind":"k",`+costing(8, "b")+`}`)
	w.claimsNothing(t, "default")
	w.budgetBlocked(t, waiting, fields{"next_reset_at": budgetMoment(start.Add(time.Hour))})

	turn(3*time.Hour + 10*time.Minute) // three boundaries are one reset
	w.budgetShows(t, "b", fields{
		"epoch": 2, "epoch_started_at": budgetMoment(start.Add(3 * time.Hour)), "next_reset_at": budgetMoment(start.Add(4 * time.Hour)), "last_breach": nil,
		"dimensions.tokens.used": 0, "dimensions.tokens.overrun": 0, "breach_count": 1, "soft_breach_count": 1, "live_holds": 1, "exhausted.0": nil,
	})
	w.budgetShows(t, "above", fields{"epoch": 1, "dimensions.tokens.used": 12, "next_reset_at": budgetMoment(start.Add(5 * time.Hour))}) // B38
	l := w.claims(t, `"lanes":["default"],"wait_ms":60000,"lease_ttl_ms":86400000`)[0]
	if l.id != waiting {
		t.Errorf("%s", l.body)
	}
	w.budgetReport(t, k, `{"tokens":1}`, "").wants(t, 200) // a live lease counts in the new epoch
	w.budgetHas(t, "b", 1, 8, 0)
	w.budgetTold(t, "budget.reset", fields{"budget_id": id, "epoch": 2, "used.tokens": 10, "cause": "schedule", "next_reset_at": budgetMoment(start.Add(4 * time.Hour))})

	w.budgetVerb(t, "b", "reset").wants(t, 200).shows(t, fields{ // B37
		"epoch": 3, "epoch_started_at": budgetMoment(hand.Now()), "next_reset_at": budgetMoment(start.Add(4 * time.Hour)), "dimensions.tokens.used": 0, "dimensions.tokens.reserved": 8,
	})
	turn(4 * time.Hour) // the very moment
	w.budgetCharge(t, "b", `{"tokens":2}`, "").wants(t, 200).shows(t, fields{"outcome": "ok"})
	w.budgetShows(t, "b", fields{"epoch": 4, "dimensions.tokens.used": 2, "dimensions.tokens.reserved": 8, "next_reset_at": budgetMoment(start.Add(5 * time.Hour))})
	turn(5 * time.Hour)
	w.budgetShows(t, "above", fields{"epoch": 2, "dimensions.tokens.used": 0, "dimensions.tokens.reserved": 8})
	w.get(t, "/v1/budgets/b/epochs").wants(t, 200).shows(t, fields{
		"items.0.epoch": 4, "items.0.ended_at": budgetMoment(start.Add(5 * time.Hour)), "items.0.dimensions.tokens.used": 2,
		"items.1.epoch": 3, "items.1.dimensions.tokens.used": 0, "items.1.ended_at": budgetMoment(start.Add(4 * time.Hour)),
		"items.2.epoch": 2, "items.2.dimensions.tokens.used": 1, "items.2.breach_count": 0, "items.2.ended_at": budgetMoment(start.Add(3*time.Hour + 10*time.Minute)),
		"items.3.epoch": 1, "items.3.dimensions.tokens.used": 10, "items.3.dimensions.tokens.overrun": 2, "items.3.breach_count": 1, "items.3.soft_breach_count": 1,
		"items.3.started_at": budgetMoment(start), "items.3.ended_at": budgetMoment(start.Add(time.Hour)), "items.4": nil,
	})
	w.budgetVerb(t, "missing", "reset").refuses(t, 404, "budget_not_found")
	w.get(t, "/v1/budgets/missing").refuses(t, 404, "budget_not_found")

	w.complete(t, l, `1`)
	turn(7*24*time.Hour - time.Millisecond) // B26
	w.budgetCharge(t, "b", `{"tokens":5}`, `,"dedup_key":"once"`).wants(t, 200).shows(t, fields{"outcome": "already_applied"})
	turn(7 * 24 * time.Hour)
	w.budgetCharge(t, "b", `{"tokens":5}`, `,"dedup_key":"once"`).wants(t, 200).shows(t, fields{"outcome": "soft_breach", "applied": true})
}

func TestB36_a_raise_is_cut_to_what_live_holds_need_and_shrinks_with_them(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id, _ := w.budgetAsks(t, "")
		w.budgetSays(t, id, "budget_approved", `,"payload":{"raise":{"tokens":20}}`).wants(t, 200)
		k := w.claim(t, "default")
		l := w.budgetTask(t, costing(11, "b"))
		limit := func(reserved, effective int) {
			t.Helper()
			w.budgetShows(t, "b", fields{"dimensions.tokens.reserved": reserved, "dimensions.tokens.hard": 10, "dimensions.tokens.effective_hard": effective})
		}
		limit(15, 30)
		w.budgetVerb(t, "b", "reset").wants(t, 200)
		limit(15, 15)
		w.budgetShows(t, "b", fields{"dimensions.tokens.available": 0, "live_holds": 2, "exhausted.0": "tokens"})
		w.budgetReport(t, k, `{"tokens":1}`, "").wants(t, 200).shows(t, fields{"outcome": "ok"})
		limit(14, 15)
		w.complete(t, k, `1`)
		limit(11, 12)
		w.complete(t, l, `1`)
		limit(0, 10)
	})
}
