package rules

import (
	"testing"
)

func TestB24_a_charge_is_for_a_budget_and_those_above_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		above := w.budget(t, "above", `"dimensions":{"tokens":{"hard":50}}`)
		id := w.budget(t, "team", `"parent":"above","dimensions":{"tokens":{"hard":100,"soft":45},"pages":{}}`)
		w.budgetCharge(t, "team", `{"tokens":40,"pages":3}`, "").wants(t, 200).
			shows(t, fields{"outcome": "ok", "applied": true, "remaining." + id + ".tokens": 60, "remaining." + above + ".tokens": 10})
		w.budgetCharge(t, id, `{"tokens":11,"pages":1}`, "").wants(t, 200).shows(t, fields{
			"outcome": "hard_breach", "applied": false, "action": "none", "budget": above, "dimension": "tokens", "used": 40, "hard": 50, "attempted": 11,
		})
		w.budgetHas(t, "team", 40, 0, 0)
		w.budgetHas(t, "above", 40, 0, 0)
		w.budgetCharge(t, "team", `{"tokens":10}`, "").wants(t, 200).shows(t, fields{"outcome": "soft_breach", "budget": id, "used": 50, "soft": 45})
		w.budgetCharge(t, "team", `{"tokens":5}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": true, "budget": above, "overrun": 5})
		w.budgetHas(t, "team", 55, 0, 0)
		w.budgetHas(t, "above", 50, 0, 5)
		w.budgetShows(t, "above", fields{"breach_count": 2, "last_breach.dimension": "tokens", "last_breach.execution_id": nil})
		w.get(t, "/v1/budgets/team/spend").wants(t, 200).shows(t, fields{"items.0": nil}) // it was not used
		w.budgetCharge(t, "team", `{"tokens":1,"money":1}`, "").refuses(t, 400, "unknown_dimension").shows(t, fields{"field": "/usage/money"})
		w.budgetCharge(t, "above", `{"pages":1}`, "").refuses(t, 400, "unknown_dimension")
		w.budgetCharge(t, "missing", `{"tokens":1}`, "").refuses(t, 404, "budget_not_found")
		for usage, code := range map[string]string{`{}`: "invalid_usage", `{"tokens":-1}`: "invalid_usage", `{"wall_ms":1}`: "reserved_dimension"} {
			w.budgetCharge(t, "team", usage, "").refuses(t, 400, code)
		}
		w.budgetShows(t, "team", fields{"dimensions.tokens.used": 55, "dimensions.pages.used": 3, "breach_count": 0})
	})
}

func TestB24_record_spend_writes_the_ledger_and_the_meters_of_the_execution(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "above", budgetTokens(50))
		w.budget(t, "team", budgetTokens(100)+`,"parent":"above"`)
		id := w.submit(t, `{"kind":"k"}`)
		by := `,"execution_id":"` + id + `"`
		w.budgetCharge(t, "team", `{"tokens":20}`, by).wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.complete(t, w.claim(t, "default"), `1`)
		w.budgetCharge(t, "team", `{"tokens":40}`, by).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": false})
		w.budgetCharge(t, "team", `{"tokens":40}`, by+`,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": true, "overrun": 10})
		w.budgetMeter(t, id, fields{"tokens": 60})
		for name, used := range map[string]int{"team": 60, "above": 50} {
			w.get(t, "/v1/budgets/"+name+"/spend").wants(t, 200).shows(t, fields{"items.0.execution_id": id, "items.0.used.tokens": used, "items.1": nil})
		}
		w.budgetShows(t, "above", fields{"last_breach.execution_id": id})
		w.budgetCharge(t, "team", `{"tokens":1}`, `,"execution_id":"0190a5d0-ac96-774b-bcce-b302099a8057"`).refuses(t, 404, "execution_not_found")
		w.budgetHas(t, "team", 60, 0, 0)
	})
}

