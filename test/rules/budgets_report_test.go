package rules

import (
	"strings"
	"testing"
)

func TestB19_a_report_is_checked_in_order_arguments_fence_dedup_limits(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(10)+`,"on_hard":"fail"`)
		k := w.budgetTask(t, costing(2, "b"))
		stale := k
		stale.fence = strings.Replace(k.fence, ".1.", ".9.", 1)
		for usage, code := range map[string]string{
			`{}`: "invalid_usage", `{"Tokens":1}`: "invalid_usage", `{"":1}`: "invalid_usage", `{"tokens":-1}`: "invalid_usage", `{"tokens":9007199254740992}`: "invalid_usage",
			`{"tokens":1,"wall_ms":1}`: "reserved_dimension",
		} {
			for _, lease := range []task{k, stale} {
				w.budgetReport(t, lease, usage, "").refuses(t, 400, code)
			}
		}
		w.post(t, at(k.id)+"/usage", `{"lease":"`+k.fence+`"}`).refuses(t, 400, "missing_field")
		w.post(t, at(k.id)+"/usage", `{"usage":{"tokens":1}}`).refuses(t, 400, "fence_required")
		w.budgetReport(t, k, `{"tokens":4}`, `,"dedup_key":"a"`).wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.budgetReport(t, stale, `{"tokens":4}`, `,"dedup_key":"a"`).refuses(t, 409, "stale_lease")                           // the fence comes before the key
		w.budgetReport(t, k, `{"tokens":4}`, `,"dedup_key":"a"`).wants(t, 200).shows(t, fields{"outcome": "already_applied"}) // and the key before the limits
		w.budgetReport(t, k, `{"tokens":99}`, `,"dedup_key":"a"`).refuses(t, 409, "idempotency_conflict")
		w.budgetReport(t, k, `{"pages":5,"made_up":6}`, "").wants(t, 200).shows(t, fields{"outcome": "ok", "applied": true, "action": "none"}) // of no budget: metered
		w.budgetHas(t, "b", 4, 0, 0)
		w.budgetShows(t, "b", fields{"dimensions.pages": nil, "breach_count": 0})
		w.budgetMeter(t, k.id, fields{"tokens": 4, "pages": 5, "made_up": 6})
		w.complete(t, k, `1`)
		w.budgetReport(t, k, `{"tokens":1}`, "").refuses(t, 409, "execution_not_active")
		w.budgetHas(t, "b", 4, 0, 0)
	})
}

func TestB20_a_report_that_does_not_fit_everywhere_changes_nothing_anywhere(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		narrow := w.budget(t, "narrow", `"dimensions":{"a":{"hard":100},"tokens":{"hard":10},"z":{"hard":100,"soft":1}}`)
		wide := w.budget(t, "wide", budgetTokens(100)+`,"scope":{"type":"namespace"}`)
		other := w.budgetTask(t, costing(3, "narrow"))
		k := w.budgetTask(t, costing(2, "narrow"))
		w.budgetReport(t, k, `{"tokens":1}`, "").wants(t, 200)
		w.budgetReport(t, k, `{"a":5,"tokens":7,"z":5,"pages":5}`, "").wants(t, 200).shows(t, fields{
			"outcome": "hard_breach", "applied": false, "action": "none", "budget": narrow, "dimension": "tokens", "used": 1, "reserved": 4, "hard": 10, "attempted": 7, "overrun": nil,
			"remaining." + narrow + ".tokens": 6, "remaining." + narrow + ".a": 100, "remaining." + wide + ".tokens": 96, "all.0.budget": narrow, "all.1": nil,
		})
		for name, want := range map[string]fields{
			"narrow": {"dimensions.a.used": 0, "dimensions.tokens.used": 1, "dimensions.tokens.reserved": 4, "dimensions.z.used": 0, "dimensions.tokens.overrun": 0, "soft_breach_count": 0, "breach_count": 1},
			"wide":   {"dimensions.tokens.used": 1, "dimensions.tokens.reserved": 4, "breach_count": 0},
		} {
			w.budgetShows(t, name, want)
			w.get(t, "/v1/budgets/"+name+"/spend").wants(t, 200).shows(t, fields{"items.0.total": 1, "items.1": nil})
		}
		w.budgetMeter(t, k.id, fields{"tokens": 1, "pages": nil, "a": nil, "z": nil})
		w.budgetReport(t, k, `{"tokens":6}`, "").wants(t, 200).shows(t, fields{"outcome": "ok", "remaining." + narrow + ".tokens": 0}) // the limit exactly
		w.budgetHas(t, "narrow", 7, 3, 0)
		w.budgetReport(t, k, `{"tokens":0}`, "").wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.complete(t, other, `1`)
		w.budgetReport(t, k, `{"tokens":3}`, "").wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.budgetHas(t, "narrow", 10, 0, 0)
	})
}