func TestB25_release_touches_one_execution_and_this_epoch_only(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "above", budgetTokens(60))
		w.budget(t, "team", `"parent":"above","dimensions":{"tokens":{"hard":1000},"pages":{}}`)
		a, b := w.budgetTask(t, `"budget_ids":["team"]`), w.budgetTask(t, `"budget_ids":["team"]`)
		release := func(k task, want fields) {
			t.Helper()
			got := w.post(t, "/v1/budgets/team/release", `{"execution_id":"`+k.id+`"}`).wants(t, 200)
			if released, _ := got.field(t, "released").(map[string]any); len(released) != len(want) {
				t.Errorf("%s", got.body)
			}
			for name, amount := range want {
				got.shows(t, fields{"released." + name: amount})
			}
		}
		release(a, nil)
		w.budgetReport(t, a, `{"tokens":30,"pages":2}`, "").wants(t, 200)
		w.budgetReport(t, b, `{"tokens":20}`, "").wants(t, 200)
		w.budgetReport(t, a, `{"tokens":17}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"overrun": 7})
		w.budgetHas(t, "team", 67, 0, 0)
		w.budgetHas(t, "above", 60, 0, 7)
		release(a, fields{"tokens": 47, "pages": 2})
		w.budgetHas(t, "team", 20, 0, 0)
		w.budgetHas(t, "above", 20, 0, 7) // its ledger had but 40, and overrun stays
		release(a, nil)
		w.budgetHas(t, "team", 20, 0, 0)
		w.get(t, "/v1/budgets/team/spend").wants(t, 200).shows(t, fields{"items.0.execution_id": b.id, "items.0.used.tokens": 20, "items.1": nil})
		w.budgetMeter(t, a.id, fields{"tokens": 47, "pages": 2}) // meters are what was used

		w.budgetVerb(t, "team", "reset").wants(t, 200)
		w.budgetReport(t, a, `{"tokens":5}`, "").wants(t, 200)
		release(b, nil) // what it used was in the epoch before
		w.budgetHas(t, "team", 5, 0, 0)
		w.budgetHas(t, "above", 25, 0, 7)
		w.get(t, "/v1/budgets/team/spend?epoch=1").wants(t, 200).shows(t, fields{"items.0.execution_id": b.id, "items.0.used.tokens": 20})
		w.post(t, "/v1/budgets/missing/release", `{"execution_id":"`+a.id+`"}`).refuses(t, 404, "budget_not_found")
	})
}

func TestB26_a_dedup_key_books_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "team", `"dimensions":{"tokens":{"hard":100,"soft":50}}`)
		w.budget(t, "other", budgetTokens(100))
		k, l := w.budgetTask(t, `"budget_ids":["team"]`), w.budgetTask(t, `"budget_ids":["other"]`)
		key := func(name string) string { return `,"dedup_key":"` + name + `"` }
		again := func(r reply, first string) {
			t.Helper()
			r.wants(t, 200).shows(t, fields{"outcome": "already_applied", "first_outcome": first, "applied": true})
		}
		w.budgetReport(t, k, `{"tokens":10}`, key("a")).wants(t, 200).shows(t, fields{"outcome": "ok"})
		again(w.budgetReport(t, k, `{"tokens":10}`, key("a")), "ok")
		w.budgetReport(t, k, `{"tokens":11}`, key("a")).refuses(t, 409, "idempotency_conflict")
		w.budgetReport(t, k, `{"tokens":10}`, key("a")+`,"already_spent":true`).refuses(t, 409, "idempotency_conflict")
		w.budgetReport(t, l, `{"tokens":11}`, key("a")).wants(t, 200).shows(t, fields{"outcome": "ok"}) // another execution
		w.budgetReport(t, k, `{"tokens":45}`, key("soft")).wants(t, 200).shows(t, fields{"outcome": "soft_breach"})
		again(w.budgetReport(t, k, `{"tokens":45}`, key("soft")), "soft_breach")
		for range 2 { // none is no key
			w.budgetReport(t, k, `{"tokens":1}`, key("")).wants(t, 200).shows(t, fields{"outcome": "soft_breach"})
		}
		w.budgetHas(t, "team", 57, 0, 0)
		for range 2 { // a refusal is not remembered
			w.budgetReport(t, k, `{"tokens":50}`, key("late")).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": false})
		}
		w.budgetPatch(t, "team", `{"dimensions":{"tokens":{"hard":110}}}`).wants(t, 200)
		w.budgetReport(t, k, `{"tokens":50}`, key("late")).wants(t, 200).shows(t, fields{"outcome": "soft_breach", "applied": true})
		w.budgetReport(t, k, `{"tokens":9}`, key("over")+`,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": true})
		again(w.budgetReport(t, k, `{"tokens":9}`, key("over")+`,"already_spent":true`), "hard_breach")
		w.budgetHas(t, "team", 110, 0, 6)
		w.budgetMeter(t, k.id, fields{"tokens": 116})
		w.budgetShows(t, "team", fields{"breach_count": 3})

		w.budgetVerb(t, "team", "reset").wants(t, 200)
		w.budgetCharge(t, "team", `{"tokens":5}`, key("a")).wants(t, 200).shows(t, fields{"outcome": "ok"}) // of the budget, not of an execution
		again(w.budgetCharge(t, "team", `{"tokens":5}`, key("a")), "ok")
		w.budgetCharge(t, "team", `{"tokens":5}`, key("a")+`,"execution_id":"`+k.id+`"`).refuses(t, 409, "idempotency_conflict")
		w.budgetCharge(t, "other", `{"tokens":5}`, key("a")).wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.budgetCharge(t, "other", `{"tokens":500}`, key("b")).wants(t, 200).shows(t, fields{"applied": false})
		w.budgetCharge(t, "other", `{"tokens":1}`, key("b")).wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.budgetHas(t, "team", 5, 0, 0)
		w.budgetHas(t, "other", 17, 0, 0)
	})
}