func TestB20_a_refusal_of_several_names_the_first_and_lists_all(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		lane := w.budget(t, "lane", `"dimensions":{"a":{"hard":5},"b":{"hard":5}}`+budgetScope("lane", "default"))
		named := w.budget(t, "named", `"dimensions":{"b":{"hard":5},"c":{"hard":5}}`)
		k := w.budgetTask(t, `"budget_ids":["named"]`)
		w.budgetReport(t, k, `{"a":6,"b":7,"c":8}`, "").wants(t, 200).shows(t, fields{
			"outcome": "hard_breach", "budget": named, "dimension": "b", "attempted": 7,
			"all.0.budget": named, "all.0.dimension": "b", "all.1.budget": named, "all.1.dimension": "c", "all.1.attempted": 8,
			"all.2.budget": lane, "all.2.dimension": "a", "all.3.budget": lane, "all.3.dimension": "b", "all.4": nil,
		})
		for _, name := range []string{"lane", "named"} { // one report is one breach of each
			w.budgetShows(t, name, fields{"breach_count": 1, "last_breach.execution_id": k.id, "dimensions.b.used": 0})
		}
	})
}

func TestB21_what_is_already_spent_is_booked_as_far_as_it_fits_and_the_rest_is_overrun(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		narrow := w.budget(t, "narrow", `"dimensions":{"tokens":{"hard":10},"a":{"hard":10}}`)
		w.budget(t, "wide", budgetTokens(100)+`,"scope":{"type":"namespace"}`)
		w.budgetTask(t, costing(3, "narrow")) // another, who has reserved
		k := w.budgetTask(t, costing(2, "narrow"))
		w.budgetReport(t, k, `{"tokens":12,"a":4}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{
			"outcome": "hard_breach", "applied": true, "action": "none", "budget": narrow, "dimension": "tokens", "used": 7, "reserved": 3, "hard": 10, "attempted": 12, "overrun": 5,
			"remaining." + narrow + ".tokens": 0,
		})
		w.budgetHas(t, "narrow", 7, 3, 5)
		w.budgetHas(t, "wide", 12, 3, 0)
		w.budgetShows(t, "narrow", fields{"dimensions.a.used": 4, "breach_count": 1})
		w.budgetMeter(t, k.id, fields{"tokens": 12, "a": 4})
		w.get(t, "/v1/budgets/narrow/spend").wants(t, 200).shows(t, fields{"items.0.execution_id": k.id, "items.0.used.tokens": 7, "items.0.used.a": 4, "items.0.total": 11})
		w.budgetReport(t, k, `{"tokens":1}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "overrun": 1})
		w.budgetHas(t, "narrow", 7, 3, 6)
		w.budgetReport(t, k, `{"a":6}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "ok", "applied": true})
	})
}

func TestB22_booking_draws_the_own_hold_first(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		b := w.budget(t, "b", budgetTokens(100))
		k := w.budgetTask(t, costing(60, "b"))
		other := w.budgetTask(t, costing(30, "b"))
		holds := func(want any) {
			t.Helper()
			w.get(t, at(k.id)+"?view=full").wants(t, 200).shows(t, fields{"budgets.0.budget_id": b, "budgets.0.reserved.tokens": want})
		}
		holds(60)
		w.budgetReport(t, k, `{"tokens":50}`, "").wants(t, 200).shows(t, fields{"remaining." + b + ".tokens": 20})
		w.budgetHas(t, "b", 50, 40, 0) // a smaller delta
		holds(10)
		w.budgetReport(t, k, `{"tokens":21}`, "").wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": false})
		w.budgetReport(t, k, `{"tokens":15}`, "").wants(t, 200).shows(t, fields{"outcome": "ok", "remaining." + b + ".tokens": 5})
		w.budgetHas(t, "b", 65, 30, 0) // a larger one
		holds(nil)
		w.budgetReport(t, other, `{"tokens":31}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.budgetHas(t, "b", 96, 0, 0)
		w.budgetShows(t, "b", fields{"live_holds": 2})
	})
}

func TestB23_the_answer_tells_soft_breaches_in_order_and_what_is_left(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		lane := w.budget(t, "lane", `"dimensions":{"a":{"soft":5},"b":{"soft":5,"hard":90}}`+budgetScope("lane", "default"))
		named := w.budget(t, "named", `"dimensions":{"b":{"soft":9},"c":{"soft":5},"free":{"hard":7}}`)
		k := w.budgetTask(t, `"budget_ids":["named"],"estimate":{"free":2}`)
		k.shows(t, fields{k.of("remaining." + named + ".free"): 7, k.of("remaining." + lane + ".b"): 90})
		got := w.budgetReport(t, k, `{"a":5,"b":5,"c":5}`, "").wants(t, 200)
		got.shows(t, fields{"outcome": "ok", "applied": true, "budget": nil, "all": nil, "remaining." + named + ".free": 7, "remaining." + lane + ".b": 85, "remaining." + lane + ".a": nil})
		w.budgetReport(t, k, `{"a":1,"b":1,"c":1}`, "").wants(t, 200).shows(t, fields{
			"outcome": "soft_breach", "applied": true, "action": "none", "budget": named, "dimension": "c", "used": 6, "soft": 5,
			"all.0.budget": named, "all.0.dimension": "c", "all.1.budget": lane, "all.1.dimension": "a", "all.2.budget": lane, "all.2.dimension": "b", "all.2.used": 6, "all.3": nil,
			"remaining." + lane + ".b": 84,
		})
		w.budgetReport(t, k, `{"free":1}`, "").wants(t, 200).shows(t, fields{"outcome": "ok", "remaining." + named + ".free": 6}) // what was passed before is not told by others
		w.budgetReport(t, k, `{"free":60,"c":1}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "dimension": "free", "remaining." + named + ".free": 0})
	})
}
